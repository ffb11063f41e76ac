//! A server with a clock that can be observed: `cargo run -p millpond-live --example observable_server`.

use std::time::{Duration, SystemTime};

use millpond_live::{ContentFormat, Error, Observable, Request, Resource, Response, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let ticks = Observable::new();
    let time = Resource::new().title("Seconds since 1970").content_format(ContentFormat::TEXT).observable(&ticks).get(
        || async {
            #[allow(clippy::disallowed_methods, reason = "the time of day is what this resource is about")]
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            Response::content(now.as_secs().to_string()).with_content_format(ContentFormat::TEXT).with_max_age(2)
        },
    );
    let greeting = Resource::new()
        .get(|request: Request| async move { format!("hello {}", request.parameter("name").unwrap_or("you")) });
    let server = Server::builder().route("/time", time).route("/hello/{name}", greeting).start().await?;
    println!("listening on {}", server.local_addr());

    let mut beat = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = beat.tick() => ticks.notify(),
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    server.shutdown().await;
    Ok(())
}
