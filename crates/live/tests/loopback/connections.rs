//! What connections can do to a server.

use std::{sync::Arc, time::Duration};

use millpond_live::{Client, Code, Observable, Resource, Response, Server};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
};

use crate::ANY;

fn uri(server: &Server, path: &str) -> String {
    format!("coap+tcp://{}/{path}", server.local_addr())
}

fn reading() -> Resource {
    Resource::new().get(|| async { Response::content("x") })
}

/// Everything until the server closes.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

#[tokio::test]
async fn silent_connections_give_way_to_one_another_and_known_ones_stay() {
    let changed = Observable::new();
    let server = Server::builder().bind_tcp(ANY).most_connections(64);
    let server = server.route("/", reading().observable(&changed)).start().await.unwrap();
    let known = Client::new().await.unwrap();
    let mut observation = known.get(uri(&server, "")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        if number % 2 == 0 {
            // Its settings, and nothing more. The server may have closed it by then.
            let _ = stream.write_all(b"\0\xe1").await;
        }
        silent.push(stream);
    }
    let fresh = Client::new().await.unwrap();
    assert_eq!(fresh.get(uri(&server, "")).await.unwrap().text(), Ok("x"));
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("x"));
    let stats = server.stats().await;
    assert!(stats.connections <= 2 + 4 && stats.evicted >= 296, "{stats:?}");
    // Who gave way was told why. Where something stood unread the word may be lost.
    for stream in silent.iter_mut().take(296).skip(1).step_by(2) {
        let last = String::from_utf8_lossy(&rest(stream).await).into_owned();
        assert!(last.contains("too many connections"), "{last:?}");
    }
}

#[tokio::test]
async fn who_sends_no_settings_or_asks_for_nothing_is_closed() {
    let server = Server::builder().bind_tcp(ANY).route("/", reading()).start().await.unwrap();
    tokio::time::pause();
    for (said, seconds) in [(&b""[..], 10), (b"\0", 10), (b"\0\xe1", 60)] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(said).await.unwrap();
        let since = tokio::time::Instant::now();
        let last = rest(&mut stream).await;
        // An Abort (RFC 8323 §5.6) with the reason.
        assert!(last.contains(&0xe5), "{last:x?}");
        assert!(
            since.elapsed() >= Duration::from_secs(seconds - 1) && since.elapsed() <= Duration::from_secs(seconds + 1)
        );
    }
    assert_eq!(server.stats().await.connections, 0);
}

#[tokio::test]
async fn who_is_silent_for_long_is_closed_and_who_observes_is_asked_first() {
    let changed = Observable::new();
    let server = Server::builder().bind_tcp(ANY).route("/", reading().observable(&changed)).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let mut observation = client.get(uri(&server, "")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    let mut idle = TcpStream::connect(server.local_addr()).await.unwrap();
    idle.write_all(b"\0\xe1\x01\x01a").await.unwrap();
    let mut gone = TcpStream::connect(server.local_addr()).await.unwrap();
    // GET with Observe 0, and no answer to any ping.
    gone.write_all(b"\0\xe1\x11\x01b\x60").await.unwrap();
    while changed.observers() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::pause();
    assert!(rest(&mut idle).await.contains(&0xe5));
    let last = rest(&mut gone).await;
    assert!(last.contains(&0xe2) && last.contains(&0xe5), "a ping, and an abort: {last:x?}");
    while changed.observers() > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Our client has answered its ping.
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("x"));
}

#[tokio::test]
async fn what_connections_hold_is_told() {
    let large = Resource::new().get(|| async { Response::content(vec![b'.'; 900_000]) });
    let server = Server::builder().bind_tcp(ANY).route("/large", large).start().await.unwrap();
    let client = Client::new().await.unwrap();
    assert!(server.stats().await.memory < 100_000);
    assert_eq!(client.get(uri(&server, "large")).await.unwrap().payload().len(), 900_000);
    let stats = server.stats().await;
    // Kept for its later blocks.
    assert!((900_000..2_000_000).contains(&stats.memory), "{stats:?}");
    client.shutdown().await;
    while server.stats().await.connections > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(server.stats().await.memory < 100_000);
}

#[tokio::test]
async fn handlers_are_counted_over_all_connections() {
    let slow = Resource::new().get(std::future::pending::<Response>);
    let server = Server::builder().bind_tcp(ANY).most_running(2).route("/slow", slow).route("/", reading());
    let server = server.start().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..2 {
        let client = Client::new().await.unwrap();
        clients.push((tokio::spawn(client.get(uri(&server, "slow")).send()), client));
    }
    while server.stats().await.requests < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let other = Client::new().await.unwrap();
    assert_eq!(other.get(uri(&server, "slow")).await.unwrap().code(), Code::SERVICE_UNAVAILABLE);
    assert_eq!(other.get(uri(&server, "")).await.unwrap().text(), Ok("x"));
    assert_eq!(server.stats().await.overloaded, 1);
}

#[tokio::test]
async fn who_fetches_no_figures_holds_nobody_up() {
    let server = Server::builder().bind_tcp(ANY).metrics(ANY).start().await.unwrap();
    let at = server.metrics_addr().unwrap();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("millpond_connections 0"), "{text}");
    // Ten seconds is what each has. Those that gave way are closed by now.
    tokio::time::sleep(Duration::from_millis(1)).await;
    tokio::time::pause();
    let since = tokio::time::Instant::now();
    for (number, stream) in silent.iter_mut().enumerate() {
        assert!(rest(stream).await.is_empty());
        assert!(number >= 68 || since.elapsed() < Duration::from_secs(5), "{number}");
    }
}

/// A client made by hand that asks for a path of one letter.
async fn asks(server: &Server, path: u8) -> TcpStream {
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&[b"\0\xe1\x20\x01", &[0xb1, path][..]].concat()).await.unwrap();
    stream
}

#[tokio::test]
async fn who_heeds_no_release_is_left_once_it_has_answered_a_ping_and_is_owed_nothing() {
    let (asked, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let told = (Arc::clone(&asked), Arc::clone(&go));
    let slow = move || {
        let (asked, go) = told.clone();
        async move {
            asked.notify_one();
            go.notified().await;
            Response::content("slow")
        }
    };
    let builder = Server::builder().bind_tcp(ANY).route("/a", reading()).route("/s", Resource::new().get(slow));
    let server = builder.start().await.unwrap();
    let mut waits = asks(&server, b's').await;
    asked.notified().await;
    let mut idle = asks(&server, b'a').await;
    let mut came = Vec::new();
    while !came.ends_with(b"\xffx") {
        assert!(idle.read_buf(&mut came).await.unwrap() > 0);
    }
    let ending = tokio::spawn(server.shutdown());
    // Neither heeds the Release; both answer the Ping behind it.
    for stream in [&mut idle, &mut waits] {
        let mut came = Vec::new();
        let at = loop {
            assert!(stream.read_buf(&mut came).await.unwrap() > 0);
            let is_ping = |at: &usize| came.get(at + 1) == Some(&0xe2) && came.len() >= at + 2 + usize::from(came[*at]);
            let release = came.windows(2).position(|two| two == [0, 0xe4]);
            if let Some(at) = release.map(|at| at + 2).filter(is_ping) {
                break at;
            }
        };
        let mut pong = came[at..at + 2 + usize::from(came[at])].to_vec();
        pong[1] = 0xe3;
        stream.write_all(&pong).await.unwrap();
    }
    assert_eq!(rest(&mut idle).await, b"", "nothing is owed to it");
    go.notify_one();
    let last = rest(&mut waits).await;
    assert!(last.ends_with(b"\xffslow"), "what was asked is answered: {last:x?}");
    ending.await.unwrap();
}
