//! The delay of one packet: propagation, which may follow a trace, plus its own jitter.

use crate::config::{Config, Jitter, Order};
use crate::trace::Follower;
use millpond_control::{ChanceSeed, Purpose, Span};

#[derive(Clone, Debug)]
pub(crate) struct Delay {
    seed: ChanceSeed,
    link: u32,
    /// The least delay that a packet ever has, µs.
    least: u64,
    /// Width of the jitter, if any.
    spread: Span,
    order: Order,
    /// The trace that the propagation follows, if it does, and the least jitter, µs.
    traced: Option<Box<(Follower, u64)>>,
}

impl Delay {
    pub(crate) fn new(config: &Config, seed: ChanceSeed, link: u32) -> Self {
        let (from, to, order) = match config.jitter {
            Jitter::None => (Span::ZERO, Span::ZERO, Order::Preserved),
            Jitter::Uniform { from, to, order } => (from, to, order),
        };
        let least = u64::from(config.propagation.as_micros()) + u64::from(from.as_micros());
        Self { seed, link, least, spread: to.minus(from), order, traced: None }
    }

    /// The propagation follows a trace; `before` is what it was until now.
    pub(crate) fn follow(&mut self, trace: Follower, before: Span) {
        let jitter = self.least - u64::from(before.as_micros());
        self.least = u64::from(trace.least_delay().as_micros()) + jitter;
        self.traced = Some(Box::new((trace, jitter)));
    }

    pub(crate) const fn order(&self) -> Order {
        self.order
    }

    /// When a packet that left at `left` arrives at the earliest, whatever its random numbers, and any that leaves after it.
    pub(crate) const fn earliest(&self, left: u64) -> u64 {
        left.saturating_add(self.least)
    }

    /// When packet `number`, which left at `left`, arrives if nothing holds it up.
    pub(crate) fn arrival(&self, left: u64, number: u64) -> u64 {
        let earliest = match &self.traced {
            None => self.earliest(left),
            Some(traced) => left.saturating_add(u64::from(traced.0.delay(left).as_micros()) + traced.1),
        };
        if self.spread == Span::ZERO {
            return earliest;
        }
        earliest.saturating_add(self.extra(number))
    }

    /// The jitter of packet `number`, µs.
    #[cold]
    fn extra(&self, number: u64) -> u64 {
        let place = [self.link, number as u32, (number >> 32) as u32, 0];
        u64::from(self.seed.at(Purpose::Jitter, place).between(Span::ZERO, self.spread).as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limit, Rate};

    fn delay(jitter: Jitter) -> Delay {
        let config = Config { jitter, ..Config::plain(Rate::Unlimited, Span::from_millis(200), Limit::Bytes(1_500)) };
        Delay::new(&config, ChanceSeed::new(1), 3)
    }

    #[test]
    fn without_jitter_the_delay_is_the_propagation() {
        assert_eq!(delay(Jitter::None).arrival(5, 9), 200_005);
    }

    #[test]
    fn the_interval_is_uniform_and_includes_both_ends() {
        let (from, to) = (Span::from_micros(10), Span::from_micros(20));
        let delay = delay(Jitter::Uniform { from, to, order: Order::Free });
        let mut bins = [0_u32; 11];
        let n = 110_000;
        for number in 0..n {
            bins[(delay.arrival(0, number) - 200_010) as usize] += 1;
        }
        // Chi-square with ten degrees of freedom: the 99.9 % point is 29.6.
        let expected = n as f64 / 11.0;
        let squares: f64 = bins.iter().map(|&hits| (f64::from(hits) - expected).powi(2) / expected).sum();
        assert!(squares < 29.6, "{bins:?}");
    }

    #[test]
    fn links_and_seeds_draw_from_streams_of_their_own() {
        let jitter = Jitter::Uniform { from: Span::ZERO, to: Span::from_secs(1), order: Order::Free };
        let here = delay(jitter);
        let arrivals = |delay: &Delay| (0..8).map(|number| delay.arrival(0, number)).collect::<Vec<_>>();
        assert_eq!(arrivals(&here), arrivals(&delay(jitter)));
        assert_ne!(arrivals(&here), arrivals(&Delay { link: 4, ..here.clone() }));
        assert_ne!(arrivals(&here), arrivals(&Delay { seed: ChanceSeed::new(2), ..here.clone() }));
    }

    #[test]
    fn the_widest_delays_do_not_wrap() {
        let config = Config {
            jitter: Jitter::Uniform { from: Span::MAX, to: Span::MAX, order: Order::Free },
            ..Config::plain(Rate::Unlimited, Span::MAX, Limit::Bytes(1))
        };
        let delay = Delay::new(&config, ChanceSeed::new(1), 0);
        assert_eq!(delay.arrival(0, 0), 2 * u64::from(u32::MAX));
        assert_eq!(delay.arrival(u64::MAX - 1, 0), u64::MAX);
    }
}
