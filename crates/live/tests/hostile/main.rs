//! What must hold for any text as a URI and for any bytes as PEM; the targets of the fuzzer, and their corpus without one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod manual;
mod pem;
mod uri;

use std::{fs, path::Path};

/// Seeds of a target, which have a name that begins so.
fn replay(target: &str, check: fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        check(&fs::read(&path).unwrap());
        seeds += usize::from(path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(target)));
    }
    seeds
}

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    assert!(replay("uri", uri::check) >= 12);
    assert!(replay("pem", pem::check) >= 6);
}

/// Every seed with one byte changed or cut off, at every place.
#[test]
fn seeds_that_are_changed_keep_every_promise() {
    for (target, check, step) in [("uri", uri::check as fn(&[u8]), 1), ("pem", pem::check, 13)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        for entry in fs::read_dir(folder).unwrap() {
            let seed = fs::read(entry.unwrap().path()).unwrap();
            for place in (0..seed.len()).step_by(step) {
                for byte in [0, b'\n', b'%', b'/', b':', b'[', b'-', 0xff] {
                    let mut changed = seed.clone();
                    changed[place] = byte;
                    check(&changed);
                }
                check(&seed[..place]);
            }
        }
    }
}
