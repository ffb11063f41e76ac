//! What the operator of a relay is told: a line for each client that comes and goes, when there is no room, and now and then
//! what was dropped.

use std::net::SocketAddr;
use std::time::Duration;

use millpond_emulate::{Carried, ClientChange, ClientStanding, Standing, Watch};
use serde_json::{Value, json};

use crate::arguments::LogFormat;
use crate::log::{Log, time_of_day};

/// How often it is looked how the relay stands, and after how many looks the same is told again.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(250);
const TOLD_AGAIN: u32 = 240;

/// Where lines go, and how they are written.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) log: Log,
    pub(super) format: LogFormat,
}

impl Lines {
    /// One line: for people, or the same as an object.
    pub(super) fn tell(&self, event: &str, text: &str, facts: Value) {
        let time = time_of_day();
        self.log.line(&match self.format {
            LogFormat::Text => format!("{time}  {text}"),
            LogFormat::Json => {
                let mut object = json!({ "time": time, "event": event });
                if let (Some(object), Value::Object(facts)) = (object.as_object_mut(), facts) {
                    object.extend(facts);
                }
                object.to_string()
            }
        });
    }

    /// A client came or went.
    pub(super) fn client(&self, change: &ClientChange) {
        match change {
            ClientChange::Came { client, seen_as } => {
                let seen_as = seen_as.as_ref().map(SocketAddr::to_string);
                let text = format!("{client} came; the server sees {}", seen_as.as_deref().unwrap_or("it"));
                self.tell("came", &text, json!({ "client": client.to_string(), "seen_as": seen_as }));
            }
            ClientChange::Left { client, gave_way, up, down } => {
                let why = if *gave_way { "gave way to another" } else { "was silent for long" };
                let told = |Carried { datagrams, bytes }: &Carried| format!("{datagrams} datagrams of {bytes} bytes");
                let text = format!("{client} left: it {why}; {} up, {} down", told(up), told(down));
                let facts = json!({
                    "client": client.to_string(),
                    "gave_way": gave_way,
                    "datagrams_up": up.datagrams,
                    "bytes_up": up.bytes,
                    "datagrams_down": down.datagrams,
                    "bytes_down": down.bytes,
                });
                self.tell("left", &text, facts);
            }
        }
    }

    /// There was no room for some.
    fn full(&self, now: &ClientStanding, gave_way: u64, refused: u64) {
        let ClientStanding { clients, room, .. } = now;
        let text = format!(
            "full: {clients} clients and room for {room}; {gave_way} gave way to others, {refused} datagrams of others were \
             dropped; raise --clients, and the limit of open files (ulimit -n)"
        );
        self.tell("full", &text, json!({ "clients": clients, "room": room, "gave_way": gave_way, "refused": refused }));
    }
}

/// Tells at once that there is no room for a client, and where that is wanted what is dropped; while that goes on once a minute.
pub(super) async fn watch(watch: Watch, lines: Lines, tells_drops: bool) {
    let (mut before, mut full_again) = (ClientStanding::default(), 0_u32);
    let (mut dropped_before, mut dropped_again) = (Vec::new(), 0_u32);
    let mut ticks = tokio::time::interval(LOOKED_AT_EVERY);
    loop {
        ticks.tick().await;
        (full_again, dropped_again) = (full_again.saturating_sub(1), dropped_again.saturating_sub(1));
        let Some(standing) = watch.standing() else { continue };
        let now = standing.clients;
        let (gave_way, refused) = (now.gave_way - before.gave_way, now.refused - before.refused);
        if full_again == 0 && (gave_way, refused) != (0, 0) {
            lines.full(&now, gave_way, refused);
            (before, full_again) = (now, TOLD_AGAIN);
        }
        let dropped = dropped(&standing);
        if tells_drops && dropped_again == 0 && dropped != dropped_before {
            let known =
                |why: &str| dropped_before.iter().find(|(known, _)| known == why).map_or(0, |(_, count)| *count);
            for (why, count) in
                dropped.iter().map(|(why, count)| (why, count - known(why))).filter(|(_, more)| *more > 0)
            {
                lines.tell("dropped", &format!("dropped {count}: {why}"), json!({ "why": why, "datagrams": count }));
            }
            (dropped_before, dropped_again) = (dropped, TOLD_AGAIN);
        }
    }
}

/// What was dropped until now, by reason.
fn dropped(standing: &Standing) -> Vec<(String, u64)> {
    let of_links = ["uplink", "downlink"].into_iter().zip(&standing.links).flat_map(|(name, link)| {
        let why = [("queue full", link.dropped_queue), ("lost by the radio", link.dropped_radio)];
        why.map(|(why, packets)| (format!("{why}, {name}"), packets))
    });
    let left_out = standing.left_out.iter().map(|left_out| (left_out.why.to_owned(), left_out.packets));
    of_links.chain(left_out).filter(|(_, packets)| *packets > 0).collect()
}
