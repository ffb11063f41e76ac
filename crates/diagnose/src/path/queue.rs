//! A link's queue, replayed from the packets that came to it.

use std::collections::VecDeque;

/// How long each packet waits and is served, seconds, at a rate in bit/s and with an endless buffer.
pub(crate) fn endless(times: &[f64], sizes: &[u32], rate: f64) -> Vec<f64> {
    let mut free_at = f64::NEG_INFINITY;
    times
        .iter()
        .zip(sizes)
        .map(|(&at, &size)| {
            free_at = free_at.max(at) + 8.0 * f64::from(size) / rate;
            free_at - at
        })
        .collect()
}

/// The same at several rates at once, of the packets at some places only; and the longest of all packets.
pub(crate) fn endless_at<const RATES: usize>(
    times: &[f64],
    sizes: &[u32],
    rates: [f64; RATES],
    places: &[usize],
) -> [(Vec<f64>, f64); RATES] {
    let mut free_at = [f64::NEG_INFINITY; RATES];
    let mut longest = [0.0_f64; RATES];
    let mut waits = rates.map(|_| vec![0.0; places.len()]);
    let mut by_place: Vec<(usize, usize)> = places.iter().copied().zip(0..).collect();
    by_place.sort_unstable();
    let mut wanted = by_place.into_iter().peekable();
    for (place, (&at, &size)) in times.iter().zip(sizes).enumerate() {
        let bits = 8.0 * f64::from(size);
        for ((free_at, longest), rate) in free_at.iter_mut().zip(&mut longest).zip(rates) {
            *free_at = free_at.max(at) + bits / rate;
            *longest = longest.max(*free_at - at);
        }
        while let Some((_, number)) = wanted.next_if(|&(wanted, _)| wanted == place) {
            for (waits, free_at) in waits.iter_mut().zip(free_at) {
                waits[number] = free_at - at;
            }
        }
    }
    let mut longest = longest.into_iter();
    waits.map(|waits| (waits, longest.next().unwrap_or_default()))
}

/// The same with a buffer of so many bytes, the packet in service included, that drops what does not fit: `None`.
pub(crate) fn drop_tail(times: &[f64], sizes: &[u32], rate: f64, buffer: f64) -> Vec<Option<f64>> {
    let mut waiting: VecDeque<(f64, u32)> = VecDeque::new();
    let (mut held, mut free_at) = (0.0, 0.0_f64);
    times
        .iter()
        .zip(sizes)
        .map(|(&at, &size)| {
            while let Some(&(_, bytes)) = waiting.front().filter(|(leaves, _)| *leaves <= at) {
                held -= f64::from(bytes);
                waiting.pop_front();
            }
            if held + f64::from(size) > buffer {
                return None;
            }
            free_at = free_at.max(at) + 8.0 * f64::from(size) / rate;
            waiting.push_back((free_at, size));
            held += f64::from(size);
            Some(free_at - at)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_for_those_before_them() {
        // 1000 bit/s: 125 bytes take a second.
        assert_eq!(endless(&[0.0, 0.5, 5.0], &[125, 125, 250], 1000.0), [1.0, 1.5, 2.0]);
    }

    #[test]
    fn waits_at_several_rates_are_those_at_each() {
        let (times, sizes) = ([0.0, 0.5, 5.0, 5.1], [125, 125, 250, 10]);
        let rates = [1000.0, 2000.0, 3000.0];
        let found = endless_at(&times, &sizes, rates, &[3, 1, 1]);
        for (rate, (waits, longest)) in rates.into_iter().zip(found) {
            let all = endless(&times, &sizes, rate);
            assert_eq!(waits, [all[3], all[1], all[1]]);
            assert_eq!(longest, all.into_iter().fold(0.0, f64::max));
        }
    }

    #[test]
    fn a_packet_that_finds_no_room_is_dropped_and_delays_nobody() {
        let waits = drop_tail(&[0.0, 0.1, 0.2, 1.1], &[125; 4], 1000.0, 250.0);
        assert_eq!(waits[..3], [Some(1.0), Some(1.9), None]);
        assert!((waits[3].unwrap() - 1.9).abs() < 1e-9);
    }
}
