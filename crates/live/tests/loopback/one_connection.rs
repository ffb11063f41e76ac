//! A server that asks its peers in the connections that they have begun, and devices that are asked in these.

use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_live::{
    Client, ClientSecurity, Code, Error, NotSent, Observable, PeerIdentity, Request, Resource, Response, Server,
    ServerBuilder, ServerSecurity, Transport,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
};

use crate::{ANY, authority::Authority};

/// Who has registered: its address, and who it has proved to be.
type Registered = (SocketAddr, Option<PeerIdentity>);

/// Takes registrations, and hands them on.
fn directory() -> (ServerBuilder, mpsc::UnboundedReceiver<Registered>) {
    let (registering, registered) = mpsc::unbounded_channel();
    let resource = Resource::new().post(move |request: Request| {
        registering.send((request.peer(), request.identity().cloned())).unwrap();
        async { Code::CREATED }
    });
    (Server::builder().route("/rd", resource), registered)
}

/// Serves whom it registers with.
fn device(changed: &Observable) -> ServerBuilder {
    let reading = Resource::new().get(|request: Request| async move {
        format!("21.5 over {} for {} as {:?}", request.transport(), request.peer(), request.identity().is_some())
    });
    let echo = Resource::new().post(|request: Request| async move { Response::content(request.payload().clone()) });
    let image = Resource::new()
        .put(|request: Request| async move {
            let mut body = request.body();
            while let Some(chunk) = body.chunk().await? {
                assert!(chunk.iter().all(|byte| *byte == 7));
            }
            Ok::<_, millpond_live::HandlerError>(Response::new(Code::CHANGED).with_payload(body.received().to_string()))
        })
        .get(|| async { Response::stream(tokio::io::repeat(7).take(300_000)) })
        .streaming();
    let never = Resource::new().get(std::future::pending::<Response>);
    let state = Resource::new().get(|| async { "state" }).observable(changed);
    let builder = Server::builder().route("/reading", reading).route("/echo", echo).route("/image", image);
    builder.route("/never", never).route("/state", state)
}

fn only_client(server: &Server) -> Client {
    server.client(server.local_addr()).unwrap()
}

async fn until(mut is: impl AsyncFnMut() -> bool) {
    while !is().await {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A server with certificates, and a device that has one, too.
fn secured() -> (ServerSecurity, ClientSecurity) {
    let authority = Authority::new();
    let server = authority.server(&["127.0.0.1"]).demand_client_certificates(authority.anchors());
    let certificate = authority.issue(&["device.example"], |_| {}).keyed();
    (server, authority.client().certificate(certificate))
}

#[tokio::test]
async fn a_device_that_registers_is_asked_in_the_connection_that_it_began() {
    let (server_security, client_security) = secured();
    for transport in [Transport::Tcp, Transport::Tls] {
        let (server, mut registered) = directory();
        let changed = Observable::new();
        let device = device(&changed);
        let (server, device) = if transport == Transport::Tcp {
            (server.bind_tcp(ANY), device.bind_tcp_client(ANY))
        } else {
            let server = server.bind_tls(ANY).security(server_security.clone());
            (server, device.bind_tls_client(ANY).client_security(client_security.clone()))
        };
        let (server, device) = (server.start().await.unwrap(), device.start().await.unwrap());
        let at = server.local_addr();
        let registering = only_client(&device);
        assert_eq!(registering.post(format!("{transport}://{at}/rd")).await.unwrap().code(), Code::CREATED);
        let (peer, identity) = registered.recv().await.unwrap();
        assert_eq!(identity.is_some(), transport == Transport::Tls);
        let client = only_client(&server);
        let mut reading = client.get(format!("{transport}://{peer}/reading"));
        if let Some(identity) = identity {
            reading = reading.identity(identity);
        }
        let expected = format!("21.5 over {transport} for {at} as {}", transport == Transport::Tls);
        assert_eq!(reading.await.unwrap().text().unwrap(), expected);
        // Bodies in blocks, both ways, and bit by bit.
        let body: Vec<u8> = (0..200_000_u32).map(|place| (place / 7) as u8).collect();
        let answer = client.post(format!("{transport}://{peer}/echo")).payload(body.clone()).await.unwrap();
        assert!(answer.payload() == &body);
        let mut image = Vec::new();
        client.get(format!("{transport}://{peer}/image")).download(&mut image).await.unwrap();
        assert!(image == [7; 300_000]);
        let answer = client.put(format!("{transport}://{peer}/image")).upload(&mut &image[..]).await.unwrap();
        assert_eq!((answer.code(), answer.text()), (Code::CHANGED, Ok("300000")));
        client.ping(format!("{transport}://{peer}").as_str()).await.unwrap();
        // More than a stack is handed, and more than may be under way.
        let ask = || tokio::spawn(client.get(format!("{transport}://{peer}/reading")).send());
        for answer in (0..1_000).map(|_| ask()).collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap().unwrap().code(), Code::CONTENT);
        }
        let mut observation = client.get(format!("{transport}://{peer}/state")).observe().await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
        changed.notify();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
        drop(observation);
        until(async || changed.observers() == 0).await;
        // Both see one connection, through which the device asks again.
        registering.post(format!("{transport}://{at}/rd")).await.unwrap();
        assert_eq!(registered.recv().await.unwrap().0, peer);
        assert_eq!((server.stats().await.connections, device.stats().await.connections), (1, 1));
    }
}

#[tokio::test]
async fn a_handler_asks_back_before_it_answers() {
    let client = Arc::new(OnceLock::<Client>::new());
    let back = Resource::new().post(|request: Request| async move {
        let client = request.state::<Arc<OnceLock<Client>>>().unwrap().get().unwrap().clone();
        let asked = client.get(format!("coap+tcp://{}/reading", request.peer()));
        asked.await.map_or(Code::INTERNAL_SERVER_ERROR, |reading| reading.code())
    });
    let server = Server::builder().bind_tcp(ANY).state(Arc::clone(&client)).route("/back", back);
    let server = server.start().await.unwrap();
    client.set(only_client(&server)).unwrap();
    let device = device(&Observable::new()).bind_tcp_client(ANY).start().await.unwrap();
    let answer = only_client(&device).post(format!("coap+tcp://{}/back", server.local_addr())).await.unwrap();
    assert_eq!(answer.code(), Code::CONTENT);
}

#[tokio::test]
async fn who_has_no_connection_is_not_asked_and_that_is_told() {
    let (server_security, client_security) = secured();
    let (server, mut registered) = directory();
    let server = server.bind_tcp(ANY).bind_tls(ANY).security(server_security).start().await.unwrap();
    let [(_, plain), (_, secure)] = *server.local_addrs() else { panic!("two ports") };
    let stranger = TcpListener::bind(ANY).await.unwrap();
    let to = stranger.local_addr().unwrap();
    let client = server.client(plain).unwrap();
    let none = client.get(format!("coap+tcp://{to}/")).await.unwrap_err();
    assert!(matches!(&none, Error::Refused { reason, .. } if reason.contains("ask it once it has")), "{none}");
    let none = client.ping(format!("coap+tcp://{to}").as_str()).await.unwrap_err();
    assert!(matches!(&none, Error::Refused { .. }), "{none}");
    let clear = client.get(format!("coap://{to}/")).await.unwrap_err();
    assert!(matches!(&clear, Error::Refused { reason, .. } if reason.contains("ask by coap+tcp")), "{clear}");
    assert!(client.get(format!("coaps://{to}/")).await.is_err());
    assert!(client.discover("coap://224.0.1.187").send().await.is_err());
    let client = server.client(secure).unwrap();
    let none = client.get(format!("coaps+tcp://{to}/")).await.unwrap_err();
    assert!(matches!(&none, Error::Insecure { reason, .. } if reason.contains("ask it once it has")), "{none}");
    assert_eq!(client.stats().await.unwrap().sent, 0);
    assert!(server.client(to).is_err());
    // Nobody begins a connection with an address that begins them, and an address of this machine it must be.
    let device = device(&Observable::new()).bind_tcp_client(ANY).bind_tls_client(ANY).client_security(client_security);
    let device = device.start().await.unwrap();
    let registering = only_client(&device);
    let other = registering.get("coap+tcp://[::1]:1/").await.unwrap_err();
    assert!(
        matches!(&other, Error::Refused { why: NotSent::Destination, reason } if reason.contains("another family")),
        "{other}"
    );
    let elsewhere = Server::builder().bind_tcp_client("192.0.2.1:0").start().await;
    assert!(matches!(elsewhere, Err(Error::Bind { .. })));
    // A connection is for its own identity.
    registering.post(format!("coaps+tcp://{secure}/rd")).await.unwrap();
    let (peer, identity) = registered.recv().await.unwrap();
    let wrong = PeerIdentity::Certificate(vec![b"another".to_vec().into()]);
    let meant = client.get(format!("coaps+tcp://{peer}/reading")).identity(wrong).await.unwrap_err();
    assert!(matches!(&meant, Error::Insecure { reason, .. } if reason.contains("not of the identity")), "{meant}");
    let asked = client.get(format!("coaps+tcp://{peer}/reading")).identity(identity.unwrap()).await.unwrap();
    assert_eq!(asked.code(), Code::CONTENT);
    // Nor does anybody take the other port's connection for it.
    assert!(server.client(plain).unwrap().get(format!("coap+tcp://{peer}/reading")).await.is_err());
    assert!(tokio::time::timeout(Duration::from_millis(1), stranger.accept()).await.is_err(), "nobody was dialled");
}

#[tokio::test]
async fn a_client_that_serves_nothing_says_so() {
    let (server, mut registered) = directory();
    let server = server.bind_tcp(ANY).start().await.unwrap();
    let client = Client::new().await.unwrap();
    client.post(format!("coap+tcp://{}/rd", server.local_addr())).await.unwrap();
    let (peer, _) = registered.recv().await.unwrap();
    let answer = only_client(&server).get(format!("coap+tcp://{peer}/reading")).await.unwrap();
    assert_eq!(answer.code(), Code::NOT_IMPLEMENTED);
}

#[tokio::test]
async fn what_is_asked_in_a_connection_ends_with_it_and_with_its_server() {
    let (server, mut registered) = directory();
    let server = server.bind_tcp(ANY).start().await.unwrap();
    let client = only_client(&server);
    let begin = async || {
        let device = device(&Observable::new()).bind_tcp_client(ANY).start().await.unwrap();
        only_client(&device).post(format!("coap+tcp://{}/rd", server.local_addr())).await.unwrap();
        device
    };
    let ask = |peer| {
        let uri = format!("coap+tcp://{peer}/never");
        (0..300).map(|_| tokio::spawn(client.get(&uri).send())).collect::<Vec<_>>()
    };
    let gone = begin().await;
    let (peer, _) = registered.recv().await.unwrap();
    let asked = ask(peer);
    let before = server.stats().await.sent;
    until(async || server.stats().await.sent >= before.max(64)).await;
    drop(gone);
    for asked in asked {
        match asked.await.unwrap() {
            // While it ends it may still say so.
            Ok(answer) => assert_eq!(answer.code(), Code::SERVICE_UNAVAILABLE),
            Err(lost) => assert!(matches!(&lost, Error::ConnectionLost { peer: of, .. } if *of == peer), "{lost}"),
        }
    }
    until(async || server.stats().await.connections == 0).await;
    assert!(matches!(client.get(format!("coap+tcp://{peer}/")).await, Err(Error::Refused { .. })));
    // A device's client that is shut down ends its connections.
    let gone = begin().await;
    let (peer, _) = registered.recv().await.unwrap();
    assert_eq!(client.get(format!("coap+tcp://{peer}/reading")).await.unwrap().code(), Code::CONTENT);
    only_client(&gone).shutdown().await;
    until(async || server.stats().await.connections == 0).await;
    // A server that ends takes its clients' requests along.
    let kept = begin().await;
    let (peer, _) = registered.recv().await.unwrap();
    let asked = ask(peer);
    server.shutdown().await;
    for asked in asked {
        let lost = asked.await.unwrap().unwrap_err();
        assert!(matches!(&lost, Error::Closed), "{lost}");
    }
    assert!(matches!(client.get(format!("coap+tcp://{peer}/")).await, Err(Error::Closed)));
    drop(kept);
}

/// One end of a connection, which says what a test wants.
struct End {
    stream: TcpStream,
    came: Vec<u8>,
}

impl End {
    /// Begins a connection, takes messages of this length and no blocks, and registers.
    async fn new(from: SocketAddr, to: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(from).unwrap();
        let stream = socket.connect(to).await.unwrap();
        let mut end = Self { stream, came: Vec::new() };
        end.say(b"\0\xe1").await;
        end.register(9).await;
        end
    }

    async fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next message: its code and its token.
    async fn next(&mut self) -> (u8, Vec<u8>) {
        loop {
            if let Some(message) = self.take() {
                return message;
            }
            assert!(self.stream.read_buf(&mut self.came).await.unwrap() > 0, "it goes away");
        }
    }

    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let &first = self.came.first()?;
        let (length, extra) = match first >> 4 {
            13 => (usize::from(*self.came.get(1)?) + 13, 1),
            length @ 0..13 => (usize::from(length), 0),
            _ => panic!("longer than these tests have"),
        };
        let token = usize::from(first & 15);
        let end = 2 + extra + token + length;
        if self.came.len() < end {
            return None;
        }
        let message: Vec<u8> = self.came.drain(..end).collect();
        Some((message[1 + extra], message[2 + extra..2 + extra + token].to_vec()))
    }

    /// The token of the next request that is none of the settings.
    async fn asked(&mut self) -> Vec<u8> {
        loop {
            if let (1, token) = self.next().await {
                return token;
            }
        }
    }

    async fn register(&mut self, token: u8) {
        self.say(&[0x31, 2, token, 0xb2, b'r', b'd']).await;
        while self.next().await != (0x41, vec![token]) {}
    }
}

fn content(token: &[u8], payload: u8) -> Vec<u8> {
    [&[0x20 | token.len() as u8, 0x45], token, &[0xff, payload]].concat()
}

async fn server() -> (Server, mpsc::UnboundedReceiver<Registered>) {
    let (server, registered) = directory();
    (server.bind_tcp(ANY).start().await.unwrap(), registered)
}

#[tokio::test]
async fn only_the_answer_to_a_request_answers_it_and_once() {
    let (server, mut registered) = server().await;
    let client = only_client(&server);
    let mut device = End::new(ANY, server.local_addr()).await;
    let (peer, _) = registered.recv().await.unwrap();
    let asked = tokio::spawn(client.get(format!("coap+tcp://{peer}/r")).send());
    let token = device.asked().await;
    // By another connection, with other tokens, and a flood of what nobody asked for.
    let mut other = End::new(ANY, server.local_addr()).await;
    other.say(&content(&token, b'f')).await;
    other.register(1).await;
    let before = server.stats().await.memory;
    for number in 0..20_000_u16 {
        device.say(&content(&[&number.to_be_bytes()[..], b"wrong"].concat(), b'f')).await;
    }
    device.register(2).await;
    assert!(server.stats().await.memory < before + 1_000_000);
    assert!(!asked.is_finished());
    // Twice, and then anew: the second is nobody's.
    device.say(&[content(&token, b'1'), content(&token, b'2')].concat()).await;
    assert_eq!(asked.await.unwrap().unwrap().text(), Ok("1"));
    let asked = tokio::spawn(client.get(format!("coap+tcp://{peer}/r")).send());
    let token = device.asked().await;
    device.say(&content(&token, b'3')).await;
    assert_eq!(asked.await.unwrap().unwrap().text(), Ok("3"));
}

#[tokio::test]
async fn who_comes_next_at_an_address_is_not_asked_what_was_for_the_one_before() {
    let (server, mut registered) = server().await;
    let client = only_client(&server);
    // Ended in the middle of an answer, by a reset, so that the address is free at once.
    let mut device = End::new(ANY, server.local_addr()).await;
    let (peer, _) = registered.recv().await.unwrap();
    let asked: Vec<_> = (0..100).map(|_| tokio::spawn(client.get(format!("coap+tcp://{peer}/r")).send())).collect();
    let token = device.asked().await;
    device.say(&content(&token, b'0')[..3]).await;
    socket2::SockRef::from(&device.stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(device);
    for asked in asked {
        let lost = asked.await.unwrap().unwrap_err();
        assert!(matches!(&lost, Error::ConnectionLost { peer: of, .. } if *of == peer), "{lost}");
    }
    let mut another = End::new(peer, server.local_addr()).await;
    assert_eq!(registered.recv().await.unwrap().0, peer);
    let asked = tokio::spawn(client.get(format!("coap+tcp://{peer}/r")).send());
    let token = another.asked().await;
    another.say(&content(&token, b'1')).await;
    assert_eq!(asked.await.unwrap().unwrap().text(), Ok("1"));
    assert!(another.came.is_empty());
}

/// Peers that are asked and never answer, or never read, cost others nothing and hold little.
#[tokio::test]
async fn who_never_answers_or_reads_costs_others_nothing() {
    let (server, mut registered) = server().await;
    let client = only_client(&server);
    let known = device(&Observable::new()).bind_tcp_client(ANY).start().await.unwrap();
    only_client(&known).post(format!("coap+tcp://{}/rd", server.local_addr())).await.unwrap();
    let (known, _known) = (registered.recv().await.unwrap().0, known);
    let (mut silent, mut asked) = (Vec::new(), Vec::new());
    let before = server.stats().await.memory;
    let ended = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        silent.push(End::new(ANY, server.local_addr()).await);
        let (peer, _) = registered.recv().await.unwrap();
        for _ in 0..3_000 {
            let request = client.post(format!("coap+tcp://{peer}/echo")).payload(vec![0; 1_000]);
            let ended = Arc::clone(&ended);
            asked.push(tokio::spawn(async move {
                let lost = request.await.unwrap_err();
                ended.fetch_add(1, Ordering::Relaxed);
                lost
            }));
        }
    }
    for _ in 0..100 {
        let body = vec![1; 10_000];
        let answer = client.post(format!("coap+tcp://{known}/echo")).payload(body.clone()).await.unwrap();
        assert!(answer.payload() == &body);
    }
    let stats = server.stats().await;
    assert!(stats.memory < before + 8_000_000, "{} bytes", stats.memory - before);
    assert_eq!((ended.load(Ordering::Relaxed), stats.evicted), (0, 0));
    drop(silent);
    for asked in asked {
        assert!(matches!(asked.await.unwrap(), Error::ConnectionLost { .. }));
    }
}

/// What cannot be sent in blocks, because its peer knows none, is refused and not cut.
#[tokio::test]
async fn a_peer_is_sent_what_its_settings_allow() {
    let (server, mut registered) = server().await;
    let client = only_client(&server);
    let mut device = End::new(ANY, server.local_addr()).await;
    let (peer, _) = registered.recv().await.unwrap();
    let long = client.post(format!("coap+tcp://{peer}/echo")).payload(vec![0; 2_000]).await.unwrap_err();
    assert!(matches!(&long, Error::Refused { .. }), "{long}");
    assert!(device.take().is_none());
    device.register(1).await;
}
