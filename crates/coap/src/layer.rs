//! What a [`CoapStack`](crate::transfer::CoapStack) stands on: something that carries messages.
//!
//! An [`Endpoint`] does over datagrams and a [`Connection`](crate::stream::Connection) over a stream. A stack asks and answers
//! by the calls of [`MessageLayer`] alone, and both tell it the same [events](crate::Event); so bodies, observations and requests
//! are driven once. What one of them has and the other has not, a layer says:
//!
//! | | datagrams | a stream |
//! |---|---|---|
//! | [`IS_RELIABLE`](MessageLayer::IS_RELIABLE): no copies, no resets, one order | no | yes |
//! | [`room`](MessageLayer::room): how long a message may be | the stack's blocks | what the other side's settings say |
//! | [`datagrams`](MessageLayer::datagrams): groups and bursts (RFC 9177) | yes | no |
//! | [`end_observation`](MessageLayer::end_observation): who observes is notified of the end | no | yes |
//!
//! What is below that stays apart, for it has nothing in common: message IDs, retransmission and controllers here, frames,
//! settings and signals there.

use alloc::vec::Vec;
use core::{fmt::Debug, hash::Hash};

use millpond_control::{Instant, Span};

use crate::{
    Endpoint, ExchangeId, Outgoing, RequestId,
    block::{BlockSize, Upload},
    message::{Code, Kind, Message, Token},
    output::{EndpointOutput, Entry, Step},
    protection::{Protection, Taken},
    quota::Source,
    transfer::{Refused, RequestFailure},
};

/// Carries messages to peers and back. Driven like the stack above it, by any number of inputs, then drain:
/// [`step`](Self::step) until it says to sleep or that it is idle, before sleeping. An input between two steps loses
/// nothing: the stack makes its own there.
pub trait MessageLayer: Debug + Sized {
    /// What is sent arrives, once and in order, or the layer ends. There are no copies of a message then, nobody rejects one
    /// by a reset, and what is answered is answered at once, before anything else is looked at.
    const IS_RELIABLE: bool;

    /// Who is at the other end.
    type Peer: Copy + Eq + Hash + Debug;
    /// Why it ends, if it can.
    type Closing: Copy + Debug;
    /// Why it does not do what it was asked for.
    type Refused: Copy + Into<Refused> + Into<RequestFailure>;

    /// What every input begins with.
    fn advance(&mut self, now: Instant);

    /// Input: a request is to be sent.
    ///
    /// # Errors
    /// What cannot be sent, or exceeds a limit. Nothing is sent then.
    fn request(
        &mut self,
        now: Instant,
        to: Self::Peer,
        request: &Outgoing<'_>,
        place: RequestMessage,
    ) -> Result<ExchangeId, Self::Refused>;

    /// Input: the answer to a request of ours is no longer wanted, or none that is still to come.
    fn cancel(&mut self, now: Instant, exchange: ExchangeId);

    /// Whether nothing but the response is awaited of a request of ours: it was acknowledged, or has left where nothing
    /// acknowledges it.
    fn awaits_response(&self, exchange: ExchangeId) -> bool;

    /// The token of a request of ours that is open, where it may have to be named to the other side.
    fn token_of(&self, exchange: ExchangeId) -> Option<Token>;

    /// Input: a request of a peer is answered.
    ///
    /// # Errors
    /// What cannot be sent, or exceeds a limit.
    fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), Self::Refused>;

    /// Input: the application cannot make sense of a request.
    ///
    /// # Errors
    /// A request answered before.
    fn reject(&mut self, now: Instant, request: RequestId) -> Result<(), Self::Refused>;

    /// Input: who asked wants no answer (RFC 7967).
    ///
    /// # Errors
    /// A request answered before.
    fn suppress_response(&mut self, now: Instant, request: RequestId) -> Result<(), Self::Refused>;

    /// Input: nobody will answer a request.
    fn drop_request(&mut self, now: Instant, request: RequestId);

    /// Whether a request has still to be answered. It may have given way to others that came after it.
    fn awaits_answer(&self, request: RequestId) -> bool;

    /// Input: a notification is to be sent. Its name, if what becomes of it will be told.
    ///
    /// # Errors
    /// What cannot be sent, or exceeds a limit.
    fn notify(
        &mut self,
        now: Instant,
        to: Self::Peer,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<Option<ExchangeId>, Self::Refused>;

    /// Input: an observer is no longer served, and no last notification says so.
    fn end_observation(&mut self, _now: Instant, _peer: Self::Peer, _token: Token, _code: Code) {}

    /// A peer observes by the request that was answered last, so that its token is needed, or observes no more.
    fn hold_token(&mut self, _peer: Self::Peer, _token: Token, _is_held: bool) {}

    /// By what the notifications of an observer are protected, to be kept over a restart: nothing where they are not. `None` if they
    /// cannot be protected any more then.
    #[cfg(all(feature = "server", feature = "observe"))]
    fn registration(&mut self, _peer: Self::Peer, _token: Token) -> Option<Vec<u8>> {
        None
    }

    /// A peer that observed before a restart does so further, protected by this. False if it cannot be.
    #[cfg(all(feature = "server", feature = "observe"))]
    fn observes_again(&mut self, _peer: Self::Peer, _token: Token, _registration: &[u8]) -> bool {
        false
    }

    /// The next output. Also does what is due. What it gives can be asked about until the next step, and until bytes come in.
    fn step(&mut self, now: Instant) -> Step<Entry<Self::Peer>, Self::Closing>;

    /// Takes the protection off a message that came in (RFC 8613), if it has any: off this one, if it came in blocks.
    fn unprotect(&mut self, entry: &Entry<Self::Peer>, whole: Option<&Message<'_>>) -> Taken;

    /// What protects its messages, if that is done: there are no groups and bursts then.
    fn protection(&self) -> Option<&(dyn Protection<Self::Peer> + 'static)> {
        None
    }

    /// The same, to be told something.
    fn protection_mut(&mut self) -> Option<&mut (dyn Protection<Self::Peer> + 'static)> {
        None
    }

    /// Input: a later message of a request is sent, which is protected already.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    fn request_as_written(
        &mut self,
        now: Instant,
        to: Self::Peer,
        request: &Outgoing<'_>,
    ) -> Result<ExchangeId, Self::Refused>;

    /// The message of an output that has one.
    fn message(&self, entry: &Entry<Self::Peer>) -> Option<Message<'_>>;

    /// An output with its bytes.
    fn show(&self, entry: &Entry<Self::Peer>) -> EndpointOutput<'_, Self::Peer>;

    /// What a refusal is about.
    fn reason(why: &Self::Refused) -> Reason;

    /// A keyed hash: a peer that can guess one may get what is another's.
    fn hash(&self, key: &impl Hash) -> u64;

    /// How long a message may be and what of several blocks may travel in one; `None` where the stack's blocks decide.
    fn room(&self) -> Option<Room> {
        None
    }

    /// The layer, where it is one of datagrams: groups and bursts are for these alone.
    fn datagrams(&mut self) -> Option<&mut Endpoint<Self::Peer>> {
        None
    }

    /// What to answer a request that is not protected where all are to be: a step in agreeing upon a security context, or a refusal.
    fn establish(&mut self, _request: &Entry<Self::Peer>, _from: Source) -> Vec<u8> {
        Vec::new()
    }

    /// Whether no notification of this exchange comes that is older than one that came before: a stream has one order, and what is
    /// protected has numbers by which older ones were refused (RFC 8613 §7.4.1).
    fn keeps_order(&self, exchange: ExchangeId) -> bool {
        Self::IS_RELIABLE || self.protection().is_some_and(|protection| protection.has_sent(exchange))
    }

    /// Its number among those that share a seed of chance.
    fn node(&self) -> u32 {
        0
    }

    /// As what an answer leaves of which nothing is said.
    fn kind_of_answer(&self, _request: RequestId) -> Kind {
        Kind::Confirmable
    }

    /// Whether a request that was not answered yet was acknowledged, so that its answer is a message of its own.
    fn was_acknowledged(&self, _request: RequestId) -> bool {
        false
    }

    /// Whether a request came to a group.
    fn came_by_group(&self, _request: RequestId) -> bool {
        false
    }

    /// Whether a peer is known to be where it says.
    fn is_validated(&self, _peer: Self::Peer) -> bool {
        true
    }

    /// Whether the peer observes with this token, as far as is known here.
    fn observes(&self, _peer: Self::Peer, _token: Token) -> bool {
        false
    }

    /// Whether it has ended, so that nothing leaves any more.
    fn has_ended(&self) -> bool {
        false
    }

    /// Whether there is a place for a peer that is to be notified of changes.
    fn has_place_for(&self, _now: Instant, _peer: Self::Peer) -> bool {
        true
    }

    /// For whom something is held that a peer has sent.
    fn source_of(&self, peer: Self::Peer) -> Source {
        Source { is_validated: self.is_validated(peer), network: self.hash(&peer) }
    }

    /// The round-trip time to a peer, if it is measured here.
    fn round_trip(&self, _peer: Self::Peer) -> Option<Span> {
        None
    }

    /// Bytes held, the value itself included.
    fn memory(&self) -> usize;
}

/// Which of its requests a request sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMessage {
    /// The first.
    First,
    /// A later one, which a queue that is full does not stop.
    Next,
    /// One on whose token additional responses may come.
    Subscription,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The message cannot be written.
    Message,
    /// The message is longer than the other side takes.
    TooLong,
    /// What was asked for makes no sense.
    Call,
    /// Too much is under way.
    NoRoom,
    /// What it was about is gone.
    Gone,
}

/// What a message of a stream may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of the longest one.
    pub bytes: usize,
    /// The other side takes blocks (RFC 7959).
    pub block_wise: bool,
    /// It takes several of them in a message (BERT, RFC 8323 §6).
    pub bert: bool,
    /// We take several of them in a message.
    pub takes_bert: bool,
    /// It has said so. Before that these are what any side must take.
    pub is_settled: bool,
}

impl Room {
    /// Bytes of a block-wise message beside payload and options of the application: what stands before its options with a
    /// token of 8 bytes, and the options of the transfer.
    const OVERHEAD: usize = 48;

    /// The largest blocks that fit a message beside so many bytes of options, and how many of them.
    pub(crate) fn blocks(&self, options: usize) -> (BlockSize, u32) {
        let room = self.bytes.saturating_sub(Self::OVERHEAD).saturating_sub(options);
        match room >> 10 {
            blocks if blocks > 0 && self.bert => (BlockSize::BERT, u32::try_from(blocks).unwrap_or(u32::MAX)),
            _ => (BlockSize::at_most(room), 1),
        }
    }

    /// A body of this length on its way in blocks, beside so many bytes of options.
    pub(crate) fn upload(&self, length: usize, options: usize) -> Upload {
        match self.blocks(options) {
            (size, blocks) if size.is_bert() => Upload::of_blocks(length, blocks as usize),
            (size, _) => Upload::new(length, size),
        }
    }
}
