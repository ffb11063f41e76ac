use alloc::borrow::Cow;

use millpond_control::Sample;

use super::{ClientRequestId, Gone, GroupId, ObserverId, Refusal, RequestFailure};
use crate::endpoint::{self, RequestId};
use crate::layer::MessageLayer;
use crate::message::{Code, Message, WriteError};
use crate::output::{Output, Transmit};
use crate::stream::StreamRefused;

/// What a stack wants next, by what carries its messages.
pub type StackOutput<'h, L> = Output<
    Transmit<'h, <L as MessageLayer>::Peer>,
    Event<'h, <L as MessageLayer>::Peer>,
    crate::Event<'h, <L as MessageLayer>::Peer>,
    <L as MessageLayer>::Closing,
>;

/// What the application learns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'h, A> {
    /// A whole request came. Answer it with [`answer`](super::CoapStack::answer).
    Request {
        /// From whom.
        from: A,
        /// By which to answer it.
        id: RequestId,
        /// Its last message, for code and options. The payload of that is at most a part of the body.
        message: Message<'h>,
        /// Its body.
        body: Cow<'h, [u8]>,
        /// It asks for every new representation. Answer it with
        /// [`accept_observer`](super::CoapStack::accept_observer) to grant that.
        wants_to_observe: bool,
        /// It came to a group. Its answer leaves after a while, or not at all: see
        /// [`Endpoint::receive_by_group`](crate::Endpoint::receive_by_group).
        by_group: bool,
        /// The security context by which it is protected (RFC 8613), by the ID that it has for who asks.
        context: Option<&'h [u8]>,
    },
    /// A request is answered with an error by the stack itself, for logs: there is nothing to do.
    Refused {
        /// From whom.
        from: A,
        /// The message.
        message: Message<'h>,
        /// What it is answered with, and why.
        why: Refusal,
        /// It came to a group, so that nothing leaves.
        by_group: bool,
    },
    /// A whole response, or a representation of what is observed.
    Answer {
        /// Of which request.
        request: ClientRequestId,
        /// By whom.
        from: A,
        /// Its last message, for code and options. The payload of that is at most a part of the body.
        message: Message<'h>,
        /// Its body.
        body: Cow<'h, [u8]>,
        /// Further ones may follow. Otherwise the request is over.
        goes_on: bool,
        /// What the last response said about the path, if anything.
        sample: Option<Sample>,
        /// Copies that had been sent of the last request; none of a notification.
        copies: u8,
    },
    /// A request is over without an answer, as its option No-Response (RFC 7967) wishes: it wants none, or none of those that it
    /// wants came in the time that there was.
    Unanswered {
        /// Which one.
        request: ClientRequestId,
        /// Whom it was for.
        to: A,
        /// It was acknowledged, so that the peer has it. Of what leaves non-confirmably, or over a stream, that is not known.
        is_acknowledged: bool,
    },
    /// A request is over without a further answer. Every request ends with this, unanswered, or with an answer that does not go on.
    Failed {
        /// Which one.
        request: ClientRequestId,
        /// Whom it was for.
        to: A,
        /// Why.
        why: RequestFailure,
        /// Copies that had been sent of the message that failed, if it was a message; over a stream 0 says that nothing of it has left.
        copies: u8,
    },
    /// A member of a group has answered, and this is its whole answer.
    GroupAnswer {
        /// Which request.
        group: GroupId,
        /// Who answered.
        from: A,
        /// The last message of the answer, for code and options. The payload of that is at most a part of the body.
        message: Message<'h>,
        /// Its body.
        body: Cow<'h, [u8]>,
    },
    /// A member of a group has answered, and the rest of its answer could not be fetched.
    GroupAnswerLost {
        /// Which request.
        group: GroupId,
        /// Who answered.
        from: A,
        /// Why.
        why: RequestFailure,
    },
    /// All answers of a group are told.
    GroupOver {
        /// Which request.
        group: GroupId,
    },
    /// An observer is no more.
    ObserverGone {
        /// Which one.
        observer: ObserverId,
        /// Who it was.
        peer: A,
        /// Why.
        why: Gone,
    },
}

/// Why the stack does not do what it was asked for. Nothing was sent, and nothing waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The endpoint refused.
    #[error(transparent)]
    Endpoint(#[from] endpoint::Refused),
    /// The connection refused.
    #[error(transparent)]
    Connection(#[from] StreamRefused),
    /// The options cannot be written.
    #[error(transparent)]
    Options(#[from] WriteError),
    /// An option that the stack sets by itself.
    #[error("option {number} is the stack's own: it follows from the other fields")]
    OwnOption {
        /// Its number.
        number: u16,
    },
    /// Only GET and FETCH can observe.
    #[error("{0} cannot observe: only GET and FETCH")]
    NotObservable(Code),
    /// An observation whose body does not fit one message.
    #[error("the body of an observation must fit one block; it has {length} bytes")]
    LongObservation {
        /// Bytes of the body.
        length: usize,
    },
    /// Something of which each step needs a response, with the option No-Response.
    #[error("an observation, and a body of several blocks, need their responses; leave No-Response out, or send less")]
    NeedsResponses,
    /// A request to a group whose body does not fit one message.
    #[error("the body of a request to a group must fit one block; it has {length} bytes")]
    LongGroupRequest {
        /// Bytes of the body.
        length: usize,
    },
    /// As many requests are under way as may.
    #[error("{limit} requests are under way already (limits.client_requests)")]
    TooManyRequests {
        /// How many may.
        limit: u32,
    },
    /// The stack holds as many bytes as it may.
    #[error("the stack may not hold more than {limit} bytes (limits.bytes)")]
    OutOfBytes {
        /// How many it may hold.
        limit: usize,
    },
    /// An answer to a request in bursts that is longer than the stack may hold.
    #[error("an answer of {length} bytes to a request in bursts, but at most {limit} are kept (limits.bodies)")]
    LongAnswer {
        /// Bytes of its body.
        length: usize,
        /// How many are kept.
        limit: usize,
    },
    /// Over a stream: the other side takes neither messages so long nor blocks. The request can still be answered.
    #[error("the other side takes messages of {limit} bytes and no blocks")]
    TooLongForPeer {
        /// Its Max-Message-Size.
        limit: usize,
    },
    /// The observer is gone.
    #[error("no such observer: it is gone")]
    UnknownObserver,
}
