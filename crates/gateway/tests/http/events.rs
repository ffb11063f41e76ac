use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{Response, body::Incoming};
use millpond_gateway::Gateway;

use super::{all_to, ask, config, counting, device, gateway, get, send};

/// Reads events as a browser does.
struct EventSource {
    answer: Response<Incoming>,
    text: String,
}

impl EventSource {
    async fn open(at: std::net::SocketAddr, path: &str) -> Self {
        let answer = send(at, &format!("GET {path}"), &[("Accept", "text/event-stream")], "").await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        Self { answer, text: String::new() }
    }

    /// The next event's name and data; none at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let values: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix(name)).collect();
                    (!values.is_empty()).then(|| values.join("\n"))
                };
                if let Some(data) = field("data: ") {
                    return Some((field("event: ").unwrap_or_else(|| "message".into()), data));
                }
            }
            let frame = self.answer.body_mut().frame().await?.ok()?;
            self.text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }

    async fn until(&mut self, data: &str) {
        while self.next().await.unwrap().1 != data {}
    }
}

#[tokio::test]
async fn one_observation_serves_all_readers_and_ends_after_the_last() {
    let (resource, changed) = counting();
    let device = device(|server| server.route("/count", resource)).await;
    let gateway = Gateway::builder(config(&all_to(&device))).observe_on_for(Duration::from_millis(100));
    let gateway = gateway.start().await.unwrap();
    let at = gateway.http_addrs()[0].1;
    let mut readers = Vec::new();
    for _ in 0..10 {
        let mut reader = EventSource::open(at, "/count").await;
        assert_eq!(reader.next().await.unwrap(), ("message".into(), "1".into()));
        readers.push(reader);
    }
    assert_eq!(changed.observers(), 1);
    changed.notify();
    for reader in &mut readers {
        reader.until("2").await;
    }
    // Who asks once is answered by what was told.
    assert_eq!(get(at, "/count").await.text(), "2");
    readers.truncate(1);
    changed.notify();
    readers[0].until("3").await;
    drop(readers);
    while changed.observers() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_cannot_be_told_is_a_plain_answer() {
    let (resource, _) = counting();
    let device = device(|server| server.route("/count", resource)).await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let events = [("Accept", "text/event-stream")];
    assert_eq!(ask(at, "GET /nowhere", &events, "").await.status.as_u16(), 404);
    let head = ask(at, "HEAD /count", &events, "").await;
    assert_eq!((head.status.as_u16(), head.header("content-type")), (200, Some("text/plain; charset=utf-8")));
}

#[tokio::test]
async fn readers_are_told_why_they_hear_no_more() {
    let (resource, changed) = counting();
    let device = device(|server| server.route("/count", resource)).await;
    let (gateway, at, _) = gateway(&all_to(&device)).await;
    let (mut one, mut other) = (EventSource::open(at, "/count").await, EventSource::open(at, "/count").await);
    one.until("1").await;
    // The same rules change nothing.
    gateway.reload(&config(&all_to(&device))).await.unwrap();
    changed.notify();
    one.until("2").await;
    other.until("2").await;
    gateway.reload(&config(&format!("{}who = [\"192.0.2.0/24\"]\n", all_to(&device)))).await.unwrap();
    assert_eq!(one.next().await.unwrap(), ("refused".into(), "4.01 the rule is for others".into()));
    assert_eq!(one.next().await, None, "its connection ends");
    assert_eq!(other.next().await.unwrap().0, "refused");
}

#[tokio::test]
async fn readers_do_not_keep_a_gateway_from_ending() {
    let (resource, _) = counting();
    let device = device(|server| server.route("/count", resource)).await;
    let (gateway, at, _) = gateway(&all_to(&device)).await;
    let mut reader = EventSource::open(at, "/count").await;
    reader.until("1").await;
    gateway.shutdown().await;
    assert_eq!(reader.next().await, None);
}
