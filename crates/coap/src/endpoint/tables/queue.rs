use alloc::vec::Vec;

use millpond_control::{Sample, Wait};

use crate::endpoint::{Cause, EndpointOutput, Event, ExchangeId, Failure, Ignored, RequestId, Transmit};
use crate::message::{Message, Shape};
use crate::output::Output;
use crate::parts;

/// Outputs that wait to be drained. Their bytes lie one behind the other in a buffer that is emptied when all outputs
/// were drained, so that nothing is lost should there be input before.
#[derive(Debug)]
pub(in crate::endpoint) struct Queue<A> {
    entries: Vec<Entry<A>>,
    /// Entries drained.
    drained: usize,
    pub(in crate::endpoint) bytes: Vec<u8>,
}

/// One output without its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<A> {
    /// To whom or from whom.
    pub(crate) peer: A,
    pub(crate) what: What,
    start: u32,
    len: u32,
    /// Of a message that came in.
    shape: Shape,
}

/// What an output is. All have bytes but those that tell the end of something, `Acknowledged`, `Overdue` and `Ignored`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Copy { id: ExchangeId, copy: u8, wait: Wait },
    Reply { request: RequestId, repeated: bool },
    Ack,
    Reset,
    Ping,
    NonConfirmableRequest,
    Request { id: RequestId },
    Response { exchange: ExchangeId, sample: Option<Sample>, copies: u8 },
    Late,
    Unasked,
    AdditionalResponse { exchange: ExchangeId },
    NonConfirmable { exchange: ExchangeId },
    Acknowledged { exchange: ExchangeId, sample: Sample },
    Overdue { exchange: ExchangeId },
    Failed { exchange: ExchangeId, why: Failure, copies: u8 },
    Delivered { exchange: ExchangeId, request: Option<RequestId>, sample: Sample },
    Undelivered { exchange: ExchangeId, request: Option<RequestId>, why: Failure },
    Rejected { exchange: ExchangeId },
    Pong { exchange: ExchangeId, sample: Sample },
    Ignored { why: Ignored },
}

impl<A: Copy> Queue<A> {
    pub(in crate::endpoint) const fn new() -> Self {
        Self { entries: Vec::new(), drained: 0, bytes: Vec::new() }
    }

    #[inline]
    pub(in crate::endpoint) fn is_empty(&self) -> bool {
        self.drained == self.entries.len()
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        self.bytes.capacity().saturating_add(self.entries.capacity().wrapping_mul(size_of::<Entry<A>>()))
    }

    /// Bytes that one more output with so many bytes adds to what is held.
    pub(in crate::endpoint) fn growth(&self, len: usize) -> usize {
        let bytes = self.bytes.capacity();
        let more_bytes = if self.bytes.len().saturating_add(len) <= bytes { 0 } else { bytes.max(len) };
        let entries = self.entries.capacity();
        let more_entries = if self.entries.len() < entries { 0 } else { entries.max(1) };
        more_bytes.saturating_add(more_entries.saturating_mul(size_of::<Entry<A>>()))
    }

    /// Queues an output whose bytes are everything behind `start`.
    #[inline]
    pub(in crate::endpoint) fn push_written(&mut self, peer: A, what: What, start: usize) {
        self.push_shaped(peer, what, start, Shape::default());
    }

    #[inline]
    fn push_shaped(&mut self, peer: A, what: What, start: usize, shape: Shape) {
        let len = self.bytes.len().saturating_sub(start);
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        self.entries.push(Entry { peer, what, start: start as u32, len: len as u32, shape });
    }

    /// Makes room for one more entry, and for more of them each time.
    #[cold]
    fn grow(&mut self) {
        self.entries.reserve_exact(self.entries.len().max(1));
    }

    /// Queues an output with these bytes.
    #[inline]
    pub(in crate::endpoint) fn push(&mut self, peer: A, what: What, bytes: &[u8]) {
        let start = self.put(bytes);
        self.push_written(peer, what, start);
    }

    /// Queues the event for a message that came in with these bytes.
    #[inline]
    pub(in crate::endpoint) fn push_message(&mut self, peer: A, what: What, message: &Message<'_>, bytes: &[u8]) {
        let start = self.put(bytes);
        self.push_shaped(peer, what, start, message.shape());
    }

    /// Appends bytes; gives where they begin.
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> usize {
        let start = self.bytes.len();
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        start
    }

    /// Takes the oldest output; its bytes stay until the next is taken. Once there is none, forgets the bytes of all before.
    #[inline]
    pub(in crate::endpoint) fn pop(&mut self) -> Option<Entry<A>> {
        let Some(entry) = self.entries.get(self.drained) else {
            self.clear();
            return None;
        };
        self.drained = self.drained.saturating_add(1);
        Some(*entry)
    }

    /// Takes the oldest output, of which there is one.
    #[inline(never)]
    pub(in crate::endpoint) fn take(&mut self) -> EndpointOutput<'_, A> {
        let place = self.drained;
        self.drained = self.drained.saturating_add(1);
        let Some(entry) = self.entries.get(place) else { return Output::Idle };
        if parts::MANY_PEERS { self.output(entry) } else { self.shown(entry) }
    }

    /// Forgets what was drained, if all was.
    #[inline]
    pub(in crate::endpoint) fn clear(&mut self) {
        if self.is_empty() {
            self.entries.clear();
            self.bytes.clear();
            self.drained = 0;
        }
    }

    /// The bytes of an entry.
    pub(crate) fn bytes_of(&self, entry: &Entry<A>) -> &[u8] {
        let rest = self.bytes.get(entry.start as usize..);
        rest.and_then(|rest| rest.get(..entry.len as usize)).unwrap_or_default()
    }

    /// The message of an entry, which was parsed before it was queued.
    #[inline]
    pub(in crate::endpoint) fn message_of(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        Message::again(self.bytes_of(entry), entry.shape)
    }

    /// An entry with its bytes, where a call more is of no matter.
    #[inline(never)]
    pub(in crate::endpoint) fn shown(&self, entry: &Entry<A>) -> EndpointOutput<'_, A> {
        self.output(entry)
    }

    /// An entry with its bytes.
    #[cfg_attr(feature = "many-peers", inline(always))]
    pub(in crate::endpoint) fn output(&self, entry: &Entry<A>) -> EndpointOutput<'_, A> {
        let bytes = self.bytes_of(entry);
        let peer = entry.peer;
        let transmit = |cause| Output::Transmit(Transmit { to: peer, bytes, cause });
        match entry.what {
            // What no part of this build can have queued.
            What::Request { .. } | What::Reply { .. } | What::Ping if !parts::SERVER => Output::Idle,
            What::AdditionalResponse { .. } if !parts::ADDITIONAL_COME => Output::Idle,
            What::NonConfirmableRequest | What::NonConfirmable { .. } | What::Rejected { .. }
                if !parts::NON_MESSAGES =>
            {
                Output::Idle
            }
            What::Delivered { .. } | What::Undelivered { .. } if !parts::ANSWERS && !parts::NO_RESPONSE => Output::Idle,
            What::Copy { id, copy, wait } => transmit(Cause::Exchange { id, copy, wait }),
            What::Reply { request, repeated } => transmit(Cause::Reply { request, repeated }),
            What::Ack => transmit(Cause::Ack),
            What::Reset => transmit(Cause::Reset),
            What::Ping => transmit(Cause::Ping),
            What::NonConfirmableRequest => transmit(Cause::NonConfirmableRequest),
            What::Request { id } => self.message(entry, |message| Event::Request { from: peer, id, message }),
            What::Response { exchange, sample, copies } => {
                self.message(entry, |message| Event::Response { exchange, from: peer, message, sample, copies })
            }
            What::Unasked => self.message(entry, |message| Event::Unasked { from: peer, message }),
            What::Late => self.message(entry, |message| Event::Late { from: peer, message }),
            What::Acknowledged { exchange, sample } => {
                Output::Event(Event::Acknowledged { exchange, from: peer, sample })
            }
            What::AdditionalResponse { exchange } => {
                self.message(entry, |message| Event::AdditionalResponse { exchange, from: peer, message })
            }
            What::NonConfirmable { exchange } => transmit(Cause::NonConfirmable { id: exchange }),
            What::Overdue { exchange } => Output::Event(Event::Overdue { exchange, to: peer }),
            What::Failed { exchange, why, copies } => Output::Event(Event::Failed { exchange, to: peer, why, copies }),
            What::Delivered { exchange, request, sample } => {
                Output::Event(Event::Delivered { exchange, request, to: peer, sample })
            }
            What::Undelivered { exchange, request, why } => {
                Output::Event(Event::Undelivered { exchange, request, to: peer, why })
            }
            What::Rejected { exchange } => Output::Event(Event::Rejected { exchange, from: peer }),
            What::Pong { exchange, sample } => Output::Event(Event::Pong { exchange, from: peer, sample }),
            What::Ignored { why } => Output::Event(Event::Ignored { from: peer, why }),
        }
    }

    /// An event with a message.
    #[inline]
    fn message<'e>(
        &'e self,
        entry: &Entry<A>,
        event: impl FnOnce(Message<'e>) -> Event<'e, A>,
    ) -> EndpointOutput<'e, A> {
        self.message_of(entry).map_or(Output::Idle, |message| Output::Event(event(message)))
    }
}
