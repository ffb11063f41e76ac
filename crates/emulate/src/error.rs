//! Why something cannot be emulated, each in one line that names the fix.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

/// Why a run cannot begin, or ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path describes no links.
    #[error("the path cannot be used: {0}")]
    Path(String),
    /// A law of conservation does not hold in this link: a fault of the links themselves.
    #[error("{0}: {1}: please report this fault")]
    Conservation(&'static str, String),
    /// The address to listen at.
    #[error("{0} cannot be listened at: {words}", words = words(.1))]
    Listen(SocketAddr, io::Error),
    /// An address of this machine, from which a server was to be reached.
    #[error("{1} cannot be reached from {0}: {words}; choose an address of this machine that leads there", words = words(.2))]
    From(IpAddr, SocketAddr, io::Error),
    /// Both addresses are the same.
    #[error("{0}: the relay would forward to itself; listen at another port")]
    Itself(SocketAddr),
    /// There is no TUN device.
    #[cfg(target_os = "linux")]
    #[error("/dev/net/tun: {words}: {fix}", words = words(.0), fix = tun_fix(.0))]
    Tun(io::Error),
    /// There are no namespaces.
    #[cfg(target_os = "linux")]
    #[error("namespaces cannot be made: {words}: {fix}", words = words(.0), fix = NAMESPACES_FIX)]
    Namespaces(io::Error),
    /// The longest packet is too short or too long.
    #[error("an MTU of {0} B: IPv4 needs at least 68 B (IPv6 1280 B), and 65535 B is the most")]
    Mtu(u32),
    /// Too many devices, or none.
    #[error("{0} devices: between 1 and 500 can share a path")]
    Devices(u16),
    /// A file that cannot be written.
    #[error("{path}: {words}", path = .0.display(), words = words(.1))]
    File(std::path::PathBuf, io::Error),
    /// What the operating system does not do.
    #[error("{0}: {words}", words = words(.1))]
    System(&'static str, io::Error),
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System(what, error)
    }
}

#[cfg(target_os = "linux")]
const NAMESPACES_FIX: &str = "run as root, or let users make user namespaces (sysctl user.max_user_namespaces, \
     kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)";

#[cfg(target_os = "linux")]
fn tun_fix(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root, or let users open it (chmod 0666 /dev/net/tun)",
        _ => "load the module tun, and make the device if need be (mknod /dev/net/tun c 10 200)",
    }
}

/// The system's words without "(os error 2)".
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
