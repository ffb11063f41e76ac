//! Datagrams as they come from the kernel, many in one call.

use std::io::{self, IoSliceMut};

use quinn_udp::{BATCH_SIZE, RecvMeta};

use super::{Address, BoundSocket};

/// Room for one batch. The kernel joins datagrams of one sender, so each place holds the longest that it can make.
pub(crate) struct Inbox {
    room: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    filled: usize,
}

/// Bytes of a place.
const PLACE: usize = 65_536;

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("filled", &self.filled).finish_non_exhaustive()
    }
}

impl Inbox {
    /// Room for one batch. Pages that are never written to take no memory.
    pub(crate) fn new() -> Self {
        Self { room: vec![0; PLACE * BATCH_SIZE], metas: [RecvMeta::default(); BATCH_SIZE], filled: 0 }
    }

    /// Takes what the kernel has, at most one batch. Whether that was all.
    ///
    /// # Errors
    /// What the socket says; the inbox is empty then.
    pub(crate) fn fill(&mut self, socket: &BoundSocket) -> io::Result<bool> {
        self.filled = 0;
        let mut places: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
        for (place, bytes) in places.iter_mut().zip(self.room.chunks_exact_mut(PLACE)) {
            *place = IoSliceMut::new(bytes);
        }
        let (filled, is_all) = socket.receive(&mut places, &mut self.metas)?;
        self.filled = filled;
        Ok(is_all)
    }

    /// Nothing came.
    pub(crate) const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The datagrams of the batch, in order, each with its sender and whether it came to a group.
    pub(crate) fn each<'i>(&'i self, socket: &'i BoundSocket) -> impl Iterator<Item = (Address, bool, &'i [u8])> {
        let places = self.room.chunks_exact(PLACE);
        self.metas.iter().take(self.filled).zip(places).flat_map(move |(meta, bytes)| {
            let (from, by_group) = socket.sender(meta);
            let joined = bytes.get(..meta.len).unwrap_or_default();
            joined.chunks(meta.stride.max(1)).map(move |datagram| (from, by_group, datagram))
        })
    }
}
