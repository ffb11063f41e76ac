//! Division and roots. Where no instruction divides, the functions that stand in for one take more room than an algorithm;
//! there a bit is found at a time, by the code below.

/// `dividend / divisor`; zero if the divisor is zero. The divisor is below 2^63.
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) const fn quotient(dividend: u64, divisor: u64) -> u64 {
    if divisor == 0 {
        0
    } else if cfg!(target_os = "none") {
        quotient_by_bits(dividend, divisor)
    } else {
        match dividend.checked_div(divisor) {
            Some(quotient) => quotient,
            None => 0,
        }
    }
}

/// The root, rounded down.
#[allow(dead_code, reason = "one algorithm needs it")]
#[cfg_attr(target_os = "none", inline(never))]
pub(crate) const fn root(number: u64) -> u64 {
    if cfg!(target_os = "none") { root_by_bits(number) } else { number.isqrt() }
}

/// The dividend moves into the rest as the quotient takes its place.
const fn quotient_by_bits(mut dividend: u64, divisor: u64) -> u64 {
    let (mut rest, mut left) = (0_u64, u64::BITS);
    while left > 0 {
        rest = rest << 1 | dividend >> (u64::BITS - 1);
        dividend <<= 1;
        if rest >= divisor {
            rest = rest.wrapping_sub(divisor);
            dividend |= 1;
        }
        left = left.wrapping_sub(1);
    }
    dividend
}

const fn root_by_bits(mut rest: u64) -> u64 {
    let (mut root, mut bit) = (0_u64, 1_u64 << (u64::BITS - 2));
    while bit > 0 {
        let square = root | bit;
        root >>= 1;
        if rest >= square {
            rest = rest.wrapping_sub(square);
            root |= bit;
        }
        bit >>= 2;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{ChanceSeed, Purpose};

    #[test]
    fn bits_give_what_instructions_give() {
        let words = |shift| {
            let word = ChanceSeed::new(24).wide(Purpose::Workload, [shift, 0, 0, 0]) >> shift;
            [word, 1 << shift, (1 << shift) - 1]
        };
        let numbers = (0..64).flat_map(words).chain([u64::MAX, 1_000_000_000_000]);
        for number in numbers.clone() {
            for around in [number.wrapping_sub(1), number, number.saturating_mul(number)] {
                assert_eq!((root_by_bits(around), root(around)), (around.isqrt(), around.isqrt()), "{around}");
            }
            assert_eq!(quotient(number, 0), 0);
            for divisor in numbers.clone().filter(|divisor| (1..1 << 63).contains(divisor)) {
                let exact = number.checked_div(divisor).unwrap_or(0);
                assert_eq!(quotient_by_bits(number, divisor), exact, "{number} / {divisor}");
                assert_eq!(quotient(number, divisor), exact);
            }
        }
    }
}
