use alloc::vec::Vec;

use crate::endpoint::EndpointOutput;
use crate::message::{Message, Shape};
use crate::output::{Entry, Output, OutputKind};
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
    pub(in crate::endpoint) fn push_written(&mut self, peer: A, kind: OutputKind, start: usize) {
        self.push_shaped(peer, kind, start, Shape::default());
    }

    #[inline]
    fn push_shaped(&mut self, peer: A, kind: OutputKind, start: usize, shape: Shape) {
        let len = self.bytes.len().saturating_sub(start);
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        self.entries.push(Entry { peer, kind, start: start as u32, len: len as u32, shape });
    }

    /// Makes room for one more entry, and for more of them each time.
    #[cold]
    fn grow(&mut self) {
        self.entries.reserve_exact(self.entries.len().max(1));
    }

    /// Queues an output with these bytes.
    #[inline]
    pub(in crate::endpoint) fn push(&mut self, peer: A, kind: OutputKind, bytes: &[u8]) {
        let start = self.put(bytes);
        self.push_written(peer, kind, start);
    }

    /// Queues the event for a message that came in with these bytes.
    #[inline]
    pub(in crate::endpoint) fn push_message(&mut self, peer: A, kind: OutputKind, message: &Message<'_>, bytes: &[u8]) {
        let start = self.put(bytes);
        self.push_shaped(peer, kind, start, message.shape());
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
        entry.shown(self.bytes_of(entry), || self.message_of(entry))
    }
}
