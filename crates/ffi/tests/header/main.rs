//! The headers in `include/` are made from the Rust source and from the lists of presets and settings. Here they are
//! made again and compared.
//!
//! `make header` (or this test with `MILLPOND_HEADER=write`) writes them.

mod constants;
mod declarations;

use std::{env, fs, path::Path};

const PREFACE: &str = "\
/* millpond.h - congestion control for CoAP, one peer at a time
 *
 * A controller is a millpond_peer in your memory. It answers two questions: may this message leave
 * now, and how long until its next copy? It has no clock, no chance, no heap and no callback: time
 * and random words are arguments. Your message layer calls it at these points:
 *
 *   a confirmable message leaves for the first time     millpond_on_start       arm your timer
 *   its timer expires and a retransmission leaves       millpond_on_timeout     arm it again
 *   its answer comes                                    millpond_on_reply
 *   it ends without one                                 millpond_on_end
 *
 * Every call answers a number that is not negative, or a MILLPOND_E_. There may be any number of
 * peers, anywhere; two threads must not use the same one at once.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 * Made from crates/ffi/src by `make header`. */
";

const SIZES: &str = "\
/* What this header takes the sizes of its types to be. Hand it to millpond_peer_init as it stands:
 * a program that was compiled with another header is refused there. */
#define MILLPOND_SIZES \\
  ((uint32_t)(sizeof(millpond_peer) / 8) << 24 | (uint32_t)(sizeof(millpond_exchange) / 8) << 18 | \\
   (uint32_t)(sizeof(millpond_cx) / 4) << 14 | (uint32_t)(sizeof(millpond_wait) / 4) << 10 | \\
   (uint32_t)(sizeof(millpond_sample) / 4) << 5 | (uint32_t)(sizeof(millpond_numbers) / 4))
";

/// `millpond.h`.
fn page() -> String {
    let types = declarations::of(include_str!("../../src/types.rs"));
    let calls = declarations::of(include_str!("../../src/calls.rs"));
    let memory = declarations::of(include_str!("../../src/memory.rs"));
    let calm = declarations::of(include_str!("../../src/calm.rs"));
    let names = declarations::of(include_str!("../../src/names.rs"));
    let version = millpond::VERSION;
    format!(
        "{PREFACE}\n#ifndef MILLPOND_H\n#define MILLPOND_H\n\n#include <stdint.h>\n\n#include \"millpond_constants.h\"\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         #define MILLPOND_VERSION 0x{version:06x}u /* one byte each: major, minor, patch */\n\n\
         {types}{SIZES}\n{calls}\
         /* For clients that keep what they learnt over a restart (docs/calm.md). */\n\n\
         {memory}\
         /* For servers: which copies of a request are answered once more (docs/calm-server.md). */\n\n\
         {calm}\
         /* For programs with a configuration file or a log; not in a library without the feature \"names\". */\n\n\
         {names}\
         #ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
    )
}

fn is_up_to_date(name: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(name);
    if env::var_os("MILLPOND_HEADER").is_some_and(|wish| wish == "write") {
        fs::write(&path, made).expect("include/ can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let line = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    let line = line.unwrap_or_else(|| kept.lines().count().min(made.lines().count())) + 1;
    assert!(kept == made, "include/{name} is not what the source makes, from line {line} on: run `make header`");
}

#[test]
fn the_header_is_what_the_source_makes() {
    is_up_to_date("millpond.h", &page());
}

#[test]
fn the_constants_are_those_of_the_controllers() {
    is_up_to_date("millpond_constants.h", &constants::header());
}

#[test]
fn no_line_is_long() {
    for text in [page(), constants::header()] {
        for line in text.lines() {
            assert!(line.chars().count() <= declarations::WIDTH && !line.ends_with(' '), "{line}");
        }
    }
}
