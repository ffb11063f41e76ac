//! Loops that are closed: a request follows an answer as soon as its device has it.

use super::{LONGEST_LOOP, USUAL_TIMER};
use crate::acceptance::{Acceptance, accepted};
use crate::arrivals::Arrivals;
use crate::exchanges::{Chapter, Exchange};
use crate::ordered::{quantile, sorted};
use crate::path::loop_time::{Curve, Track, track};
use crate::rhythm::Rhythm;
use crate::timers::Timers;

/// In a closed loop so many requests follow an answer after the same time.
const CLOSED: f64 = 0.55;

/// A closed loop: its time, and what was accepted.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) curve: Curve,
    pub(super) acceptance: Acceptance,
    /// The longest loop, seconds.
    pub(super) longest: f64,
    /// Without a queue it is no longer, seconds.
    pub(super) base: f64,
    /// It was seen while the path was idle, and not only during a queue.
    pub(super) base_is_idle: bool,
}

/// The chapter with the number of open exchanges for which the loop is clear, if it is for any: where requests are lost,
/// what follows what cannot be told. And that number.
pub(super) fn followed(chapter: &Chapter) -> (Chapter, Option<usize>) {
    const MOST_OPEN: usize = 8;
    let mut chapter = chapter.clone();
    let mut clearest = (CLOSED, usize::MAX);
    for open in 1..=MOST_OPEN {
        chapter.follow(open);
        let agreement = track(&chapter, LONGEST_LOOP * USUAL_TIMER).agreement;
        if agreement > clearest.0 {
            clearest = (agreement, open);
        }
    }
    chapter.follow(clearest.1);
    (chapter, (clearest.1 <= MOST_OPEN).then_some(clearest.1))
}

pub(super) fn is_closed(
    track: &Track,
    exchanges: &[Exchange],
    rhythm: Option<Rhythm>,
    timers: &Timers,
    (_, longest): (f64, f64),
    holes: f64,
) -> bool {
    // Where requests are lost, many come a timer later.
    let enough = if holes > 0.03 { 0.3 } else { CLOSED };
    if track.agreement < enough || rhythm.is_some_and(|rhythm| rhythm.is_periodic() && rhythm.same > 0.5) {
        return false;
    }
    // A device that waits so long for its answer sends again meanwhile: where most of that is missing, it only paused.
    let longest = if timers.gaps >= 20 { 1.05 * longest } else { 8.0 };
    let (mut expected, mut seen) = (0, 0);
    for sample in &track.samples {
        let Some(exchange) = sample.exchange.and_then(|index| exchanges.get(index)) else { continue };
        let Some(&delay) = sample.delays.first().filter(|delay| track.agrees(sample.at, **delay)) else { continue };
        let sent_again = (delay / longest + 1.0).log2() as usize;
        expected += sent_again;
        seen += sent_again.min(exchange.sent.len() - 1);
    }
    2 * seen >= expected || follows_the_first(track)
}

/// Whether requests follow the first of several answers, sooner than reports come: it was accepted, and the others waited
/// for nothing.
fn follows_the_first(track: &Track) -> bool {
    const FEW: usize = 8;
    let several = track.samples.iter().filter(|sample| sample.delays.len() > 1);
    let (mut all, mut first) = (0, 0);
    for sample in several {
        all += 1;
        first += usize::from(sample.delays[0] <= Rhythm::LEAST_PERIOD && track.agrees(sample.at, sample.delays[0]));
    }
    all >= FEW && first * 5 >= all * 4
}

pub(super) fn closed(
    chapter: &Chapter,
    track: &Track,
    range: (f64, f64),
    arrivals: Option<&Arrivals>,
) -> Option<Closed> {
    let exchanges = &chapter.exchanges;
    let curve = track.curve(LONGEST_LOOP * range.1)?;
    let acceptance = accepted(exchanges, track, &curve, range);
    let of = |index: usize| -> Option<&Exchange> { exchanges.get(index) };
    let samples = || track.samples.iter().filter_map(|sample| Some((sample.exchange?, sample)));
    let followed = |index: usize| {
        let exchange = of(index)?;
        let accepted = acceptance.of.get(index).copied().flatten().filter(|accepted| accepted.next_lost == 0)?;
        let answer = *exchange.answered.get(accepted.answer)?;
        Some((answer, exchange.next? - answer))
    };
    let single = sorted(samples().filter_map(|(index, sample)| {
        let exchange = of(index)?;
        (exchange.sent.len() == 1 && exchange.answered.len() == 1).then_some(*sample.delays.first()?)
    }));
    let loops = sorted(samples().filter_map(|(index, _)| Some(followed(index)?.1)));
    let base = single.get(2.min(single.len().saturating_sub(1))).or(loops.first()).copied()?;
    let (to_devices, _) = chapter.direction(false);
    let idle = sorted(samples().filter_map(|(index, _)| {
        let exchange = of(index)?;
        let (&[answer], &[_], next) = (&exchange.answered[..], &exchange.sent[..], exchange.next?) else { return None };
        let came_at_once = arrivals.is_none_or(|arrivals| arrivals.at_once(next, exchange.peer));
        let before = to_devices.partition_point(|&at| at < answer).checked_sub(1).and_then(|at| to_devices.get(at));
        let quiet = before.map_or(f64::INFINITY, |before| answer - before);
        // Nothing was sent to devices for half a loop before.
        (came_at_once && quiet > 0.5 * (next - answer)).then_some(next - answer)
    }));
    let sharp = sorted(samples().filter_map(|(index, _)| {
        let (answer, delay) = followed(index)?;
        ((delay - curve.at(answer)).abs() < 3.0 * acceptance.scatter + 0.05).then_some(delay)
    }));
    let ceiling = curve.highest();
    let longest = quantile(&sharp, 0.998).map_or(ceiling, |high| high.min(ceiling + 3.0 * acceptance.scatter + 0.05));
    let base_is_idle = idle.get(2).is_some_and(|&third| third < 1.1 * base);
    Some(Closed { curve, acceptance, longest, base, base_is_idle })
}
