//! Which answer a device accepted, where its next request follows from it.
//!
//! For answer i of an exchange: the answers before it were lost, and the next request came a loop after it; or a first
//! transmission of the next request was lost, and it came a loop and a timer after it. The most likely is taken.

use crate::exchanges::Exchange;
use crate::ordered::median_of;
use crate::path::loop_time::{Curve, Track};

/// The answer that was accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Accepted {
    /// Which of the exchange's answers.
    pub answer: usize,
    /// How likely, by the model.
    pub probability: f64,
    /// So many of the next request's first transmissions were lost before the server.
    pub next_lost: u8,
}

/// What all exchanges say together.
#[derive(Clone, Debug)]
pub(crate) struct Acceptance {
    /// By exchange.
    pub of: Vec<Option<Accepted>>,
    /// How far loops scatter about the curve, seconds.
    pub scatter: f64,
    /// Shares lost: of requests' first transmissions before the server, and of answers behind it.
    pub lost_up: f64,
    pub lost_down: f64,
}

/// Seconds by which packets may overtake each other.
const SLACK: f64 = 0.2;
/// Below it nothing is said.
const LEAST: f64 = 0.6;

pub(crate) fn accepted(
    exchanges: &[Exchange],
    track: &Track,
    curve: &Curve,
    (shortest, longest): (f64, f64),
) -> Acceptance {
    let samples = || {
        track.samples.iter().filter_map(|sample| {
            let index = sample.exchange?;
            Some((index, exchanges.get(index)?, &sample.delays))
        })
    };
    let answers = |exchange: &Exchange, delays: &[f64]| exchange.answered.len().min(delays.len());
    // The loop at each answer of each sample.
    let all_loops: Vec<f64> = samples()
        .flat_map(|(_, exchange, delays)| exchange.answered[..answers(exchange, delays)].iter())
        .map(|&at| curve.at(at))
        .collect();
    let mut rest = &all_loops[..];
    let middle = median_of(samples().map(|(_, exchange, delays)| {
        let (loops, others) = rest.split_at(answers(exchange, delays));
        rest = others;
        delays.iter().zip(loops).map(|(delay, loop_time)| (delay - loop_time).abs()).fold(9.0, f64::min)
    }));
    let scatter = middle.map_or(0.02, |middle| (1.5 * middle).max(0.02));
    let mut likely: Vec<(f64, usize, u8)> = Vec::new();
    let (mut lost_up, mut lost_down) = (0.05, 0.05);
    let mut of = vec![None; exchanges.len()];
    for _ in 0..2 {
        let (mut next_lost, mut next_came, mut answers_lost, mut known) = (0_u32, 0_u32, 0_usize, 0_usize);
        let mut rest = &all_loops[..];
        for (index, exchange, delays) in samples() {
            likely.clear();
            let (loops, others) = rest.split_at(answers(exchange, delays));
            rest = others;
            let mut before_lost = 1.0 - lost_down;
            for (answer, ((delay, &at), loop_time)) in delays.iter().zip(&exchange.answered).zip(loops).enumerate() {
                let off = delay - loop_time;
                // A device that has its answer sends no more: what it sent before comes within a loop.
                if exchange.last_sent() - at > loop_time + 4.0 * scatter + SLACK {
                    before_lost *= lost_down;
                    continue;
                }
                let z = off / scatter;
                let near = (-0.5 * z * z).exp() / (scatter * 2.507) + 0.01 / (1.0 + off * off);
                likely.push(((1.0 - lost_up) * before_lost * near, answer, 0));
                // The first transmissions of the next request were lost: it came with the second, third or fourth.
                for lost in 1..=3_u8 {
                    let steps = f64::from((1_u32 << lost) - 1);
                    if (0.97 * steps * shortest..=1.03 * steps * longest).contains(&off) {
                        let share = (1.0 - lost_up) * lost_up.powi(i32::from(lost));
                        likely.push((share * before_lost / (steps * (longest - shortest)), answer, lost));
                    }
                }
                before_lost *= lost_down;
            }
            let total: f64 = likely.iter().map(|hypothesis| hypothesis.0).sum();
            let Some(&(_, answer, lost)) = likely.iter().max_by(|one, other| one.0.total_cmp(&other.0)) else {
                continue;
            };
            let probability = likely.iter().filter(|other| other.1 == answer).map(|other| other.0).sum::<f64>() / total;
            let sure = probability > LEAST;
            of[index] = sure.then_some(Accepted { answer, probability, next_lost: lost });
            if sure {
                answers_lost += answer;
                known += 1;
                next_lost += u32::from(lost);
                next_came += 1;
            }
        }
        lost_up = (f64::from(next_lost) / f64::from((next_came + next_lost).max(1))).max(0.002);
        lost_down = (answers_lost as f64 / (answers_lost + known).max(1) as f64).max(0.005);
    }
    Acceptance { of, scatter, lost_up, lost_down }
}
