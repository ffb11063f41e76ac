//! What became of each request is told once, whichever layer decided it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use millpond_live::{AccessOutcome, AccessRecord, Client, Code, Request, Resource, Response, Server, ServerBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
};

use crate::ANY;

/// Lines of a log, of which each is awaited.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn of(builder: ServerBuilder) -> (ServerBuilder, Self) {
        let log = Self::default();
        let lines = Arc::clone(&log.0);
        (builder.access_log(move |access| lines.lock().unwrap().push(line(access))), log)
    }

    async fn next(&self) -> String {
        loop {
            if let Some(line) = {
                let mut lines = self.0.lock().unwrap();
                if lines.is_empty() { None } else { Some(lines.remove(0)) }
            } {
                return line;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn line(access: &AccessRecord) -> String {
    let method = access.method.map_or("-".into(), |method| method.to_string());
    let outcome = match access.outcome {
        AccessOutcome::Answered { code, bytes } if code.is_success() => format!("{code} {bytes}"),
        AccessOutcome::Answered { code, .. } => code.to_string(),
        AccessOutcome::Reset => "reset".into(),
        _ => "unanswered".into(),
    };
    let reason = access.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    format!("{} {method} {} {outcome}{reason}", access.transport, access.path)
}

fn resources() -> ServerBuilder {
    let hello = Resource::new()
        .get(|| async { "hello" })
        .put(|request: Request| async move { Response::changed().with_payload(request.payload().len().to_string()) });
    let long = Resource::new().get(|| async { Response::content(vec![b'x'; 3_000]) });
    Server::builder().longest_body(4_000).route("/regular", hello).route("/long", long)
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[tokio::test]
async fn every_request_that_a_datagram_brings_stands_in_the_log_whoever_answers_it() {
    let (builder, log) = Log::of(resources());
    let server = builder.bind(ANY).start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    let regular = "b7726567756c6172";
    for (case, datagram, reply, told) in [
        ("a handler", format!("44010001e34fc854{regular}"), "2.05", "coap 0.01 /regular 2.05 5"),
        // Accept twice.
        (
            "the stack, an option",
            "4401e34fc854dea8b7726567756c617261000132".into(),
            "4.02 critical option 17 (Accept): not understood, repeated, or of a wrong length",
            "coap 0.01 /regular 4.02: critical option 17 (Accept): not understood, repeated, or of a wrong length",
        ),
        (
            "the server, an option",
            format!("44010002e34fc854{regular}e0fcd1"),
            "4.02 critical option 65001: not understood, repeated, or of a wrong length",
            "coap 0.01 /regular 4.02: critical option 65001: not understood, repeated, or of a wrong length",
        ),
        (
            "the server, a path",
            "44010003e34fc854b46e6f6e65".into(),
            "4.04",
            "coap 0.01 /none 4.04: no resource has this path",
        ),
        (
            "the server, a method",
            format!("44020004e34fc854{regular}"),
            "4.05",
            "coap 0.02 /regular 4.05: the resource does not take this method",
        ),
        // Proxy-Uri.
        (
            "the server, a proxy",
            "44010005e34fc854d31661623a".into(),
            "5.05",
            "coap 0.01 / 5.05: it is for a proxy, and here is none",
        ),
        (
            "the stack, a block that is none",
            format!("44010006e34fc854{regular}c107"),
            "4.00 a block option that is none",
            "coap 0.01 /regular 4.00: a block option that is none",
        ),
        (
            "the server, a block behind the end",
            format!("44010010e34fc854{regular}c152"),
            "4.00 a block behind the end",
            "coap 0.01 /regular 4.00: a block behind the end",
        ),
        (
            "the stack, a body without its beginning",
            format!("44030007e34fc854{regular}d10316ff31"),
            "4.08",
            "coap 0.03 /regular 4.08: blocks before this one are missing",
        ),
        ("the endpoint", "4f010008".into(), "reset", "coap -  reset: malformed: token length 15 is reserved (byte 0)"),
        (
            "the endpoint, non-confirmable",
            "5f010009".into(),
            "",
            "coap -  unanswered: malformed: token length 15 is reserved (byte 0)",
        ),
        (
            "the server, a non-confirmable one",
            format!("5401000ae34fc854{regular}e0fcd1"),
            "",
            "coap 0.01 /regular unanswered: critical option 65001: not understood, repeated, or of a wrong length",
        ),
    ] {
        socket.send(&bytes(&datagram)).await.unwrap();
        assert_eq!(log.next().await, told, "{case}");
        if reply.is_empty() {
            continue;
        }
        let mut answer = [0; 200];
        let length = socket.recv(&mut answer).await.unwrap();
        let answer = &answer[..length];
        if reply == "reset" {
            assert_eq!(answer[..2], [0x70, 0], "{case}");
            continue;
        }
        let code = format!("{}.{:02}", answer[1] >> 5, answer[1] & 31);
        let payload = answer
            .iter()
            .position(|byte| *byte == 0xff)
            .map_or("", |at| std::str::from_utf8(&answer[at + 1..]).unwrap());
        let shown = if payload.is_empty() || payload == "hello" { code } else { format!("{code} {payload}") };
        assert_eq!(shown, reply, "{case}");
    }
}

/// A body is one line, however many blocks it has; what becomes of a body that is refused is told as soon as that is known.
#[tokio::test]
async fn a_body_in_blocks_is_told_once() {
    let (builder, log) = Log::of(resources());
    let server = builder.bind(ANY).start().await.unwrap();
    let uri = |path: &str| format!("coap://{}/{path}", server.local_addr());
    let client = Client::new().await.unwrap();
    assert_eq!(client.get(uri("long")).block_size(256).await.unwrap().payload().len(), 3_000);
    assert_eq!(log.next().await, "coap 0.01 /long 2.05 3000");
    client.put(uri("regular")).payload(vec![0; 3_000]).block_size(256).await.unwrap();
    assert_eq!(log.next().await, "coap 0.03 /regular 2.04 4");
    let answer = client.put(uri("regular")).payload(vec![0; 5_000]).await.unwrap();
    assert_eq!(answer.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(log.next().await, "coap 0.03 /regular 4.13: a body of more than 4000 bytes");
}

#[tokio::test]
async fn what_comes_over_a_connection_is_told_as_well() {
    let (builder, log) = Log::of(resources());
    let waits = Resource::new().get(std::future::pending::<Response>);
    let server = builder.bind_tcp(ANY).route("/waits", waits).start().await.unwrap();
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    // Settings; Accept twice; a method that the resource does not take; and one that is never answered.
    stream.write_all(&bytes("00e1")).await.unwrap();
    stream.write_all(&bytes("c001b7726567756c617261000132")).await.unwrap();
    assert_eq!(
        log.next().await,
        "coap+tcp 0.01 /regular 4.02: critical option 17 (Accept): not understood, repeated, or of a wrong length"
    );
    stream.write_all(&bytes("8002b7726567756c6172")).await.unwrap();
    assert_eq!(log.next().await, "coap+tcp 0.02 /regular 4.05: the resource does not take this method");
    stream.write_all(&bytes("6001b57761697473")).await.unwrap();
    let mut answers = vec![0; 3];
    stream.read_exact(&mut answers).await.unwrap();
    drop(stream);
    assert_eq!(log.next().await, "coap+tcp 0.01 /waits unanswered: its connection, or the server, ended first");
}

/// Who logs must not change what is logged: a route's parameters, shared values and bodies that stream reach their handler.
#[tokio::test]
async fn what_is_told_of_a_request_takes_nothing_from_its_handler() {
    let sensor = Resource::new().get(|request: Request| async move {
        let state = request.state::<u32>().copied().unwrap_or_default();
        format!("{} {state}", request.parameter("id").unwrap_or("?"))
    });
    let upload = Resource::new().streaming().put(|request: Request| async move {
        let (mut body, mut length) = (request.body(), 0);
        while let Ok(Some(chunk)) = body.chunk().await {
            length += chunk.len();
        }
        length.to_string()
    });
    let (builder, log) = Log::of(Server::builder().state(7_u32).route("/s/{id}", sensor).route("/up", upload));
    let server = builder.bind(ANY).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = |path: &str| format!("coap://{}{path}", server.local_addr());
    assert_eq!(client.get(uri("/s/x")).await.unwrap().text(), Ok("x 7"));
    assert_eq!(log.next().await, "coap 0.01 /s/x 2.05 3");
    assert_eq!(client.put(uri("/up")).payload(vec![0; 10_000]).await.unwrap().text(), Ok("10000"));
}
