//! One link beside netem: a single instance with rate, delay and limit is the same thing, though its stages stand in
//! another order.

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Config, Counted, Delivered, DropReason, Limit, Link, Rate};
use proptest::prelude::*;

/// Bytes of the Ethernet header, which netem's rate charges on an Ethernet interface.
const ETHERNET: i32 = 14;

/// netem's `sch_netem` with constant delay: a packet departs at max(its arrival + delay, when the one before has
/// departed) + length / rate, and until then it counts towards the limit in packets. Times in parts of the rate, so that nothing
/// is rounded but the end.
struct Netem {
    rate: u128,
    delay: u128,
    limit: usize,
    /// When each packet taken departs.
    departures: Vec<u128>,
}

impl Netem {
    fn offer(&mut self, now: u64, len: u32) -> Option<u64> {
        let now = u128::from(now) * self.rate;
        // Looked at once a microsecond, as everything here is.
        let inside = self.departures.iter().filter(|departure| departure.div_ceil(self.rate) * self.rate > now);
        if inside.count() >= self.limit {
            return None;
        }
        let last = self.departures.last().copied().unwrap_or(0);
        let length = (i64::from(len) + i64::from(ETHERNET)) as u128 * 8_000_000;
        let departure = (now + self.delay * self.rate).max(last) + length;
        self.departures.push(departure);
        Some(departure.div_ceil(self.rate) as u64)
    }
}

proptest! {
    #[test]
    fn a_limit_on_all_packets_is_that_of_one_netem_instance(
        rate in 1_000..1_000_000_u64,
        delay in 0..500_000_u32,
        limit in 1..60_usize,
        packets in prop::collection::vec((0..60_000_u64, 1..1_500_u32), 1..300),
    ) {
        let plain = Config::plain(Rate::BitsPerSecond(rate), Span::from_micros(delay), Limit::Packets(limit as u64));
        let config = Config { queue_counts: Counted::All, overhead: ETHERNET, ..plain };
        let mut link = Link::new(&config, ChanceSeed::new(1), 0).unwrap();
        let mut netem = Netem { rate: rate.into(), delay: delay.into(), limit, departures: Vec::new() };
        let (mut now, mut expected, mut arrived) = (0, Vec::new(), Vec::new());
        for (gap, len) in packets {
            now += gap;
            let offered = link.offer(Instant::from_micros(now), len, ());
            match netem.offer(now, len) {
                Some(due) => {
                    prop_assert_eq!(offered, Ok(()));
                    expected.push(due);
                }
                None => prop_assert_eq!(offered, Err((DropReason::QueueFull, ()))),
            }
        }
        while let Some(next) = link.next() {
            while let Some(Delivered::Arrived(parcel)) = link.deliver(next) {
                arrived.push(parcel.at.as_micros());
            }
        }
        prop_assert_eq!(arrived, expected);
    }
}
