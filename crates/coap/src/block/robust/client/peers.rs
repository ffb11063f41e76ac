use alloc::vec::Vec;

use millpond_control::Instant;

/// What is remembered of peers: whether they know bursts, and until when they are to be left alone.
#[derive(Debug)]
pub(super) struct Peers<A> {
    /// The one used last stands last.
    known: Vec<Peer<A>>,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Peer<A> {
    address: A,
    support: Option<bool>,
    held: Instant,
}

impl<A: Copy + Eq> Peers<A> {
    pub(super) const fn new(limit: usize) -> Self {
        Self { known: Vec::new(), limit }
    }

    pub(super) fn support(&self, address: A) -> Option<bool> {
        self.known.iter().find(|peer| peer.address == address)?.support
    }

    pub(super) fn set_support(&mut self, address: A, support: Option<bool>) {
        self.change(address, |peer| peer.support = support);
    }

    /// Nothing came back for a body: the next one waits until then.
    pub(super) fn hold(&mut self, address: A, until: Instant) {
        self.change(address, |peer| peer.held = until);
    }

    /// When the next body may leave, if not now.
    pub(super) fn held_until(&self, now: Instant, address: A) -> Option<Instant> {
        let peer = self.known.iter().find(|peer| peer.address == address)?;
        Some(peer.held).filter(|held| *held > now)
    }

    fn change(&mut self, address: A, change: impl FnOnce(&mut Peer<A>)) {
        let index = self.known.iter().position(|peer| peer.address == address);
        let mut peer = match index {
            Some(index) => self.known.remove(index),
            None => Peer { address, support: None, held: Instant::ORIGIN },
        };
        change(&mut peer);
        if self.known.len() >= self.limit.max(1) {
            self.known.remove(0);
        }
        self.known.push(peer);
    }
}
