//! Client and server of firmware over an invented network, in virtual time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    reason = "tests may fail loudly"
)]

mod observers;
mod protected;
mod server;
mod world;

use std::{cell::RefCell, time::Duration};

use millpond_coap::{
    Failure, Pauses,
    block::BlockSize,
    message::{Code, Message, Token},
};
use millpond_control::{Controller, Instant, Span};
use millpond_embedded::{Asked, Error, Node, Reply, Request, Setup};

use server::State;
use world::{DELAY, World, host};

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

fn node<'a>(world: &'a World, buffer: &'a mut [u8], setup: Setup) -> Node<'a, world::Socket<'a>, &'a World> {
    Node::new(world.socket(host(1)), host(1), world, setup, buffer).unwrap()
}

fn calm() -> Setup {
    Setup::calm(7, [3; 16])
}

/// Runs a client beside the server of millpond-coap.
fn with_server<T>(world: &World, state: &RefCell<State>, client: impl Future<Output = T>) -> T {
    world.run(client, vec![Box::pin(server::serve(world, world.socket(host(0)), state))])
}

#[test]
fn a_reading_is_reported_and_read_again() {
    let (world, state) = (World::default(), RefCell::default());
    let mut buffer = [0; 300];
    let mut client = node(&world, &mut buffer, calm());
    with_server(&world, &state, async {
        let mut body = [0; 64];
        let put = client.request(host(0), &Request::put("sensors/1", b"21.5").with_format(0), &mut body).await.unwrap();
        assert_eq!((put.code, put.copies), (Code::CONTENT, 1));
        let got = client.request(host(0), &Request::get("sensors/1"), &mut body).await.unwrap();
        assert_eq!((got.code, got.body, got.format), (Code::CONTENT, &b"21.5"[..], Some(0)));
        assert_eq!(client.base_rtt(host(0)), Some(Span::from_micros(2 * DELAY as u32)));
    });
    let first = Message::parse(&world.sent.borrow()[0].1).unwrap().uri_path().map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(first, [b"sensors".to_vec(), b"1".to_vec()]);
}

#[test]
fn long_bodies_go_both_ways_in_blocks_whichever_message_is_lost() {
    let long = pattern(1_500);
    for lost in 0..14 {
        let (world, state) = (World::default(), RefCell::default());
        world.lost.borrow_mut().insert(lost);
        let mut buffer = [0; 400];
        let mut client = node(&world, &mut buffer, calm());
        with_server(&world, &state, async {
            let mut body = [0; 2_000];
            let put = client.request(host(0), &Request::put("firmware", &long), &mut body).await.unwrap();
            assert_eq!(put.code, Code::CONTENT, "{lost}");
            let got = client.request(host(0), &Request::get("firmware"), &mut body).await.unwrap();
            assert_eq!(got.body, long, "{lost}");
        });
        assert_eq!(state.borrow().puts, 1, "{lost}");
        assert!(world.sent.borrow().iter().all(|(_, bytes)| bytes.len() < 400), "{lost}");
    }
}

#[test]
fn a_body_longer_than_the_buffer_for_it_is_an_error_and_the_next_call_works() {
    let (world, state) = (World::default(), RefCell::new(State { body: pattern(600), ..State::default() }));
    let mut buffer = [0; 400];
    let mut client = node(&world, &mut buffer, calm());
    with_server(&world, &state, async {
        let too_long = client.request(host(0), &Request::get("a"), &mut [0; 599]).await.unwrap_err();
        assert!(matches!(too_long, Error::Download(_)), "{too_long:?}");
        let mut body = [0; 600];
        assert_eq!(client.request(host(0), &Request::get("a"), &mut body).await.unwrap().body.len(), 600);
    });
}

#[test]
fn a_device_comes_back_by_its_spread_by_its_failures_and_as_its_server_says() {
    let (world, state) = (World::default(), RefCell::new(State { refusals: 2, ..State::default() }));
    let mut buffer = [0; 300];
    let mut client = node(&world, &mut buffer, calm());
    let pauses = Pauses::new().spread(Duration::from_secs(100));
    let waits = |at: Instant| at.since(world.now()).as_micros() / 1_000_000;
    let spread: Vec<_> = (0..20).map(|_| waits(client.first_attempt(&pauses, 0))).collect();
    assert!(spread.iter().all(|wait| *wait <= 100) && spread.iter().max() > spread.iter().min(), "{spread:?}");
    assert!((8..=12).contains(&waits(client.next_attempt(&pauses, 4, None))));
    assert!((60..=100).contains(&waits(client.first_attempt(&pauses, 9))));
    with_server(&world, &state, async {
        let mut body = [0; 64];
        for failures in 1..=2 {
            let refused = client.request(host(0), &Request::put("a", b"21.5"), &mut body).await.unwrap();
            assert_eq!((refused.code, refused.max_age), (Code::SERVICE_UNAVAILABLE, 20));
            let at = client.next_attempt(&pauses, failures, Some(&refused));
            assert!((20..=30).contains(&waits(at)), "{failures}");
            client.serve_until(at).await.unwrap();
        }
        let put = client.request(host(0), &Request::put("a", b"21.5"), &mut body).await.unwrap();
        assert_eq!((put.code, client.first_attempt(&Pauses::new(), 0)), (Code::CONTENT, world.now()));
    });
}

/// Calm names the copies: the answer to the second one says so, and the wait was what the first round trips said.
#[test]
fn the_timer_is_calms() {
    let (world, state) = (World::default(), RefCell::default());
    let mut buffer = [0; 300];
    let mut client = node(&world, &mut buffer, calm());
    with_server(&world, &state, async {
        let mut body = [0; 64];
        for _ in 0..8 {
            client.request(host(0), &Request::get("a"), &mut body).await.unwrap();
        }
        world.lost.borrow_mut().insert(world.sent.borrow().len() as u64);
        let before = world.now();
        let got = client.request(host(0), &Request::get("a"), &mut body).await.unwrap();
        assert_eq!(got.copies, 2);
        let took = world.now().since(before);
        assert!(took > Span::from_millis(1_200) && took < Span::from_millis(2_000), "{took:?}");
        let view = client.endpoint().controller(host(0)).unwrap();
        assert_eq!(view.base_rtt(), Some(Span::from_micros(2 * DELAY as u32)));
    });
    let sent = world.sent.borrow();
    let tokens: Vec<Token> =
        sent[sent.len() - 3..].iter().map(|(_, bytes)| Message::parse(bytes).unwrap().token).collect();
    assert_ne!(tokens[0], tokens[1], "a copy has a name");
    assert_eq!(tokens[1], tokens[2], "and the answer tells it");
}

#[test]
fn a_server_that_is_gone_is_an_error_and_what_was_measured_outlives_a_restart() {
    let (world, state) = (World::default(), RefCell::default());
    let (mut buffer, mut after) = ([0; 300], [0; 300]);
    let mut client = node(&world, &mut buffer, calm());
    let mut restarted = node(&world, &mut after, calm());
    with_server(&world, &state, async {
        let mut body = [0; 64];
        client.request(host(0), &Request::get("a"), &mut body).await.unwrap();
        world.off.borrow_mut().insert(host(0));
        let gone = client.request(host(0), &Request::get("a"), &mut body).await.unwrap_err();
        assert_eq!(gone, Error::Failed { why: Failure::GaveUp, copies: 5 });
        world.off.borrow_mut().clear();
        client.request(host(0), &Request::get("a"), &mut body).await.unwrap();

        let kept = client.base_rtt(host(0)).unwrap();
        assert_eq!(kept, Span::from_micros(2 * DELAY as u32));
        restarted.recall(host(0), Span::from_millis(400)).unwrap();
        restarted.request(host(0), &Request::get("a"), &mut body).await.unwrap();
        let known = restarted.base_rtt(host(0)).unwrap();
        assert!(known < kept, "the path was once shorter than what the first answer says: {known:?}");
    });
}

#[test]
fn a_call_that_is_dropped_is_cancelled_by_the_next() {
    let (world, state) = (World::default(), RefCell::default());
    let mut buffer = [0; 300];
    let mut client = node(&world, &mut buffer, calm());
    with_server(&world, &state, async {
        let mut body = [0; 64];
        let soon = Instant::from_micros(world.now().as_micros() + DELAY);
        let request = Request::get("a");
        let call = client.request(host(0), &request, &mut body);
        let either = embassy_futures::select::select(call, millpond_embedded::Clock::until(&&world, soon)).await;
        assert!(matches!(either, embassy_futures::select::Either::Second(())));
        let got = client.request(host(0), &Request::get("b"), &mut body).await.unwrap();
        assert_eq!(got.code, Code::CONTENT);
        assert_eq!(client.endpoint().exchanges(), 0);
    });
}

#[test]
fn an_observation_goes_on_over_a_restart_of_the_server_with_states_of_any_length() {
    let (world, state) = (World::default(), RefCell::new(State { body: b"1".to_vec(), ..State::default() }));
    let mut buffer = [0; 300];
    let mut client = node(&world, &mut buffer, calm());
    with_server(&world, &state, async {
        let mut body = [0; 2_000];
        let request = Request::get("config");
        let (first, observation) = client.observe(host(0), &request, &mut body).await.unwrap();
        assert_eq!(first.body, b"1");
        let mut observation = observation.expect("granted");
        for new in [b"2".to_vec(), pattern(900), b"3".to_vec()] {
            state.borrow_mut().body.clone_from(&new);
            state.borrow_mut().has_changed = true;
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, new);
        }
        // Changes while something else is asked are kept, the newest of them.
        state.borrow_mut().body = b"4".to_vec();
        state.borrow_mut().has_changed = true;
        client.request(host(0), &Request::put("other", b"5"), &mut body).await.unwrap();
        client.serve_until(Instant::from_micros(world.now().as_micros() + 1_000_000)).await.unwrap();
        state.borrow_mut().has_changed = true;
        client.serve_until(Instant::from_micros(world.now().as_micros() + 4_000_000)).await.unwrap();
        assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, b"5");

        state.borrow_mut().restarts = true;
        let before = world.now();
        assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, b"5", "registered again");
        let took = world.now().since(before);
        assert!(took > Span::from_secs(19) && took < Span::from_secs(37), "20 s fresh, 5 to 15 s more: {took:?}");
        state.borrow_mut().body = b"6".to_vec();
        state.borrow_mut().has_changed = true;
        assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, b"6");

        client.forget(observation).await;
        assert_eq!(client.endpoint().subscriptions(), 0);
    });
}

/// A node asks a node: what one serves, the other gets, in blocks and not.
#[test]
fn a_node_serves_another() {
    let (world, long) = (World::default(), pattern(1_000));
    let (mut buffer, mut other_buffer) = ([0; 300], [0; 300]);
    let stored = RefCell::new(Vec::new());
    let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| match request.message.code {
        Code::GET if request.is_for("table") => {
            reply.etag([1, 2, 3, 4]);
            reply.body(Code::CONTENT, 42, &long);
        }
        Code::PUT if request.is_for("config/period") => {
            *stored.borrow_mut() = request.body.to_vec();
            reply.code(Code::CHANGED);
        }
        _ => {}
    };
    let setup = Setup::calm(8, [4; 16]);
    let device = Node::new(world.socket(host(2)), host(2), &world, setup, &mut other_buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let mut client = node(&world, &mut buffer, calm());
    let serving = async {
        let _ = device.serve_until(Instant::NEVER).await;
    };
    world.run(
        async {
            let mut body = [0; 1_500];
            let got = client.request(host(2), &Request::get("table"), &mut body).await.unwrap();
            assert_eq!((got.code, got.format, got.body), (Code::CONTENT, Some(42), &long[..]));
            let put = Request::put("config/period", &long);
            assert_eq!(client.request(host(2), &put, &mut body).await.unwrap().code, Code::CHANGED);
            assert_eq!(*stored.borrow(), long);
            assert_eq!(client.request(host(2), &Request::get("none"), &mut body).await.unwrap().code, Code::NOT_FOUND);
            let critical = [(millpond_coap::message::number::IF_MATCH, &b"x"[..])];
            let refused = Request::get("table").with_options(&critical);
            assert_eq!(client.request(host(2), &refused, &mut body).await.unwrap().code, Code::BAD_OPTION);
            let too_long = pattern(2_049);
            let put = Request::put("config/period", &too_long);
            let refused = client.request(host(2), &put, &mut body).await.unwrap();
            assert_eq!(refused.code, Code::REQUEST_ENTITY_TOO_LARGE);
        },
        vec![Box::pin(serving)],
    );
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let world = World::default();
    let (mut buffer, mut other_buffer) = ([0; 300], [0; 300]);
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| reply.body(Code::CONTENT, 0, &[7; 1_000]);
    let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut other_buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let mut client = node(&world, &mut buffer, calm());
    let noise = async {
        use embedded_nal_async::UnconnectedUdp;
        let (mut socket, mut word) = (world.socket(host(9)), 1_u32);
        for count in 0..4_000_u64 {
            let mut bytes = [0; 400];
            for byte in &mut bytes {
                word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (word >> 24) as u8;
            }
            // Of each kind a plausible beginning, and lengths beyond the buffer.
            bytes[0] = 0x40 | (bytes[0] & 0x38);
            bytes[1] = [1, 3, 0x45, 0x5f, 0, bytes[1]][count as usize % 6];
            let length = 4 + (word >> 16) as usize % 396;
            socket.send(host(9), host(2), &bytes[..length]).await.unwrap();
            let at = Instant::from_micros(world.now().as_micros() + 1_000);
            millpond_embedded::Clock::until(&&world, at).await;
        }
    };
    let serving = async {
        let _ = device.serve_until(Instant::NEVER).await;
    };
    world.run(
        async {
            client.serve_until(Instant::from_micros(5_000_000)).await.unwrap();
            let mut body = [0; 1_500];
            let got = client.request(host(2), &Request::get("x"), &mut body).await.unwrap();
            assert_eq!(got.body, [7; 1_000]);
        },
        vec![Box::pin(serving), Box::pin(noise)],
    );
}

#[test]
fn what_cannot_be_set_up_says_so() {
    let world = World::default();
    let mut short = [0; 80];
    let error = Node::new(world.socket(host(1)), host(1), &world, calm(), &mut short).unwrap_err();
    assert_eq!(error.to_string(), "the buffer has 80 bytes; use 81 or more");
    let mut buffer = [0; 300];
    let mut setup = calm();
    setup.block = BlockSize::B1024;
    let node = Node::new(world.socket(host(1)), host(1), &world, setup, &mut buffer).unwrap();
    drop(node);
}
