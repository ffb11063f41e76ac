//! Packets as they came off the link before the capture: which of them had not waited, and for how long the link had been
//! busy when each came.

use crate::exchanges::Passed;

/// Arrivals over a link of a known rate.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    of: Vec<Arrival>,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: f64,
    peer: u32,
    at_once: bool,
    busy_for: f64,
}

impl Arrivals {
    /// `rate` in bit/s.
    pub(crate) fn over(packets: &[Passed], rate: f64) -> Self {
        let (mut last, mut busy_since) = (f64::NEG_INFINITY, 0.0);
        let of = packets.iter().filter(|packet| packet.up).map(|packet| {
            let service = 8.0 * f64::from(packet.bytes) / rate;
            let gap = packet.at - last;
            // Two lost packets leave such a hole in a busy period.
            if gap > 3.3 * service {
                busy_since = packet.at;
            }
            last = packet.at;
            Arrival {
                at: packet.at,
                peer: packet.peer,
                at_once: gap > 1.15 * service,
                busy_for: packet.at - busy_since,
            }
        });
        Self { of: of.collect() }
    }

    fn find(&self, at: f64, peer: u32) -> Option<&Arrival> {
        let first = self.of.partition_point(|arrival| arrival.at < at);
        self.of.get(first..)?.iter().take_while(|arrival| arrival.at <= at).find(|arrival| arrival.peer == peer)
    }

    /// Whether the packet of this time and peer came without having waited.
    pub(crate) fn at_once(&self, at: f64, peer: u32) -> bool {
        self.find(at, peer).is_some_and(|arrival| arrival.at_once)
    }

    /// How long the link had been busy, seconds: the packet waited no longer.
    pub(crate) fn busy_for(&self, at: f64, peer: u32) -> f64 {
        self.find(at, peer).map_or(0.0, |arrival| arrival.busy_for)
    }
}

/// Shares of windows of ten seconds, of those with traffic, in which a link was busy for more than 85 %.
pub(crate) fn saturated(times: &[f64], sizes: &[u32], rate: f64) -> f64 {
    const WINDOW: f64 = 10.0;
    let (mut busy, mut full, mut used) = ((0_u64, 0.0), 0_u64, 0_u64);
    let mut close = |bits: f64| {
        let share = bits / (WINDOW * rate);
        full += u64::from(share > 0.85);
        used += u64::from(share > 0.05);
    };
    for (&at, &size) in times.iter().zip(sizes) {
        let window = (at / WINDOW) as u64;
        if window != busy.0 {
            close(busy.1);
            busy = (window, 0.0);
        }
        busy.1 += 8.0 * f64::from(size);
    }
    close(busy.1);
    full as f64 / used.max(1) as f64
}
