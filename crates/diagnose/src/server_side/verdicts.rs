//! Each retransmission that reached the server: had an answer come before it was sent?
//!
//! Where loops are closed, the accepted answer says so. Elsewhere the loop's time, as far as it is known or bounded, is
//! compared with the time between the answers before and the retransmission.

use std::cell::OnceCell;

use smallvec::smallvec;

use super::{Evidence, Pauses};
use crate::confidence;
use crate::exchanges::Exchange;
use crate::judgement::{Judged, Judgements};
use crate::ordered::{median_of, sorted};
use crate::stops::spurious;

/// What is compared where no exchange says which answer it accepted.
struct Surroundings<'e> {
    evidence: &'e Evidence<'e>,
    /// When exchanges began, and how many of them up to each took one transmission.
    began: Vec<f64>,
    singles_until: Vec<u32>,
    loads: OnceCell<Loads>,
}

/// For each exchange, what each of its transmissions was.
pub(super) fn judge(evidence: &Evidence<'_>) -> Vec<Judgements> {
    let around = Surroundings::of(evidence);
    let exchanges = &evidence.chapter.exchanges;
    let mut judged: Vec<Judgements> = exchanges
        .iter()
        .enumerate()
        .map(|(index, exchange)| {
            let mut of: Judgements = smallvec![Judged::FIRST; exchange.sent.len()];
            if of.len() == 1 {
                return of;
            }
            if evidence.accepted(index).is_none()
                && let Some(stopped) = by_stop(evidence, exchange)
            {
                return stopped;
            }
            for (number, place) in of.iter_mut().enumerate().skip(1) {
                *place = match evidence.accepted(index) {
                    Some(accepted) => {
                        confidence::by_loop(number > exchange.asked_by(accepted.answer), accepted.probability)
                    }
                    None => around.judge(exchange, number),
                };
            }
            of
        })
        .collect();
    // The first that came of the next request was a retransmission.
    for of_peer in evidence.chapter.by_peer.each() {
        for pair in of_peer.windows(2) {
            let lost = evidence.accepted(pair[0] as usize).is_some_and(|accepted| accepted.next_lost > 0);
            if lost && let Some(first) = judged.get_mut(pair[1] as usize).and_then(|of| of.first_mut()) {
                *first = Judged::needed(0.85);
            }
        }
    }
    judged
}

impl<'e> Surroundings<'e> {
    fn of(evidence: &'e Evidence<'e>) -> Self {
        let exchanges = &evidence.chapter.exchanges;
        let mut by_time: Vec<(f64, bool)> =
            exchanges.iter().map(|exchange| (exchange.began(), exchange.sent.len() == 1)).collect();
        by_time.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut singles = 0;
        let singles_until = by_time.iter().map(|(_, single)| {
            singles += u32::from(*single);
            singles
        });
        let singles_until = singles_until.collect();
        let began = by_time.into_iter().map(|(at, _)| at).collect();
        Self { evidence, singles_until, began, loads: OnceCell::new() }
    }

    /// The share of exchanges around a time that took one transmission: where most did, the loop is shorter than a timer.
    /// `None` of too few.
    fn singles(&self, time: f64) -> Option<f64> {
        const HALF: f64 = 5.0;
        const LEAST: usize = 10;
        let from = self.began.partition_point(|&at| at < time - HALF);
        let to = self.began.partition_point(|&at| at <= time + HALF);
        let short = LEAST.saturating_sub(to - from);
        let (from, to) = (from.saturating_sub(short), (to + short).min(self.began.len()));
        let until =
            |place: usize| place.checked_sub(1).and_then(|place| self.singles_until.get(place)).copied().unwrap_or(0);
        (to - from >= LEAST).then(|| f64::from(until(to) - until(from)) / (to - from) as f64)
    }

    fn judge(&self, exchange: &Exchange, number: usize) -> Judged {
        let evidence = self.evidence;
        let at = exchange.sent[number];
        let before: Vec<f64> = exchange.answered.iter().copied().filter(|&answer| answer <= at - 0.001).collect();
        let Some(&last) = before.last() else { return Judged::UNKNOWN };
        let waited = evidence.arrivals.as_ref().map_or(0.0, |arrivals| arrivals.busy_for(at, exchange.peer));
        if waited > 0.4 * (at - last) {
            return Judged::UNKNOWN;
        }
        let bound = |pauses: &Pauses| {
            before.iter().all(|&answer| pauses.bound_at(answer).is_some_and(|bound| at - answer > bound + 0.2))
        };
        if evidence.pauses.as_ref().is_some_and(bound) {
            return Judged::needed(0.95);
        }
        if evidence.pauses.is_none() && self.loads.get_or_init(|| Loads::of(evidence)).is_crowded(last) {
            return Judged::UNKNOWN;
        }
        match self.singles(exchange.began()) {
            Some(share) if share >= 0.6 => Judged::needed(0.8),
            Some(share) if share >= 0.3 => Judged::needed(0.65),
            _ => Judged::UNKNOWN,
        }
    }
}

/// How much is sent to devices.
struct Loads {
    times: Vec<f64>,
    /// Bytes until each packet.
    until: Vec<f64>,
    heaviest: f64,
    usual: f64,
}

impl Loads {
    fn of(evidence: &Evidence<'_>) -> Self {
        let exchanges = &evidence.chapter.exchanges;
        let (times, sizes) = evidence.sent.clone();
        let mut bytes = 0.0;
        let until = sizes.into_iter().map(|size| {
            bytes += f64::from(size);
            bytes
        });
        let mut loads = Self { times, until: until.collect(), heaviest: 0.0, usual: 0.0 };
        let last = exchanges.iter().filter_map(|exchange| exchange.answered.last());
        loads.heaviest = last.map(|&at| loads.at(at)).fold(0.0, f64::max);
        let first = exchanges.iter().filter_map(|exchange| exchange.answered.first());
        loads.usual = median_of(first.map(|&at| loads.at(at))).unwrap_or_default();
        loads
    }

    /// Bytes in the ten seconds until a time.
    fn at(&self, time: f64) -> f64 {
        let until = |place: usize| place.checked_sub(1).and_then(|place| self.until.get(place)).copied().unwrap_or(0.0);
        until(self.times.partition_point(|&at| at <= time)) - until(self.times.partition_point(|&at| at < time - 10.0))
    }

    fn is_crowded(&self, time: f64) -> bool {
        self.heaviest > 4.0 * self.usual && self.at(time) > 0.5 * self.heaviest
    }
}

/// From when the device stopped, where the loop is known; the sure and the even are told, what is between is not.
fn by_stop(evidence: &Evidence<'_>, exchange: &Exchange) -> Option<Judgements> {
    const MUCH_LOST: f64 = 0.3;
    const FULL: f64 = 0.25;
    let schedule = evidence.schedule();
    let stops = evidence.stops.as_ref().filter(|_| evidence.around(exchange.began()).is_none());
    // Where many requests are lost, as before a full uplink, a device that went on is taken for one that stopped.
    let hidden = stops.is_some_and(|stops| stops.lost_up(exchange.began()) > MUCH_LOST || evidence.saturated >= FULL);
    let spurious = match evidence.around(exchange.began()) {
        Some(around) => spurious(exchange, |time| evidence.around(time).unwrap_or(around), schedule),
        None => evidence.stops.as_ref()?.spurious(exchange, schedule),
    };
    let mut of: Judgements = spurious.into_iter().map(|likely| confidence::by_stop(likely, !hidden)).collect();
    if let Some(first) = of.first_mut() {
        *first = Judged::FIRST;
    }
    Some(of)
}

/// What of the first transmissions was lost before the server, and of how many.
pub(super) fn lost_before(evidence: &Evidence<'_>) -> (f64, usize) {
    let (shortest, longest) = evidence.range;
    let timers_seen = evidence.timers.range.is_some();
    let (mut missed, mut checked) = (0_usize, 0_usize);
    for (index, exchange) in evidence.chapter.exchanges.iter().enumerate() {
        if let Some(accepted) = evidence.accepted(index) {
            checked += 1;
            missed += usize::from(accepted.next_lost > 0);
        }
        let gaps: Vec<f64> = exchange.sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let Some(&first) = gaps.first().filter(|_| timers_seen) else { continue };
        if exchange.next.is_none() || evidence.closed.is_none() {
            let is_missed = (1.97 * shortest..=2.03 * longest).contains(&first) && first > 1.02 * longest;
            // What came is then the second and the third: of exchanges of which those came, so many lost the first.
            checked += usize::from(is_missed || gaps.len() > 1);
            missed += usize::from(is_missed);
        }
        if !(0.97 * shortest..=1.03 * longest).contains(&first) {
            continue;
        }
        // The schedule is known from the first gap: each gap that skips a step was a loss. The last that came says nothing:
        // it shows the steps before it, and whether another was sent behind it is not seen.
        let mut expected = 2.0 * first;
        for &gap in &gaps[1..] {
            let (mut lost, mut sum) = (0, expected);
            while gap > 1.25 * sum && lost < 3 {
                expected *= 2.0;
                sum += expected;
                lost += 1;
            }
            missed += lost;
            checked += lost + 1;
            expected *= 2.0;
        }
        checked -= usize::from(gaps.len() > 1);
    }
    (missed as f64 / checked.max(1) as f64, checked)
}

/// The same of periodic devices: requests that come a timer after their time.
pub(super) fn late_by_a_timer(evidence: &Evidence<'_>) -> Option<(f64, usize)> {
    let (shortest, longest) = evidence.range;
    evidence.rhythm.filter(|rhythm| rhythm.is_periodic() && rhythm.jitter < 0.05 * shortest)?;
    let (mut missed, mut checked) = (0_usize, 0_usize);
    for exchanges in evidence.chapter.peers() {
        let began: Vec<f64> = exchanges.map(Exchange::began).collect();
        if began.len() < 4 {
            continue;
        }
        let period = median_of(began.windows(2).map(|pair| pair[1] - pair[0])).filter(|&period| period > 0.0)?;
        let off: Vec<f64> =
            began.iter().map(|at| (at - began[0] + period / 2.0).rem_euclid(period) - period / 2.0).collect();
        let middle = crate::ordered::median(&sorted(off.iter().copied()))?;
        checked += off.len();
        missed += off.iter().filter(|&&off| off - middle > 0.95 * shortest && off - middle < 1.05 * longest).count();
    }
    (checked > 0).then(|| (missed as f64 / checked as f64, checked))
}

/// Whether most exchanges around a time took one transmission.
pub(super) fn mostly_single<'e>(evidence: &'e Evidence<'e>) -> impl Fn(f64) -> bool + 'e {
    let around = Surroundings::of(evidence);
    move |time| around.singles(time).is_some_and(|share| share >= 0.6)
}

/// The share of devices' first exchanges whose first gap is that of later transmissions, if it is that of far fewer later
/// exchanges: first transmissions are missing at the beginning.
pub(super) fn missing_first(evidence: &Evidence<'_>) -> Option<f64> {
    let (mut first, mut later) = ((0_usize, 0_usize), (0_usize, 0_usize));
    for exchanges in evidence.chapter.peers() {
        for (place, exchange) in exchanges.enumerate() {
            let [one, other, ..] = exchange.sent[..] else { continue };
            let count = if place == 0 { &mut first } else { &mut later };
            count.0 += 1;
            count.1 += usize::from(other - one > 1.3 * evidence.range.1);
        }
    }
    let is_much = first.1 >= 5 && first.1 * 6 > first.0 && first.1 * later.0 > 2 * later.1 * first.0;
    is_much.then(|| first.1 as f64 / first.0 as f64)
}
