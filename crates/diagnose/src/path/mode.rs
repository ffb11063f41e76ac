//! The rate at which most of some samples are, where others are at simple multiples and fractions of it.

use crate::ordered::clusters;

/// The densest place of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mode {
    /// bit/s.
    pub rate: f64,
    pub hits: usize,
    /// So narrow that nothing but the link spaces packets.
    pub is_sharp: bool,
    /// No other rate that is related to it is as frequent.
    pub is_alone: bool,
}

/// Logarithms of rates that are one place, if jitter or another queue blurs them, and if none does.
const BLURRED: f64 = 0.02;
const SHARP: f64 = 0.002;
/// Packets between two that were dropped, or not seen, make a rate seem so many times as high or as low.
const RELATED: [f64; 5] = [2.0, 1.5, 4.0 / 3.0, 3.0, 1.25];

/// Of sorted logarithms.
pub(crate) fn mode(logarithms: &[f64]) -> Option<Mode> {
    let (wide, _) = densest(logarithms, BLURRED)?;
    let (narrow, is_alone) = densest(logarithms, SHARP)?;
    let hits = |at: f64, width: f64| {
        let place = |bound: f64| logarithms.partition_point(|&value| value < bound);
        place(at + width / 2.0) - place(at - width / 2.0)
    };
    let is_sharp = 2 * hits(narrow, SHARP) >= hits(narrow, BLURRED);
    let at = if is_sharp { narrow } else { wide };
    Some(Mode { rate: at.exp(), hits: hits(at, BLURRED), is_sharp, is_alone })
}

/// The middle of the densest place, or of a slower one to which it has a simple ratio and that is half as dense: packets that
/// were dropped between two make them seem faster. And whether there is no other such place.
fn densest(logarithms: &[f64], width: f64) -> Option<(f64, bool)> {
    let found: Vec<(usize, f64)> = clusters(logarithms, |_| width).collect();
    let best = *found.iter().max_by_key(|found| found.0)?;
    let is_related = |apart: f64| RELATED.iter().any(|factor| (apart - factor.ln()).abs() < 1.5 * width);
    let slower = found.iter().filter(|(hits, at)| *hits * 2 >= best.0 && is_related(best.1 - at));
    let slower = slower.max_by_key(|found| found.0).copied();
    let faster = found.iter().any(|(hits, at)| *hits * 2 >= best.0 && is_related(at - best.1));
    Some((slower.unwrap_or(best).1, slower.is_none() && !faster))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordered::sorted;

    fn logarithms(rates: &[(f64, usize)]) -> Vec<f64> {
        let spread = |(rate, count): &(f64, usize)| vec![*rate; *count];
        sorted(rates.iter().flat_map(spread).map(f64::ln))
    }

    #[test]
    fn the_rate_of_most_is_alone_if_no_related_one_is_as_frequent() {
        let found = mode(&logarithms(&[(30e3, 40), (60e3, 10), (7e3, 5)])).unwrap();
        assert!((found.rate - 30e3).abs() < 1.0 && found.is_sharp && found.is_alone, "{found:?}");
        assert_eq!(found.hits, 40);
    }

    #[test]
    fn other_traffic_between_packets_is_seen() {
        // Of a third of the devices that share a link: half, a third of its rate.
        let found = mode(&logarithms(&[(30e3, 40), (15e3, 28), (10e3, 18)])).unwrap();
        assert!(found.is_sharp && !found.is_alone, "{found:?}");
    }
}
