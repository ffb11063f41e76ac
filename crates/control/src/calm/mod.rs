//! Calm: a client that grades what answers prove, and slows down only where they prove congestion.
//!
//! Ours; `docs/calm.md` has the argument, the sources of every number and what each rule is worth. In short:
//!
//! * Copies are named in their tokens. A reply that names the last copy is a certain round trip. One that names an earlier
//!   copy is none, because a server that stores replies names the copy it processed and not the one whose reply got through.
//! * A copy that is proven lost counts into a loss rate. Waits grow fast only where that rate is high and a queue is
//!   likely too, and are kept for the next exchange only where its answer came late: loss alone is no congestion.
//! * Where loss looks like congestion one request is open at a time, however many may be.
//! * While a queue stands, the next request waits for a few round trips *before* it leaves: a queue is the same
//!   throughput with longer round trips.

mod parts;

pub use parts::{Parts, Without};

use crate::{
    backoff::{Factor, longer, shorter},
    controller::{Admit, Class, Controller, Cx, End, Exchange, Naming, Reason, View, Wait, Wishes},
    estimator::Share,
    evidence::{Evidence, Named, Sample},
    layout::laid_out,
    least_wait::at_least,
    pacing::Pacing,
    preset::presets,
    setting::{Place, Setting, SettingConflict},
    time::{Instant, Span, tenth},
};
use parts::{
    AGEING, BLIND_PLAIN, FIRST_STEP, FORGET, GAIN, LAST_BOUND, LATE, LEAST_MARGIN, LONG_STEP, LONGEST_PAUSE,
    LOST_AT_FIRST, MANY_LOST, NEAR, OTHER_STEP, SEEN_AT_FIRST, SPREAD, UNMEASURED, WHOLE,
};

presets! { Calm {
    CALM = 128, Parts::CALM, {
        name: "calm",
        label: "Calm",
        source: "docs/calm.md",
        readings: &["D2"],
        summary: "named copies, graded evidence, and a backoff that only proven congestion keeps",
    };
    CALM_UNLIMITED = 129, Parts::UNLIMITED, {
        name: "calm-unlimited",
        label: "Calm, unlimited",
        source: "docs/calm.md",
        readings: &["D2"],
        summary: "calm without a least wait, and with backoff steps that a long wait does not bound",
    };
} }

/// One peer under calm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calm {
    pacing: Pacing,
    /// When an exchange ended last, by an answer or without one; never before the first.
    ended: Instant,
    /// From then on no request leaves for the first time for so long.
    hold: Span,
    srtt: Span,
    rttvar: Span,
    /// The shortest certain round trip; [`Span::MAX`] before the first.
    least: Span,
    /// The last four round trips, the latest first, which may be a guess; [`Span::MAX`] where there was none. Before the first
    /// certain one the last of them is what is remembered of the shortest.
    recent: [Span; 4],
    /// How far samples fall below the one before, on average.
    falls: Span,
    /// A backed-off wait that the next exchange begins with; zero for none.
    kept: Span,
    parts: Parts,
    /// The share of lost copies, in thousandths.
    lost: u16,
    /// Copies whose fate is known; counts up to the gain of the loss rate.
    seen: u8,
    /// Samples, a guess included; counts up to [`UNMEASURED`].
    samples: u8,
}

laid_out!(Calm { pacing, hold, ended, srtt, rttvar, least, recent, falls, kept, parts, lost, seen, samples });

impl Controller for Calm {
    fn admit(&self, class: Class, _len: u16, cx: Cx) -> Admit {
        if class == Class::Confirmable && cx.open > 1 && self.goes_alone(cx.now) {
            return Admit::WhenOneEnds;
        }
        let held = cx.now.after(self.left(cx.now));
        match self.pacing.admit(class, cx) {
            Admit::Now if held > cx.now => Admit::At(held),
            Admit::At(at) => Admit::At(at.max(held)),
            paced => paced,
        }
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        if self.is_stale(cx.now) {
            *self = Self { pacing: self.pacing, ..Self::new(self.parts) };
        }
        let (low, high, reason) = if self.samples == 0 {
            (self.parts.ack_timeout, Factor::ONE_AND_A_HALF.times(self.parts.ack_timeout), Reason::Blind)
        } else {
            let rto = self.rto();
            (rto, rto.plus(tenth(self.srtt)), Reason::Initial)
        };
        let drawn = cx.chance.between(low, high);
        let (wait, reason) = if self.kept > drawn { (self.kept, Reason::Carried) } else { (drawn, reason) };
        let wait = shorter(wait, self.parts.longest_first());
        exchange.begin(cx.now, wait);
        at_least(self.parts.least_wait, exchange, Wait::then_retransmit(wait, reason))
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        let (current, before) = (exchange.current(), exchange.retransmissions());
        let congested = self.is_congested(before);
        let (mut factor, spreads) = if self.samples == 0 && before == 0 {
            (OTHER_STEP, true)
        } else if before >= LATE {
            (Factor::ONE_AND_A_HALF, false)
        } else if congested && !self.parts.lacks(Without::LongSteps) {
            (LONG_STEP, true)
        } else if before == 0 && !self.parts.lacks(Without::ShortSteps) {
            (FIRST_STEP, false)
        } else {
            (OTHER_STEP, false)
        };
        let impatient = current >= self.parts.patience;
        if impatient && factor > Factor::TWO {
            factor = Factor::TWO;
        }
        let next = factor.times(current);
        let next = if spreads && !impatient { cx.chance.between(next, SPREAD.times(next)) } else { next };
        let wait = shorter(next, longer(self.parts.max_wait, current));
        exchange.advance(wait);
        at_least(self.parts.least_wait, exchange, Wait::then_retransmit(wait, Reason::BackedOff))
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        let marked = if sample.is_marked() { self.pause_of_mark(exchange) } else { Span::ZERO };
        if sample.evidence() == Evidence::None {
            return self.hold_back(marked, cx);
        }
        self.count(self.proven(&sample), true);
        let wait = shorter(exchange.current(), self.parts.max_wait);
        let last = sample.since_last();
        let certain = match sample.evidence() {
            Evidence::Exact(rtt) => Some(rtt.span()),
            Evidence::Echoed { at_most } if self.parts.lacks(Without::Grades) => Some(at_most),
            Evidence::Echoed { at_most } if self.least == Span::MAX => {
                self.guess(at_most);
                None
            }
            Evidence::Echoed { .. } | Evidence::Ambiguous { .. } | Evidence::None => {
                // Late itself, or stored and sent once more: nobody knows how long its way was. It got through, and that is all.
                self.kept = if self.fits(last) { Span::ZERO } else { longer(self.kept, wait) };
                None
            }
        };
        let mut pause = marked;
        if let Some(rtt) = certain {
            self.take(rtt);
            let is_late = sample.retransmissions() > 0 && !self.is_near(rtt);
            self.kept = if is_late { wait } else { Span::ZERO };
            pause = longer(marked, self.pause());
        }
        self.hold_back(pause, cx);
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        let wait = shorter(exchange.current(), self.parts.max_wait);
        if why == End::Cancelled && exchange.retransmissions() > 0 {
            self.kept = longer(self.kept, wait);
        } else if why == End::GaveUp {
            self.count(exchange.retransmissions().saturating_add(1), false);
            self.kept = shorter(exchange.current().doubled(), self.parts.max_wait);
            self.hold_back(Span::ZERO, cx);
        }
    }

    /// The next such message waits for the timeout; one in three seconds before any answer (RFC 8085 §3.1.3).
    fn on_plain_send(&mut self, _len: u16, cx: Cx) {
        let timeout = if self.samples == 0 { longer(self.rto(), BLIND_PLAIN) } else { self.rto() };
        self.pacing.sent(timeout, cx.now);
    }

    fn wishes(&self) -> Wishes {
        Wishes {
            naming: Naming::Token,
            confirmable_every: Pacing::CONFIRMABLE_EVERY,
            last_wait: self.parts.last_wait(),
            ecn: true,
            ..Wishes::NONE
        }
    }

    fn view(&self) -> View {
        let known = self.samples > 0;
        View {
            rto: Some(self.rto()),
            srtt: known.then_some(self.srtt),
            rttvar: known.then_some(self.rttvar),
            carried: (self.kept > Span::ZERO).then_some(self.kept),
            ..View::default()
        }
    }

    fn base_rtt(&self) -> Option<Span> {
        (self.least != Span::MAX).then_some(self.least)
    }

    fn recall(&mut self, base_rtt: Span) {
        let [.., remembered] = &mut self.recent;
        if self.least == Span::MAX && base_rtt > Span::ZERO {
            *remembered = base_rtt;
        }
    }

    fn shortest_wait(&self) -> Span {
        longer(self.parts.least_wait, Span::from_micros(1))
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        if copy == 0 {
            return self.parts.longest_first();
        }
        let longest = shorter(SPREAD.times(LONG_STEP.times(previous)), longer(self.parts.max_wait, previous));
        longer(longest, self.parts.least_wait)
    }
}

impl Calm {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = Parts::SETTINGS;

    /// A peer about which nothing is known.
    #[must_use]
    pub const fn new(parts: Parts) -> Self {
        Self {
            pacing: Pacing::UNUSED,
            ended: Instant::NEVER,
            hold: Span::ZERO,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            least: Span::MAX,
            recent: [Span::MAX; 4],
            falls: Span::ZERO,
            kept: Span::ZERO,
            parts,
            lost: LOST_AT_FIRST,
            seen: SEEN_AT_FIRST,
            samples: 0,
        }
    }

    /// The share of copies that are lost, in thousandths.
    #[must_use]
    pub const fn loss(&self) -> u16 {
        self.lost
    }

    /// For how long from now on no request leaves for the first time.
    fn left(&self, now: Instant) -> Span {
        if self.hold == Span::ZERO { Span::ZERO } else { self.ended.after(self.hold).since(now) }
    }

    /// No exchange ended for so long that what was learnt is worth nothing.
    fn is_stale(&self, now: Instant) -> bool {
        now.since(self.ended) > FORGET
    }

    fn rto(&self) -> Span {
        if self.samples == 0 {
            return self.parts.ack_timeout;
        }
        let [latest, ..] = self.recent;
        let rto = self.srtt.plus(longer(self.rttvar.times(4), LEAST_MARGIN));
        if self.parts.lacks(Without::LastBound) { rto } else { longer(rto, LAST_BOUND.times(latest)) }
    }

    /// Whether loss looks like congestion, if so many retransmissions are lost too: a high rate of it, and either a queue or
    /// too few samples to exclude one.
    fn is_congested(&self, further: u8) -> bool {
        if self.samples == 0 {
            return true;
        }
        // A round trip that is a twentieth above the shortest.
        let queue = exceeds((self.srtt, 20), (self.least, 21));
        let mut lost = self.lost;
        for _ in 0..further.min(LATE) {
            lost = moved(lost, GAIN, WHOLE);
        }
        (self.samples < UNMEASURED || queue) && lost >= MANY_LOST
    }

    /// Whether a window larger than one is closed to one: the loss that there is looks like congestion. What nobody knows yet
    /// closes it no more than RFC 7252 does.
    #[cfg_attr(target_os = "none", inline(never))]
    fn goes_alone(&self, now: Instant) -> bool {
        self.samples > 0 && !self.is_stale(now) && self.is_congested(0) && !self.parts.lacks(Without::Window)
    }

    /// How many copies the reply proves lost.
    fn proven(&self, sample: &Sample) -> u8 {
        let copies = sample.retransmissions();
        match sample.named() {
            Named::Copy(copy) if copy == copies => copies,
            // It came when an answer to the last copy would have, whatever it names.
            _ if self.fits(sample.since_last()) && !self.parts.lacks(Without::Grades) => copies,
            Named::Copy(copy) => copy,
            Named::Nothing | Named::Further => 0,
        }
    }

    /// As long as round trips are without a long queue: nine tenths of the shortest one, and up to twice as long.
    #[cfg_attr(target_os = "none", inline(never))]
    fn fits(&self, age: Span) -> bool {
        self.least != Span::MAX && !exceeds((self.least, 9), (age, 10)) && age <= self.least.doubled()
    }

    /// A round trip that shows no long queue.
    fn is_near(&self, rtt: Span) -> bool {
        rtt <= self.least.doubled() && (rtt < NEAR || exceeds((self.least, 5), (rtt, 4)))
    }

    /// So many copies were lost, and then one got through or the exchange was given up.
    fn count(&mut self, lost: u8, answered: bool) {
        for _ in 0..lost {
            self.see(WHOLE);
        }
        if answered {
            self.see(0);
        }
    }

    /// One copy's fate.
    fn see(&mut self, lost: u16) {
        self.seen = self.seen.saturating_add(1).min(GAIN);
        self.lost = moved(self.lost, self.seen, lost);
    }

    /// Before anything is certain a reply that names an earlier copy is a guess on the long side.
    fn guess(&mut self, rtt: Span) {
        (self.srtt, self.rttvar) = (rtt, Share::QUARTER.blend(Span::ZERO, rtt));
        let [latest, ..] = &mut self.recent;
        *latest = rtt;
        self.samples = self.samples.saturating_add(1).min(UNMEASURED);
        self.kept = Span::ZERO;
    }

    fn take(&mut self, rtt: Span) {
        if self.least == Span::MAX {
            (self.srtt, self.rttvar) = (rtt, Share::QUARTER.blend(Span::ZERO, rtt));
            let [.., remembered] = self.recent;
            self.recent = [rtt, Span::MAX, Span::MAX, Span::MAX];
            self.least = remembered;
        } else {
            let [a, b, c, _] = self.recent;
            self.recent = [rtt, a, b, c];
            self.falls = Share::QUARTER.blend(self.falls, a.minus(rtt));
            self.rttvar = Share::QUARTER.blend(self.rttvar, self.srtt.distance(rtt));
            self.srtt = Share::EIGHTH.blend(self.srtt, rtt);
        }
        // What was the shortest once may be so no more.
        self.least = shorter(AGEING.blend(self.least, self.srtt), rtt);
        self.samples = self.samples.saturating_add(1).min(UNMEASURED);
    }

    /// How long the next request waits while a queue stands.
    fn pause(&self) -> Span {
        if self.parts.lacks(Without::DelayPause) {
            return Span::ZERO;
        }
        let [a, b, c, d] = self.recent;
        let shortest = shorter(shorter(a, b), shorter(c, d));
        let falls = if self.parts.lacks(Without::Falls) { Span::ZERO } else { self.falls.times(6) };
        let standing = shortest.minus(falls);
        let above = standing.minus(longer(NEAR, Factor::ONE_AND_A_HALF.times(self.least)));
        // One round trip shows no queue that stands, whatever is remembered.
        let most = if b == Span::MAX { standing } else { standing.times(8) };
        shorter(shorter(above.times(16), most), LONGEST_PAUSE)
    }

    /// How long the next request waits after an answer that a queue marked: as if the answer had been lost, and with one request
    /// open at a time that is the wait in force (RFC 3168 §6.1.2, of a congestion window of one), twice as long as the pause before
    /// if the request left after that one. Of one that left before, the round trip has had its reaction.
    fn pause_of_mark(&self, exchange: &Exchange) -> Span {
        let before = if exchange.started() < self.ended { Span::ZERO } else { self.hold.doubled() };
        shorter(longer(shorter(exchange.current(), self.parts.max_wait), before), LONGEST_PAUSE)
    }

    /// The next request leaves no sooner than after a pause of about this length.
    fn hold_back(&mut self, pause: Span, cx: Cx) {
        let drawn = cx.chance.between(pause.halved(), Factor::ONE_AND_A_HALF.times(pause));
        (self.hold, self.ended) = (longer(drawn, self.left(cx.now)), cx.now);
    }

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        self.parts.place(setting)
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        Setting::AckTimeout.not_above(self.parts.ack_timeout, Setting::MaxWait, self.parts.max_wait)
    }
}

/// Whether so many times the one length is more than so many times the other, without a limit.
#[cfg_attr(target_os = "none", inline(never))]
const fn exceeds((one, times): (Span, u32), (other, times_other): (Span, u32)) -> bool {
    (one.as_micros() as u64).wrapping_mul(times as u64) > (other.as_micros() as u64).wrapping_mul(times_other as u64)
}

/// An average in thousandths after one of `gain` values moved it, cut off. A gain that is none of those in use moves nothing.
///
/// By a multiplication, as in [`time`](crate::time): the sum is at most 1000 times [`GAIN`].
#[cfg_attr(target_os = "none", inline(never))]
fn moved(average: u16, gain: u8, value: u16) -> u16 {
    let sum = u32::from(average).wrapping_mul(u32::from(gain).wrapping_sub(1)).wrapping_add(u32::from(value));
    match PARTS.get(usize::from(gain.wrapping_sub(LEAST_GAIN))) {
        Some(part) => (sum.wrapping_mul(u32::from(*part)) >> 18) as u16,
        None => average,
    }
}

/// The smallest gain in use: a peer is known as if [`SEEN_AT_FIRST`] copies had been seen.
const LEAST_GAIN: u8 = SEEN_AT_FIRST + 1;

/// 2¹⁸ divided by each gain from the smallest to [`GAIN`], rounded up.
const PARTS: [u16; 8] = [52_429, 43_691, 37_450, 32_768, 29_128, 26_215, 23_832, 21_846];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_moved_by_what_division_gives() {
        assert_eq!(usize::from(GAIN - LEAST_GAIN) + 1, PARTS.len());
        for gain in LEAST_GAIN..=GAIN {
            for average in 0..=WHOLE {
                for value in [0, 1, WHOLE / 2, WHOLE] {
                    let sum = u32::from(average) * u32::from(gain - 1) + u32::from(value);
                    assert_eq!(
                        u32::from(moved(average, gain, value)),
                        sum / u32::from(gain),
                        "{average} {gain} {value}"
                    );
                }
            }
        }
        assert_eq!(moved(7, 0, WHOLE), 7);
    }

    #[test]
    fn a_peer_stays_small() {
        assert!(size_of::<Calm>() <= 80, "{}", size_of::<Calm>());
    }
}
