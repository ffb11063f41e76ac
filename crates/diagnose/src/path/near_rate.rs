//! The rate of the link that the capture sits before: devices that accept one answer after the other ask again as far
//! apart as the bytes between those answers take.

use super::mode::{Mode, mode};
use crate::ordered::sorted;

/// A packet to a device, and when its device's next request followed from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub at: f64,
    pub bytes: u32,
    pub caused: Option<f64>,
}

/// A rate as the devices' reactions show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reaction {
    /// bit/s.
    pub rate: f64,
    pub hits: usize,
    /// Of all pairs of neighbours.
    pub share: f64,
    /// Nothing but the link spaces them.
    pub is_sharp: bool,
    /// No other rate that is related to it is as frequent: nothing lies between that was not captured.
    pub is_alone: bool,
}

impl Reaction {
    pub(crate) fn is_sure(&self) -> bool {
        self.hits >= 8 && self.share > 0.08
    }

    /// Whether it is the link's and nothing else's.
    pub(crate) fn is_exact(&self) -> bool {
        self.is_sharp && self.is_alone
    }
}

/// `waits` says whether there was a queue at that time.
pub(crate) fn near_rate(sent: &[Sent], waits: impl Fn(f64) -> bool) -> Option<Reaction> {
    let mut until = 0.0;
    let bytes_until: Vec<f64> = sent
        .iter()
        .map(|packet| {
            until += f64::from(packet.bytes);
            until
        })
        .collect();
    let accepted: Vec<(usize, f64)> =
        sent.iter().enumerate().filter_map(|(index, packet)| Some((index, packet.caused?))).collect();
    // Neighbours first; with others between only if there are too few.
    let mut rates = Vec::new();
    for most_between in [1, 6] {
        rates = sorted(accepted.windows(2).filter_map(|pair| {
            let ((one, caused_one), (other, caused_other)) = (pair[0], pair[1]);
            let apart = caused_other - caused_one;
            let queued = apart > 1.05 * (sent[other].at - sent[one].at) || waits(sent[one].at);
            (apart > 0.0 && other - one <= most_between && queued)
                .then(|| (8.0 * (bytes_until[other] - bytes_until[one]) / apart).ln())
        }));
        if rates.len() >= 30 {
            break;
        }
    }
    if rates.len() < 8 {
        return None;
    }
    let Mode { rate, hits, is_sharp, is_alone } = mode(&rates)?;
    Some(Reaction { rate, hits, share: hits as f64 / rates.len() as f64, is_sharp, is_alone })
}
