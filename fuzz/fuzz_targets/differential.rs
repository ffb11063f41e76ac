#![no_main]

#[path = "../../crates/coap/tests/codec/differential.rs"]
mod differential;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| differential::check(bytes));
