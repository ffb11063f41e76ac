//! What unvalidated peers and liars can do to a calm server and to a calm client: nothing but what docs/calm-server.md and
//! docs/calm.md state.

use millpond_coap::message::Message;
use millpond_coap::{Duplicates, Endpoint};
use millpond_control::Preset;

use crate::{
    calm::{in_a_queue, pinged, request as hello, serve},
    pair::{Pair, SECOND, Side, endpoint},
};

/// A confirmable GET of a path of five letters, with this message ID and token.
fn request(id: u16, token: u8, path: &[u8; 5]) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [&[0x41, 1, high, low, token, 0xb5][..], path].concat()
}

fn calm(paths: usize) -> Endpoint<u32> {
    let server = endpoint(0, |config| {
        config.duplicates = Duplicates::Calm;
        config.limits.duplicate_bytes = paths;
    });
    server.with_paths(|from| u64::from(*from / 100))
}

/// Whether an answer is among what leaves for a request or a copy of it.
fn is_answered(server: &mut Endpoint<u32>, now: u64, peer: u32, id: u16) -> bool {
    serve(server, now, peer, &hello(id)).iter().any(|(bytes, _)| bytes[0] & 0x30 == 0x20)
}

/// Slow clients, each of which asks every thirty seconds, beside what an attacker does at each twentieth of a second: how many of
/// the twenty have the answer to their last request repeated at once when its first duplicate comes, 2.5 s later.
fn repeated_beside(peers: core::ops::Range<u32>, mut attack: impl FnMut(&mut Endpoint<u32>, u64, u16)) -> usize {
    let mut server = calm(1 << 20);
    let (mut now, mut asked) = (0, 0_u16);
    for round in 0..20_u64 {
        for twentieth in 0..600 {
            now = 30 * SECOND * round + twentieth * SECOND / 20;
            attack(&mut server, now, asked);
            asked = asked.wrapping_add(1);
            if twentieth % 30 == 0 {
                let peer = peers.start + (twentieth / 30) as u32;
                if let Some(rejection) = pinged(&mut server, now, peer, &hello(round as u16)) {
                    serve(&mut server, now + SECOND / 100, peer, &rejection);
                }
            }
        }
    }
    peers.filter(|peer| is_answered(&mut server, now + 5 * SECOND / 2, *peer, 19)).count()
}

/// Twenty requests a second with a duplicate each, from an address that is its sender's own and takes its time to reject pings, in another
/// network and in theirs.
#[test]
fn who_repeats_all_its_requests_silences_no_slow_clients() {
    for attacker in [7, 199] {
        let mut rejections = std::collections::VecDeque::new();
        let answered = repeated_beside(100..120, |server, now, id| {
            for moment in [now, now + 1] {
                let rejection = pinged(server, moment, attacker, &hello(id));
                rejections.extend(rejection.map(|rejection| (now + 100 * SECOND, rejection)));
            }
            while rejections.front().is_some_and(|(due, _)| *due <= now) {
                let (_, rejection) = rejections.pop_front().unwrap();
                serve(server, now + 2, attacker, &rejection);
            }
        });
        assert_eq!(answered, 20, "{attacker}");
    }
}

/// Twelve exchanges a second in the names of eighty neighbours, each with two duplicates, and a guess at each ping.
#[test]
fn forged_exchanges_in_the_names_of_neighbours_silence_nobody() {
    let mut forged = 0;
    let answered = repeated_beside(100..120, |server, now, _| {
        if now / (SECOND / 20) % 5 < 3 {
            let (neighbour, id) = (120 + forged % 80, (forged / 80) as u16);
            for copy in 0..3 {
                serve(server, now + copy, neighbour, &hello(id));
            }
            serve(server, now + 4, neighbour, &[0x70, 0, 0x12, 0x34]);
            forged += 1;
        }
    });
    assert!(forged / 80 > 80, "{forged}");
    assert_eq!(answered, 20);
}

/// Somebody sends requests of other message IDs in a peer's name: its own is no longer the newest, and as much is answered.
#[test]
fn abuse_by_forged_new_ids() {
    let mut server = calm(1 << 20);
    let (now, id) = in_a_queue(&mut server, 1);
    for forged in 0..100 {
        assert_eq!(serve(&mut server, now + u64::from(forged), 1, &hello(1_000 + forged)).len(), 1);
    }
    let now = now + SECOND;
    let of_three: Vec<usize> = (0..3).map(|copy| serve(&mut server, now + copy, 1, &hello(id)).len()).collect();
    assert_eq!(of_three, [0, 0, 1], "its duplicates");
    assert_eq!(serve(&mut server, now, 1, &hello(id + 1)).len(), 1, "the peer's next request");
}

/// Somebody guesses the message ID that a peer uses next and is first: the peer's request looks like a copy, in this server
/// as in one that stores replies (RFC 7252 §11.4). It is silent for as long as answers take, the later copies of the peer
/// are answered with what the forger got, and the request after that is answered as ever.
#[test]
fn abuse_by_forged_copies_of_the_next_id() {
    let mut stored = endpoint(0, |_| {});
    let mut server = calm(1 << 20);
    let (now, id) = in_a_queue(&mut server, 1);
    let forged = request(id + 1, 9, b"other");
    for server in [&mut server, &mut stored] {
        assert_eq!(serve(server, now, 1, &forged).len(), 1);
    }
    let late = now + 22 * SECOND;
    let of_both = [&mut server, &mut stored].map(|server| serve(server, late, 1, &hello(id + 1)));
    assert_eq!(of_both[0], of_both[1], "once the answer is due, what every server sends");
    assert_eq!(Message::parse(&of_both[0][0].0).unwrap().token.as_bytes(), [9], "no peer takes it for its answer");
    assert_eq!(serve(&mut server, late + SECOND, 1, &hello(id + 2)).len(), 1);
}

/// Somebody has many addresses of a network, or ports, and takes two minutes to reject pings: the path looks like a queue. Two in three
/// duplicates of its peers are withheld for so long. First answers are not touched, a device that repeats four times has one
/// repeated, one that rejects a ping when it repeats has the next one, and in other networks those that are due are answered.
#[test]
fn abuse_by_late_rejections_of_many_ports() {
    let mut server = calm(1 << 20);
    let mut rejections = Vec::new();
    for own in 10..70_u32 {
        rejections.push((own, pinged(&mut server, 0, own, &hello(0)).unwrap()));
    }
    let now = 110 * SECOND;
    for (own, rejection) in rejections {
        serve(&mut server, now, own, &rejection);
    }
    for peer in [1, 2, 101] {
        let rejection = pinged(&mut server, now, peer, &hello(20)).unwrap();
        serve(&mut server, now + SECOND / 10, peer, &rejection);
    }
    let of_both =
        [2, 6, 14, 30].map(|after| [1, 101].map(|peer| is_answered(&mut server, now + after * SECOND, peer, 20)));
    assert_eq!(of_both.map(|[here, _]| here), [false, false, true, false], "the third");
    assert_eq!(of_both.map(|[_, there]| there), [true; 4], "in a network of which it has no address");
    let rejection = pinged(&mut server, now + 40 * SECOND, 2, &hello(20)).unwrap();
    serve(&mut server, now + 41 * SECOND, 2, &rejection);
    assert!(is_answered(&mut server, now + 44 * SECOND, 2, 20), "its own ping came back");
}

/// Requests of very many networks: memory stays bounded, and those who are forgotten for it are answered.
#[test]
fn abuse_by_a_flood_of_prefixes() {
    let mut server = calm(100_000);
    let empty = server.memory();
    let (now, id) = in_a_queue(&mut server, 1);
    for network in 1..50_000 {
        assert_eq!(serve(&mut server, now, 100 * network, &hello(1)).len(), 1);
    }
    assert!(server.memory() - empty <= 100_000 + 2 * 100_000 / 8 + 1_024, "{}", server.memory());
    for copy in 0..20 {
        assert!(is_answered(&mut server, now + SECOND + copy, 1, id));
    }
}

/// A reply under the token of a copy that never left is no reply to anything: the exchange goes on, and the controller
/// has learnt nothing.
#[test]
fn abuse_by_a_reply_that_names_a_copy_never_sent() {
    let mut pair = Pair::usual().losing(0..100);
    pair.client.set_controller(pair.now(), Side::Server, Preset::CALM.build()).unwrap();
    pair.get();
    pair.run_until(4 * SECOND);
    let known = |pair: &Pair| format!("{:?}", pair.client.controller(Side::Server));
    let (before, sent) = (known(&pair), pair.datagrams.len());
    let message = Message::parse(&pair.datagrams[0]).unwrap();
    let (id, token) = (message.id.0.to_be_bytes(), message.token.as_bytes().to_vec());
    for copy in sent as u8..=u8::MAX {
        let mut named = token.clone();
        *named.last_mut().unwrap() = copy;
        let head = [0x60 | named.len() as u8, 0x45, id[0], id[1]];
        pair.inject(Side::Client, &[&head[..], &named].concat());
    }
    assert_eq!(known(&pair), before);
    pair.take_log();
    pair.lose.clear();
    pair.run_until(60 * SECOND);
    assert!(pair.take_log().iter().any(|line| line.contains("gets")), "it asks again and is answered");
}
