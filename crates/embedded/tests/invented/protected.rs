//! Nodes all of whose messages are protected (RFC 8613).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::{cell::RefCell, collections::BTreeSet};

use millpond_coap::{
    Failure, ResponseFault,
    message::{Code, Message, number},
    oscore::{Context, Parameters, Start},
};
use millpond_control::Instant;
use millpond_embedded::{Asked, Error, Node, Reply, Request, Setup};

use super::{
    calm, node, pattern,
    world::{DELAY, Socket, World, host},
};

const CLIENT: Parameters<'static> =
    Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(b"0123456789abcdef") };

fn stored(parameters: &Parameters<'_>, bound: u64) -> Context {
    Context::derive(parameters, Start::Stored(bound)).unwrap()
}

type Sockets<'w> = Node<'w, Socket<'w>, &'w World>;

/// A protected client, and a protected device that serves this.
fn pair<'w>(
    world: &'w World,
    buffers: &'w mut [[u8; 400]; 2],
    resource: &'w mut dyn millpond_embedded::Resource,
) -> (Sockets<'w>, Sockets<'w>) {
    let [buffer, other] = buffers;
    let client = node(world, buffer, calm()).protected_with(stored(&CLIENT, 0), |_| true);
    let device = Node::new(world.socket(host(2)), host(2), world, Setup::calm(8, [4; 16]), other).unwrap();
    (client, device.serving(resource).protected_with(stored(&CLIENT.mirrored(), 0), |_| true))
}

/// The same, while the device serves.
fn beside<'w, T>(
    world: &'w World,
    buffers: &'w mut [[u8; 400]; 2],
    resource: &'w mut dyn millpond_embedded::Resource,
    run: impl AsyncFnOnce(&mut Sockets<'w>) -> T,
) -> T {
    let (mut client, mut device) = pair(world, buffers, resource);
    let serving = async move {
        let _ = device.serve_until(Instant::NEVER).await;
    };
    world.run(run(&mut client), vec![Box::pin(serving)])
}

/// Nothing of what was sent shows a method, a path, a code or a body.
fn nothing_was_shown(world: &World, secrets: &[&[u8]]) {
    for (_, bytes) in world.sent.borrow().iter() {
        let message = Message::parse(bytes).unwrap();
        let shown = [Code::POST, Code::FETCH, Code::CHANGED, Code::CONTENT, Code::EMPTY];
        assert!(shown.contains(&message.code), "{}", message.code);
        assert!(message.code.is_empty() || message.option(number::OSCORE).is_some());
        assert!(secrets.iter().all(|secret| !bytes.windows(secret.len()).any(|part| part == *secret)));
    }
}

#[test]
fn bodies_go_both_ways_whichever_message_is_lost() {
    let long = pattern(1_000);
    for lost in 0..16 {
        let world = World::default();
        world.lost.borrow_mut().insert(lost);
        let puts = RefCell::new(Vec::new());
        let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| match request.message.code {
            Code::GET if request.is_for("table") => reply.body(Code::CONTENT, 42, &long),
            Code::PUT if request.is_for("config") => {
                puts.borrow_mut().push(request.body.to_vec());
                reply.code(Code::CHANGED);
            }
            _ => {}
        };
        beside(&world, &mut [[0; 400]; 2], &mut resource, async |client| {
            let mut body = [0; 1_500];
            let got = client.request(host(2), &Request::get("table"), &mut body).await.unwrap();
            assert_eq!((got.code, got.format, got.body), (Code::CONTENT, Some(42), &long[..]), "{lost}");
            let put = client.request(host(2), &Request::put("config", &long), &mut body).await.unwrap();
            assert_eq!(put.code, Code::CHANGED, "{lost}");
            let none = client.request(host(2), &Request::get("none"), &mut body).await.unwrap();
            assert_eq!(none.code, Code::NOT_FOUND, "{lost}");
        });
        assert_eq!(*puts.borrow(), std::slice::from_ref(&long), "{lost}");
        nothing_was_shown(&world, &[b"table", b"config", &long[100..120]]);
        assert!(world.sent.borrow().iter().all(|(_, bytes)| bytes.len() < 400), "{lost}");
    }
}

#[test]
fn states_are_observed_and_registrations_renewed() {
    let world = World::default();
    let mut counted = 0_u8;
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| {
        counted += 1;
        reply.observable();
        reply.max_age(20);
        reply.body(Code::CONTENT, 0, &[counted]);
    };
    beside(&world, &mut [[0; 400]; 2], &mut resource, async |client| {
        let mut body = [0; 100];
        let request = Request::get("count");
        let (first, observation) = client.observe(host(2), &request, &mut body).await.unwrap();
        assert_eq!(first.body, [1]);
        let mut observation = observation.expect("granted");
        // Each time it is fresh no more: the server's answer to the renewal is its next state.
        for state in 2..6 {
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, [state]);
        }
        client.forget(observation).await;
        assert_eq!(client.endpoint().subscriptions(), 0);
    });
    nothing_was_shown(&world, &[b"count"]);
}

/// Observes until the second state, while the device serves until a point in time and has a new state then. Says which state came, when,
/// and how many datagrams had left.
fn renewed(changes: Instant, lost: Option<u64>) -> (u8, Instant, u64) {
    let world = World::default();
    world.lost.borrow_mut().extend(lost);
    let mut buffers = [[0; 400]; 2];
    let mut counted = 0_u8;
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| {
        counted += 1;
        reply.observable();
        reply.max_age(20);
        reply.body(Code::CONTENT, 0, &[counted]);
    };
    let (mut client, mut device) = pair(&world, &mut buffers, &mut resource);
    let serving = async {
        let _ = device.serve_until(changes).await;
        device.notify("count");
        let _ = device.serve_until(Instant::NEVER).await;
    };
    world.run(
        async {
            let mut body = [0; 100];
            let request = Request::get("count");
            let (_, observation) = client.observe(host(2), &request, &mut body).await.unwrap();
            let mut observation = observation.expect("granted");
            let state = client.next(&mut observation, &mut body).await.unwrap().body[0];
            let came = (state, world.now(), world.sent.borrow().len() as u64);
            assert!(client.next(&mut observation, &mut body).await.unwrap().body[0] > state, "it goes on");
            came
        },
        vec![Box::pin(serving)],
    )
}

#[test]
fn a_notification_that_overtakes_the_answer_to_a_renewal_is_taken_and_the_observation_goes_on() {
    let (state, answered, sent) = renewed(Instant::NEVER, None);
    assert_eq!(state, 2, "of the answer");
    // The state changes when the answer has left, which is lost and repeated.
    let changes = Instant::from_micros(answered.as_micros() - DELAY + 1_000);
    assert_eq!(renewed(changes, Some(sent - 1)).0, 3, "of the notification");
}

#[test]
fn changes_reach_their_observer_through_another_token_than_before() {
    let world = World::default();
    let value = RefCell::new(1_u8);
    let mut buffers = [[0; 400]; 2];
    let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| match request.message.code {
        Code::PUT => {
            *value.borrow_mut() = request.body[0];
            reply.changed();
            reply.code(Code::CHANGED);
        }
        _ => {
            reply.observable();
            reply.body(Code::CONTENT, 0, &[*value.borrow()]);
        }
    };
    let (mut client, mut device) = pair(&world, &mut buffers, &mut resource);
    let serving = async {
        let _ = device.serve_until(Instant::NEVER).await;
    };
    world.run(
        async {
            let mut body = [0; 100];
            let request = Request::get("value");
            for round in [10, 20] {
                let (_, observation) = client.observe(host(2), &request, &mut body).await.unwrap();
                let mut observation = observation.expect("granted");
                for new in round..round + 3 {
                    client.request(host(2), &Request::put("value", &[new]), &mut body).await.unwrap();
                    assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, [new]);
                }
                client.forget(observation).await;
            }
        },
        vec![Box::pin(serving)],
    );
}

#[test]
fn other_contexts_and_none_are_refused() {
    let world = World::default();
    let (mut plain_buffer, mut other_buffer) = ([0; 400], [0; 400]);
    let mut plain = Node::new(world.socket(host(3)), host(3), &world, calm(), &mut plain_buffer).unwrap();
    let foreign = Node::new(world.socket(host(4)), host(4), &world, calm(), &mut other_buffer).unwrap();
    let other = Parameters { secret: b"another secret..", ..CLIENT };
    let mut foreign = foreign.protected_with(stored(&other, 0), |_| true);
    let asked = RefCell::new(0);
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| {
        *asked.borrow_mut() += 1;
        reply.code(Code::CONTENT);
    };
    beside(&world, &mut [[0; 400]; 2], &mut resource, async |_| {
        let mut body = [0; 100];
        let refused = plain.request(host(2), &Request::get("a"), &mut body).await.unwrap();
        assert_eq!(refused.code, Code::UNAUTHORIZED);
        let refused = foreign.request(host(2), &Request::get("a"), &mut body).await.unwrap_err();
        let why = Failure::Protection(ResponseFault::NotProtected(Code::BAD_REQUEST));
        assert_eq!(refused, Error::Failed { why, copies: 1 });
    });
    assert_eq!(*asked.borrow(), 0);
}

/// No sequence number leaves twice, whenever the device restarts, and the server's challenge is answered.
#[test]
fn a_device_that_restarts_goes_on() {
    let bound = Arc::new(AtomicU64::new(0));
    let mut used = BTreeSet::new();
    for _ in 0..3 {
        let world = World::default();
        let (mut buffer, mut other) = ([0; 400], [0; 400]);
        let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| reply.code(Code::CONTENT);
        let server_was_restarted = stored(&CLIENT.mirrored(), 70);
        let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut other).unwrap();
        let mut device = device.serving(&mut resource).protected_with(server_was_restarted, |_| true);
        let storage = Arc::clone(&bound);
        let mut client = node(&world, &mut buffer, calm()).protected_with(
            stored(&CLIENT, bound.load(Ordering::Relaxed)),
            move |bound| {
                storage.store(bound, Ordering::Relaxed);
                true
            },
        );
        let serving = async {
            let _ = device.serve_until(Instant::NEVER).await;
        };
        world.run(
            async {
                let mut body = [0; 100];
                for _ in 0..3 {
                    let got = client.request(host(2), &Request::get("a"), &mut body).await.unwrap();
                    assert_eq!(got.code, Code::CONTENT);
                }
            },
            vec![Box::pin(serving)],
        );
        for (from, bytes) in world.sent.borrow().iter().filter(|(from, _)| *from == host(1)) {
            let message = Message::parse(bytes).unwrap();
            let option = message.option(number::OSCORE).unwrap();
            assert!(used.insert(option.to_vec()), "{from}: {option:?}");
        }
    }
}

#[test]
fn what_cannot_be_stored_is_not_sent() {
    let world = World::default();
    let mut buffer = [0; 400];
    let mut client = node(&world, &mut buffer, calm()).protected_with(stored(&CLIENT, 0), |_| false);
    let refused = world.run(
        async {
            let mut body = [0; 100];
            client.request(host(2), &Request::get("a"), &mut body).await.unwrap_err()
        },
        vec![],
    );
    assert!(refused.to_string().contains("store the next one"), "{refused}");
    assert!(world.sent.borrow().is_empty());
}
