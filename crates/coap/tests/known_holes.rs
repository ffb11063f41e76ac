//! What has gone wrong in other implementations of CoAP, one test for each class of fault and for each hole that was
//! published and that this crate could have. Holes of DTLS and OSCORE have no place here.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may fail loudly"
)]

use std::{cell::Cell, fmt::Debug, hash::Hash};

use millpond_coap::block::{Block, BlockSize, slice};
use millpond_coap::message::{Code, Fault, Kind, Message, MessageId, Token, WriteError, Writer, number};
use millpond_coap::stream::{Connection, Options as Settings};
use millpond_coap::transfer::{self, Answer, CoapStack};
use millpond_coap::{Config, Endpoint, Event, IdGenerator, Outgoing, Output, RequestId};
use millpond_control::{ChanceSeed, Instant, Preset};

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn endpoint<A: Copy + Eq + Hash + Debug>(change: impl FnOnce(&mut Config)) -> Endpoint<A> {
    let mut config = Config::default();
    change(&mut config);
    Endpoint::new(config, Preset::RFC7252.build(), ChanceSeed::new(1), 0, IdGenerator::counted()).unwrap()
}

/// What an endpoint sends, and the requests that it hands up.
fn drain<A: Copy + Eq + Hash + Debug>(endpoint: &mut Endpoint<A>, now: u64) -> (Vec<Vec<u8>>, Vec<RequestId>) {
    let (mut sent, mut requests) = (Vec::new(), Vec::new());
    loop {
        match endpoint.poll(at(now)) {
            Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
            Output::Event(Event::Request { id, .. }) => requests.push(id),
            Output::Event(_) => {}
            Output::Sleep(..) | Output::Idle => return (sent, requests),
        }
    }
}

/// A server that answers every request with a word.
fn serve<A: Copy + Eq + Hash + Debug>(server: &mut Endpoint<A>, now: u64, from: A, datagram: &[u8]) -> Vec<Vec<u8>> {
    server.receive(at(now), from, datagram);
    let (mut sent, requests) = drain(server, now);
    for id in requests {
        let response = Outgoing { kind: Kind::NonConfirmable, ..Outgoing::confirmable(Code::CONTENT, &[]) };
        let _full = server.respond(at(now), id, &response.with_payload(b"word"));
        sent.extend(drain(server, now).0);
    }
    sent
}

fn fault(datagram: &[u8]) -> Fault {
    Message::parse(datagram).unwrap_err().fault
}

mod classes {
    use super::*;

    #[test]
    fn option_deltas_and_lengths_that_wrap_past_16_bits() {
        assert_eq!(fault(b"\x40\x01\0\x01\xe0\xff\xff"), Fault::NumberOverflow);
        assert_eq!(fault(b"\x40\x01\0\x01\xe0\xfe\xf2\x10"), Fault::NumberOverflow);
        assert_eq!(fault(&[b"\x40\x01\0\x01\x0e\xff\xff", &[0; 400][..]].concat()), Fault::ValueTruncated);
    }

    #[test]
    fn token_lengths_9_to_15_and_extended_tokens_on_short_buffers() {
        for length in 9..=15_u8 {
            for bytes in 0..20 {
                let datagram = [&[0x40 | length, 1, 0, 1], &vec![0xff; bytes][..]].concat();
                assert_eq!(fault(&datagram), Fault::TokenLength(length));
            }
        }
    }

    #[test]
    fn options_without_value() {
        let datagram = [b"\x40\x01\0\x01", &[0; 1_100][..]].concat();
        assert_eq!(Message::parse(&datagram).unwrap().options().count(), 1_100);
    }

    #[test]
    fn payload_markers_without_payload() {
        assert_eq!(fault(b"\x40\x01\0\x01\xff"), Fault::PayloadMissing);
    }

    #[test]
    fn empty_messages_that_are_not_empty() {
        for datagram in [&b"\x41\0\0\x01t"[..], b"\x60\0\0\x01\xff!", b"\x70\0\0\x01\0"] {
            assert_eq!(fault(datagram), Fault::NotEmpty);
        }
    }

    #[test]
    fn a_reset_that_is_answered_with_a_reset() {
        let mut one: Endpoint<u8> = endpoint(|_| {});
        for datagram in
            [&b"\x70\0\0\x01"[..], b"\x70\0\0\x01\xff!", b"\x71\0\0\x01t", b"\x70\x45\0\x01", b"\x70\x01\0\x01"]
        {
            assert_eq!(serve(&mut one, 0, 1, datagram), Vec::<Vec<u8>>::new(), "{datagram:x?}");
        }
        // Nor is an acknowledgement answered with anything.
        assert_eq!(serve(&mut one, 0, 1, b"\x60\0\0\x01"), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn a_block_number_times_its_size() {
        for (value, bert) in [(&b"\xff\xff\xf6"[..], false), (b"\xff\xff\xf7", true), (b"\xff\xff\xfe", false)] {
            let block = Block::read(value, bert).unwrap();
            assert_eq!(block.number, 0xf_ffff);
            assert!(slice(b"short", Some(block), BlockSize::B1024).is_err(), "there is no such block");
        }
        // A server that is asked for it, and one that is sent it.
        let mut stack = stack();
        for (id, option) in [(1_u8, number::BLOCK2), (2, number::BLOCK1)] {
            let mut datagram = Vec::new();
            let mut writer =
                Writer::start(&mut datagram, Kind::Confirmable, Code::PUT, MessageId(id.into()), Token::EMPTY);
            writer.option(option, b"\xff\xff\xf6").unwrap();
            writer.payload(b"x").unwrap();
            writer.finish().unwrap();
            let code = ask(&mut stack, &datagram);
            assert!(code.is_some_and(|code| code.class() == 4), "{code:?}");
        }
    }

    fn stack() -> CoapStack<Endpoint<u8>> {
        CoapStack::new(endpoint(|_| {}), transfer::Config::default(), ChanceSeed::new(1)).unwrap()
    }

    /// The code that a stack with a short resource answers with.
    fn ask(stack: &mut CoapStack<Endpoint<u8>>, datagram: &[u8]) -> Option<Code> {
        stack.receive(at(0), 1, datagram);
        let (mut code, mut asked) = (None, None);
        loop {
            match stack.poll(at(0)) {
                Output::Transmit(transmit) => code = Some(Message::parse(transmit.bytes).unwrap().code),
                Output::Event(transfer::Event::Request { id, .. }) => asked = Some(id),
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(..) | Output::Idle => match asked.take() {
                    Some(id) => stack.answer(at(0), id, &Answer::new(Code::CONTENT, &[]).with_body(b"short")).unwrap(),
                    None => return code,
                },
            }
        }
    }

    /// Every kind of message, each from another peer, with another token and another message ID.
    #[test]
    fn state_for_each_peer_token_and_message_id() {
        const LIMIT: usize = 1 << 20;
        let mut server: Endpoint<u32> = endpoint(|config| {
            config.limits.bytes = LIMIT;
            config.limits.duplicate_bytes = LIMIT / 4;
            config.limits.peers = 1_000;
        });
        let heads = [0x44_u8, 0x54, 0x44, 0x54, 0x64, 0x40, 0x70];
        let codes = [1_u8, 1, 0x45, 0x45, 0x45, 0, 0];
        for number in 0..400_000_u32 {
            let kind = number as usize % heads.len();
            let [a, b, c, d] = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
            let mut datagram = vec![heads[kind], codes[kind], a, b];
            if codes[kind] != 0 {
                datagram.extend([a, b, c, d]);
            }
            // From few peers with many tokens, and from many peers.
            let from = if number % 2 == 0 { number } else { number % 10 };
            serve(&mut server, u64::from(number) * 10, from, &datagram);
            assert!(server.memory() <= LIMIT, "{} bytes", server.memory());
        }
        assert!(server.peers() <= 1_000);
    }

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// An address that counts how often it is held against another.
    #[allow(clippy::derived_hash_with_manual_eq, reason = "equal as derived, and counted")]
    #[derive(Clone, Copy, Debug, Eq, Hash)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    /// Eighty times as many known peers make no datagram eighty times as dear.
    #[test]
    fn walks_over_all_peers() {
        let mut dearest = Vec::new();
        for known in [100_u32, 8_000] {
            let mut server: Endpoint<Counted> = endpoint(|_| {});
            let request = |server: &mut Endpoint<Counted>, from: u32, id: u16| {
                let [high, low] = id.to_be_bytes();
                let before = COMPARED.get();
                let sent = serve(server, u64::from(from) + u64::from(id), Counted(from), &[0x51, 1, high, low, 7]);
                assert_eq!(sent.len(), 1);
                COMPARED.get() - before
            };
            for from in 0..known {
                request(&mut server, from, 0);
            }
            assert_eq!(server.peers(), known);
            dearest.push((0..known).map(|from| request(&mut server, from, 1)).max().unwrap());
        }
        assert!(dearest[1] <= dearest[0] + 4 && dearest[1] <= 16, "comparisons for a datagram: {dearest:?}");
    }

    /// A peer whose answers are under way is served while others flood.
    #[test]
    fn a_flood_that_drives_known_peers_out() {
        let mut client: Endpoint<u32> = endpoint(|config| config.limits.bytes = 256 << 10);
        let get = Outgoing::confirmable(Code::GET, &[]);
        client.request(at(0), 7, &get).unwrap();
        let request = drain(&mut client, 0).0.remove(0);
        for number in 0..100_000_u32 {
            let [a, b, c, d] = number.to_be_bytes();
            serve(&mut client, u64::from(number), 1_000 + number, &[0x52, 1, c, d, a, b]);
            serve(&mut client, u64::from(number), 1_000 + number, &[0x42, 0x45, c, d, a, b]);
        }
        let mut answer = request;
        answer[0] |= 0x20;
        answer[1] = Code::CONTENT.to_byte();
        client.receive(at(200_000), 7, &answer);
        drain(&mut client, 200_000);
        assert_eq!(client.counters().answered, 1);
    }
}

mod published {
    use super::*;

    /// libcoap: a malformed message that was handed over to be sent overran a buffer.
    #[test]
    fn cve_2023_30362_what_is_malformed_is_not_sent() {
        let mut client: Endpoint<u8> = endpoint(|_| {});
        let long = vec![b'x'; 70_000];
        for options in [&[(11_u16, &b"b"[..]), (3, b"a")][..], &[(11, &long[..])], &[(11, &long[..1_200])]] {
            let refused = client.request(at(0), 1, &Outgoing::confirmable(Code::GET, options));
            assert!(matches!(refused, Err(millpond_coap::Refused::Message(_))), "{refused:?}");
        }
        let mut buffer = Vec::new();
        let mut writer =
            Writer::start(&mut buffer, Kind::Confirmable, Code::GET, MessageId(1), Token::EMPTY).within(20);
        assert!(matches!(writer.option(11, &long[..30]), Err(WriteError::OverLimit { .. })));
        assert_eq!((drain(&mut client, 0).0.len(), client.exchanges()), (0, 0));
    }

    /// libcoap: names of hosts of more than 255 bytes. Uri-Host has at most 255 (RFC 7252 §5.10), and here it is a value
    /// like any other.
    #[test]
    fn cve_2025_34468_a_host_name_of_more_than_255_bytes() {
        let mut server: Endpoint<u8> = endpoint(|_| {});
        let name = [b"\x40\x01\0\x01\x3e\0\x10", &[b'a'; 285][..]].concat();
        assert_eq!(Message::parse(&name).unwrap().option(number::URI_HOST).map(<[u8]>::len), Some(285));
        assert_eq!(serve(&mut server, 0, 1, &name).len(), 1);
    }

    /// RIOT: the two bytes that announce the length of an extended token were read beyond the datagram.
    #[test]
    fn ghsa_p9hp_2jxm_6rqp_extended_token_lengths_beyond_the_end() {
        for datagram in [&b"\x4d\x01\0\x01"[..], b"\x4e\x01\0\x01", b"\x4e\x01\0\x01\xff", b"\x4e\x01\0\x01\xff\xff"] {
            assert!(matches!(fault(datagram), Fault::TokenLength(13 | 14)));
        }
        // Over TCP as well.
        for frame in [&b"\x0d\x01"[..], b"\x0e\x01", b"\x0e\x01\xff\xff", b"\x0f\x01"] {
            let mut server = Connection::new(Settings::default());
            server.receive(at(0), b"\0\xe1");
            server.receive(at(0), frame);
            let mut is_closed = false;
            while !is_closed {
                is_closed = match server.poll(at(0)) {
                    Output::Close(_) => true,
                    Output::Sleep(..) | Output::Idle => panic!("{frame:x?} is taken"),
                    _ => false,
                };
            }
        }
    }

    /// Mbed CoAP: options were read beyond the end of the datagram.
    #[test]
    fn cve_2020_12883_options_beyond_the_end() {
        let whole = b"\x40\x01\0\x01\xd5\x01hello\xee\0\0\0\x02";
        for end in 5..whole.len() {
            if let Ok(message) = Message::parse(&whole[..end]) {
                assert!(message.options().all(|option| option.value.len() <= end));
            }
        }
    }

    /// Mbed CoAP: the sum of deltas went round.
    #[test]
    fn cve_2020_12887_option_numbers_that_go_round() {
        let datagram = [b"\x40\x01\0\x01\xe0\xfe\xf2", &[0x10; 300][..]].concat();
        assert_eq!(fault(&datagram), Fault::NumberOverflow);
    }

    /// Mbed OS: a zero-length option never ended the loop.
    #[test]
    fn mbed_os_12929_a_zero_length_option_ends() {
        for byte in [0x00_u8, 0x10, 0x20, 0xc0] {
            let datagram = [b"\x40\x01\0\x01", &[byte; 500][..]].concat();
            assert_eq!(Message::parse(&datagram).unwrap().options().count(), 500);
        }
    }

    /// CoAPthon3, FreeCoAP, microcoap: one datagram stopped the server, whether it raised, overflowed or wrote beyond.
    #[test]
    fn cve_2018_12679_no_datagram_stops_the_server() {
        let mut server: Endpoint<u32> = endpoint(|_| {});
        let valid = b"\x44\x01\0\x01toke\x35h.org\x80\x05hello\xd2\x14ab\xff{}";
        let mut number = 0_u32;
        for place in 0..valid.len() {
            for value in 0..=255_u8 {
                for end in [place + 1, valid.len()] {
                    let mut datagram = valid.to_vec();
                    datagram[place] = value;
                    number += 1;
                    serve(&mut server, number.into(), number, &datagram[..end]);
                }
            }
        }
        let sent = serve(&mut server, u64::from(number) + 1, 0, valid);
        assert_eq!(Message::parse(&sent[0]).unwrap().payload(), b"word");
    }

    /// RIOT, Contiki-NG, libcoap, coap-rs: a copy of a request ran its handler once more.
    #[test]
    fn contiki_ng_291_a_copy_of_a_request_is_not_handled_again() {
        let mut server: Endpoint<u8> = endpoint(|_| {});
        let first = serve(&mut server, 0, 1, b"\x40\x02\0\x01");
        assert_eq!((first.len(), server.counters().requests), (1, 1));
        assert_eq!(serve(&mut server, 1, 1, b"\x40\x02\0\x01"), first);
        assert_eq!(server.counters().requests, 1);
    }

    /// Californium, aiocoap, node-coap, go-coap: what was remembered of requests grew for 247 s, without bound.
    #[test]
    fn californium_2167_aiocoap_183_go_coap_586_what_is_remembered_of_requests_is_bounded() {
        let mut server: Endpoint<u32> = endpoint(|config| config.limits.duplicate_bytes = 1 << 20);
        for number in 0..200_000_u32 {
            let [_, _, high, low] = number.to_be_bytes();
            assert_eq!(serve(&mut server, number.into(), number % 500, &[0x40, 1, high, low]).len(), 1);
        }
        assert!(server.memory() < 2 << 20, "{} bytes", server.memory());
    }

    /// aiocoap: a server that was asked more than it could stopped answering for ever.
    #[test]
    fn aiocoap_399_a_server_answers_again_after_a_flood() {
        let mut server: Endpoint<u32> = endpoint(|config| config.limits.requests = 100);
        let mut held = Vec::new();
        for number in 0..10_000_u32 {
            server.receive(at(number.into()), number, b"\x40\x01\0\x01");
            held.extend(drain(&mut server, number.into()).1);
        }
        assert_eq!(held.len(), 100);
        for id in held {
            server.respond(at(20_000), id, &Outgoing::confirmable(Code::CONTENT, &[])).unwrap();
            drain(&mut server, 20_000);
        }
        assert_eq!(serve(&mut server, 30_000, 3, b"\x40\x01\0\x02").len(), 1);
    }

    /// go-coap: something was left of every remote that ever asked.
    #[test]
    fn go_coap_311_nothing_is_left_of_who_asked_once() {
        let mut server: Endpoint<u32> = endpoint(|_| {});
        serve(&mut server, 0, 0, b"\x40\x01\0\x01");
        for number in 1..100_000_u32 {
            serve(&mut server, number.into(), number, b"\x40\x01\0\x01");
        }
        assert_eq!(server.peers(), 0);
        // An hour later all is forgotten but the room that it took.
        let before = server.memory();
        for number in 0..100_000_u32 {
            serve(&mut server, 3_600_000_000 + u64::from(number), 1_000_000 + number, b"\x40\x01\0\x01");
        }
        assert!(server.memory() <= before, "{} and then {} bytes", before, server.memory());
    }
}
