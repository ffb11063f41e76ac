//! The rate of the link that the capture sits behind: packets of a busy link arrive as far apart as they are long.
//!
//! A link's spacing is the upper edge of all spacings (Paxson's packet-bunch modes): neighbours cannot be closer. Where
//! time stamps are coarse or jittered, only long trains are compared.

use crate::exchanges::Passed;
use crate::ordered::{quantile, sorted};

/// A rate as the spacing of packets shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spacing {
    /// bit/s.
    pub rate: f64,
    pub kind: Kind,
    /// Packets in the spike or plateau.
    pub hits: usize,
}

/// How the rate was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By a spike of neighbours.
    Neighbours,
    /// By a plateau of trains: times are coarse or jittered.
    Trains,
    /// Trains were no faster.
    Bound,
}

impl Spacing {
    pub(crate) fn is_sure(&self) -> bool {
        self.kind != Kind::Bound
    }
}

/// So many packets are a train.
const TRAIN: usize = 24;
/// Neighbours within this factor are one spike.
const SPIKE: f64 = 0.01;
/// A bound holds if packets came so much too soon, seconds.
const JITTER: f64 = 0.02;
/// A time stamp that only has multiples of so many microseconds is coarse.
const COARSE: u64 = 200;

/// The rate at which these packets of one direction came.
pub(crate) fn far_rate(packets: &[Passed]) -> Option<Spacing> {
    let mut neighbours: Vec<Neighbours> = packets
        .windows(2)
        .filter_map(|pair| {
            let gap = pair[1].at - pair[0].at;
            let rate = (8.0 * f64::from(pair[1].bytes) / gap).ln();
            (gap > 0.0).then_some(Neighbours { rate, peers: (pair[0].peer, pair[1].peer) })
        })
        .collect();
    if neighbours.len() < 10 {
        return None;
    }
    neighbours.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let (times, sizes): (Vec<f64>, Vec<u32>) = packets.iter().map(|packet| (packet.at, packet.bytes)).unzip();
    match uppermost_spike(&neighbours) {
        Some(spike) if !is_coarse(&times) => Some(spike),
        _ => Some(by_trains(&times, &sizes)),
    }
}

/// Two packets that came one after the other.
#[derive(Clone, Copy, Debug)]
struct Neighbours {
    /// The logarithm of the rate at which the second would just have followed the first.
    rate: f64,
    peers: (u32, u32),
}

fn uppermost_spike(neighbours: &[Neighbours]) -> Option<Spacing> {
    let count = neighbours.len();
    // Some rogue gaps are allowed at the top.
    let top = count - 1 - count * 3 / 1000;
    let least = 8.max(count / 250);
    for at in (top.saturating_sub(60.max(count / 10))..=top).rev() {
        let edge = neighbours[at].rate;
        let low = neighbours.partition_point(|of| of.rate < edge - SPIKE);
        let inside = at + 1 - low;
        let below = low - neighbours.partition_point(|of| of.rate < edge - 11.0 * SPIKE);
        let above = count - 1 - at;
        if inside >= least
            && inside * 5 > below * 4
            && above <= 2.max(inside / 10)
            && of_different_peers(&neighbours[low..=at], least)
        {
            let rate = neighbours.get(usize::midpoint(low, at))?.rate.exp();
            return Some(Spacing { rate, kind: Kind::Neighbours, hits: inside });
        }
    }
    None
}

/// Devices with the same period come equally far apart each time, over any link: only different pairs count.
fn of_different_peers(neighbours: &[Neighbours], least: usize) -> bool {
    let mut pairs: Vec<(u32, u32)> = neighbours.iter().map(|of| of.peers).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len() >= least.min(neighbours.len() / 2)
}

/// Whether times are multiples of so much that neighbours say little.
pub(crate) fn is_coarse(times: &[f64]) -> bool {
    // Of few times any may be multiples of something.
    times.len() > 20 && step_of(times) >= COARSE
}

/// The greatest number of microseconds that all gaps are multiples of.
fn step_of(times: &[f64]) -> u64 {
    let gaps = times.windows(2).take(20_000).map(|pair| ((pair[1] - pair[0]) * 1e6).round() as u64);
    gaps.filter(|&gap| gap > 0).fold(0, greatest_common_divisor)
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn by_trains(times: &[f64], sizes: &[u32]) -> Spacing {
    let length = if times.len() > 4 * TRAIN { TRAIN } else { 3 };
    let mut rates = Vec::new();
    let mut bounds = Vec::new();
    let mut plateau = Vec::new();
    let mut bytes: f64 = sizes.iter().skip(1).take(length).map(|&size| f64::from(size)).sum();
    for (at, train) in times.windows(length + 1).enumerate() {
        let lasted = (train[length] - train[0]).max(1e-6);
        let rate = 8.0 * bytes / lasted;
        rates.push(rate);
        bounds.push(8.0 * bytes / (lasted + JITTER));
        if train.windows(2).all(|pair| pair[1] - pair[0] < 6.0 * lasted / length as f64) {
            plateau.push(rate);
        }
        let (gone, come) = (sizes.get(at + 1), sizes.get(at + 1 + length));
        bytes += come.map_or(0.0, |&size| f64::from(size)) - gone.map_or(0.0, |&size| f64::from(size));
    }
    let rates = sorted(rates);
    if length == TRAIN {
        let edge = quantile(&rates, 0.98).unwrap_or_default();
        let plateau = sorted(plateau.iter().copied().filter(|&rate| rate > 0.95 * edge && rate < 1.03 * edge));
        let below = rates.iter().filter(|&&rate| rate > 0.8 * edge && rate <= 0.95 * edge).count();
        if plateau.len() >= 50 && plateau.len() * 20 >= rates.len() && plateau.len() * 2 > below * 3 {
            let rate = plateau[plateau.len() / 2];
            return Spacing { rate, kind: Kind::Trains, hits: plateau.len() };
        }
    }
    Spacing { rate: quantile(&sorted(bounds), 0.995).unwrap_or_default(), kind: Kind::Bound, hits: 0 }
}
