//! Replays the committed corpus of the fuzz targets without a fuzzer.

use std::fs;
use std::path::Path;

use millpond_coap::{PathCache, message::Message};

/// Seeds of messages committed by hand, and of memories. They say in their name whether they are such.
const SEEDS: usize = 50;
const MEMORIES: usize = 4;

/// Plays all inputs of a target, and counts those whose names say `valid` or refused, which `check` must find them to be.
fn replay(target: &str, valid: &str, check: impl Fn(&[u8]) -> bool) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let accepted = check(&fs::read(&path).unwrap());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Other names are what a fuzzer has added.
        if name.starts_with(valid) || name.starts_with("refused-") {
            assert_eq!(accepted, name.starts_with(valid), "{name}");
            seeds += 1;
        }
    }
    seeds
}

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let is_message = |bytes: &[u8]| {
        super::datagram::check(bytes);
        super::differential::check(bytes);
        Message::parse(bytes).is_ok()
    };
    let seeds = replay("datagram", "message-", is_message) + replay("differential", "message-", is_message);
    assert!(seeds >= SEEDS, "only {seeds} of at least {SEEDS} seeds are there");
}

#[test]
fn the_fuzz_corpus_of_memories_keeps_every_promise() {
    let seeds = replay("memory", "memory-", |bytes| {
        super::memory::check(bytes);
        PathCache::from_bytes(bytes).is_ok()
    });
    assert!(seeds >= MEMORIES, "only {seeds} of at least {MEMORIES} seeds are there");
}
