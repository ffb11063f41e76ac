//! What happens on the wire, a line each on standard error, as it happens.

use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use millpond_coap::message::{Code, Kind};
use millpond_live::{Grade, Happened, TraceEvent};

/// Prints an event; `with_peer` where there may be several peers.
pub fn print(event: &TraceEvent, with_peer: bool) {
    // Who closed standard error does not want to know.
    let _ = writeln!(anstream::stderr().lock(), "{}", styled(event, with_peer));
}

/// [`line()`] in the colours of a terminal.
#[must_use]
pub fn styled(event: &TraceEvent, with_peer: bool) -> String {
    let style = style(&event.what);
    format!("{style}{}{style:#}", line(event, with_peer))
}

/// One line: time since the start in seconds, direction, and what there is to know.
#[must_use]
pub fn line(event: &TraceEvent, with_peer: bool) -> String {
    let peer = if with_peer { format!("{}  ", event.peer) } else { String::new() };
    format!("{:>9.3} s  {peer}{}", event.at.as_secs_f64(), told(&event.what))
}

fn told(what: &Happened) -> String {
    match what {
        Happened::Sent { kind, code, message_id, token, bytes, copy, timer, reason, cause } => {
            let mut text =
                format!("-> {kind} {} id {} token {token}, {bytes} bytes", named(*kind, *code), message_id.0);
            match *cause {
                "exchange" if *copy == 0 => {}
                "exchange" => text.push_str(&format!(", copy {}", copy.saturating_add(1))),
                "plain" | "acknowledgement" | "reset" | "reply" => {}
                cause => text.push_str(&format!(", {cause}")),
            }
            if let (Some(timer), Some(reason)) = (timer, reason) {
                text.push_str(&format!("; timer {} ({reason})", seconds(*timer)));
            }
            text
        }
        Happened::Received { kind, code, message_id, token, payload } => {
            let payload = if *payload == 0 { String::new() } else { format!(", payload of {payload} bytes") };
            format!("<- {kind} {} id {} token {token}{payload}", named(*kind, *code), message_id.0)
        }
        Happened::Acknowledged => "<- ACK (empty), the response follows".to_owned(),
        Happened::RoundTrip { since_first, since_last, copies, grade, rto } => {
            let mut text = format!("   round trip {}, {grade}", seconds(*since_first));
            if *copies > 1 {
                text.push_str(&format!(" ({} since the last of {copies} copies)", seconds(*since_last)));
            }
            if let Some(rto) = rto {
                text.push_str(&format!("; RTO {}", seconds(*rto)));
            }
            text
        }
        Happened::Failed { why } => format!("   {why}"),
        Happened::Late { kind, code, message_id } => {
            format!("<- {kind} {} id {}, late: nothing waits for it", named(*kind, *code), message_id.0)
        }
        Happened::Ignored { reason } => format!("<- ignored: {reason}"),
        other => format!("   {}", other.to_string().trim_start()),
    }
}

/// `GET`, `2.05 Content`, or nothing for a message without code.
fn named(kind: Kind, code: Code) -> String {
    match (kind, code.name()) {
        (_, _) if code.is_empty() => "(empty)".to_owned(),
        (_, Some(name)) if code.is_request() => name.to_uppercase(),
        (_, Some(name)) => format!("{code} {name}"),
        (_, None) => code.to_string(),
    }
}

/// Seconds, or milliseconds below one.
fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.3} s") }
}

/// Copies stand out, and so does what reports trouble.
fn style(what: &Happened) -> Style {
    match what {
        Happened::Sent { cause: "exchange", copy: 1.., .. } => AnsiColor::Yellow.on_default(),
        Happened::Sent { .. } => AnsiColor::Cyan.on_default(),
        Happened::Received { .. } | Happened::Acknowledged => AnsiColor::Green.on_default(),
        Happened::RoundTrip { grade: Grade::Exact, .. } => Style::new().dimmed(),
        Happened::RoundTrip { .. } | Happened::Late { .. } => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Red.on_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_live::{MessageId, Token};

    #[test]
    fn a_copy_tells_its_timer_and_why_it_is_that_long() {
        let sent = |copy, timer, reason| Happened::Sent {
            kind: Kind::Confirmable,
            code: Code::GET,
            message_id: MessageId(7),
            token: Token::EMPTY,
            bytes: 12,
            copy,
            timer: Some(Duration::from_millis(timer)),
            reason: Some(reason),
            cause: "exchange",
        };
        assert_eq!(told(&sent(0, 2_437, "initial")), "-> CON GET id 7 token -, 12 bytes; timer 2.437 s (initial)");
        assert_eq!(
            told(&sent(1, 612, "backed-off")),
            "-> CON GET id 7 token -, 12 bytes, copy 2; timer 612.0 ms (backed-off)"
        );
    }

    #[test]
    fn a_round_trip_tells_what_it_is_worth() {
        let what = Happened::RoundTrip {
            since_first: Duration::from_millis(3_205),
            since_last: Duration::from_millis(905),
            copies: 2,
            grade: Grade::Ambiguous,
            rto: Some(Duration::from_millis(4_100)),
        };
        assert_eq!(told(&what), "   round trip 3.205 s, ambiguous (905.0 ms since the last of 2 copies); RTO 4.100 s");
    }

    #[test]
    fn messages_are_named_as_the_registry_names_them() {
        assert_eq!(named(Kind::Acknowledgement, Code::EMPTY), "(empty)");
        assert_eq!(named(Kind::Confirmable, Code::PUT), "PUT");
        assert_eq!(named(Kind::Acknowledgement, Code::NOT_FOUND), "4.04 Not Found");
        assert_eq!(named(Kind::Acknowledgement, Code::from_byte(0x5e)), "2.30");
    }
}
