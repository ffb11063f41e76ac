//! What a run tells while it goes on, and what it came to.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use millpond_emulate::{LinkRow, Report, Retransmissions, Standing, Watch};
use tokio::task::JoinHandle;
use tokio::time::interval;

use crate::arguments::OverPath;
use crate::failure::Failure;

/// The file in the folder of `--out`.
const REPORT: &str = "report.json";
/// How often the line changes.
const SHOWN_EVERY: Duration = Duration::from_millis(500);

/// A line on standard error that reports how the run stands; none where that is no terminal.
#[derive(Debug)]
pub(super) struct Live {
    task: JoinHandle<()>,
    bar: ProgressBar,
}

impl Live {
    pub(super) fn show(watch: Watch, silent: bool) -> Self {
        let target = if silent { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let line = bar.clone();
        let task = tokio::spawn(async move {
            let mut ticks = interval(SHOWN_EVERY);
            let mut before: Option<Standing> = None;
            loop {
                ticks.tick().await;
                if let Some(standing) = watch.standing() {
                    line.set_message(live_line(&standing, before.as_ref()));
                    if before.as_ref().is_none_or(|before| before.elapsed_us < standing.elapsed_us) {
                        before = Some(standing);
                    }
                }
            }
        });
        Self { task, bar }
    }
}

/// The line goes when the run does.
impl Drop for Live {
    fn drop(&mut self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

fn live_line(now: &Standing, before: Option<&Standing>) -> String {
    let mut line = format!("{:.0} s", now.elapsed_us as f64 / 1e6);
    for (place, name) in ["up", "down"].into_iter().enumerate() {
        let link = &now.links[place];
        let rate = before.filter(|before| before.elapsed_us < now.elapsed_us).map_or(0.0, |before| {
            let bits = (link.delivered_bytes - before.links[place].delivered_bytes) * 8;
            bits as f64 * 1e3 / (now.elapsed_us - before.elapsed_us) as f64
        });
        let _ = write!(line, " | {name}: {} B waiting, {rate:.1} kbit/s", link.queued_bytes);
        if let Some(useful) = share(link.useful_bytes, link.read_bytes) {
            let _ = write!(line, ", {useful} useful");
        }
        for (count, what) in [(link.dropped_queue, "dropped"), (link.dropped_radio, "lost")] {
            if count > 0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
    }
    let left_out: u64 = now.left_out.iter().map(|left_out| left_out.packets).sum();
    if left_out > 0 {
        let _ = write!(line, " | {left_out} left out");
    }
    let _ = write!(line, " | 99 % at most {:.2} ms late", now.lateness.p99_us as f64 / 1e3);
    line
}

/// The folder that a run is written into, made if it is not there, before the run and not after it.
///
/// # Errors
/// It cannot be made.
pub(super) fn make_room(flags: &OverPath) -> Result<(), Failure> {
    let Some(folder) = &flags.out else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder.display(), &error))
}

/// Prints what a run came to, as JSON on standard output or for a person on standard error.
///
/// # Errors
/// Standard output or the file in `--out` cannot be written; the run was too late to be believed.
pub(super) fn report(flags: &OverPath, report: &Report) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report).map_err(std::io::Error::from)?;
    if let Some(folder) = &flags.out {
        let file = folder.join(REPORT);
        let written = std::fs::write(&file, format!("{text}\n"));
        written.map_err(|error| Failure::of_file(file.display(), &error))?;
    }
    if flags.json {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()?;
    } else if !flags.quiet {
        // Standard output belongs to the programs that ran.
        let _ = write!(anstream::stderr(), "{}", table(report));
    }
    let late = &report.lateness;
    if late.valid {
        return Ok(());
    }
    let hindered = report.hindrances.iter().fold(String::new(), |all, hindrance| format!("{all}; {hindrance}"));
    Err(Failure::Late(format!(
        "not valid: {late}; the bound is {} ms for 99 % and {} ms for all (--lateness){hindered}",
        late.bound_p99_us as f64 / 1e3,
        late.bound_max_us as f64 / 1e3
    )))
}

/// The goodput ratio of what could be read, if anything could.
fn share(useful: u64, read: u64) -> Option<String> {
    (read > 0).then(|| format!("{:.0} %", 100.0 * useful as f64 / read as f64))
}

fn table(report: &Report) -> String {
    let mut text = String::new();
    let mut row = |name: &str, cell: &dyn Fn(&LinkRow) -> String| {
        let _ = write!(text, "{name:<22}");
        for link in &report.links {
            let _ = write!(text, "{:>16}", cell(link));
        }
        text.push('\n');
    };
    row("", &|link| link.link.to_owned());
    row("packets offered", &|link| link.offered_packets.to_string());
    row("  delivered", &|link| link.delivered_packets.to_string());
    row("  dropped, queue full", &|link| (link.dropped_queue_packets - link.dropped_aqm_packets).to_string());
    if report.links.iter().any(|link| link.dropped_aqm_packets > 0) {
        row("  dropped, AQM", &|link| link.dropped_aqm_packets.to_string());
    }
    row("  lost by the radio", &|link| link.dropped_radio_packets.to_string());
    row("bytes delivered", &|link| link.delivered_bytes.to_string());
    if report.links.iter().any(|link| link.read_bytes > 0) {
        row("  useful, of CoAP", &|link| share(link.useful_bytes, link.read_bytes).unwrap_or_default());
    }
    row("busy", &|link| format!("{:.1} %", 100.0 * link.busy_us as f64 / report.elapsed_us.max(1) as f64));
    row("queue, mean", &|link| format!("{:.0} B", link.queue_mean_bytes));
    row("  95 % of the time", &|link| format!("{} B", link.queue_p95_bytes));
    row("  longest", &|link| format!("{} B", link.queue_max_bytes));
    if let Some(access) = &report.access {
        let _ = writeln!(
            text,
            "access: {} preambles, {} collided, {} not answered; {} connections; {} packets dropped, {} wait",
            access.preambles,
            access.preambles_collided,
            access.preambles_unanswered,
            access.connections,
            access.dropped_packets,
            access.held_packets
        );
    }
    if let Some(all) = report.retransmissions {
        let Retransmissions { sent, spurious, needed, unanswered, twice_at_server, twice_at_clients } = all;
        let _ = writeln!(
            text,
            "retransmissions of CoAP: {sent}; {spurious} spurious, {needed} needed, {unanswered} of messages without an answer"
        );
        let _ = writeln!(text, "arrived once more: {twice_at_server} at the server, {twice_at_clients} at clients");
    }
    let who = match report.devices {
        Some(1) => "1 device".to_owned(),
        Some(devices) => format!("{devices} devices"),
        None => format!("{} clients", report.flows.len()),
    };
    let _ = writeln!(text, "{:.1} s, {who}; {}", report.elapsed_us as f64 / 1e6, report.lateness);
    let _ = writeln!(
        text,
        "real-time priority: {}; {} packets forwarded by the thread that stands by",
        if report.real_time_priority { "yes" } else { "no" },
        report.lateness.standby_packets
    );
    for hindrance in &report.hindrances {
        let _ = writeln!(text, "hindered: {hindrance}");
    }
    for left_out in &report.left_out {
        let _ = writeln!(text, "left out: {} packets, {}", left_out.packets, left_out.why);
    }
    for row in &report.gate {
        let _ = writeln!(text, "calm: {} {}", row.datagrams, row.what);
    }
    text
}
