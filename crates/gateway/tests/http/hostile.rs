use std::time::Duration;

use millpond_live::{Resource, Response};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{all_to, ask, counting, device, echo, gateway, get, raw};

/// Whatever two readers could understand differently is refused, and nothing of it is asked.
#[tokio::test]
async fn what_is_ambiguous_is_refused() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let host = format!("Host: {at}\r\n");
    for head in [
        format!("GET /a/../b HTTP/1.1\r\n{host}"),
        format!("GET /a/%2e%2e/b HTTP/1.1\r\n{host}"),
        format!("GET /a/%2E HTTP/1.1\r\n{host}"),
        format!("GET /./b HTTP/1.1\r\n{host}"),
        format!("GET /a%0d%0aX:%20y HTTP/1.1\r\n{host}"),
        format!("GET /a%00 HTTP/1.1\r\n{host}"),
        format!("GET /a?x=%0a HTTP/1.1\r\n{host}"),
        format!("GET /a%ff HTTP/1.1\r\n{host}"),
        format!("GET /a%4 HTTP/1.1\r\n{host}"),
        format!("GET /{} HTTP/1.1\r\n{host}", "x".repeat(256)),
        format!("GET * HTTP/1.1\r\n{host}"),
        format!("GET http://other.example/a HTTP/1.1\r\n{host}"),
        format!("GET /a HTTP/1.1\r\n{host}{host}"),
        "GET /a HTTP/1.1\r\nHost: a, b\r\n".into(),
        "GET /a HTTP/1.1\r\nHost: a@b\r\n".into(),
        "GET /a HTTP/1.1\r\n".into(),
        format!("GET /a HTTP/1.1\r\n{host} X: y\r\n"),
        format!("GET /a HTTP/1.1\r\n{host}X : y\r\n"),
        format!("GET /a HTTP/1.1\r\n{host}Content-Length: 5\r\n"),
        format!("DELETE /a HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Content-Length: +5\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Content-Length: 5, 5\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Transfer-Encoding: chunked, gzip\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Transfer-Encoding: gzip, chunked\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        format!("POST /a HTTP/1.0\r\n{host}Transfer-Encoding: chunked\r\n"),
        format!("POST /a HTTP/1.1\r\n{host}Content-Type: text/plain\r\nContent-Type: application/json\r\n"),
    ] {
        let answer = raw(at, format!("{head}Connection: close\r\n\r\n").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{head:?}: {answer}");
        assert!(!answer.contains("0.0"), "the device was asked: {head:?}: {answer}");
    }
    for (line, status) in [("CONNECT 127.0.0.1:1 HTTP/1.1", "501"), ("GET ftp://x/ HTTP/1.1", "502")] {
        let answer = raw(at, format!("{line}\r\n{host}Connection: close\r\n\r\n").as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
    }
}

/// An encoded slash is a part of a segment: it leads past no rule.
#[tokio::test]
async fn an_encoded_slash_stays_in_its_segment() {
    let device = echo().await;
    let lines = format!("[[rule]]\npath = \"/open/{{id}}\"\nto = \"coap://{}/open/{{id}}\"\n", device.local_addr());
    let (_gateway, at, _) = gateway(&lines).await;
    assert_eq!(get(at, "/open/x%2F..%2Fsecret").await.text(), "0.01 11=open,11=x/../secret,16=15 0");
    assert_eq!(get(at, "/open%2Fx").await.status.as_u16(), 404);
    assert_eq!(get(at, "/open/x/y").await.status.as_u16(), 404);
}

/// Behind a body whose end others may see elsewhere nothing is read.
#[tokio::test]
async fn nothing_follows_a_body_of_two_lengths() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    for lengths in
        ["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"]
    {
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
        let text = format!("POST /a HTTP/1.1\r\nHost: {at}\r\n{lengths}\r\n0\r\n\r\n{smuggled}");
        let answer = raw(at, text.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(!answer.contains("smuggled"), "{answer}");
    }
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&format!("[http]\nbody = \"1000 B\"\n{}", all_to(&device))).await;
    let long = "x".repeat(20_000);
    let head = raw(at, format!("GET /a HTTP/1.1\r\nHost: {at}\r\nX: {long}\r\n\r\n").as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
    let many: String = (0..100).map(|number| format!("X{number}: y\r\n")).collect();
    let head = raw(at, format!("GET /a HTTP/1.1\r\nHost: {at}\r\n{many}\r\n").as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 431 "), "{head}");
    assert_eq!(ask(at, "PUT /a", &[], vec![7; 1_000]).await.status.as_u16(), 200);
    assert_eq!(ask(at, "PUT /a", &[], vec![7; 1_001]).await.status.as_u16(), 413);
    let chunk = "400\r\n".to_owned() + &"x".repeat(1_024) + "\r\n";
    let text = format!("PUT /a HTTP/1.1\r\nHost: {at}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
    let chunked = raw(at, text.as_bytes()).await;
    assert!(chunked.starts_with("HTTP/1.1 413 "), "{chunked}");
}

/// What others say of who asks, and by which name, changes nothing.
#[tokio::test]
async fn no_header_poisons_what_is_kept() {
    let (resource, _) = counting();
    let device = device(|server| server.route("/count", resource)).await;
    let rule = format!("{}who = [\"127.0.0.0/8\"]\n", all_to(&device));
    let (_gateway, at, _) = gateway(&rule).await;
    for headers in [
        [("Host", "evil.example"), ("X-Forwarded-Host", "evil.example")],
        [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1")],
        [("X-Original-URL", "/other"), ("X-HTTP-Method-Override", "DELETE")],
        [("Cache-Control", "no-cache"), ("Authorization", "Basic eDp5")],
    ] {
        let answer = ask(at, "GET /count", &headers, "").await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "1"), "{headers:?}");
    }
    let closed = format!("{}who = [\"192.0.2.0/24\"]\n", all_to(&device));
    let (_gateway, at, _) = gateway(&closed).await;
    let forged = [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=192.0.2.1"), ("X-Real-IP", "192.0.2.1")];
    assert_eq!(ask(at, "GET /count", &forged, "").await.status.as_u16(), 403);
}

/// A page of somebody else asks in the name of who looks at it.
#[tokio::test]
async fn pages_of_others_ask_nothing_unless_they_are_named() {
    let device = echo().await;
    let lines = format!("[http]\norigins = [\"https://panel.example\"]\n{}", all_to(&device));
    let (_gateway, at, _) = gateway(&lines).await;
    for origin in ["http://evil.example", "null", "https://panel.example.evil", "https://panel.example:444"] {
        let answer = ask(at, "POST /a", &[("Origin", origin)], "").await;
        assert_eq!(answer.status.as_u16(), 403, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
        assert_eq!(ask(at, "OPTIONS /a", &[("Origin", origin)], "").await.header("access-control-allow-origin"), None);
    }
    let own = format!("http://{at}");
    assert_eq!(ask(at, "POST /a", &[("Origin", &own)], "").await.status.as_u16(), 200);
    let named = ask(at, "POST /a", &[("Origin", "https://panel.example")], "").await;
    assert_eq!(named.header("access-control-allow-origin"), Some("https://panel.example"));
    let asked = ask(at, "OPTIONS /a", &[("Origin", "https://panel.example")], "").await;
    assert_eq!(asked.status.as_u16(), 204);
    assert!(asked.header("access-control-allow-methods").unwrap().contains("PUT"));
}

/// By Via for HTTP as by Hop-Limit for CoAP.
#[tokio::test]
async fn who_has_passed_too_many_proxies_goes_no_further() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    assert!(ask(at, "GET /a", &[("Via", "1.1 a, 1.1 b"), ("Via", "1.1 c")], "").await.text().contains("16=12"));
    let many = vec!["1.1 a"; 15].join(", ");
    assert_eq!(ask(at, "GET /a", &[("Via", &many)], "").await.status.as_u16(), 508);
    let more = vec!["1.1 a"; 1_000].join(",");
    assert_eq!(ask(at, "GET /a", &[("Via", &more)], "").await.status.as_u16(), 508);
}

/// The oldest connection of who has most gives way to the newest.
#[tokio::test]
async fn connections_are_bounded() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&format!("[http]\nconnections = 8\n{}", all_to(&device))).await;
    let mut oldest = TcpStream::connect(at).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(TcpStream::connect(at).await.unwrap());
    }
    assert_eq!(oldest.read(&mut [0]).await.unwrap_or(0), 0, "it is closed");
    assert_eq!(get(at, "/a").await.status.as_u16(), 200);
}

/// Whatever one network opens, others are served.
#[tokio::test]
async fn a_network_that_has_most_gives_way_before_others() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&format!("[http]\nconnections = 8\n{}", all_to(&device))).await;
    let from = |address: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        socket.connect(at)
    };
    let mut other = from("127.9.9.1").await.unwrap();
    let mut many = Vec::new();
    for _ in 0..40 {
        many.push(from("127.0.0.1").await.unwrap());
    }
    // The last one has been let in once it is answered.
    assert_eq!(get(at, "/a").await.status.as_u16(), 200);
    other.write_all(format!("GET /a HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    other.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

/// Other protocols are none.
#[tokio::test]
async fn no_connection_becomes_another_one() {
    let device = echo().await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let upgrade = "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    let answer = raw(at, format!("GET /a HTTP/1.1\r\nHost: {at}\r\n{upgrade}\r\n").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for bytes in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\x40\x01\x00\x01\xb1a\r\n\r\n",
    ] {
        let answer = raw(at, bytes).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
}

/// Who does not send, and who does not read.
#[tokio::test]
async fn who_is_slow_is_not_waited_for() {
    let body = || async { Response::content(vec![b'x'; 4 << 20]).with_max_age(60) };
    let device = device(|server| server.route("/long", Resource::new().get(body))).await;
    let (_gateway, at, _) = gateway(&all_to(&device)).await;
    let kept = get(at, "/long").await;
    assert_eq!(kept.body.len(), 4 << 20);
    let started =
        ["", "GET /long HTTP/1.1\r\nHost: x\r\n", "POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"];
    let mut slow = Vec::new();
    for text in started {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let mut reader = TcpStream::connect(at).await.unwrap();
    reader.write_all(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    // What fits into the buffers of the operating system has been written once there is no more for half a second.
    let (mut before, mut looks, mut room) = (0, 0, vec![0; 4 << 20]);
    while looks < 5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let there = reader.peek(&mut room).await.unwrap();
        looks = if there == before { looks + 1 } else { 0 };
        before = there;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    for mut stream in slow {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408 "), "{text}");
    }
    let mut read = Vec::new();
    let _ = reader.read_to_end(&mut read).await;
    assert!(read.len() < 4 << 20, "{}", read.len());
}
