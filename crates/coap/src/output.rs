//! What a machine that is driven wants next.

use core::convert::Infallible;

use millpond_control::Instant;

/// What an [endpoint](crate::Endpoint), a [connection](crate::stream::Connection) or a [stack](crate::transfer::CoapStack) above
/// either wants next. What it sends is a `T`, what the application learns an `E`, what is merely traced an `R`, and why it
/// ends a `C`.
#[derive(Clone, Copy, Debug)]
pub enum Output<T, E, R = Infallible, C = Infallible> {
    /// A datagram leaves, or bytes of the stream.
    Transmit(T),
    /// The application learns something.
    Event(E),
    /// What carries the messages of a stack told this, for traces and figures: samples, single blocks, what came late and what
    /// was ignored; of a stream its settings, pongs and what else is about itself. Whatever matters to asks and answers
    /// follows as an event.
    Trace(R),
    /// A connection has ended; it is the last output but [`Idle`](Self::Idle). Bytes handed out before are to be written first.
    Close(C),
    /// Nothing until this point, which lies after `now`, unless there is input. What for is told for traces.
    Sleep(Instant, SleepReason),
    /// Nothing until there is input.
    Idle,
}

/// The same inside: an output by where it stands, whether it leaves or is told.
pub(crate) type Step<E, C = Infallible> = Output<Infallible, E, Infallible, C>;

/// What is slept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SleepReason {
    /// The next copy of a confirmable message, or giving it up.
    Retransmission,
    /// Giving up a message whose last copy has waited as long as a copy does: a request ([`Event::Overdue`](crate::Event::Overdue)), or
    /// a response that may leave fewer times than others.
    Overdue,
    /// Giving up on a response.
    Response,
    /// The controller lets the next message leave.
    Admission,
    /// A message ID may be used again.
    MessageId,
    /// A token may be used again by a request that wants a response.
    Token,
    /// PROBING_RATE lets the next message leave to a peer that has never answered, or the pause is over after a request that does
    /// not want all responses (RFC 7967).
    Probing,
    /// A request must be acknowledged, answered or not.
    Acknowledgement,
    /// The answer to a request that came to a group may leave.
    Leisure,
    /// A connection waits for a pong, or for an end in order.
    Connection,
    /// The deadline of a request, or renewing a registration.
    Request,
    /// A notification may leave.
    Notification,
    /// Something that is kept for later blocks is dropped.
    Expiry,
    /// The answers of a group have had their time.
    Group,
    /// A body in bursts goes on, or waits no longer.
    Burst,
}
