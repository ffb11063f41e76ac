use millpond_control::{Controller, Span};

use super::{
    RetransmitOptions, Transmission,
    overdue::{least_last_wait, longest_last_wait},
};

/// The times that RFC 7252 §4.8.2 derives from the transmission parameters, in microseconds.
///
/// The RFC's formulas assume a timeout that is drawn from [2 s, 3 s] and doubles. An adaptive controller may start from
/// longer waits, and a cap shortens later ones, so the waits themselves are summed. 64 bits, because a doubling timer
/// with 20 retransmissions takes 73 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lifetimes {
    /// MAX_TRANSMIT_SPAN: from the first copy to the last.
    pub transmit_span: u64,
    /// MAX_TRANSMIT_WAIT: from the first copy until the sender gives up.
    pub transmit_wait: u64,
    /// EXCHANGE_LIFETIME: from the first copy until the message ID may be used again. The RFC's sum of
    /// MAX_TRANSMIT_SPAN and the longest round trip, or MAX_TRANSMIT_WAIT where that is longer: the sum is too short
    /// once the last wait exceeds the longest round trip.
    pub exchange: u64,
    /// NON_LIFETIME: the same for a non-confirmable message.
    pub non: u64,
}

impl Lifetimes {
    /// With the longest waits that this controller can arm, beginning from the longest first one.
    #[must_use]
    pub fn of(controller: &impl Controller, transmission: &Transmission) -> Self {
        Self::with_retransmit(controller, transmission, RetransmitOptions::DEFAULT)
    }

    /// The same for a message that is retransmitted so.
    #[must_use]
    pub fn with_retransmit(
        controller: &impl Controller,
        transmission: &Transmission,
        retransmit: RetransmitOptions,
    ) -> Self {
        let most = retransmit.max_retransmit.unwrap_or(transmission.max_retransmit);
        let (mut previous, mut least) = (Span::ZERO, retransmit.ack_timeout);
        let last_wait = longest_last_wait(least_last_wait(controller.wishes().last_wait, most));
        let waits = (0..=most).map(|copy| {
            previous = controller.longest_wait(copy, previous);
            let wait = previous.max(least).max(if copy == most { last_wait } else { Span::ZERO });
            least = least.doubled();
            u64::from(wait.as_micros())
        });
        Self::of_waits(waits, transmission)
    }

    /// With a first wait that doubles without a cap, as in the RFC's own formulas. `longest_first` is ACK_TIMEOUT ·
    /// ACK_RANDOM_FACTOR.
    #[must_use]
    pub fn doubling(longest_first: Span, transmission: &Transmission) -> Self {
        let first = u64::from(longest_first.as_micros());
        let waits = (0..=transmission.max_retransmit)
            .map(|copy| first.saturating_mul(1_u64.checked_shl(u32::from(copy)).unwrap_or(u64::MAX)));
        Self::of_waits(waits, transmission)
    }

    /// With these waits in microseconds, one after each copy, the one after the last copy included.
    #[must_use]
    pub fn of_waits(waits: impl IntoIterator<Item = u64>, transmission: &Transmission) -> Self {
        let (mut transmit_span, mut transmit_wait) = (0_u64, 0_u64);
        for wait in waits {
            transmit_span = transmit_wait;
            transmit_wait = transmit_wait.saturating_add(wait);
        }
        let latency = u64::from(transmission.max_latency.as_micros());
        let round_trip = latency.saturating_mul(2).saturating_add(u64::from(transmission.processing_delay.as_micros()));
        Self {
            transmit_span,
            transmit_wait,
            exchange: transmit_span.saturating_add(round_trip).max(transmit_wait),
            non: transmit_span.saturating_add(latency),
        }
    }

    /// The longer of both in every respect.
    #[must_use]
    pub fn longest(self, other: Self) -> Self {
        Self {
            transmit_span: self.transmit_span.max(other.transmit_span),
            transmit_wait: self.transmit_wait.max(other.transmit_wait),
            exchange: self.exchange.max(other.exchange),
            non: self.non.max(other.non),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn twenty() -> Transmission {
        Transmission { max_retransmit: 20, ..Transmission::RFC7252 }
    }

    fn seconds(lifetimes: Lifetimes) -> [u64; 4] {
        let Lifetimes { transmit_span, transmit_wait, exchange, non } = lifetimes;
        [transmit_span, transmit_wait, exchange, non].map(|micros| {
            assert_eq!(micros % SECOND, 0);
            micros / SECOND
        })
    }

    /// A first wait that doubles up to a cap, in microseconds.
    fn capped(first: u64, cap: u64) -> impl Iterator<Item = u64> {
        core::iter::successors(Some(first), move |wait| Some(wait.saturating_mul(2).min(cap)))
    }

    #[test]
    fn the_defaults_are_those_of_the_rfc() {
        let lifetimes = Lifetimes::doubling(Span::from_secs(3), &Transmission::RFC7252);
        assert_eq!(seconds(lifetimes), [45, 93, 247, 145]);
    }

    #[test]
    fn twenty_doublings_outlive_the_formula_so_the_wait_counts() {
        let lifetimes = Lifetimes::doubling(Span::from_secs(3), &twenty());
        assert_eq!(seconds(lifetimes), [3_145_725, 6_291_453, 6_291_453, 3_145_825]);
    }

    #[test]
    fn a_cap_shortens_them() {
        let cap = 60 * SECOND;
        let of = |first| Lifetimes::of_waits(capped(first, cap).take(21), &twenty());
        assert_eq!(seconds(of(3 * SECOND)), [993, 1053, 1195, 1093]);
        let middle = of(2_500_000);
        assert_eq!((middle.transmit_span, middle.transmit_wait), (977_500_000, 1_037_500_000));
        let low = of(2 * SECOND);
        assert_eq!((low.transmit_span, low.transmit_wait), (962 * SECOND, 1_022 * SECOND));
    }

    #[test]
    fn nothing_overflows() {
        let transmission = Transmission { max_retransmit: 250, ..Transmission::RFC7252 };
        assert_eq!(Lifetimes::doubling(Span::MAX, &transmission).exchange, u64::MAX);
    }
}
