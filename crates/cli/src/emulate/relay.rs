//! The verb that relays UDP.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use millpond_emulate::{ClientStanding, LatenessBound, RelayOptions, Watch, sets_apart};
use tokio::sync::oneshot;

use super::{
    calm,
    copies::{Alike, Copies},
    paths, told,
};
use crate::arguments::Relay;
use crate::failure::Failure;
use crate::interrupt::{Interrupt, Signalled, no_signals};
use crate::log::Log;

/// How long a log may take to be written to the end.
const A_MOMENT: Duration = Duration::from_secs(1);
/// How often it is looked whether all places are taken, and after how many looks that is told again.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(250);
const TOLD_AGAIN: u32 = 240;

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
    told::make_room(over)?;
    // A gateway has no model whose figures must be believed.
    let bound = over.lateness.or(none.then_some(A_DAY));
    let options = RelayOptions {
        listen: flags.listen,
        to: resolved(&flags.to).await?,
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
    if lends_trust(at, options.to) {
        let instead = if cfg!(target_os = "linux") { "127.0.0.1" } else { "that of its network" };
        // Who is not told relays all the same.
        let _ = writeln!(
            anstream::stderr().lock(),
            "WARNING: to {}, every client of {at} comes from the address of this machine, which a server may trust with long answers: \
             whoever forges an address gets them sent there; relay to another address of this machine, such as {instead}",
            options.to
        );
    }
    if !over.quiet {
        let mut err = anstream::stderr().lock();
        // Where it listens is told even if nobody reads it.
        if none {
            let _ = writeln!(err, "relaying {at} to {}", options.to);
        } else {
            let _ = writeln!(err, "relaying {at} to {} over {}, seed {}", options.to, over.path, over.seed);
            let _ = writeln!(err, "uplink {}; downlink {}", paths::words(&path.uplink), paths::words(&path.downlink));
        }
        if flags.calm {
            let _ = writeln!(err, "calm: copies whose answers are on their way are held back; DTLS passes as it is");
        }
    }
    let room = relay.room();
    let log = Log::to_stderr();
    if room < flags.clients && !over.quiet {
        let wished = flags.clients;
        log.line(&format!(
            "room for {room} clients at a time, not for {wished}: each takes an open file; raise that limit (ulimit -n)"
        ));
    }
    let full = tokio::spawn(tell_when_full(watch.clone(), log.clone()));
    let (done, mut ended) = oneshot::channel();
    // A thread of its own, which may get real-time priority and gives it back by ending.
    std::thread::spawn(move || {
        // Whoever waited may be gone.
        let _ = done.send(relay.run());
    });
    let live = told::Live::show(watch, over.quiet || over.json);
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
    full.abort();
    log.finish(A_MOMENT);
    let report = report.map_err(|_| Failure::Failed("the relay broke off".to_owned()))?.map_err(failed)?;
    told::report(over, &report)
}

/// Whether a server that trusts its own machine trusts clients from elsewhere through this relay.
fn lends_trust(listen: SocketAddr, to: SocketAddr) -> bool {
    to.ip().to_canonical().is_loopback() && !listen.ip().to_canonical().is_loopback() && !sets_apart(to)
}

/// Tells at once that there is no room for a client, and while that goes on once a minute.
async fn tell_when_full(watch: Watch, log: Log) {
    let (mut before, mut wait) = (ClientStanding::default(), 0_u32);
    let mut ticks = tokio::time::interval(LOOKED_AT_EVERY);
    loop {
        ticks.tick().await;
        wait = wait.saturating_sub(1);
        let Some(now) = watch.standing().map(|standing| standing.clients) else { continue };
        let (gave_way, refused) = (now.gave_way - before.gave_way, now.refused - before.refused);
        if wait == 0 && (gave_way, refused) != (0, 0) {
            let ClientStanding { clients, room, .. } = now;
            log.line(&format!(
                "full: {clients} clients and room for {room}; {gave_way} gave way to others, {refused} datagrams of others were \
                 dropped; raise --clients, and the limit of open files (ulimit -n)"
            ));
            (before, wait) = (now, TOLD_AGAIN);
        }
    }
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
