#![no_main]

#[path = "../../crates/coap/tests/codec/datagram.rs"]
mod datagram;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| datagram::check(bytes));
