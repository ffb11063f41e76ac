#![no_main]

#[path = "../../crates/coap/tests/oscore/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::check(bytes));
