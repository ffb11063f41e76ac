//! What a load came to, for a person or as JSON.

use std::fmt::Write as _;
use std::io::Write;

use serde::Serialize;

use super::{Tally, scale};
use crate::arguments::Load;
use crate::failure::Failure;

/// Characters of the longest bar: of one load, and of each of several.
const BAR: usize = 40;
const NARROW_BAR: usize = 10;

/// Shares of answers whose time is told, with their names in the table and in JSON.
const SHARES: [(f64, &str); 4] = [(0.5, "median"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %")];

/// Prints one table, a column for each load.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print(flags: &Load, tallies: &[Tally]) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    if flags.json {
        let loads: Vec<_> = tallies.iter().map(Json::of).collect();
        let text = serde_json::to_string_pretty(&Loads { uri: flags.uri.to_string(), loads });
        writeln!(out, "{}", text.map_err(std::io::Error::from)?)?;
    } else {
        write!(out, "{}\n\n{}{}\n{}", heading(flags), table(tallies), failures(tallies), drawing(tallies))?;
    }
    Ok(out.flush()?)
}

fn heading(flags: &Load) -> String {
    let method = flags.method.code().name().unwrap_or("?").to_uppercase();
    let clients = if flags.clients == 1 { "1 client".to_owned() } else { format!("{} clients", flags.clients) };
    let pace = match (flags.rate, flags.ramp) {
        (None, _) => "closed loop".to_owned(),
        (Some(rate), None) => format!("open loop of {rate}/s"),
        (Some(rate), Some(ramp)) => format!("open loop of {rate}/s, reached over {} s", ramp.as_secs_f64()),
    };
    format!("{method} {}, {clients}, {pace}", flags.uri)
}

fn table(tallies: &[Tally]) -> String {
    let mut text = String::new();
    let width = tallies.iter().map(|tally| tally.controller.len()).max().unwrap_or(0).max(11) + 2;
    let mut row = |name: &str, cell: &dyn Fn(&Tally) -> String| {
        let _ = write!(text, "{name:<24}");
        for tally in tallies {
            let _ = write!(text, "{:>width$}", cell(tally));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    };
    row("", &|tally| tally.controller.to_owned());
    row("seconds", &|tally| format!("{:.2}", tally.elapsed.as_secs_f64()));
    row("requests", &|tally| tally.started.to_string());
    row("answers", &|tally| tally.answered().to_string());
    row("  a second", &|tally| format!("{:.1}", tally.rate()));
    row("  of them 4.xx, 5.xx", &|tally| tally.refused.to_string());
    row("failed", &|tally| tally.failed.to_string());
    for (name, of) in [
        ("unfinished", (|tally| tally.unfinished) as fn(&Tally) -> u64),
        ("not started, too many", |tally| tally.left_out),
    ] {
        if tallies.iter().any(|tally| of(tally) > 0) {
            row(name, &|tally| of(tally).to_string());
        }
    }
    row("copies sent again", &|tally| tally.retransmissions.to_string());
    row("  necessary", &|tally| tally.necessary().to_string());
    row("  unnecessary", &|tally| tally.unnecessary.to_string());
    row("ms to an answer", &|_| String::new());
    row("  shortest", &|tally| millis(tally.millis(0.0)));
    for (share, name) in SHARES {
        row(&format!("  {name}"), &|tally| millis(tally.millis(share)));
    }
    row("  longest", &|tally| millis(tally.millis(1.0)));
    text
}

/// Why the first request of each load failed, where any did.
fn failures(tallies: &[Tally]) -> String {
    let of = |tally: &Tally| {
        let error = tally.first_error.as_ref()?;
        Some(format!("{}: the first failure: {error}\n", tally.controller))
    };
    tallies.iter().filter_map(of).collect()
}

/// Bars for how many answers took how long, each load's longest bar of the same length.
fn drawing(tallies: &[Tally]) -> String {
    let ends = scale(&tallies.iter().map(|tally| &tally.times).collect::<Vec<_>>());
    let bar = if tallies.len() > 1 { NARROW_BAR } else { BAR };
    let columns: Vec<_> = tallies.iter().map(|tally| scale::counts(&tally.times, &ends)).collect();
    let mut text = String::new();
    for (row, end) in ends.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "ends are at most 10^12")]
        let _ = write!(text, "up to {:>10} ms", shortest_text(*end as f64 / 1e3));
        for counts in &columns {
            let most = counts.iter().copied().max().unwrap_or(0).max(1);
            let count = counts.get(row).copied().unwrap_or(0);
            // A bar of at least one character for whatever there is.
            let length = usize::try_from((count * bar as u64).div_ceil(most)).unwrap_or(bar);
            let _ = write!(text, " |{:<bar$} {count:>8}", "█".repeat(length));
        }
        text.push('\n');
    }
    text
}

/// Three figures are what the histogram keeps; a dash where nothing was answered.
fn millis(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn shortest_text(value: f64) -> String {
    format!("{value}")
}

#[derive(Debug, Serialize)]
struct Loads<'l> {
    uri: String,
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
    transmissions: u64,
    retransmissions: u64,
    necessary_retransmissions: u64,
    unnecessary_retransmissions: u64,
    milliseconds: Milliseconds,
}

/// `null` where nothing was answered.
#[derive(Debug, Serialize)]
struct Milliseconds {
    shortest: Option<f64>,
    mean: Option<f64>,
    median: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    longest: Option<f64>,
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
            transmissions: tally.transmissions,
            retransmissions: tally.retransmissions,
            necessary_retransmissions: tally.necessary(),
            unnecessary_retransmissions: tally.unnecessary,
            milliseconds: Milliseconds {
                shortest: tally.millis(0.0),
                mean: tally.mean_millis(),
                median: tally.millis(0.5),
                p90: tally.millis(0.9),
                p99: tally.millis(0.99),
                p999: tally.millis(0.999),
                longest: tally.millis(1.0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_live::Response;
    use std::time::Duration;

    fn tally(controller: &'static str, millis: &[u64]) -> Tally {
        let mut tally = Tally::new(controller);
        for millis in millis {
            tally.started += 1;
            tally.take(Ok(Response::content("x")), Duration::from_millis(*millis));
        }
        (tally.elapsed, tally.retransmissions, tally.unnecessary) = (Duration::from_secs(2), 5, 2);
        tally
    }

    #[test]
    fn loads_stand_side_by_side() {
        let text = table(&[tally("rfc7252", &[10, 20]), tally("cocoa-03", &[4])]);
        let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        for row in [
            &["rfc7252", "cocoa-03"][..],
            &["answers", "2", "1"],
            &["a", "second", "1.0", "0.5"],
            &["copies", "sent", "again", "5", "5"],
            &["necessary", "3", "3"],
            &["unnecessary", "2", "2"],
            &["shortest", "10.0", "4.00"],
            &["longest", "20.0", "4.00"],
        ] {
            assert!(rows.iter().any(|found| found == row), "{row:?} in\n{text}");
        }
        assert!(!text.contains("unfinished"), "{text}");
    }

    #[test]
    fn every_answer_is_in_the_drawing() {
        let text = drawing(&[tally("rfc7252", &[1, 1, 1, 40])]);
        assert_eq!(
            text.lines().map(|line| line.split_whitespace().last().unwrap_or("")).collect::<Vec<_>>(),
            ["3", "0", "0", "0", "0", "1"],
            "{text}"
        );
        assert!(text.starts_with(&format!("up to          1 ms |{}", "█".repeat(40))), "{text}");
        assert_eq!(drawing(&[tally("rfc7252", &[])]), "");
    }
}
