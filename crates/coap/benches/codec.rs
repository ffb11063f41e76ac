//! Reading and writing one message, beside `coap-lite` in the same run.
//!
//! Messages: the request (10 bytes) and the response (66 bytes) of study `anrw18`, and a GET of 71 bytes with a token
//! and four options. `walk` reads a parsed message's options and payload, which is what a server does to find its
//! resource; `coap-lite` has done that work when it parses.

#![allow(missing_docs, clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a benchmark may fail loudly")]

use std::hint::black_box;

use coap_lite::{CoapOption, Packet};
use criterion::{Criterion, criterion_group, criterion_main};
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};

struct Case {
    name: &'static str,
    kind: Kind,
    code: Code,
    token: Token,
    options: &'static [(u16, &'static [u8])],
    payload: &'static [u8],
    length: usize,
}

impl Case {
    fn write(&self, buffer: &mut Vec<u8>) -> usize {
        let mut writer = Writer::start(buffer, self.kind, self.code, MessageId(0x1234), self.token);
        for (number, value) in self.options {
            writer.option(*number, value).unwrap();
        }
        writer.payload(self.payload).unwrap();
        writer.finish().unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        assert_eq!(bytes.len(), self.length);
        bytes
    }

    /// The same message in the other codec's form.
    fn packet(&self) -> Packet {
        let packet = Packet::from_bytes(&self.bytes()).unwrap();
        assert_eq!(packet.to_bytes().unwrap(), self.bytes());
        packet
    }
}

fn cases() -> [Case; 3] {
    [
        Case {
            name: "request 10 B",
            kind: Kind::Confirmable,
            code: Code::GET,
            token: Token::EMPTY,
            options: &[(number::URI_PATH, b"hello")],
            payload: &[],
            length: 10,
        },
        Case {
            name: "response 66 B",
            kind: Kind::Acknowledgement,
            code: Code::CONTENT,
            token: Token::EMPTY,
            options: &[(number::CONTENT_FORMAT, b"")],
            payload: &[b'x'; 60],
            length: 66,
        },
        Case {
            name: "four options 71 B",
            kind: Kind::Confirmable,
            code: Code::GET,
            token: Token::new(b"\x01\x02\x03\x04").unwrap(),
            options: &[
                (number::URI_HOST, b"sensors.example.org"),
                (number::URI_PATH, b"temperature"),
                (number::URI_PATH, b"living-room"),
                (number::URI_QUERY, b"unit=celsius&n=9"),
            ],
            payload: &[],
            length: 71,
        },
    ]
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for case in cases() {
        let bytes = case.bytes();
        group.bench_function(format!("{}/millpond", case.name), |bencher| {
            bencher.iter(|| Message::parse(black_box(&bytes)).unwrap());
        });
        group.bench_function(format!("{}/coap-lite", case.name), |bencher| {
            bencher.iter(|| Packet::from_bytes(black_box(&bytes)).unwrap());
        });
    }
}

fn walk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("walk");
    for case in cases() {
        let bytes = case.bytes();
        let message = Message::parse(&bytes).unwrap();
        group.bench_function(format!("{}/millpond", case.name), |bencher| {
            bencher.iter(|| {
                let message = black_box(&message);
                message.options().fold(message.payload().len(), |sum, option| sum + option.value.len())
            });
        });
        let packet = case.packet();
        group.bench_function(format!("{}/coap-lite", case.name), |bencher| {
            bencher.iter(|| {
                let packet = black_box(&packet);
                let values = packet.options().flat_map(|(_, values)| values);
                values.fold(packet.payload.len(), |sum, value| sum + value.len())
            });
        });
    }
}

fn write(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write");
    for case in cases() {
        let mut buffer = Vec::with_capacity(128);
        group.bench_function(format!("{}/millpond", case.name), |bencher| {
            bencher.iter(|| {
                buffer.clear();
                black_box(&case).write(&mut buffer)
            });
        });
        // From fields, as ours, and from a message that is already built.
        group.bench_function(format!("{}/coap-lite", case.name), |bencher| {
            bencher.iter(|| {
                let case = black_box(&case);
                let mut packet = Packet::new();
                packet.header.set_type(coap_lite::MessageType::Confirmable);
                packet.header.code = case.code.to_byte().into();
                packet.header.message_id = 0x1234;
                packet.set_token(case.token.as_bytes().to_vec());
                for (number, value) in case.options {
                    packet.add_option(CoapOption::from(*number), value.to_vec());
                }
                packet.payload = case.payload.to_vec();
                packet.to_bytes().unwrap()
            });
        });
        let packet = case.packet();
        group.bench_function(format!("{}/coap-lite, built before", case.name), |bencher| {
            bencher.iter(|| black_box(&packet).to_bytes().unwrap());
        });
    }
}

criterion_group!(benches, parse, walk, write);
criterion_main!(benches);
