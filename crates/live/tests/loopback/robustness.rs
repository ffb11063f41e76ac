use std::{net::SocketAddr, sync::Arc, time::Duration};

use millpond_live::{Client, Code, Error, Observable, Request, Resource, Response, Server};
use tokio::{net::UdpSocket, sync::Notify};

use crate::ANY;

#[tokio::test]
async fn a_dropped_request_is_cancelled() {
    let started = Arc::new(Notify::new());
    let starting = Arc::clone(&started);
    let resource = Resource::new().get(move || {
        starting.notify_one();
        std::future::pending::<Response>()
    });
    let builder = Server::builder().bind(ANY).ack_delay(Duration::from_millis(1));
    let server = builder.route("/never", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let request = tokio::spawn(client.get(format!("coap://{}/never", server.local_addr())).send());
    started.notified().await;
    assert_eq!(client.stats().await.unwrap().exchanges, 1);
    request.abort();
    while client.stats().await.unwrap().exchanges > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let error = client.get(format!("coap://{}/never", server.local_addr())).deadline(Duration::from_millis(30)).await;
    assert_eq!(error.unwrap_err(), Error::Deadline { after: Duration::from_millis(30) });
}

/// Passes datagrams on, between a client and a server that may come and go.
async fn relay(to: Arc<std::sync::Mutex<SocketAddr>>) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let front = UdpSocket::bind(ANY).await.unwrap();
    let back = UdpSocket::bind(ANY).await.unwrap();
    let address = front.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut there, mut here) = ([0; 2_000], [0; 2_000]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((length, from)) = front.recv_from(&mut there) => {
                    client = Some(from);
                    let to = *to.lock().unwrap();
                    let _ = back.send_to(&there[..length], to).await;
                }
                Ok((length, _)) = back.recv_from(&mut here) => {
                    if let Some(client) = client {
                        let _ = front.send_to(&here[..length], client).await;
                    }
                }
            }
        }
    });
    (address, task)
}

fn large() -> Resource {
    Resource::new()
        .get(|| async { Response::content(vec![b'x'; 60_000]).with_etag("same") })
        .put(|request: Request| async move { Response::changed().with_payload(request.payload().len().to_string()) })
}

#[tokio::test]
async fn a_server_that_restarts_in_the_middle_of_a_body_answers_it_nonetheless() {
    let first = Server::builder().bind(ANY).route("/large", large()).start().await.unwrap();
    let to = Arc::new(std::sync::Mutex::new(first.local_addr()));
    let (address, relay) = relay(Arc::clone(&to)).await;
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{address}/large");
    let put = tokio::spawn(client.put(&uri).payload(vec![b'y'; 60_000]).block_size(16).send());
    let get = tokio::spawn(client.get(&uri).block_size(16).send());
    while first.stats().await.received < 50 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let second = Server::builder().bind(ANY).route("/large", large()).start().await.unwrap();
    *to.lock().unwrap() = second.local_addr();
    drop(first);
    assert_eq!(get.await.unwrap().unwrap().payload().len(), 60_000);
    let put = put.await.unwrap().unwrap();
    // What the first server had got is lost: the client is told so (4.08) or begins anew.
    assert!(put.text() == Ok("60000") || put.code() == Code::REQUEST_ENTITY_INCOMPLETE, "{put:?}");
    relay.abort();
}

#[tokio::test]
async fn an_observer_that_a_restarted_server_does_not_know_registers_again() {
    let serve = |state: &'static str| {
        let changed = Observable::confirmable();
        // Fresh for a second; then the client asks again (RFC 7641 §3.3.1).
        let resource =
            Resource::new().observable(&changed).get(move || async move { Response::content(state).with_max_age(1) });
        Server::builder().bind(ANY).route("/n", resource).start()
    };
    let first = serve("first").await.unwrap();
    let to = Arc::new(std::sync::Mutex::new(first.local_addr()));
    let (address, relay) = relay(Arc::clone(&to)).await;
    let client = Client::new().await.unwrap();
    let mut observation = client.get(format!("coap://{address}/n")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("first"));
    let second = serve("second").await.unwrap();
    *to.lock().unwrap() = second.local_addr();
    drop(first);
    tokio::time::pause();
    while observation.next().await.unwrap().unwrap().text() != Ok("second") {}
    assert_eq!(second.stats().await.observers, 1);
    relay.abort();
}

#[tokio::test]
async fn a_client_that_changes_its_address_is_another_one() {
    let resource = Resource::new().get(|request: Request| async move { Response::content(request.peer().to_string()) });
    let server = Server::builder().bind(ANY).route("/who", resource).start().await.unwrap();
    let uri = format!("coap://{}/who", server.local_addr());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let client = Client::new().await.unwrap();
        seen.insert(client.get(&uri).await.unwrap().text().unwrap().to_string());
    }
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn a_flood_from_forged_addresses_does_not_outgrow_the_bounds() {
    let resource = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).route("/", resource).start().await.unwrap();
    let state_of = |socket: &std::net::UdpSocket| quinn_udp::UdpSocketState::new(socket.into()).unwrap();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let state = state_of(&socket);
    // Requests and responses, confirmable and not, each from an address of its own.
    let messages: [&[u8]; 4] =
        [b"\x41\x01\0\x01t", b"\x51\x01\0\x02t", b"\x41\x45\0\x03t\xffx", b"\x60\x45\0\x04\xffx"];
    for n in 0..40_000_u32 {
        let [_, high, middle, low] = n.to_be_bytes();
        let contents = messages[n as usize % 4];
        let src_ip = Some(std::net::IpAddr::from([127, 1 + high, middle, low]));
        let transmit =
            quinn_udp::Transmit { destination: server.local_addr(), ecn: None, contents, segment_size: None, src_ip };
        while state.try_send((&socket).into(), &transmit).is_err() {
            tokio::task::yield_now().await;
        }
        if n % 64 == 0 {
            tokio::time::sleep(Duration::from_micros(1)).await;
        }
    }
    let stats = server.stats().await;
    assert!(stats.requests > 1_000, "{stats:?}");
    // The endpoint's own bound, and nothing is kept above it for whom nothing is known.
    assert!(stats.memory < 64 << 20, "{} bytes", stats.memory);
    let client = Client::new().await.unwrap();
    assert_eq!(client.get(format!("coap://{}/", server.local_addr())).await.unwrap().text(), Ok("x"));
}

#[tokio::test]
async fn workers_share_a_port_and_their_figures_are_told_together() {
    let resource = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).workers(3).route("/", resource).start().await.unwrap();
    assert_eq!(server.local_addrs().len(), 1);
    for _ in 0..12 {
        let client = Client::new().await.unwrap();
        assert_eq!(client.get(format!("coap://{}/", server.local_addr())).await.unwrap().code(), Code::CONTENT);
    }
    let stats = server.stats().await;
    assert_eq!((stats.sockets, stats.requests), (3, 12));
}

#[tokio::test]
async fn a_ping_is_answered() {
    let server = Server::builder().bind(ANY).start().await.unwrap();
    let client = Client::new().await.unwrap();
    client.ping(server.local_addr()).await.unwrap();
    let free = std::net::UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    assert!(matches!(client.ping(free).await.unwrap_err(), Error::Unreachable { .. }));
    client.shutdown().await;
}

/// 65,536 message IDs are for one source port; then requests go on from another, without a stall.
#[tokio::test]
async fn message_ids_do_not_run_out() {
    let resource = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).route("/", resource).start().await.unwrap();
    let moved = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = Arc::clone(&moved);
    let client = Client::builder()
        .nstart(32)
        .trace(move |event| {
            if let millpond_live::Happened::MovedPort { .. } = event.what {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        })
        .build()
        .await
        .unwrap();
    let uri: millpond_live::Uri = format!("coap://{}/", server.local_addr()).parse().unwrap();
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let (client, uri) = (client.clone(), uri.clone());
            tokio::spawn(async move {
                for _ in 0..2_100 {
                    client.get(&uri).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let stats = client.stats().await.unwrap();
    assert_eq!((stats.answered, stats.sockets), (67_200, 2));
    assert_eq!(moved.load(std::sync::atomic::Ordering::Relaxed), 1);
    // What was learnt of the path has moved along.
    let peer = stats.peers.first().unwrap();
    assert!(
        stats.peers.len() == 1 && peer.smoothed.is_some_and(|smoothed| smoothed < Duration::from_secs(1)),
        "{peer:?}"
    );
}

/// A port has used its message IDs: the next request waits for what is outstanding, which an acknowledged one is not; and
/// where there may be no further port it is told so, instead of a wait of minutes.
#[tokio::test]
async fn who_asks_when_no_message_id_is_free_is_told_so() {
    let released = Arc::new(tokio::sync::Semaphore::new(0));
    let waiting = Arc::clone(&released);
    let slow = Resource::new().get(move || {
        let waiting = Arc::clone(&waiting);
        async move {
            let _ = waiting.acquire().await;
            Response::content("late")
        }
    });
    let quick = Resource::new().get(|| async { Response::content("x") });
    let builder = Server::builder().bind(ANY).route("/", quick).route("/slow", slow);
    let server = builder.start().await.unwrap();
    let client = Client::builder().nstart(32).most_sockets(1).build().await.unwrap();
    let uri: millpond_live::Uri = format!("coap://{}/", server.local_addr()).parse().unwrap();
    // All but what the port keeps for blocks of what is under way: 65,536 less 2,048.
    let tasks: Vec<_> = (0..31)
        .map(|_| {
            let (client, uri) = (client.clone(), uri.clone());
            tokio::spawn(async move {
                for _ in 0..2_048 {
                    client.get(&uri).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let late = {
        let (client, uri) = (client.clone(), format!("coap://{}/slow", server.local_addr()));
        tokio::spawn(async move { client.get(uri).await })
    };
    while client.stats().await.unwrap().exchanges == 0 {
        tokio::task::yield_now().await;
    }
    let peer = server.local_addr();
    assert_eq!(client.get(&uri).await.unwrap_err(), Error::NoMessageId { peer });
    released.add_permits(1);
    assert_eq!(late.await.unwrap().unwrap().text(), Ok("late"));
}
