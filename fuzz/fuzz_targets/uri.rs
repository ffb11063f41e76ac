#![no_main]

#[path = "../../crates/live/tests/hostile/uri.rs"]
mod uri;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| uri::check(bytes));
