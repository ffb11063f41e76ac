//! The time of the loop: from an answer at the server to what it causes there.
//!
//! A request of a device that asks again as soon as it is answered comes one loop after the answer that it accepted. Which
//! one that was is not seen; but over many devices only the true answers agree, since their timers are dithered.

use smallvec::smallvec;

use crate::exchanges::{Chapter, Times};
use crate::ordered::{densest, median_of, sorted};

/// An exchange, and how long after each of its answers its device's next request came.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// When its first answer left.
    pub at: f64,
    /// Its index; `None` of an acknowledged push, which shows the loop directly.
    pub exchange: Option<usize>,
    /// Seconds.
    pub delays: Times,
}

impl Sample {
    /// When each answer left, and how long after it the request came.
    fn each(&self) -> impl Iterator<Item = (f64, f64)> {
        let first = self.delays.first().copied().unwrap_or_default();
        self.delays.iter().map(move |&delay| (self.at + first - delay, delay))
    }
}

/// The loop at a time, as many samples around it agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub at: f64,
    /// Seconds.
    pub delay: f64,
    /// The share of the samples.
    pub agree: f64,
    /// Seconds by which the loop grows in a second.
    growth: f64,
}

/// The loop over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub samples: Vec<Sample>,
    pub points: Vec<Point>,
    /// The middle of those shares.
    pub agreement: f64,
}

/// Samples that are compared with each other.
const WINDOW: usize = 24;

/// Of more windows none is asked whether its loop grows: that costs as much as thirty.
const MOST_THAT_GROW: usize = 1024;
/// In a window of which so many agree there is one loop.
const CLEAR: f64 = 0.55;

impl Point {
    /// What most of these samples have, at the time of the middle one. Where a queue fills within them, they agree only if the
    /// loop grows from one to the next.
    fn of(window: &[Sample], may_grow: bool) -> Option<Self> {
        let at = window.get(window.len() / 2)?.at;
        let growing = |growth: f64| {
            let delays = window.iter().flat_map(Sample::each).map(|(answer, delay)| delay - growth * (answer - at));
            // Answers of one exchange are at least a timer apart, so that the densest place has one of each.
            let (agree, delay) = densest(&sorted(delays), width)?;
            Some(Self { at, delay, agree: agree as f64 / window.len() as f64, growth })
        };
        let still = growing(0.0)?;
        if !may_grow || still.agree >= CLEAR {
            return Some(still);
        }
        let clearest = (-7..=20).filter_map(|tenths| growing(0.1 * f64::from(tenths)));
        let clearest = clearest.max_by(|one, other| one.agree.total_cmp(&other.agree));
        clearest.filter(|point| point.agree >= CLEAR && point.delay > 0.0).or(Some(still))
    }
}

/// Delays that are one place, seconds.
fn width(delay: f64) -> f64 {
    (0.06 * delay).clamp(0.1, 0.4)
}

/// Delays longer than `longest` seconds are pauses, and no samples.
pub(crate) fn track(chapter: &Chapter, longest: f64) -> Track {
    let of_exchanges = chapter.exchanges.iter().enumerate().filter_map(|(index, exchange)| {
        let next = exchange.next?;
        let first = *exchange.answered.first()?;
        if exchange.separate || next <= first {
            return None;
        }
        let delays: Times =
            exchange.answered.iter().filter(|&&answer| answer < next).map(|answer| next - answer).collect();
        if delays.last().is_none_or(|&shortest| shortest > longest) {
            return None;
        }
        Some(Sample { at: first, exchange: Some(index), delays })
    });
    let of_pushes = chapter.pushes.iter().filter_map(|push| match (&push.sent[..], &push.acknowledged[..]) {
        (&[sent], &[acknowledged]) => Some(Sample { at: sent, exchange: None, delays: smallvec![acknowledged - sent] }),
        _ => None,
    });
    let mut samples: Vec<Sample> = of_exchanges.chain(of_pushes).collect();
    samples.sort_by(|one, other| one.at.total_cmp(&other.at));
    let starts = (0..samples.len().saturating_sub(WINDOW / 2).max(1)).step_by(WINDOW / 2);
    let may_grow = starts.len() <= MOST_THAT_GROW;
    let windows = starts.map(|start| &samples[start.min(samples.len())..(start + WINDOW).min(samples.len())]);
    let points: Vec<Point> =
        windows.filter(|window| window.len() >= 10).filter_map(|window| Point::of(window, may_grow)).collect();
    let agreement = median_of(points.iter().map(|point| point.agree)).unwrap_or_default();
    Track { samples, points, agreement }
}

/// Between known points a straight line, outside them the nearest.
#[derive(Clone, Debug)]
pub(crate) struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Of points that ascend; `None` of none.
    pub(crate) fn through(points: Vec<(f64, f64)>) -> Option<Self> {
        (!points.is_empty()).then_some(Self(points))
    }

    pub(crate) fn at(&self, time: f64) -> f64 {
        let behind = self.0.partition_point(|point| point.0 < time);
        match (behind.checked_sub(1).and_then(|before| self.0.get(before)), self.0.get(behind)) {
            (Some(&(t0, v0)), Some(&(t1, v1))) if t1 > t0 => v0 + (v1 - v0) * (time - t0) / (t1 - t0),
            (Some(&(_, value)), _) | (None, Some(&(_, value))) => value,
            (None, None) => 0.0,
        }
    }

    pub(crate) fn highest(&self) -> f64 {
        self.0.iter().map(|point| point.1).fold(0.0, f64::max)
    }
}

impl Track {
    /// Whether an answer at a time and the request that came so long after it agree with most others around.
    pub(crate) fn agrees(&self, time: f64, delay: f64) -> bool {
        self.nearest(time).is_some_and(|near| {
            let usual = near.delay + near.growth * (time - near.at);
            (usual - delay).abs() <= width(usual)
        })
    }

    /// The point whose time is nearest, the first of those that are as near: points ascend.
    fn nearest(&self, time: f64) -> Option<&Point> {
        let away = |place: usize| self.points.get(place).map_or(f64::INFINITY, |point| (point.at - time).abs());
        let mut place = self.points.partition_point(|point| point.at < time);
        while let Some(before) = place.checked_sub(1).filter(|&before| away(before) <= away(place)) {
            place = before;
        }
        self.points.get(place)
    }

    /// The loop over time where enough samples agree, without stray points.
    pub(crate) fn curve(&self, longest: f64) -> Option<Curve> {
        let least = 0.35_f64.max(0.6 * self.agreement);
        let good: Vec<(f64, f64)> = self
            .points
            .iter()
            .filter(|point| point.agree >= least && point.delay < longest)
            .map(|point| (point.at, point.delay))
            .collect();
        let calm = good.iter().enumerate().filter(|(index, point)| {
            let around = &good[index.saturating_sub(4)..(index + 5).min(good.len())];
            median_of(around.iter().map(|point| point.1)).is_some_and(|middle| point.1 <= 3.0 * middle + 0.5)
        });
        Curve::through(calm.map(|(_, &point)| point).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_grows_with_its_queue_is_one_loop() {
        // Of each exchange the second answer is accepted, after a loop of 5 s that grows by half a second in each.
        let samples: Vec<Sample> = (0..24_u32)
            .map(|number| {
                let (first, dithered) = (0.3 * f64::from(number), 2.0 + f64::from(number * 7 % 24) / 24.0);
                let accepted = first + dithered;
                let next = accepted + 5.0 + 0.5 * accepted;
                Sample { at: first, exchange: None, delays: smallvec![next - first, next - accepted] }
            })
            .collect();
        let still = Point::of(&samples, false).unwrap();
        assert!(still.agree < CLEAR, "{still:?}");
        let grown = Point::of(&samples, true).unwrap();
        let loop_then = 5.0 + 0.5 * grown.at;
        assert!(grown.agree >= 0.95 && (grown.delay - loop_then).abs() < 0.2, "{grown:?}");
        let track = Track { points: vec![grown], agreement: grown.agree, samples };
        for sample in &track.samples {
            let (accepted, delay) = sample.each().last().unwrap();
            assert!(track.agrees(accepted, delay), "{accepted}");
            assert!(!track.agrees(accepted, delay + 2.0), "{accepted}");
        }
    }
}
