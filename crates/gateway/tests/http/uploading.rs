//! Long bodies for devices, which nobody on the way holds whole.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use millpond_live::{Code, Request, Resource, Response, Server, Transport};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    all_to,
    bodies::{Got, bytes},
    gateway, get, raw,
};

const LENGTH: usize = 600_000;

async fn device(got: &Got) -> Server {
    let got = got.clone();
    let image = Resource::new().put(move |request: Request| got.clone().put(request)).streaming();
    let builder = Server::builder().bind("127.0.0.1:0").bind_tcp("127.0.0.1:0");
    builder.route("/image", image).route("/hello", Resource::new().get(|| async { "hello" })).start().await.unwrap()
}

fn over_tcp(device: &Server) -> String {
    let at = device.local_addr_of(Transport::Tcp).unwrap();
    format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"coap+tcp://{at}/{{*rest}}\"\n")
}

async fn begin(at: SocketAddr, length: &str, first: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).await.unwrap();
    let head = format!("PUT /image HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(first).await.unwrap();
    stream
}

async fn answer(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // What was not taken resets the connection behind the answer.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_body_is_forwarded_while_it_comes() {
    let body = bytes(LENGTH);
    let (begun, rest) = body.split_at(100_000);
    for is_tcp in [false, true] {
        let got = Got::default();
        let device = device(&got).await;
        let rule = if is_tcp { over_tcp(&device) } else { all_to(&device) };
        let (_gateway, at, _) = gateway(&rule).await;
        let mut stream = begin(at, &format!("Content-Length: {LENGTH}"), begun).await;
        got.begins().await;
        stream.write_all(rest).await.unwrap();
        let answer = answer(stream).await;
        assert!(answer.starts_with("HTTP/1.1 204 "), "{answer}");
        assert!(*got.whole.lock().unwrap() == [body.clone()]);
        assert_eq!(got.size.load(Ordering::Relaxed), LENGTH);
    }
}

/// By HTTP on both sides; it may refuse before it has all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_body_is_forwarded_by_http_while_it_comes() {
    let body = bytes(LENGTH);
    let upstream = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = upstream.local_addr().unwrap();
    let (_gateway, at, _) = gateway(&format!("[[rule]]\npath = \"/image\"\nto = \"http://{to}/image\"\n")).await;
    for refuses in [false, true] {
        let mut stream = begin(at, &format!("Content-Length: {LENGTH}"), &body[..100_000]).await;
        let (mut asked, _) = upstream.accept().await.unwrap();
        let mut text = Vec::new();
        while !text.windows(4).any(|end| end == b"\r\n\r\n") {
            asked.read_buf(&mut text).await.unwrap();
        }
        let head = text.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        assert!(String::from_utf8_lossy(&text[..head]).contains(&format!("content-length: {LENGTH}\r\n")));
        while text.len() < head + 10_000 {
            asked.read_buf(&mut text).await.unwrap();
        }
        if refuses {
            asked.write_all(b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        } else {
            stream.write_all(&body[100_000..]).await.unwrap();
            while text.len() < head + LENGTH {
                asked.read_buf(&mut text).await.unwrap();
            }
            assert!(text[head..] == body);
            asked.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        }
        let answer = answer(stream).await;
        assert!(answer.starts_with(if refuses { "HTTP/1.1 409 " } else { "HTTP/1.1 204 " }), "{answer}");
    }
}

/// What it has not taken waits in sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_takes_nothing_holds_up_who_sends() {
    const LONG: usize = 16 << 20;
    let begun = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&begun);
    let stalls = move |request: Request| {
        let told = Arc::clone(&told);
        async move {
            let mut body = request.body();
            let _ = body.chunk().await;
            told.notify_one();
            std::future::pending::<Response>().await
        }
    };
    let device = super::device(|server| server.route("/image", Resource::new().put(stalls).streaming())).await;
    let (_gateway, at, _) = gateway(&format!("[http]\nbody = \"16 MiB\"\n{}", all_to(&device))).await;
    let mut stream = begin(at, &format!("Content-Length: {LONG}"), &bytes(100_000)).await;
    begun.notified().await;
    let (mut sent, chunk) = (100_000, bytes(65_536));
    while sent < LONG {
        match tokio::time::timeout(Duration::from_millis(300), stream.write(&chunk)).await {
            Ok(written) => sent += written.unwrap(),
            Err(_) => break,
        }
    }
    assert!(sent < LONG, "all of it was taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_abandoned_is_never_whole() {
    let got = Got::default();
    let device = device(&got).await;
    let body = bytes(LENGTH);
    for is_chunked in [false, true] {
        let (_gateway, at, _) = gateway(&all_to(&device)).await;
        got.bytes.store(0, Ordering::Relaxed);
        let stream = match is_chunked {
            true => {
                let mut stream = begin(at, "Transfer-Encoding: chunked", b"30d40\r\n").await;
                stream.write_all(&body[..200_000]).await.unwrap();
                stream
            }
            false => begin(at, &format!("Content-Length: {LENGTH}"), &body[..200_000]).await,
        };
        got.begins().await;
        drop(stream);
        assert!(got.at_rest().await <= 200_000);
        assert!(got.whole.lock().unwrap().is_empty());
        let stream = begin(at, &format!("Content-Length: {LENGTH}"), &body).await;
        assert!(answer(stream).await.starts_with("HTTP/1.1 204 "));
        assert!(std::mem::take(&mut *got.whole.lock().unwrap()) == [body.clone()]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_refuses_in_the_middle_is_heard_at_once() {
    for (code, status) in [
        (Code::REQUEST_ENTITY_INCOMPLETE, 408),
        (Code::CONFLICT, 409),
        (Code::REQUEST_ENTITY_TOO_LARGE, 413),
        (Code::SERVICE_UNAVAILABLE, 503),
    ] {
        let got = Got { says: Some((50_000, code)), ..Got::default() };
        let device = device(&got).await;
        for rule in [all_to(&device), over_tcp(&device)] {
            let (_gateway, at, _) = gateway(&rule).await;
            // The rest never comes.
            let stream = begin(at, &format!("Content-Length: {LENGTH}"), &bytes(200_000)).await;
            let answer = answer(stream).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{code}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_beyond_the_limit_ends_where_that_is_known() {
    let got = Got::default();
    let device = device(&got).await;
    let (_gateway, at, _) = gateway(&format!("[http]\nbody = \"300 kB\"\n{}", all_to(&device))).await;
    let told = raw(at, format!("PUT /image HTTP/1.1\r\nHost: {at}\r\nContent-Length: 300001\r\n\r\n").as_bytes()).await;
    assert!(told.starts_with("HTTP/1.1 413 "), "{told}");
    assert_eq!(got.at_rest().await, 0);
    let mut stream = begin(at, "Transfer-Encoding: chunked", b"493e1\r\n").await;
    stream.write_all(&bytes(300_001)).await.unwrap();
    let answer = answer(stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!((1..=300_000).contains(&got.at_rest().await));
    assert!(got.whole.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_slowly_holds_up_nobody_else() {
    let got = Got::default();
    let device = device(&got).await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let _slow = begin(at, &format!("Content-Length: {LENGTH}"), &bytes(100_000)).await;
    got.begins().await;
    assert_eq!(get(at, "/hello").await.text(), "hello");
}

/// Nothing of it was sent to one that cannot be reached, and it is told so.
#[tokio::test]
async fn who_is_not_there_gets_none() {
    let (_gateway, at, _) = gateway("[[rule]]\npath = \"/{*rest}\"\nto = \"coap+tcp://127.0.0.1:1/{*rest}\"\n").await;
    let answer = answer(begin(at, &format!("Content-Length: {LENGTH}"), &bytes(100_000)).await).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}
