//! A server that asks its peers in the sessions of DTLS that they have begun.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dimpl::{Config, Dtls, Output, PskResolver};
use millpond_live::{
    Bytes, Client, ClientSecurity, Code, Error, Interruption, Observable, Observed, PeerIdentity, PreSharedKey,
    PreSharedKeys, Request, Resource, Response, Server, ServerBuilder, ServerSecurity, Transport,
};
use tokio::{net::UdpSocket, sync::mpsc};

use crate::{ANY, authority::Authority};

/// Who has registered: its address, and who it has proved to be.
type Registered = (SocketAddr, Option<PeerIdentity>);

fn key(identity: &str) -> PreSharedKey {
    PreSharedKey::new(identity, format!("secret of {identity}")).unwrap()
}

fn named(identity: &str) -> PeerIdentity {
    PeerIdentity::PreSharedKey(Bytes::copy_from_slice(identity.as_bytes()))
}

fn keys() -> ServerSecurity {
    ServerSecurity::new().pre_shared_keys(PreSharedKeys::new(["a", "b"].map(key)).unwrap())
}

/// Takes registrations, and hands them on.
fn directory() -> (ServerBuilder, mpsc::UnboundedReceiver<Registered>) {
    let (registering, registered) = mpsc::unbounded_channel();
    let resource = Resource::new().post(move |request: Request| {
        registering.send((request.peer(), request.identity().cloned())).unwrap();
        async { Code::CREATED }
    });
    (Server::builder().security(keys()).route("/rd", resource), registered)
}

/// Serves whom it registers with.
fn device(security: ClientSecurity, changed: &Observable) -> ServerBuilder {
    let reading = Resource::new().get(|request: Request| async move {
        format!("21.5 over {} for {} as {:?}", request.transport(), request.peer(), request.identity().is_some())
    });
    let echo = Resource::new().post(|request: Request| async move { Response::content(request.payload().clone()) });
    let never = Resource::new().get(std::future::pending::<Response>);
    let state = Resource::new().get(|| async { "state" }).observable(changed);
    let builder = Server::builder().bind_dtls_client(ANY).client_security(security).route("/reading", reading);
    builder.route("/echo", echo).route("/never", never).route("/state", state)
}

fn keyed(identity: &str) -> ClientSecurity {
    ClientSecurity::new().pre_shared_key(key(identity))
}

fn only_client(server: &Server) -> Client {
    server.client(server.local_addr()).unwrap()
}

async fn register(device: &Server, at: SocketAddr) {
    let answer = only_client(device).post(format!("coaps://{at}/rd")).await.unwrap();
    assert_eq!(answer.code(), Code::CREATED);
}

fn on_loopback(server: &Server) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, server.local_addr().port()).into()
}

async fn until(mut is: impl AsyncFnMut() -> bool) {
    while !is().await {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_device_that_registers_is_asked_in_the_session_that_it_began() {
    let any: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    for here in [ANY, any] {
        let (server, mut registered) = directory();
        let server = server.bind_dtls(here).start().await.unwrap();
        let changed = Observable::new();
        let device = device(keyed("a"), &changed).bind_dtls_client(any).start().await.unwrap();
        // From either of its ports.
        for (_, port) in device.local_addrs() {
            let registering = device.client(*port).unwrap();
            registering.post(format!("coaps://{}/rd", on_loopback(&server))).await.unwrap();
            let (peer, identity) = registered.recv().await.unwrap();
            assert_eq!((peer.port(), &identity), (port.port(), &Some(named("a"))));
            let client = only_client(&server);
            let reading = client.get(format!("coaps://{peer}/reading")).identity(named("a")).await.unwrap();
            assert_eq!(reading.text().unwrap(), format!("21.5 over coaps for {} as false", on_loopback(&server)));
            // Bodies in blocks, both ways, with progress.
            let body: Vec<u8> = (0..20_000_u32).map(|place| (place / 7) as u8).collect();
            let told = Arc::new(AtomicUsize::new(0));
            let telling = Arc::clone(&told);
            let request = client.post(format!("coaps://{peer}/echo")).payload(body.clone());
            let request = request.progress(move |progress| telling.store(progress.sent, Ordering::Relaxed));
            assert_eq!(request.await.unwrap().payload(), &body);
            assert!(told.load(Ordering::Relaxed) > 10_000);
            client.ping(format!("coaps://{peer}").as_str()).await.unwrap();
            // A hundred at once: more than a stack is handed.
            let all: Vec<_> =
                (0..100).map(|_| tokio::spawn(client.get(format!("coaps://{peer}/reading")).send())).collect();
            for answer in all {
                assert_eq!(answer.await.unwrap().unwrap().code(), Code::CONTENT);
            }
            let mut observation = client.get(format!("coaps://{peer}/state")).observe().await.unwrap();
            assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
            changed.notify();
            assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
            drop(observation);
            until(async || changed.observers() == 0).await;
        }
        let stats = server.stats().await;
        assert_eq!((stats.sessions, stats.handshakes, stats.retransmissions, stats.peers.len()), (2, 0, 0, 2));
        assert!(stats.peers.iter().all(|peer| peer.round_trips > 100 && peer.rto.is_some()));
        // What a client counts is counted once.
        assert_eq!(only_client(&server).stats().await.unwrap().sent, stats.sent);
        until(async || server.stats().await.exchanges == 0).await;
    }
}

#[tokio::test]
async fn a_handler_asks_back_before_it_answers() {
    let client = Arc::new(std::sync::OnceLock::<Client>::new());
    let back = Resource::new().post(|request: Request| async move {
        let client = request.state::<Arc<std::sync::OnceLock<Client>>>().unwrap().get().unwrap().clone();
        let asked = client.get(format!("coaps://{}/reading", request.peer()));
        let asked = asked.identity(request.identity().unwrap().clone());
        asked.await.map_or(Code::INTERNAL_SERVER_ERROR, |reading| reading.code())
    });
    let server = Server::builder().bind_dtls(ANY).security(keys()).state(Arc::clone(&client)).route("/back", back);
    let server = server.start().await.unwrap();
    client.set(only_client(&server)).unwrap();
    let device = device(keyed("a"), &Observable::new()).start().await.unwrap();
    let answer = only_client(&device).post(format!("coaps://{}/back", server.local_addr())).await.unwrap();
    assert_eq!(answer.code(), Code::CONTENT);
}

#[tokio::test]
async fn certificates_prove_whom_a_server_asks() {
    let authority = Authority::new();
    let (server, mut registered) = directory();
    let security = authority.server(&["127.0.0.1"]).demand_client_certificates(authority.anchors());
    let server = server.security(security).bind_dtls(ANY).start().await.unwrap();
    let certificate = authority.issue(&["device.example"], |_| {}).keyed();
    let device = device(authority.client().certificate(certificate), &Observable::new()).start().await.unwrap();
    register(&device, server.local_addr()).await;
    let (peer, identity) = registered.recv().await.unwrap();
    // No certificate is asked for that has the name by which the device is asked.
    let reading = only_client(&server).get(format!("coaps://{peer}/reading")).identity(identity.unwrap());
    assert!(reading.await.unwrap().text().unwrap().ends_with("as true"), "the device knows the server's");
}

#[tokio::test]
async fn who_has_no_session_is_not_asked_and_that_is_told() {
    let (server, mut registered) = directory();
    let server = server.bind_dtls(ANY).bind(ANY).start().await.unwrap();
    let client = server.client(secure_port(&server)).unwrap();
    let stranger = UdpSocket::bind(ANY).await.unwrap();
    let to = stranger.local_addr().unwrap();
    let none = client.get(format!("coaps://{to}/")).await.unwrap_err();
    assert!(matches!(&none, Error::Insecure { reason, .. } if reason.contains("ask it once it has")), "{none}");
    let none = client.ping(format!("coaps://{to}").as_str()).await.unwrap_err();
    assert!(matches!(&none, Error::Insecure { .. }), "{none}");
    let clear = client.get(format!("coap://{to}/")).await.unwrap_err();
    assert!(matches!(&clear, Error::Refused { reason, .. } if reason.contains("ask by coaps")), "{clear}");
    let clear = client.ping(to).await.unwrap_err();
    assert!(matches!(&clear, Error::Refused { .. }), "{clear}");
    let group = client.discover("coap://224.0.1.187").send().await.unwrap().next().await.unwrap();
    assert!(matches!(group, Err(Error::Refused { .. })), "{group:?}");
    let unproved = server.client(server.local_addr()).unwrap().get(format!("coap://{to}/")).identity(named("a"));
    assert!(matches!(unproved.await, Err(Error::Refused { .. })), "nobody proves anything in the clear");
    assert!(stranger.try_recv_from(&mut [0; 100]).is_err(), "nothing was said");
    // Nobody begins a session with a port that begins them.
    let device = device(keyed("a"), &Observable::new()).start().await.unwrap();
    let other = Client::builder().security(keyed("b")).build().await.unwrap();
    let asked = other.get(format!("coaps://{}/reading", device.local_addr())).deadline(Duration::from_millis(300));
    assert!(asked.await.is_err());
    // A session is for its own identity.
    register(&device, secure_port(&server)).await;
    let (peer, _) = registered.recv().await.unwrap();
    let meant = client.get(format!("coaps://{peer}/reading")).identity(named("b")).await.unwrap_err();
    assert!(matches!(&meant, Error::Insecure { reason, .. } if reason.contains("not of the identity")), "{meant}");
}

fn secure_port(server: &Server) -> SocketAddr {
    server.local_addr_of(Transport::Dtls).unwrap()
}

#[tokio::test]
async fn a_device_is_told_why_it_has_no_session() {
    let (server, _registered) = directory();
    let server = server.bind_dtls(ANY).start().await.unwrap();
    let wrong = ClientSecurity::new().pre_shared_key(PreSharedKey::new("a", "wrong").unwrap());
    let device = device(wrong, &Observable::new()).start().await.unwrap();
    let client = only_client(&device);
    let all: Vec<_> =
        (0..70).map(|_| tokio::spawn(client.post(format!("coaps://{}/rd", server.local_addr())).send())).collect();
    for failed in all {
        let failed = failed.await.unwrap().unwrap_err();
        assert!(failed.to_string().contains("does not know this identity"), "{failed}");
    }
    let closed = std::net::UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    let closed = client.get(format!("coaps://{closed}/")).await.unwrap_err();
    assert!(cfg!(not(target_os = "linux")) || matches!(closed, Error::Unreachable { .. }), "{closed}");
    // Who waits for a handshake and goes leaves nothing, and what is held does not outlive its server.
    let silent = UdpSocket::bind(ANY).await.unwrap();
    let to = silent.local_addr().unwrap();
    assert!(client.get(format!("coaps://{to}/")).deadline(Duration::from_millis(50)).await.is_err());
    let held = tokio::spawn(client.get(format!("coaps://{to}/")).send());
    let pinging = client.clone();
    let pinged = tokio::spawn(async move { pinging.ping(format!("coaps://{to}").as_str()).await });
    until(async || device.stats().await.handshakes > 0).await;
    device.shutdown().await;
    assert!(matches!(held.await.unwrap(), Err(Error::Closed)));
    assert!(matches!(pinged.await.unwrap(), Err(Error::Closed)));
}

#[tokio::test]
async fn what_is_asked_in_a_session_ends_with_it() {
    let (server, mut registered) = directory();
    let server = server.bind_dtls(ANY).start().await.unwrap();
    let client = only_client(&server);
    let mut memory = Vec::new();
    for round in 0..60 {
        // It has no resources: requests are acknowledged and met with nothing.
        let device = Client::builder().security(keyed("a")).build().await.unwrap();
        device.post(format!("coaps://{}/rd", server.local_addr())).await.unwrap();
        let (peer, _) = registered.recv().await.unwrap();
        let asked: Vec<_> = (0..70).map(|_| tokio::spawn(client.get(format!("coaps://{peer}/never")).send())).collect();
        let observing = tokio::spawn(client.get(format!("coaps://{peer}/never")).observe());
        until(async || server.stats().await.exchanges > 0).await;
        device.shutdown().await;
        for asked in asked {
            let lost = asked.await.unwrap().unwrap_err();
            assert!(matches!(&lost, Error::ConnectionLost { peer: of, .. } if *of == peer), "{lost}");
            assert!(lost.to_string().contains("the peer closed the session"), "{lost}");
        }
        assert!(matches!(observing.await.unwrap(), Err(Error::ConnectionLost { .. })));
        let stats = server.stats().await;
        assert_eq!((stats.sessions, stats.exchanges), (0, 0));
        if round % 30 == 29 {
            memory.push(stats.memory);
        }
    }
    assert!(memory[1] < memory[0] + 10_000, "{memory:?}");
}

/// One end of a session of DTLS, which says what a test wants.
struct End {
    socket: Arc<UdpSocket>,
    to: SocketAddr,
    engine: Dtls,
    came: VecDeque<Vec<u8>>,
    stands: bool,
}

impl End {
    /// Begins a session by the key of this identity.
    async fn new(socket: &Arc<UdpSocket>, to: SocketAddr, identity: &str) -> Self {
        struct Key(Vec<u8>);
        impl PskResolver for Key {
            fn resolve(&self, _: &[u8]) -> Option<Vec<u8>> {
                Some(self.0.clone())
            }
        }
        let key = Arc::new(Key(format!("secret of {identity}").into_bytes()));
        let config = Config::builder().with_psk_client(identity.as_bytes().to_vec(), key).build().unwrap();
        let mut engine = Dtls::new_12_psk(Arc::new(config), std_now());
        engine.set_active(true);
        let mut end = Self { socket: Arc::clone(socket), to, engine, came: VecDeque::new(), stands: false };
        socket.writable().await.unwrap();
        end.engine.handle_timeout(std_now()).unwrap();
        end.drain();
        while !end.stands {
            end.hear().await;
        }
        end
    }

    fn drain(&mut self) {
        let mut room = vec![0; 2_048];
        loop {
            match self.engine.poll_output(&mut room) {
                Output::Packet(datagram) => drop(self.socket.try_send_to(datagram, self.to).unwrap()),
                Output::ApplicationData(message) => self.came.push_back(message.to_vec()),
                Output::Connected => self.stands = true,
                Output::Timeout(_) => return,
                _ => {}
            }
        }
    }

    async fn hear(&mut self) {
        let mut room = [0; 2_048];
        let (length, _) = self.socket.recv_from(&mut room).await.unwrap();
        // What is of another session cannot be read.
        let _ = self.engine.handle_packet(&room[..length]);
        self.drain();
    }

    fn say(&mut self, message: &[u8]) {
        self.engine.send_application_data(message).unwrap();
        self.drain();
    }

    /// The next message with this code.
    async fn next(&mut self, code: Code) -> Vec<u8> {
        loop {
            match self.came.pop_front() {
                Some(message) if message[1] == u8::from(code) => return message,
                Some(_) => {}
                None => self.hear().await,
            }
        }
    }

    /// Registers, and waits until that is answered: everything said before has been heard then.
    async fn register(&mut self, number: u8) {
        self.say(&[&[0x40, 2, 0, number, 0xb2], &b"rd"[..]].concat());
        self.next(Code::CREATED).await;
    }
}

fn std_now() -> std::time::Instant {
    tokio::time::Instant::now().into_std()
}

/// What answers this request: in an acknowledgement, on its own, and not at all.
fn replies(request: &[u8], payload: &str) -> [Vec<u8>; 3] {
    let token = &request[4..4 + usize::from(request[0] & 15)];
    let (length, number) = (token.len() as u8, &request[2..4]);
    let answer =
        |kind: u8, number: &[u8]| [&[kind | length, 0x45], number, token, b"\xff", payload.as_bytes()].concat();
    [answer(0x60, number), answer(0x50, &[0x77, 0x77]), [&[0x70, 0], number].concat()]
}

/// What answers the registration of an observer.
fn state(request: &[u8]) -> Vec<u8> {
    let [mut state, ..] = replies(request, "state");
    // Before the payload: Observe.
    let options = state.len() - "state".len() - 1;
    state.splice(options..options, [0x61, 1]);
    state
}

async fn ends() -> (Server, mpsc::UnboundedReceiver<Registered>, [Arc<UdpSocket>; 2]) {
    let (server, registered) = directory();
    let sockets = [UdpSocket::bind(ANY).await.unwrap(), UdpSocket::bind(ANY).await.unwrap()].map(Arc::new);
    (server.bind_dtls(ANY).start().await.unwrap(), registered, sockets)
}

#[tokio::test]
async fn nothing_from_outside_of_a_session_answers_what_was_asked_in_it() {
    let (server, _registered, [socket, other]) = ends().await;
    let (client, at) = (only_client(&server), server.local_addr());
    let mut device = End::new(&socket, at, "a").await;
    device.register(1).await;
    let asked = tokio::spawn(client.get(format!("coaps://{}/", socket.local_addr().unwrap())).send());
    let request = device.next(Code::GET).await;
    let before = server.stats().await.ignored;
    // In the clear, from the address of the device.
    for reply in replies(&request, "forged") {
        socket.send_to(&reply, at).await.unwrap();
    }
    until(async || server.stats().await.ignored >= before + 3).await;
    // By another device, in a session of its own, of the same identity and of another one.
    for (number, identity) in [(2, "a"), (3, "b")] {
        let mut another = End::new(&other, at, identity).await;
        for reply in replies(&request, "forged") {
            another.say(&reply);
        }
        another.register(number).await;
    }
    assert!(!asked.is_finished());
    let [answer, ..] = replies(&request, "its own");
    device.say(&answer);
    assert_eq!(asked.await.unwrap().unwrap().text(), Ok("its own"));
}

#[tokio::test]
async fn who_takes_the_place_of_a_session_is_not_asked_what_was_for_it() {
    let (server, mut registered, [socket, _]) = ends().await;
    let (client, at, peer) = (only_client(&server), server.local_addr(), socket.local_addr().unwrap());
    let mut device = End::new(&socket, at, "a").await;
    device.register(1).await;
    // More than a stack is handed, of which one is on its way, and an observation that has begun.
    let observing = tokio::spawn(client.get(format!("coaps://{peer}/observed")).observe());
    let state = state(&device.next(Code::GET).await);
    device.say(&state);
    let mut observation = observing.await.unwrap().unwrap();
    assert!(observation.next().await.unwrap().is_ok());
    let asked: Vec<_> = (0..100).map(|_| tokio::spawn(client.get(format!("coaps://{peer}/")).send())).collect();
    let request = device.next(Code::GET).await;
    let mut another = End::new(&socket, at, "b").await;
    for reply in replies(&request, "forged").into_iter().chain([state]) {
        another.say(&reply);
    }
    for asked in asked {
        let lost = asked.await.unwrap().unwrap_err();
        assert!(matches!(&lost, Error::ConnectionLost { reason, .. } if reason.contains("another session")), "{lost}");
    }
    let told = observation.event().await.unwrap().unwrap();
    assert!(matches!(told, Observed::Interrupted(Interruption::Lost { why: Error::ConnectionLost { .. }, .. })));
    another.register(2).await;
    while registered.recv().await.unwrap() != (peer, Some(named("b"))) {}
    assert!(another.came.iter().all(|message| message[1] != u8::from(Code::GET)), "{:?}", another.came);
    // Who knows whom it wants to ask says so.
    let meant = client.get(format!("coaps://{peer}/")).identity(named("a")).await;
    assert!(matches!(meant, Err(Error::Insecure { .. })));
    let asked = tokio::spawn(client.get(format!("coaps://{peer}/")).identity(named("b")).send());
    let [answer, ..] = replies(&another.next(Code::GET).await, "its own");
    another.say(&answer);
    assert_eq!(asked.await.unwrap().unwrap().text(), Ok("its own"));
    assert_eq!(server.stats().await.exchanges, 0);
}

#[tokio::test]
async fn a_device_is_observed_again_in_the_next_session_of_its_identity_and_of_no_other() {
    let (server, _registered, [socket, _]) = ends().await;
    let (client, at, peer) = (only_client(&server), server.local_addr(), socket.local_addr().unwrap());
    let mut device = End::new(&socket, at, "a").await;
    device.register(1).await;
    // Nobody says whom it is for: who is there now.
    let observing = tokio::spawn(client.get(format!("coaps://{peer}/observed")).observe());
    let registration = device.next(Code::GET).await;
    device.say(&state(&registration));
    let mut observation = observing.await.unwrap().unwrap();
    assert!(observation.next().await.unwrap().is_ok());
    let mut gap = async || match observation.event().await.unwrap().unwrap() {
        Observed::Interrupted(Interruption::Lost { why, .. }) => why.to_string(),
        told => panic!("{told:?}"),
    };
    let mut another = End::new(&socket, at, "b").await;
    assert!(gap().await.contains("another session"));
    assert!(gap().await.contains("not of the identity"));
    another.register(2).await;
    assert!(another.came.iter().all(|message| message[1] != u8::from(Code::GET)), "{:?}", another.came);
    let mut back = End::new(&socket, at, "a").await;
    let registration = back.next(Code::GET).await;
    back.say(&state(&registration));
    while !matches!(observation.event().await.unwrap().unwrap(), Observed::State(_)) {}
}
