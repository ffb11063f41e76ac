//! The verb that asks whether anybody is there.

use std::io::Write;
use std::time::Duration;

use millpond_live::{Client, Uri};
use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout};

use crate::arguments::Ping;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{render, trace};

/// Between two pings.
const APART: Duration = Duration::from_secs(1);

/// Sends empty confirmable messages, which any CoAP endpoint answers with a reset (RFC 7252 §4.3), and reports how long
/// each took. Over TCP they are Pings (RFC 8323 §5.4).
///
/// # Errors
/// A host that does not answer.
pub async fn ping(flags: Ping, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let uri = place(&flags.host)?;
    let builder = Client::builder().security(flags.credentials.read()?);
    let mut builder = flags.repeating.apply(builder, None, uri.transport())?;
    if flags.trace {
        builder = builder.trace(|event| trace::print(event, false));
    }
    let client = builder.build().await?;
    let start = Instant::now();
    for number in 0..flags.count {
        let at = start + APART.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
        let time = tokio::select! {
            time = async { sleep_until(at).await; once(&client, &uri, flags.timeout).await } => time?,
            () = interrupt.heard() => return Err(Failure::Stopped),
        };
        tell(&flags, number, time)?;
    }
    client.shutdown().await;
    Ok(())
}

async fn once(client: &Client, uri: &Uri, limit: Option<Duration>) -> Result<Duration, Failure> {
    let Some(limit) = limit else { return Ok(client.ping(uri).await?) };
    match timeout(limit, client.ping(uri)).await {
        Ok(ended) => Ok(ended?),
        Err(_) => Err(millpond_live::Error::Deadline { after: limit }.into()),
    }
}

fn tell(flags: &Ping, number: u64, time: Duration) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let round_trip_ms = time.as_secs_f64() * 1e3;
    if flags.json {
        render::json::put(&mut out, &Json { host: &flags.host, number: number + 1, round_trip_ms })?;
    } else {
        writeln!(out, "{}: answered in {round_trip_ms:.1} ms", flags.host)?;
    }
    Ok(out.flush()?)
}

#[derive(Debug, Serialize)]
struct Json<'h> {
    host: &'h str,
    number: u64,
    round_trip_ms: f64,
}

/// `HOST`, `HOST:PORT`, or a URI.
fn place(host: &str) -> Result<Uri, Failure> {
    let text = if host.contains("://") { host.to_owned() } else { format!("coap://{host}") };
    text.parse().map_err(|error: millpond_live::UriError| Failure::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_enough() {
        for (host, uri) in [
            ("example.com", "coap://example.com/"),
            ("192.0.2.1:7", "coap://192.0.2.1:7/"),
            ("[::1]", "coap://[::1]/"),
            ("coap+tcp://h/x", "coap+tcp://h/x"),
        ] {
            assert_eq!(place(host).map(|uri| uri.to_string()), Ok(uri.to_owned()));
        }
        assert!(matches!(place("::1"), Err(Failure::Usage(_))));
    }
}
