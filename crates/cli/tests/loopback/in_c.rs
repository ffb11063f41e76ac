//! The client in C on `c/calm.c` against our server, under both sanitizers if the compiler has them.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::program::{Said, Server, fresh_directory};
use super::relays::Relay;

/// One in five is lost on the way there, one in ten on the way back.
const LOSSY: &str = "[uplink]\nrate = \"60 kbit/s\"\ndelay = \"80 ms\"\nqueue = \"14100 B\"\n\
                     loss = { kind = \"bernoulli\", rate = \"20 %\" }\n\
                     [downlink]\nrate = \"30 kbit/s\"\ndelay = \"80 ms\"\nqueue = \"14100 B\"\n\
                     loss = { kind = \"bernoulli\", rate = \"10 %\" }\n";

/// The program, compiled once.
fn client() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../c");
        let program = fresh_directory("in_c").join("client");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = |more: &[&str]| {
            let mut command = Command::new(&compiler);
            command.args(["-std=c99", "-g", "-Wall", "-Wextra", "-Werror"]).args(more);
            command.arg(c.join("calm.c")).arg(c.join("client.c")).arg("-o").arg(&program);
            command.output().expect("a C compiler, cc or what CC names")
        };
        if !built(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]).status.success() {
            let plain = built(&[]);
            assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
        }
        program
    })
}

/// Asks at `HOST:PORT`.
fn ask(at: &str, path: &str, options: &[&str]) -> Said {
    let (host, port) = at.rsplit_once(':').expect("a port");
    Command::new(client()).args(options).args([host, port, path]).output().expect("it was built").into()
}

fn address(server: &Server) -> String {
    server.at("").replace("coap://", "")
}

/// The first waits of its requests, milliseconds.
fn first_waits(told: &str) -> Vec<u32> {
    let waits = told.lines().filter_map(|line| line.strip_prefix("copy 1 leaves, waits ")?.strip_suffix(" ms"));
    waits.map(|wait| wait.parse().expect("a number")).collect()
}

/// Ten requests over the lossy path.
fn over_the_lossy_path(options: &[&str]) -> String {
    let server = Server::start(&["-q"]);
    let file = fresh_directory(&format!("in_c_path{}", options.len())).join("path.toml");
    std::fs::write(&file, LOSSY).expect("written");
    // However late this machine is, the timer is what is looked at.
    let relay = Relay::start(&server, &[file.to_str().expect("plain"), "--seed", "3", "--lateness", "1h"]);
    let said = ask(&relay.at, "hello", &[&["-n", "10"], options].concat());
    relay.end("TERM");
    let told = said.well().to_owned();
    assert!(told.contains("10 answered, 0 failed") && told.contains("copy 2 leaves"), "{told}");
    println!("{told}");
    told
}

#[test]
fn calm_adapts_to_a_lossy_path() {
    let waits = first_waits(&over_the_lossy_path(&[]));
    assert!((2_000..=3_000).contains(&waits[0]), "{waits:?}");
    // A round trip takes 170 ms and what this machine is late; that of RFC 7252 waits 2 s at least.
    assert!(waits.iter().skip(5).min() < Some(&1_000), "{waits:?}");
}

#[test]
fn the_timer_of_the_rfc_learns_nothing_on_it() {
    let waits = first_waits(&over_the_lossy_path(&["-r"]));
    assert!(waits.iter().all(|wait| (2_000..=3_000).contains(wait)), "{waits:?}");
}

#[test]
fn separate_responses_and_notifications_come_in() {
    let server = Server::start(&["-q"]);
    let separate = ask(&address(&server), "slow", &[]);
    assert!(separate.well().contains("2.05 That took 2 s."), "{}", separate.well());
    assert!(separate.well().contains("1 answered, 0 failed; copies: 1,"), "{}", separate.well());
    let observed = ask(&address(&server), "count", &["-o", "3"]);
    assert!(
        observed.well().contains("1 answered, 0 failed; copies: 1, spurious: 0; notifications: 3;"),
        "{}",
        observed.well()
    );
}

/// Answers each datagram with what `reply` makes of it, until the client has ended.
fn against(reply: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static, options: &[&str]) -> (Said, Vec<Vec<u8>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let at = socket.local_addr().expect("bound");
    let peer = std::thread::spawn(move || {
        let (mut bytes, mut came) = ([0; 1_500], Vec::new());
        // An empty datagram says that the client has ended.
        while let Ok((length @ 1.., from)) = socket.recv_from(&mut bytes) {
            came.push(bytes[..length].to_vec());
            for datagram in reply(&bytes[..length]) {
                socket.send_to(&datagram, from).expect("sent");
            }
        }
        came
    });
    let said = ask(&at.to_string(), "x", options);
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], at)).expect("sent");
    (said, peer.join().expect("the peer ends"))
}

#[test]
fn a_silent_peer_is_given_up_after_five_copies_that_name_themselves() {
    let (said, came) = against(|_| Vec::new(), &["-t", "100"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let told = String::from_utf8(said.out).expect("UTF-8");
    assert!(told.contains("gave up") && told.contains("0 answered, 1 failed; copies: 5,"), "{told}");
    let names: Vec<u8> = came.iter().map(|copy| copy[7]).collect();
    assert_eq!(names, [0, 1, 2, 3, 4]);
    assert!(came.iter().all(|copy| copy[..7] == came[0][..7]), "{came:?}");
}

/// RFC 7252 §4.4: none is used again within EXCHANGE_LIFETIME, or a server takes the request for a duplicate of the earlier one.
#[test]
fn message_ids_follow_one_another() {
    let piggybacked = |request: &[u8]| vec![[&[0x64, 0x45], &request[2..8], &[0xff, b'y']].concat()];
    let (said, came) = against(piggybacked, &["-n", "3"]);
    assert!(said.well().contains("3 answered"), "{}", said.well());
    let ids: Vec<u16> = came.iter().map(|request| u16::from_be_bytes([request[2], request[3]])).collect();
    assert_eq!(ids, [ids[0], ids[0].wrapping_add(1), ids[0].wrapping_add(2)]);
}

#[test]
fn a_reset_ends_a_request_and_what_nobody_asked_for_is_rejected() {
    let (said, _) = against(|request| vec![vec![0x70, 0, request[2], request[3]]], &[]);
    assert!(String::from_utf8(said.out).expect("UTF-8").contains("rejected"), "{}", said.err);
    // A notification under another token, then garbage, then the answer.
    let (said, came) = against(
        |request| match request[0] >> 4 & 3 {
            0 => vec![
                vec![0x44, 0x45, 9, 9, 1, 2, 3, 4],
                vec![0x4f, 0xff],
                vec![0x64, 0x45, request[2], request[3], request[4], request[5], request[6], request[7], 0xe0, 1],
                [&[0x64, 0x45], &request[2..8], &[0xff, b'y']].concat(),
            ],
            _ => Vec::new(),
        },
        &["-p", "300"],
    );
    assert!(said.well().contains("2.05 y"), "{}", said.well());
    assert_eq!(came[1], [0x70, 0, 9, 9]);
}
