//! Counts over the time of a capture.

use crate::findings::Counts;

/// Spans of a capture, as many as a screen has lines.
const SPANS: usize = 24;

/// What happened in one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) counts: Counts,
    pub(crate) exchanges: u64,
    pub(crate) useful: f64,
    pub(crate) carried: f64,
}

/// The windows of a capture whose length is not known before its end: when there are too many they are merged by twos.
#[derive(Debug)]
pub(crate) struct Windows {
    pub(crate) length: f64,
    pub(crate) of: Vec<Window>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { length: 1.0, of: Vec::new() }
    }
}

impl Windows {
    /// The one that has this time in it.
    pub(crate) fn at(&mut self, time: f64) -> &mut Window {
        while (time / self.length) as usize >= 2 * SPANS {
            self.length *= 2.0;
            self.of = self.of.chunks(2).map(|pair| pair.iter().fold(Window::default(), Window::and)).collect();
        }
        let place = (time / self.length) as usize;
        if place >= self.of.len() {
            self.of.resize(place + 1, Window::default());
        }
        &mut self.of[place]
    }
}

impl Window {
    fn and(self, other: &Self) -> Self {
        let (one, two) = (self.counts, other.counts);
        Self {
            counts: Counts {
                transmissions: one.transmissions + two.transmissions,
                spurious: one.spurious + two.spurious,
                needed: one.needed + two.needed,
                unknown: one.unknown + two.unknown,
            },
            exchanges: self.exchanges + other.exchanges,
            useful: self.useful + other.useful,
            carried: self.carried + other.carried,
        }
    }
}
