use millpond_control::{Sample, Wait};

use super::{ExchangeId, RequestId};
use crate::message::{Message, ParseError};
use crate::output::Output;
use crate::protection::ResponseFault;

/// What an endpoint wants next.
pub type EndpointOutput<'e, A> = Output<Transmit<'e, A>, Event<'e, A>>;

/// A datagram that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'e, A> {
    /// To whom.
    pub to: A,
    /// One whole message.
    pub bytes: &'e [u8],
    /// Why.
    pub cause: Cause,
}

/// Why a datagram leaves.
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
    /// A ping of a server that [withholds copies](super::Duplicates::Calm), sent once: who rejects it is where it says.
    Ping,
    /// A non-confirmable request.
    NonConfirmableRequest,
    /// A non-confirmable message that [`send_additional`](super::Endpoint::send_additional) was asked for, a request to a
    /// group, or a non-confirmable one that wants no response (RFC 7967), which is over with that.
    NonConfirmable {
        /// Which one.
        id: ExchangeId,
    },
}

/// What the application learns.
///
/// Every exchange that [`request`](super::Endpoint::request) or [`subscribe`](super::Endpoint::subscribe) began ends with
/// one [`Response`](Self::Response) or one [`Failed`](Self::Failed); if it wants no response (RFC 7967), with one
/// [`Delivered`](Self::Delivered) or, unless it is confirmable, with its leaving instead of a response; a ping with one [`Pong`](Self::Pong) or
/// [`Failed`](Self::Failed); every confirmable separate or additional response with one [`Delivered`](Self::Delivered) or
/// one [`Undelivered`](Self::Undelivered).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e, A> {
    /// A request came in. Answer it with [`respond`](super::Endpoint::respond).
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
        /// The exchange that [`subscribe`](super::Endpoint::subscribe), [`claim`](super::Endpoint::claim) or
        /// [`request_group`](super::Endpoint::request_group) named.
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
        /// The request that it answered; not known of what [`send_additional`](super::Endpoint::send_additional) sent, and none of a
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
        /// The request that it answered; not known of what [`send_additional`](super::Endpoint::send_additional) sent.
        request: Option<RequestId>,
        /// Whom it was for.
        to: A,
        /// Why.
        why: Failure,
    },
    /// A non-confirmable message of [`send_additional`](super::Endpoint::send_additional), or a non-confirmable request that wants no
    /// response, was answered with a reset.
    Rejected {
        /// Which one.
        exchange: ExchangeId,
        /// By whom.
        from: A,
    },
    /// A [`ping`](super::Endpoint::ping) was answered.
    Pong {
        /// Which exchange.
        exchange: ExchangeId,
        /// By whom.
        from: A,
        /// What the answer said about the path.
        sample: Sample,
    },
    /// A response came that nothing was asked for, where these are [taken](super::Config::takes_unasked).
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
}

impl<'e, A> Event<'e, A> {
    /// The same with another message, if it has one.
    pub(super) fn with_message(self, message: Message<'e>) -> Self {
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
    /// It was sent to a group and is no non-confirmable request.
    NotForGroups,
    /// A request, and there is no server in this build (the feature `server`). A confirmable one is answered with a reset.
    NotServed,
    /// An additional response, or the answer of a member of a group, with a critical option that is not understood, is too
    /// short or too long, or was repeated (RFC 7252 §5.4.1).
    BadOption,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every output is moved a few times, and most are datagrams. What is rare and large belongs in a box.
    #[test]
    fn an_output_is_no_larger_than_a_response_asks_for() {
        let of_a_response = size_of::<Message<'_>>() + size_of::<(ExchangeId, u32, Option<Sample>, u8)>();
        assert_eq!(size_of::<Event<'_, u32>>(), of_a_response.next_multiple_of(8));
        assert_eq!(size_of::<EndpointOutput<'_, u32>>(), size_of::<Event<'_, u32>>());
        assert_eq!((size_of::<Event<'_, u32>>(), size_of::<Transmit<'_, u32>>()), (88, 40));
        assert_eq!(size_of::<crate::endpoint::queue::Entry<u32>>(), 56);
    }
}
