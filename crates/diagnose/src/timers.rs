//! The devices' timers: the first gap between transmissions has ACK_TIMEOUT and its random factor, the ratio of gaps the
//! backoff, the most transmissions MAX_RETRANSMIT.

use std::collections::BTreeMap;

use crate::exchanges::Exchange;
use crate::ordered::{median_of, quantile, sorted};

/// What transmissions show of timers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    /// First gaps that were seen.
    pub gaps: usize,
    /// Of those the ones in the range.
    pub in_range: usize,
    /// The range of first gaps, seconds.
    pub range: Option<(f64, f64)>,
    /// The ratio of the second to the first gap.
    pub backoff: Option<f64>,
    /// The most transmissions of an exchange.
    pub most: usize,
    /// So many exchanges ended there that it is the devices' limit.
    pub is_limit: bool,
    /// Most of them ended before another transmission was due, by the next request: they say nothing of a limit.
    pub ended_sooner: bool,
    /// Transmissions waited in a queue before the capture: gaps are blurred.
    pub blurred: bool,
}

/// `at_once` says of the n-th transmission of an exchange whether it came without having waited in a queue.
pub(crate) fn timers(exchanges: &[Exchange], at_once: impl Fn(&Exchange, usize) -> bool) -> Timers {
    let pure = |exchange: &Exchange, from: usize| at_once(exchange, from) && at_once(exchange, from + 1);
    let gap = |exchange: &Exchange, from: usize| Some(exchange.sent.get(from + 1)? - exchange.sent.get(from)?);
    let resent = || exchanges.iter().filter(|exchange| exchange.confirmable && exchange.sent.len() > 1);
    let first = sorted(resent().filter(|exchange| pure(exchange, 0)).filter_map(|exchange| gap(exchange, 0)));
    let mut found = Timers { gaps: first.len(), ..Timers::default() };
    if first.len() >= 8
        && let Some(mut low) = quantile(&first, 0.005)
    {
        if first.partition_point(|&gap| gap < 1.97 * low) * 4 < first.len() {
            low = first[first.len() / 10];
        }
        let inside =
            &first[first.partition_point(|&gap| gap < 0.98 * low)..first.partition_point(|&gap| gap < 1.97 * low)];
        found.in_range = inside.len();
        found.range = quantile(inside, 0.995).map(|high| (low, high));
        let ratios: Vec<f64> = resent()
            .filter(|exchange| exchange.sent.len() > 2 && pure(exchange, 0) && pure(exchange, 1))
            .filter_map(|exchange| Some((gap(exchange, 0)?, gap(exchange, 1)?)))
            .filter(|(first, _)| *first < 1.97 * low)
            .map(|(first, second)| second / first)
            .collect();
        found.backoff = (ratios.len() >= 5).then(|| median_of(ratios)).flatten();
    }
    let mut by_count: BTreeMap<usize, usize> = BTreeMap::new();
    for exchange in exchanges.iter().filter(|exchange| exchange.confirmable) {
        *by_count.entry(exchange.sent.len()).or_default() += 1;
    }
    if let Some((&most, &at_most)) = by_count.last_key_value() {
        let before = by_count.get(&(most.saturating_sub(1))).copied().unwrap_or_default();
        found.most = most;
        found.is_limit = most >= 3 && at_most >= 5 && at_most * at_most >= 5 * (at_most + before);
        let longest = exchanges.iter().filter(|exchange| exchange.confirmable && exchange.sent.len() == most);
        let sooner = longest.filter(|exchange| exchange.next.is_some_and(|next| next < due(exchange))).count();
        found.ended_sooner = 2 * sooner > at_most;
    }
    found
}

/// Until when an exchange's next transmission was not due, if waits double: a device that gives up asks again then.
fn due(exchange: &Exchange) -> f64 {
    const DOUBLED: f64 = 1.9;
    let last = exchange.sent.len() - 1;
    let before = exchange.sent.get(last.saturating_sub(1)).copied().unwrap_or_default();
    exchange.last_sent() + DOUBLED * (exchange.last_sent() - before)
}

/// The default of RFC 7252 §4.8.
const DEFAULT: (f64, f64) = (2.0, 3.0);

impl Timers {
    /// The range of ACK_TIMEOUT to ACK_TIMEOUT · ACK_RANDOM_FACTOR, seconds: whole seconds and 1.5 where they fit, the default
    /// where little was seen.
    pub(crate) fn likely(&self) -> (f64, f64) {
        let Some((low, high)) = self.range else { return DEFAULT };
        if self.in_range < 8 || self.blurred && self.in_range < 30 {
            return DEFAULT;
        }
        self.round(low, high).map_or((low, high.max(1.02 * low)), |whole| (whole, 1.5 * whole))
    }

    fn round(&self, low: f64, high: f64) -> Option<f64> {
        let slack = if self.blurred { 0.4 } else { 0.0 };
        [2.0, 1.0, 3.0, 4.0, 5.0, 8.0, 10.0]
            .into_iter()
            .find(|whole| whole * (0.94 - slack) <= low && high <= 1.5 * whole * (1.015 + slack) && low < 1.25 * whole)
    }

    /// Whether the range was seen, and not assumed.
    pub(crate) fn is_seen(&self) -> bool {
        self.in_range >= 8 && !(self.blurred && self.in_range < 30)
    }
}
