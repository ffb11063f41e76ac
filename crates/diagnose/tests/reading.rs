//! What captures of every kind say before anything is judged: link layers, files that end too soon, and what is no CoAP.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use millpond_diagnose::{DiagnoseError, Diagnosis, Health, Options, Verdict, anonymise, diagnose};

/// Microseconds, the capture's link type and its frames.
fn pcap(link: u32, frames: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend_from_slice(&u32::to_le_bytes(word));
    }
    for (time, bytes) in frames {
        let length = bytes.len() as u32;
        for word in [time / 1_000_000, time % 1_000_000, length, length] {
            file.extend_from_slice(&u32::to_le_bytes(word));
        }
        file.extend_from_slice(bytes);
    }
    file
}

/// An IPv4 packet with a datagram from or to port 5683.
fn ipv4(up: bool, payload: &[u8]) -> Vec<u8> {
    let (length, udp) = (28 + payload.len() as u16, 8 + payload.len() as u16);
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    let (device, server) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    packet.extend_from_slice(&if up { [device, server] } else { [server, device] }.concat());
    for port in if up { [40_000_u16, 5683] } else { [5683, 40_000] } {
        packet.extend_from_slice(&port.to_be_bytes());
    }
    packet.extend_from_slice(&udp.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(payload);
    packet
}

fn ipv6(up: bool, payload: &[u8]) -> Vec<u8> {
    let udp = 8 + payload.len() as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&udp.to_be_bytes());
    packet.extend_from_slice(&[17, 64]);
    let (device, server) = ([0xfd, 1], [0xfd, 2]);
    for end in if up { [device, server] } else { [server, device] } {
        packet.extend_from_slice(&end);
        packet.extend_from_slice(&[0; 14]);
    }
    packet.extend_from_slice(&ipv4(up, payload)[20..]);
    packet
}

const REQUEST: &[u8] = &[0x41, 1, 0x12, 0x34, 7, 0xff, b'a'];
const ANSWER: &[u8] = &[0x61, 0x45, 0x12, 0x34, 7, 0xff, b'b'];

/// A request that is sent twice, and its answer.
fn conversation(packet: impl Fn(bool, &[u8]) -> Vec<u8>) -> Vec<(u32, Vec<u8>)> {
    vec![(0, packet(true, REQUEST)), (2_500_000, packet(true, REQUEST)), (2_500_100, packet(false, ANSWER))]
}

fn read(file: &[u8]) -> Result<Diagnosis, DiagnoseError> {
    diagnose([file], &Options::default(), &mut |_| {})
}

#[test]
fn every_link_layer_leads_to_the_same_exchange() {
    let framed = |header: &'static [u8], v6: bool| {
        move |up: bool, payload: &[u8]| [header, &if v6 { ipv6(up, payload) } else { ipv4(up, payload) }].concat()
    };
    const ETHERNET: &[u8] = &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    const VLAN: &[u8] = &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 0x86, 0xdd];
    const SLL: &[u8] = &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    const SLL2: &[u8] = &[0x86, 0xdd, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    const LOOPBACK: &[u8] = &[2, 0, 0, 0];
    let cases: [(u32, &'static [u8], bool); 9] = [
        (1, ETHERNET, false),
        (1, VLAN, true),
        (113, SLL, false),
        (276, SLL2, true),
        (0, LOOPBACK, false),
        (101, &[], false),
        (101, &[], true),
        (228, &[], false),
        (229, &[], true),
    ];
    for (link, header, v6) in cases {
        let mut rows = Vec::new();
        let file = pcap(link, &conversation(framed(header, v6)));
        let found = diagnose([&file[..]], &Options::default(), &mut |row| rows.push(*row)).unwrap();
        assert_eq!((found.devices, found.exchanges, found.transmissions), (1, 1, 2), "link type {link}, IPv6: {v6}");
        assert_eq!(found.sizes.request_bytes, if v6 { 55 } else { 35 }, "bytes of the IP packet");
        assert_eq!(found.sizes.request_payload_bytes, 1);
        let told: Vec<_> =
            rows.iter().map(|row| (row.number, row.time, row.judged.verdict == Verdict::First)).collect();
        assert_eq!(told, [(1, 0, true), (2, 2_500_000, false)]);
        assert_eq!((rows[0].id.0, rows[0].token.as_bytes()), (0x1234, &[7][..]));
    }
}

#[test]
fn a_file_that_is_cut_is_read_up_to_there_and_told() {
    let file = pcap(101, &conversation(ipv4));
    let mut frames = conversation(ipv4);
    frames.push((3_000_000, ipv4(true, REQUEST)));
    let longer = pcap(101, &frames);
    for length in file.len() + 1..longer.len() {
        let found = read(&longer[..length]).unwrap();
        assert_eq!(found.transmissions, 2, "cut at {length}");
        assert!(found.doubts[0].starts_with("the file is cut in the middle of a packet"), "{:?}", found.doubts);
    }
    assert_eq!(read(&file).unwrap().doubts, Vec::<String>::new());
}

#[test]
fn captures_are_read_one_after_the_other() {
    let frames = conversation(ipv4);
    let (one, other) = (pcap(101, &frames[..1]), pcap(101, &frames[1..]));
    let found = diagnose([&one[..], &other[..]], &Options::default(), &mut |_| {}).unwrap();
    assert_eq!((found.exchanges, found.transmissions), (1, 2));
}

#[test]
fn what_is_no_capture_of_coap_says_what_it_is() {
    let other_port = |up: bool, payload: &[u8]| {
        let mut packet = ipv4(up, payload);
        let at = if up { 22 } else { 20 };
        packet[at..at + 2].copy_from_slice(&8000_u16.to_be_bytes());
        packet
    };
    let tcp = |_: bool, _: &[u8]| {
        let mut packet = ipv4(true, &[0; 20]);
        packet[9] = 6;
        packet[32] = 0x50;
        packet
    };
    let only =
        |up: bool| conversation(ipv4).into_iter().filter(|(_, packet)| (packet[12 + 3] == 1) == up).collect::<Vec<_>>();
    for (file, line) in [
        (Vec::new(), "empty: 0 bytes"),
        (b"#!/bin/sh".to_vec(), "neither pcap nor pcapng: capture with `tcpdump -w FILE udp`"),
        (pcap(101, &[]), "no CoAP over UDP on port 5683: no packets at all"),
        (
            pcap(101, &conversation(other_port)),
            "no CoAP over UDP on port 5683: 3 packets: 3 of UDP port 8000 (it could be CoAP: --port 8000)",
        ),
        (pcap(101, &conversation(tcp)), "no CoAP over UDP on port 5683: 3 packets: 3 of TCP port 5683"),
        (
            pcap(195, &conversation(ipv4)),
            "no CoAP over UDP on port 5683: 3 packets: 3 of link type 195, which is not read",
        ),
        (pcap(101, &only(true)), "only one direction was captured: requests, and no answers to them"),
        (pcap(101, &only(false)), "only one direction was captured: answers, and not what they answer"),
    ] {
        assert_eq!(read(&file).unwrap_err().to_string(), line);
    }
    let options = Options { ports: vec![8000], ..Options::default() };
    assert_eq!(diagnose([&pcap(101, &conversation(other_port))[..]], &options, &mut |_| {}).unwrap().transmissions, 2);
}

#[test]
fn times_that_run_backwards_are_put_right_and_told() {
    let mut frames = conversation(ipv4);
    frames[1].0 = 9_000_000;
    frames[2].0 = 6_000_000;
    let found = read(&pcap(101, &frames)).unwrap();
    assert!((found.lasted_s - 9.0).abs() < 1e-9, "the answer came when the request did");
    assert!(found.doubts[0].starts_with("times run backwards 1 time, by 3.000 s at most"), "{:?}", found.doubts);
}

#[test]
fn a_packet_that_was_captured_twice_counts_once() {
    let mut frames = conversation(ipv4);
    frames.insert(1, (100, frames[0].1.clone()));
    let found = read(&pcap(101, &frames)).unwrap();
    assert_eq!(found.transmissions, 2);
    assert!(found.doubts[0].starts_with("1 packet was captured twice"), "{:?}", found.doubts);
}

#[test]
fn the_first_fragment_counts_with_the_bytes_of_all() {
    let mut frames = conversation(ipv4);
    // More fragments; a UDP length of 1000.
    for (_, packet) in &mut frames[..2] {
        packet[6] = 0x20;
        packet[24..26].copy_from_slice(&1000_u16.to_be_bytes());
    }
    let mut later = frames[0].1.clone();
    later[6..8].copy_from_slice(&[0, 4]);
    frames.insert(1, (10, later));
    let found = read(&pcap(101, &frames)).unwrap();
    assert_eq!((found.transmissions, found.sizes.request_bytes), (2, 1020));
}

#[test]
fn an_anonymised_capture_has_the_same_sizes_and_times_and_names_nobody() {
    // GET /secret?who=me, and an answer with a payload.
    let request = b"\x41\x01\x12\x34\x07\xb6secret\x46who=me\x21\x3c";
    let packets = |packet: fn(bool, &[u8]) -> Vec<u8>| {
        vec![(5, packet(true, request)), (2_000_007, packet(true, request)), (2_000_009, packet(false, ANSWER))]
    };
    for (packet, from) in [(ipv4 as fn(bool, &[u8]) -> Vec<u8>, "10.0.0.1:40000"), (ipv6, "[fd00::1]:40000")] {
        let file = pcap(101, &packets(packet));
        let mut out = Vec::new();
        let done = anonymise([&file[..]], &Options::default(), &mut out).unwrap();
        assert_eq!((done.written, done.left_out), (3, 0));
        assert_eq!(out.len(), file.len());
        let contains = |words: &[u8]| out.windows(words.len()).any(|window| window == words);
        assert!(!contains(b"secret") && !contains(b"who=me") && !contains(&[192, 0, 2, 1]) && !contains(&[0xfd, 1]));
        assert!(contains(b"aaaaaa") && contains(b"aaaaab"), "each text has its own");
        let read = |file: &[u8]| {
            let mut rows = Vec::new();
            let found = diagnose([file], &Options::default(), &mut |row| rows.push(*row)).unwrap();
            (rows, found.sizes, found.lasted_s)
        };
        let ((rows, sizes, lasted), (same, same_sizes, same_lasted)) = (read(&file), read(&out));
        assert_eq!((sizes, lasted), (same_sizes, same_lasted));
        assert_eq!(same[0].client.to_string(), from);
        for (one, other) in rows.iter().zip(&same) {
            assert_eq!((one.id, one.token, one.number, one.time), (other.id, other.token, other.number, other.time));
        }
    }
}

/// Calm devices put a byte behind the token of each retransmission, or of every transmission.
#[test]
fn copies_that_their_tokens_name_are_one_exchange() {
    for tokens in [[&[7, 9][..], &[7, 9, 1], &[7, 9, 2]], [&[7, 9, 0], &[7, 9, 1], &[7, 9, 2]]] {
        let of = |token: &[u8]| [&[0x40 | token.len() as u8, 1, 0x12, 0x34], token].concat();
        let copies = tokens.iter().zip([0, 500_000, 1_200_000]).map(|(token, at)| (at, ipv4(true, &of(token))));
        let frames: Vec<_> = copies.chain([(1_200_100, ipv4(false, ANSWER))]).collect();
        let found = read(&pcap(101, &frames)).unwrap();
        assert_eq!((found.exchanges, found.transmissions), (1, 3), "{tokens:?}");
    }
    let other = [(0, ipv4(true, REQUEST)), (1, ipv4(true, &[0x41, 1, 0x12, 0x34, 8])), (2, ipv4(false, ANSWER))];
    assert_eq!(read(&pcap(101, &other)).unwrap().exchanges, 2, "another token is another request");
}

/// CoAP pings of both sides, each answered by a reset, as devices keep a NAT's mapping alive with.
#[test]
fn pings_are_no_answers_without_a_request() {
    let mut frames = conversation(ipv4);
    for number in 0..20_u8 {
        let at = 20_000_013 + 20_000_137 * u32::from(number);
        let (ping, reset) = ([0x40, 0, 0x56, number], [0x70, 0, 0x56, number]);
        frames.extend([(at, ipv4(true, &ping)), (at + 100, ipv4(false, &reset))]);
        frames.extend([(at + 200_000, ipv4(false, &ping)), (at + 900_000, ipv4(true, &reset))]);
    }
    let found = read(&pcap(101, &frames)).unwrap();
    assert_eq!(found.exchanges, 1);
    assert!(found.doubts.is_empty(), "{:?}", found.doubts);
    let loop_time = found.path.base_rtt_s.value.unwrap();
    assert!((loop_time - 0.7).abs() < 1e-6, "a ping of the server shows the round trip: {loop_time}");
}

#[test]
fn where_nothing_is_asked_nothing_is_judged() {
    let (ping, reset) = ([0x40, 0, 0x56, 1], [0x70, 0, 0x56, 1]);
    let refused = read(&pcap(101, &[(0, ipv4(true, &ping)), (1000, ipv4(false, &reset))])).unwrap_err();
    assert_eq!(refused.to_string(), "no request in it: of 2 messages of CoAP none asks for anything");
}

/// Three requests of which two come in turned order, and each is answered.
#[test]
fn few_requests_out_of_order_are_no_sign_of_a_full_uplink() {
    let message = |first: u8, code: u8, id: u8| vec![first, code, 0x12, id, id];
    let frames: Vec<_> = [(0, 0x34), (40_000, 0x36), (80_000, 0x35)]
        .into_iter()
        .flat_map(|(at, id)| {
            let (asked, answered) = (message(0x41, 1, id), message(0x61, 0x45, id));
            [(at, ipv4(true, &asked)), (at + 100, ipv4(false, &answered))]
        })
        .collect();
    assert_eq!(read(&pcap(101, &frames)).unwrap().verdict, Health::Healthy);
}

/// One of everything that doubts and refusals count.
#[test]
fn one_of_a_kind_is_written_as_one() {
    let tcp = |port: u16| {
        let mut packet = ipv4(true, &[0; 12]);
        packet[9] = 6;
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        packet[32] = 0x50;
        packet
    };
    let mut handshake = ipv4(true, &[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    handshake[22..24].copy_from_slice(&5684_u16.to_be_bytes());
    let mut frames = vec![(0, ipv4(true, REQUEST)), (500, ipv4(true, REQUEST)), (2_500_000, ipv4(true, REQUEST))];
    frames.extend([(2_500_100, ipv4(false, ANSWER)), (1_000_000, ipv4(true, &[0])), (3_000_000, ipv4(false, ANSWER))]);
    frames.extend([(3_000_001, tcp(5683)), (3_000_002, handshake.clone())]);
    let found = read(&pcap(101, &frames)).unwrap();
    assert_eq!((found.devices, found.exchanges, found.retransmissions.unknown), (1, 1, 1));
    let mut said = found.doubts.clone();
    said.extend(
        [read(&pcap(101, &[(0, tcp(80))])), read(&pcap(101, &[(0, handshake)]))].map(|no| no.unwrap_err().to_string()),
    );
    let figures = [&found.timers.ack_timeout_s, &found.timers.max_retransmit, &found.nstart, &found.path.uplink.loss];
    said.extend(figures.map(|figure| figure.because.clone()));
    said.push(found.presets.because.clone());
    for words in ["1 packet was captured twice", "1 datagram on a port of CoAP is no message", "1 packet is DTLS"] {
        assert!(said.iter().any(|text| text.contains(words)), "no {words:?} in {said:#?}");
    }
    for words in ["1 segment is CoAP over TCP", "1 packet: 1 of TCP port 80", "1 packet: 1 of DTLS"] {
        assert!(said.iter().any(|text| text.contains(words)), "no {words:?} in {said:#?}");
    }
    for text in &said {
        let words: Vec<&str> = text.split(' ').collect();
        let several = |pair: &[&str]| pair[0] == "1" && pair[1].len() > 2 && pair[1].ends_with('s');
        assert!(!words.windows(2).any(several), "{text:?}");
    }
}
