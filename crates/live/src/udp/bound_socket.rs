//! One bound UDP socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Mutex,
    task::{Context, Poll},
};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::Interest;

use super::{Address, Locals, is_group, outbox::START, watched::Watched};
use crate::Error;

/// A bound UDP socket.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    watched: Watched,
    state: UdpSocketState,
    local: SocketAddr,
    /// Our addresses at which datagrams came in, if answers must leave from there.
    locals: Option<Mutex<Locals>>,
}

/// How a socket is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It asks: from whichever of our addresses the kernel chooses.
    Client,
    /// It is asked, and answers from the address that was asked.
    Server,
    /// So do other sockets of this program at the same port; the kernel spreads peers over them.
    Worker,
}

/// What the network said about a datagram of ours.
#[derive(Debug)]
pub(crate) struct SocketError {
    /// Whom it was for.
    pub(crate) to: SocketAddr,
    /// What happened, in words.
    pub(crate) reason: String,
    /// Its host says that nobody listens at that port; else it is a way that is lost, perhaps for a while.
    pub(crate) is_refused: bool,
    /// How the datagram began, as far as it came back.
    pub(crate) start: Vec<u8>,
}

impl BoundSocket {
    /// Binds a socket.
    pub(crate) fn bind(address: SocketAddr, role: Role) -> Result<Self, Error> {
        let bind = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
            if address.is_ipv6() {
                // Both families from one socket would hide a taken IPv4 port.
                socket.set_only_v6(true)?;
            }
            #[cfg(unix)]
            if role == Role::Worker {
                socket.set_reuse_port(true)?;
            }
            socket.bind(&address.into())?;
            Ok(socket)
        };
        bind().and_then(|socket| Self::over(socket, role)).map_err(|error| Error::bind(address, &error))
    }

    /// Uses a socket that is bound to this address already.
    pub(crate) fn bound(socket: UdpSocket, address: SocketAddr, role: Role) -> Result<Self, Error> {
        Self::over(socket.into(), role).map_err(|error| Error::bind(address, &error))
    }

    fn over(socket: Socket, role: Role) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // The usual buffer holds some 270 small datagrams; what exceeds it is lost before anyone sees it. The kernel
        // gives what it may.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        let state = UdpSocketState::new((&socket).into())?;
        let socket: UdpSocket = socket.into();
        let local = socket.local_addr()?;
        may_be_fragmented(&socket, local);
        state.enable_transport_errors((&socket).into())?;
        let watched = Watched::new(socket)?;
        let tells = role != Role::Client && local.ip().is_unspecified();
        Ok(Self { watched, state, local, locals: tells.then(Mutex::default) })
    }

    /// Where it is bound.
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether something can be received.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.watched.poll_readable(cx)
    }

    /// Waits until the network has complained.
    pub(crate) async fn complained(&self) {
        self.watched.complained().await;
    }

    /// Whether something can be sent; to be asked when the socket was full.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.watched.poll_writable(cx)
    }

    /// The socket, for its options.
    pub(super) fn socket(&self) -> SockRef<'_> {
        SockRef::from(self.watched.socket())
    }

    /// Who sent something, to which of our addresses, and whether to a group that we are in. What came to a group is
    /// answered from whichever of our addresses the kernel chooses.
    pub(super) fn sender(&self, meta: &RecvMeta) -> (Address, bool) {
        let from = Address::of(meta.addr);
        match (&self.locals, meta.dst_ip) {
            (_, Some(ip)) if is_group(ip.to_canonical()) => (from, true),
            (Some(locals), Some(ip)) => (from.by(locals.lock().map_or(0, |mut locals| locals.place(ip))), false),
            _ => (from, false),
        }
    }

    /// Takes what has come, at most one batch. How many places of it are filled, and whether the socket is empty: then the runtime
    /// waits for more.
    ///
    /// A batch that is not full ended because nothing was left, so that the socket need not be asked once more. Nothing is missed:
    /// what comes later makes an event of its own, as does an error, which ends a batch as well, and an event that the runtime
    /// has taken up since the call began keeps it from waiting.
    pub(super) fn receive(&self, places: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> io::Result<(usize, bool)> {
        let mut count = 0;
        let received = self.watched.reads(Interest::READABLE, || {
            count = self.state.recv(self.watched.socket().into(), places, metas)?;
            if count < BATCH_SIZE { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match received {
            Ok(()) => Ok((count, false)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok((count, true)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let send = || self.state.try_send(self.watched.socket().into(), transmit);
        self.watched.sends(|| match send() {
            // What an earlier datagram met is told by the next call, whomever that is for.
            Err(error) if is_of_another(&error) => send(),
            done => done,
        })
    }

    /// What the network said about earlier datagrams: host, port or network unreachable.
    #[cfg(target_os = "linux")]
    pub(crate) fn complaints(&self, mut tell: impl FnMut(SocketError)) {
        use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
        /// `MSG_ERRQUEUE`: what came back, with the address that the datagram was for.
        const ERRQUEUE: u32 = 0x2000;
        /// `EMSGSIZE`: a link took no datagram of that length, and the kernel knows now.
        const TOO_LONG: i32 = 90;
        // Each asks the kernel twice; a flood of them is left for the next time.
        for _ in 0..64 {
            let next = || {
                let error = self.watched.socket().take_error().ok().flatten();
                let mut start = [0; START];
                let mut place = [IoSliceMut::new(&mut start)];
                let flags = RecvFlags::from_bits_retain(ERRQUEUE);
                let mut nothing = RecvAncillaryBuffer::default();
                let message = recvmsg(self.watched.socket(), &mut place, &mut nothing, flags)?;
                Ok((message.address, error, start.get(..message.bytes).unwrap_or_default().to_vec()))
            };
            let Ok((address, error, start)) = self.watched.reads(Interest::ERROR, next) else { return };
            if error.as_ref().is_some_and(|error| error.raw_os_error() == Some(TOO_LONG)) {
                continue;
            }
            let Some(to) = address.and_then(|address| SocketAddr::try_from(address).ok()) else { continue };
            let is_refused = error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            let reason = error.map_or_else(|| "unreachable".into(), |error| error.to_string());
            tell(SocketError { to: SocketAddr::new(to.ip().to_canonical(), to.port()), reason, is_refused, start });
        }
    }

    /// What the network said about earlier datagrams: not asked for on this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn complaints(&self, _tell: impl FnMut(SocketError)) {}

    /// Datagrams to several peers can be handed over in one call, if none of them says from which of our addresses.
    pub(super) const fn sends_many() -> bool {
        cfg!(target_os = "linux")
    }

    /// What is sent has to say from which of our addresses.
    pub(crate) const fn names_source(&self) -> bool {
        self.locals.is_some()
    }

    /// Hands over datagrams in one call. Returns how many of them the kernel took, at least one.
    #[cfg(target_os = "linux")]
    pub(super) fn send_many<'d>(&self, datagrams: impl Iterator<Item = (SocketAddr, &'d [u8])>) -> io::Result<usize> {
        use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
        let (peers, contents): (Vec<SocketAddrAny>, Vec<[IoSlice<'_>; 1]>) =
            datagrams.map(|(to, bytes)| (to.into(), [IoSlice::new(bytes)])).unzip();
        let mut nothing: Vec<_> = peers.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let messages = peers.iter().zip(&contents).zip(&mut nothing);
        let mut messages: Vec<_> =
            messages.map(|((peer, contents), nothing)| MMsgHdr::new_with_addr(peer, contents, nothing)).collect();
        let mut send = || sendmmsg(self.watched.socket(), &mut messages, SendFlags::empty()).map_err(io::Error::from);
        self.watched.sends(|| match send() {
            Err(error) if is_of_another(&error) || error.kind() == io::ErrorKind::Interrupted => send(),
            done => done,
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn send_many<'d>(&self, _datagrams: impl Iterator<Item = (SocketAddr, &'d [u8])>) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// How many equal datagrams to one peer the kernel takes at once.
    pub(super) fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// How many of our addresses datagrams came in at.
    pub(crate) fn locals_met(&self) -> u8 {
        self.locals.as_ref().and_then(|locals| locals.lock().ok()).map_or(0, |locals| locals.met())
    }

    /// A peer, spoken to by the address of ours that the kernel would choose: answers come from there, whichever side begins.
    pub(crate) fn way_to(&self, peer: SocketAddr) -> Address {
        let to = Address::of(peer);
        let Some(locals) = &self.locals else { return to };
        match (self.choice_for(peer), locals.lock()) {
            (Some(local), Ok(mut locals)) => to.by(locals.place(local)),
            _ => to,
        }
    }

    /// A peer that has spoken to this address of ours, if that is known.
    #[cfg(feature = "state")]
    pub(crate) fn way_from(&self, own: Option<IpAddr>, peer: SocketAddr) -> Address {
        let to = Address::of(peer);
        match own.zip(self.locals.as_ref().and_then(|locals| locals.lock().ok())) {
            Some((own, mut locals)) => to.by(locals.place(own)),
            None => to,
        }
    }

    /// From which of our addresses the kernel would send to a peer.
    pub(super) fn choice_for(&self, peer: SocketAddr) -> Option<IpAddr> {
        // Nothing is sent by that.
        let socket = UdpSocket::bind((self.local.ip(), 0)).ok()?;
        socket.connect(peer).ok()?;
        socket.local_addr().ok().map(|local| local.ip())
    }

    /// From which of our addresses a datagram leaves.
    pub(crate) fn source(&self, to: Address) -> Option<IpAddr> {
        if to.local() == 0 { None } else { self.locals.as_ref()?.lock().ok()?.at(to.local()) }
    }
}

/// Lets the network cut what is longer than a link takes. What quinn-udp sets is for QUIC, which looks for the longest datagram
/// by itself: no message longer than the smallest MTU on its way would ever arrive.
#[cfg(target_os = "linux")]
fn may_be_fragmented(socket: &UdpSocket, address: SocketAddr) {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    // A kernel that knows neither cuts nothing; what it refuses is told then.
    let _ = if address.is_ipv4() {
        set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DONT)
    } else {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)
    };
}

/// The same: no safe interface undoes it on this system. What the kernel refuses is told.
#[cfg(not(target_os = "linux"))]
fn may_be_fragmented(_socket: &UdpSocket, _address: SocketAddr) {}

/// The kernel tells with this call what became of an earlier datagram, to whomever.
fn is_of_another(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable};
    cfg!(target_os = "linux") && matches!(error.kind(), ConnectionRefused | HostUnreachable)
}

/// Bytes asked for in either direction.
const BUFFER: usize = 4 << 20;
