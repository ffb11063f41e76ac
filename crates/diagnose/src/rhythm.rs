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
    let (period, (_, middle)) = most_aligned(&looked_at, (1.0 / (1.1 * rough), 1.0 / (0.9 * rough)), step)?;
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
    (products < BY_CLOCK * squares).then_some(Rhythm { period, jitter, same: 1.0, is_common: true })
}

/// How far phases point in one direction at least: a jitter of six tenths of the period.
const ALIGNED: f64 = 0.5;

/// Of periods whose frequencies lie so far apart, that at whose multiples most of these times come; how far their phases point
/// in one direction, and in which. `None` if that is less than [`ALIGNED`] for all of them.
fn most_aligned(times: &[f64], (lowest, highest): (f64, f64), step: f64) -> Option<(f64, (f64, f64))> {
    /// Candidates that are left out together, if the one in their middle shows that none of them is aligned as much.
    const CELL: u32 = 16;
    let candidates = ((highest - lowest) / step) as u32 + 1;
    let frequency = |number: u32| lowest + step * f64::from(number);
    // From one frequency to another each phase turns, about the middle of the times, by no more than their difference.
    let middle = times.iter().copied().fold(0.0, f64::max) / 2.0;
    let away = times.iter().map(|at| (at - middle).abs()).sum::<f64>() / times.len() as f64;
    let slack = std::f64::consts::TAU * away * step * f64::from(CELL / 2) + 1e-9;
    let mut cells = Phases::of(times, frequency(CELL / 2), step * f64::from(CELL));
    let most: Vec<f64> = (0..candidates.div_ceil(CELL)).map(|_| cells.turned().0 + slack).collect();
    let mut best: Option<(u32, (f64, f64))> = None;
    for (cell, most) in (0_u32..).zip(most) {
        if most < best.map_or(ALIGNED, |(_, (aligned, _))| aligned) {
            continue;
        }
        let first = cell * CELL;
        let mut phases = Phases::of(times, frequency(first), step);
        for number in first..(first + CELL).min(candidates) {
            let found = phases.turned();
            if found.0 >= ALIGNED && best.is_none_or(|(_, (aligned, _))| found.0 > aligned) {
                best = Some((number, found));
            }
        }
    }
    best.map(|(number, found)| (1.0 / frequency(number), found))
}

/// The phases of times under one frequency after the other.
struct Phases {
    /// Cosines and sines.
    now: (Vec<f64>, Vec<f64>),
    turns: (Vec<f64>, Vec<f64>),
}

impl Phases {
    /// From one candidate to the next each phase turns by an angle of its own: no sine but at the beginning.
    fn of(times: &[f64], first: f64, step: f64) -> Self {
        let at = |frequency: f64| {
            let turned = times.iter().map(|at| (std::f64::consts::TAU * at * frequency).sin_cos());
            turned.map(|(y, x)| (x, y)).unzip()
        };
        Self { now: at(first), turns: at(step) }
    }

    /// How far they point in one direction, and in which; then turns them to the next frequency.
    fn turned(&mut self) -> (f64, f64) {
        /// Sums that do not wait for each other.
        const SUMS: usize = 4;
        let count = self.now.0.len();
        let (mut x, mut y) = ([0.0; SUMS], [0.0; SUMS]);
        let now = self.now.0.chunks_mut(SUMS).zip(self.now.1.chunks_mut(SUMS));
        let turns = self.turns.0.chunks(SUMS).zip(self.turns.1.chunks(SUMS));
        for ((now_x, now_y), (turn_x, turn_y)) in now.zip(turns) {
            for (place, ((now_x, now_y), (turn_x, turn_y))) in
                now_x.iter_mut().zip(now_y).zip(turn_x.iter().zip(turn_y)).enumerate()
            {
                x[place] += *now_x;
                y[place] += *now_y;
                (*now_x, *now_y) = (*now_x * turn_x - *now_y * turn_y, *now_x * turn_y + *now_y * turn_x);
            }
        }
        let (x, y): (f64, f64) = (x.iter().sum(), y.iter().sum());
        (f64::hypot(x, y) / count as f64, y.atan2(x))
    }
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
