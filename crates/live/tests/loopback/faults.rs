//! Bad days: addresses that change, servers that go in the middle, clocks that jump, peers that do not read.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use millpond_live::{Client, Code, Error, Observable, Preset, Request, Resource, Response, Server};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    sync::{Notify, mpsc, oneshot},
};

use crate::ANY;

/// A router between a client and a server that translates addresses, and may forget how.
struct Nat {
    address: SocketAddr,
    rebind: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl Nat {
    async fn to(server: SocketAddr) -> Self {
        let inside = UdpSocket::bind(ANY).await.unwrap();
        let mut outside = UdpSocket::bind(ANY).await.unwrap();
        let address = inside.local_addr().unwrap();
        let (rebind, mut rebinds) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        tokio::spawn(async move {
            let (mut up, mut down) = ([0; 2_000], [0; 2_000]);
            let mut client = None;
            loop {
                tokio::select! {
                    Ok((length, from)) = inside.recv_from(&mut up) => {
                        client = Some(from);
                        let _ = outside.send_to(&up[..length], server).await;
                    }
                    Ok((length, _)) = outside.recv_from(&mut down) => {
                        let _ = inside.send_to(&down[..length], client.unwrap()).await;
                    }
                    Some(done) = rebinds.recv() => {
                        outside = UdpSocket::bind(ANY).await.unwrap();
                        done.send(()).unwrap();
                    }
                    else => return,
                }
            }
        });
        Self { address, rebind }
    }

    /// From now on the server sees another address, and nothing that it sends to the one before arrives.
    async fn rebind(&self) {
        let (done, is_done) = oneshot::channel();
        self.rebind.send(done).unwrap();
        is_done.await.unwrap();
    }

    fn uri(&self) -> String {
        format!("coap://{}/", self.address)
    }
}

#[tokio::test]
async fn a_client_whose_address_changes_in_the_middle_of_an_exchange_gets_its_answer_by_asking_again() {
    let (started, open, times) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    let handler = (Arc::clone(&started), Arc::clone(&open), Arc::clone(&times));
    let resource = Resource::new().get(move || {
        let (started, open, times) = handler.clone();
        async move {
            if times.fetch_add(1, Ordering::Relaxed) == 0 {
                started.notify_one();
                open.notified().await;
            }
            Response::content("still here")
        }
    });
    let builder = Server::builder().bind(ANY).ack_delay(Duration::from_secs(60));
    let server = builder.route("/", resource).start().await.unwrap();
    let nat = Nat::to(server.local_addr()).await;
    let client = Client::new().await.unwrap();
    let request = tokio::spawn(client.get(nat.uri()).send());
    started.notified().await;
    nat.rebind().await;
    open.notify_one();
    tokio::time::pause();
    let response = request.await.unwrap().unwrap();
    assert_eq!(response.text(), Ok("still here"));
    assert!(response.exchange().unwrap().copies >= 2);
}

#[tokio::test]
async fn a_client_whose_address_changes_in_the_middle_of_a_body_goes_on_with_it() {
    let resource = Resource::new()
        .get(|| async { Response::content(vec![b'x'; 20_000]).with_etag("same") })
        .put(|request: Request| async move { Response::changed().with_payload(request.payload().len().to_string()) });
    let server = Server::builder().bind(ANY).route("/", resource).start().await.unwrap();
    for is_put in [false, true] {
        let nat = Nat::to(server.local_addr()).await;
        let client = Client::builder().controller(Preset::FASOR).build().await.unwrap();
        let request = if is_put { client.put(nat.uri()).payload(vec![b'y'; 20_000]) } else { client.get(nat.uri()) };
        let before = server.stats().await.received;
        let request = tokio::spawn(request.block_size(16).send());
        while server.stats().await.received < before + 100 {
            tokio::task::yield_now().await;
        }
        nat.rebind().await;
        let response = request.await.unwrap().unwrap();
        if is_put {
            // To the server it is somebody else who goes on with a body that was never begun (RFC 7959 §2.9.2): the client
            // begins anew, or is told so.
            let is_told = response.code() == Code::REQUEST_ENTITY_INCOMPLETE;
            assert!(is_told || response.text() == Ok("20000"), "{response:?}");
        } else {
            assert_eq!(response.payload().len(), 20_000);
        }
    }
}

#[tokio::test]
async fn an_observer_whose_address_changes_registers_again_and_its_old_self_is_forgotten() {
    let changed = Observable::confirmable();
    let state = Arc::new(AtomicU32::new(0));
    let told = Arc::clone(&state);
    let resource = Resource::new().observable(&changed).get(move || {
        let text = told.load(Ordering::Relaxed).to_string();
        async move { Response::content(text).with_max_age(1) }
    });
    let server = Server::builder().bind(ANY).route("/", resource).start().await.unwrap();
    let nat = Nat::to(server.local_addr()).await;
    let client = Client::new().await.unwrap();
    let mut observation = client.get(nat.uri()).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("0"));
    nat.rebind().await;
    state.store(1, Ordering::Relaxed);
    changed.notify();
    tokio::time::pause();
    while observation.next().await.unwrap().unwrap().text() != Ok("1") {}
    // What goes to the old address is not acknowledged: that observer ends when its notification is given up.
    while server.stats().await.observers > 1 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A response is matched by the address that was asked (RFC 7252 §5.3.2), whatever its token.
#[tokio::test]
async fn an_answer_from_another_address_is_none() {
    let (asked, other) = (UdpSocket::bind(ANY).await.unwrap(), UdpSocket::bind(ANY).await.unwrap());
    let peer = asked.local_addr().unwrap();
    let client = Client::new().await.unwrap();
    let request = tokio::spawn(client.get(format!("coap://{peer}/")).max_retransmit(1).send());
    let mut bytes = [0; 100];
    let (length, from) = asked.recv_from(&mut bytes).await.unwrap();
    bytes[0] |= 0x20;
    bytes[1] = Code::CONTENT.to_byte();
    other.send_to(&bytes[..length], from).await.unwrap();
    while client.stats().await.unwrap().late == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let error = request.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::GaveUp { copies: 2, .. }), "{error}");
}

#[tokio::test]
async fn a_server_over_tcp_that_goes_in_the_middle_is_one_error_and_the_next_request_connects_anew() {
    let changed = Observable::new();
    let serve = || {
        let started = Arc::new(Notify::new());
        let starting = Arc::clone(&started);
        let slow = Resource::new().get(move || {
            starting.notify_one();
            std::future::pending::<Response>()
        });
        let fast = Resource::new().observable(&changed).get(|| async { Response::content("x") });
        (Server::builder().route("/slow", slow).route("/fast", fast), started)
    };
    let (builder, started) = serve();
    let first = builder.bind_tcp(ANY).start().await.unwrap();
    let address = first.local_addr();
    let client = Client::new().await.unwrap();
    let uri = |path: &str| format!("coap+tcp://{address}/{path}");
    let mut observation = client.get(uri("fast")).give_up_after(Duration::ZERO).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("x"));
    let request = tokio::spawn(client.get(uri("slow")).send());
    started.notified().await;
    drop(first);
    for error in [request.await.unwrap().unwrap_err(), observation.next().await.unwrap().unwrap_err()] {
        assert!(matches!(error, Error::ConnectionLost { peer, .. } if peer == address), "{error}");
    }
    assert!(observation.next().await.is_none());
    let error = client.get(uri("fast")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { peer, .. } if peer == address), "{error}");
    let _second = serve().0.bind_tcp(address).start().await.unwrap();
    assert_eq!(client.get(uri("fast")).await.unwrap().text(), Ok("x"));
}

/// A clock that jumps an hour: what was due is done once, and its wait begins anew.
#[tokio::test]
async fn a_clock_that_jumps_sends_no_burst() {
    let silent = UdpSocket::bind(ANY).await.unwrap();
    let peer = silent.local_addr().unwrap();
    tokio::time::pause();
    let client = Client::builder().nstart(8).controller(Preset::RFC7252).build().await.unwrap();
    let requests: Vec<_> = (0..8).map(|_| tokio::spawn(client.get(format!("coap://{peer}/")).send())).collect();
    let mut bytes = [0; 100];
    for _ in 0..8 {
        silent.recv_from(&mut bytes).await.unwrap();
    }
    tokio::time::advance(Duration::from_secs(3_600)).await;
    for _ in 0..8 {
        silent.recv_from(&mut bytes).await.unwrap();
    }
    // The second wait is four to six seconds: nothing more leaves before.
    assert!(tokio::time::timeout(Duration::from_millis(3_900), silent.recv_from(&mut bytes)).await.is_err());
    for request in requests {
        let error = request.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::GaveUp { copies: 5, .. }), "{error}");
    }
}

/// Who asks and does not read the answers is read no further; others are served.
#[tokio::test]
async fn a_peer_over_tcp_that_does_not_read_is_not_listened_to() {
    let resource = Resource::new().get(|| async { Response::content(vec![b'x'; 60_000]) });
    let server = Server::builder().bind_tcp(ANY).route("/", resource).start().await.unwrap();
    let mut greedy = TcpStream::connect(server.local_addr()).await.unwrap();
    // Settings that allow long messages, and then requests, each with a token of its own.
    greedy.write_all(b"\x40\xe1\x23\x0f\xff\xff").await.unwrap();
    let mut sent = 0_u32;
    let mut unsent = Vec::new();
    loop {
        let [_, a, b, c] = sent.to_be_bytes();
        unsent.extend_from_slice(&[0x03, 0x01, a, b, c]);
        sent += 1;
        if unsent.len() < 4_000 {
            continue;
        }
        // The kernel's buffers fill, in both directions.
        match tokio::time::timeout(Duration::from_millis(300), greedy.write_all(&unsent)).await {
            Ok(written) => written.unwrap(),
            Err(_) => break,
        }
        unsent.clear();
    }
    let taken = server.stats().await.requests;
    assert!(taken < u64::from(sent), "{taken} of {sent}");
    let client = Client::new().await.unwrap();
    let answer = client.get(format!("coap+tcp://{}/", server.local_addr())).await.unwrap();
    assert_eq!(answer.payload().len(), 60_000);
    // What it reads in the end is what it asked for.
    let mut bytes = vec![0; 1 << 20];
    assert!(greedy.read(&mut bytes).await.unwrap() > 0);
}
