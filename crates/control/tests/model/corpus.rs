//! Replays the committed corpus of the fuzz target `controllers` without a fuzzer.

use std::{fs, path::Path};

use millpond_control::Preset;

/// Seeds committed by hand.
const SEEDS: usize = 19;

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/controllers");
    let mut seeds = 0;
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let answers = crate::play::check(&bytes);
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // Other names are what a fuzzer has added.
        if let Some(preset) = name.strip_prefix("calls-") {
            let compiled_in = Preset::from_name(preset).is_some();
            assert!(answers.len() > 10 || !compiled_in, "{name}: a seed must say something");
            seeds += 1;
        }
    }
    assert!(seeds >= SEEDS, "only {seeds} of at least {SEEDS} seeds are there");
}
