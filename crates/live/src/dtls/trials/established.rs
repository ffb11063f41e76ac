//! What unvalidated peers do to sessions that stand: records without the keys, alerts and messages in the clear, copies.

use super::*;

/// A record of DTLS 1.2.
fn record(kind: u8, epoch: u16, sequence: u64, body: &[u8]) -> Vec<u8> {
    let (epoch, sequence) = (epoch.to_be_bytes(), sequence.to_be_bytes());
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, 0xfe, 0xfd][..], &epoch, &sequence[2..], &length, body].concat()
}

/// Bytes as an unvalidated peer makes them.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(next).collect()
}

/// All kinds of datagrams that an unvalidated peer without keys can make.
fn forged() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for round in 0..40_u64 {
        for epoch in [0, 1, 2, 3, 4, u16::MAX] {
            for sequence in [0, 1, 2, 3, 5, 63, 64, 65, 200, 1 << 20, (1 << 48) - 1] {
                let length = usize::try_from(round * 7 % 90).unwrap();
                let kind = 20 + u8::try_from(round % 7).unwrap();
                all.push(record(kind, epoch, sequence, &noise(round << 8 | sequence, length)));
            }
        }
        // The unified header of DTLS 1.3, with every combination of its bits.
        for first in 0x20..0x40 {
            let length = usize::try_from(round * 11 % 100).unwrap();
            all.push([&[first][..], &noise(round << 8 | u64::from(first), length)].concat());
        }
    }
    for description in 0..=255 {
        for level in 1..=2 {
            all.push(record(21, 0, u64::from(description), &[level, description]));
        }
    }
    // Every handshake message in the clear, empty, with a claim of more, and long; ChangeCipherSpec, application data.
    for kind in 0..=30 {
        for (sequence, number) in [(0, 0), (7, 0), (7, 3), (900, 9), (901, 0xffff)] {
            let number = u16::to_be_bytes(number);
            let head = |length: u32, part: u32| {
                let (length, part) = (length.to_be_bytes(), part.to_be_bytes());
                [&[kind][..], &length[1..], &number, &[0, 0, 0], &part[1..]].concat()
            };
            all.push(record(22, 0, sequence, &head(0, 0)));
            all.push(record(22, 0, sequence + 1, &[head(60_000, 20), noise(1, 20)].concat()));
            all.push(record(22, 0, sequence + 2, &[head(40, 40), noise(2, 40)].concat()));
        }
    }
    all.push(record(20, 0, 9, &[1]));
    all.push(record(23, 0, 9, b"\x40\x01\0\0"));
    // Two in one datagram.
    all.push([record(22, 0, 9, &noise(3, 12)), record(21, 1, 9, &noise(4, 24))].concat());
    all
}

/// Both ways in which a session may have come about.
fn both() -> [(ClientSecurity, ServerSecurity); 2] {
    let ours = Authority::new();
    [
        (shared("a", "b"), serving(&[("a", "b")])),
        (ClientSecurity::new().trust(ours.anchors()), ServerSecurity::new().certificate(ours.certificate("x", GOOD))),
    ]
}

#[test]
fn nothing_forged_ends_a_session_that_stands_or_is_answered_at_length() {
    for (client, server) in both() {
        let mut trial = Trial::new(&client, &server);
        trial.connect("x");
        trial.run(SECOND);
        assert!(trial.talks("x"));
        let (held, mut came, mut went) = (trial.server.sessions.memory(), 0, 0);
        for (number, datagram) in forged().into_iter().enumerate() {
            let (now, from, to) = (trial.at(), trial.client.address, trial.server.address);
            trial.server.receive(now, from, &datagram);
            came += datagram.len();
            let said = trial.server.outbox.take_all();
            went += said.iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
            trial.client.receive(now, to, &datagram);
            let said = trial.client.outbox.take_all();
            assert!(said.iter().map(|(_, datagram)| datagram.len()).sum::<usize>() <= 100, "{datagram:x?}");
            if number % 50 == 0 {
                trial.run(1_000);
                assert!(trial.talks("x"), "{datagram:x?} {:?} {:?}", trial.client.ended(), trial.server.ended());
            }
        }
        assert!(trial.talks("x"));
        assert!(went <= came, "{went} for {came}");
        assert!(trial.server.sessions.memory() <= held + 4_096, "{} {held}", trial.server.sessions.memory());
        assert_eq!((trial.client.ended(), trial.server.ended()), (vec![], vec![]));
        assert_eq!((trial.client.sessions.established(), trial.server.sessions.established()), (1, 1));
    }
}

#[test]
fn copies_of_all_that_was_said_are_not_heard_again() {
    for (client, server) in both() {
        let mut trial = Trial::new(&client, &server);
        trial.connect("x");
        let mut seen = Vec::new();
        for step in 0..300 {
            trial.run(10_000);
            seen.extend(trial.path.iter().map(|(_, to_server, datagram)| (*to_server, datagram.clone())));
            if step == 150 {
                let Link::Established(server) = trial.link("x") else { panic!("no session") };
                let now = trial.at();
                for _ in 0..5 {
                    assert!(trial.client.sessions.send(now, server, QUESTION, &mut trial.client.outbox));
                }
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(trial.server.messages.len(), 5);
        // A peer that says nothing at all would be taken for one that lost the session.
        assert!(trial.talks("x"));
        for round in 0..200 {
            for (to_server, datagram) in &seen {
                let (now, client, server) = (trial.at(), trial.client.address, trial.server.address);
                match to_server {
                    true => trial.server.receive(now, client, datagram),
                    false => trial.client.receive(now, server, datagram),
                }
            }
            if round % 20 == 0 {
                assert!(trial.talks("x"), "{:?} {:?}", trial.client.ended(), trial.server.ended());
            }
        }
        assert_eq!(trial.server.messages.len(), 5 + 11, "each is heard once");
        assert_eq!((trial.client.ended(), trial.server.ended()), (vec![], vec![]));
        assert_eq!((trial.client.sessions.established(), trial.server.sessions.established()), (1, 1));
    }
}
