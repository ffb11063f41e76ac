//! Places in sorted samples.

/// Sorts; there are no values that are no numbers among what is measured.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The value that this share of the sorted samples is below; `None` of none.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64) as usize).copied()
}

/// The middle of sorted samples; `None` of none.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

/// The middle of unsorted samples.
pub(crate) fn median_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    let middle = values.len() / 2;
    (middle < values.len()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// The densest place of sorted samples: how many lie within `width(highest of them)` of each other, and their middle.
pub(crate) fn densest(sorted: &[f64], width: impl Fn(f64) -> f64) -> Option<(usize, f64)> {
    clusters(sorted, width).max_by(|one, other| one.0.cmp(&other.0).then(other.1.total_cmp(&one.1)))
}

/// For each sample how many lie within the width below it, and their middle.
pub(crate) fn clusters(sorted: &[f64], width: impl Fn(f64) -> f64) -> impl Iterator<Item = (usize, f64)> {
    let mut low = 0;
    sorted.iter().enumerate().filter_map(move |(high, &top)| {
        while sorted.get(low).is_some_and(|&bottom| top - bottom > width(top)) {
            low += 1;
        }
        Some((high + 1 - low, *sorted.get(usize::midpoint(low, high))?))
    })
}
