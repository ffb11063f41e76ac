//! The throughput equation of RFC 5348 §3.1 in integers, and back.
//!
//! With b = 1, t_RTO = 4R and messages for bytes, X = 1/(R · f(p)) where f(p) = √(2p/3) + 12 · √(3p/8) · p · (1 + 32p²).
//! Since √(3p/8) = ¾ · √(2p/3), f(p) = √(2p/3) · (1 + 9p + 288p³): one root is enough.

use crate::{
    division::{self, quotient},
    rate::Rate,
    time::Span,
};

/// The longest loss interval that is told, in messages.
pub(super) const LONGEST: u16 = u16::MAX;

/// Fraction bits of the root.
const ROOT: u32 = 20;
/// Fraction bits of p.
const SHARE: u32 = 24;
/// Bits more of the quotient of both.
const FINE: u32 = 7;
/// Millionths of a message in a second times microseconds in one, over 2^12, which 2^ROOT takes.
const UNIT: u64 = 244_140_625;

/// The rate at a loss event rate of `losses` in so many `messages`, which are not fewer. Within 4 millionths of the
/// equation, and half a millionth of a message per second.
pub(super) fn throughput(losses: u32, messages: u32, rtt: Span) -> Rate {
    let losses = u64::from(losses.max(1));
    let messages = u64::from(messages).max(losses);
    // Not above 30 · 65535 messages, so that nothing here reaches 2^63.
    let root = division::root(quotient(3_u64.wrapping_mul(messages) << (2 * ROOT - 1), losses));
    let share = quotient(losses << SHARE, messages);
    let cubed = (share.wrapping_mul(share).wrapping_mul(288) >> SHARE).wrapping_mul(share) >> SHARE;
    let slowed = (1_u64 << SHARE).wrapping_add(share.wrapping_mul(9)).wrapping_add(cubed);
    let messages_per_rtt = quotient(root << (SHARE + FINE), slowed);
    let rtt = u64::from(rtt.as_micros().max(1)) << (ROOT - 12 + FINE);
    let half = rtt >> 1;
    Rate::from_millionths(quotient(messages_per_rtt.wrapping_mul(UNIT).wrapping_add(half), rtt))
}

/// The shortest loss interval, in messages, with which the equation gives at least this rate (RFC 5348 §6.3.1).
pub(super) fn interval_for(rate: Rate, rtt: Span) -> u16 {
    let (mut low, mut high) = (1, LONGEST);
    while low < high {
        let middle = low.midpoint(high);
        if throughput(1, u32::from(middle), rtt) >= rate {
            high = middle;
        } else {
            low = middle.saturating_add(1);
        }
    }
    low
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::{vec, vec::Vec};

    /// X as RFC 5348 §3.1 prints it, for a message as the unit of length.
    #[allow(clippy::float_arithmetic, reason = "as it is printed")]
    fn printed(p: f64, rtt: f64) -> f64 {
        let (b, timeout) = (1.0, 4.0 * rtt);
        1.0 / (rtt * (2.0 * b * p / 3.0).sqrt()
            + timeout * (3.0 * (3.0 * b * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)))
    }

    #[test]
    #[allow(clippy::float_arithmetic, reason = "held against the equation as it is printed")]
    fn it_is_the_equation_of_the_rfc() {
        let mut cases: Vec<(u32, u32)> =
            vec![(1, 100), (1, 10), (1, 5), (1, 1), (30, 30 * 65_535), (30, 31), (23, 1_000)];
        cases.extend((1..2_000).map(|messages| (1, messages)));
        for (losses, messages) in cases {
            for rtt in [Span::from_micros(300), Span::from_millis(240), Span::from_millis(660), Span::from_secs(60)] {
                let exact = printed(f64::from(losses) / f64::from(messages), f64::from(rtt.as_micros()) / 1e6) * 1e6;
                let ours = f64::from(throughput(losses, messages, rtt).as_millionths());
                let exact = exact.min(f64::from(u32::MAX));
                assert!((ours - exact).abs() <= 4e-6 * exact + 0.5, "{losses}/{messages}, {rtt}: {ours}, not {exact}");
            }
        }
    }

    /// Messages of 100 B over 660 ms: 1702.0, 268.2 and 81.3 B/s.
    #[test]
    fn rates_are_those_of_the_worked_values() {
        let tenths = |messages| (throughput(1, messages, Span::from_millis(660)).as_millionths() + 500) / 1_000;
        assert_eq!([tenths(100), tenths(10), tenths(5)], [17_020, 2_682, 813]);
    }

    #[test]
    fn an_interval_is_the_first_whose_rate_reaches_the_target() {
        let rtt = Span::from_millis(240);
        for interval in [2, 3, 17, 1_000, 65_534] {
            assert_eq!(interval_for(throughput(1, u32::from(interval), rtt), rtt), interval);
        }
        assert_eq!(interval_for(Rate::ZERO, rtt), 1);
        assert_eq!(interval_for(Rate::MAX, rtt), LONGEST);
    }

    #[test]
    fn nothing_overflows() {
        for (losses, messages) in [(0, 0), (1, 0), (u32::MAX, 1), (30, 30 * 65_535 + 30)] {
            assert!(throughput(losses, messages, Span::ZERO) > Rate::ZERO);
            assert!(throughput(losses, messages, Span::MAX) >= Rate::ZERO);
        }
    }
}
