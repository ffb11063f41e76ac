//! What a server says back of the copy that it answers.

use millpond_coap::Outgoing;
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer};
use millpond_control::Naming;

use crate::naming::{carried, replies};
use crate::pair::{HELLO, Pair, SECOND, Side};

/// A response that has no room for the echo goes without it, and the client learns that there will be none.
#[test]
fn an_echo_gives_way_to_the_response() {
    let mut pair = Pair::usual().naming(Naming::Count);
    let mut ask = |payload: usize| {
        pair.think = None;
        pair.get();
        pair.run_until(pair.now + SECOND / 10);
        let response = Outgoing::confirmable(Code::CONTENT, &[]);
        let payload = vec![b'.'; payload];
        pair.server.respond(pair.now(), pair.handed.unwrap(), &response.with_payload(&payload)).unwrap();
        pair.drain(Side::Server);
        let sent = pair.datagrams.last().unwrap().clone();
        pair.run_until(pair.now + SECOND / 10);
        (sent.len(), carried(&sent, Naming::Count))
    };
    // Header, token and marker take 9 bytes, the echo 4.
    assert_eq!(ask(1_152 - 13), (1_152, Some(vec![255])));
    assert_eq!(ask(1_152 - 11), (1_150, None), "an empty echo takes three bytes");
    assert_eq!(ask(1_152 - 12), (1_152, Some(vec![])), "it is known to be known");
}

/// The server's side alone: what it echoes of this request, and to a copy of it.
fn echoed(kind: Kind, options: &[(u16, &[u8])], think: u64) -> Vec<Vec<(u16, Vec<u8>)>> {
    let mut pair = Pair::usual().thinking(think);
    pair.answer = kind;
    let mut request = Vec::new();
    let mut writer = Writer::start(&mut request, kind, Code::GET, MessageId(7), Token::EMPTY);
    for (number, value) in HELLO.iter().chain(options) {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    pair.lose = (0..100).collect();
    pair.inject(Side::Server, &request);
    pair.run_until(4 * SECOND / 10);
    pair.inject(Side::Server, &request);
    pair.run_until(2 * SECOND);
    let of = |bytes: &Vec<u8>| {
        let message = Message::parse(bytes).unwrap();
        message.options().map(|option| (option.number, option.value.to_vec())).collect()
    };
    pair.datagrams.iter().map(of).collect()
}

#[test]
fn a_server_echoes_what_it_knows_unmodified() {
    let asked: [&[(u16, &[u8])]; 8] = [
        &[(65_020, &[])],
        &[(65_020, &[255])],
        &[(65_020, &[0])],
        &[(65_052, &[])],
        &[(65_052, &[9])],
        &[(65_084, &[0, 0, 0, 0])],
        &[(65_020, &[3]), (65_052, &[1]), (65_084, &[1, 2, 3, 4])],
        &[],
    ];
    for options in asked {
        let expected: Vec<(u16, Vec<u8>)> = options.iter().map(|(number, value)| (*number, value.to_vec())).collect();
        // The stored reply to the copy is the same.
        assert_eq!(echoed(Kind::Confirmable, options, 0), [expected.clone(), expected], "{options:?}");
    }
}

#[test]
fn a_server_echoes_nothing_else() {
    let none: Vec<(u16, Vec<u8>)> = Vec::new();
    let unknown: [&[(u16, &[u8])]; 5] = [
        // Lengths that the options do not have make them unknown ones.
        &[(65_020, &[0, 1])],
        &[(65_052, &[0, 1])],
        &[(65_084, &[0, 0, 0])],
        &[(65_084, &[0, 0, 0, 0, 0])],
        // And this one is.
        &[(65_116, &[1])],
    ];
    for options in unknown {
        assert_eq!(echoed(Kind::Confirmable, options, 0), [none.clone(), none.clone()], "{options:?}");
    }
    // What comes again is not looked at.
    let twice: &[(u16, &[u8])] = &[(65_020, &[1]), (65_020, &[2])];
    assert_eq!(echoed(Kind::Confirmable, twice, 0), vec![vec![(65_020, vec![1])]; 2]);
    // No acknowledgement has the response: it is non-confirmable, or separate.
    assert_eq!(echoed(Kind::NonConfirmable, &[(65_020, &[1])], 0), vec![none.clone()]);
    assert_eq!(echoed(Kind::Confirmable, &[(65_020, &[1])], SECOND), vec![none; 2]);
}

/// What one request asked is not answered to the next one in its place.
#[test]
fn an_echo_ends_with_its_request() {
    let mut pair = Pair::usual().losing(0..100);
    pair.inject(Side::Server, b"\x40\x01\0\x01\xb5hello\xe1\xfc\xe4\x07");
    pair.run_until(SECOND / 10);
    pair.inject(Side::Server, b"\x40\x01\0\x02\xb5hello");
    pair.run_until(SECOND);
    let carried = [0, 1].map(|sent| carried(&pair.datagrams[sent], Naming::Count));
    assert_eq!(carried, [Some(vec![7]), None]);
}

/// The application's own word for an option stands.
#[test]
fn an_application_may_say_something_else() {
    let mut pair = Pair::usual().losing(0..100);
    pair.think = None;
    pair.inject(Side::Server, b"\x40\x01\0\x01\xb5hello\xe1\xfc\xe4\x07");
    let response = Outgoing::confirmable(Code::CONTENT, &[(65_020, b"mine")]);
    pair.server.respond(pair.now(), pair.handed.unwrap(), &response).unwrap();
    pair.drain(Side::Server);
    assert_eq!(carried(&pair.datagrams[0], Naming::Count), Some(b"mine".to_vec()));
}

/// Numbers are a matter of configuration on both sides.
#[test]
fn other_numbers_do_as_well() {
    let mut pair = Pair::new(|_, config| config.naming.count.number = 65_532).naming(Naming::Count).losing([1]);
    pair.get();
    pair.run();
    assert_eq!(replies(&mut pair), ["Piggybacked after 2.6 s, copy 0: at most 2.6 s, 2 copies"]);
    assert_eq!(Message::parse(&pair.datagrams[2]).unwrap().option(65_532), Some(&[1][..]));
}
