//! A diagnosis in sentences and tables.

use std::fmt::Write as _;

use millpond_diagnose::{Alignment, Diagnosis, Figure, Fitting, Grade, Health, Presets, Side, Sizes, counted};

/// The first screen.
#[must_use]
pub fn in_short(found: &Diagnosis) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(verdict(found));
    if let Some((from, to)) = found.began_and_ended() {
        line(format!("It was so from {} on until {}.", seconds(from), seconds(to)));
    }
    line(String::new());
    let side = match found.side {
        Side::Server => "at the server",
        Side::Devices => "at the devices",
        Side::Both => "at both ends",
    };
    line(format!(
        "Captured {side}, {}: {} of {}, {}, {}.",
        seconds(found.lasted_s),
        counted(found.exchanges, "request", "requests"),
        counted(found.devices, "device", "devices"),
        counted(found.transmissions, "transmission", "transmissions"),
        counted(resent(found), "retransmission", "retransmissions"),
    ));
    if resent(found) > 0 {
        let of = found.retransmissions;
        line(format!(
            "Retransmissions: {} spurious, {} needed, {} that cannot be told from here.",
            of.spurious, of.needed, of.unknown
        ));
    }
    if let Some(ratio) = found.goodput_ratio {
        line(format!("Of the answers' bytes on the downlink {:.1} % were of use.", 100.0 * ratio));
    }
    line(String::new());
    for (name, link) in [("Uplink", &found.path.uplink), ("Downlink", &found.path.downlink)] {
        line(format!("{name}:"));
        line(figure("  rate", &link.rate_bps, |rate| format!("{:.2} kbit/s", rate / 1000.0)));
        line(figure("  buffer", &link.buffer_bytes, |bytes| format!("{bytes:.0} B")));
        line(figure("  loss", &link.loss, |share| format!("{:.1} %", 100.0 * share)));
    }
    line(figure("Round trip without queues", &found.path.base_rtt_s, round_trip));
    line("Devices:".to_owned());
    line(figure("  NSTART", &found.nstart, |open| format!("{open:.0}")));
    line(figure("  period", &found.period_s, seconds));
    line(reports(&found.alignment));
    line(sizes(&found.sizes));
    line(figure("  ACK_TIMEOUT", &found.timers.ack_timeout_s, |time| format!("{time:.2} s")));
    line(figure("  ACK_RANDOM_FACTOR", &found.timers.random_factor, |factor| format!("{factor:.2}")));
    line(figure("  backoff", &found.timers.backoff, |factor| format!("x {factor:.2}")));
    line(figure("  MAX_RETRANSMIT", &found.timers.max_retransmit, |most| format!("{most:.0}")));
    line(fitting(&found.presets));
    if !found.doubts.is_empty() {
        line(String::new());
        line("Doubts:".to_owned());
        for doubt in &found.doubts {
            line(format!("  {doubt}"));
        }
    }
    text
}

fn resent(found: &Diagnosis) -> u64 {
    let of = found.retransmissions;
    of.spurious + of.needed + of.unknown
}

fn verdict(found: &Diagnosis) -> String {
    match found.verdict {
        Health::Healthy => "Healthy: most of what is carried is of use.".to_owned(),
        Health::Strained => "Strained: retransmissions take a part of what the path carries.".to_owned(),
        Health::Collapse => {
            "Congestion collapse: most of what is carried are answers to spurious retransmissions.".to_owned()
        }
        Health::Unknown => "It cannot be told from this side whether the network is strained.".to_owned(),
    }
}

fn reports(told: &Alignment) -> String {
    let because = &told.because;
    match (told.aligned, told.within_s) {
        (Some(true), Some(within)) => format!("  reports: aligned, within {} ({because})", seconds(within)),
        (Some(true), None) => format!("  reports: aligned ({because})"),
        (Some(false), _) => format!("  reports: not aligned ({because})"),
        (None, _) => format!("  reports: whether they are aligned cannot be told, because {because}"),
    }
}

fn sizes(of: &Sizes) -> String {
    let payload = |bytes: u32| if bytes == 0 { String::new() } else { format!(", {bytes} B of it payload") };
    let (request, answer) = (payload(of.request_payload_bytes), payload(of.answer_payload_bytes));
    format!(
        "  sizes: requests of {} B{request}; answers of {} B{answer} (medians of IP packets)",
        of.request_bytes, of.answer_bytes
    )
}

fn fitting(told: &Presets) -> String {
    let (names, because) = (told.names.join(", "), &told.because);
    match told.verdict {
        Fitting::Fits => format!("  timers fit {names} ({because})"),
        Fitting::None => format!("  timers fit no preset ({because})"),
        Fitting::Unknown if names.is_empty() => {
            format!("  which preset the timers fit cannot be told, because {because}")
        }
        Fitting::Unknown => format!("  which preset the timers fit cannot be told, because {because}: {names}"),
    }
}

fn seconds(time: f64) -> String {
    if time >= 3600.0 {
        format!("{:.1} h", time / 3600.0)
    } else if time >= 120.0 {
        format!("{:.1} min", time / 60.0)
    } else {
        format!("{time:.1} s")
    }
}

fn round_trip(time: f64) -> String {
    if time < 0.01 { format!("{:.2} ms", 1000.0 * time) } else { format!("{time:.3} s") }
}

fn figure(name: &str, figure: &Figure, shown: impl Fn(f64) -> String) -> String {
    let because = &figure.because;
    match (figure.value, figure.grade) {
        (Some(value), Grade::Exact) => format!("{name}: {} ({because})", shown(value)),
        (Some(value), Grade::AtLeast) => format!("{name}: at least {} ({because})", shown(value)),
        (Some(value), Grade::AtMost) => format!("{name}: at most {} ({because})", shown(value)),
        (Some(value), Grade::Estimate) => format!("{name}: about {} ({because})", shown(value)),
        (_, Grade::Unknown) | (None, _) => format!("{name}: not visible, because {because}"),
    }
}

/// How it was over time.
pub(super) fn over_time(found: &Diagnosis) -> String {
    let mut text = format!(
        "\n{:>10} {:>10} {:>9} {:>14} {:>9} {:>7} {:>8} {:>7}\n",
        "from s", "to s", "requests", "transmissions", "spurious", "needed", "unknown", "useful"
    );
    for span in &found.spans {
        let of = span.retransmissions;
        let useful = span.goodput_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.0} %", 100.0 * ratio));
        let _ = writeln!(
            text,
            "{:>10.0} {:>10.0} {:>9} {:>14} {:>9} {:>7} {:>8} {useful:>7}",
            span.from_s, span.to_s, span.exchanges, span.transmissions, of.spurious, of.needed, of.unknown
        );
    }
    text
}

/// Devices of which a table tells.
const DEVICES: usize = 40;

/// The devices with the most retransmissions.
pub(super) fn by_device(found: &Diagnosis) -> String {
    let mut text = format!(
        "\n{:<44} {:>9} {:>14} {:>9} {:>7} {:>8}\n",
        "device", "requests", "transmissions", "spurious", "needed", "unknown"
    );
    for device in found.by_device.iter().take(DEVICES) {
        let of = device.retransmissions;
        let _ = writeln!(
            text,
            "{:<44} {:>9} {:>14} {:>9} {:>7} {:>8}",
            device.address.to_string(),
            device.exchanges,
            device.transmissions,
            of.spurious,
            of.needed,
            of.unknown
        );
    }
    if let Some(more) = found.by_device.len().checked_sub(DEVICES).filter(|&more| more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
    text
}
