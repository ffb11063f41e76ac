//! What a capture at both ends says: retransmissions and round trips from the devices, the uplink from where it ends, the
//! downlink from where it ends, and losses by counting.

use crate::device_side::device_side;
use crate::exchanges::Chapter;
use crate::figure::Figure;
use crate::findings::Findings;
use crate::path::far_rate::{Kind, Spacing, far_rate};
use crate::server_side::server_side;
use crate::words::counted;

/// Judges a chapter captured at the devices together with the same time captured at the server.
pub(crate) fn both_sides(devices: &Chapter, server: &Chapter) -> Findings {
    let mut found = device_side(devices);
    let behind = server_side(server);
    found.uplink = behind.uplink;
    let round_trip = found.base_rtt_s.value.unwrap_or_default();
    found.uplink.loss = lost(devices, server, true, round_trip);
    found.downlink.loss = lost(server, devices, false, round_trip);
    found.downlink.rate_bps = downlink_rate(devices, server);
    found.downlink.buffer_bytes = behind.downlink.buffer_bytes;
    found.hidden_strain = false;
    found.doubts.extend(behind.doubts);
    found
}

/// The spacing of answers at the devices, unless they left the server so.
fn downlink_rate(devices: &Chapter, server: &Chapter) -> Figure {
    let (Some(came), left) = (far_rate(&devices.way(false)), far_rate(&server.way(false))) else {
        return Figure::unknown("too few packets");
    };
    let is_as_sent = |left: Spacing| left.is_sure() && (left.rate / came.rate - 1.0).abs() < 0.03;
    match came.kind {
        Kind::Neighbours if !left.is_some_and(is_as_sent) => {
            Figure::exact(came.rate, format!("{} answers came just so far apart, and left closer", came.hits))
        }
        Kind::Trains => Figure::estimate(came.rate, "trains of packets: time stamps are coarse or jittered"),
        _ => Figure::at_least(came.rate, "answers came so far apart, and left so"),
    }
}

/// Packets that left one end and did not come to the other, queues included. Those of the last round trip may be on their way.
fn lost(from: &Chapter, to: &Chapter, up: bool, round_trip: f64) -> Figure {
    let (left, came) = (from.way(up), to.way(up).len());
    if left.is_empty() {
        return Figure::unknown("nothing was sent");
    }
    let missing = left.len().saturating_sub(came);
    let end = from.end().max(to.end());
    let last = left.len() - left.partition_point(|packet| packet.at < end - round_trip);
    let share = missing as f64 / left.len() as f64;
    let all = counted(left.len() as u64, "packet", "packets");
    let because = format!("{came} of {all} came, those that found the queue full included");
    match last.min(missing) {
        0 => Figure::exact(share, because),
        last => Figure::at_most(share, format!("{because}; {last} may be on their way at the end")),
    }
}
