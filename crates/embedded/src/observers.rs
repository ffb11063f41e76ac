//! Observers of what a node serves (RFC 7641).

use alloc::vec::Vec;
use core::net::SocketAddr;

use millpond_coap::{
    ExchangeId,
    message::{Message, Token},
    transfer::Limit,
};

/// Observe has 24 bits (RFC 7641 §2).
const SEQUENCE: u32 = 0xff_ffff;

/// One client's interest in one resource.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) peer: SocketAddr,
    pub(crate) token: Token,
    /// The registration as it came: for each new state the resource is asked for it again.
    pub(crate) request: Vec<u8>,
    /// The notification that is under way. There is one at a time, and the newest state follows it (RFC 7641 §4.5.2).
    pub(crate) under_way: Option<ExchangeId>,
    pub(crate) has_changed: bool,
    /// What may go to it while its address is not validated.
    pub(crate) limit: Limit,
}

/// All of them, the oldest first.
#[derive(Debug)]
pub(crate) struct Observers {
    all: Vec<Observer>,
    most: usize,
    sequence: u32,
    /// Who is none any more, and by which token.
    pub(crate) gone: Vec<(SocketAddr, Token)>,
}

impl Observers {
    pub(crate) const fn new(most: usize) -> Self {
        Self { all: Vec::new(), most, sequence: 0, gone: Vec::new() }
    }

    /// Adds one, in place of one with its token, or where all places are taken of one whose address is not validated. `None` if there is
    /// no place: then its request is answered and no more.
    pub(crate) fn add(&mut self, observer: Observer, is_validated: impl Fn(SocketAddr) -> bool) -> Option<u32> {
        self.remove(observer.peer, observer.token);
        if self.all.len() >= self.most {
            let place = self.all.iter().position(|other| !is_validated(other.peer))?;
            let Observer { peer, token, .. } = self.all.remove(place);
            self.gone.push((peer, token));
        }
        self.all.push(observer);
        Some(self.next_sequence())
    }

    pub(crate) fn remove(&mut self, peer: SocketAddr, token: Token) {
        self.keep(|observer| (observer.peer, observer.token) != (peer, token));
    }

    fn keep(&mut self, is_kept: impl Fn(&Observer) -> bool) {
        let gone = self.all.extract_if(.., |observer| !is_kept(observer));
        self.gone.extend(gone.map(|observer| (observer.peer, observer.token)));
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get_mut(&mut self, peer: SocketAddr, token: Token) -> Option<&mut Observer> {
        self.all.iter_mut().find(|observer| (observer.peer, observer.token) == (peer, token))
    }

    /// What is at this path has a new state.
    pub(crate) fn changed<'p>(&mut self, path: impl Iterator<Item = &'p [u8]> + Clone) {
        for observer in &mut self.all {
            if Message::parse(&observer.request).is_ok_and(|message| message.uri_path().eq(path.clone())) {
                observer.has_changed = true;
            }
        }
    }

    /// Takes out one that is to be told of a new state. [`put_back`](Self::put_back) it unless it is done with.
    pub(crate) fn take_changed(&mut self) -> Option<Observer> {
        let place = self.all.iter().position(|observer| observer.has_changed && observer.under_way.is_none())?;
        Some(self.all.remove(place))
    }

    pub(crate) fn put_back(&mut self, observer: Observer) {
        self.all.push(observer);
    }

    pub(crate) const fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1) & SEQUENCE;
        self.sequence
    }

    /// A notification was acknowledged.
    pub(crate) fn delivered(&mut self, exchange: ExchangeId) {
        if let Some(observer) = self.all.iter_mut().find(|observer| observer.under_way == Some(exchange)) {
            observer.under_way = None;
            // It receives what is sent there; should its peer be forgotten, it is asked to show that again.
            observer.limit = observer.limit.alone();
        }
    }

    /// It was not, or rejected: its observer is gone (RFC 7641 §4.5).
    pub(crate) fn undelivered(&mut self, exchange: ExchangeId) {
        self.keep(|observer| observer.under_way != Some(exchange));
    }
}
