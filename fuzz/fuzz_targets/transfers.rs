#![no_main]

#[path = "../../crates/coap/tests/transfer/session.rs"]
mod session;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| session::check(bytes));
