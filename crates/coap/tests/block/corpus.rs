//! Replays the committed corpus of the fuzz target without a fuzzer.

#[test]
fn the_fuzz_corpus_keeps_every_promise() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/blocks");
    let mut seeds = 0;
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        super::session::check(&std::fs::read(&path).unwrap());
        seeds += u32::from(path.file_name().unwrap().to_string_lossy().starts_with("blocks-"));
    }
    assert!(seeds >= 3, "only {seeds} seeds are there");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_keep_every_promise(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        super::session::check(&bytes);
    }
}
