//! Exchanges: every transmission and every answer of one request, and the packets between which they lie.
//!
//! What is kept is bounded: when a [`Chapter`] is full it is judged, and only exchanges that may still go on are kept.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use millpond_coap::message::{Kind, MessageId, Token};
use smallvec::{SmallVec, smallvec};

use crate::peers::{ById, ByPeer, Pair, Pairs};
use crate::reading::{Datagram, Message, Record, Sort};
use crate::sessions::Sessions;

/// EXCHANGE_LIFETIME of RFC 7252 §4.8.2, seconds: later the same message ID is another message.
const EXCHANGE_LIFETIME: f64 = 247.0;
/// MAX_TRANSMIT_WAIT of RFC 7252 §4.8.2, rounded up, seconds: an exchange without news for so long has ended.
const SETTLED: f64 = 100.0;
/// Packets of a chapter; in tests so few that several are soon full.
pub(crate) const CHAPTER: usize = if cfg!(test) { 1 << 10 } else { 1 << 18 };
/// As many pairs of endpoints are followed.
const MOST_PEERS: usize = 1 << 18;
/// So many of an endpoint's last exchanges are looked through for a token.
const RECENT: usize = 16;
/// With more copies, or more answers, a message ID is taken for another message's.
const MOST_COPIES: usize = 256;
/// The same bytes within so many seconds are one packet that was captured twice.
const CAPTURED_TWICE: f64 = 0.001;

/// A packet that passed the place of capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// Seconds since the first packet.
    pub at: f64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    pub peer: u32,
    /// From the endpoint that asks.
    pub up: bool,
}

/// Of what most exchanges have one, none needs a place of its own.
pub(crate) type Times = SmallVec<[f64; 2]>;

/// One request with all that was seen of it.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub peer: u32,
    pub id: MessageId,
    pub token: Token,
    pub confirmable: bool,
    /// When its transmissions were seen, ascending.
    pub sent: Times,
    /// When acknowledgements, resets and responses to it were seen, ascending.
    pub answered: Times,
    /// When the same endpoint's next request was first seen, or that which [follows](Chapter::follow) it.
    pub next: Option<f64>,
    /// Bytes of IP packets.
    pub request_bytes: u32,
    pub answer_bytes: u32,
    pub request_payload: u32,
    pub answer_payload: u32,
    /// It was acknowledged empty: the response came by itself.
    pub separate: bool,
    /// Its copies have tokens of their own.
    pub is_named: bool,
    /// It registers for notifications.
    observes: bool,
    /// The token of the first answer; empty if it had none.
    first_answer: Token,
}

impl Exchange {
    pub(crate) fn began(&self) -> f64 {
        self.sent.first().copied().unwrap_or_default()
    }

    pub(crate) fn last_sent(&self) -> f64 {
        self.sent.last().copied().unwrap_or_default()
    }

    /// Which transmission an answer is to: each has its own, unless the server left some out.
    pub(crate) fn asked_by(&self, answer: usize) -> usize {
        let last = self.sent.len() - 1;
        let Some(&at) = self.answered.get(answer).filter(|_| self.answered.len() < self.sent.len()) else {
            return answer.min(last);
        };
        self.sent.partition_point(|&sent| sent <= at).saturating_sub(1)
    }

    /// Which copy the first answer names, 0 being the first: by the byte behind its token.
    pub(crate) fn first_answer_names(&self) -> Option<u8> {
        let (known, token) = (self.token.as_bytes(), self.first_answer.as_bytes());
        match token.strip_prefix(known) {
            Some([]) => Some(0),
            Some(&[copy]) => Some(copy),
            _ => None,
        }
    }

    fn latest(&self) -> f64 {
        self.last_sent().max(self.answered.last().copied().unwrap_or_default())
    }
}

/// A confirmable message of the side that answers: notification, separate response or ping.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    pub peer: u32,
    id: MessageId,
    pub sent: Times,
    pub acknowledged: Times,
}

/// What is judged together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chapter {
    /// Ascending in time.
    pub packets: Vec<Passed>,
    /// Ascending in the time of the first transmission.
    pub exchanges: Vec<Exchange>,
    pub pushes: Vec<Push>,
    pub by_peer: ByPeer,
    /// Another went before: what devices had learnt by then is not seen in it.
    pub is_later: bool,
}

impl Chapter {
    /// The packets in one direction.
    pub(crate) fn way(&self, up: bool) -> Vec<Passed> {
        self.packets.iter().copied().filter(|packet| packet.up == up).collect()
    }

    /// Their times and sizes.
    pub(crate) fn direction(&self, up: bool) -> (Vec<f64>, Vec<u32>) {
        self.packets.iter().filter(|packet| packet.up == up).map(|packet| (packet.at, packet.bytes)).unzip()
    }

    /// How many exchanges go on after their endpoint began another, if that is no exception: it has several open.
    pub(crate) fn several_open(&self) -> Option<usize> {
        const FEW: usize = 5;
        let resent = self.exchanges.iter().filter(|exchange| exchange.confirmable && exchange.sent.len() > 1);
        let (mut all, mut later) = (0, 0);
        for exchange in resent {
            all += 1;
            later += usize::from(exchange.next.is_some_and(|next| exchange.last_sent() > next + 0.1));
        }
        (later >= FEW && later * 10 >= all).then_some(later)
    }

    /// Sets what follows each exchange if endpoints have so many open: a request for each that ended. Nothing, of more than
    /// there are.
    pub(crate) fn follow(&mut self, open: usize) {
        let exchanges = &mut self.exchanges;
        for of_peer in self.by_peer.each() {
            for (place, &index) in of_peer.iter().enumerate() {
                let later = place.checked_add(open).and_then(|later| of_peer.get(later));
                let next = later.and_then(|&next| exchanges.get(next as usize)).map(Exchange::began);
                if let Some(exchange) = exchanges.get_mut(index as usize) {
                    exchange.next = next;
                }
            }
        }
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = impl Iterator<Item = &Exchange> + Clone> {
        self.by_peer.each().map(|of| of.iter().filter_map(|&index| self.exchanges.get(index as usize)))
    }

    pub(crate) fn end(&self) -> f64 {
        self.packets.last().map_or(0.0, |packet| packet.at)
    }
}

/// What was odd while packets were gathered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oddities {
    /// Packets captured twice.
    pub doubled: u64,
    /// Steps of the clock backwards by more than a millisecond, and the longest, seconds.
    pub steps_back: u64,
    pub longest_step_back: f64,
    /// Answers to requests that were not captured.
    pub orphans: u64,
    /// Of those the ones in the first seconds of a capture.
    pub early_orphans: u64,
    /// Packets of endpoints beyond the bound.
    pub beyond_peers: u64,
}

/// Puts packets together to exchanges.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    pub pairs: Pairs,
    open: ById,
    open_pushes: ById,
    /// Of devices.
    pings: BTreeSet<(u32, u16)>,
    pub chapter: Chapter,
    /// One that was judged, empty: what it took holds the next.
    spare: Chapter,
    /// Microseconds since 1970 of the first packet.
    pub origin: Option<i64>,
    /// Microseconds that the times of the file were put forward, for they ran backwards.
    shift: i64,
    last: i64,
    recent: Option<(f64, u32, bool, MessageId, u32)>,
    pub oddities: Oddities,
    pub sessions: Sessions,
}

impl Gathering {
    /// Whether the chapter is to be judged now.
    pub(crate) fn is_full(&self) -> bool {
        self.chapter.packets.len() >= CHAPTER
    }

    /// Takes a message that was seen at a time, in microseconds since 1970.
    pub(crate) fn take(&mut self, time: i64, bytes: u32, ends: Pair, message: &Message) {
        let at = self.seconds(time);
        self.take_at(at, bytes, ends, message);
    }

    /// Takes a record of DTLS that an endpoint sent up to a server, or down to a device. Whether it is judged.
    pub(crate) fn take_record(&mut self, time: i64, found: &Datagram<'_>, up: bool, record: Record) -> bool {
        let at = self.seconds(time);
        let pair = if up { (found.from, found.to) } else { (found.to, found.from) };
        if self.sessions.len() >= MOST_PEERS && !self.sessions.knows(&pair) {
            self.oddities.beyond_peers += 1;
            return false;
        }
        let message = self.sessions.message(pair, up, at, found.length, record);
        if let Some(message) = message {
            self.take_at(at, found.size, (found.from, found.to), &message);
        }
        message.is_some()
    }

    fn take_at(&mut self, at: f64, bytes: u32, (from, to): Pair, message: &Message) {
        let Some((peer, up)) = self.peer_of(from, to, message) else { return };
        let this = (at, peer, up, message.id, bytes);
        if let Some((before, a, b, c, d)) = self.recent.replace(this)
            && (a, b, c, d) == (peer, up, message.id, bytes)
            && at - before < CAPTURED_TWICE
        {
            self.oddities.doubled += 1;
            return;
        }
        self.chapter.packets.push(Passed { at, bytes, peer, up });
        match (up, message.sort) {
            (true, Sort::Request) => self.request(at, bytes, peer, message),
            (true, Sort::Empty) if message.kind == Kind::Confirmable => {
                self.pings.insert((peer, message.id.0));
            }
            (true, _) => self.acknowledgement_of_push(at, peer, message),
            (false, Sort::Empty) if message.kind == Kind::Confirmable => self.push(at, peer, message),
            (false, Sort::Response) if matches!(message.kind, Kind::Confirmable | Kind::NonConfirmable) => {
                self.unasked(at, bytes, peer, message);
            }
            (false, _) => self.answer(at, bytes, peer, message),
        }
    }

    /// Seconds since the first packet, never backwards.
    fn seconds(&mut self, time: i64) -> f64 {
        let origin = *self.origin.get_or_insert(time);
        let mut since = time.saturating_sub(origin).saturating_add(self.shift);
        if since < self.last {
            let step = self.last.saturating_sub(since);
            if step > 1000 {
                self.oddities.steps_back += 1;
                self.oddities.longest_step_back = self.oddities.longest_step_back.max(step as f64 / 1e6);
                self.shift = self.shift.saturating_add(step);
            }
            since = self.last;
        }
        self.last = since;
        since as f64 / 1e6
    }

    fn peer_of(&mut self, from: SocketAddr, to: SocketAddr, message: &Message) -> Option<(u32, bool)> {
        let (pair, up) = match message.sort {
            Sort::Request => ((from, to), true),
            Sort::Response => ((to, from), false),
            // An empty message belongs to whichever of the two asked; both may.
            Sort::Empty if self.pairs.find(&(from, to)).is_none() && self.pairs.find(&(to, from)).is_some() => {
                ((to, from), false)
            }
            Sort::Empty => ((from, to), true),
        };
        if let Some(peer) = self.pairs.find(&pair) {
            return Some((peer, up));
        }
        if self.pairs.len() >= MOST_PEERS {
            self.oddities.beyond_peers += 1;
            return None;
        }
        Some((self.pairs.add(pair), up))
    }

    fn request(&mut self, at: f64, bytes: u32, peer: u32, message: &Message) {
        let key = (peer, message.id.0);
        let exchanges = &mut self.chapter.exchanges;
        if let Some(&index) = self.open.get(&key)
            && let Some(known) = exchanges.get_mut(index as usize)
            && is_of(known.token, message.token)
            && at - known.began() <= EXCHANGE_LIFETIME
            && known.sent.len() < MOST_COPIES
        {
            known.sent.push(at);
            known.is_named |= known.token != message.token;
            return;
        }
        let index = exchanges.len() as u32;
        let of_peer = &mut self.chapter.by_peer;
        if let Some(before) = of_peer.of(peer).last().and_then(|&before| exchanges.get_mut(before as usize)) {
            before.next = Some(at);
        }
        of_peer.push(peer, index);
        self.open.insert(key, index);
        exchanges.push(Exchange {
            peer,
            id: message.id,
            token: message.token,
            confirmable: message.kind == Kind::Confirmable,
            sent: smallvec![at],
            answered: Times::new(),
            next: None,
            request_bytes: bytes,
            answer_bytes: 0,
            request_payload: message.payload,
            answer_payload: 0,
            separate: false,
            is_named: false,
            observes: message.observes,
            first_answer: Token::EMPTY,
        });
    }

    /// An acknowledgement or a reset.
    fn answer(&mut self, at: f64, bytes: u32, peer: u32, message: &Message) {
        let found =
            self.open.get(&(peer, message.id.0)).and_then(|&index| self.chapter.exchanges.get_mut(index as usize));
        let Some(exchange) = found.filter(|known| at - known.began() <= EXCHANGE_LIFETIME) else {
            if !self.pings.contains(&(peer, message.id.0)) {
                self.oddities.orphans += 1;
                self.oddities.early_orphans += u64::from(at < 10.0);
            }
            return;
        };
        // What came by itself before was a notification of an earlier request with the same token.
        if message.sort == Sort::Response && exchange.separate && exchange.answered.len() >= exchange.sent.len() {
            exchange.answered.clear();
            exchange.separate = false;
        }
        if exchange.answered.is_empty() {
            exchange.first_answer = message.token;
        }
        if exchange.answered.len() < MOST_COPIES {
            exchange.answered.push(at);
        }
        exchange.answer_bytes = bytes;
        exchange.answer_payload = message.payload;
        exchange.separate |= message.sort == Sort::Empty && message.kind == Kind::Acknowledgement;
    }

    /// A response that is no acknowledgement: separate, to a non-confirmable request, or a notification.
    fn unasked(&mut self, at: f64, bytes: u32, peer: u32, message: &Message) {
        let chapter = &mut self.chapter;
        let asked = chapter.by_peer.of(peer).iter().rev().take(RECENT).copied().find(|&index| {
            chapter.exchanges.get(index as usize).is_some_and(|known| {
                let is_its = known.token == message.token || known.is_named && is_of(known.token, message.token);
                // A notification answers nothing but a registration.
                is_its && (known.observes || !message.observes) && at - known.began() <= EXCHANGE_LIFETIME
            })
        });
        if let Some(exchange) = asked.and_then(|index| chapter.exchanges.get_mut(index as usize)) {
            exchange.answer_payload = message.payload;
            if exchange.answered.is_empty() {
                exchange.answer_bytes = bytes;
                exchange.answered.push(at);
                exchange.separate = true;
            }
        }
        if message.kind == Kind::Confirmable {
            self.push(at, peer, message);
        }
    }

    /// A notification, a separate response, or a ping.
    fn push(&mut self, at: f64, peer: u32, message: &Message) {
        let chapter = &mut self.chapter;
        let key = (peer, message.id.0);
        if let Some(&index) = self.open_pushes.get(&key)
            && let Some(push) = chapter.pushes.get_mut(index as usize)
            && at - push.sent.first().copied().unwrap_or_default() <= EXCHANGE_LIFETIME
            && push.sent.len() < MOST_COPIES
        {
            push.sent.push(at);
            return;
        }
        self.open_pushes.insert(key, chapter.pushes.len() as u32);
        chapter.pushes.push(Push { peer, id: message.id, sent: smallvec![at], acknowledged: Times::new() });
    }

    fn acknowledgement_of_push(&mut self, at: f64, peer: u32, message: &Message) {
        let known = self.open_pushes.get(&(peer, message.id.0));
        if let Some(push) = known.and_then(|&index| self.chapter.pushes.get_mut(index as usize))
            && push.acknowledged.len() < MOST_COPIES
        {
            push.acknowledged.push(at);
        }
    }

    /// Where the next chapter may begin: exchanges without news since then are settled. Where the clock stands still, nothing
    /// goes on behind it.
    pub(crate) fn cut(&self) -> f64 {
        let packets = &self.chapter.packets;
        let (first, end) = (packets.first().map_or(0.0, |packet| packet.at), self.chapter.end());
        let middle = packets.get(packets.len() / 2).map_or(0.0, |packet| packet.at);
        if middle > first { middle.max(end - SETTLED) } else { end.next_up() }
    }

    /// Whether half of the chapter at least ends there.
    pub(crate) fn is_cut_by(&self, cut: f64) -> bool {
        let packets = &self.chapter.packets;
        packets.get(packets.len() / 2).is_none_or(|middle| middle.at <= cut)
    }

    /// The chapter, to be judged as far as it is settled; what is not is in the next one, too.
    pub(crate) fn turn(&mut self, cut: f64) -> Chapter {
        let full = std::mem::replace(&mut self.chapter, std::mem::take(&mut self.spare));
        self.open.clear();
        self.open_pushes.clear();
        self.pings.clear();
        let next = &mut self.chapter;
        next.is_later = true;
        next.packets.extend(full.packets.iter().copied().filter(|packet| packet.at >= cut));
        for exchange in full.exchanges.iter().filter(|exchange| exchange.latest() >= cut) {
            let index = next.exchanges.len() as u32;
            self.open.insert((exchange.peer, exchange.id.0), index);
            next.by_peer.push(exchange.peer, index);
            next.exchanges.push(exchange.clone());
        }
        for push in full.pushes.iter().filter(|push| push.sent.last().is_some_and(|&last| last >= cut)) {
            self.open_pushes.insert((push.peer, push.id.0), next.pushes.len() as u32);
            next.pushes.push(push.clone());
        }
        full
    }

    /// Takes a chapter back that was judged.
    pub(crate) fn recycle(&mut self, mut judged: Chapter) {
        judged.packets.clear();
        judged.exchanges.clear();
        judged.pushes.clear();
        judged.by_peer.clear();
        self.spare = judged;
    }
}

/// Whether a token is an exchange's, or its with another byte behind it, by which some devices distinguish their copies.
fn is_of(known: Token, token: Token) -> bool {
    let (known, token) = (known.as_bytes(), token.as_bytes());
    known == token
        || token.split_last().is_some_and(|(_, stem)| {
            !stem.is_empty() && (stem == known || known.split_last().is_some_and(|(_, other)| other == stem))
        })
}

/// Whether an exchange is judged in this chapter, the next of which begins at `cut`.
pub(crate) fn is_settled(exchange: &Exchange, cut: f64) -> bool {
    exchange.latest() < cut
}

#[cfg(test)]
mod tests;
