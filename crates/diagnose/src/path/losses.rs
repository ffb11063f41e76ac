//! Losses of the radio told from those of a full queue: the first meet short and long queues alike.

/// Shares of packets lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// Of all; `None` if there was nothing to see.
    pub all: Option<f64>,
    /// Of those that met a short queue, and of how many.
    pub radio: Option<f64>,
    pub seen: usize,
    /// More were lost where the queue was long.
    pub queue_was_full: bool,
}

/// From pairs of the loop time that a packet met and whether it was lost.
pub(crate) fn losses(mut met: Vec<(f64, bool)>) -> Losses {
    let count = met.len();
    let share = |of: &[(f64, bool)]| of.iter().filter(|(_, lost)| *lost).count() as f64 / of.len().max(1) as f64;
    let all = (count > 0).then(|| share(&met));
    let mut found = Losses { all, radio: all, seen: count, queue_was_full: false };
    if count < 60 {
        return found;
    }
    met.sort_by(|one, other| one.0.total_cmp(&other.0));
    let spread = met[count - 1].0 - met[0].0;
    let (median, top) = (met[count / 2].0, met[count * 9 / 10].0);
    let short = &met[..met.partition_point(|(time, _)| *time <= median)];
    let long = &met[met.partition_point(|(time, _)| *time < top)..];
    let lost_long = long.iter().filter(|(_, lost)| *lost).count();
    found.queue_was_full = spread > 0.3 && lost_long >= 6 && share(long) > 2.5 * share(short) + 0.02;
    if spread > 0.3 && short.len() >= 50 {
        (found.radio, found.seen) = (Some(share(short)), short.len());
    }
    found
}
