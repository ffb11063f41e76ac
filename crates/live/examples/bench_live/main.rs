//! What a request costs a server, on this machine, ours and others in one run:
//! `cargo run --release -p millpond-live --features oscore --example bench_live`.
//!
//! One generator, in one thread, asks servers that are processes of their own, over loopback, for the same resource of 40
//! bytes: a bare loop of recvfrom and sendto, which is the least that the kernel asks for, another of recvmmsg and sendmmsg,
//! ours, bound to one address and to all (which is what it does by default), and those that `interop/install` has
//! installed. CPU is that of all threads of the server's process.
//!
//! Arguments: `--quick` for short measurements, `--seconds N` for each of them (2), `--rounds N` of the comparison (3),
//! `--steady N` seconds for the one busy peer (60), `--requests N` for the memory over many requests (1,000,000),
//! `--only PART` (repeatable) of cost, oscore, gateway, observers, blocks, tcp, dtls, handshakes, clients,
//! idle, flood, attacks, peer and memory, `--beside NAME` (repeatable) for some of the
//! others only, `--alone` for none.

#![allow(clippy::disallowed_methods, reason = "it measures with the clock of this machine")]

mod arguments;
mod attacks;
mod busy;
mod comparison;
mod duplicates;
mod flood;
mod gateway;
mod generator;
mod idle;
mod peers;
mod process;
mod protected;
mod secured;
mod serving;
mod sides;
mod streams;

use std::net::Ipv4Addr;

use arguments::Arguments;
use serving::Kind;
use sides::Side;

/// Whatever ends the program.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Measures something and prints it.
type Part = fn(&Arguments) -> Result<(), Failure>;

/// Requests under way at a time.
const OUTSTANDING: usize = 64;
/// The path that is asked for.
const PATH: &[u8] = b"bench";
/// The path of what changes and is observed.
const STATE: &[u8] = b"state";
/// What is answered.
const PAYLOAD: &[u8] = b"0123456789012345678901234567890123456789";

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // The program is its own server, too, in a process of its own.
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", port] => return serving::ours(Ipv4Addr::LOCALHOST, port.parse()?, Kind::Plain),
        ["serve-protected", port] => return serving::ours(Ipv4Addr::LOCALHOST, port.parse()?, Kind::Protected),
        ["serve-measured", port] => return serving::ours(Ipv4Addr::LOCALHOST, port.parse()?, Kind::Measured),
        ["serve-all", port] => return serving::ours(Ipv4Addr::UNSPECIFIED, port.parse()?, Kind::Plain),
        ["floor", port] => return serving::floor(port.parse()?),
        #[cfg(target_os = "linux")]
        ["batched-floor", port] => return serving::batched_floor(port.parse()?),
        _ => {}
    }
    let arguments = Arguments::read(words)?;
    let parts: [(&str, Part); 14] = [
        ("cost", comparison::cost),
        ("oscore", protected::cost),
        ("gateway", gateway::cost),
        ("observers", peers::observers),
        ("blocks", peers::blocks),
        ("tcp", peers::tcp),
        ("dtls", peers::dtls),
        ("handshakes", peers::handshakes),
        ("clients", comparison::clients),
        ("idle", idle::idle),
        ("flood", flood::flood),
        ("attacks", attacks::attacks),
        ("peer", busy::one_peer),
        ("memory", busy::memory),
    ];
    for (name, part) in parts {
        if arguments.wants(name) {
            part(&arguments)?;
        }
    }
    Ok(())
}
