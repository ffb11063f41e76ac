//! How often verdicts of a rule are right: a model's probability is no confidence before it was compared with the truth.
//!
//! Measured on 240 drawn scenarios of development, 165,000 retransmissions; between two points a straight line.

use crate::judgement::Judged;

/// Points of a model's probability and of the share that was right.
type Measured = [(f64, f64); 5];

const SPURIOUS_BY_LOOP: Measured = [(0.6, 0.8), (0.7, 0.85), (0.9, 0.92), (0.95, 0.98), (1.0, 1.0)];
const NEEDED_BY_LOOP: Measured = [(0.6, 0.6), (0.75, 0.73), (0.9, 0.85), (0.99, 0.94), (1.0, 0.985)];
const SPURIOUS_BY_STOP: Measured = [(0.7, 0.76), (0.8, 0.8), (0.95, 0.92), (0.99, 0.955), (1.0, 0.98)];
const NEEDED_BY_STOP: Measured = [(0.8, 0.82), (0.9, 0.88), (0.95, 0.92), (0.99, 0.93), (1.0, 0.97)];

/// Rarer rightly than so is not told.
const LEAST: f64 = 0.7;

/// From the answer that was accepted, of closed loops.
pub(crate) fn by_loop(is_spurious: bool, probability: f64) -> Judged {
    let points = if is_spurious { &SPURIOUS_BY_LOOP } else { &NEEDED_BY_LOOP };
    match measured(points, probability) {
        confidence if confidence < LEAST => Judged::UNKNOWN,
        confidence if is_spurious => Judged::spurious(confidence),
        confidence => Judged::needed(confidence),
    }
}

/// From when the device stopped, by how likely it is that the transmission was spurious. `tells_needed`: what was needed can
/// be told.
pub(crate) fn by_stop(spurious: f64, tells_needed: bool) -> Judged {
    if spurious >= SPURIOUS_BY_STOP[0].0 {
        Judged::spurious(measured(&SPURIOUS_BY_STOP, spurious))
    } else if tells_needed && 1.0 - spurious >= NEEDED_BY_STOP[0].0 {
        Judged::needed(measured(&NEEDED_BY_STOP, 1.0 - spurious))
    } else {
        Judged::UNKNOWN
    }
}

fn measured(points: &Measured, probability: f64) -> f64 {
    let pair = points.windows(2).find(|pair| probability <= pair[1].0).unwrap_or(&points[3..]);
    let ((p0, s0), (p1, s1)) = (pair[0], pair[1]);
    s0 + (s1 - s0) * ((probability - p0) / (p1 - p0)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::Verdict;

    #[test]
    fn a_probability_is_worth_what_was_measured() {
        assert!((by_loop(true, 0.8).confidence - 0.885).abs() < 1e-9);
        assert!((by_loop(false, 1.0).confidence - 0.985).abs() < 1e-9);
        assert!((by_stop(0.05, true).confidence - 0.92).abs() < 1e-9);
    }

    #[test]
    fn what_is_even_is_not_told() {
        for (spurious, tells_needed, verdict) in [
            (0.69, true, Verdict::Unknown),
            (0.21, true, Verdict::Unknown),
            (0.19, true, Verdict::Needed),
            (0.0, false, Verdict::Unknown),
            (0.7, false, Verdict::Spurious),
        ] {
            assert_eq!(by_stop(spurious, tells_needed).verdict, verdict, "{spurious}");
        }
    }
}
