//! The verb that relays UDP.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use millpond_emulate::{LatenessBound, RelayOptions, sets_apart};
use millpond_path::Path;
use serde_json::json;
use tokio::sync::oneshot;

use super::{
    calm,
    copies::{Alike, Copies},
    figures,
    log::{self, Lines},
    paths, told,
};
use crate::arguments::{LogFormat, OverPath, Relay};
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Signalled, no_signals};
use crate::log::Log;

/// How long a log may take to be written to the end.
const A_MOMENT: Duration = Duration::from_secs(1);
/// What more clients than there is room for need.
const LIMITS: &str = "each takes an open file and a port; raise the limit of open files (ulimit -Hn), or give further addresses (--from)";

/// Nobody waits for a packet for so long.
const A_DAY: Duration = Duration::from_secs(86_400);

/// Relays until Ctrl-C, a request to terminate, or its time is over.
///
/// # Errors
/// A path or an address that cannot be used; a run that was too late to be believed.
pub async fn relay(flags: Relay, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let mut termination = Signalled::to_terminate().map_err(no_signals)?;
    let over = &flags.over;
    let none = over.path == paths::NONE;
    let path = if none { paths::none() } else { paths::read(&over.path)? };
    if none && flags.withhold {
        let told =
            "--withhold: `none` has no queue in which anything could wait; name the path whose queue it is to be";
        return Err(Failure::Usage(told.to_owned()));
    }
    if flags.withhold && [&path.uplink, &path.downlink].iter().any(|direction| direction.aqm.reorders()) {
        let told = "--withhold: a queue that serves flows in turns has no oldest packet; give the path aqm = \"codel\", or none";
        return Err(Failure::Usage(told.to_owned()));
    }
    told::make_room(over)?;
    // A gateway has no model whose figures must be believed.
    let bound = over.lateness.or(none.then_some(A_DAY));
    let to = resolved(&flags.to).await?;
    if sets_apart(to) && !flags.from.is_empty() {
        let told = format!("--from: to {to} the relay comes from 64 addresses of this machine by itself; leave it out");
        return Err(Failure::Usage(told));
    }
    let options = RelayOptions {
        listen: flags.listen,
        to,
        from: flags.from.clone(),
        seed: over.seed,
        most_clients: flags.clients,
        bound: bound.map(LatenessBound::from_usual),
    };
    let failed = |error: millpond_emulate::Error| Failure::Failed(error.to_string());
    let mut relay =
        millpond_emulate::Relay::bind(&path, options).map_err(failed)?.with_reader(Box::<Copies>::default());
    if flags.calm {
        let gate = calm::gate(relay.room())?;
        relay = relay.with_gate(gate);
    }
    if flags.withhold {
        relay = relay.queueing_once(Box::new(Alike));
    }
    let (stop, watch, at) = (relay.stop(), relay.watch(), relay.local_addr().map_err(failed)?);
    let lines = Lines { log: Log::to_stderr(), format: flags.log.unwrap_or(LogFormat::Text) };
    if flags.log.is_some() {
        let lines = lines.clone();
        relay = relay.telling_clients(move |change| lines.client(change));
    }
    let metrics = match flags.metrics {
        Some(address) => {
            let watch = watch.clone();
            Some(millpond_live::serve_metrics(address, move || std::future::ready(figures::text(&watch))).await?)
        }
        None => None,
    };
    announce(&flags, &path, &lines, (at, to, relay.room(), metrics.as_ref().map(|(at, _)| *at)));
    let noticing = tokio::spawn(log::watch(watch.clone(), lines.clone(), flags.log.is_some()));
    let (done, mut ended) = oneshot::channel();
    // A thread of its own, which may get real-time priority and gives it back by ending.
    std::thread::spawn(move || {
        // The receiver may be gone.
        let _ = done.send(relay.run());
    });
    let live = told::Live::show(watch, over.quiet || over.json || flags.log.is_some());
    let time_is_over = async {
        match flags.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let early = tokio::select! {
        () = interrupt.heard() => None,
        () = termination.heard() => None,
        () = time_is_over => None,
        report = &mut ended => Some(report),
    };
    stop.stop();
    let report = match early {
        Some(report) => report,
        None => ended.await,
    };
    drop(live);
    noticing.abort();
    if let Some((_, serving)) = metrics {
        serving.abort();
    }
    lines.log.finish(A_MOMENT);
    let report = report.map_err(|_| Failure::Failed("the relay broke off".to_owned()))?.map_err(failed)?;
    // Behind lines for programs there is none for people.
    let quiet = over.quiet || flags.log == Some(LogFormat::Json);
    told::report(&OverPath { quiet, ..over.clone() }, &report)
}

/// Reports where it listens, and what it does there, even if nobody reads it.
fn announce(
    flags: &Relay,
    path: &Path,
    lines: &Lines,
    (at, to, room, metrics): (SocketAddr, SocketAddr, usize, Option<SocketAddr>),
) {
    let over = &flags.over;
    let mut text = String::new();
    if lends_trust(at, to) {
        let instead = if cfg!(target_os = "linux") { "127.0.0.1" } else { "that of its network" };
        let warning = format!(
            "WARNING: to {to}, every client of {at} comes from the address of this machine, which a server may trust with long \
             answers: who forges an address gets them sent there; relay to another address of this machine, such as {instead}"
        );
        match flags.log {
            Some(LogFormat::Json) => lines.tell("warning", "", json!({ "text": warning })),
            _ => text.push_str(&(warning + "\n")),
        }
    }
    if flags.log == Some(LogFormat::Json) {
        let facts = json!({
            "at": at.to_string(),
            "to": to.to_string(),
            "path": over.path,
            "room": room,
            "metrics": metrics.map(|at| format!("http://{at}/metrics")),
        });
        return lines.tell("listening", "", facts);
    }
    if !over.quiet {
        let _ = if over.path == paths::NONE {
            writeln!(text, "relaying {at} to {to}")
        } else {
            let words = [&path.uplink, &path.downlink].map(paths::words);
            writeln!(text, "relaying {at} to {to} over {}, seed {}", over.path, over.seed)
                .and_then(|()| writeln!(text, "uplink {}; downlink {}", words[0], words[1]))
        };
        if flags.calm {
            text.push_str("calm: copies whose answers are on their way are held back; DTLS passes as it is\n");
        }
        let less =
            if room < flags.clients { format!(", not for {}: {}", flags.clients, LIMITS) } else { String::new() };
        let _ = writeln!(text, "room for {room} clients at a time{less}");
        if let Some(at) = metrics {
            let _ = writeln!(text, "metrics at http://{at}/metrics");
        }
    }
    let _ = std::io::Write::write_all(&mut anstream::stderr().lock(), text.as_bytes());
}

/// Whether a server that trusts its own machine trusts clients from elsewhere through this relay.
fn lends_trust(listen: SocketAddr, to: SocketAddr) -> bool {
    to.ip().to_canonical().is_loopback() && !listen.ip().to_canonical().is_loopback() && !sets_apart(to)
}

async fn resolved(to: &str) -> Result<SocketAddr, Failure> {
    let refused = |why: &str| Failure::Usage(format!("--to {to}: {why}"));
    if !to.contains(':') {
        return Err(refused("the port is missing; write HOST:PORT"));
    }
    let unknown = |why: &str| {
        Failure::Unreachable(format!("--to {to} does not resolve: {why}; check the name or give an address"))
    };
    let mut found = tokio::net::lookup_host(to).await.map_err(|error| match error.kind() {
        // Not the name is wrong, but what stands behind it.
        std::io::ErrorKind::InvalidInput => refused(&format!("{error}; write HOST:PORT")),
        _ => unknown(error.to_string().split(" (os error").next().unwrap_or("no reason was given")),
    })?;
    found.next().ok_or_else(|| unknown("it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_relay_that_others_reach_lends_the_trust_in_this_machine() {
        for (listen, to, lends) in [
            ("0.0.0.0:5684", "127.0.0.1:5683", !cfg!(target_os = "linux")),
            ("[::]:5684", "[::ffff:127.0.0.1]:5683", true),
            ("192.0.2.1:5684", "[::1]:5683", true),
            ("127.0.0.1:5684", "127.0.0.1:5683", false),
            ("0.0.0.0:5684", "192.0.2.1:5683", false),
        ] {
            let [listen, to] = [listen, to].map(|text| text.parse().expect("an address"));
            assert_eq!(lends_trust(listen, to), lends, "{listen} to {to}");
        }
    }
}
