//! Answers of which the handler makes one block at a time.

use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    ops::Range,
};

use millpond_coap::message::Code;

use super::{
    Dispatcher, PendingRequest, Room,
    streams::{OVERHEAD, Pieces, cut},
};
use crate::{Request, Response};

/// Peers that are remembered to be in the middle of a representation.
const MOST_DOWNLOADERS: usize = 4_096;

/// What an answer may carry: blocks of so many bytes at most, or over a connection what a message to the client has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(super) longest: usize,
    pub(super) room: Option<Room>,
}

impl Fit {
    /// Bytes of the longest body that leaves in one message if no block is asked for.
    pub(super) fn whole(&self) -> usize {
        self.room.map_or(self.longest, |room| room.bytes.saturating_sub(OVERHEAD))
    }

    pub(super) fn pieces(&self, request: &Request) -> Option<Pieces> {
        Pieces::of(request, self.longest, self.room)
    }

    /// The part of a representation of so many bytes that a request is answered with; none if it must be whole.
    pub(crate) fn part(&self, request: &Request, total: u64) -> Option<Range<u64>> {
        let pieces = self.pieces(request)?;
        let fits = pieces.block2.is_none() && total <= self.whole() as u64;
        if fits || !pieces.may_cut || pieces.block1.is_some() {
            return None;
        }
        let start = (pieces.offset() as u64).min(total);
        Some(start..start.saturating_add(pieces.length as u64).min(total))
    }
}

/// Who was answered with a part and asks for the others: the first one counted for all.
#[derive(Default, Debug)]
pub(super) struct Downloaders {
    peers: BTreeSet<SocketAddr>,
    /// The oldest first.
    order: VecDeque<SocketAddr>,
}

impl Downloaders {
    pub(super) fn has(&self, peer: SocketAddr) -> bool {
        self.peers.contains(&peer)
    }

    pub(super) fn remember(&mut self, peer: SocketAddr) {
        if !self.peers.insert(peer) {
            return;
        }
        self.order.push_back(peer);
        if self.order.len() > MOST_DOWNLOADERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.peers.remove(&oldest);
        }
    }

    /// Bytes held, about.
    pub(super) fn memory(&self) -> usize {
        (self.peers.len() + self.order.capacity()) * size_of::<SocketAddr>()
    }
}

impl Dispatcher {
    /// Answers with one block of a representation, if the response is one and not all there is.
    pub(super) fn is_answered_with_part(&mut self, pending: &PendingRequest, response: &mut Response) -> bool {
        let Some((start, total)) = response.take_part() else { return false };
        let given = start..start.saturating_add(response.payload().len() as u64);
        if given == (0..total) {
            return false;
        }
        let (wanted, pieces) = (pending.request.part_of(total), pending.request.fit());
        let pieces = pieces.and_then(|fit| fit.pieces(&pending.request)).filter(|_| wanted == given);
        let Some(pieces) = pieces else {
            tracing::error!(
                target: "millpond_live",
                "a handler answered with bytes {given:?} of {total} where Request::part_of says {wanted:?}; \
                 its request is answered with 5.00"
            );
            *response = Response::new(Code::INTERNAL_SERVER_ERROR);
            return false;
        };
        let more = given.end < total;
        if more {
            self.downloaders.remember(pending.request.peer());
        }
        let (start, total) = (usize::try_from(start).ok(), usize::try_from(total).ok());
        let payload = response.payload().clone();
        self.say(pending, cut(response, (start.unwrap_or(usize::MAX), payload, more), &pieces, total));
        true
    }
}
