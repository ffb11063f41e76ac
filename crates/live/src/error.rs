//! What can go wrong, one line each, with what to do about it.

use std::{io, net::SocketAddr, time::Duration};

use millpond_coap::message::WriteError;

use crate::{Cause, Response, Transport, UnknownController, UriError, Why, transfer};

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
        /// The system's own error, if there is one.
        source: Option<Cause>,
    },
    /// The network said that the peer cannot be reached.
    #[error("{peer} is unreachable: {reason}; check that the host is up and a server listens on this port")]
    Unreachable {
        /// The peer.
        peer: SocketAddr,
        /// What the network said.
        reason: String,
        /// The system's own error, if there is one.
        source: Option<Cause>,
    },
    /// Every copy was sent, and nothing came back.
    #[error("{peer} did not answer {} in {:.1} s; check address and port, or allow more copies", counted(*.copies), .after.as_secs_f64())]
    GaveUp {
        /// The peer.
        peer: SocketAddr,
        /// Transmissions.
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
    /// The other side of a connection did not begin with its settings (CSM), which RFC 8323 §5.3 asks of every peer over TCP.
    #[error(
        "{peer} sent no settings (CSM), with which CoAP over TCP begins, within {:.1} s; check that it speaks CoAP over TCP on this port, or ask it without_settings",
        .after.as_secs_f64()
    )]
    NoSettings {
        /// The peer.
        peer: SocketAddr,
        /// How long they were waited for.
        after: Duration,
    },
    /// The answer is longer than datagrams are taken.
    #[error(
        "{peer} sent an answer in a longer datagram than is taken; raise longest_datagram, or ask for it in blocks (block_size)"
    )]
    LongDatagram {
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
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// The answer has a critical option that is not understood here, or one that may not stand there (RFC 7252 §5.4.1), or
    /// not the token of the request.
    #[error("{peer} sent an answer that cannot be taken: {reason}")]
    NotUnderstood {
        /// The peer.
        peer: SocketAddr,
        /// What it has, and what to do.
        reason: String,
    },
    /// The message cannot be sent as it is.
    #[error("the message was not sent: {reason}")]
    Refused {
        /// Of which kind the reason is.
        why: NotSent,
        /// Why, and what to do.
        reason: String,
    },
    /// So much was asked of this peer that no message ID is free for it: none may come again within EXCHANGE_LIFETIME
    /// (RFC 7252 §4.4), and no further source port may be used.
    #[error(
        "no message ID is free for {peer}, which was asked too often; ask less often or later, or raise most_sockets"
    )]
    NoMessageId {
        /// The peer.
        peer: SocketAddr,
    },
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why, and what to do.
        reason: String,
        /// The system's own error.
        source: Option<Cause>,
    },
    /// The operating system did not do what was needed.
    #[error("{reason}")]
    Socket {
        /// What it said.
        reason: String,
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// The connection to the peer ended before the answer came.
    #[error("the connection to {peer} ended: {reason}")]
    ConnectionLost {
        /// The peer.
        peer: SocketAddr,
        /// Why, and what to do.
        reason: String,
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// A certificate, a key or a trust anchor cannot be used.
    #[error("{place}: {reason}")]
    Credential {
        /// The file, or what stands for it.
        place: String,
        /// What is wrong with it, and what to do.
        reason: String,
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// There is no secure session with the peer.
    #[error("no secure session with {peer}: {reason}")]
    Insecure {
        /// The peer.
        peer: SocketAddr,
        /// Why, and what to do.
        reason: String,
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// There is no secure session with the peer, because it did not answer the handshake in time.
    #[error("no secure session with {peer}: {reason}")]
    HandshakeTimedOut {
        /// The peer.
        peer: SocketAddr,
        /// What to look at.
        reason: String,
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// A setting cannot be used.
    #[error("{name}: {reason}")]
    Setting {
        /// Which.
        name: &'static str,
        /// Why, and what can be used.
        reason: String,
    },
    /// Nothing is observed: the server answered, and does not report changes, or answered with an error. What it answered.
    #[error("{}", not_observed(answer))]
    NotObserved {
        /// The answer.
        answer: Box<Response>,
    },
    /// The body of a response is not the value that was wanted.
    #[error("no value in the answer: {reason}")]
    NotDecoded {
        /// Why.
        reason: String,
        /// The error of the system, or of another library, that lies beneath, if there is one.
        source: Option<Cause>,
    },
    /// Answers of a group that were not taken fast enough: so many were dropped, because so many bytes waited.
    #[error(
        "{count} more answers came and were dropped, as {limit} bytes of others were not taken yet; take them as they come"
    )]
    NotTaken {
        /// How many.
        count: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The client ended.
    #[error("the client has ended")]
    Closed,
    /// A task of the server ended although nobody wanted it to.
    #[error("the server has ended: {reason}")]
    Ended {
        /// Why.
        reason: String,
    },
}

/// Beneath an [`Error::ConnectionLost`] of a request of which nothing has left: it may go over another connection, and not sooner
/// than after so long.
#[cfg_attr(not(feature = "tcp"), allow(dead_code, reason = "it is for connections"))]
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("nothing of it was sent")]
pub(crate) struct Unsent {
    pub(crate) hold_off: Duration,
}

fn not_observed(answer: &Response) -> String {
    match answer.code() {
        code if code.is_success() => "the server answered and does not let this be observed; ask with get".into(),
        code => format!("nothing is observed: the server answered with {code}"),
    }
}

/// So many copies, in words.
fn counted(copies: u8) -> String {
    if copies == 1 { "1 copy".into() } else { format!("{copies} copies") }
}

/// Of which kind the reason is for which a message [was not sent](Error::Refused).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotSent {
    /// The transport is not in this build.
    NotBuilt,
    /// What was set for the request does not go together, or not with its transport or method.
    Combination,
    /// Nobody can be asked at this destination, or not from here: another family of addresses, a group in place of a host or the other
    /// way round, an address on a link without its interface, no connection.
    Destination,
    /// It is longer than it may be.
    TooLong,
    /// As much waits, is open, or is remembered as may be: ask again later.
    Busy,
    /// Its body has no form, or cannot be read or written.
    Body,
    /// It cannot be written, or not be protected.
    Message,
}

impl NotSent {
    /// Of what the state machines refuse to send.
    pub(crate) const fn of(why: &transfer::Refused) -> Self {
        use millpond_coap::{Refused, stream::StreamRefused};
        use transfer::Refused::{
            Connection, Endpoint, LongGroupRequest, LongObservation, NeedsResponses, NotObservable,
        };
        match why {
            Endpoint(
                Refused::TooManyWaiting { .. }
                | Refused::TooManySubscriptions { .. }
                | Refused::TooManyGroupRequests { .. }
                | Refused::TooManyPeers { .. }
                | Refused::NoMessageId { .. }
                | Refused::OutOfBytes { .. },
            )
            | Connection(StreamRefused::TooManyRequests { .. }) => Self::Busy,
            Endpoint(Refused::Message(WriteError::OverLimit { .. }))
            | Connection(StreamRefused::Message(WriteError::OverLimit { .. }))
            | LongObservation { .. }
            | LongGroupRequest { .. } => Self::TooLong,
            NotObservable(_) | NeedsResponses => Self::Combination,
            _ => Self::Message,
        }
    }
}

impl Error {
    /// A message cannot be sent as it is.
    pub(crate) fn refused(why: NotSent, reason: impl Into<String>) -> Self {
        Self::Refused { why, reason: reason.into() }
    }

    /// As [`refused`](Self::refused), by what the state machines say.
    pub(crate) fn not_sent(why: transfer::Refused) -> Self {
        Self::refused(NotSent::of(&why), why.to_string())
    }

    /// Why an address cannot be bound.
    pub(crate) fn bind(address: SocketAddr, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => "the port is in use; choose another or stop the program that has it".into(),
            io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
            io::ErrorKind::PermissionDenied => "not permitted; choose a port above 1023".into(),
            _ if is_out_of_files(error) => "no file descriptor is left; raise the limit (ulimit -n)".into(),
            _ => error.to_string(),
        };
        let source = Cause::of(io::Error::new(error.kind(), error.to_string()));
        Self::Bind { address, reason, source }
    }

    /// The connection to a peer ended.
    pub(crate) fn connection_lost(peer: SocketAddr, why: impl Into<Why>) -> Self {
        let Why { reason, source } = why.into();
        Self::ConnectionLost { peer, reason, source }
    }

    /// Whether nothing of a request has left because its connection ended.
    pub(crate) fn unsent(&self) -> Option<Unsent> {
        match self {
            Self::ConnectionLost { source: Some(source), .. } => source.get().downcast_ref().copied(),
            _ => None,
        }
    }

    /// A certificate, a key or a trust anchor cannot be used.
    #[allow(dead_code, reason = "everything may be in it")]
    pub(crate) fn credential(place: impl Into<String>, why: impl Into<Why>) -> Self {
        let Why { reason, source } = why.into();
        Self::Credential { place: place.into(), reason, source }
    }

    /// There is no secure session with a peer.
    pub(crate) fn insecure(peer: SocketAddr, why: impl Into<Why>) -> Self {
        let Why { reason, source } = why.into();
        Self::Insecure { peer, reason, source }
    }

    /// There is none, because the handshake was not answered in time.
    pub(crate) fn handshake_timed_out(peer: SocketAddr, why: impl Into<Why>) -> Self {
        let Why { reason, source } = why.into();
        Self::HandshakeTimedOut { peer, reason, source }
    }

    /// A transfer in blocks went wrong.
    pub(crate) fn transfer(peer: SocketAddr, why: impl Into<Why>) -> Self {
        let Why { reason, source } = why.into();
        Self::Transfer { peer, reason, source }
    }

    /// The body of a response is not the value that was wanted.
    #[allow(dead_code, reason = "everything may be in it")]
    pub(crate) fn not_decoded(why: impl Into<Why>) -> Self {
        let Why { reason, source } = why.into();
        Self::NotDecoded { reason, source }
    }

    /// What a URI or a listener asks for is not in this build.
    #[allow(dead_code, reason = "everything may be in it")]
    pub(crate) fn not_built(transport: Transport) -> Self {
        let feature = match transport {
            Transport::Dtls => "dtls",
            Transport::Tls => "tls",
            Transport::Tcp | Transport::Udp => "tcp",
        };
        let reason =
            format!("{transport} is not in this build; it comes with the cargo feature {feature} of millpond-live");
        Self::refused(NotSent::NotBuilt, reason)
    }

    /// No answer came in the time that there was: every copy was sent, a response, a handshake or a deadline was waited for.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::GaveUp { .. }
                | Self::NoResponse { .. }
                | Self::NoSettings { .. }
                | Self::Deadline { .. }
                | Self::HandshakeTimedOut { .. }
        )
    }

    /// What is wrong, without the name of a [setting](Self::Setting): for who has another name for it.
    #[must_use]
    pub fn unnamed(&self) -> String {
        match self {
            Self::Setting { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    /// The network, or the peer's host, said that nobody can be reached there.
    #[must_use]
    pub const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Another address of the same host may do better, and nothing is done twice by asking there. What was sent may have been
    /// carried out although no answer came.
    pub(crate) const fn lets_another_address_try(&self, is_idempotent: bool) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Insecure { .. } | Self::HandshakeTimedOut { .. } => true,
            Self::GaveUp { .. } | Self::NoResponse { .. } => is_idempotent,
            _ => false,
        }
    }
}

/// The process, or the machine, has no file descriptor left.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    /// EMFILE and ENFILE, alike on every Unix that tokio runs on.
    const OUT_OF_FILES: [i32; 2] = [24, 23];
    cfg!(unix) && error.raw_os_error().is_some_and(|number| OUT_OF_FILES.contains(&number))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::Code;

    #[test]
    fn errors_tell_what_lies_beneath_and_what_kind_they_are() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let peer = "192.0.2.1:5683".parse().unwrap();
        let unreachable = Error::Unreachable { peer, reason: refused.to_string(), source: Cause::of(refused) };
        let source = unreachable.source().and_then(|source| source.downcast_ref::<Cause>()).unwrap();
        let source = source.get().downcast_ref::<io::Error>().map(io::Error::kind);
        assert_eq!(source, Some(io::ErrorKind::ConnectionRefused));
        assert!(unreachable.is_unreachable() && !unreachable.is_timeout());
        assert!(unreachable.lets_another_address_try(false));
        let gave_up = Error::GaveUp { peer, copies: 5, after: Duration::from_secs(93) };
        assert!(gave_up.is_timeout() && !gave_up.is_unreachable() && gave_up.source().is_none());
        assert!(gave_up.lets_another_address_try(true) && !gave_up.lets_another_address_try(false));
        let late = Error::Deadline { after: Duration::from_secs(1) };
        assert!(late.is_timeout() && !late.lets_another_address_try(true));
        let answer = Box::new(Response::new(Code::NOT_FOUND));
        assert!(Error::NotObserved { answer }.to_string().contains("4.04"));
    }
}
