//! Replays the committed corpus of the fuzz targets without a fuzzer.

use std::fs;
use std::path::Path;

use millpond_coap::message::Message;

/// Seeds committed by hand, which say in their name whether they are messages.
const SEEDS: usize = 50;

fn replay(folder: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        super::datagram::check(&bytes);
        super::differential::check(&bytes);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let accepted = Message::parse(&bytes).is_ok();
        // Other names are what a fuzzer has added.
        if name.starts_with("message-") || name.starts_with("refused-") {
            assert_eq!(accepted, name.starts_with("message-"), "{name}");
            seeds += 1;
        }
    }
    seeds
}

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let seeds = replay("datagram") + replay("differential");
    assert!(seeds >= SEEDS, "only {seeds} of at least {SEEDS} seeds are there");
}
