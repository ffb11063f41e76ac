#![no_main]

#[path = "../../crates/coap/tests/codec/memory.rs"]
mod memory;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| memory::check(bytes));
