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
    /// More requests are not compared with each candidate.
    const MOST: usize = 6000;
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
    let span = began.iter().filter_map(|of| of.last()).copied().fold(first, f64::max) - first;
    let step = STEP * rough * rough / span;
    let steps = (0.1 * rough / step).ceil() as i32;
    // Each candidate costs as much as there are requests, and there are as many candidates as periods: of many, few will do.
    let looked_at: Vec<f64> = began.iter().flatten().copied().step_by(count / MOST + 1).collect();
    let direction = |period: f64| {
        let turned = looked_at.iter().map(|at| std::f64::consts::TAU * (at - first) / period);
        let (x, y) = turned.fold((0.0, 0.0), |(x, y), angle| (x + angle.cos(), y + angle.sin()));
        (x.hypot(y) / looked_at.len() as f64, y.atan2(x))
    };
    let tried = (-steps..=steps).map(|number| rough + step * f64::from(number));
    let (period, (aligned, middle)) =
        tried.map(|period| (period, direction(period))).max_by(|one, other| one.1.0.total_cmp(&other.1.0))?;
    let (mut products, mut squares) = (0.0, 0.0);
    for of in &began {
        let off: Vec<f64> =
            of.windows(2).map(|pair| pair[1] - pair[0] - period).filter(|off| off.abs() < 0.8 * period).collect();
        products += off.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
        squares += off.iter().map(|off| off * off).sum::<f64>();
    }
    let away = began.iter().flatten().map(|at| {
        let turns = (at - first) / period - middle / std::f64::consts::TAU;
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
