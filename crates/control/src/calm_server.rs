//! Which duplicates of a request a server answers once more.
//!
//! RFC 7252 §4.5 has a server answer every duplicate of a request with the reply that it stored. Where answers wait in a long
//! queue on their way to the clients, clients time out although nothing was lost; each retransmission then puts one more answer
//! into that queue, and the queue is what made them time out. A server can end that by itself: a duplicate that comes sooner
//! after an answer than answers have taken to be followed by the next request proves no loss. It was sent before the
//! answer could have come.
//!
//! So a duplicate is withheld, that is, not answered, while all of this holds:
//!
//! * the last answer left at most 1.1 `S` + 20 ms ago, `S` being the median of the last eight times from the first answer
//!   to the same request until the next new request, over the peers on the same path;
//! * there is a sign of a queue: 30 % of the exchanges on the path saw duplicates, or 15 % did and `S` is at least twice the
//!   smallest such time ever;
//! * the last answer left less than 120 s ago;
//! * answers do not end duplicates: where packets are lost, a duplicate that is withheld is followed by the next one and an answered one is
//!   not; in a queue it is all one. Those of the allowance tell the two apart, since chance chose them;
//! * it is not every third duplicate of its request;
//! * the path's allowance for duplicates is used up: one for each four exchanges, at most one a second and five at once.
//!
//! Whatever is not known, such as a peer or path that was forgotten, makes it answer: that is what every server does.
//! The threshold needs no safety factor for that reason; too small a one is today's behaviour. Times longer than 120 s are
//! pauses of the application and no round trips, and are left out.
//!
//! Nothing is shared between paths, and on a path only validated peers count, each with one voice: of the eight times each peer
//! has its share of places, and an exchange that was over in less than half of `S` counts as none, so that who asks quickly does
//! not outweigh who asks slowly. A forged address is never validated. And because every third duplicate is answered whatever is
//! believed of a path, a lost answer is repeated before its client gives up even if all of that is wrong.
//!
//! The caller keeps a [`CalmPeer`] for each peer and a [`CalmPath`] for each path that peers share, in tables as small as it
//! likes. Ours, measured in the simulator; docs/calm-server.md has the figures and what was tried.

use crate::{
    layout::laid_out,
    time::{Instant, Span, tenth},
};

/// Times that a path remembers.
const KEPT: usize = 8;

/// So many exchanges with copies are a sign of a queue: 30 %.
const MANY: u16 = Share::WHOLE / 10 * 3;

/// So many, where answers take long as well: 15 %. Long times alone are pauses of an application as soon as a queue, and
/// random losses of a tenth each way stay below it.
const SOME: u16 = Share::WHOLE / 20 * 3;

/// No answer is withheld for longer, and no longer time is a round trip.
const LONGEST: Span = Span::from_secs(120);

/// What is added to the time that answers take, for what the clocks of two machines make of it.
const MARGIN: Span = Span::from_millis(20);

/// The allowance of an answer that is due to nothing: a second each, five at most.
const ALLOWANCE: Span = Span::from_secs(1);
const MOST_ALLOWED: Span = Span::from_secs(5);

/// What one exchange adds to the allowance at most: where each peer has a path of its own, a second each would be as many
/// answers as are asked for.
const ADDED: Span = Span::from_millis(250);

/// One duplicate of a request in so many is answered whatever is known. Devices that retransmit four times (RFC 7252 §4.8) send one more after it.
const AT_LAST: u8 = 3;

/// So much more often must copies that were withheld be followed by one more than those that were answered: seven
/// sixteenths, three times what chance makes of these shares. Then answers end copies, as where packets are lost, and nothing stands
/// in a queue.
const HELPS: u8 = 112;

/// The share of exchanges that saw duplicates, in 2⁻¹⁶. The newest exchange counts a 256th, and of the first ones, like a
/// plain average, about one in as many as there were, but at most a 16th.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    share: u16,
    exchanges: u8,
}

impl Share {
    const WHOLE: u16 = u16::MAX;
    const NONE: Self = Self { share: 0, exchanges: 0 };
    const FIRST_WEIGHT: u32 = 4;
    const FEW: u8 = 1 << Self::FIRST_WEIGHT;

    /// The weight of an exchange, as a power of a half.
    const fn weight(self) -> u32 {
        match self.exchanges {
            u8::MAX => u8::BITS,
            known @ 32.. => known.ilog2(),
            _ => Self::FIRST_WEIGHT,
        }
    }

    const fn exchange_begins(&mut self) {
        self.share = self.share.saturating_sub(self.share >> self.weight());
        self.exchanges = self.exchanges.saturating_add(1);
    }

    const fn duplicate_came(&mut self) {
        self.share = self.share.saturating_add(1 << u16::BITS.saturating_sub(self.weight()));
    }
}

laid_out!(Share { share, exchanges });

/// The share of first copies that one more came after, in 2⁻⁸; the newest counts a 16th, since few have to be enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Followed(u8);

impl Followed {
    const WEIGHT: u32 = 4;

    const fn next(&mut self, is_followed: bool) {
        self.0 = self.0.saturating_sub(self.0 >> Self::WEIGHT);
        if is_followed {
            self.0 = self.0.saturating_add(1 << (u8::BITS - Self::WEIGHT));
        }
    }
}

laid_out!(Followed { 0 });

/// Why a copy is answered, or that it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Again {
    /// Answer: nothing suggests a queue, or answers end copies, as they do where packets are lost.
    Calm,
    /// Answer: after so long the last answer is likely to be lost.
    Due,
    /// Answer: out of the allowance for copies.
    Allowed,
    /// Answer: every third copy of a request is.
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

/// What a server knows of one peer: of its newest request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmPeer {
    /// When the first answer left.
    first: Instant,
    /// When the last answer left.
    last: Instant,
    /// Copies that came, modulo [`AT_LAST`].
    copies: u8,
    /// What became of its first copy.
    first_copy: FirstCopy,
    /// One more came after that.
    is_followed: bool,
    /// The exchange before was over in less than half of the usual time.
    was_quick: bool,
    /// This exchange is among those of which the path knows the share that saw duplicates.
    counts: bool,
}

/// What became of the first copy of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstCopy {
    /// None came.
    None,
    /// Handled as anywhere: it tells nothing of whether answers help.
    Plain,
    /// Answered in what may be a queue.
    Answered,
    /// Withheld there.
    Withheld,
}

laid_out!(FirstCopy = None | Plain | Answered | Withheld);

impl CalmPeer {
    /// A peer that was never answered.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: Instant::NEVER,
            last: Instant::NEVER,
            copies: 0,
            first_copy: FirstCopy::None,
            is_followed: false,
            was_quick: false,
            counts: false,
        }
    }

    /// The answer to its newest request leaves for the first time.
    pub const fn answered(&mut self, now: Instant) {
        (self.first, self.last) = (now, now);
    }
}

laid_out!(CalmPeer { first, last, copies, first_copy, is_followed, was_quick, counts });

impl Default for CalmPeer {
    fn default() -> Self {
        Self::new()
    }
}

/// What a server knows of a path: how long answers over it have taken to be followed by a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmPath {
    /// When the allowance was what it is.
    since: Instant,
    /// What is left of it.
    allowed: Span,
    /// The newest first; [`Span::MAX`] where there are fewer.
    kept: [Span; KEPT],
    /// The smallest ever.
    least: Span,
    /// Whose times they are; 0 where there are fewer.
    whose: [u16; KEPT],
    /// Of exchanges.
    copied: Share,
    /// Of those whose first copy was answered in what may be a queue, and withheld there.
    answered: Followed,
    withheld: Followed,
}

impl CalmPath {
    /// A path of which nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            since: Instant::ORIGIN,
            allowed: ALLOWANCE,
            kept: [Span::MAX; KEPT],
            least: Span::MAX,
            whose: [0; KEPT],
            copied: Share::NONE,
            answered: Followed(u8::MAX),
            withheld: Followed(0),
        }
    }

    /// A new confirmable request of a peer came: it has one of the answers to the one before. `voter` is there if the peer is
    /// validated: it has shown that its address is its own.
    pub fn asked(&mut self, peer: &mut CalmPeer, voter: Option<Voter>, now: Instant) {
        self.allowed = self.allowed.plus(now.since(self.since).min(ADDED)).min(MOST_ALLOWED);
        self.since = now;
        let mut was_quick = false;
        if peer.first != Instant::NEVER {
            if peer.counts {
                match peer.first_copy {
                    FirstCopy::None | FirstCopy::Plain => {}
                    FirstCopy::Answered => self.answered.next(peer.is_followed),
                    FirstCopy::Withheld => self.withheld.next(peer.is_followed),
                }
            }
            let took = now.since(peer.first);
            was_quick = self.median().is_some_and(|usual| took.doubled() < usual);
            if let Some(voter) = voter.filter(|_| took <= LONGEST) {
                self.took(voter, took);
            }
        }
        *peer = CalmPeer { was_quick, ..CalmPeer::new() };
        self.count(peer, voter);
    }

    /// A copy of the newest request of a peer came, which was answered before: is it answered once more? If so, the
    /// answer leaves now.
    pub fn asked_again(&mut self, peer: &mut CalmPeer, voter: Option<Voter>, now: Instant) -> Again {
        let is_first = peer.first_copy == FirstCopy::None;
        if is_first {
            // It may have been validated since it asked.
            self.count(peer, voter);
            if peer.counts {
                self.copied.duplicate_came();
            }
        } else {
            peer.is_followed = true;
        }
        peer.copies = if peer.copies >= AT_LAST { 1 } else { peer.copies.saturating_add(1) };
        let (verdict, becomes) = self.judge(peer.copies >= AT_LAST, peer.last, now);
        if is_first {
            peer.first_copy = becomes;
        }
        if verdict.answers() {
            peer.last = now;
        }
        verdict
    }

    /// A copy of an older request of a peer came, which was answered at `first` for the first time; how many copies of it came,
    /// this one included.
    pub fn asked_late(&mut self, first: Instant, copies: u8, now: Instant) -> Again {
        self.judge(copies > 0 && copies.checked_rem(AT_LAST) == Some(0), first, now).0
    }

    /// The peer's exchange counts, unless it does already or may not.
    fn count(&mut self, peer: &mut CalmPeer, voter: Option<Voter>) {
        if !peer.counts && !peer.was_quick && voter.is_some() {
            peer.counts = true;
            self.copied.exchange_begins();
        }
    }

    fn judge(&mut self, is_third: bool, last: Instant, now: Instant) -> (Again, FirstCopy) {
        // The answer is still in the making.
        if last == Instant::NEVER {
            return (Again::Withhold, FirstCopy::Plain);
        }
        let Some(usual) = self.median() else { return (Again::Calm, FirstCopy::Plain) };
        let is_slow = usual >= self.least.doubled();
        if self.copied.share < if is_slow { SOME } else { MANY } {
            return (Again::Calm, FirstCopy::Plain);
        }
        let age = now.since(last);
        if age >= LONGEST || age > usual.plus(tenth(usual)).plus(MARGIN) {
            return (Again::Due, FirstCopy::Plain);
        }
        if self.withheld.0.saturating_sub(self.answered.0) >= HELPS {
            return (Again::Calm, FirstCopy::Answered);
        }
        if is_third {
            return (Again::Third, FirstCopy::Answered);
        }
        if self.allowed >= ALLOWANCE {
            self.allowed = self.allowed.minus(ALLOWANCE);
            return (Again::Allowed, FirstCopy::Answered);
        }
        (Again::Withhold, FirstCopy::Withheld)
    }

    /// Keeps a time in place of the oldest: of the voter's own, or if another one has more, of who has most.
    fn took(&mut self, voter: Voter, time: Span) {
        self.least = self.least.min(time);
        let whose = self.whose;
        let places = |voter: u16| whose.iter().filter(|other| **other == voter).count();
        let own = places(voter.get());
        let most = whose.iter().filter(|other| **other != 0).map(|other| places(*other)).max().unwrap_or(0);
        let has_more = |other: &u16| *other != 0 && most > own && places(*other) == most;
        if whose.iter().any(has_more) && most > 1 {
            // What is known of exchanges was told by few, and is soon to be outweighed.
            self.copied.exchanges = self.copied.exchanges.min(Share::FEW);
        }
        let place = whose.iter().position(|other| *other == 0).or_else(|| whose.iter().rposition(has_more));
        let place = place.or_else(|| whose.iter().rposition(|other| *other == voter.get())).unwrap_or(0);
        let (mut newer, mut newer_is) = (time, voter.get());
        for (time, whose) in self.kept.iter_mut().zip(&mut self.whose).take(place.saturating_add(1)) {
            newer = core::mem::replace(time, newer);
            newer_is = core::mem::replace(whose, newer_is);
        }
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

laid_out!(CalmPath { since, allowed, kept, least, whose, copied, answered, withheld });

impl Default for CalmPath {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
