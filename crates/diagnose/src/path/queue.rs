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
    fn a_packet_that_finds_no_room_is_dropped_and_delays_nobody() {
        let waits = drop_tail(&[0.0, 0.1, 0.2, 1.1], &[125; 4], 1000.0, 250.0);
        assert_eq!(waits[..3], [Some(1.0), Some(1.9), None]);
        assert!((waits[3].unwrap() - 1.9).abs() < 1e-9);
    }
}
