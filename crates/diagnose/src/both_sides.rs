//! What a capture at both ends says: retransmissions and round trips from the devices, the uplink from where it ends, the
//! downlink from where it ends, and losses by counting.

use crate::device_side::device_side;
use crate::exchanges::Chapter;
use crate::figure::Figure;
use crate::findings::Findings;
use crate::path::far_rate::{Kind, Spacing, far_rate};
use crate::server_side::server_side;

/// Judges a chapter captured at the devices together with the same time captured at the server.
pub(crate) fn both_sides(devices: &Chapter, server: &Chapter) -> Findings {
    let mut found = device_side(devices);
    let behind = server_side(server);
    found.uplink = behind.uplink;
    found.uplink.loss = lost(devices, server, true);
    found.downlink.loss = lost(server, devices, false);
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

/// Packets that left one end and did not come to the other, queues included.
fn lost(from: &Chapter, to: &Chapter, up: bool) -> Figure {
    let (left, came) = (from.way(up).len(), to.way(up).len());
    if left == 0 {
        return Figure::unknown("nothing was sent");
    }
    let share = 1.0 - came.min(left) as f64 / left as f64;
    Figure::exact(share, format!("{came} of {left} packets came, those that found the queue full included"))
}
