//! What systemd is told (sd_notify(3)), and the sockets that it passes (sd_listen_fds(3)). Without it nothing happens.

use std::net::{TcpListener, UdpSocket};

use crate::failure::Failure;

/// What a service tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    /// It listens, or has read its file again.
    Ready,
    /// It reads its file again.
    Reloading,
    /// It ends.
    Stopping,
}

/// Tells who started the program, if that is systemd and wants to know. It goes on without who does not hear it.
#[cfg(target_os = "linux")]
pub(crate) fn tell(state: State) {
    use std::os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    };
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let words = match state {
        State::Ready => "READY=1".to_owned(),
        State::Reloading => {
            // By CLOCK_MONOTONIC it tells this reloading from one before.
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)
        }
        State::Stopping => "STOPPING=1".to_owned(),
    };
    let address = match socket.as_bytes().split_first() {
        Some((b'@', name)) => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&socket),
    };
    let _ = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(words.as_bytes(), &address));
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn tell(_: State) {}

/// The sockets that were passed: for datagrams, and for connections.
pub(crate) type Passed = (Vec<UdpSocket>, Vec<TcpListener>);

/// Takes them.
///
/// # Errors
/// One that is neither for datagrams nor for connections.
#[cfg(unix)]
pub(crate) fn passed() -> Result<Passed, Failure> {
    let mut from = listenfd::ListenFd::from_env();
    let (mut datagrams, mut listeners) = Passed::default();
    for place in 0..from.len() {
        if let Ok(Some(socket)) = from.take_udp_socket(place) {
            datagrams.push(socket);
        } else {
            match from.take_tcp_listener(place) {
                Ok(Some(listener)) => listeners.push(listener),
                _ => {
                    let line =
                        format!("socket {place} of those that were passed is neither of UDP nor a listener of TCP");
                    return Err(Failure::Usage(line));
                }
            }
        }
    }
    Ok((datagrams, listeners))
}

#[cfg(not(unix))]
pub(crate) fn passed() -> Result<Passed, Failure> {
    Ok(Passed::default())
}
