//! What a node sends to those who observe, and to those who have shown nothing.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
};

use embedded_nal_async::UnconnectedUdp;
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
use millpond_control::Instant;
use millpond_embedded::{Asked, Clock, Error, Node, Reply, Request, Setup};

use super::{
    State, calm, node, pattern, server,
    world::{Socket, World, host},
};

/// Bytes around a datagram on the wire, over IPv4 and Ethernet (RFC 9175 §2.4).
const AROUND: usize = 42;

async fn pause(world: &World, micros: u64) {
    world.until(Instant::from_micros(world.now().as_micros() + micros)).await;
}

/// Serves, tells observers of what is at these paths when it is wished, and counts them.
async fn tell(
    device: &mut Node<'_, Socket<'_>, &World>,
    world: &World,
    paths: &[&str],
    to_tell: &Cell<bool>,
    observers: &Cell<usize>,
) {
    loop {
        device.serve_until(Instant::from_micros(world.now().as_micros() + 100_000)).await.unwrap();
        if to_tell.take() {
            paths.iter().for_each(|path| device.notify(path));
        }
        observers.set(device.observers());
    }
}

/// A request as anybody may write it.
fn written(id: u16, code: Code, path: &str, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let mut writer = Writer::start(&mut bytes, Kind::Confirmable, code, MessageId(id), token);
    let mut all: Vec<(u16, Vec<u8>)> = options.iter().map(|(number, value)| (*number, value.to_vec())).collect();
    all.extend(path.split('/').map(|part| (number::URI_PATH, part.as_bytes().to_vec())));
    all.sort_by_key(|(number, _)| *number);
    for (number, value) in &all {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn register(id: u16, path: &str) -> Vec<u8> {
    written(id, Code::GET, path, &[(number::OBSERVE, &[])])
}

#[test]
fn each_state_is_told_and_the_newest_of_those_that_follow_each_other_fast() {
    let world = World::default();
    let (mut buffer, mut other_buffer) = ([0; 300], [0; 300]);
    let state = RefCell::new(b"1".to_vec());
    let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| match request.message.code {
        Code::GET if request.is_for("config/period") => {
            reply.observable();
            reply.max_age(3_600);
            reply.body(Code::CONTENT, 0, &state.borrow());
        }
        Code::PUT if request.is_for("config/period") => {
            *state.borrow_mut() = request.body.to_vec();
            reply.changed();
            reply.code(Code::CHANGED);
        }
        _ => reply.code(Code::METHOD_NOT_ALLOWED),
    };
    let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut other_buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let mut client = node(&world, &mut buffer, Setup::calm(8, [4; 16]));
    let (to_tell, observers) = (Cell::new(false), Cell::new(0));
    let serving = tell(&mut device, &world, &["/config/period", "config/other"], &to_tell, &observers);
    world.run(
        async {
            let mut body = [0; 1_500];
            let request = Request::get("config/period");
            let (first, observation) = client.observe(host(2), &request, &mut body).await.unwrap();
            assert_eq!(first.body, b"1");
            let mut observation = observation.expect("granted");
            for new in [b"2".to_vec(), pattern(900), b"3".to_vec()] {
                state.borrow_mut().clone_from(&new);
                to_tell.set(true);
                assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, new);
            }
            assert_eq!(observers.get(), 1);

            // Each later one while the first of them is under way.
            pause(&world, 1_000_000).await;
            for new in [b"4", b"5", b"6"] {
                *state.borrow_mut() = new.to_vec();
                to_tell.set(true);
                pause(&world, 150_000).await;
            }
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, b"4");
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, b"6");

            let put = Request::put("config/period", b"7");
            assert_eq!(client.request(host(2), &put, &mut body).await.unwrap().code, Code::CHANGED);
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap().body, b"7");

            client.forget(observation).await;
            to_tell.set(true);
            client.serve_until(Instant::from_micros(world.now().as_micros() + 2_000_000)).await.unwrap();
            pause(&world, 2_000_000).await;
            assert_eq!(observers.get(), 0, "the reset of a notification ends it");
        },
        vec![Box::pin(serving)],
    );
}

#[test]
fn an_observation_ends_with_an_error_with_a_wish_and_with_silence() {
    let world = World::default();
    let (mut buffer, mut other_buffer) = ([0; 300], [0; 300]);
    let is_gone = Cell::new(false);
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| {
        reply.observable();
        if is_gone.get() { reply.code(Code::NOT_FOUND) } else { reply.body(Code::CONTENT, 0, b"1") }
    };
    let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut other_buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let mut client = node(&world, &mut buffer, Setup::calm(8, [4; 16]));
    let (to_tell, observers) = (Cell::new(false), Cell::new(0));
    let serving = tell(&mut device, &world, &["state"], &to_tell, &observers);
    world.run(
        async {
            let mut body = [0; 64];
            let request = Request::get("state");
            let (_, observation) = client.observe(host(2), &request, &mut body).await.unwrap();
            is_gone.set(true);
            to_tell.set(true);
            let mut observation = observation.unwrap();
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap().code, Code::NOT_FOUND);
            assert_eq!(client.next(&mut observation, &mut body).await.unwrap_err(), Error::Over);
            pause(&world, 200_000).await;
            assert_eq!(observers.get(), 0);

            is_gone.set(false);
            let mut other = world.socket(host(9));
            other.send(host(9), host(2), &register(1, "state")).await.unwrap();
            pause(&world, 1_000_000).await;
            assert_eq!(observers.get(), 1);
            let mut ends = written(1, Code::GET, "state", &[(number::OBSERVE, &[1])]);
            ends[2..4].copy_from_slice(&[9, 9]);
            other.send(host(9), host(2), &ends).await.unwrap();
            pause(&world, 1_000_000).await;
            assert_eq!(observers.get(), 0);

            other.send(host(9), host(2), &register(2, "state")).await.unwrap();
            pause(&world, 1_000_000).await;
            to_tell.set(true);
            pause(&world, 300_000_000).await;
            assert_eq!(observers.get(), 0, "nothing acknowledged what it was told");
        },
        vec![Box::pin(serving)],
    );
}

/// Unvalidated addresses take each other's places, and not those of validated ones.
#[test]
fn observers_that_are_not_validated_give_way() {
    let (world, state) = (World::default(), RefCell::new(State { body: b"1".to_vec(), ..State::default() }));
    let mut other_buffer = [0; 300];
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| {
        reply.observable();
        reply.body(Code::CONTENT, 0, b"1");
    };
    let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut other_buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let observers = Cell::new(0);
    let serving = async {
        let mut body = [0; 64];
        device.request(host(0), &Request::get("time"), &mut body).await.unwrap();
        loop {
            device.serve_until(Instant::from_micros(world.now().as_micros() + 100_000)).await.unwrap();
            observers.set(device.observers());
        }
    };
    let granted = |to: SocketAddr, token: u16| {
        world.sent.borrow().iter().any(|(from, bytes)| {
            let message = Message::parse(bytes).unwrap();
            *from == to
                && message.token.as_bytes() == token.to_be_bytes()
                && message.option(number::OBSERVE).is_some()
                && message.code == Code::CONTENT
        })
    };
    world.run(
        async {
            pause(&world, 2_000_000).await;
            let (mut validated, mut other) = (world.socket(host(0)), world.socket(host(9)));
            for id in 1..=3 {
                validated.send(host(0), host(2), &register(id, "state")).await.unwrap();
            }
            for id in 4..=9 {
                other.send(host(9), host(2), &register(id, "state")).await.unwrap();
                pause(&world, 1_000_000).await;
                assert!(granted(host(2), id));
            }
            assert_eq!(observers.get(), 4, "the unvalidated ones had one place");
            validated.send(host(0), host(2), &register(10, "state")).await.unwrap();
            pause(&world, 1_000_000).await;
            other.send(host(9), host(2), &register(11, "state")).await.unwrap();
            pause(&world, 1_000_000).await;
            assert_eq!((granted(host(2), 10), granted(host(2), 11)), (true, false));
        },
        vec![Box::pin(serving), Box::pin(server::serve(&world, world.socket(host(0)), &state))],
    );
}

/// Whatever comes from an unvalidated address, and however long that is silent, three times as much goes there, or 136 bytes of CoAP.
#[test]
fn an_address_that_has_shown_nothing_draws_three_times_its_request() {
    let long = pattern(1_000);
    let block = |value: u8| vec![(number::BLOCK2, vec![value])];
    let observe = || vec![(number::OBSERVE, vec![])];
    let padded = |length: usize| vec![(number::URI_QUERY, vec![b'q'; length])];
    let mut worst = 0.0_f64;
    for options in [
        vec![],
        block(0x06),
        block(0x16),
        observe(),
        padded(1),
        padded(50),
        padded(200),
        [observe(), padded(90)].concat(),
    ] {
        for path in ["long", "short", "none"] {
            let world = World::default();
            let mut buffer = [0; 600];
            let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| {
                reply.observable();
                reply.etag([1, 2, 3, 4]);
                reply.max_age(900);
                match request.message.uri_path().next() {
                    Some(b"long") => reply.body(Code::CONTENT, 42, &long),
                    Some(b"short") => reply.body(Code::CONTENT, 42, &long[..20]),
                    _ => {}
                }
            };
            let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut buffer).unwrap();
            let mut device = device.serving(&mut resource);
            let lent: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
            let request = written(7, Code::GET, path, &lent);
            let serving = async {
                loop {
                    device.serve_until(Instant::from_micros(world.now().as_micros() + 5_000_000)).await.unwrap();
                    device.notify(path);
                }
            };
            world.run(
                async {
                    world.socket(host(9)).send(host(9), host(2), &request).await.unwrap();
                    pause(&world, 400_000_000).await;
                },
                vec![Box::pin(serving)],
            );
            let sent = world.sent.borrow();
            let drawn: usize =
                sent.iter().filter(|(from, _)| *from == host(2)).map(|(_, sent)| sent.len() + AROUND).sum();
            let came = request.len() + AROUND;
            assert!(drawn > 0 && drawn <= (3 * came).max(136 + AROUND), "{path} {options:?}: {drawn} for {came}");
            worst = worst.max(drawn as f64 / came as f64);
        }
    }
    assert!(worst > 2.5, "what may be sent is used: {worst}");
}

/// A validated address gets blocks as long as the node's, any other the same body in short ones.
#[test]
fn a_long_body_goes_in_short_blocks_until_an_address_is_validated() {
    let (world, long) = (World::default(), pattern(1_000));
    let (mut buffer, mut other_buffer) = ([0; 600], [0; 600]);
    let mut resource = |_: &Asked<'_>, reply: &mut Reply<'_>| reply.body(Code::CONTENT, 0, &long);
    let mut pong = |_: &Asked<'_>, reply: &mut Reply<'_>| reply.code(Code::CHANGED);
    let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut other_buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let mut client = node(&world, &mut buffer, Setup::calm(8, [4; 16])).serving(&mut pong);
    let to_ask = Cell::new(false);
    let serving = async {
        loop {
            device.serve_until(Instant::from_micros(world.now().as_micros() + 100_000)).await.unwrap();
            if to_ask.take() {
                let mut body = [0; 64];
                device.request(host(1), &Request::post("hello", b""), &mut body).await.unwrap();
            }
        }
    };
    let longest = || world.sent.borrow().iter().filter(|(from, _)| *from == host(2)).map(|(_, b)| b.len()).max();
    world.run(
        async {
            let mut body = [0; 1_500];
            let got = client.request(host(2), &Request::get("table"), &mut body).await.unwrap();
            assert_eq!(got.body, long);
            assert!(longest() <= Some(136), "{:?}", longest());
            to_ask.set(true);
            client.serve_until(Instant::from_micros(world.now().as_micros() + 3_000_000)).await.unwrap();
            let got = client.request(host(2), &Request::get("table"), &mut body).await.unwrap();
            assert_eq!(got.body, long);
            assert!(longest() > Some(512));
        },
        vec![Box::pin(serving)],
    );
}

/// Registrations, ends, acknowledgements and resets in any order: places are bounded, and are free once all are silent.
#[test]
fn observers_that_do_as_they_please_are_bounded_and_forgotten() {
    let world = World::default();
    let mut buffer = [0; 300];
    let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| {
        if request.message.option(number::URI_QUERY).is_none() {
            reply.observable();
        }
        reply.body(Code::CONTENT, 0, &[b'.'; 100]);
    };
    let device = Node::new(world.socket(host(2)), host(2), &world, calm(), &mut buffer).unwrap();
    let mut device = device.serving(&mut resource);
    let (observers, most) = (Cell::new(0), Cell::new(0));
    let serving = async {
        loop {
            device.serve_until(Instant::from_micros(world.now().as_micros() + 500_000)).await.unwrap();
            device.notify("a");
            device.notify("b");
            observers.set(device.observers());
            most.set(most.get().max(device.observers()));
        }
    };
    world.run(
        async {
            let mut word = 7_u32;
            let mut draw = |below: u32| {
                word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (word >> 8) % below
            };
            for step in 0..800_u16 {
                let from = host(5 + draw(6) as u8);
                let token = draw(8) as u16;
                let observe = match draw(3) {
                    0 => vec![],
                    1 => vec![1],
                    _ => vec![draw(256) as u8, draw(256) as u8],
                };
                let path = ["a", "b"][draw(2) as usize];
                let mut bytes = match draw(4) {
                    // What acknowledges or rejects the last that came to anybody, with its ID.
                    0 | 1 => {
                        let kind = [Kind::Acknowledgement, Kind::Reset][draw(2) as usize];
                        let last = world.sent.borrow().iter().rev().find(|(sender, _)| *sender == host(2)).cloned();
                        let Some((_, last)) = last else { continue };
                        let id = Message::parse(&last).unwrap().id;
                        let mut bytes = Vec::new();
                        Writer::start(&mut bytes, kind, Code::EMPTY, id, Token::EMPTY).finish().unwrap();
                        bytes
                    }
                    2 => written(token, Code::GET, path, &[(number::OBSERVE, &observe)]),
                    _ => written(token, Code::GET, path, &[(number::OBSERVE, &observe), (number::URI_QUERY, b"q")]),
                };
                if bytes[1] != 0 {
                    bytes[2..4].copy_from_slice(&step.to_be_bytes());
                }
                world.socket(from).send(from, host(2), &bytes).await.unwrap();
                pause(&world, u64::from(draw(400_000))).await;
                assert!(observers.get() <= 4);
            }
            assert_eq!(most.get(), 4);
            // An hour: several messages to one peer wait for each other, each for up to ten minutes.
            pause(&world, 3_600_000_000).await;
            assert_eq!(observers.get(), 0);
        },
        vec![Box::pin(serving)],
    );
}
