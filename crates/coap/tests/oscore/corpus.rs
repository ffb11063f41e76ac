//! Replays the committed corpus of the fuzz target without a fuzzer.

use std::fs;
use std::path::Path;

use super::hostile;

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/oscore");
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        hostile::check(&fs::read(entry.unwrap().path()).unwrap());
        seeds += 1;
    }
    assert!(seeds >= 8, "only {seeds} seeds are there");
}
