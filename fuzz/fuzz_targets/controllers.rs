#![no_main]

#[path = "../../crates/control/tests/model/play.rs"]
mod play;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    play::check(bytes);
});
