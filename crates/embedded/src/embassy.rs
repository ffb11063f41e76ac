use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use embassy_net::{
    IpAddress, IpEndpoint,
    udp::{RecvError, UdpSocket},
};
use embedded_io_async::ErrorKind;
use embedded_nal_async::UnconnectedUdp;

/// A socket of embassy-net as a [`Node`](crate::Node) takes it. To be bound before.
pub struct EmbassyUdp<'a>(pub UdpSocket<'a>);

impl fmt::Debug for EmbassyUdp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EmbassyUdp").finish()
    }
}

impl UnconnectedUdp for EmbassyUdp<'_> {
    type Error = ErrorKind;

    async fn send(&mut self, _local: SocketAddr, remote: SocketAddr, data: &[u8]) -> Result<(), ErrorKind> {
        let address = match remote.ip() {
            IpAddr::V4(address) => IpAddress::Ipv4(address),
            #[cfg(feature = "ipv6")]
            IpAddr::V6(address) => IpAddress::Ipv6(address),
            #[cfg(not(feature = "ipv6"))]
            IpAddr::V6(_) => return Err(ErrorKind::Unsupported),
        };
        let sent = self.0.send_to(data, IpEndpoint::new(address, remote.port())).await;
        sent.map_err(|_| ErrorKind::AddrNotAvailable)
    }

    async fn receive_into(&mut self, buffer: &mut [u8]) -> Result<(usize, SocketAddr, SocketAddr), ErrorKind> {
        let local = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.0.endpoint().port);
        loop {
            match self.0.recv_from(buffer).await {
                Ok((length, from)) => {
                    let from = from.endpoint;
                    return Ok((length, local, SocketAddr::new(from.addr.into(), from.port)));
                }
                // Who sent it is not told, so that it cannot be refused: it is lost.
                Err(RecvError::Truncated) => {}
            }
        }
    }
}
