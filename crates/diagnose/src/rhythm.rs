//! Periods: how far a device's requests are from the multiples of its middle interval.

use crate::exchanges::Chapter;
use crate::ordered::{median_of, quantile, sorted};

/// A rhythm that many devices have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rhythm {
    /// Seconds.
    pub period: f64,
    /// Most requests are no farther from its multiples, seconds.
    pub jitter: f64,
    /// Share of the devices that have it within 5 %.
    pub same: f64,
}

impl Rhythm {
    pub(crate) fn is_periodic(&self) -> bool {
        self.jitter < 0.08 * self.period && self.period > 5.0
    }
}

pub(crate) fn rhythm(chapter: &Chapter) -> Option<Rhythm> {
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
    Some(Rhythm { period, jitter, same: same as f64 / of_devices.len() as f64 })
}
