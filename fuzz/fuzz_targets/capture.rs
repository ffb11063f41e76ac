#![no_main]

#[path = "../../crates/diagnose/tests/hostile/capture.rs"]
mod capture;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| capture::check(bytes));
