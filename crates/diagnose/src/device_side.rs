//! What a capture at the devices, or at their gateway, says: before the uplink's queue, behind the downlink's.
//!
//! Every answer that arrives is seen, and so is every transmission: which of them it answers is told by the round trip of
//! exchanges nearby.

use smallvec::smallvec;

use crate::exchanges::{Chapter, Exchange};
use crate::figure::Figure;
use crate::findings::{Findings, LinkFigures, bytes_of_answers};
use crate::judgement::{Judged, Judgements};
use crate::ordered::{median_of, quantile, sorted};
use crate::path::far_rate::{self, far_rate};
use crate::path::mode::mode;
use crate::presets::{Seen, presets};
use crate::rhythm::rhythm;
use crate::timers::timers;

/// The transmission that the first answer belongs to; `None` if none came.
#[derive(Clone, Copy, Debug)]
struct Answered {
    first: Option<usize>,
    confidence: f64,
}

/// More transmissions than these are not matched one by one.
const MOST_MATCHED: usize = 12;
/// Less than this is no waiting in a queue, seconds.
const NO_WAIT: f64 = 0.01;
/// Behind the last transmission an answer may take so long, seconds.
const PATIENCE: f64 = 60.0;

/// Judges a chapter captured at the devices.
pub(crate) fn device_side(chapter: &Chapter) -> Findings {
    let exchanges = &chapter.exchanges;
    let local = RoundTrips::of(exchanges);
    let end = chapter.end();
    let answered: Vec<Answered> = exchanges.iter().map(|exchange| matched(exchange, &local, end)).collect();
    let judged = exchanges.iter().zip(&answered).map(|(exchange, answered)| judge(exchange, *answered)).collect();
    let direct = sorted(exchanges.iter().zip(&answered).filter_map(|(exchange, answered)| {
        let sent = exchange.sent.get(answered.first.filter(|_| answered.confidence > 0.6)?)?;
        Some(exchange.answered.first()? - sent)
    }));
    let spacing = far_rate(&chapter.way(false));
    let sure = spacing.filter(far_rate::Spacing::is_sure);
    let slower = slower_uplink(chapter, sure.map(|spacing| spacing.rate));
    let (useful_bytes, carried_bytes) = bytes_of_answers(exchanges);
    let timers = timers(exchanges, |_, _| true);
    Findings {
        judged,
        uplink: LinkFigures {
            rate_bps: match slower {
                Some(rate) => Figure::estimate(rate, "answers come farther apart than the downlink needs for them"),
                None => Figure::unknown("from the devices' side a queue of the uplink looks like one of the downlink"),
            },
            buffer_bytes: Figure::unknown("its drops are not seen from the devices' side"),
            loss: Figure::unknown("only the loss of the whole round trip is seen"),
        },
        downlink: LinkFigures {
            rate_bps: downlink_rate(chapter, spacing),
            buffer_bytes: Figure::unknown(match (direct.last(), direct.first()) {
                (Some(longest), Some(shortest)) if longest - shortest < NO_WAIT => "no waiting was seen".to_owned(),
                (Some(longest), Some(shortest)) => {
                    format!("up to {:.2} s of waiting were seen, but not in which direction", longest - shortest)
                }
                _ => "no round trip was seen".to_owned(),
            }),
            loss: lost_on_the_way(exchanges, end),
        },
        base_rtt_s: base_rtt(&direct),
        presets: presets(chapter, &timers, Seen::All, |_, _| true),
        timers,
        open: None,
        rhythm: rhythm(chapter),
        closed_loop: follows_at_once(exchanges),
        useful_bytes,
        carried_bytes,
        hidden_strain: false,
        doubts: Vec::new(),
    }
}

/// The shortest round trip: exact if others were as short, which a queue would not let them.
fn base_rtt(direct: &[f64]) -> Figure {
    match (direct.get(1), direct.get(6)) {
        (Some(&second), Some(&seventh)) if seventh < 1.01 * second => {
            Figure::exact(second, "the shortest round trips of single transmissions are alike")
        }
        (Some(&shortest), _) => Figure::at_most(shortest, "the shortest round trip of a transmission"),
        (None, _) => Figure::unknown("too few transmissions were answered"),
    }
}

/// The loss of the whole round trip, queues included, bounds that of each direction.
fn lost_on_the_way(exchanges: &[Exchange], end: f64) -> Figure {
    let ended = exchanges.iter().filter(|exchange| end - exchange.last_sent() > PATIENCE);
    let (mut sent, mut came) = (0_usize, 0_usize);
    for exchange in ended {
        sent += exchange.sent.len();
        came += exchange.answered.len().min(exchange.sent.len());
    }
    if sent < 20 {
        return Figure::unknown("too few transmissions");
    }
    let share = 1.0 - came as f64 / sent as f64;
    // Two standard deviations, and the three packets that may have been lost if none was seen to be.
    let bound = share + 2.0 * (share * (1.0 - share) / sent as f64).sqrt() + 3.0 / sent as f64;
    Figure::at_most(bound.min(1.0), format!("{:.1} % of {sent} round trips were lost, queues included", 100.0 * share))
}

/// Whether devices ask again as soon as they are answered.
fn follows_at_once(exchanges: &[Exchange]) -> bool {
    let pauses = sorted(exchanges.iter().filter_map(|exchange| Some(exchange.next? - exchange.answered.first()?)));
    quantile(&pauses, 0.5).is_some_and(|pause| pause.abs() < 0.01)
}

/// Round trips of exchanges of which each transmission was answered.
struct RoundTrips(Vec<(f64, f64)>);

impl RoundTrips {
    fn of(exchanges: &[Exchange]) -> Self {
        let whole = exchanges.iter().filter(|exchange| {
            !exchange.answered.is_empty()
                && (exchange.sent.len() == 1 || exchange.sent.len() == exchange.answered.len())
        });
        let mut found: Vec<(f64, f64)> = whole
            .flat_map(|exchange| exchange.sent.iter().zip(&exchange.answered).map(|(&sent, &came)| (sent, came - sent)))
            .collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self(found)
    }

    fn at(&self, time: f64) -> Option<f64> {
        let place = self.0.partition_point(|of| of.0 < time);
        let near = &self.0[place.saturating_sub(4)..(place + 4).min(self.0.len())];
        median_of(near.iter().map(|of| of.1))
    }
}

fn matched(exchange: &Exchange, local: &RoundTrips, end: f64) -> Answered {
    let (sent, came) = (exchange.sent.len(), exchange.answered.len());
    if came >= sent {
        return Answered { first: Some(0), confidence: 0.99 };
    }
    if came == 0 {
        let confidence = if end - exchange.last_sent() > PATIENCE { 0.9 } else { 0.5 };
        return Answered { first: None, confidence };
    }
    if sent > MOST_MATCHED || local.at(exchange.began()).is_none() {
        return Answered { first: None, confidence: 0.5 };
    }
    let expected: Vec<f64> = exchange.sent.iter().map(|&at| local.at(at).unwrap_or_default()).collect();
    let mut best: Vec<f64> = vec![f64::INFINITY; sent];
    for (first, place) in best.iter_mut().enumerate() {
        *place = cost(exchange, &expected, first);
    }
    let (first, least) = best
        .iter()
        .enumerate()
        .min_by(|one, other| one.1.total_cmp(other.1))
        .map_or((0, f64::INFINITY), |(first, &least)| (first, least));
    if least.is_infinite() {
        return Answered { first: Some(0), confidence: 0.95 };
    }
    let next = best.iter().enumerate().filter(|(other, _)| *other != first).map(|(_, &cost)| cost);
    let clear = next.fold(f64::INFINITY, f64::min) > 2.0 * least + 0.3;
    Answered { first: Some(first), confidence: if clear { 0.95 } else { 0.5 } }
}

/// How far answers are from the round trips that are expected if the first belongs to this transmission and the others, in
/// order, to later ones: the least over all such matches.
fn cost(exchange: &Exchange, expected: &[f64], first: usize) -> f64 {
    let of = |answer: usize, transmission: usize| -> f64 {
        let (came, sent) = (exchange.answered[answer], exchange.sent[transmission]);
        if came <= sent { f64::INFINITY } else { (came - sent - expected[transmission]).abs() }
    };
    let transmissions = exchange.sent.len();
    // The least cost of the answers so far if the latest belongs to each transmission.
    let mut costs: Vec<f64> = vec![f64::INFINITY; transmissions];
    costs[first] = of(0, first);
    for answer in 1..exchange.answered.len() {
        let mut least = f64::INFINITY;
        costs = (0..transmissions)
            .map(|transmission| {
                let cost = least + of(answer, transmission);
                least = least.min(costs[transmission]);
                cost
            })
            .collect();
    }
    costs.into_iter().fold(f64::INFINITY, f64::min)
}

fn judge(exchange: &Exchange, answered: Answered) -> Judgements {
    let mut of = smallvec![Judged::FIRST; exchange.sent.len()];
    for (number, place) in of.iter_mut().enumerate().skip(1) {
        *place = match answered {
            Answered { confidence, .. } if confidence <= 0.5 => Judged::UNKNOWN,
            Answered { first: Some(first), confidence } if number > first => Judged::spurious(confidence),
            Answered { confidence, .. } => Judged::needed(confidence),
        };
    }
    of
}

fn downlink_rate(chapter: &Chapter, spacing: Option<far_rate::Spacing>) -> Figure {
    let Some(found) = spacing else { return Figure::unknown("too few packets") };
    let middle = |up: bool| median_of(chapter.direction(up).1.into_iter().map(f64::from)).unwrap_or_default();
    match found.kind {
        far_rate::Kind::Bound => Figure::at_least(found.rate, "the fastest trains of packets; it was never full"),
        _ if sizes_differ(chapter) => {
            Figure::exact(found.rate, format!("{} neighbours come just so far apart", found.hits))
        }
        _ => Figure::at_least(
            found.rate,
            format!(
                "answers are this far apart: the downlink's rate, or an uplink of {:.0} bit/s before it",
                found.rate * middle(true) / middle(false).max(1.0)
            ),
        ),
    }
}

/// If answers differ in size, only the downlink spaces them by their size.
fn sizes_differ(chapter: &Chapter) -> bool {
    let (_, sizes) = chapter.direction(false);
    let (least, most) = sizes.iter().fold((u32::MAX, 0), |(least, most), &size| (least.min(size), most.max(size)));
    f64::from(most) > 1.1 * f64::from(least)
}

/// Neighbours in the order of sending whose answers are farther apart than the downlink needs.
fn slower_uplink(chapter: &Chapter, downlink: Option<f64>) -> Option<f64> {
    let mut answers: Vec<(f64, u32, f64, u32)> = chapter
        .exchanges
        .iter()
        .filter(|exchange| exchange.sent.len() == exchange.answered.len())
        .flat_map(|exchange| {
            let pairs = exchange.sent.iter().zip(&exchange.answered);
            pairs.map(|(&sent, &came)| (sent, exchange.peer, came, exchange.answer_bytes)).collect::<Vec<_>>()
        })
        .collect();
    answers.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let sent: Vec<_> = chapter
        .packets
        .iter()
        .filter(|packet| packet.up)
        .map(|packet| {
            let found = answers.binary_search_by(|of| of.0.total_cmp(&packet.at).then(of.1.cmp(&packet.peer)));
            (packet.at, packet.bytes, found.ok().and_then(|at| answers.get(at)).map(|of| (of.2, of.3)))
        })
        .collect();
    let rates = sorted(sent.windows(2).filter_map(|pair| {
        let ((at_one, _, one), (at_other, bytes, other)) = (pair[0], pair[1]);
        let (one, other) = (one?, other?);
        let apart = other.0 - one.0;
        let needs = downlink.map_or(0.0, |rate| 8.0 * f64::from(other.1) / rate);
        (apart > 0.0 && apart > 1.05 * (at_other - at_one) && apart > 1.03 * needs)
            .then(|| (8.0 * f64::from(bytes) / apart).ln())
    }));
    let found = mode(&rates)?;
    (found.hits >= 8 && found.hits as f64 > 0.15 * rates.len() as f64).then_some(found.rate)
}
