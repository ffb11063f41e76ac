//! What links carried, and how much of it was of use, in windows of time.
//!
//! That a packet was of use shows later, so each leaves a trail of the windows in which links carried it, and what was of use
//! is counted there.

use std::collections::BTreeMap;

use millpond_control::Instant;

use crate::{ledger::Tag, network::LinkName, outcome::ShareSample};

/// The links that carried a packet, and the windows in which they did.
type Trail = Vec<(usize, usize)>;

/// A window of one link.
#[derive(Clone, Copy, Default)]
struct Window {
    carried: u64,
    useful: u64,
}

/// All windows of a run.
pub(super) struct Shares {
    step: u64,
    /// Of each link, in the order of time.
    windows: Vec<Vec<Window>>,
    /// Trails of packets that go on, by the link that they were offered to and its number for them.
    under_way: BTreeMap<(usize, u64), Trail>,
    /// Trails of the copies of requests that arrived, by flow, exchange and copy.
    requests: BTreeMap<(u32, u32, u8), Trail>,
    /// That of the packet that was carried last.
    last: Trail,
}

impl Shares {
    pub(super) fn new(step: u64, links: usize) -> Self {
        Self {
            step,
            windows: vec![Vec::new(); links],
            under_way: BTreeMap::new(),
            requests: BTreeMap::new(),
            last: Trail::new(),
        }
    }

    /// A link carried the packet that has this number there.
    #[cold]
    pub(super) fn carried(&mut self, now: Instant, link: usize, number: u64, bytes: u32) {
        let window = (now.as_micros() / self.step) as usize;
        self.window(link, window).carried += u64::from(bytes);
        self.last = self.under_way.remove(&(link, number)).unwrap_or_default();
        self.last.push((link, window));
    }

    /// The packet carried last goes on over another link, where it has this number.
    #[cold]
    pub(super) fn goes_on(&mut self, link: usize, number: u64) {
        self.under_way.insert((link, number), std::mem::take(&mut self.last));
    }

    /// The packet carried last is the copy of a request and has arrived.
    #[cold]
    pub(super) fn asked(&mut self, tag: &Tag) {
        self.requests.insert((tag.flow, tag.exchange, tag.copy), self.last.clone());
    }

    /// So many bytes of the packet carried last were of use.
    #[cold]
    pub(super) fn useful(&mut self, bytes: u32) {
        let trail = std::mem::take(&mut self.last);
        self.count(&trail, bytes);
    }

    /// The copy of a request was of use, and with it its exchange is over.
    #[cold]
    pub(super) fn useful_request(&mut self, tag: &Tag) {
        if let Some(trail) = self.requests.remove(&(tag.flow, tag.exchange, tag.copy)) {
            self.count(&trail, tag.request_bytes);
        }
        let others = self.requests.range((tag.flow, tag.exchange, 0)..=(tag.flow, tag.exchange, u8::MAX));
        for copy in others.map(|(copy, _)| *copy).collect::<Vec<_>>() {
            self.requests.remove(&copy);
        }
    }

    fn count(&mut self, trail: &[(usize, usize)], bytes: u32) {
        for &(link, window) in trail {
            self.window(link, window).useful += u64::from(bytes);
        }
    }

    fn window(&mut self, link: usize, window: usize) -> &mut Window {
        let windows = &mut self.windows[link];
        if windows.len() <= window {
            windows.resize(window + 1, Window::default());
        }
        &mut windows[window]
    }

    /// The first so many windows of all links.
    pub(super) fn rows(&self, windows: usize, links: &[LinkName]) -> Vec<ShareSample> {
        let row = |window: usize, (link, of_link): (&LinkName, &Vec<Window>)| {
            let Window { carried, useful } = of_link.get(window).copied().unwrap_or_default();
            let t_us = window as u64 * self.step;
            ShareSample { link: link.clone(), t_us, carried_bytes: carried, useful_bytes: useful }
        };
        (0..windows)
            .flat_map(|window| links.iter().zip(&self.windows).map(move |of_link| row(window, of_link)))
            .collect()
    }
}
