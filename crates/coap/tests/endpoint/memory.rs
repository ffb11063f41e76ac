//! Memory: bounded whatever comes in, little for a client, and none asked for in the steady state.

use millpond_coap::message::{Code, Kind, Message};
use millpond_coap::{Config, Duplicates, Endpoint, Event, Outgoing, Output, Refused, RequestId};
use millpond_control::{Instant, PeerController, Wishes};

use crate::pair::{HELLO, SECOND, content, endpoint, get, steady};
use crate::session::{NAMINGS, Wishing};

/// Drains; what was sent, and the requests handed over.
fn drain<A: Copy + Eq + std::hash::Hash + std::fmt::Debug>(
    endpoint: &mut Endpoint<A>,
    now: u64,
) -> (usize, Vec<RequestId>) {
    let (mut sent, mut requests) = (0, Vec::new());
    loop {
        match endpoint.poll(Instant::from_micros(now)) {
            Output::Transmit(_) => sent += 1,
            Output::Event(Event::Request { id, .. }) => requests.push(id),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return (sent, requests),
        }
    }
}

/// A closed loop: the client asks, the server answers at once, and not a byte is lost.
struct Closed {
    client: Endpoint<u32>,
    server: Endpoint<u32>,
    now: u64,
    wire: Vec<u8>,
}

impl Closed {
    fn new(change: impl Fn(&mut Config)) -> Self {
        Self { client: endpoint(0, &change), server: endpoint(1, &change), now: 0, wire: Vec::new() }
    }

    /// The last datagram that an endpoint sends, and the request handed over.
    fn drain(endpoint: &mut Endpoint<u32>, now: Instant, wire: &mut Vec<u8>) -> Option<RequestId> {
        let mut asked = None;
        wire.clear();
        loop {
            match endpoint.poll(now) {
                Output::Transmit(transmit) => {
                    wire.clear();
                    wire.extend_from_slice(transmit.bytes);
                }
                Output::Event(Event::Request { id, .. }) => asked = Some(id),
                Output::Event(_) => {}
                Output::Sleep(..) | Output::Idle => return asked,
            }
        }
    }

    fn exchange(&mut self, request: &Outgoing<'_>, late: bool) {
        let Self { client, server, now, wire } = self;
        *now += 10_000;
        client.request(Instant::from_micros(*now), 1, request).unwrap();
        Self::drain(client, Instant::from_micros(*now), wire);
        server.receive(Instant::from_micros(*now), 0, wire);
        let asked = Self::drain(server, Instant::from_micros(*now), wire).unwrap();
        if late {
            *now += SECOND;
            Self::drain(server, Instant::from_micros(*now), wire);
            client.receive(Instant::from_micros(*now), 1, wire);
            Self::drain(client, Instant::from_micros(*now), wire);
        }
        server.respond(Instant::from_micros(*now), asked, &content(request.kind)).unwrap();
        Self::drain(server, Instant::from_micros(*now), wire);
        client.receive(Instant::from_micros(*now), 1, wire);
        Self::drain(client, Instant::from_micros(*now), wire);
        if !wire.is_empty() {
            server.receive(Instant::from_micros(*now), 0, wire);
            Self::drain(server, Instant::from_micros(*now), wire);
        }
    }
}

/// In debug builds each peer's controller is watched, which takes some bytes.
const WATCH: usize = if cfg!(debug_assertions) { 24 } else { 0 };

#[test]
fn an_idle_client_is_small() {
    let template = endpoint::<u32>(0, |config| config.token_length = 0);
    let mut clients: Vec<_> = (1..100).map(|node| template.sibling(node)).collect();
    for client in &mut clients {
        for now in 0..3 {
            client.request(Instant::from_micros(now), 1, &get()).unwrap();
            drain(client, now);
            // The response of study `anrw18`: 66 bytes.
            let reply = [&[0x60, 0x45, 0, now as u8, 0xc0, 0xff], &[b'.'; 60][..]].concat();
            client.receive(Instant::from_micros(now), 1, &reply);
            drain(client, now);
        }
        assert_eq!((client.counters().answered, client.peers()), (3, 1));
        assert!(client.memory() <= 792 + WATCH, "{} bytes", client.memory());
    }
}

/// What a client holds is what was allocated for it.
#[test]
fn memory_is_told_truly() {
    for (asks, late) in [(1, false), (100, false), (100, true), (3_000, false)] {
        let mut now = 0;
        let mut client = None;
        let info = allocation_counter::measure(|| {
            let mut made = endpoint::<u32>(0, |_| {});
            for count in 0..asks {
                now += 10_000;
                made.request(Instant::from_micros(now), count % 30, &get()).unwrap();
                let Output::Transmit(transmit) = made.poll(Instant::from_micros(now)) else { panic!("nothing left") };
                let mut reply = [0; 8];
                reply.copy_from_slice(&transmit.bytes[..8]);
                reply[0] |= if late { 0 } else { 0x20 };
                reply[1] = 0x45;
                while !matches!(made.poll(Instant::from_micros(now)), Output::Sleep(..)) {}
                made.receive(Instant::from_micros(now), count % 30, &reply);
                while !matches!(made.poll(Instant::from_micros(now)), Output::Sleep(..) | Output::Idle) {}
            }
            client = Some(made);
        });
        let told = client.as_ref().unwrap().memory() - size_of::<Endpoint<u32>>();
        let held = usize::try_from(info.bytes_current).unwrap();
        // The counts of shared ownership, and what hash tables align by.
        assert!(held.abs_diff(told) <= 64, "{told} bytes told, {held} held after {asks}");
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    type Change = fn(&mut Config);
    let small: Change = |config| config.limits.duplicate_bytes = 8_192;
    let afresh: Change = |config| config.duplicates = Duplicates::Afresh;
    for (change, request, late) in [
        (small, get(), false),
        (small, get(), true),
        (small, Outgoing::non_confirmable(Code::GET, HELLO), false),
        (afresh, get(), false),
    ] {
        let mut closed = Closed::new(change);
        for _ in 0..30_000 {
            closed.exchange(&request, late);
        }
        let info = allocation_counter::measure(|| {
            for _ in 0..2_000 {
                closed.exchange(&request, late);
            }
        });
        assert_eq!(closed.client.counters().answered, 32_000);
        assert_eq!(info.count_total, 0, "{} bytes, late: {late}", info.bytes_total);
    }
}

#[test]
fn retransmissions_allocate_nothing() {
    let mut client = endpoint::<u32>(0, |_| {});
    let mut now = 0;
    let mut give_up = |rounds| {
        for _ in 0..rounds {
            client.request(Instant::from_micros(now), 1, &get()).unwrap();
            while client.exchanges() > 0 {
                if let Output::Sleep(until, _) = client.poll(Instant::from_micros(now)) {
                    now = until.as_micros();
                }
            }
            drain(&mut client, now);
        }
    };
    give_up(10);
    assert_eq!(allocation_counter::measure(|| give_up(100)).count_total, 0);
}

/// Whatever distinguishes copies, nothing is asked for once there was one of each length; and what is held is told.
#[test]
fn copies_told_apart_allocate_nothing_in_the_steady_state() {
    for naming in NAMINGS {
        let mut memory = 0;
        let held = allocation_counter::measure(|| {
            let mut client = endpoint::<u32>(0, |config| config.transmission.max_retransmit = 20);
            let wishes = Wishes { naming, ..Wishes::NONE };
            let controller = PeerController::own(Wishing { inner: steady(), wishes });
            client.set_controller(Instant::ORIGIN, 1, controller).unwrap();
            drain(&mut client, 0);
            let mut now = 0;
            let mut give_up = |rounds| {
                for _ in 0..rounds {
                    client.request(Instant::from_micros(now), 1, &get()).unwrap();
                    while client.exchanges() > 0 {
                        if let Output::Sleep(until, _) = client.poll(Instant::from_micros(now)) {
                            now = until.as_micros();
                        }
                    }
                    drain(&mut client, now);
                }
            };
            give_up(10);
            assert_eq!(allocation_counter::measure(|| give_up(100)).count_total, 0, "{naming:?}");
            memory = client.memory() - size_of::<Endpoint<u32>>();
            std::mem::forget(client);
        });
        let held = usize::try_from(held.bytes_current).unwrap();
        // The count of shared ownership.
        assert!(held.abs_diff(memory) <= 32, "{naming:?}: {memory} bytes told, {held} held");
    }
}

/// A server whose clients ask to be echoed holds a little more for each request that its application has not answered.
#[test]
fn what_is_to_be_echoed_is_bounded_and_told() {
    let request = b"\x40\x01\x12\x34\xb5hello\xe1\xfc\xe4\x07\xd1\x13\x01\xd4\x13\0\0\0\0";
    let mut memory = 0;
    let held = allocation_counter::measure(|| {
        let mut server = small_server();
        flood(&mut server, request, |_, _, _| {});
        assert_eq!(server.requests(), 1_000);
        memory = server.memory() - size_of::<Endpoint<u32>>();
        std::mem::forget(server);
    });
    let held = usize::try_from(held.bytes_current).unwrap();
    assert!(held.abs_diff(memory) <= 64, "{memory} bytes told, {held} held");
}

const MILLION: u32 = 1_000_000;

fn small_server() -> Endpoint<u32> {
    endpoint(0, |config| {
        config.limits.peers = 1_000;
        config.limits.requests = 1_000;
        config.limits.duplicate_bytes = 64 << 10;
        config.limits.bytes = 1 << 20;
    })
}

/// A request from a million sources that do not exist.
fn flood(server: &mut Endpoint<u32>, request: &[u8], mut answer: impl FnMut(&mut Endpoint<u32>, Instant, RequestId)) {
    let mut most = 0;
    for from in 0..MILLION {
        let now = u64::from(from);
        server.receive(Instant::from_micros(now), from, request);
        for id in drain(server, now).1 {
            answer(server, Instant::from_micros(now), id);
            drain(server, now);
        }
        if from % 1_000 == 0 {
            most = most.max(server.memory());
        }
    }
    assert!(most <= 1 << 20, "{most} bytes held");
}

#[test]
fn a_flood_of_requests_leaves_no_peers_and_bounded_memory() {
    let mut server = small_server();
    flood(&mut server, b"\x40\x01\x12\x34\xb5hello", |server, now, id| {
        server.respond(now, id, &content(Kind::Confirmable)).unwrap();
    });
    assert_eq!((server.peers(), server.requests()), (0, 0));
    assert_eq!(server.counters().sent.acknowledgement, u64::from(MILLION));
}

#[test]
fn a_flood_that_the_application_does_not_answer() {
    let mut server = small_server();
    flood(&mut server, b"\x40\x01\x12\x34\xb5hello", |_, _, _| {});
    assert_eq!(server.requests(), 1_000);
    assert_eq!(server.counters().ignored.no_room, u64::from(MILLION) - 1_000);
}

/// Half as many are known by their answers as may be peers; who comes beyond that is answered without becoming one.
#[test]
fn a_flood_of_non_confirmable_requests_is_answered_whoever_asks() {
    let mut server = small_server();
    flood(&mut server, b"\x50\x01\x12\x34\xb5hello", |server, now, id| {
        server.respond(now, id, &content(Kind::NonConfirmable)).unwrap();
    });
    assert_eq!((server.peers(), server.requests()), (500, 0));
    assert_eq!(server.counters().sent.non_confirmable, u64::from(MILLION));
    // None of them keeps the application from asking somebody.
    server.request(Instant::from_micros(u64::from(MILLION)), MILLION, &get()).unwrap();
}

#[test]
fn a_flood_of_rubbish() {
    for rubbish in [&b"\x40\x01\x12\x34\xff"[..], b"\x40\x00\x00\x00", b"\x60\x45\x00\x00", b"\x40\x45\x00\x00", b"?"] {
        let mut server = small_server();
        let before = server.memory();
        flood(&mut server, rubbish, |_, _, _| panic!("a request"));
        assert!(server.memory() <= before + 1_024, "{} bytes", server.memory());
    }
}

/// EXCHANGE_LIFETIME of the steady timer.
const LIFETIME: u64 = 239 * SECOND + SECOND / 2;

/// Asks a peer and gets the answer.
fn contact(client: &mut Endpoint<u32>, now: u64, to: u32) -> Result<(), Refused> {
    let at = Instant::from_micros(now);
    client.request(at, to, &get())?;
    let Output::Transmit(transmit) = client.poll(at) else { panic!("nothing left") };
    let message = Message::parse(transmit.bytes).unwrap();
    let reset = [&[0x70, 0], &message.id.0.to_be_bytes()[..]].concat();
    drain(client, now);
    client.receive(at, to, &reset);
    drain(client, now);
    Ok(())
}

#[test]
fn the_peer_idle_for_longest_is_forgotten_but_not_before_its_ids_may_come_again() {
    let mut client = endpoint(0, |config| config.limits.peers = 3);
    for (now, to) in [(0, 1), (1, 2), (2, 3), (3, 1)] {
        contact(&mut client, now, to).unwrap();
    }
    // Peer 1 was used again, so 2 is the oldest.
    let until = Some(Instant::from_micros(1 + LIFETIME));
    assert_eq!(contact(&mut client, 4, 4), Err(Refused::TooManyPeers { limit: 3, until }));
    contact(&mut client, 1 + LIFETIME, 4).unwrap();
    assert_eq!([1, 2, 3, 4].map(|peer| client.view(peer).is_some()), [true, false, true, true]);
    contact(&mut client, 3 + LIFETIME, 5).unwrap();
    contact(&mut client, 3 + LIFETIME, 6).unwrap();
    assert_eq!([1, 3, 4, 5, 6].map(|peer| client.view(peer).is_some()), [false, false, true, true, true]);
    assert_eq!((client.peers(), client.counters().forgotten_peers), (3, 3));
}

#[test]
fn a_busy_peer_is_never_forgotten() {
    let mut client = endpoint::<u32>(0, |config| {
        config.limits.peers = 2;
        config.transmission.max_retransmit = 0;
    });
    for to in [1, 2] {
        client
            .request(Instant::ORIGIN, to, &Outgoing::non_confirmable(Code::GET, HELLO).with_payload(&[0; 900]))
            .unwrap();
        drain(&mut client, 0);
    }
    // Both are silent, and PROBING_RATE keeps their exchanges open far beyond the lifetime of 202 s.
    let now = Instant::from_micros(800 * SECOND);
    assert_eq!(client.request(now, 3, &get()), Err(Refused::TooManyPeers { limit: 2, until: None }));
    drain(&mut client, 1_000 * SECOND);
    client.request(Instant::from_micros(1_000 * SECOND), 3, &get()).unwrap();
}

/// What is remembered of a peer's message IDs goes with the peer.
#[test]
fn a_forgotten_peer_leaves_nothing() {
    let mut client = endpoint(0, |config| config.limits.peers = 1);
    let info = allocation_counter::measure(|| {
        for to in 0..4_u32 {
            let now = u64::from(to) * 2 * LIFETIME;
            for _ in 0..u16::MAX {
                contact(&mut client, now, to).unwrap();
            }
            assert!(client.memory() < 2_048 + WATCH, "{} bytes", client.memory());
        }
    });
    let told = client.memory() - size_of::<Endpoint<u32>>();
    assert!(usize::try_from(info.bytes_current).unwrap() <= told, "{info:?}, {told} told");
    assert_eq!(client.counters().forgotten_peers, 3);
}

#[test]
fn an_endpoint_can_go_to_another_thread() {
    fn check<T: Send + Sync>(_: &T) {}
    check(&endpoint::<u32>(0, |_| {}));
}

#[test]
fn many_peers_are_all_found_again() {
    let mut client = endpoint(0, |_| {});
    for round in 0..3 {
        for to in 0..5_000_u32 {
            contact(&mut client, round, to.wrapping_mul(0x9e37_79b9)).unwrap();
        }
    }
    assert_eq!((client.peers(), client.counters().failed.reset), (5_000, 15_000));
}

#[test]
fn what_does_not_fit_is_refused_and_fits_later() {
    let mut client = endpoint::<u32>(0, |config| {
        config.limits.bytes = 16 << 10;
        config.limits.duplicate_bytes = 4_096;
        config.limits.waiting_per_peer = 1_000;
    });
    let payload = [0; 1_000];
    let big = get().with_payload(&payload);
    let mut exchanges = Vec::new();
    let refused = loop {
        match client.request(Instant::ORIGIN, 1, &big) {
            Ok(id) => exchanges.push(id),
            Err(refused) => break refused,
        }
        drain(&mut client, 0);
        assert!(client.memory() <= 16 << 10);
    };
    assert_eq!(refused, Refused::OutOfBytes { limit: 16 << 10 });
    assert!((4..16).contains(&exchanges.len()), "{}", exchanges.len());
    assert_eq!(client.exchanges() as usize, exchanges.len());
    for id in exchanges.drain(..) {
        assert!(client.cancel(Instant::ORIGIN, id));
        drain(&mut client, 0);
    }
    // Buffers are used again.
    client.request(Instant::ORIGIN, 1, &big).unwrap();
}

/// Many exchanges with one peer are found by hash, few one by one: the same happens either way.
#[test]
fn a_thousand_exchanges_with_one_peer() {
    let mut client = endpoint::<u32>(0, |config| {
        config.transmission.nstart = 1_000;
        config.limits.exchanges_per_peer = 1_000;
    });
    let mut sent = Vec::new();
    for round in 0..1_000_u64 {
        let now = Instant::from_micros(round);
        let id = client.request(now, 1, &get()).unwrap();
        let Output::Transmit(transmit) = client.poll(now) else { panic!("nothing left") };
        sent.push((id, transmit.bytes[..8].to_vec()));
        drain(&mut client, round);
    }
    // Every third is acknowledged first, and answered separately; all in an order that is no order.
    for step in 0..1_000 {
        let index = step * 617 % 1_000;
        let (id, head) = &sent[index];
        let now = Instant::from_micros(10_000);
        let mut reply = head.clone();
        reply[1] = 0x45;
        if index % 3 == 0 {
            client.receive(now, 1, &[0x60, 0, head[2], head[3]]);
            drain(&mut client, 10_000);
            reply[0] = 0x54;
            reply[2..4].copy_from_slice(&(step as u16).to_be_bytes());
        } else {
            reply[0] = 0x64;
        }
        client.receive(now, 1, &reply);
        let Output::Event(Event::Response { exchange, .. }) = client.poll(now) else { panic!("no response") };
        assert_eq!(exchange, *id);
        drain(&mut client, 10_000);
    }
    assert_eq!((client.exchanges(), client.counters().answered), (0, 1_000));
}
