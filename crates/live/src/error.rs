//! What can go wrong, one line each, with what to do about it.

use std::{io, net::SocketAddr, time::Duration};

use crate::{UnknownController, UriError};

/// Why a request, an observation, a client or a server did not come about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URI cannot be used.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// No controller has this name.
    #[error(transparent)]
    UnknownController(#[from] UnknownController),
    /// The host's name has no address.
    #[error("{host} does not resolve: {reason}; check the name or give an address")]
    NameNotResolved {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// The network said that the peer cannot be reached.
    #[error("{peer} is unreachable: {reason}; check that the host is up and a server listens on this port")]
    Unreachable {
        /// The peer.
        peer: SocketAddr,
        /// What the network said.
        reason: String,
    },
    /// Every copy was sent, and nothing came back.
    #[error("{peer} did not answer {} in {:.1} s; check address and port, or allow more copies", counted(*.copies), .after.as_secs_f64())]
    GaveUp {
        /// The peer.
        peer: SocketAddr,
        /// Copies sent.
        copies: u8,
        /// Time from the request to giving up.
        after: Duration,
    },
    /// The request was acknowledged, or was non-confirmable, and no response came.
    #[error("{peer} sent no response within {:.1} s; ask again, or ask for it confirmably", .after.as_secs_f64())]
    NoResponse {
        /// The peer.
        peer: SocketAddr,
        /// Time from the request to giving up.
        after: Duration,
    },
    /// The peer rejected the message.
    #[error("{peer} answered with a reset: it does not process such messages here")]
    Reset {
        /// The peer.
        peer: SocketAddr,
    },
    /// The deadline of the request passed.
    #[error("no answer within the deadline of {:.1} s; allow more time", .after.as_secs_f64())]
    Deadline {
        /// The deadline.
        after: Duration,
    },
    /// The body is longer than may be taken.
    #[error("the body is longer than {limit} bytes; raise longest_body to take it")]
    BodyTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A transfer in blocks went wrong.
    #[error("the transfer in blocks with {peer} failed: {reason}")]
    Transfer {
        /// The peer.
        peer: SocketAddr,
        /// How.
        reason: String,
    },
    /// The message cannot be sent as it is.
    #[error("the message was not sent: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why, and what to do.
        reason: String,
    },
    /// The operating system did not do what was needed.
    #[error("{reason}")]
    Socket {
        /// What it said.
        reason: String,
    },
    /// The connection to the peer ended before the answer came.
    #[error("the connection to {peer} ended before the answer came: {reason}")]
    ConnectionLost {
        /// The peer.
        peer: SocketAddr,
        /// Why.
        reason: String,
    },
    /// A certificate, a key or a trust anchor cannot be used.
    #[error("{place}: {reason}")]
    Credential {
        /// The file, or what stands for it.
        place: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// There is no secure session with the peer.
    #[error("no secure session with {peer}: {reason}")]
    Insecure {
        /// The peer.
        peer: SocketAddr,
        /// Why, and what to do.
        reason: String,
    },
    /// A setting cannot be used.
    #[error("{name}: {reason}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Why, and what can be used.
        reason: String,
    },
    /// The client ended.
    #[error("the client has ended")]
    Closed,
}

/// So many copies, in words.
fn counted(copies: u8) -> String {
    if copies == 1 { "1 copy".into() } else { format!("{copies} copies") }
}

impl Error {
    /// Why an address cannot be bound.
    pub(crate) fn bind(address: SocketAddr, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "the port is in use; choose another or stop the program that has it".into(),
            io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
            io::ErrorKind::PermissionDenied => "not permitted; choose a port above 1023".into(),
            _ if is_out_of_files(error) => "no file descriptor is left; raise the limit (ulimit -n)".into(),
            _ => error.to_string(),
        };
        Self::Bind { address, reason }
    }
}

/// The process, or the machine, has no file descriptor left.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    /// EMFILE and ENFILE, alike on every Unix that tokio runs on.
    const OUT_OF_FILES: [i32; 2] = [24, 23];
    cfg!(unix) && error.raw_os_error().is_some_and(|number| OUT_OF_FILES.contains(&number))
}
