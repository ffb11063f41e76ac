//! What senders can do whose addresses are forged: here each datagram comes from an address of its own.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_live::{AddressRule, Bytes, Client, Code, Request, Resource, Response, Server, number};
use tokio::{net::UdpSocket, sync::Semaphore};

use crate::ANY;

/// Sends datagrams from addresses that are not its own.
struct Forger {
    socket: std::net::UdpSocket,
    state: quinn_udp::UdpSocketState,
    to: SocketAddr,
}

impl Forger {
    fn of(server: &Server) -> Self {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let state = quinn_udp::UdpSocketState::new((&socket).into()).unwrap();
        Self { socket, state, to: server.local_addr() }
    }

    /// One datagram from the address of this number.
    fn send(&self, number: u32, contents: &[u8]) {
        let [_, high, middle, low] = number.to_be_bytes();
        let src_ip = Some(IpAddr::from([127, 1 + high, middle, low]));
        let transmit = quinn_udp::Transmit { destination: self.to, ecn: None, contents, segment_size: None, src_ip };
        while self.state.try_send((&self.socket).into(), &transmit).is_err() {
            std::thread::yield_now();
        }
    }
}

/// The server has taken in so many messages.
async fn taken_in(server: &Server, messages: u64) {
    while server.stats().await.received < messages {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The server has sent so many messages.
async fn answered(server: &Server, messages: u64) {
    while server.stats().await.sent < messages {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn uri(server: &Server, path: &str) -> String {
    format!("coap://{}/{path}", server.local_addr())
}

#[tokio::test]
async fn slow_handlers_asked_by_unvalidated_peers_leave_the_others_their_answers_and_their_places() {
    let (gate, started) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let waiting = (Arc::clone(&gate), Arc::clone(&started));
    let slow = Resource::new().get(move || {
        let (gate, started) = waiting.clone();
        async move {
            started.fetch_add(1, Ordering::Relaxed);
            gate.acquire().await.unwrap().forget();
            Response::content("at last")
        }
    });
    let fast = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).most_running(64).ack_delay(Duration::from_millis(5));
    let server = server.route("/slow", slow).route("/fast", fast).start().await.unwrap();
    let forger = Forger::of(&server);
    for number in 0..500 {
        forger.send(number << 8, b"\x50\x01\0\x01\xb4slow");
    }
    taken_in(&server, 500).await;
    assert_eq!(started.load(Ordering::Relaxed), 16, "a quarter of the places");
    let known = Client::new().await.unwrap();
    for _ in 0..200 {
        assert_eq!(known.get(uri(&server, "fast")).await.unwrap().text(), Ok("x"));
    }
    // A peer that proves its address finds a place.
    let slow = tokio::spawn(known.get(uri(&server, "slow")).send());
    while started.load(Ordering::Relaxed) < 17 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    gate.add_permits(17);
    assert_eq!(slow.await.unwrap().unwrap().text(), Ok("at last"));
    let stats = server.stats().await;
    assert_eq!((stats.overloaded, stats.unverified), (0, 485));
}

#[tokio::test]
async fn ports_of_one_machine_do_not_take_every_place() {
    let started = Arc::new(AtomicUsize::new(0));
    let starting = Arc::clone(&started);
    let slow = Resource::new().get(move || {
        starting.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Response>()
    });
    let fast = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).most_running(256).route("/slow", slow).route("/fast", fast);
    let server = server.start().await.unwrap();
    for _ in 0..70 {
        let socket = std::net::UdpSocket::bind(ANY).unwrap();
        for id in 0..62 {
            socket.send_to(&[&[0x50, 1, 0, id][..], b"\xb4slow"].concat(), server.local_addr()).unwrap();
        }
        tokio::task::yield_now().await;
    }
    let (socket, mut bytes) = (UdpSocket::bind(ANY).await.unwrap(), [0; 100]);
    socket.send_to(b"\x40\x01\x12\x34\xb4fast", server.local_addr()).await.unwrap();
    let length = socket.recv(&mut bytes).await.unwrap();
    assert_eq!(bytes.get(..length), Some(&b"\x60\x45\x12\x34\xffx"[..]));
    assert!(started.load(Ordering::Relaxed) <= 16, "{started:?}");
}

#[tokio::test]
async fn an_expensive_handler_is_asked_once_the_address_is_proved() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (said, asks) = (Arc::clone(&asked), Arc::clone(&asked));
    let said = Resource::new().get(move || {
        said.fetch_add(1, Ordering::Relaxed);
        async { Response::content("dear") }
    });
    let asks = Resource::new().get(move |request: Request| {
        let is_proved = request.is_address_proved();
        asks.fetch_add(usize::from(is_proved), Ordering::Relaxed);
        async move { if is_proved { Response::content("dear") } else { Response::prove_address() } }
    });
    let server = Server::builder()
        .bind(ANY)
        .verify_addresses(AddressRule::LargeAnswersEverywhere)
        .route("/said", said.after_proof())
        .route("/asks", asks)
        .start()
        .await
        .unwrap();
    let (stranger, mut bytes) = (UdpSocket::bind(ANY).await.unwrap(), [0; 100]);
    for datagram in [b"\x40\x01\x12\x34\xb4said", b"\x40\x01\x12\x35\xb4asks"] {
        stranger.send_to(datagram, server.local_addr()).await.unwrap();
        let length = stranger.recv(&mut bytes).await.unwrap();
        // 4.01 with an Echo of 12 bytes.
        assert_eq!((bytes[1], &bytes[4..6], length), (0x81, &b"\xdc\xef"[..], 18), "{bytes:x?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let client = Client::new().await.unwrap();
    for (path, count) in [("said", 1), ("asks", 2)] {
        assert_eq!(client.get(uri(&server, path)).await.unwrap().text(), Ok("dear"));
        assert_eq!(asked.load(Ordering::Relaxed), count);
    }
    assert_eq!(server.stats().await.unverified, 3, "two unvalidated peers, and the client once");
}

/// Counts those of its kind.
struct Body(Arc<(AtomicUsize, AtomicUsize)>, Vec<u8>);

impl Body {
    fn bytes(alive: &Arc<(AtomicUsize, AtomicUsize)>, length: usize) -> Bytes {
        let now = alive.0.fetch_add(1, Ordering::Relaxed) + 1;
        alive.1.fetch_max(now, Ordering::Relaxed);
        Bytes::from_owner(Self(Arc::clone(alive), vec![b'.'; length]))
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.1
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn of_the_large_bodies_that_a_burst_of_forged_requests_asks_for_a_quarter_of_the_room_is_held() {
    let alive = Arc::default();
    let making = Arc::clone(&alive);
    let large = Resource::new().get(move || {
        let body = Body::bytes(&making, 1 << 20);
        async move { Response::content(body) }
    });
    let server = Server::builder().bind(ANY).route("/large", large).start().await.unwrap();
    let forger = Forger::of(&server);
    for number in 0..64 {
        forger.send(number, b"\x50\x01\0\x01\xb5large");
    }
    taken_in(&server, 64).await;
    // A quarter of 64 MiB while they are hashed, and the one that does not fit.
    assert!(alive.1.load(Ordering::Relaxed) <= 17, "{}", alive.1.load(Ordering::Relaxed));
    assert!(server.stats().await.memory < 34 << 20);
}

/// What a body is hashed by is busy until every handler has answered: none leaves before others are made.
#[test]
fn large_bodies_that_many_handlers_make_at_once_are_bounded_and_beyond_is_5_03() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (alive, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
        let making = (Arc::clone(&alive), Arc::clone(&gate));
        let large = Resource::new().get(move || {
            let (alive, gate) = making.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                Response::content(Body::bytes(&alive, 1 << 20))
            }
        });
        let server = Server::builder().bind(ANY).verify_addresses(AddressRule::Never).route("/large", large);
        let server = server.start().await.unwrap();
        let forger = Forger::of(&server);
        for number in 0..100 {
            forger.send(number, b"\x50\x01\0\x01\xb5large");
        }
        taken_in(&server, 100).await;
        let (hashing, busy) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || busy.recv());
        gate.add_permits(100);
        // Three quarters of 64 MiB for one network, and the one that does not fit.
        answered(&server, 52).await;
        assert_eq!((alive.1.load(Ordering::Relaxed), server.stats().await.overloaded), (49, 52));
        drop(hashing);
        answered(&server, 100).await;
        // All are alike, and one is kept for later blocks.
        assert_eq!((alive.0.load(Ordering::Relaxed), server.stats().await.overloaded), (1, 52));
    });
}

/// Each answer to a non-confirmable request wants a place for its peer. When there is none left, others go on.
#[tokio::test]
async fn unvalidated_peers_that_ask_non_confirmably_make_nobody_deaf() {
    let resource = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).route("/", resource).start().await.unwrap();
    let known = Client::new().await.unwrap();
    known.get(uri(&server, "")).await.unwrap();
    let forger = Forger::of(&server);
    for number in 0..36_000 {
        forger.send(number, b"\x51\x01\0\x01t");
        if number % 64 == 63 {
            taken_in(&server, u64::from(number) + 2).await;
        }
    }
    taken_in(&server, 36_001).await;
    let fresh = Client::new().await.unwrap();
    for client in [&known, &fresh] {
        let answer = client.get(uri(&server, "")).await.unwrap();
        assert_eq!((answer.text(), answer.exchange().unwrap().copies), (Ok("x"), 1));
    }
    let stats = server.stats().await;
    assert_eq!(stats.ignored, 0);
    // The unvalidated peers got their answers, too.
    assert!(stats.sent >= 36_000, "{stats:?}");
}

/// Blocks of 16 bytes are small enough for unvalidated peers, and all of what they are of is kept.
#[tokio::test]
async fn what_a_client_is_reading_is_kept_whatever_unvalidated_peers_ask_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let resource = Resource::new().get(move || {
        let count = counted.fetch_add(1, Ordering::Relaxed);
        async move { Response::content(count.to_be_bytes().repeat(8_192)) }
    });
    let server = crate::safety::proving(resource).await;
    let (client, mut bytes) = (UdpSocket::bind(ANY).await.unwrap(), [0; 2_000]);
    let mut exchange = async |id: u8, rest: &[u8]| {
        client.send_to(&[&[0x40, 1, 0, id][..], b"\xb5large", rest].concat(), server.local_addr()).await.unwrap();
        let length = client.recv(&mut bytes).await.unwrap();
        bytes[..length].to_vec()
    };
    let told = exchange(0, b"").await;
    let told = millpond_coap::message::Message::parse(&told).unwrap();
    assert_eq!((told.code, told.payload().len()), (Code::CONTENT, 64));
    let echo = [b"\xdc\xe4", told.option(number::ECHO).unwrap()].concat();
    let begins = exchange(1, &echo).await;
    assert_eq!((begins[1], begins.len() > 1_024), (Code::CONTENT.to_byte(), true));
    let forger = Forger::of(&server);
    for number in 0..512 {
        // A network for each, Block2 with blocks of 16 bytes.
        forger.send(number << 8, b"\x50\x01\0\x01\xb5large\xc1\0");
        if number % 64 == 63 {
            taken_in(&server, u64::from(number) + 3).await;
        }
    }
    let before = asked.load(Ordering::Relaxed);
    assert!(before > 512, "the unvalidated peers were answered: {before}");
    assert_eq!(exchange(2, b"\xc1\x16").await[1], Code::CONTENT.to_byte());
    assert_eq!(asked.load(Ordering::Relaxed), before, "the next block is of what is kept");
}

#[tokio::test]
async fn what_a_client_that_cannot_prove_its_address_gets_beside_unvalidated_peers_is_4_01() {
    let slow = Resource::new().get(std::future::pending::<Response>);
    let server = Server::builder().bind(ANY).most_running(4).route("/slow", slow).start().await.unwrap();
    let (socket, mut bytes) = (UdpSocket::bind(ANY).await.unwrap(), [0; 100]);
    for id in 0..2 {
        socket.send_to(&[&[0x50, 1, 0, id][..], b"\xb4slow"].concat(), server.local_addr()).await.unwrap();
    }
    let length = socket.recv(&mut bytes).await.unwrap();
    assert_eq!(bytes[1], Code::UNAUTHORIZED.to_byte());
    assert!(length <= 3 * 9 && number::ECHO == 252);
}

/// Each is sent a separate response, so each has figures; their addresses were never proved to be theirs.
#[tokio::test]
async fn forged_addresses_make_no_series_of_metrics() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let slow = Resource::new().get(|| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Response::content("at last")
    });
    let server = Server::builder().bind(ANY).metrics(ANY).ack_delay(Duration::from_millis(1));
    let server = server.route("/slow", slow).start().await.unwrap();
    let forger = Forger::of(&server);
    for number in 0..200 {
        forger.send(number << 8, b"\x40\x01\0\x01\xb4slow");
    }
    let client = Client::new().await.unwrap();
    assert_eq!(client.get(uri(&server, "slow")).await.unwrap().text(), Ok("at last"));
    while server.stats().await.peers.len() < 101 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    while !server.stats().await.peers.iter().any(|peer| peer.is_validated) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut stream = tokio::net::TcpStream::connect(server.metrics_addr().unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let is_of_a_peer = |line: &&str| line.starts_with("millpond_peer_retransmissions_total{");
    assert_eq!(text.lines().filter(is_of_a_peer).count(), 1, "the client that acknowledged: {text}");
}
