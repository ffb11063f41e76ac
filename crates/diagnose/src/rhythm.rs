//! Periods: how far a device's requests are from the multiples of its middle interval, or those of all devices from the
//! multiples of a common one.

use crate::exchanges::Chapter;
use crate::ordered::{median_of, quantile, sorted};

/// A rhythm that many devices have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rhythm {
    /// Seconds.
    pub period: f64,
    /// Most requests are no farther from its multiples, seconds.
    pub jitter: f64,
    /// Share of the devices that have it within 5 %; of those that report together, each by a clock and within a jitter: 1.
    pub same: f64,
    is_common: bool,
}

impl Rhythm {
    /// Seconds: what comes faster is a loop.
    pub(crate) const LEAST_PERIOD: f64 = 5.0;

    pub(crate) fn is_periodic(&self) -> bool {
        self.period > Self::LEAST_PERIOD && (self.is_common || self.jitter < 0.08 * self.period)
    }
}

pub(crate) fn rhythm(chapter: &Chapter) -> Option<Rhythm> {
    let own = of_each(chapter);
    if own.is_some_and(|rhythm| rhythm.is_periodic() && rhythm.same > 0.5) { own } else { of_all(chapter).or(own) }
}

/// Of devices that report together, each within a jitter of a common clock.
fn of_all(chapter: &Chapter) -> Option<Rhythm> {
    /// Requests and devices that are looked at.
    const FEWEST: usize = 30;
    /// More requests are not compared with each candidate, nor such as come later.
    const MOST: usize = 6000;
    const MOST_PERIODS: f64 = 2000.0;
    /// Candidates are so close that phases differ by less than this share of a period at the end.
    const STEP: f64 = 0.02;
    /// How far phases point in one direction: a jitter of six tenths of the period.
    const ALIGNED: f64 = 0.5;
    /// What is late by a clock is followed by a shorter gap; of gaps that know nothing of each other this is 0.
    const BY_CLOCK: f64 = -0.25;
    let began: Vec<Vec<f64>> = chapter
        .peers()
        .map(|of| of.map(|exchange| exchange.began()).collect())
        .filter(|of: &Vec<f64>| of.len() > 3)
        .collect();
    let (count, first) =
        (began.iter().map(Vec::len).sum::<usize>(), began.iter().map(|of| of[0]).min_by(f64::total_cmp)?);
    if began.len() < 3 || count < FEWEST {
        return None;
    }
    let rough = median_of(began.iter().flat_map(|of| of.windows(2).map(|pair| pair[1] - pair[0])))?;
    if rough <= Rhythm::LEAST_PERIOD {
        return None;
    }
    // Each candidate costs as much as there are requests, and there are as many candidates as periods: of many, few will do.
    let near: Vec<f64> = began.iter().flatten().map(|at| at - first).filter(|&at| at <= MOST_PERIODS * rough).collect();
    let looked_at: Vec<f64> = near.iter().copied().step_by(near.len() / MOST + 1).collect();
    let step = STEP / looked_at.iter().copied().fold(rough, f64::max);
    let (period, (aligned, middle)) = most_aligned(&looked_at, (1.0 / (1.1 * rough), 1.0 / (0.9 * rough)), step)?;
    let (mut products, mut squares) = (0.0, 0.0);
    for of in &began {
        let off: Vec<f64> =
            of.windows(2).map(|pair| pair[1] - pair[0] - period).filter(|off| off.abs() < 0.8 * period).collect();
        products += off.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += off.iter().map(|off| off * off).sum::<f64>();
    }
    let away = near.iter().map(|at| {
        let turns = at / period - middle / std::f64::consts::TAU;
        (turns - turns.round()).abs() * period
    });
    let jitter = quantile(&sorted(away), 0.8)?;
    (aligned >= ALIGNED && products < BY_CLOCK * squares).then_some(Rhythm {
        period,
        jitter,
        same: 1.0,
        is_common: true,
    })
}

/// Of periods whose frequencies lie so far apart, that at whose multiples most of these times come; how far their phases point
/// in one direction, and in which.
fn most_aligned(times: &[f64], (lowest, highest): (f64, f64), step: f64) -> Option<(f64, (f64, f64))> {
    let turn = |frequency: f64| {
        move |at: &f64| {
            let (y, x) = (std::f64::consts::TAU * at * frequency).sin_cos();
            (x, y)
        }
    };
    // From one candidate to the next each phase turns by an angle of its own: no sine but at the beginning.
    let mut phases: Vec<(f64, f64)> = times.iter().map(turn(lowest)).collect();
    let turns: Vec<(f64, f64)> = times.iter().map(turn(step)).collect();
    let mut best = None;
    for number in 0..=((highest - lowest) / step) as u32 {
        let (x, y) = phases.iter().fold((0.0, 0.0), |(x, y), phase| (x + phase.0, y + phase.1));
        let aligned = f64::hypot(x, y) / times.len() as f64;
        if best.is_none_or(|(_, (most, _))| aligned > most) {
            best = Some((1.0 / (lowest + step * f64::from(number)), (aligned, y.atan2(x))));
        }
        for (phase, turn) in phases.iter_mut().zip(&turns) {
            *phase = (phase.0 * turn.0 - phase.1 * turn.1, phase.0 * turn.1 + phase.1 * turn.0);
        }
    }
    best
}

/// Of each device by itself.
fn of_each(chapter: &Chapter) -> Option<Rhythm> {
    let of_devices: Vec<(f64, f64)> = chapter
        .peers()
        .filter_map(|exchanges| {
            let began: Vec<f64> = exchanges.map(|exchange| exchange.began()).collect();
            if began.len() < 4 {
                return None;
            }
            let rough = median_of(began.windows(2).map(|pair| pair[1] - pair[0])).filter(|&gap| gap > 0.0)?;
            let since: Vec<f64> = began.iter().map(|at| at - began[0]).collect();
            let count = |since: f64, period: f64| (since / period).round();
            let fine = median_of(since.iter().skip(1).map(|&at| at / count(at, rough).max(1.0)))?;
            let off: Vec<f64> = since.iter().map(|&at| at - count(at, fine) * fine).collect();
            let middle = median_of(off.iter().copied())?;
            let jitter = quantile(&sorted(off.iter().map(|off| (off - middle).abs())), 0.8)?;
            Some((fine, jitter))
        })
        .collect();
    if of_devices.len() < 3 {
        return None;
    }
    let period = median_of(of_devices.iter().map(|of| of.0))?;
    let jitter = median_of(of_devices.iter().map(|of| of.1))?;
    let same = of_devices.iter().filter(|of| (of.0 - period).abs() < 0.05 * period).count();
    Some(Rhythm { period, jitter, same: same as f64 / of_devices.len() as f64, is_common: false })
}
