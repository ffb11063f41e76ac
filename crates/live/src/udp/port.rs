//! One bound UDP socket.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{IpAddr, SocketAddr},
    sync::Mutex,
    task::{Context, Poll},
};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{Interest, Ready};

use super::{Address, Locals, is_group, outbox::START};
use crate::Error;

/// A bound UDP socket.
#[derive(Debug)]
pub(crate) struct Port {
    socket: tokio::net::UdpSocket,
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
pub(crate) struct PortError {
    /// Whom it was for.
    pub(crate) to: SocketAddr,
    /// What happened, in words.
    pub(crate) reason: String,
    /// Its host says that nobody listens at that port; else it is a way that is lost, perhaps for a while.
    pub(crate) is_refused: bool,
    /// How the datagram began, as far as it came back.
    pub(crate) start: Vec<u8>,
}

impl Port {
    /// Binds a socket.
    pub(crate) fn bind(address: SocketAddr, role: Role) -> Result<Self, Error> {
        let bind = || -> io::Result<Self> {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
            if address.is_ipv6() {
                // Both families from one socket would hide a taken IPv4 port.
                socket.set_only_v6(true)?;
            }
            #[cfg(unix)]
            if role == Role::Worker {
                socket.set_reuse_port(true)?;
            }
            socket.set_nonblocking(true)?;
            // The usual buffer holds some 270 small datagrams; what exceeds it is lost before anyone sees it. The kernel
            // gives what it may.
            let _ = socket.set_recv_buffer_size(BUFFER);
            let _ = socket.set_send_buffer_size(BUFFER);
            socket.bind(&address.into())?;
            let state = UdpSocketState::new((&socket).into())?;
            state.enable_transport_errors((&socket).into())?;
            let socket = tokio::net::UdpSocket::from_std(socket.into())?;
            let local = socket.local_addr()?;
            let tells = role != Role::Client && local.ip().is_unspecified();
            Ok(Self { socket, state, local, locals: tells.then(Mutex::default) })
        };
        bind().map_err(|error| Error::bind(address, &error))
    }

    /// Where it is bound.
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Waits until something can be received, or the network has complained.
    pub(crate) async fn input(&self) -> io::Result<Ready> {
        self.socket.ready(Interest::READABLE.add(Interest::ERROR)).await
    }

    /// Whether something can be sent.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(cx)
    }

    /// The socket, for its options.
    pub(super) fn socket(&self) -> SockRef<'_> {
        SockRef::from(&self.socket)
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

    pub(super) fn receive(&self, places: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> io::Result<usize> {
        self.socket.try_io(Interest::READABLE, || self.state.recv((&self.socket).into(), places, metas))
    }

    pub(super) fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let attempt = || match self.state.try_send((&self.socket).into(), transmit) {
            // What an earlier datagram met is told by the next call, whomever that is for.
            Err(error) if is_of_another(&error) => self.state.try_send((&self.socket).into(), transmit),
            done => done,
        };
        match attempt() {
            // Once more, so that the runtime knows that the socket is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket.try_io(Interest::WRITABLE, attempt),
            done => done,
        }
    }

    /// What the network said about earlier datagrams: host, port or network unreachable.
    #[cfg(target_os = "linux")]
    pub(crate) fn complaints(&self, mut tell: impl FnMut(PortError)) {
        use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg};
        /// `MSG_ERRQUEUE`: what came back, with the address that the datagram was for.
        const ERRQUEUE: u32 = 0x2000;
        /// `EMSGSIZE`: a link took no datagram of that length, and the kernel knows now.
        const TOO_LONG: i32 = 90;
        // Each asks the kernel twice; a flood of them is left for the next time.
        for _ in 0..64 {
            let next = || {
                let error = self.socket.take_error().ok().flatten();
                let mut start = [0; START];
                let mut place = [IoSliceMut::new(&mut start)];
                let flags = RecvFlags::from_bits_retain(ERRQUEUE);
                let mut nothing = RecvAncillaryBuffer::default();
                let message = recvmsg(&self.socket, &mut place, &mut nothing, flags)?;
                Ok((message.address, error, start.get(..message.bytes).unwrap_or_default().to_vec()))
            };
            let Ok((address, error, start)) = self.socket.try_io(Interest::ERROR, next) else { return };
            if error.as_ref().is_some_and(|error| error.raw_os_error() == Some(TOO_LONG)) {
                continue;
            }
            let Some(to) = address.and_then(|address| SocketAddr::try_from(address).ok()) else { continue };
            let is_refused = error.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            let reason = error.map_or_else(|| "unreachable".into(), |error| error.to_string());
            tell(PortError { to: SocketAddr::new(to.ip().to_canonical(), to.port()), reason, is_refused, start });
        }
    }

    /// What the network said about earlier datagrams: not asked for on this system.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn complaints(&self, _tell: impl FnMut(PortError)) {}

    /// Datagrams to several peers can be handed over in one call, if none of them says from which of our addresses.
    pub(super) const fn sends_many() -> bool {
        cfg!(target_os = "linux")
    }

    /// What is sent has to say from which of our addresses.
    pub(super) const fn names_source(&self) -> bool {
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
        let mut attempt = || sendmmsg(&self.socket, &mut messages, SendFlags::empty()).map_err(io::Error::from);
        match attempt() {
            Err(error) if is_of_another(&error) || error.kind() == io::ErrorKind::Interrupted => attempt(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket.try_io(Interest::WRITABLE, attempt),
            done => done,
        }
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

    /// A peer, spoken to by the address of ours that the kernel would choose: answers come from there, whoever begins.
    pub(crate) fn way_to(&self, peer: SocketAddr) -> Address {
        let to = Address::of(peer);
        let Some(locals) = &self.locals else { return to };
        match (self.choice_for(peer), locals.lock()) {
            (Some(local), Ok(mut locals)) => to.by(locals.place(local)),
            _ => to,
        }
    }

    /// From which of our addresses the kernel would send to a peer.
    pub(super) fn choice_for(&self, peer: SocketAddr) -> Option<IpAddr> {
        // Nothing is sent by that.
        let socket = std::net::UdpSocket::bind((self.local.ip(), 0)).ok()?;
        socket.connect(peer).ok()?;
        socket.local_addr().ok().map(|local| local.ip())
    }

    /// From which of our addresses a datagram leaves.
    pub(super) fn source(&self, to: Address) -> Option<IpAddr> {
        if to.local() == 0 { None } else { self.locals.as_ref()?.lock().ok()?.at(to.local()) }
    }
}

/// The kernel tells with this call what became of an earlier datagram, to whomever.
fn is_of_another(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable};
    cfg!(target_os = "linux") && matches!(error.kind(), ConnectionRefused | HostUnreachable)
}

/// Bytes asked for in either direction.
const BUFFER: usize = 4 << 20;
