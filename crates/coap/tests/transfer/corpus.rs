//! Replays the committed corpus of the fuzz target `transfers` without a fuzzer.

use std::fs;
use std::path::Path;

/// Seeds committed by hand.
const SEEDS: usize = 15;

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/transfers");
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        super::session::check(&fs::read(&path).unwrap());
        seeds += usize::from(path.file_name().unwrap().to_string_lossy().starts_with("session-"));
    }
    assert!(seeds >= SEEDS, "only {seeds} of at least {SEEDS} seeds are there");
}
