//! Hellos from forged addresses, in the name of nobody and of clients.

use super::*;

#[test]
fn a_forged_client_hello_does_not_end_what_stands() {
    let mut trial = Trial::new(&shared("a", "b"), &serving(&[("a", "b")]));
    trial.connect("x");
    let hello = trial.client.outbox.take_all().remove(0).1;
    trial.client.outbox.push(trial.server.address, &hello);
    trial.run(SECOND);
    assert!(trial.talks("x"));
    let (now, client) = (trial.at(), trial.client.address);
    for n in 0..100 {
        let mut forged = hello.clone();
        // Its random value.
        forged[30] = n;
        trial.server.receive(now, client, &forged);
    }
    trial.run(SECOND);
    assert!(trial.talks("x"));
    assert_eq!(trial.server.sessions.established(), 1);
    trial.run(60 * SECOND);
    assert!(trial.talks("x") && trial.server.sessions.handshakes() == 0);
}

/// The same hello with another random value.
fn with_random(hello: &[u8], random: u64) -> Vec<u8> {
    let mut forged = hello.to_vec();
    forged[27..35].copy_from_slice(&random.to_be_bytes());
    forged
}

#[test]
fn forged_hellos_beside_honest_handshakes_stop_none_of_them() {
    let ours = Authority::new();
    let by_certificate = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let any = ClientSecurity::new().trust(ours.anchors());
    let key = shared("a", "b");
    for (client, server) in [(&key, &serving(&[("a", "b")])), (&any, &by_certificate)] {
        let limits = Limits::of(&Keys::Server(ServerKeys::new(server).unwrap()));
        let honest = (0..10).map(|n| (client.clone(), format!("198.51.100.{n}:40000")));
        let mut crowd = Crowd::new(honest, server, limits);
        let hello = hello(client);
        (0..10).for_each(|n| crowd.connect(n));
        // 1,024 a round trip of 0.8 s, from as many addresses.
        let mut count = 0_u32;
        crowd.run(12 * SECOND, |now, _| {
            let due = u32::try_from(now * 1_024 / 800_000).unwrap();
            let from = |n: u32| SocketAddr::new(std::net::Ipv4Addr::from(0x0a00_0000 + n % 4_096).into(), 7);
            let forged = (count..due).map(|n| (Address::of(from(n)), with_random(&hello, u64::from(n)))).collect();
            count = due;
            forged
        });
        assert!(count > 15_000);
        assert_eq!((crowd.established(), crowd.server.sessions.established()), (10, 10));
        assert_eq!(crowd.server.sessions.handshakes(), 0);
    }
}

#[test]
fn hellos_forged_in_the_name_of_a_client_stop_not_its_handshake() {
    let ours = Authority::new();
    let by_certificate = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let any = ClientSecurity::new().trust(ours.anchors());
    let key = shared("a", "b");
    for (client, server) in [(&key, &serving(&[("a", "b")])), (&any, &by_certificate)] {
        let limits = Limits::of(&Keys::Server(ServerKeys::new(server).unwrap()));
        let mut crowd = Crowd::new([(client.clone(), "198.51.100.1:40000".into())], server, limits);
        let hello = hello(client);
        crowd.connect(0);
        // Before the cookie has left, while it is under way, and after it came back.
        crowd.run(12 * SECOND, |now, clients| match now % 50_000 {
            1..=1_000 => vec![(clients[0].address, with_random(&hello, now))],
            _ => Vec::new(),
        });
        assert_eq!((crowd.established(), crowd.server.sessions.established()), (1, 1));
    }
}

/// A datagram of somebody who begins a handshake, with a random value of its own.
fn hello(security: &ClientSecurity) -> Vec<u8> {
    let mut client = Side::new(Keys::Client(ClientKeys::new(security).unwrap()), None, "192.0.2.1:40000");
    let to = Address::of("192.0.2.2:5684".parse().unwrap());
    client.sessions.connect(Instant::from_micros(1), to, ServerName::try_from("x").unwrap(), &mut client.outbox);
    client.outbox.take_all().remove(0).1
}

#[test]
fn a_flood_from_forged_addresses_leaves_nothing_and_gets_no_more_back_than_it_brought() {
    let ours = Authority::new();
    let by_certificate = ServerSecurity::new().certificate(ours.certificate("here.example", GOOD));
    let by_key = serving(&[("a", "b")]);
    let any = ClientSecurity::new().trust(ours.anchors());
    for (security, hello) in [(&by_key, hello(&shared("a", "b"))), (&by_certificate, hello(&any))] {
        let mut server = Side::new(Keys::Server(ServerKeys::new(security).unwrap()), None, "192.0.2.2:5684");
        let (mut came, mut went, mut sent) = (0, 0, 0);
        for n in 0..3_000_u32 {
            let now = Instant::from_micros(1 + u64::from(n) * 1_000);
            let from = Address::of(SocketAddr::new(std::net::Ipv4Addr::from(0x0a00_0000 + n / 2).into(), 7));
            came += hello.len();
            server.receive(now, from, &hello);
            server.sessions.wake(now, &mut server.outbox);
            let answers = server.outbox.take_all();
            sent += answers.len();
            went += answers.iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
            // Before a cookie comes back nobody is known.
            assert_eq!((server.sessions.handshakes(), server.sessions.next()), (0, None));
        }
        assert_eq!(sent, 3_000, "each is answered once");
        for second in 0..120 {
            server.sessions.wake(Instant::from_micros(second * SECOND), &mut server.outbox);
            assert!(server.outbox.take_all().is_empty(), "nothing is said twice");
        }
        assert!(went <= came, "{went} for {came}");
    }
}
