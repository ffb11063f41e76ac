//! A capture that comes through a pipe, and ends when somebody ends it.

use std::io::Write;
use std::process::{Child, Stdio};

use crate::program::{command, signal};

/// Exchanges of a device whose requests a server answers at once, as tcpdump writes them: raw IP, after 101.
fn exchanges(numbers: std::ops::Range<u16>) -> Vec<u8> {
    let mut written = Vec::new();
    for number in numbers {
        let [high, low] = number.to_be_bytes();
        for (late, (from, from_port), (to, to_port), head) in [
            (0, (1, 40_000_u16), (2, 5683_u16), [0x40, 0x01, high, low]),
            (100, (2, 5683), (1, 40_000), [0x60, 0x45, high, low]),
        ] {
            let body = [0xff, b'a', b'b', b'c'];
            let length = 28 + head.len() + body.len();
            for part in [u32::from(number), late, length as u32, length as u32] {
                written.extend(part.to_le_bytes());
            }
            written.extend([0x45, 0, 0, length as u8, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
            for part in [from_port, to_port, length as u16 - 20, 0] {
                written.extend(part.to_be_bytes());
            }
            written.extend(head.into_iter().chain(body));
        }
    }
    written
}

/// The program, which has read more than a pipe holds: it hears signals by then.
fn reading() -> Child {
    let mut child = command(&["diagnose", "-"]).stdin(Stdio::piped()).spawn().expect("the program is built");
    let mut capture = Vec::new();
    for part in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        capture.extend(part.to_le_bytes());
    }
    capture.extend(exchanges(0..3000));
    child.stdin.as_mut().expect("it is piped").write_all(&capture).expect("it reads");
    child
}

#[test]
fn an_interrupt_ends_the_capture_and_what_came_is_judged() {
    let mut child = reading();
    signal(&child, "INT");
    // What writes the capture hears it, too, and writes what it still has.
    child.stdin.take().expect("it is piped").write_all(&exchanges(3000..3010)).expect("it reads on");
    let done = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(told.contains("3010 requests of 1 device"), "{told}");
}

#[test]
fn a_second_interrupt_ends_the_program() {
    let mut child = reading();
    // Signals that come together are one: until it ends there is always another.
    let code = loop {
        signal(&child, "INT");
        if let Some(ended) = child.try_wait().expect("it can be waited for") {
            break ended.code();
        }
        std::thread::yield_now();
    };
    assert_eq!(code, Some(130));
}
