#![no_main]

#[path = "../../crates/coap/tests/block/session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| session::check(bytes));
