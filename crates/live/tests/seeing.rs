//! What subscribers of `tracing` get. A test program of its own: as long as there is one subscriber, of one thread, `tracing` asks
//! the thread that makes a call first who wants it, and notes the answer for all threads. Where that is another test's, nobody does,
//! and this one's subscriber is not told. So this one subscribes for all threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use millpond_live::{Client, Request, Resource, Response, Server};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Any free port of this machine.
const ANY: std::net::SocketAddr = std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// Writes down level and message of every event of this crate.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<(Level, String)>>>);

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "millpond_live"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push((*event.metadata().level(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_subscriber_is_told_every_transmission_and_what_goes_wrong() {
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    async fn broken(_: Request) -> Response {
        panic!("on purpose")
    }
    let panicking = Resource::new().get(broken);
    let working = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).route("/ok", working).route("/bad", panicking).start().await.unwrap();
    let client = Client::new().await.unwrap();
    for path in ["ok", "bad"] {
        client.get(format!("coap://{}/{path}", server.local_addr())).await.unwrap();
    }
    let told = recorder.0.lock().unwrap().clone();
    for (level, part) in [
        (Level::TRACE, "-> CON 0.01"),
        (Level::TRACE, "<- CON 0.01"),
        (Level::TRACE, "-> ACK 2.05"),
        (Level::TRACE, "<- ACK 2.05"),
        (Level::TRACE, "round trip"),
        (Level::TRACE, "-> ACK 5.00"),
        (Level::ERROR, "a handler panicked"),
    ] {
        assert!(
            told.iter().any(|(at, text)| *at == level && text.contains(part)),
            "{level} {part} is not in\n{told:#?}"
        );
    }
}
