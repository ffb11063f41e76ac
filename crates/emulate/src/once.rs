//! What waits in a queue waits there once: a copy of it adds nothing.

use millpond_control::Instant;
use millpond_link::QueuedNames;

use crate::{Shaper, Toward};

/// Reports which datagrams can stand for each other.
pub trait Likeness: Send {
    /// What datagrams of one client and one direction have in common if any of them will do; `None` of one that nothing can
    /// stand for.
    fn of(&self, datagram: &[u8]) -> Option<u32>;
}

/// A datagram's client and likeness.
type Name = (u64, u32);

/// What waits in the queues of both links.
pub(crate) struct Once {
    likeness: Box<dyn Likeness>,
    /// The uplink's, then the downlink's.
    queued: [QueuedNames<Name>; 2],
}

impl Once {
    pub(crate) fn by(likeness: Box<dyn Likeness>) -> Self {
        Self { likeness, queued: <[QueuedNames<Name>; 2]>::default() }
    }

    /// The name of a datagram of a client.
    pub(crate) fn name(&self, client: u64, datagram: &[u8]) -> Option<Name> {
        Some((client, self.likeness.of(datagram)?))
    }

    /// Whether one of this name waits.
    pub(crate) fn waits<P>(&self, shaper: &mut Shaper<P>, now: Instant, toward: Toward, name: Name) -> bool {
        self.queued[usize::from(toward == Toward::Clients)].waits(shaper.link(toward), now, &name)
    }

    /// The queue has taken one of this name.
    pub(crate) fn took<P>(&mut self, shaper: &mut Shaper<P>, now: Instant, toward: Toward, name: Name) {
        self.queued[usize::from(toward == Toward::Clients)].took(shaper.link(toward), now, name);
    }
}
