//! What a capture at the server says: behind the uplink's queue, before the downlink's.

use crate::acceptance::Acceptance;
use crate::arrivals::{Arrivals, saturated};
use crate::exchanges::{Chapter, Exchange};
use crate::findings::Findings;
use crate::ordered::{median_of, quantile, sorted};
use crate::path::far_rate::{self, Spacing, far_rate};
use crate::path::loop_time::{Track, track};
use crate::path::losses::{Losses, losses};
use crate::path::near_rate::{Reaction, Sent, near_rate};
use crate::path::queue;
use crate::path::stopping::{Stopping, stopping};
use crate::presets::{Presets, Seen, presets};
use crate::rhythm::{Rhythm, rhythm};
use crate::stops::{Around, Schedule, Stops};
use crate::timers::{Timers, timers};

mod buffers;
mod closed_loop;
mod figures;
mod verdicts;

use closed_loop::{Closed, closed, followed, is_closed};

/// No loop is longer than so many of the longest timers: with the default MAX_RETRANSMIT a device has given up before.
const LONGEST_LOOP: f64 = 33.0;

/// With the defaults (RFC 7252 §4.8): transmissions of an exchange, and seconds of the longest first timer.
const USUAL_TRANSMISSIONS: usize = 5;
const USUAL_TIMER: f64 = 3.0;

/// The downlink's rate as far as it is known.
#[derive(Clone, Copy, Debug)]
enum Downlink {
    Reactions(Reaction),
    Stopping(Stopping),
    /// So much was offered in the busiest seconds.
    Bound(f64),
}

impl Downlink {
    fn known(&self) -> Option<f64> {
        match self {
            Self::Reactions(found) => Some(found.rate),
            Self::Stopping(found) => Some(found.rate),
            Self::Bound(_) => None,
        }
    }
}

/// Everything that is known on the way to the findings.
#[derive(Debug)]
struct Evidence<'c> {
    chapter: &'c Chapter,
    uplink: Option<Spacing>,
    /// Time stamps are multiples of much more than a microsecond.
    is_coarse: bool,
    /// Its spacing may be the downlink's.
    is_paced: bool,
    /// Share of busy windows in which the uplink was full.
    saturated: f64,
    arrivals: Option<Arrivals>,
    timers: Timers,
    range: (f64, f64),
    /// Share of exchanges of which no transmission came, by gaps in message IDs.
    holes: f64,
    rhythm: Option<Rhythm>,
    closed: Option<Closed>,
    /// Without closed loops: the loop is no longer than a request takes to follow an answer.
    pauses: Option<Pauses>,
    base: Option<f64>,
    base_is_bound: bool,
    /// Packets to devices.
    sent: (Vec<f64>, Vec<u32>),
    downlink: Downlink,
    model: Option<Stopping>,
    /// Share of exchanges with retransmissions that waited in the uplink.
    late_up: f64,
    /// The loop as stops show it.
    stops: Option<Stops>,
    /// The loop at a time where the loop is not closed but the queue can be replayed.
    replayed: Option<Replayed>,
}

impl Evidence<'_> {
    /// Loops grow, and not by the uplink's queue: the downlink's should space requests.
    fn has_queue_downlink(&self) -> bool {
        let grows = |closed: &Closed| closed.longest - closed.base > 0.5;
        self.saturated < 0.05 && self.closed.as_ref().is_some_and(grows)
    }

    /// Whether the uplink's spacing may be that of the answers that requests follow: nothing that came by itself has it.
    fn is_paced_by_answers(&self) -> bool {
        /// So many packets show that the uplink spaces them, too.
        const ENOUGH: usize = 5;
        let (Some(_), Some(uplink)) = (&self.closed, self.uplink) else { return false };
        let mut followed: Vec<(f64, u32)> =
            self.chapter.exchanges.iter().filter_map(|of| Some((of.next?, of.peer))).collect();
        followed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (mut spaced, mut closer) = (0_usize, 0_usize);
        for pair in self.chapter.way(true).windows(2) {
            let this = |of: &(f64, u32)| of.0.total_cmp(&pair[1].at).then(of.1.cmp(&pair[1].peer));
            let gap = (pair[1].at - pair[0].at) * uplink.rate / (8.0 * f64::from(pair[1].bytes));
            if gap < 1.01 && followed.binary_search_by(this).is_err() {
                if gap > 0.99 { spaced += 1 } else { closer += 1 }
            }
        }
        spaced < ENOUGH || spaced < 4 * closer
    }

    fn schedule(&self) -> Schedule {
        let most = if self.timers.is_limit { self.timers.most } else { usize::MAX };
        Schedule { range: self.range, most, end: self.chapter.end() }
    }

    /// Loop and losses at a time, where they are known.
    fn around(&self, time: f64) -> Option<Around> {
        if let Some(closed) = &self.closed {
            let loop_time = closed.curve.at(time);
            let spread = closed.acceptance.scatter + 0.05 * loop_time;
            let Acceptance { lost_up, lost_down, .. } = closed.acceptance;
            return Some(Around { time: loop_time, spread, lost_down, lost_up });
        }
        if let (Some(replayed), Downlink::Stopping(model)) = (&self.replayed, self.downlink) {
            let loop_time = replayed.at(time);
            let spread = 0.1 * loop_time + 0.1;
            return Some(Around { time: loop_time, spread, lost_down: model.lost.max(0.02), lost_up: 0.02 });
        }
        None
    }

    fn longest_loop(&self) -> Option<f64> {
        match (&self.closed, &self.replayed) {
            (Some(closed), _) => Some(closed.longest),
            (None, Some(replayed)) => Some(replayed.longest),
            (None, None) => None,
        }
    }

    /// The loops of which both ends are known.
    fn followed(&self) -> impl Iterator<Item = Followed> {
        self.chapter.exchanges.iter().enumerate().filter_map(|(index, exchange)| {
            let accepted = self.accepted(index).filter(|accepted| accepted.next_lost == 0)?;
            let answer = *exchange.answered.get(accepted.answer)?;
            Some(Followed { answer, next: exchange.next?, peer: exchange.peer })
        })
    }

    fn accepted(&self, index: usize) -> Option<crate::acceptance::Accepted> {
        self.closed.as_ref()?.acceptance.of.get(index).copied().flatten()
    }
}

/// An accepted answer, and the request of its device that came next.
#[derive(Clone, Copy, Debug)]
struct Followed {
    answer: f64,
    next: f64,
    peer: u32,
}

/// A loop from the downlink's replayed queue.
#[derive(Debug)]
struct Replayed {
    times: Vec<f64>,
    waits: Vec<f64>,
    base: f64,
    longest: f64,
}

impl Replayed {
    fn at(&self, time: f64) -> f64 {
        let place = self.times.partition_point(|&at| at < time).min(self.times.len().saturating_sub(1));
        self.waits.get(place).copied().unwrap_or_default() + self.base
    }
}

/// How soon requests followed answers, of exchanges of one transmission: an upper bound of the loop.
#[derive(Debug)]
struct Pauses(Vec<(f64, f64)>);

impl Pauses {
    fn bound_at(&self, time: f64) -> Option<f64> {
        const HALF: f64 = 15.0;
        let from = self.0.partition_point(|pause| pause.0 < time - HALF);
        let to = self.0.partition_point(|pause| pause.0 <= time + HALF);
        if to - from < 8 {
            return None;
        }
        let near = sorted(self.0[from..to].iter().map(|pause| pause.1));
        near.get(1.max(near.len() / 10)).copied()
    }
}

/// Judges a chapter captured at the server.
pub(crate) fn server_side(chapter: &Chapter) -> Findings {
    if chapter.several_open().is_some() {
        let (followed, open) = followed(chapter);
        return Findings { open, ..findings(&followed) };
    }
    findings(chapter)
}

fn findings(chapter: &Chapter) -> Findings {
    let evidence = gather(chapter);
    let judged = verdicts::judge(&evidence);
    figures::of(&evidence, judged)
}

/// The presets that fit transmissions that came at once.
fn fitting(evidence: &Evidence<'_>) -> Presets {
    if evidence.timers.blurred {
        return Presets::unknown("the uplink's queue blurs all waits");
    }
    presets(evidence.chapter, &evidence.timers, Seen::AtServer, |exchange, number| {
        let at = exchange.sent.get(number).copied();
        at.is_none_or(|at| evidence.arrivals.as_ref().is_none_or(|arrivals| arrivals.at_once(at, exchange.peer)))
    })
}

fn gather(chapter: &Chapter) -> Evidence<'_> {
    let exchanges = &chapter.exchanges;
    let (up_times, up_sizes) = chapter.direction(true);
    let uplink = far_rate(&chapter.way(true));
    let sure = uplink.filter(Spacing::is_sure);
    let arrivals = sure.map(|spacing| Arrivals::over(&chapter.packets, spacing.rate));
    let saturated = sure.map_or(0.0, |spacing| saturated(&up_times, &up_sizes, spacing.rate));
    let timers = seen_timers(exchanges, arrivals.as_ref());
    let range = range(&timers);
    let holes = holes(chapter);
    let rhythm = rhythm(chapter);
    let track = track(chapter, LONGEST_LOOP * range.1);
    let closed = is_closed(&track, exchanges, rhythm, &timers, range, holes)
        .then(|| closed(chapter, &track, range, arrivals.as_ref()))
        .flatten();
    let periodic = rhythm.is_some_and(|rhythm| rhythm.is_periodic());
    let pauses = (closed.is_none() && !periodic && !track.samples.is_empty()).then(|| pauses(&track, exchanges));
    let sent = chapter.direction(false);
    let mut evidence = Evidence {
        chapter,
        uplink,
        is_coarse: far_rate::is_coarse(&up_times),
        is_paced: false,
        saturated,
        arrivals,
        range,
        holes,
        rhythm,
        base: None,
        base_is_bound: true,
        closed,
        pauses,
        sent,
        downlink: Downlink::Bound(0.0),
        model: None,
        late_up: 0.0,
        replayed: None,
        stops: None,
        timers,
    };
    if evidence.closed.is_none() {
        // An exchange of which nothing came lost each of its transmissions.
        let most = if evidence.timers.is_limit { evidence.timers.most } else { USUAL_TRANSMISSIONS };
        let lost_up = (evidence.holes > 0.01).then(|| evidence.holes.powf(1.0 / most as f64).min(0.7));
        evidence.stops = Stops::of(exchanges, evidence.schedule(), lost_up);
    }
    evidence.is_paced = evidence.is_paced_by_answers();
    base(&mut evidence);
    downlink(&mut evidence);
    evidence.replayed = replayed(&evidence);
    evidence
}

/// Timers from transmissions that came at once; from all where those are too few.
fn seen_timers(exchanges: &[Exchange], arrivals: Option<&Arrivals>) -> Timers {
    let at_once = |exchange: &Exchange, index: usize| {
        let at = exchange.sent.get(index).copied().unwrap_or_default();
        arrivals.is_none_or(|arrivals| arrivals.at_once(at, exchange.peer))
    };
    let pure = timers(exchanges, at_once);
    if arrivals.is_none() || pure.gaps >= 8 {
        return pure;
    }
    Timers { blurred: true, ..timers(exchanges, |_, _| true) }
}

fn range(timers: &Timers) -> (f64, f64) {
    if timers.in_range >= 8 {
        return timers.likely();
    }
    let (low, high) = timers.range.unwrap_or((2.0, 3.0));
    (low, high.max(1.5 * low))
}

/// Share of exchanges of which no transmission was seen.
fn holes(chapter: &Chapter) -> f64 {
    const FEW: u32 = 10;
    let (mut missing, mut seen) = (0_u32, 0_u32);
    for exchanges in chapter.peers() {
        for (one, other) in exchanges.clone().zip(exchanges.skip(1)) {
            let step = other.id.0.wrapping_sub(one.id.0);
            if (1..20).contains(&step) {
                missing += u32::from(step) - 1;
                seen += 1;
            }
        }
    }
    // One request that is out of order looks like a lost one.
    if seen < FEW { 0.0 } else { f64::from(missing) / f64::from(missing + seen) }
}

fn pauses(track: &Track, exchanges: &[Exchange]) -> Pauses {
    Pauses(
        track
            .samples
            .iter()
            .filter_map(|sample| {
                let exchange = exchanges.get(sample.exchange?)?;
                (exchange.sent.len() == 1).then_some((sample.at, *sample.delays.first()?))
            })
            .collect(),
    )
}

/// The loop without a queue: no longer than the shortest that was seen.
fn base(evidence: &mut Evidence<'_>) {
    if let Some(closed) = &evidence.closed {
        (evidence.base, evidence.base_is_bound) = (Some(closed.base), !closed.base_is_idle);
    } else if let Some(pauses) = &evidence.pauses {
        let all = sorted(pauses.0.iter().map(|pause| pause.1));
        evidence.base = if all.len() >= 20 { quantile(&all, 0.002) } else { None };
    }
    let acknowledged =
        evidence.chapter.pushes.iter().filter_map(|push| match (&push.sent[..], &push.acknowledged[..]) {
            (&[sent], &[first, ..]) => Some(first - sent),
            _ => None,
        });
    if let Some(shortest) = acknowledged.min_by(f64::total_cmp) {
        evidence.base = Some(evidence.base.map_or(shortest, |base| base.min(shortest)));
    }
}

fn downlink(evidence: &mut Evidence<'_>) {
    let chapter = evidence.chapter;
    if let Some(closed) = &evidence.closed {
        let base = closed.base;
        let queued = (base + 0.15 * (closed.longest - base)).max(base + 0.2);
        let sent = reactions(evidence);
        let found = near_rate(&sent, |at| closed.curve.at(at) > queued);
        if let Some(found) = found.filter(|found| found.is_sure() && !is_masked(evidence, found)) {
            evidence.downlink = Downlink::Reactions(found);
            return;
        }
    }
    let base = evidence.base.filter(|&base| !(evidence.base_is_bound && base > 3.0));
    let sent = (&evidence.sent.0[..], &evidence.sent.1[..]);
    evidence.model = stopping(&chapter.exchanges, sent, evidence.range, base);
    if let Some(arrivals) = &evidence.arrivals {
        let resent = chapter.exchanges.iter().filter(|exchange| exchange.sent.len() > 1);
        let (mut all, mut late) = (0_usize, 0_usize);
        for exchange in resent {
            all += 1;
            late += usize::from(exchange.sent[..2].iter().any(|&at| arrivals.busy_for(at, exchange.peer) > 0.5));
        }
        evidence.late_up = late as f64 / all.max(1) as f64;
    }
    evidence.downlink = match evidence.model {
        Some(model) if evidence.saturated < 0.25 && evidence.late_up < 0.5 => Downlink::Stopping(model),
        _ => Downlink::Bound(busiest(evidence)),
    };
}

/// Packets to devices with what they caused.
fn reactions(evidence: &Evidence<'_>) -> Vec<Sent> {
    let mut caused: Vec<(f64, u32, f64)> =
        evidence.followed().map(|followed| (followed.answer, followed.peer, followed.next)).collect();
    caused.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let to_devices = evidence.chapter.packets.iter().filter(|packet| !packet.up);
    to_devices
        .map(|packet| {
            let found = caused.binary_search_by(|(at, peer, _)| at.total_cmp(&packet.at).then(peer.cmp(&packet.peer)));
            Sent { at: packet.at, bytes: packet.bytes, caused: found.ok().and_then(|at| Some(caused.get(at)?.2)) }
        })
        .collect()
}

/// Requests that come as far apart as the uplink spaces them say nothing of the downlink.
fn is_masked(evidence: &Evidence<'_>, found: &Reaction) -> bool {
    let middle = |up: bool| median_of(evidence.chapter.direction(up).1.into_iter().map(f64::from)).unwrap_or_default();
    evidence.uplink.filter(Spacing::is_sure).is_some_and(|uplink| {
        let ratio = (middle(false) / found.rate) / (middle(true) / uplink.rate);
        [1.0, 2.0].iter().any(|times| (ratio - times).abs() < 0.03)
    })
}

/// One answer an exchange, of exchanges that were not given up: so much reached devices of the busiest 20 seconds, and in as
/// much longer as a loop is.
fn busiest(evidence: &Evidence<'_>) -> f64 {
    const WINDOW: f64 = 20.0;
    let longest = evidence.stops.as_ref().map_or(0.0, Stops::longest);
    let longest = evidence.longest_loop().unwrap_or(longest * Stops::STEP);
    let most = evidence.timers.most;
    let mut last: Vec<(u64, f64)> = evidence
        .chapter
        .exchanges
        .iter()
        .filter(|exchange| exchange.sent.len() < 4 || exchange.sent.len() < most)
        .filter_map(|exchange| {
            let rate = 8.0 * f64::from(exchange.answer_bytes) / (WINDOW + longest);
            Some(((exchange.answered.last()? / WINDOW) as u64, rate))
        })
        .collect();
    last.sort_by_key(|of| of.0);
    last.chunk_by(|one, other| one.0 == other.0)
        .map(|window| window.iter().map(|of| of.1).sum::<f64>())
        .fold(0.0, f64::max)
}

fn replayed(evidence: &Evidence<'_>) -> Option<Replayed> {
    if evidence.closed.is_some() {
        return None;
    }
    let model = evidence.model?;
    let (times, sizes) = (&evidence.sent.0[..], &evidence.sent.1[..]);
    let waits = model.buffer.map_or_else(
        || queue::endless(times, sizes, model.rate),
        |buffer| {
            let full = buffer * 8.0 / model.rate;
            let waits = queue::drop_tail(times, sizes, model.rate, buffer);
            waits.into_iter().map(|wait| wait.unwrap_or(full)).collect()
        },
    );
    let base = evidence.base.filter(|_| !evidence.base_is_bound).unwrap_or(model.base);
    let longest = waits.iter().copied().fold(0.0, f64::max) + base;
    Some(Replayed { times: times.to_vec(), waits, base, longest })
}
