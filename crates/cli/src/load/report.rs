//! What a load came to, for a person or as JSON.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::time::SystemTime;

use super::{Capped, Quantile, Tally, json::Loads, scale};
use crate::arguments::Load;
use crate::failure::Failure;

/// Characters of the longest bar: of one load, and of each of several.
const BAR: usize = 40;
const NARROW_BAR: usize = 10;

/// Shares of requests whose time is told.
const SHARES: [(f64, &str); 5] = [(0.5, "median"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (1.0, "longest")];

/// Prints one table, a column for each load.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print(flags: &Load, begun: SystemTime, arguments: &[OsString], tallies: &[Tally]) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    if flags.json {
        let text = serde_json::to_string_pretty(&Loads::of(flags, begun, arguments, tallies));
        writeln!(out, "{}", text.map_err(std::io::Error::from)?)?;
    } else {
        let told = [failures(tallies), words(tallies)].concat();
        write!(out, "{}\n\n{}{told}\n{}", heading(flags), table(tallies), drawing(tallies))?;
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
    let protected = if flags.oscore.is_empty() { "" } else { " under OSCORE" };
    format!("{method} {}, {clients}{protected}, {pace}", flags.uri)
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
        ("due and not started", |tally| tally.left_out),
    ] {
        if tallies.iter().any(|tally| of(tally) > 0) {
            row(name, &|tally| of(tally).to_string());
        }
    }
    row("retransmissions", &|tally| tally.retransmissions.to_string());
    row("  spurious for certain", &|tally| tally.told.spurious.to_string());
    row("  needed for certain", &|tally| tally.told.needed.to_string());
    row("  not known", &|tally| tally.unknown().to_string());
    row("ms to an answer", &|_| String::new());
    row("  shortest", &|tally| tally.shortest().map_or_else(|| "-".to_owned(), millis));
    for (share, name) in SHARES {
        row(&format!("  {name}"), &|tally| match tally.quantile(share) {
            Quantile::Nothing => "-".to_owned(),
            Quantile::Millis(value) => millis(value),
            Quantile::AtLeast(value) => format!("≥ {}", millis(value)),
            Quantile::Never => "never".to_owned(),
        });
    }
    text
}

/// What the figures do not say by themselves: how requests without an answer count, and what the clients could not carry.
fn words(tallies: &[Tally]) -> String {
    let mut text = String::new();
    let at_least =
        |tally: &Tally| SHARES.iter().any(|(share, _)| matches!(tally.quantile(*share), Quantile::AtLeast(_)));
    if tallies.iter().any(at_least) {
        text += "≥: requests that had no answer when the load ended count with the time for which they were due\n";
    }
    if tallies.iter().any(|tally| tally.failed > 0) {
        text += "requests that failed count as answered never\n";
    }
    for tally in tallies {
        if let Some(capped) = &tally.capped {
            let _ = writeln!(text, "{}: {}", tally.controller, cap(capped));
        }
    }
    text
}

fn cap(capped: &Capped) -> String {
    let Capped { slots, due, ended, after } = *capped;
    #[allow(clippy::cast_precision_loss, reason = "nobody counts 2^53 requests")]
    let a_second = |requests: u64| requests as f64 / after.as_secs_f64().max(1e-6);
    let under_way = if slots == 1 { "1 request".to_owned() } else { format!("{slots} requests") };
    let needed = slots.saturating_mul(due).checked_div(ended).map_or_else(String::new, |needed| {
        format!("; {} at a time would carry the rate, if each took as long", needed + 1)
    });
    format!(
        "the rate was not reached: with {under_way} under way at a time (--clients times --nstart) {ended} of {due} that were due \
         had ended after {:.1} s, {:.1} a second instead of {:.1}{needed}",
        after.as_secs_f64(),
        a_second(ended),
        a_second(due)
    )
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

/// Three figures are what the histogram keeps.
fn millis(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn shortest_text(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Told;
    use millpond_live::Response;
    use std::time::Duration;

    fn tally(controller: &'static str, millis: &[u64]) -> Tally {
        let mut tally = Tally::new(controller);
        for millis in millis {
            tally.started += 1;
            tally.take(Ok(Response::content("x")), Duration::from_millis(*millis));
        }
        (tally.elapsed, tally.retransmissions) = (Duration::from_secs(2), 5);
        tally.told = Told { spurious: 2, needed: 1 };
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
            &["retransmissions", "5", "5"],
            &["spurious", "for", "certain", "2", "2"],
            &["needed", "for", "certain", "1", "1"],
            &["not", "known", "2", "2"],
            &["shortest", "10.0", "4.00"],
            &["longest", "20.0", "4.00"],
        ] {
            assert!(rows.iter().any(|found| found == row), "{row:?} in\n{text}");
        }
        assert!(!text.contains("unfinished"), "{text}");
    }

    #[test]
    fn a_rate_that_clients_cannot_carry_is_told_with_what_could() {
        let mut tally = tally("rfc7252", &[1_200; 8]);
        for waited in 0..92 {
            tally.leave_open(Duration::from_millis(100 * waited));
        }
        tally.close(1, 100, Duration::from_secs(10));
        assert_eq!(
            words(&[tally.clone()]).lines().last(),
            Some(
                "rfc7252: the rate was not reached: with 1 request under way at a time (--clients times --nstart) 8 of 100 that \
                 were due had ended after 10.0 s, 0.8 a second instead of 10.0; 13 at a time would carry the rate, if each took \
                 as long"
            )
        );
        assert!(table(&[tally]).contains("≥ 9101"), "the longest is a request without an answer");
        let mut carried = self::tests::tally("rfc7252", &[1_200; 100]);
        carried.close(12, 110, Duration::from_secs(10));
        assert_eq!((carried.capped, words(&[carried.clone()])), (None, String::new()));
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
