//! Resources to try clients with.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use millpond_live::{Bytes, Code, METHODS, Next, Observable, Request, Resource, Response, ServerBuilder};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::content_format::{self, TEXT};
use crate::request::LONGEST_BODY;
use crate::values;

/// How often `/count` goes up.
const COUNT_STEP: Duration = Duration::from_millis(200);

/// How often `/time` is new, in steps of `/count`.
const STEPS_OF_TIME: u64 = 5;

/// Longest that `/slow` waits.
const SLOWEST: Duration = Duration::from_secs(60);

/// Bytes of `/large` that are had before the client's address is validated.
const UNPROVED: usize = 64 << 10;

/// What changes by itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Changing {
    clock: Observable,
    counted: Observable,
    count: Arc<AtomicU64>,
}

pub(super) fn routes(builder: ServerBuilder, changing: &Changing) -> ServerBuilder {
    let Changing { clock, counted, count } = changing.clone();
    let hello = || async { "Hello from Millpond.\n" };
    let time = || async { time() };
    let large = |request: Request| async move { large(&request) };
    let count = move || {
        let count = count.load(Ordering::Relaxed);
        async move { text(format!("{count}\n")).with_max_age(1) }
    };
    let mut echo = Resource::new().title("What was sent").content_format(TEXT);
    for (_, method) in METHODS {
        echo = echo.method(method, |request: Request| async move { self::echo(&request) });
    }
    let routes = [
        ("/hello", Resource::new().get(hello).title("A greeting").content_format(TEXT)),
        ("/time", Resource::new().get(time).observable(&clock).title("The time").content_format(TEXT)),
        ("/slow", Resource::new().get(slow).title("A separate response").content_format(TEXT)),
        ("/large", Resource::new().get(large).title("Many blocks").content_format(TEXT)),
        ("/count", Resource::new().get(count).observable(&counted).title("Five a second").content_format(TEXT)),
        ("/echo", echo),
    ];
    routes.into_iter().fold(builder, |builder, (path, resource)| builder.route(path, resource.layer(as_wanted)))
}

/// What is not in the Content-Format that was wanted is not sent (RFC 7252 §5.10.4).
async fn as_wanted(request: Request, next: Next) -> Response {
    let wanted = request.accept();
    let response = next.run(request).await;
    let code = response.code();
    match (wanted, response.content_format()) {
        (Some(wanted), Some(format)) if code.is_success() && wanted != format => Response::new(Code::NOT_ACCEPTABLE)
            .with_payload(format!("this is {}", content_format::name(format.number()))),
        _ => response,
    }
}

/// Makes `/count` and `/time` new, for ever.
pub(super) async fn step(changing: Changing) {
    let mut ticks = interval(COUNT_STEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let steps = changing.count.fetch_add(1, Ordering::Relaxed);
        changing.counted.notify();
        if steps.is_multiple_of(STEPS_OF_TIME) {
            changing.clock.notify();
        }
    }
}

fn text(body: String) -> Response {
    Response::content(body).with_content_format(TEXT)
}

#[allow(clippy::disallowed_methods, reason = "what is asked for is the time of day")]
fn time() -> Response {
    text(format!("{}\n", humantime::format_rfc3339_seconds(SystemTime::now()))).with_max_age(1)
}

async fn slow(request: Request) -> Response {
    let wanted = request.query_value("seconds").map_or(Ok(Duration::from_secs(2)), values::duration);
    match wanted {
        Ok(wait) if wait <= SLOWEST => {
            sleep(wait).await;
            text(format!("That took {} s.\n", wait.as_secs_f64()))
        }
        Ok(_) => Response::bad_request("seconds: at most 60"),
        Err(error) => Response::bad_request(&format!("seconds: {error}")),
    }
}

/// What was sent, with the code that answers the method; a request without payload gets its path and query.
fn echo(request: &Request) -> Response {
    let code = match request.method() {
        Code::PUT | Code::PATCH | Code::IPATCH => Code::CHANGED,
        Code::DELETE => Code::DELETED,
        Code::POST => Code::CREATED,
        _ => Code::CONTENT,
    };
    let response = Response::new(code);
    if !request.payload().is_empty() {
        let response = response.with_payload(request.payload().clone());
        return match request.content_format() {
            Some(format) => response.with_content_format(format),
            None => response,
        };
    }
    let method = request.method().name().unwrap_or("?").to_uppercase();
    let query: Vec<_> = request.query().collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    response.with_payload(format!("{method} {}{query}\n", request.path_text())).with_content_format(TEXT)
}

/// Lines that tell their own position, so that a block in the wrong place shows.
fn large(request: &Request) -> Response {
    /// Made once: however many ask for it, it is in memory once, and costs nothing more.
    static LINES: LazyLock<Bytes> =
        LazyLock::new(|| (0..=LONGEST_BODY / 16).map(|line| format!("{:015}\n", line * 16)).collect::<String>().into());
    match request.query_value("size").map_or(Ok(20_000), values::size) {
        // What is above keeps a copy for later blocks.
        Ok(size) if size > UNPROVED && !request.is_address_proved() => Response::prove_address(),
        Ok(size) if size <= LONGEST_BODY => Response::content(LINES.slice(..size)).with_content_format(TEXT),
        Ok(_) => Response::bad_request(&format!("size: at most {LONGEST_BODY}")),
        Err(error) => Response::bad_request(&format!("size: {error}")),
    }
}
