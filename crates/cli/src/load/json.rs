//! What a load came to, with all that another one must have alike to be compared with it.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Quantile, Tally};
use crate::arguments::Load;

/// Figures that the histograms keep of a time.
const FIGURES: u8 = 3;

/// Flags whose value is a secret.
const SECRET: [&str; 1] = ["--psk"];

/// Loads of one command.
#[derive(Debug, Serialize)]
pub(super) struct Loads<'l> {
    millpond: &'static str,
    /// When the first began, as RFC 3339 has it.
    date: String,
    command: Vec<String>,
    uri: String,
    method: String,
    confirmable: bool,
    payload_bytes: usize,
    clients: usize,
    nstart: u16,
    /// All messages are protected.
    oscore: bool,
    /// Requests a second; `null` for a closed loop.
    rate: Option<f64>,
    ramp_s: Option<f64>,
    duration_s: Option<f64>,
    count: Option<u64>,
    count_each: Option<u64>,
    timeout_s: Option<f64>,
    loads: Vec<Json<'l>>,
}

#[derive(Debug, Serialize)]
struct Json<'l> {
    controller: &'l str,
    seconds: f64,
    requests: u64,
    answers: u64,
    answers_per_second: f64,
    refused: u64,
    failed: u64,
    first_error: Option<&'l str>,
    unfinished: u64,
    not_started: u64,
    capped: Option<Cap>,
    transmissions: u64,
    retransmissions: u64,
    spurious_retransmissions: u64,
    needed_retransmissions: u64,
    unknown_retransmissions: u64,
    milliseconds: Milliseconds,
    histogram: Times,
}

/// What the clients could not carry.
#[derive(Debug, Serialize)]
struct Cap {
    under_way_at_most: u64,
    due: u64,
    ended: u64,
    after_s: f64,
}

/// Of all requests, in an open loop from when each was due. `null` where there is none: nothing was asked or answered, or so many
/// requests failed.
#[derive(Debug, Serialize)]
struct Milliseconds {
    shortest: Option<f64>,
    mean_of_answers: Option<f64>,
    median: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    longest: Option<f64>,
    /// Which of these are lower bounds, because requests had no answer when the load ended.
    at_least: Vec<&'static str>,
}

/// Counts by times in µs, in ascending order: each holds what is above the one before it.
#[derive(Debug, Serialize)]
struct Times {
    unit: &'static str,
    figures: u8,
    answers: Vec<(u64, u64)>,
    /// Requests without an answer, by how long they were due when the load ended.
    open: Vec<(u64, u64)>,
}

impl<'l> Loads<'l> {
    pub(super) fn of(flags: &Load, begun: SystemTime, arguments: &[OsString], tallies: &'l [Tally]) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Self {
            millpond: env!("CARGO_PKG_VERSION"),
            date: humantime::format_rfc3339_seconds(begun).to_string(),
            command: without_secrets(arguments),
            uri: flags.uri.to_string(),
            method: flags.method.code().name().unwrap_or("?").to_uppercase(),
            confirmable: !flags.non,
            payload_bytes: flags.payload_size,
            clients: flags.clients,
            nstart: flags.nstart,
            oscore: !flags.oscore.is_empty(),
            rate: flags.rate,
            ramp_s: seconds(flags.ramp),
            duration_s: seconds(flags.duration),
            count: flags.count,
            count_each: flags.count_each,
            timeout_s: seconds(flags.timeout),
            loads: tallies.iter().map(Json::of).collect(),
        }
    }
}

/// The command line as it was given, but for keys: figures are handed around.
fn without_secrets(arguments: &[OsString]) -> Vec<String> {
    let mut is_secret = false;
    let hidden = |word: &OsString| {
        let word = word.to_string_lossy();
        if std::mem::replace(&mut is_secret, SECRET.contains(&&*word)) {
            return "...".to_owned();
        }
        match word.split_once('=') {
            Some((flag, _)) if SECRET.contains(&flag) => format!("{flag}=..."),
            _ => word.into_owned(),
        }
    };
    arguments.iter().map(hidden).collect()
}

impl<'l> Json<'l> {
    fn of(tally: &'l Tally) -> Self {
        Self {
            controller: tally.controller,
            seconds: tally.elapsed.as_secs_f64(),
            requests: tally.started,
            answers: tally.answered(),
            answers_per_second: tally.rate(),
            refused: tally.refused,
            failed: tally.failed,
            first_error: tally.first_error.as_deref(),
            unfinished: tally.unfinished,
            not_started: tally.left_out,
            capped: tally.capped.map(|capped| Cap {
                under_way_at_most: capped.slots,
                due: capped.due,
                ended: capped.ended,
                after_s: capped.after.as_secs_f64(),
            }),
            transmissions: tally.transmissions,
            retransmissions: tally.retransmissions,
            spurious_retransmissions: tally.told.spurious,
            needed_retransmissions: tally.told.needed,
            unknown_retransmissions: tally.unknown(),
            milliseconds: Milliseconds::of(tally),
            histogram: Times {
                unit: "us",
                figures: FIGURES,
                answers: buckets(&tally.times),
                open: buckets(&tally.open),
            },
        }
    }
}

impl Milliseconds {
    fn of(tally: &Tally) -> Self {
        let mut at_least = Vec::new();
        let mut quantile = |share, name| match tally.quantile(share) {
            Quantile::Nothing | Quantile::Never => None,
            Quantile::Millis(value) => Some(value),
            Quantile::AtLeast(value) => {
                at_least.push(name);
                Some(value)
            }
        };
        let [median, p90, p99, p999, longest] =
            [(0.5, "median"), (0.9, "p90"), (0.99, "p99"), (0.999, "p999"), (1.0, "longest")]
                .map(|(share, name)| quantile(share, name));
        let (shortest, mean_of_answers) = (tally.shortest(), tally.mean_millis());
        Self { shortest, mean_of_answers, median, p90, p99, p999, longest, at_least }
    }
}

fn buckets(times: &Histogram<u64>) -> Vec<(u64, u64)> {
    times.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_on_the_command_line_are_not_handed_around() {
        let words =
            ["millpond", "load", "--psk", "me:secret", "--psk=me:secret", "--psk-file", "keys", "coaps://host/"];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let told = without_secrets(&words);
        assert_eq!(told, ["millpond", "load", "--psk", "...", "--psk=...", "--psk-file", "keys", "coaps://host/"]);
    }
}
