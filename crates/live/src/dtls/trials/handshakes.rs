//! Handshakes of those who mean it: by keys, by certificates, over paths that lose datagrams.

use super::*;

#[test]
fn messages_go_both_ways_under_a_pre_shared_key() {
    let mut trial = Trial::new(&shared("sensor", "secret"), &serving(&[("other", "x"), ("sensor", "secret")]));
    assert_eq!(trial.link("here.example"), Link::None);
    trial.connect("here.example");
    assert_eq!(trial.link("here.example"), Link::Handshaking);
    trial.run(SECOND);
    assert!(trial.talks("here.example"));
    let from = trial.server.messages[0].0;
    let named = trial.server.sessions.identity(from).map(|identity| PeerIdentity::clone(identity));
    assert_eq!(named, Some(PeerIdentity::PreSharedKey("sensor".into())));
    // Cookie, its answer, the server's flight, the client's, the last one: six datagrams, and two messages.
    assert_eq!(trial.sent, 8);
    assert_eq!((trial.client.sessions.established(), trial.server.sessions.established()), (1, 1));
}

#[test]
fn a_wrong_key_and_an_unknown_identity_are_told() {
    for security in [shared("sensor", "wrong"), shared("unknown", "secret")] {
        let mut trial = Trial::new(&security, &serving(&[("sensor", "secret")]));
        trial.connect("here.example");
        trial.run(40 * SECOND);
        let told = "the server does not know this identity, or has another key for it; check both";
        assert_eq!(trial.client.ended(), [told]);
        let told = "the client has not the key of the identity that it named, or named an unknown one";
        assert_eq!(trial.server.ended(), [told]);
        assert_eq!(trial.link("here.example"), Link::None);
        assert_eq!(trial.server.sessions.handshakes(), 0);
    }
}

#[test]
fn certificates_are_checked_by_issuer_name_and_time() {
    let (ours, others) = (Authority::new(), Authority::new());
    let client = ClientSecurity::new().trust(ours.anchors());
    for (certificate, name, told) in [
        (ours.certificate("here.example", GOOD), "here.example", None),
        (ours.certificate("there.example", GOOD), "here.example", Some("not for here.example")),
        (ours.certificate("here.example", 2001..2002), "here.example", Some("expired")),
        (ours.certificate("here.example", 2090..2091), "here.example", Some("valid in")),
        (others.certificate("here.example", GOOD), "here.example", Some("issuer that is not trusted")),
    ] {
        let mut trial = Trial::new(&client, &ServerSecurity::new().certificate(certificate));
        trial.connect(name);
        trial.run(5 * SECOND);
        match told {
            None => {
                assert!(trial.talks(name));
                // The session is not for another name, whichever peer is at the address.
                assert!(
                    matches!(trial.link("there.example"), Link::Unfit(why) if why.reason.contains("there.example"))
                );
                let anybody = trial.server.messages[0].0;
                assert_eq!(trial.server.sessions.identity(anybody), None);
            }
            Some(told) => {
                assert!(trial.client.ended()[0].contains(told), "{:?}", trial.client.ended());
                assert_eq!((trial.client.ended().len(), trial.server.sessions.established()), (1, 0));
            }
        }
    }
}

#[test]
fn a_server_can_demand_certificates_of_clients() {
    let (ours, others) = (Authority::new(), Authority::new());
    let server = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let server = server.demand_client_certificates(ours.anchors());
    let client = ClientSecurity::new().trust(ours.anchors());
    for (security, is_good) in [
        (client.clone().certificate(ours.certificate("sensor.example", GOOD)), true),
        (client.clone().certificate(others.certificate("sensor.example", GOOD)), false),
        (client, false),
    ] {
        let mut trial = Trial::new(&security, &server);
        trial.connect("here.example");
        trial.run(45 * SECOND);
        assert_eq!(trial.server.sessions.established(), usize::from(is_good));
        if is_good {
            assert!(trial.talks("here.example"));
            let from = trial.server.messages[0].0;
            let identity = trial.server.sessions.identity(from).map(|identity| PeerIdentity::clone(identity));
            assert!(matches!(identity, Some(PeerIdentity::Certificate(chain)) if chain.len() == 1));
        } else {
            assert!(trial.server.messages.is_empty() && !trial.talks("here.example"));
        }
    }
}

#[test]
fn a_handshake_outlives_the_loss_of_any_datagram() {
    let ours = Authority::new();
    let by_certificate = (
        ClientSecurity::new().trust(ours.anchors()),
        ServerSecurity::new().certificate(ours.certificate("here.example", GOOD)),
    );
    for (client, server) in [(shared("a", "b"), serving(&[("a", "b")])), by_certificate] {
        for lost in 0..8 {
            let mut trial = Trial::new(&client, &server);
            trial.lost = vec![lost];
            trial.connect("here.example");
            trial.run(20 * SECOND);
            assert!(trial.talks("here.example") || lost >= trial.sent - 2, "{lost}: {:?}", trial.client.ended());
        }
    }
}

#[test]
fn nobody_there_is_told_after_the_last_copy() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.lost = (0..100).collect();
    trial.connect("x");
    trial.run(41 * SECOND);
    assert!(trial.client.ended()[0].starts_with("no answer to the handshake"), "{:?}", trial.client.ended());
    // No answer is a matter of time, a refusal is not.
    assert!(matches!(trial.client.events[0].what, SessionChange::Failed { timed_out: true, .. }));
    assert_eq!(trial.sent, 5);
}

/// A state machine that speaks one version alone, on the way to a server. Which of its own datagrams are lost.
fn stands(mut client: dimpl::Dtls, server: &ServerSecurity, lost: &[usize]) -> bool {
    let mut server = Side::new(Keys::Server(ServerKeys::new(server).unwrap()), None, "192.0.2.2:5684");
    let (from, start) = (Address::of("192.0.2.1:40000".parse().unwrap()), crate::clock::Clock::start().origin());
    let (mut room, mut sent) = (vec![0; 4_096], 0);
    for millis in 1..20_000 {
        let now = Instant::from_micros(millis * 1_000);
        client.handle_timeout(start + std::time::Duration::from_millis(millis)).unwrap();
        loop {
            match client.poll_output(&mut room) {
                dimpl::Output::Packet(datagram) => {
                    if !lost.contains(&sent) {
                        server.receive(now, from, datagram);
                    }
                    sent += 1;
                }
                dimpl::Output::Connected => return true,
                dimpl::Output::Timeout(_) => break,
                _ => {}
            }
        }
        server.sessions.wake(now, &mut server.outbox);
        for (_, datagram) in server.outbox.take_all() {
            client.handle_packet(&datagram).unwrap();
        }
    }
    false
}

#[test]
fn clients_of_one_version_alone_bring_their_cookies_back_too() {
    let ours = Authority::new();
    let security = serving(&[("a", "b")]).certificate(ours.certificate("here.example", GOOD));
    let pair = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::default().self_signed(&pair).unwrap().der().to_vec();
    let own = dimpl::DtlsCertificate { certificate, private_key: pair.serialize_der() };
    // The first hello, or the second, or both once: then records have other numbers than their messages.
    for lost in [&[][..], &[0], &[1], &[0, 2]] {
        for mtu in [1_150, 400] {
            let config = dimpl::Config::builder().mtu(mtu).build().map(std::sync::Arc::new).unwrap();
            let now = crate::clock::Clock::start().origin();
            let mut of_1_2 = dimpl::Dtls::new_12(config.clone(), own.clone(), now);
            of_1_2.set_active(true);
            assert!(stands(of_1_2, &security, lost), "1.2, {lost:?}, {mtu}");
            let mut of_1_3 = dimpl::Dtls::new_13(config, own.clone(), now);
            of_1_3.set_active(true);
            assert!(stands(of_1_3, &security, lost), "1.3, {lost:?}, {mtu}");
        }
    }
}

/// A hello of either side without the extension of the extended master secret, which is what old libraries send.
fn without_master_secret(datagram: &[u8], is_client: bool) -> Vec<u8> {
    const EXTENSION: [u8; 4] = [0, 23, 0, 0];
    /// Record, message, version, random value.
    const SESSION: usize = 13 + 12 + 2 + 32;
    let mut hello = datagram.to_vec();
    let short = |hello: &[u8], at: usize| at + 1 + usize::from(hello[at]);
    let long = |hello: &[u8], at: usize| at + 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    let behind_session = short(&hello, SESSION);
    // Cookie, suites and compression of a client; suite and compression of a server.
    let list = match is_client {
        true => {
            let behind_suites = long(&hello, short(&hello, behind_session));
            short(&hello, behind_suites)
        }
        false => behind_session + 3,
    };
    let at = list + 2 + hello[list + 2..].windows(4).position(|four| four == EXTENSION).expect("the extension");
    hello.drain(at..at + 4);
    for length in [11, 15, 23, list] {
        let shorter = u16::from_be_bytes([hello[length], hello[length + 1]]) - 4;
        hello[length..length + 2].copy_from_slice(&shorter.to_be_bytes());
    }
    hello
}

#[test]
fn a_client_without_extended_master_secret_gets_an_alert_that_it_takes_for_one() {
    let mut trial = Trial::new(&shared("sensor", "secret"), &serving(&[("sensor", "secret")]));
    trial.connect("here.example");
    let (now, client, server) = (trial.at(), trial.client.address, trial.server.address);
    let mut answers = Vec::new();
    for _ in 0..2 {
        for (_, hello) in trial.client.outbox.take_all() {
            trial.server.receive(now, client, &without_master_secret(&hello, true));
        }
        answers = trial.server.outbox.take_all();
        answers.iter().for_each(|(_, answer)| trial.client.receive(now, server, answer));
    }
    let [(_, alert)] = &answers[..] else { panic!("{answers:?}") };
    // handshake_failure, whose record does not have the number of the one that brought the cookie.
    assert_eq!((alert[0], &alert[13..]), (21, &[2, 40][..]));
    assert_ne!(alert[5..11], [0; 6]);
    trial.run(SECOND);
    assert!(trial.server.ended()[0].contains("the client does not support the extended master secret"));
    assert_eq!((trial.client.ended().len(), trial.server.sessions.handshakes()), (1, 0));
}

#[test]
fn a_server_without_extended_master_secret_is_told_as_that() {
    let mut trial = Trial::new(&shared("sensor", "secret"), &serving(&[("sensor", "secret")]));
    trial.connect("here.example");
    let (now, client, server) = (trial.at(), trial.client.address, trial.server.address);
    for _ in 0..2 {
        for (_, datagram) in trial.client.outbox.take_all() {
            trial.server.receive(now, client, &datagram);
        }
        for (_, datagram) in trial.server.outbox.take_all() {
            // A ServerHello, or the cookie before it.
            let is_hello = datagram[13] == 2;
            let sent = if is_hello { without_master_secret(&datagram, false) } else { datagram };
            trial.client.receive(now, server, &sent);
        }
    }
    let alerts = trial.client.outbox.take_all();
    assert!(alerts.iter().any(|(_, alert)| alert[0] == 21 && alert[13..] == [2, 40]), "{alerts:?}");
    trial.run(SECOND);
    let told = "the server does not support the extended master secret (RFC 7627)";
    assert!(trial.client.ended()[0].contains(told), "{:?}", trial.client.ended());
}
