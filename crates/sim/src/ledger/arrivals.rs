//! What became of the requests of each second before and after an event: how many arrived in it, how many were delivered, and
//! how long that took.
//!
//! Kept only where something happens while the run goes on, because only then is the time of arrival a question.

use millpond_control::Instant;

use super::span;
use crate::outcome::ArrivalRow;

/// How long requests are taken together, in microseconds: a second, as settling times are read (CoCoA+, Betzler 2015).
const WINDOW: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    arrivals: u64,
    delivered: u64,
    delay: u64,
    crossing: u64,
}

/// The windows of every group, each up to its last arrival. They are counted from the event, so that what it makes to be
/// arrived is the first of a window; the run may begin within one.
#[derive(Debug)]
pub(super) struct Arrivals {
    windows: Vec<Vec<Window>>,
    /// Windows before the event.
    before: u64,
    /// From the start of the first one to the start of the run.
    lead: u64,
}

impl Arrivals {
    pub(super) fn new(groups: usize, event: Instant) -> Self {
        let before = event.as_micros().div_ceil(WINDOW);
        Self { windows: vec![Vec::new(); groups], before, lead: before * WINDOW - event.as_micros() }
    }

    pub(super) fn arrival(&mut self, group: u32, at: Instant) {
        if let Some(window) = self.window(group, at) {
            window.arrivals += 1;
        }
    }

    pub(super) fn delivered(&mut self, group: u32, arrival: Instant, sent: Instant, now: Instant) {
        if let Some(window) = self.window(group, arrival) {
            window.delivered += 1;
            window.delay = window.delay.saturating_add(span(now, arrival));
            window.crossing = window.crossing.saturating_add(span(now, sent));
        }
    }

    /// The windows in which a request arrived, group by group.
    pub(super) fn rows(&self) -> Vec<ArrivalRow> {
        let mut rows = Vec::new();
        for (group, windows) in self.windows.iter().enumerate() {
            let filled = windows.iter().enumerate().filter(|(_, window)| window.arrivals > 0);
            rows.extend(filled.map(|(number, window)| ArrivalRow {
                group: group as u32,
                since_us: (number as i64 - self.before as i64) * WINDOW as i64,
                arrivals: window.arrivals,
                delivered: window.delivered,
                delay_us: window.delay,
                crossing_us: window.crossing,
            }));
        }
        rows
    }

    fn window(&mut self, group: u32, at: Instant) -> Option<&mut Window> {
        let windows = self.windows.get_mut(group as usize)?;
        let number = usize::try_from(at.as_micros().saturating_add(self.lead) / WINDOW).ok()?;
        if windows.len() <= number {
            windows.resize(number + 1, Window::default());
        }
        windows.get_mut(number)
    }
}
