//! More handshakes and sessions than there is room for.

use super::*;

#[test]
fn a_network_that_fills_the_table_of_handshakes_takes_from_itself() {
    let key = shared("a", "b");
    let server = serving(&[("a", "b")]);
    let limits = Limits { handshaking: 8, ..Limits::of(&Keys::Server(ServerKeys::new(&server).unwrap())) };
    // They are where they say, and say nothing more once their cookie came back; the last one is honest.
    let greedy = (0..40).map(|n| (shared("a", "wrong"), format!("203.0.113.{n}:1")));
    let mut crowd = Crowd::new(greedy.chain([(key, "198.51.100.1:40000".into())]), &server, limits);
    crowd.connect(40);
    (0..20).for_each(|n| crowd.connect(n));
    crowd.run(900_000, |_, _| Vec::new());
    (20..40).for_each(|n| crowd.connect(n));
    let mut most = 0;
    for _ in 0..12_000 {
        crowd.run(1_000, |_, _| Vec::new());
        most = most.max(crowd.server.sessions.handshakes());
    }
    assert_eq!(most, 8);
    assert_eq!(crowd.clients[40].sessions.established(), 1);
}

#[test]
fn what_is_longest_silent_goes_when_there_is_no_room() {
    let server = Keys::Server(ServerKeys::new(&serving(&[("a", "b")])).unwrap());
    let limits = Limits { established: 2, ..Limits::of(&server) };
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.server = Side::new(server, Some(limits), "192.0.2.2:5684");
    let mut peers = Vec::new();
    for port in 1..=3 {
        trial.client =
            Side::new(Keys::Client(ClientKeys::new(&shared("a", "b")).unwrap()), None, &format!("192.0.2.1:{port}"));
        trial.connect("x");
        trial.run(SECOND);
        assert!(trial.talks("x"));
        peers.push(trial.client.address);
    }
    assert_eq!(trial.server.sessions.established(), 2);
    assert_eq!(trial.server.sessions.inside(peers[0]), None);
    assert_eq!(trial.server.ended(), ["the session made room for others"]);
}

/// As at a server whose clients are each at home somewhere else.
#[test]
fn of_networks_that_have_as_many_sessions_the_most_silent_goes_whatever_their_numbers() {
    let server = Keys::Server(ServerKeys::new(&serving(&[("a", "b")])).unwrap());
    let limits = Limits { established: 3, ..Limits::of(&server) };
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.server = Side::new(server, Some(limits), "192.0.2.2:5684");
    let mut peers = Vec::new();
    for address in ["192.0.2.1:1", "203.0.113.1:1", "[2001:db8::1]:1", "198.51.100.1:1"] {
        trial.client = Side::new(Keys::Client(ClientKeys::new(&shared("a", "b")).unwrap()), None, address);
        trial.connect("x");
        trial.run(SECOND);
        assert!(trial.talks("x"));
        peers.push(trial.client.address);
    }
    let stands: Vec<bool> = peers.iter().map(|peer| trial.server.sessions.inside(*peer).is_some()).collect();
    assert_eq!(stands, [false, true, true, true]);
}

#[test]
fn sessions_and_handshakes_are_counted_in_memory() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    let alone = trial.server.sessions.memory();
    trial.connect("x");
    // Hello, cookie, hello: the server's flight is under way.
    trial.run(3 * UNDER_WAY + 1_000);
    assert_eq!(trial.server.sessions.handshakes(), 1);
    let handshaking = trial.server.sessions.memory();
    trial.run(SECOND);
    assert_eq!(trial.server.sessions.established(), 1);
    let mut stats = crate::Stats::default();
    trial.server.sessions.count(&mut stats);
    assert!(handshaking >= alone + 8_000 && stats.memory >= alone + 8_000, "{alone} {handshaking} {}", stats.memory);
    trial.server.sessions.close_all(trial.at(), &mut trial.server.outbox);
    assert!(trial.server.sessions.memory() < alone + 8_000);
}

/// Each would be kept, thirty in a handshake, until what stands before them came.
#[test]
fn fragments_longer_than_any_network_carries_are_not_kept_and_stop_no_handshake() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.connect("x");
    trial.run(3 * UNDER_WAY + 1_000);
    assert_eq!(trial.server.sessions.handshakes(), 1);
    let (now, from, before) = (trial.at(), trial.client.address, trial.server.sessions.ignored);
    for offset in 1..=40 {
        let mut datagram = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 9, offset];
        datagram.extend_from_slice(&60_012_u16.to_be_bytes());
        // A part of a certificate that is to come after what the handshake waits for.
        datagram.extend_from_slice(&[11, 3, 0xff, 0xff, 0, 9, 0, 0, offset, 0, 0xea, 0x60]);
        datagram.resize(datagram.len() + 60_000, 7);
        trial.server.receive(now, from, &datagram);
    }
    assert_eq!(trial.server.sessions.ignored - before, 40);
    trial.run(SECOND);
    assert!(trial.talks("x") && trial.server.ended().is_empty());
}
