//! How many copies of requests the flows of each group sent, in windows of time.

use millpond_control::Instant;

use crate::{ledger::Tag, outcome::SentSample};

/// A window of one group.
#[derive(Clone, Copy, Default)]
struct Window {
    first: u32,
    again: u32,
    bytes: u64,
}

/// All windows of a run.
pub(super) struct Sent {
    step: u64,
    /// The group of each flow.
    groups: Vec<u32>,
    /// Of each group, in the order of time.
    windows: Vec<Vec<Window>>,
}

impl Sent {
    pub(super) fn new(step: u64, groups: Vec<u32>) -> Self {
        let count = groups.iter().max().map_or(0, |&last| last as usize + 1);
        Self { step, groups, windows: vec![Vec::new(); count] }
    }

    /// A copy left that has this tag.
    pub(super) fn left(&mut self, now: Instant, tag: &Tag) {
        let Some(&group) = self.groups.get(tag.flow as usize) else { return };
        let (windows, at) = (&mut self.windows[group as usize], (now.as_micros() / self.step) as usize);
        if windows.len() <= at {
            windows.resize(at + 1, Window::default());
        }
        let window = &mut windows[at];
        if tag.copy == 0 {
            window.first += 1
        } else {
            window.again += 1
        }
        window.bytes += u64::from(tag.request_bytes);
    }

    /// The first so many windows of all groups.
    pub(super) fn rows(&self, windows: usize) -> Vec<SentSample> {
        let row = |at: usize, (group, of_group): (u32, &Vec<Window>)| {
            let Window { first, again, bytes } = of_group.get(at).copied().unwrap_or_default();
            SentSample { group, t_us: at as u64 * self.step, first, again, bytes }
        };
        (0..windows).flat_map(|at| (0..).zip(&self.windows).map(move |of_group| row(at, of_group))).collect()
    }
}
