//! The rate of the link before which the capture sits, where no request follows from an answer: a device stops to
//! retransmit when an answer came. All exchanges are most likely under the queue that the link really had.

use super::queue;
use crate::exchanges::Exchange;

/// What explains best when devices stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stopping {
    /// bit/s.
    pub rate: f64,
    /// Seconds of a loop without a queue.
    pub base: f64,
    /// Share of answers lost.
    pub lost: f64,
    /// Bytes of the buffer, if one that drops explains more than an endless one.
    pub buffer: Option<f64>,
}

/// Answers of one exchange that are looked at.
const ANSWERS: usize = 6;
/// Exchanges that are looked at.
const MOST: usize = 2000;
/// How often answers are lost, as far as it is tried.
const LOSSES: [f64; 5] = [0.003, 0.02, 0.05, 0.1, 0.2];
/// Cases of which one logarithm is taken: their product is no smaller than numbers can be.
const TOGETHER: usize = 64;
/// Rates at which the queue is replayed together.
const RATES: usize = 8;

struct Case {
    /// Place among the answers of all cases, and seconds since the first transmission, of each answer.
    answers: Vec<(usize, f64)>,
    several: bool,
    /// Seconds from the first to the last transmission, and to the one that did not come.
    last: f64,
    after_last: f64,
    /// Seconds until the next request.
    next: f64,
}

/// From the exchanges, the packets to devices, the range of timers, and the loop without a queue where it is known.
pub(crate) fn stopping(
    exchanges: &[Exchange],
    (times, sizes): (&[f64], &[u32]),
    timers: (f64, f64),
    base: Option<f64>,
) -> Option<Stopping> {
    let answered: Vec<&Exchange> = exchanges.iter().filter(|exchange| !exchange.answered.is_empty()).collect();
    let several = answered.iter().filter(|exchange| exchange.sent.len() > 1).count();
    if answered.len() < 20 || several < 10 {
        return None;
    }
    let every = answered.len() / MOST + 1;
    let mut places = Vec::new();
    let cases: Vec<Case> = answered.iter().step_by(every).map(|exchange| case(exchange, times, &mut places)).collect();
    // How long those answers wait of which cases say something, by a queue with all packets.
    let of_cases = |waits: &[f64]| -> Vec<f64> { places.iter().map(|&place: &usize| waits[place]).collect() };
    // The likelihood, or less than is asked for.
    let likelihood = |waits: &[f64], base: f64, lost: f64, least: f64| -> f64 {
        let mut sum = 0.0;
        for cases in cases.chunks(TOGETHER) {
            let each = cases.iter().map(|case| 0.98 * probability(case, waits, base, lost, timers) + 0.004);
            sum += each.product::<f64>().ln();
            // No case makes it more.
            if sum < least {
                break;
            }
        }
        sum
    };
    let nothing = vec![0.0; places.len()];
    let mut without_queue = f64::NEG_INFINITY;
    for &base in base.as_ref().map_or(&[0.1, 0.5, 1.0, 1.5, 1.9, 2.2, 2.6, 3.0][..], std::slice::from_ref) {
        for lost in LOSSES {
            without_queue = without_queue.max(likelihood(&nothing, base, lost, without_queue));
        }
    }

    let lasted = times.last()? - times.first()?;
    let carried = 8.0 * sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / lasted.max(1e-6);
    let bases = base.map_or(vec![0.1, 0.5, 1.0, 1.9], |base| vec![base]);
    let mut best: Option<(f64, Stopping)> = None;
    let mut consider = |waits: &[f64], found: Stopping, margin: f64| {
        let least = best.as_ref().map_or(f64::NEG_INFINITY, |(known, _)| known + margin);
        let likely = likelihood(waits, found.base, found.lost, least);
        if likely > least {
            best = Some((likely, found));
        }
        best.as_ref().map(|(likely, found)| (*likely, *found))
    };
    let mut coarse = None;
    let rates: Vec<f64> = geometric((0.15 * carried).max(2e3), 3e5, 80).collect();
    'rates: for rates in rates.as_chunks::<RATES>().0 {
        for (rate, (waits, longest)) in rates.iter().zip(queue::endless_at(times, sizes, *rates, &places)) {
            if longest < 0.05 {
                break 'rates;
            }
            for &base in &bases {
                for lost in LOSSES {
                    coarse = consider(&waits, Stopping { rate: *rate, base, lost, buffer: None }, 0.0);
                }
            }
        }
    }
    let (likely, coarse) = coarse?;
    if likely < without_queue + (several as f64 / every as f64 * 0.02).max(15.0) {
        return None;
    }
    let mut fine = coarse;
    let rates: Vec<f64> = geometric(coarse.rate * 0.94, coarse.rate * 1.06, 13).collect();
    let rates: &[f64; 13] = rates.as_slice().try_into().ok()?;
    for (&rate, (waits, _)) in rates.iter().zip(queue::endless_at(times, sizes, *rates, &places)) {
        fine = consider(&waits, Stopping { rate, ..coarse }, 0.0).map_or(fine, |(_, found)| found);
    }
    if times.len() < 40_000 {
        let mut known = fine;
        for rate in [fine.rate, fine.rate * 0.8, fine.rate * 1.25] {
            let longest = queue::endless(times, sizes, rate).into_iter().fold(0.0, f64::max);
            for buffer in [2e3, 4e3, 8e3, 16e3, 32e3, 64e3, 2e5] {
                if buffer * 8.0 / rate > longest {
                    break;
                }
                let waits = queue::drop_tail(times, sizes, rate, buffer);
                let waits = of_cases(&waits.into_iter().map(|wait| wait.unwrap_or(f64::INFINITY)).collect::<Vec<_>>());
                for lost in [0.003, 0.05, 0.1] {
                    let margin = if known.buffer.is_none() { 15.0 } else { 0.0 };
                    let found = Stopping { rate, base: fine.base, lost, buffer: Some(buffer) };
                    known = consider(&waits, found, margin).map_or(known, |(_, found)| found);
                }
            }
        }
    }
    best.map(|(_, found)| found)
}

fn geometric(from: f64, to: f64, steps: u32) -> impl Iterator<Item = f64> {
    let ratio = (to / from).ln() / f64::from(steps - 1);
    (0..steps).map(move |step| from * (ratio * f64::from(step)).exp())
}

fn case(exchange: &Exchange, times: &[f64], places: &mut Vec<usize>) -> Case {
    let began = exchange.began();
    let last = exchange.last_sent() - began;
    let gap = exchange.sent.windows(2).last().map_or(0.0, |pair| pair[1] - pair[0]);
    let answers = exchange.answered.iter().take(ANSWERS).filter_map(|&answer| {
        let place = times.partition_point(|&time| time < answer);
        (times.get(place) == Some(&answer)).then(|| {
            places.push(place);
            (places.len() - 1, answer - began)
        })
    });
    Case {
        answers: answers.collect(),
        several: exchange.sent.len() > 1,
        last,
        after_last: last + 2.0 * gap,
        next: exchange.next.map_or(f64::INFINITY, |next| next - began),
    }
}

/// How likely an exchange ended when it did.
fn probability(case: &Case, waits: &[f64], base: f64, lost: f64, (shortest, longest): (f64, f64)) -> f64 {
    let heard = |&(place, since): &(usize, f64)| since + waits[place] + base;
    if case.several {
        // One of the answers ended the schedule between the last transmission and the one that did not come.
        let mut before = 1.0 - lost;
        let mut sum = 0.0;
        for at in case.answers.iter().map(heard) {
            if at > case.last && at < case.after_last && at < case.next + 0.05 {
                sum += before;
            }
            before *= lost;
        }
        return sum;
    }
    let Some(at) = case.answers.first().map(heard) else { return lost * 0.05 };
    let in_time = ((longest - at) / (longest - shortest)).clamp(0.0, 1.0);
    let before_next = if at < case.next + 0.05 { 1.0 } else { 0.0 };
    (1.0 - lost) * in_time * before_next + lost * 0.05
}
