//! Which duplicates of a request a server answers once more.
//!
//! RFC 7252 §4.5 has a server answer every duplicate of a request with the reply that it stored. Where answers wait in a long
//! queue on their way to the clients, clients time out although nothing was lost; each retransmission then puts one more answer
//! into that queue, and the queue is what made them time out. A server can end that by itself: a duplicate that comes sooner
//! after an answer than a round trip takes proves no loss. It was sent before the answer could have come.
//!
//! The round trip is measured by CoAP pings, empty confirmable messages that every device rejects (RFC 7252 §4.3): the
//! rejection waits in the queues that answers and requests wait in, for no application, and repeats a message ID that nobody guesses.
//!
//! A duplicate is withheld, that is, not answered, while all of this holds:
//!
//! * the last answer left at most 1.1 `S` + 20 ms ago, `S` being the median of the last eight round trips of pings on the path, of
//!   each peer as many as of any other;
//! * no ping that left after that answer was rejected by this peer: who asks after that has not got the answer;
//! * it is not the third duplicate of its request, nor the sixth and so on, unless the peer's own last ping took so long as well;
//! * the last answer left less than 120 s ago.
//!
//! Whatever is not known, such as a peer or path that was forgotten, makes it answer: that is what every server does.
//! The threshold needs no safety factor for that reason; too small a one is today's behaviour.
//!
//! Nothing is shared between paths. A forged address rejects no ping. And because every third duplicate is answered unless the
//! peer itself has shown how far it is, a lost answer is repeated before its client gives up even if all others lie.
//!
//! The caller keeps a [`CalmPeer`] for each peer and a [`CalmPath`] for each path that peers share, in tables as small as it
//! likes. Ours, measured in the simulator; docs/calm-server.md has the figures.

use crate::{
    layout::laid_out,
    time::{Instant, Span, tenth},
};

/// Round trips that a path remembers.
const KEPT: usize = 8;

/// No answer is withheld for longer, and round trips are forgotten after it.
const LONGEST: Span = Span::from_secs(120);

/// What is added to a round trip, for what the clocks of two machines make of it.
const MARGIN: Span = Span::from_millis(20);

/// One duplicate of a request in so many is answered unless its peer has shown itself to be that far away. Devices that retransmit four
/// times (RFC 7252 §4.8) send one more after it.
const AT_LAST: u8 = 3;

const BEFORE_LAST: u8 = AT_LAST - 1;

/// For duplicates that are withheld, or while nothing is known, a path is pinged once in this time.
const BETWEEN_PINGS: Span = Span::from_secs(1);

/// For duplicates that are due, once in this: where a small buffer loses answers, pings only take room.
const WHILE_DUE: Span = Span::from_secs(16);

/// Pings of a peer that are not rejected, until it is pinged no more.
const UNANSWERED: u8 = 4;

/// Why a duplicate is answered, or that it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Again {
    /// Answer: nothing is known of the path.
    Unknown,
    /// Answer: after so long the last answer is likely to be lost.
    Due,
    /// Answer: a ping that left after the last answer came back.
    Lost,
    /// Answer: every third duplicate of a request is.
    Third,
    /// Stay silent: an answer is on its way.
    Withhold,
}

impl Again {
    /// Whether an answer is to leave.
    #[must_use]
    pub const fn answers(self) -> bool {
        !matches!(self, Self::Withhold)
    }
}

/// Who a peer is, for a path: some number of its own, such as a hash of its address. Two with the same number count as one.
pub type Voter = core::num::NonZeroU16;

/// What a server knows of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmPeer {
    /// When the last answer to its newest request left.
    last: Instant,
    /// When the last ping left.
    pinged: Instant,
    /// What the last ping took that it rejected; [`Span::MAX`] before one.
    took: Span,
    /// Duplicates of its newest request that came, modulo [`AT_LAST`].
    copies: u8,
    /// Pings since it rejected one.
    pings: u8,
    /// The last ping is to be rejected yet.
    is_out: bool,
}

impl CalmPeer {
    /// A peer that was never answered.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: Instant::NEVER, pinged: Instant::NEVER, took: Span::MAX, copies: 0, pings: 0, is_out: false }
    }

    /// A new confirmable request of it came.
    pub const fn asked(&mut self) {
        (self.last, self.copies) = (Instant::NEVER, 0);
    }

    /// The answer to its newest request leaves for the first time.
    pub const fn answered(&mut self, now: Instant) {
        self.last = now;
    }

    /// A ping that left after its last answer came back.
    fn is_behind(&self) -> bool {
        self.took < Span::MAX && !self.is_out && self.pinged > self.last
    }

    /// Within what answers reach it, if it has shown that less than eight times as long ago.
    #[cfg_attr(target_os = "none", inline(never))]
    fn within(&self, now: Instant) -> Option<Span> {
        (self.took < Span::MAX && now.since(self.pinged) <= self.took.doubled().doubled().doubled())
            .then(|| within(self.took))
    }
}

laid_out!(CalmPeer { last, pinged, took, copies, pings, is_out });

impl Default for CalmPeer {
    fn default() -> Self {
        Self::new()
    }
}

/// What a server knows of a path: how long pings have taken on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmPath {
    /// When the last ping left for a duplicate.
    pinged: Instant,
    /// When the newest of the round trips was known.
    told: Instant,
    /// The newest first; [`Span::MAX`] where there are fewer.
    kept: [Span; KEPT],
    /// Whose they are; 0 where there are fewer.
    whose: [u16; KEPT],
}

impl CalmPath {
    /// A path of which nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self { pinged: Instant::ORIGIN, told: Instant::ORIGIN, kept: [Span::MAX; KEPT], whose: [0; KEPT] }
    }

    /// A duplicate of the newest request of a peer came, which was answered before: is it answered once more? If so, the
    /// answer leaves now.
    pub fn asked_again(&self, peer: &mut CalmPeer, now: Instant) -> Again {
        peer.copies = if peer.copies >= AT_LAST { 1 } else { peer.copies.saturating_add(1) };
        let verdict = match self.judge(peer.copies >= AT_LAST, peer.last, now) {
            Again::Withhold | Again::Third if peer.is_behind() => Again::Lost,
            Again::Third if peer.within(now).is_some_and(|within| now.since(peer.last) <= within) => Again::Withhold,
            verdict => verdict,
        };
        if verdict.answers() {
            peer.last = now;
        }
        verdict
    }

    /// After [`CalmPeer::asked`] and [`asked_again`](Self::asked_again): does a ping leave for the peer, before an answer does?
    pub fn pings(&mut self, peer: &mut CalmPeer, now: Instant) -> bool {
        let known = self.within(now);
        let within = known.unwrap_or(BETWEEN_PINGS);
        let is_over = !peer.is_out || now.since(peer.pinged) > within.max(BETWEEN_PINGS).doubled();
        let age = now.since(peer.last);
        let is_withheld = age > Span::ZERO;
        // The third is likely to come before the answer: how far its peer is must be known then.
        let is_third_early = peer.copies == BEFORE_LAST && is_withheld && age.doubled() <= within;
        let is_of_use = match peer.copies {
            0 => peer.pings == 0 && peer.took == Span::MAX,
            _ if is_third_early && peer.within(now).is_none() => true,
            _ => now.since(self.pinged) >= if is_withheld || known.is_none() { BETWEEN_PINGS } else { WHILE_DUE },
        };
        let pings = is_of_use && is_over && peer.pings < UNANSWERED;
        if pings {
            (peer.pinged, self.pinged) = (now, now);
            peer.pings = peer.pings.saturating_add(1);
            peer.is_out = true;
        }
        pings
    }

    /// A copy of an older request of a peer came, which was answered at `first` for the first time; how many copies of it came,
    /// this one included.
    pub fn asked_late(&self, first: Instant, copies: u8, now: Instant) -> Again {
        self.judge(copies > 0 && copies.checked_rem(AT_LAST) == Some(0), first, now)
    }

    /// The peer rejected the last ping.
    pub fn rejected(&mut self, peer: &mut CalmPeer, voter: Voter, now: Instant) {
        let took = now.since(peer.pinged);
        (peer.took, peer.pings, peer.is_out) = (took, 0, false);
        if took <= LONGEST {
            self.told = now;
            self.took(voter, took);
        }
    }

    #[cfg_attr(target_os = "none", inline(never))]
    fn judge(&self, is_third: bool, last: Instant, now: Instant) -> Again {
        // The answer is still in the making.
        if last == Instant::NEVER {
            return Again::Withhold;
        }
        let Some(within) = self.within(now) else { return Again::Unknown };
        let age = now.since(last);
        match is_third {
            _ if age >= LONGEST || age > within => Again::Due,
            true => Again::Third,
            false => Again::Withhold,
        }
    }

    /// Keeps a time in place of the oldest: of the voter's own, or if another one has more, of who has most.
    fn took(&mut self, voter: Voter, time: Span) {
        let whose = self.whose;
        let places = |voter: u16| whose.iter().filter(|other| **other == voter).count();
        let own = places(voter.get());
        let most = whose.iter().filter(|other| **other != 0).map(|other| places(*other)).max().unwrap_or(0);
        let has_more = |other: &u16| *other != 0 && most > own && places(*other) == most;
        let place = whose.iter().position(|other| *other == 0).or_else(|| whose.iter().rposition(has_more));
        let place = place.or_else(|| whose.iter().rposition(|other| *other == voter.get())).unwrap_or(0);
        let (mut newer, mut newer_is) = (time, voter.get());
        for (time, whose) in self.kept.iter_mut().zip(&mut self.whose).take(place.saturating_add(1)) {
            newer = core::mem::replace(time, newer);
            newer_is = core::mem::replace(whose, newer_is);
        }
    }

    /// Within what answers reach its peers.
    #[cfg_attr(target_os = "none", inline(never))]
    fn within(&self, now: Instant) -> Option<Span> {
        if now.since(self.told) > LONGEST { None } else { self.median().map(within) }
    }

    /// The median of the times kept, the smaller one of two.
    fn median(&self) -> Option<Span> {
        let kept = &self.kept;
        let before = kept.iter().filter(|time| **time < Span::MAX).count().checked_sub(1)? / 2;
        // The one with at most so many below it, and enough that are not above: sorting takes more room on small cores.
        let is_median = |time: &&Span| {
            let below = kept.iter().filter(|other| other < time).count();
            let not_above = kept.iter().filter(|other| *other <= *time).count();
            below <= before && before < not_above
        };
        kept.iter().find(is_median).copied()
    }
}

laid_out!(CalmPath { pinged, told, kept, whose });

impl Default for CalmPath {
    fn default() -> Self {
        Self::new()
    }
}

/// So long after an answer it should have come.
#[cfg_attr(target_os = "none", inline(never))]
const fn within(round_trip: Span) -> Span {
    round_trip.plus(tenth(round_trip)).plus(MARGIN)
}

#[cfg(test)]
mod tests;
