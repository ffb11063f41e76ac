//! What a machine that is driven wants next.

use core::convert::Infallible;

use millpond_control::{Instant, Sample, Wait};

use crate::endpoint::{ExchangeId, RequestId};
use crate::message::{Message, ParseError, Shape, Token};
use crate::parts;
use crate::protection::ResponseFault;
use crate::stream::Signal;

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

/// What an [endpoint](crate::Endpoint) wants next.
pub type EndpointOutput<'e, A> = Output<Transmit<'e, A>, Event<'e, A>>;

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

/// A datagram, or bytes of a stream, that leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'e, A> {
    /// To whom.
    pub to: A,
    /// One whole message, or what of a stream is next.
    pub bytes: &'e [u8],
    /// Why.
    pub cause: Cause,
}

/// Why it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A copy of a confirmable message: a request, a separate or additional response, a ping.
    Exchange {
        /// Which exchange.
        id: ExchangeId,
        /// Which copy, 0 being the first.
        copy: u8,
        /// How long the controller waits after this copy, and why so long.
        wait: Wait,
    },
    /// A response in an acknowledgement, or a non-confirmable response.
    Reply {
        /// The request that it answers.
        request: RequestId,
        /// A stored reply sent again because the request came again.
        repeated: bool,
    },
    /// An empty acknowledgement.
    Ack,
    /// A reset.
    Reset,
    /// A ping of a server that [withholds copies](crate::Duplicates::Calm), sent once: who rejects it is where it says.
    Ping,
    /// A non-confirmable request.
    NonConfirmableRequest,
    /// Bytes of a stream, of any number of messages.
    Stream,
    /// A non-confirmable message that [`send_additional`](crate::Endpoint::send_additional) was asked for, a request to a
    /// group, or a non-confirmable one that wants no response (RFC 7967), which is over with that.
    NonConfirmable {
        /// Which one.
        id: ExchangeId,
    },
}

/// What a program that drives an [endpoint](crate::Endpoint) or a [connection](crate::stream::Connection) learns.
///
/// Every exchange that [`request`](crate::Endpoint::request) or [`subscribe`](crate::Endpoint::subscribe) began ends with
/// one [`Response`](Self::Response) or one [`Failed`](Self::Failed); if it wants no response (RFC 7967), with one
/// [`Delivered`](Self::Delivered) or, unless it is confirmable, with its leaving instead of a response; a ping with one [`Pong`](Self::Pong) or
/// [`Failed`](Self::Failed); every confirmable separate or additional response with one [`Delivered`](Self::Delivered) or
/// one [`Undelivered`](Self::Undelivered).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e, A> {
    /// A request came in. Answer it with [`respond`](crate::Endpoint::respond).
    Request {
        /// From whom.
        from: A,
        /// By which to answer it.
        id: RequestId,
        /// The request.
        message: Message<'e>,
    },
    /// A request was answered. The exchange is over.
    Response {
        /// Which exchange.
        exchange: ExchangeId,
        /// By whom.
        from: A,
        /// The response.
        message: Message<'e>,
        /// What the response said about the path. `None` if the acknowledgement had told that already, or if the
        /// request was non-confirmable.
        sample: Option<Sample>,
        /// Copies of the request that had been sent.
        copies: u8,
    },
    /// An additional response came on the token of a subscription or claim, which goes on, or an answer to a request to a
    /// group. Copies of it are not told.
    AdditionalResponse {
        /// The exchange that [`subscribe`](crate::Endpoint::subscribe), [`claim`](crate::Endpoint::claim) or
        /// [`request_group`](crate::Endpoint::request_group) named.
        exchange: ExchangeId,
        /// From whom.
        from: A,
        /// The response.
        message: Message<'e>,
    },
    /// A request was acknowledged; its response is awaited.
    Acknowledged {
        /// Which exchange.
        exchange: ExchangeId,
        /// By whom.
        from: A,
        /// What the acknowledgement said about the path.
        sample: Sample,
    },
    /// The wait after the last copy of a request is over. An answer is awaited for some time yet, because the peer's controller
    /// [wishes](millpond_control::Wishes::last_wait) that and nothing else waits to leave for the peer. The next message that wants
    /// its place ends the exchange as [`Failed`](Self::Failed); an application that holds requests back itself may make the next one now.
    Overdue {
        /// Which exchange.
        exchange: ExchangeId,
        /// Whom it was for.
        to: A,
    },
    /// A request ended without a response. The exchange is over.
    Failed {
        /// Which exchange.
        exchange: ExchangeId,
        /// Whom it was for.
        to: A,
        /// Why.
        why: Failure,
        /// Copies of it that had been sent.
        copies: u8,
    },
    /// A confirmable separate or additional response was acknowledged, or a confirmable request that wants no response (RFC 7967).
    Delivered {
        /// Which exchange.
        exchange: ExchangeId,
        /// The request that it answered; not known of what [`send_additional`](crate::Endpoint::send_additional) sent, and none of a
        /// request.
        request: Option<RequestId>,
        /// Whom it was for.
        to: A,
        /// What the acknowledgement said about the path.
        sample: Sample,
    },
    /// A confirmable separate or additional response was not acknowledged, or a message was cancelled before it left.
    Undelivered {
        /// Which exchange.
        exchange: ExchangeId,
        /// The request that it answered; not known of what [`send_additional`](crate::Endpoint::send_additional) sent.
        request: Option<RequestId>,
        /// Whom it was for.
        to: A,
        /// Why.
        why: Failure,
    },
    /// A non-confirmable message of [`send_additional`](crate::Endpoint::send_additional), or a non-confirmable request that wants no
    /// response, was answered with a reset.
    Rejected {
        /// Which one.
        exchange: ExchangeId,
        /// By whom.
        from: A,
    },
    /// A [`ping`](crate::Endpoint::ping) was answered.
    Pong {
        /// Which exchange.
        exchange: ExchangeId,
        /// By whom.
        from: A,
        /// What the answer said about the path.
        sample: Sample,
    },
    /// A response came that nothing was asked for, where these are [taken](crate::Config::takes_unasked).
    Unasked {
        /// From whom.
        from: A,
        /// The response.
        message: Message<'e>,
    },
    /// A response, acknowledgement or reset came in that nothing waits for (any more).
    Late {
        /// From whom.
        from: A,
        /// The message.
        message: Message<'e>,
    },
    /// A datagram came in and was not processed. A reset may have gone back.
    Ignored {
        /// From whom.
        from: A,
        /// Why.
        why: Ignored,
    },
    /// Over a stream: a request of ours that wants no response (RFC 7967) is among the bytes handed out before, and is over with
    /// that.
    Left {
        /// The request.
        exchange: ExchangeId,
    },
    /// Over a stream: the peer no longer observes. It asked so, or the connection ends.
    Unobserved {
        /// Its request.
        request: RequestId,
    },
    /// Over a stream: what the peer said about the connection itself. What it does for that by itself is done.
    Signal(Signal<'e>),
    /// A [ping](crate::stream::Connection::ping) was not answered in time: the connection may be dead. Nothing else follows from it.
    PongMissing,
    /// Over a stream: a request that was refused because its token was that of one which wanted no response (RFC 7967) may have
    /// it now.
    TokenFree,
}

impl<'e, A> Event<'e, A> {
    /// The same with another message, if it has one.
    pub(crate) fn with_message(self, message: Message<'e>) -> Self {
        match self {
            Self::Request { from, id, .. } => Self::Request { from, id, message },
            Self::Response { exchange, from, sample, copies, .. } => {
                Self::Response { exchange, from, message, sample, copies }
            }
            Self::AdditionalResponse { exchange, from, .. } => Self::AdditionalResponse { exchange, from, message },
            other => other,
        }
    }
}

/// Why a message ended without what it was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// MAX_RETRANSMIT copies, and no acknowledgement after the last one's wait; or the controller abandoned it; or it was
    /// overdue and something else wanted to leave.
    GaveUp,
    /// The peer rejected it with a reset.
    Reset,
    /// The application cancelled it.
    Cancelled,
    /// It was acknowledged, or non-confirmable, and no response came.
    NoResponse,
    /// The response has a critical option that is not understood, is too short or too long, or was repeated (RFC 7252
    /// §5.4.1). If it could be, it was rejected with a reset.
    BadOption,
    /// The response is longer than datagrams may be here.
    LongResponse,
    /// As [`GaveUp`](Self::GaveUp), and what came had the message ID of the request and another token, or none.
    WrongToken,
    /// The connection ended (RFC 8323); an endpoint has none.
    ConnectionClosed,
    /// The response is not protected as it has to be (RFC 8613). One that is [not new](ResponseFault::NotNew) answers the renewal of a
    /// subscription, which a notification has overtaken: it goes on.
    Protection(ResponseFault),
}

/// Why a datagram was not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// It is no message of RFC 7252.
    Malformed(ParseError),
    /// It is longer than the limit.
    TooLong {
        /// It is a request, which is answered with 4.13 and Size1: the bytes of the longest datagram that is taken.
        is_answered: bool,
    },
    /// A response in an acknowledgement whose message ID fits and whose token does not (RFC 7252 §5.3.2), or a response
    /// to a response.
    Unmatched,
    /// An empty confirmable message ("ping", RFC 7252 §4.3), answered with the reset that it asks for.
    Ping,
    /// The endpoint holds as much as it may.
    NoRoom,
    /// A request whose token is longer than what is taken, answered with 4.00, or for which there is no room, answered with 5.03
    /// (RFC 8974 §2.2.2).
    LongToken {
        /// There is no room for it.
        is_for_want_of_room: bool,
    },
    /// It was sent to a group and is no non-confirmable request, or one that is protected for one receiver.
    NotForGroups,
    /// A request, and there is no server in this build (the feature `server`). A confirmable one is answered with a reset.
    NotServed,
    /// An additional response, or the answer of a member of a group, with a critical option that is not understood, is too
    /// short or too long, or was repeated (RFC 7252 §5.4.1).
    BadOption,
}

/// What an output is, inside. All have bytes but those that tell the end of something, `Acknowledged`, `Overdue`, `Ignored` and what is
/// of streams alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OutputKind {
    Copy {
        id: ExchangeId,
        copy: u8,
        wait: Wait,
    },
    Reply {
        request: RequestId,
        repeated: bool,
    },
    Ack,
    Reset,
    Ping,
    NonConfirmableRequest,
    Request {
        id: RequestId,
    },
    Response {
        exchange: ExchangeId,
        sample: Option<Sample>,
        copies: u8,
    },
    Late,
    Unasked,
    AdditionalResponse {
        exchange: ExchangeId,
    },
    NonConfirmable {
        exchange: ExchangeId,
    },
    Acknowledged {
        exchange: ExchangeId,
        sample: Sample,
    },
    Overdue {
        exchange: ExchangeId,
    },
    Failed {
        exchange: ExchangeId,
        why: Failure,
        copies: u8,
    },
    Delivered {
        exchange: ExchangeId,
        request: Option<RequestId>,
        sample: Sample,
    },
    Undelivered {
        exchange: ExchangeId,
        request: Option<RequestId>,
        why: Failure,
    },
    Rejected {
        exchange: ExchangeId,
    },
    Pong {
        exchange: ExchangeId,
        sample: Sample,
    },
    Ignored {
        why: Ignored,
    },
    /// Bytes of a stream.
    Bytes,
    Left {
        exchange: ExchangeId,
    },
    /// Its peer may observe by another request with the same token.
    Unobserved {
        request: RequestId,
        token: Token,
    },
    /// The signal with the peer's settings, and any other.
    Settings,
    Signal,
    PongMissing,
    TokenFree,
}

/// An output without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<A> {
    /// To whom or from whom.
    pub(crate) peer: A,
    pub(crate) kind: OutputKind,
    /// Where its bytes are in a [queue](crate::endpoint::queue::Queue), and the shape of a message that came in.
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) shape: Shape,
}

impl<A: Copy> Entry<A> {
    /// An output as it is told, with its bytes and with the message that it has.
    #[inline(always)]
    pub(crate) fn shown<'e>(
        &self,
        bytes: &'e [u8],
        message: impl FnOnce() -> Option<Message<'e>>,
    ) -> Output<Transmit<'e, A>, Event<'e, A>> {
        let peer = self.peer;
        let transmit = |cause| Output::Transmit(Transmit { to: peer, bytes, cause });
        match self.kind {
            // What no part of this build can have queued.
            OutputKind::Request { .. } | OutputKind::Reply { .. } | OutputKind::Ping if !parts::SERVER => Output::Idle,
            OutputKind::AdditionalResponse { .. } if !parts::ADDITIONAL_COME => Output::Idle,
            OutputKind::NonConfirmableRequest | OutputKind::NonConfirmable { .. } | OutputKind::Rejected { .. }
                if !parts::NON_MESSAGES =>
            {
                Output::Idle
            }
            OutputKind::Delivered { .. } | OutputKind::Undelivered { .. } if !parts::ANSWERS && !parts::NO_RESPONSE => {
                Output::Idle
            }
            OutputKind::Copy { id, copy, wait } => transmit(Cause::Exchange { id, copy, wait }),
            OutputKind::Reply { request, repeated } => transmit(Cause::Reply { request, repeated }),
            OutputKind::Ack => transmit(Cause::Ack),
            OutputKind::Reset => transmit(Cause::Reset),
            OutputKind::Ping => transmit(Cause::Ping),
            OutputKind::NonConfirmableRequest => transmit(Cause::NonConfirmableRequest),
            OutputKind::Request { id } => told(message, |message| Event::Request { from: peer, id, message }),
            OutputKind::Response { exchange, sample, copies } => {
                told(message, |message| Event::Response { exchange, from: peer, message, sample, copies })
            }
            OutputKind::Unasked => told(message, |message| Event::Unasked { from: peer, message }),
            OutputKind::Late => told(message, |message| Event::Late { from: peer, message }),
            OutputKind::Acknowledged { exchange, sample } => {
                Output::Event(Event::Acknowledged { exchange, from: peer, sample })
            }
            OutputKind::AdditionalResponse { exchange } => {
                told(message, |message| Event::AdditionalResponse { exchange, from: peer, message })
            }
            OutputKind::NonConfirmable { exchange } => transmit(Cause::NonConfirmable { id: exchange }),
            OutputKind::Overdue { exchange } => Output::Event(Event::Overdue { exchange, to: peer }),
            OutputKind::Failed { exchange, why, copies } => {
                Output::Event(Event::Failed { exchange, to: peer, why, copies })
            }
            OutputKind::Delivered { exchange, request, sample } => {
                Output::Event(Event::Delivered { exchange, request, to: peer, sample })
            }
            OutputKind::Undelivered { exchange, request, why } => {
                Output::Event(Event::Undelivered { exchange, request, to: peer, why })
            }
            OutputKind::Rejected { exchange } => Output::Event(Event::Rejected { exchange, from: peer }),
            OutputKind::Pong { exchange, sample } => Output::Event(Event::Pong { exchange, from: peer, sample }),
            OutputKind::Ignored { why } => Output::Event(Event::Ignored { from: peer, why }),
            OutputKind::Bytes => transmit(Cause::Stream),
            OutputKind::Left { exchange } => Output::Event(Event::Left { exchange }),
            OutputKind::Unobserved { request, .. } => Output::Event(Event::Unobserved { request }),
            OutputKind::PongMissing => Output::Event(Event::PongMissing),
            OutputKind::TokenFree => Output::Event(Event::TokenFree),
            // Its connection reads it.
            OutputKind::Settings | OutputKind::Signal => Output::Idle,
        }
    }
}

/// An event with a message.
#[inline]
fn told<'e, A>(
    message: impl FnOnce() -> Option<Message<'e>>,
    event: impl FnOnce(Message<'e>) -> Event<'e, A>,
) -> Output<Transmit<'e, A>, Event<'e, A>> {
    message().map_or(Output::Idle, |message| Output::Event(event(message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every output is moved a few times, and most are datagrams. What is rare and large belongs in a box.
    #[test]
    fn an_output_is_no_larger_than_a_response_asks_for() {
        let of_a_response = size_of::<Message<'_>>() + size_of::<(ExchangeId, u32, Option<Sample>, u8)>();
        assert_eq!(size_of::<Event<'_, u32>>(), of_a_response.next_multiple_of(8));
        assert_eq!(size_of::<Output<Transmit<'_, u32>, Event<'_, u32>>>(), size_of::<Event<'_, u32>>());
        assert_eq!((size_of::<Event<'_, u32>>(), size_of::<Transmit<'_, u32>>()), (88, 40));
        assert_eq!(size_of::<Entry<u32>>(), 56);
    }
}
