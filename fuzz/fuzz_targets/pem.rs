#![no_main]

#[path = "../../crates/live/tests/hostile/pem.rs"]
mod pem;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pem::check(bytes));
