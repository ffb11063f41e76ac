//! How much the queues hold, and what the radio loses besides.

use super::{Downlink, Evidence, Followed, Losses, Reaction, losses, quantile, queue, sorted};
use crate::judgement::{Judgements, Verdict};
use crate::ordered::median_of;

/// What is known of the downlink's queue and losses, and of the uplink's queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queues {
    /// Bytes that the downlink's queue holds, or held.
    pub downlink: Option<(f64, Filled)>,
    pub losses: Losses,
    /// Bytes that waited in the uplink, and whether it was full.
    pub uplink: Option<(f64, bool)>,
    /// The queue is the uplink's.
    pub at_uplink: bool,
    /// A shorter loop without a queue than was seen, by replay.
    pub base: Option<f64>,
}

/// How a queue's bytes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// It was full.
    Full,
    /// So much waited, and nothing was dropped.
    Waited,
    /// So much waited if the rate is what it seems.
    Modelled,
}

pub(super) fn queues(evidence: &Evidence<'_>, judged: &[Judgements], lost_up: f64) -> Queues {
    let mut found = Queues { losses: losses(met(evidence, judged)), ..Queues::default() };
    match (&evidence.closed, evidence.downlink) {
        (Some(_), Downlink::Reactions(reaction)) => behind_reactions(evidence, reaction, &mut found),
        (_, Downlink::Stopping(model)) => {
            if let Some(buffer) = model.buffer {
                found.downlink = Some((buffer, Filled::Full));
            } else if let Some(replayed) = &evidence.replayed {
                found.downlink = Some(((replayed.longest - replayed.base) * model.rate / 8.0, Filled::Modelled));
            }
        }
        _ => {}
    }
    let uplink = evidence.uplink.filter(|_| evidence.saturated >= 0.25 && !evidence.is_paced);
    if let Some(uplink) = uplink
        && evidence.downlink.known().is_none()
    {
        found.at_uplink = true;
        let is_full = lost_up > 0.1 || evidence.holes > 0.03;
        found.uplink = wait_of_loops(evidence).map(|waited| (waited * uplink.rate / 8.0, is_full));
        found.downlink = None;
    }
    found
}

/// How long requests waited in the uplink, if nothing waited elsewhere.
fn wait_of_loops(evidence: &Evidence<'_>) -> Option<f64> {
    let (closed, base) = (evidence.closed.as_ref()?, evidence.base?);
    let sharp = evidence.followed().filter(|followed| {
        let loop_time = followed.next - followed.answer;
        (loop_time - closed.curve.at(followed.answer)).abs() < 3.0 * closed.acceptance.scatter + 0.05
    });
    longest_wait(evidence, sharp.map(|followed| (followed.next - followed.answer - base, followed)))
}

/// How long a loop was longer than without a queue: nothing waits longer than its link had been busy.
fn longest_wait(evidence: &Evidence<'_>, loops: impl Iterator<Item = (f64, Followed)>) -> Option<f64> {
    /// Loops that were so much longer than the uplink was busy, seconds, waited elsewhere.
    const ELSEWHERE: f64 = 0.3;
    let arrivals = evidence.arrivals.as_ref()?;
    let waits: Vec<(f64, f64)> =
        loops.map(|(waited, Followed { next, peer, .. })| (waited, arrivals.busy_for(next, peer))).collect();
    let elsewhere = quantile(&sorted(waits.iter().map(|(waited, busy)| waited - busy)), 0.98)?;
    let longest = quantile(&sorted(waits.iter().map(|(waited, busy)| waited.min(*busy))), 0.99)?;
    (elsewhere < ELSEWHERE).then_some(longest.max(0.0))
}

/// Answers with the loop that they met and whether they were lost.
fn met(evidence: &Evidence<'_>, judged: &[Judgements]) -> Vec<(f64, bool)> {
    let is_told = evidence.closed.is_some() || evidence.replayed.is_some();
    let around = (!is_told).then(|| super::verdicts::mostly_single(evidence));
    let mut met = Vec::new();
    for (index, exchange) in evidence.chapter.exchanges.iter().enumerate() {
        let of = judged.get(index).map(Judgements::as_slice).unwrap_or_default();
        if let (Some(accepted), Some(closed)) = (evidence.accepted(index), &evidence.closed) {
            let heard = exchange.answered.iter().take(accepted.answer + 1).enumerate();
            met.extend(heard.map(|(answer, &at)| (closed.curve.at(at), answer < accepted.answer)));
        } else if let Some(replayed) = &evidence.replayed
            && !exchange.answered.is_empty()
        {
            let last = of.iter().rposition(|judged| judged.verdict != Verdict::Spurious).unwrap_or_default();
            let heard = exchange.answered.iter().take(last + 1).enumerate();
            met.extend(heard.map(|(answer, &at)| {
                let lost = answer < last && of.get(answer + 1).is_some_and(|next| next.verdict == Verdict::Needed);
                (replayed.at(at), lost)
            }));
        } else if around.as_ref().is_some_and(|around| around(exchange.began())) {
            let answers = exchange.answered.len();
            met.extend((0..answers).map(|answer| (0.0, answer + 1 < answers)));
        }
    }
    met
}

/// The buffer whose drops agree best with the answers that were lost.
fn behind_reactions(evidence: &Evidence<'_>, reaction: Reaction, found: &mut Queues) {
    let rate = reaction.rate;
    let Some(closed) = &evidence.closed else { return };
    let (times, sizes) = (&evidence.sent.0[..], &evidence.sent.1[..]);
    let span = closed.longest - closed.base;
    let mut waits: Vec<Option<f64>> = queue::endless(times, sizes, rate).into_iter().map(Some).collect();
    let offered = waits.iter().flatten().copied().fold(0.0, f64::max);
    let lost = found.losses.all.unwrap_or_default();
    let enough = lost > 0.0 && lost * found.losses.seen as f64 >= 8.0;
    let mut full = found.losses.queue_was_full;
    let mut buffer = None;
    // More was offered than ever waited: the rest was dropped.
    if enough && (full || offered > 1.3 * span + 0.5) && times.len() < 60_000 {
        let known = known_answers(evidence);
        let largest = sizes.iter().copied().max().map_or(0.0, f64::from);
        let mut best = (0.15, None);
        let mut consider = |size: f64| {
            let waits = queue::drop_tail(times, sizes, rate, size);
            let agreement = agreement(&known, &waits);
            if agreement > best.0 {
                best = (agreement, Some((size, waits)));
            }
        };
        let (low, high) = (1.5 * largest, (3.0 * largest).max(1.3 * span * rate / 8.0));
        for step in 0..24 {
            consider(low * ((high / low).ln() * f64::from(step) / 23.0).exp());
        }
        if let Some(coarse) = best.1.as_ref().map(|(size, _)| *size) {
            let mut consider = |size: f64| {
                let waits = queue::drop_tail(times, sizes, rate, size);
                let agreement = agreement(&known, &waits);
                if agreement > best.0 {
                    best = (agreement, Some((size, waits)));
                }
            };
            for step in 0..13 {
                let size = coarse * (-0.18 + 0.03 * f64::from(step)).exp();
                if size >= largest {
                    consider(size);
                }
            }
        }
        if let Some((size, replayed)) = best.1 {
            (buffer, full) = (Some(size), true);
            let passed: Vec<bool> =
                known.iter().filter(|(place, _)| replayed[*place].is_some()).map(|(_, lost)| *lost).collect();
            found.losses.seen = passed.len();
            found.losses.radio = Some(passed.iter().filter(|lost| **lost).count() as f64 / passed.len().max(1) as f64);
            waits = replayed;
        }
    }
    let longest = waits.iter().flatten().copied().fold(0.0, f64::max);
    found.downlink = Some(match buffer {
        Some(size) => (size, Filled::Full),
        None if full => (span * rate / 8.0, Filled::Full),
        None => {
            let waited = longest.min(span) * rate / 8.0;
            (waited, if reaction.is_exact() { Filled::Waited } else { Filled::Modelled })
        }
    });
    // What is left of the loop without the downlink's queue.
    let rest = rest_of_loop(evidence, &waits);
    if rest.len() <= 20 {
        return;
    }
    let service = 8.0 * median_of(sizes.iter().map(|&size| f64::from(size))).unwrap_or_default() / rate;
    let all = sorted(rest.iter().map(|(rest, _)| *rest));
    if let Some(shorter) = quantile(&all, 0.02).map(|rest| rest + service)
        && !full
        && shorter > 0.0
        && evidence.base.is_none_or(|base| shorter < base)
    {
        found.base = Some(shorter);
    }
    if let (Some(uplink), Some(base)) = (evidence.uplink, found.base.or(evidence.base))
        && evidence.saturated >= 0.25
        && let Some(longest) = longest_wait(evidence, rest.iter().map(|(rest, of)| (rest - (base - service), *of)))
    {
        let stands =
            longest > 0.5 && quantile(&all, 0.5).is_some_and(|middle| middle - (base - service) > 0.8 * longest);
        found.uplink = Some((longest * uplink.rate / 8.0, stands));
    }
}

/// Answers of which it is known whether they were lost, by their place among the packets to devices.
fn known_answers(evidence: &Evidence<'_>) -> Vec<(usize, bool)> {
    let times = &evidence.sent.0;
    let mut known = Vec::new();
    for (index, exchange) in evidence.chapter.exchanges.iter().enumerate() {
        let Some(accepted) = evidence.accepted(index) else { continue };
        for (answer, &at) in exchange.answered.iter().take(accepted.answer + 1).enumerate() {
            let place = times.partition_point(|&time| time < at);
            if times.get(place) == Some(&at) {
                known.push((place, answer < accepted.answer));
            }
        }
    }
    known
}

/// The correlation of being dropped and having been lost.
fn agreement(known: &[(usize, bool)], waits: &[Option<f64>]) -> f64 {
    let (mut both, mut dropped, mut lost) = (0.0, 0.0, 0.0);
    for &(place, was_lost) in known {
        let was_dropped = waits[place].is_none();
        dropped += f64::from(u8::from(was_dropped));
        lost += f64::from(u8::from(was_lost));
        both += f64::from(u8::from(was_dropped && was_lost));
    }
    let count = known.len().max(1) as f64;
    let (dropped, lost, both) = (dropped / count, lost / count, both / count);
    let spread = (dropped * (1.0 - dropped) * lost * (1.0 - lost)).sqrt();
    if spread > 0.0 { (both - dropped * lost) / spread } else { f64::NEG_INFINITY }
}

/// What loops had besides the wait in the downlink.
fn rest_of_loop(evidence: &Evidence<'_>, waits: &[Option<f64>]) -> Vec<(f64, Followed)> {
    let times = &evidence.sent.0;
    let rest = evidence.followed().filter_map(|followed| {
        let Followed { answer, next, .. } = followed;
        let place = times.partition_point(|&time| time < answer);
        let wait = waits.get(place).copied().flatten().filter(|_| times.get(place) == Some(&answer))?;
        Some((next - answer - wait, followed))
    });
    rest.collect()
}
