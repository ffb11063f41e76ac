//! Rows of a drawn histogram.

use hdrhistogram::Histogram;

/// Most rows of a drawing.
const MOST_ROWS: usize = 16;

/// Upper ends of rows, µs, on a scale of 1, 2, 5, 10, …, that hold every value of all of these; coarser by tens if
/// there would be too many. Empty if there are no values.
#[must_use]
pub(super) fn scale(all: &[&Histogram<u64>]) -> Vec<u64> {
    let filled = || all.iter().filter(|times| !times.is_empty());
    let (Some(least), Some(most)) = (filled().map(|times| times.min()).min(), filled().map(|times| times.max()).max())
    else {
        return Vec::new();
    };
    let steps: [&[u64]; 3] = [&[1, 2, 5], &[1, 3], &[1]];
    let rows = |steps: &[u64]| {
        let ends: Vec<u64> = (0..12).flat_map(|power| steps.iter().map(move |step| step * 10_u64.pow(power))).collect();
        let first = ends.partition_point(|end| *end < least);
        let last = ends.partition_point(|end| *end < most);
        ends.get(first..=last).map(<[u64]>::to_vec).unwrap_or_default()
    };
    steps.iter().map(|steps| rows(steps)).find(|rows| rows.len() <= MOST_ROWS).unwrap_or_else(|| rows(&[1]))
}

/// How many values lie in each row, above the end of the one before and up to its own.
#[must_use]
pub(super) fn counts(times: &Histogram<u64>, ends: &[u64]) -> Vec<u64> {
    let mut counts = vec![0; ends.len()];
    for value in times.iter_recorded() {
        let row = ends.partition_point(|end| *end < value.value_iterated_to());
        // A value is kept with three figures and may lie a little above the last end.
        if let Some(count) = counts.get_mut(row.min(ends.len().saturating_sub(1))) {
            *count += value.count_at_value();
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: &[u64]) -> Histogram<u64> {
        let mut times = Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("legal bounds");
        values.iter().for_each(|value| times.saturating_record(*value));
        times
    }

    #[test]
    fn rows_hold_every_value_of_all() {
        let (one, other) = (times(&[150, 900, 40_000]), times(&[120, 130]));
        let ends = scale(&[&one, &other]);
        assert_eq!(ends, [200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000]);
        assert_eq!(counts(&one, &ends), [1, 0, 1, 0, 0, 0, 0, 1]);
        assert_eq!(counts(&other, &ends), [2, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_wide_range_gets_coarser_rows() {
        let wide = times(&[1, 3_600_000_000]);
        let ends = scale(&[&wide]);
        assert!(ends.len() <= MOST_ROWS, "{ends:?}");
        assert_eq!(counts(&wide, &ends).iter().sum::<u64>(), 2);
    }

    #[test]
    fn nothing_has_no_rows() {
        assert!(scale(&[&times(&[])]).is_empty());
        assert!(scale(&[]).is_empty());
    }
}
