//! Captures, read back block by block and, where it is installed, by tshark.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    process::Command,
};

use millpond_control::{Instant, Span};
use millpond_path::capture::{Capture, Seen, TcpSegment, Way};

/// To the server and back, for the client with this number.
fn ways(client: u8) -> (Way, Way) {
    let at = |host| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 5_683);
    (Way { from: at(client), to: at(254) }, Way { from: at(254), to: at(client) })
}

/// A GET of /hello that is lost, its copy and the answer over UDP; the same over TCP.
fn capture() -> Vec<u8> {
    let mut capture = Capture::new(Vec::new()).unwrap();
    let at = |millis| Instant::ORIGIN.after(Span::from_millis(millis));
    let (up, down) = ways(1);
    let request = b"\x40\x01\x00\x01\xb5hello";
    let response = b"\x60\x45\x00\x01\xc0\xff21 C";
    capture.datagram(at(0), Seen::Clients, up, request, "lost: queue full").unwrap();
    capture.datagram(at(2_500), Seen::Clients, up, request, "").unwrap();
    capture.datagram(at(2_720), Seen::Server, up, request, "").unwrap();
    capture.datagram(at(2_720), Seen::Server, down, response, "").unwrap();
    let segment =
        |mss, sequence, ack, payload| TcpSegment { sequence, ack, mss, permits_sack: false, sacks: [None; 4], payload };
    let (up, down) = ways(2);
    for (millis, way, segment) in [
        (3_000, up, segment(Some(256), 0, None, &b""[..])),
        (3_600, down, segment(Some(256), 0, Some(1), b"")),
        (4_200, up, segment(None, 1, Some(1), b"\x00\xe1")),
        (4_210, up, segment(None, 3, Some(1), b"\x60\x01\xb5hello")),
        (4_900, down, segment(None, 1, Some(11), b"\x00\xe1\x60\x45\xc0\xff21 C")),
    ] {
        capture.segment(at(millis), Seen::Clients, way, &segment, "").unwrap();
    }
    capture.into_inner()
}

/// The blocks of the file: type and content.
fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let length = word(bytes, 4) as usize;
        assert_eq!((length % 4, word(bytes, length - 4) as usize), (0, length), "the length stands at both ends");
        blocks.push((word(bytes, 0), &bytes[8..length - 4]));
        bytes = &bytes[length..];
    }
    blocks
}

#[test]
fn packets_keep_their_time_their_place_and_their_comment() {
    let bytes = capture();
    let blocks = blocks(&bytes);
    let kinds: Vec<_> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [&[0x0a0d_0d0a, 1, 1][..], &[6; 9]].concat());
    let word = |index: usize, at: usize| u32::from_le_bytes(blocks[index].1[at..at + 4].try_into().unwrap());
    // Interface, time, length.
    assert_eq!((word(3, 0), word(3, 8), word(3, 12)), (0, 0, 38));
    assert_eq!((word(5, 0), word(5, 8), word(5, 12)), (1, 2_720_000, 38));
    assert_eq!((word(9, 0), word(9, 8), word(9, 12)), (0, 4_200_000, 42));
    assert_eq!((word(7, 12), word(8, 12)), (48, 48), "segments that open the connection have eight bytes of options");
    assert!(blocks[3].1.windows(16).any(|window| window == b"lost: queue full"));
    assert_eq!(blocks[3].1[20], 0x45, "IPv4 without a link header");
}

/// Wireshark dissects all of it as CoAP.
#[test]
fn wireshark_reads_it() {
    let path = std::env::temp_dir().join(format!("millpond-packets-{}.pcapng", std::process::id()));
    std::fs::write(&path, capture()).unwrap();
    let fields = ["frame.time_epoch", "_ws.col.Protocol", "_ws.col.Info"].iter().flat_map(|field| ["-e", field]);
    let shown = Command::new("tshark").arg("-r").arg(&path).args(["-T", "fields"]).args(fields).output();
    std::fs::remove_file(&path).unwrap();
    let Ok(shown) = shown else {
        println!("left out: tshark is not installed");
        return;
    };
    let text = String::from_utf8(shown.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 9, "{text}{}", String::from_utf8_lossy(&shown.stderr));
    let coap: Vec<_> = lines.iter().filter(|line| line.contains("CoAP")).collect();
    assert_eq!(coap.len(), 7, "{text}");
    assert!(lines[1].starts_with("2.500000000"), "{}", lines[1]);
    assert!(lines[1].contains("CON") && lines[1].contains("GET") && lines[1].contains("/hello"), "{}", lines[1]);
    assert!(lines[7].contains("GET"), "{}", lines[7]);
}
