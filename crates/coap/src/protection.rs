//! What stands between a stack and a layer all of whose messages are protected: before they are handed to the layer, which
//! retransmits the bytes that it was given, and after it has taken them in.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use millpond_control::Instant;

#[cfg(feature = "oscore")]
use crate::message::{Kind, MessageId, Writer};
use crate::{
    ExchangeId, Outgoing, RequestId,
    block::Block,
    layer::MessageLayer,
    message::{Code, Message, Token, WriteError, number},
    output::{Entry, OutputKind},
    parts,
    quota::Source,
    transfer::{CoapStack, RequestFailure},
};

/// What is known of the messages of one layer that are under way, and how to protect them. `P` is a peer.
pub trait Protection<P>: Send + Sync {
    /// The same for another layer, which has sent nothing yet.
    fn sibling(&self) -> Box<dyn Protection<P>>;

    /// Whether all messages are protected. Else others go on as they are.
    fn is_for_all(&self) -> bool;

    /// A request of ours, protected; `None` if it is to leave as it is. To be [named](Self::sent) once the layer has taken it.
    fn request(&mut self, request: &Outgoing<'_>) -> Result<Option<Vec<u8>>, ProtectError>;

    /// The request that was protected last has this name, and renews the observation of that one.
    fn sent(&mut self, exchange: ExchangeId, renews: Option<ExchangeId>);

    /// Whether a request of ours is protected, and its response awaited.
    fn has_sent(&self, exchange: ExchangeId) -> bool;

    /// A request of ours as it left, without the payload of a POST: for later blocks of its response.
    fn written(&self, exchange: ExchangeId) -> Option<Vec<u8>>;

    /// The response to the first of these is awaited by the name of the second.
    fn rename(&mut self, exchange: ExchangeId, to: ExchangeId);

    /// No answer to a request of ours is taken any more.
    fn forget(&mut self, exchange: ExchangeId);

    /// The answer to a request, protected; `None` if that is not known, so that it was not protected.
    fn answer(&mut self, to: RequestId, answer: &Outgoing<'_>) -> Option<Result<Vec<u8>, ProtectError>>;

    /// A request came in blocks, or its answer is asked for in blocks: of that this one leaves.
    fn cut(&mut self, to: RequestId, cut: Cut<P>);

    /// Whether one of this peer with this key has still to be answered.
    fn is_to_be_cut(&self, peer: P, key: u64) -> bool;

    /// The answer of which a block was cut last, whole.
    fn take_cut(&mut self) -> Option<(Cut<P>, Vec<u8>)>;

    /// A request is over. If its answer says that it observes, it is kept until its [observer](Self::observes) is.
    fn answered(&mut self, to: RequestId, observes: bool);

    /// A peer observes by the request that was answered last, or observes no more.
    fn observes(&mut self, observer: Observer<P>, begins: bool);

    /// What is to be kept of the registration of an observer; `None` if its context ends with this process.
    #[cfg(all(feature = "server", feature = "observe"))]
    fn registration(&mut self, observer: Observer<P>) -> Option<Vec<u8>>;

    /// As if the request that was answered last were one of which this was kept. False if its context is not there.
    #[cfg(all(feature = "server", feature = "observe"))]
    fn recall(&mut self, registration: &[u8]) -> bool;

    /// A notification, protected; `None` if it is to leave as it is.
    fn notification(&mut self, observer: Observer<P>, message: &Outgoing<'_>) -> Option<Result<Vec<u8>, ProtectError>>;

    /// Whether a request that is protected or asks for protection is to be [taken](Self::take_request), and not for others.
    fn takes(&self, request: &Message<'_>) -> bool;

    /// The context by which a request is protected that was [taken](Self::take_request), by the ID that it has for who asks.
    fn context_of(&self, request: RequestId) -> Option<&[u8]>;

    /// Takes the protection off a request, if it is not for others. Else with what to answer it; with nothing if it is not protected, so
    /// that it may ask to [establish](Self::establish) a context.
    fn take_request(&mut self, id: RequestId, from: Observer<P>, request: &Message<'_>) -> Result<(), Option<Vec<u8>>>;

    /// What to answer a request that is not protected.
    fn establish(&mut self, request: &Message<'_>, from: Source) -> Vec<u8>;

    /// Takes the protection off a response to a request of ours.
    fn take_response(&mut self, exchange: ExchangeId, response: &Message<'_>) -> Result<(), ResponseFault>;

    /// The message that came last, as its sender wrote it.
    fn plain(&self) -> Option<Message<'_>>;

    /// Another one comes.
    fn next(&mut self);

    /// Bytes held.
    fn memory(&self) -> usize;
}

/// Says no more, so that firmware need not have what it takes to print all of it.
impl<P> fmt::Debug for dyn Protection<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protection")
    }
}

/// How a protected answer leaves to who has cut the request, or asks for a block of the answer, without being able to read them: a proxy
/// (RFC 8613 §4.1.3.4.2).
#[derive(Clone, Copy, Debug)]
pub struct Cut<P> {
    /// From whom it came.
    pub(crate) peer: P,
    /// Of the request as it came, and of its payload if that is part of what is asked for: by these later blocks are.
    pub(crate) key: u64,
    pub(crate) asked: u64,
    pub(crate) block1: Option<Block>,
    pub(crate) block2: Option<Block>,
}

/// The longest protected message that is put together from blocks (MAX_UNFRAGMENTED_SIZE of RFC 8613 §4.1.3.4.2), payload alone: what is longer
/// nobody could have protected in one message.
pub(crate) const MAX_UNFRAGMENTED: usize = crate::message::MAX_DATAGRAM - 300;

/// Who observes something, or asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observer<P> {
    pub(crate) peer: P,
    pub(crate) token: Token,
    /// Of both, keyed.
    pub(crate) hash: u64,
}

/// What a message that came in is to a stack.
#[derive(Debug)]
pub enum Taken {
    /// To be looked at.
    Message,
    /// Nothing.
    Nothing,
    /// A request that is refused, by this.
    Refused(RequestId, Vec<u8>),
    /// A request that is not protected.
    NotProtected(RequestId),
    /// The answer to a renewal that a notification has overtaken.
    Overtaken(ExchangeId),
    /// The response to this request, after so many copies of it, which must not be looked at.
    Fault(ExchangeId, ResponseFault, u8),
}

impl Taken {
    /// What came in, once its protection is off.
    pub(crate) fn of<P>(
        protection: &mut dyn Protection<P>,
        kind: &OutputKind,
        from: Observer<P>,
        message: &Message<'_>,
    ) -> Self {
        match *kind {
            OutputKind::Request { id } if parts::SERVER => match protection.take_request(id, from, message) {
                Ok(()) => Self::Message,
                Err(answer) => answer.map_or(Self::NotProtected(id), |answer| Self::Refused(id, answer)),
            },
            OutputKind::Response { exchange, copies, .. } => match protection.take_response(exchange, message) {
                Ok(()) => Self::Message,
                Err(fault) => Self::bad_answer(exchange, fault, copies),
            },
            OutputKind::AdditionalResponse { exchange } if parts::ADDITIONAL_COME => {
                match protection.take_response(exchange, message) {
                    Ok(()) => Self::Message,
                    Err(_) => Self::Nothing,
                }
            }
            _ => Self::Message,
        }
    }

    /// What the first response to a request is, if it is not right. Nothing else to a request is newer but what came to its
    /// predecessor.
    const fn bad_answer(exchange: ExchangeId, fault: ResponseFault, copies: u8) -> Self {
        match fault {
            ResponseFault::NotNew => Self::Overtaken(exchange),
            fault => Self::Fault(exchange, fault, copies),
        }
    }

    /// Whether the stack is to look at the message. If not, it learns what it has to.
    pub(crate) fn goes_on<L: MessageLayer>(
        self,
        now: Instant,
        stack: &mut CoapStack<L>,
        entry: &Entry<L::Peer>,
    ) -> bool {
        match self {
            Self::Message => return true,
            Self::Nothing => {}
            Self::Refused(id, answer) => stack.respond_as_written(now, id, &answer),
            Self::NotProtected(id) => stack.establish(now, id, entry),
            Self::Overtaken(exchange) => stack.renewal_was_overtaken(now, exchange),
            Self::Fault(exchange, fault, copies) => {
                stack.request_failed(now, exchange, RequestFailure::Protection(fault), copies);
            }
        }
        false
    }
}

/// Why a message could not be protected (RFC 8613).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectError {
    /// All 2^40 sequence numbers are used.
    #[error("all sequence numbers of the security context are used: make a new one")]
    Exhausted,
    /// Those below the stored bound are used.
    #[error("the sequence numbers of the context are used up to the stored bound: store the next one")]
    NotStored,
    /// It answers a request that came under keys which were replaced since (RFC 8613 Appendix B.2).
    #[error("the keys of the request that is answered were replaced since")]
    Replaced,
    /// The context that was chosen for it is there no more.
    #[error("the security context of the request was replaced: send it anew")]
    Gone,
    /// It is to be sent by an endpoint that sends nothing in the clear.
    #[error("the message is not protected, and all of this endpoint have to be")]
    Plain,
    /// It has an OSCORE option (RFC 8613 §4.1.3.7).
    #[error("the message is protected already")]
    Nested,
    /// It would show path and query in the open (RFC 8613 §4.1.3.3).
    #[error("Proxy-Uri cannot be protected: give Proxy-Scheme, Uri-Host, Uri-Port, Uri-Path and Uri-Query instead")]
    ProxyUri,
    /// A response where a request belongs, or the other way round.
    #[error("{0} does not belong here")]
    UnsuitedCode(Code),
    /// It would be too long.
    #[error(transparent)]
    Message(#[from] WriteError),
}

/// Why a response must not be processed (RFC 8613 §8.4). The request stays open: an authentic one may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseFault {
    /// It has no OSCORE option. With an error's code it may be the server's word on the protected request, such as 4.01 for a
    /// context that it does not know; anybody may have sent it.
    #[error("the response, {0}, is not protected: perhaps the server does not know the security context")]
    NotProtected(Code),
    /// The server says, unprotected, that it has received this sequence number before (§7.4).
    #[error(
        "the server says that it has received this sequence number before: if what is stored of those that were used is an older \
         copy, make a new pair of contexts"
    )]
    SaidReplayed,
    /// The option, or what was encrypted, cannot be read, or there is no payload.
    #[error("the protected response is malformed")]
    Malformed,
    /// It names another context than that of the request.
    #[error("the response is of another security context")]
    OtherContext,
    /// It was changed on its way, answers another request, or was protected with another key.
    #[error("the response is not authentic")]
    DecryptionFailed,
    /// The request was answered before, or the notification is not newer than the one before (§7.4.1).
    #[error("the response was received before, or is older than the one before")]
    NotNew,
    /// A notification, and the request was no registration (§4.1.3.5.2).
    #[error("a notification for a request that does not observe")]
    UnexpectedNotification,
    /// What was encrypted has a critical option that is not understood, or may not stand there (RFC 7252 §5.4.1).
    #[error("the protected response has option {0}, which is critical and not understood there")]
    BadOption(u16),
}

/// Nothing leaves in the clear but errors of the layer, where all is to be protected.
pub(crate) fn check(message: &Outgoing<'_>) -> Result<(), ProtectError> {
    let is_plain = message.options.iter().all(|(number, _)| *number != number::OSCORE);
    // Blocks are asked for below the protection (§4.1.3.4.2).
    let is_continue = message.code == Code::CONTINUE && message.payload.is_empty();
    let must_be_protected = message.code.is_request() || (message.code.is_success() && !is_continue);
    // EDHOC protects its messages by itself; nothing else is written in this format.
    let is_of_edhoc = message.code == Code::CHANGED
        && message.options.iter().any(|(number, value)| (*number, *value) == (number::CONTENT_FORMAT, &[64]));
    if is_plain && must_be_protected && !is_of_edhoc { Err(ProtectError::Plain) } else { Ok(()) }
}

/// Whether it is a notification, or begins them.
pub(crate) fn observes(message: &Outgoing<'_>) -> bool {
    message.code.is_success() && message.options.iter().any(|(number, _)| *number == number::OBSERVE)
}

/// The message as bytes, with neither message ID nor token.
#[cfg(feature = "oscore")]
pub(crate) fn written(message: &Outgoing<'_>) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::NonConfirmable, message.code, MessageId(0), Token::EMPTY);
    for (number, value) in message.options {
        writer.option(*number, value)?;
    }
    writer.payload(message.payload)?;
    writer.finish()?;
    Ok(bytes)
}

/// Hands over code, options and payload of these bytes, and the rest of the message that they protect; without any, that message.
pub(crate) fn with<T>(
    protected: Option<&[u8]>,
    like: &Outgoing<'_>,
    send: impl FnOnce(&Outgoing<'_>) -> T,
) -> Result<T, ProtectError> {
    let (message, options);
    let shown = match protected {
        None => *like,
        Some(bytes) => {
            message = Message::parse(bytes).map_err(|_| ProtectError::UnsuitedCode(Code::EMPTY))?;
            options = message.options().map(|option| (option.number, option.value)).collect::<Vec<_>>();
            Outgoing { code: message.code, options: &options, payload: message.payload(), ..*like }
        }
    };
    Ok(send(&shown))
}
