//! What happens on the wire, told as it happens.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use millpond_coap::message::{Code, Kind, MessageId, Token};

use crate::Grade;

/// One thing that happened. The same is a `tracing` event at level TRACE with the target `millpond_live`. Displayed it
/// is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEvent {
    /// Since the client or server started.
    pub at: Duration,
    /// The peer.
    pub peer: SocketAddr,
    /// What happened.
    pub what: Happened,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// A datagram left.
    Sent {
        /// Its type.
        kind: Kind,
        /// Its code.
        code: Code,
        /// Its message ID.
        message_id: MessageId,
        /// Its token.
        token: Token,
        /// Its length in bytes of CoAP.
        bytes: usize,
        /// Which copy, 0 being the first.
        copy: u8,
        /// How long the controller waits after it.
        timer: Option<Duration>,
        /// Why so long: `initial`, `backed-off`, `slow`, `carried`, `blind`.
        reason: Option<&'static str>,
        /// Why it left: `exchange`, `reply`, `repeated reply`, `acknowledgement`, `reset`, `plain`.
        cause: &'static str,
    },
    /// A message came in that said something to an exchange of ours, or a request.
    Received {
        /// Its type.
        kind: Kind,
        /// Its code.
        code: Code,
        /// Its message ID.
        message_id: MessageId,
        /// Its token.
        token: Token,
        /// Its payload's length in bytes.
        payload: usize,
    },
    /// A confirmable message of ours was acknowledged without an answer in it.
    Acknowledged,
    /// An answer or acknowledgement told how long the path takes.
    RoundTrip {
        /// Since the first copy left.
        since_first: Duration,
        /// Since the last copy left.
        since_last: Duration,
        /// Copies that had left.
        copies: u8,
        /// How sure it is.
        grade: Grade,
        /// The timeout from which the next exchange starts.
        rto: Option<Duration>,
    },
    /// An exchange ended without an answer.
    Failed {
        /// Why: `gave up`, `reset`, `cancelled`, `no response`.
        why: &'static str,
    },
    /// A message came in that nothing waits for: the answer to a copy that was not needed, or one given up.
    Late {
        /// Its type.
        kind: Kind,
        /// Its code.
        code: Code,
        /// Its message ID.
        message_id: MessageId,
    },
    /// A datagram came in and was not processed.
    Ignored {
        /// Why.
        reason: &'static str,
    },
    /// The message IDs to this peer run out on one source port; another one goes on.
    MovedPort {
        /// Source ports in use now.
        sockets: usize,
    },
    /// The network said that the peer cannot be reached, or did not take a datagram.
    Complaint {
        /// What it said.
        reason: String,
    },
    /// A secure session with the peer stands: messages go under it from now on.
    Secured,
    /// There is no secure session with the peer, or none any more.
    Insecure {
        /// Why.
        reason: String,
    },
    /// The socket's buffer is full: sending goes on, and receiving, once it has room.
    Backlog {
        /// Datagrams that wait.
        datagrams: usize,
    },
}

/// Who is told besides the subscribers of `tracing`.
pub(crate) type Hook = Arc<dyn Fn(&TraceEvent) + Send + Sync>;

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, peer, what } = self;
        write!(f, "{:>10.3} s  {peer}  ", at.as_secs_f64())?;
        what.fmt(f)
    }
}

impl fmt::Display for Happened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: &Duration| time.as_secs_f64() * 1_000.0;
        match self {
            Self::Sent { kind, code, message_id, token, bytes, copy, timer, reason, cause } => {
                write!(f, "-> {kind} {code} id {} token {token} {bytes} bytes", message_id.0)?;
                match (cause, copy) {
                    (&"exchange", copy) => write!(f, ", copy {}", copy.saturating_add(1))?,
                    (cause, _) => write!(f, ", {cause}")?,
                }
                if let (Some(timer), Some(reason)) = (timer, reason) {
                    write!(f, ", timer {:.0} ms ({reason})", millis(timer))?;
                }
                Ok(())
            }
            Self::Received { kind, code, message_id, token, payload } => {
                write!(f, "<- {kind} {code} id {} token {token} {payload} bytes of payload", message_id.0)
            }
            Self::Acknowledged => f.write_str("<- ACK 0.00, the answer follows"),
            Self::RoundTrip { since_first, since_last, copies, grade, rto } => {
                write!(f, "   round trip {:.1} ms, {grade}", millis(since_first))?;
                if *copies > 1 {
                    write!(f, ", {:.1} ms since the last of {copies} copies", millis(since_last))?;
                }
                match rto {
                    Some(rto) => write!(f, ", RTO now {:.0} ms", millis(rto)),
                    None => Ok(()),
                }
            }
            Self::Failed { why } => write!(f, "   {why}"),
            Self::Late { kind, code, message_id } => write!(f, "<- {kind} {code} id {}, late", message_id.0),
            Self::Ignored { reason } => write!(f, "<- ignored: {reason}"),
            Self::MovedPort { sockets } => write!(f, "   message IDs run out: goes on from source port {sockets}"),
            Self::Complaint { reason } => write!(f, "   the network says: {reason}"),
            Self::Secured => f.write_str("   the secure session stands"),
            Self::Insecure { reason } => write!(f, "   no secure session: {reason}"),
            Self::Backlog { datagrams } => write!(f, "   the socket is full: {datagrams} datagrams wait"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_for_people() {
        let what = Happened::Sent {
            kind: Kind::Confirmable,
            code: Code::GET,
            message_id: MessageId(7),
            token: Token::EMPTY,
            bytes: 12,
            copy: 1,
            timer: Some(Duration::from_millis(3_200)),
            reason: Some("backed-off"),
            cause: "exchange",
        };
        let event = TraceEvent { at: Duration::from_millis(2_500), peer: "192.0.2.1:5683".parse().unwrap(), what };
        let line =
            "     2.500 s  192.0.2.1:5683  -> CON 0.01 id 7 token - 12 bytes, copy 2, timer 3200 ms (backed-off)";
        assert_eq!(event.to_string(), line);
    }
}
