//! Which copies of a request a server answers once more.
//!
//! RFC 7252 §4.5 has a server answer every copy of a request with the reply that it stored. Where answers wait in a long
//! queue on their way to the clients, clients time out although nothing was lost; each copy then puts one more answer
//! into that queue, and the queue is what made them time out. A server can end that by itself: a copy that comes sooner
//! after an answer than answers have taken to be followed by the next request proves no loss. It was sent before the
//! answer could have come.
//!
//! So a copy is withheld, that is, not answered, while all of this holds:
//!
//! * the last answer left at most 1.1 `S` + 20 ms ago, `S` being the median of the last eight times from the first answer
//!   to the same request until the next new request, over all peers on the same path;
//! * there is a sign of a queue: 30 % of the exchanges of the whole server or of the path saw copies, or 15 % did and `S` is at
//!   least twice the smallest such time ever;
//! * the last answer left less than 120 s ago;
//! * answers do not end copies: where packets are lost, a copy that is withheld is followed by the next one and an answered one is
//!   not; in a queue it is all one. Those of the allowance tell the two apart, since chance chose them;
//! * the allowance for copies is used up: one a second, at most five at once, for the whole server.
//!
//! Whatever is not known, such as a peer or path that was forgotten, makes it answer: that is what every server does.
//! The threshold needs no safety factor for that reason; too small a one is today's behaviour. Times longer than 120 s are
//! pauses of the application and no round trips, and are left out.
//!
//! The caller keeps a [`CalmPeer`] for each peer, a [`CalmPath`] for each path that peers share and one [`CalmServer`], in
//! tables as small as it likes. Ours, measured in the simulator; docs/calm-server.md has the figures and what was tried.

use crate::{
    layout::laid_out,
    time::{Instant, Span, tenth},
};

/// Times that a path remembers.
const KEPT: usize = 8;

/// So many exchanges with copies are a sign of a queue: 30 %.
const MANY: Share = Share(Share::WHOLE / 10 * 3);

/// So many, where answers take long as well: 15 %. Long times alone are pauses of an application as soon as a queue, and
/// random losses of a tenth each way stay below it.
const SOME: Share = Share(Share::WHOLE / 20 * 3);

/// No answer is withheld for longer, and no longer time is a round trip.
const LONGEST: Span = Span::from_secs(120);

/// What is added to the time that answers take, for what the clocks of two machines make of it.
const MARGIN: Span = Span::from_millis(20);

/// The allowance of an answer that is due to nothing: a second each, five at most.
const ALLOWANCE: Span = Span::from_secs(1);
const MOST_ALLOWED: Span = Span::from_secs(5);

/// So much more often must copies that were withheld be followed by one more than those that were answered: seven
/// sixteenths, three times what chance makes of these shares. Then answers end copies, as where packets are lost, and nothing stands
/// in a queue.
const HELPS: u8 = 112;

/// The share of exchanges that saw copies, in 2⁻¹⁶; the newest exchange counts a 256th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Share(u16);

impl Share {
    const WHOLE: u16 = u16::MAX;
    const WEIGHT: u32 = 8;

    const fn exchange_begins(&mut self) {
        self.0 = self.0.saturating_sub(self.0 >> Self::WEIGHT);
    }

    const fn copy_came(&mut self) {
        self.0 = self.0.saturating_add(1 << (u16::BITS - Self::WEIGHT));
    }
}

laid_out!(Share { 0 });

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

/// What a server knows of one peer: of its newest request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmPeer {
    /// When the first answer left.
    first: Instant,
    /// When the last answer left.
    last: Instant,
    /// What became of its first copy.
    first_copy: FirstCopy,
    /// One more came after that.
    is_followed: bool,
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
        Self { first: Instant::NEVER, last: Instant::NEVER, first_copy: FirstCopy::None, is_followed: false }
    }
}

laid_out!(CalmPeer { first, last, first_copy, is_followed });

impl Default for CalmPeer {
    fn default() -> Self {
        Self::new()
    }
}

/// What a server knows of a path: how long answers over it have taken to be followed by a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmPath {
    /// The newest first; [`Span::MAX`] where there are fewer.
    kept: [Span; KEPT],
    /// The smallest ever.
    least: Span,
    /// Of exchanges that are over.
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
            kept: [Span::MAX; KEPT],
            least: Span::MAX,
            copied: Share(0),
            answered: Followed(u8::MAX),
            withheld: Followed(0),
        }
    }

    fn took(&mut self, time: Span) {
        self.least = self.least.min(time);
        let mut newer = time;
        for place in &mut self.kept {
            newer = core::mem::replace(place, newer);
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

laid_out!(CalmPath { kept, least, copied, answered, withheld });

impl Default for CalmPath {
    fn default() -> Self {
        Self::new()
    }
}

/// What a server knows of all its peers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalmServer {
    copied: Share,
    /// What is left of the allowance.
    allowed: Span,
    /// When that was so.
    since: Instant,
}

impl CalmServer {
    /// A server that has answered nobody yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { copied: Share(0), allowed: MOST_ALLOWED, since: Instant::ORIGIN }
    }

    /// A new request of a peer came: it has one of the answers to the one before.
    pub fn asked(&mut self, path: &mut CalmPath, peer: &mut CalmPeer, now: Instant) {
        if peer.first != Instant::NEVER {
            path.copied.exchange_begins();
            if peer.first_copy != FirstCopy::None {
                path.copied.copy_came();
            }
            match peer.first_copy {
                FirstCopy::None | FirstCopy::Plain => {}
                FirstCopy::Answered => path.answered.next(peer.is_followed),
                FirstCopy::Withheld => path.withheld.next(peer.is_followed),
            }
            let took = now.since(peer.first);
            if took <= LONGEST {
                path.took(took);
            }
        }
        *peer = CalmPeer::new();
        self.copied.exchange_begins();
    }

    /// The answer to the newest request of a peer leaves for the first time.
    pub const fn answered(&mut self, peer: &mut CalmPeer, now: Instant) {
        (peer.first, peer.last) = (now, now);
    }

    /// A copy of the newest request of a peer came, which was answered before: is it answered once more? If so, the
    /// answer leaves now.
    pub fn asked_again(&mut self, path: &CalmPath, peer: &mut CalmPeer, now: Instant) -> Again {
        let is_first = peer.first_copy == FirstCopy::None;
        if is_first {
            self.copied.copy_came();
        } else {
            peer.is_followed = true;
        }
        let (verdict, becomes) = self.judge(path, peer.last, now);
        if is_first {
            peer.first_copy = becomes;
        }
        if verdict.answers() {
            peer.last = now;
        }
        verdict
    }

    /// A copy of an older request of a peer came, which was answered at that time for the first time.
    pub fn asked_late(&mut self, path: &CalmPath, first: Instant, now: Instant) -> Again {
        self.judge(path, first, now).0
    }

    fn judge(&mut self, path: &CalmPath, last: Instant, now: Instant) -> (Again, FirstCopy) {
        let left = self.since;
        self.since = now;
        self.allowed = self.allowed.plus(now.since(left)).min(MOST_ALLOWED);
        // The answer is still in the making.
        if last == Instant::NEVER {
            return (Again::Withhold, FirstCopy::Plain);
        }
        let Some(usual) = path.median() else { return (Again::Calm, FirstCopy::Plain) };
        let (is_slow, copied) = (usual >= path.least.doubled(), self.copied.max(path.copied));
        if copied < if is_slow { SOME } else { MANY } {
            return (Again::Calm, FirstCopy::Plain);
        }
        let age = now.since(last);
        if age >= LONGEST || age > usual.plus(tenth(usual)).plus(MARGIN) {
            return (Again::Due, FirstCopy::Plain);
        }
        if path.withheld.0.saturating_sub(path.answered.0) >= HELPS {
            return (Again::Calm, FirstCopy::Answered);
        }
        if self.allowed >= ALLOWANCE {
            self.allowed = self.allowed.minus(ALLOWANCE);
            return (Again::Allowed, FirstCopy::Answered);
        }
        (Again::Withhold, FirstCopy::Withheld)
    }
}

laid_out!(CalmServer { copied, allowed, since });

impl Default for CalmServer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
