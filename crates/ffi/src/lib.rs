//! The congestion controllers of `millpond-control` as a C library.
//!
//! The types and calls here are the whole interface; `include/millpond.h` is made from them, `docs/c-library.md` is its
//! manual. A peer and an exchange are records of fixed size in the caller's memory. They hold no pointer, so the caller
//! may copy, keep and forget them as it likes. Nothing here allocates, calls back, panics or unwinds.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | peer, exchange | as in `millpond-control`: what is known of a path, and the scratch record of one message |
//! | record | one of these in the caller's memory: a head, then the value |
//! | mark, print, check | what its head says: kind and algorithm, how this build lays the value out, and a sum over all of it |
//! | to seal | to make the head vouch for the value as it is now |
//! | blank, foreign, damaged | never written; of another kind, algorithm or build; changed since it was sealed |
//! | settled | whose settings go together |
//!
//! # What is safe here, and why
//!
//! The caller's memory may hold anything: a record that was never initialised, one of another build, one that a stray
//! pointer wrote into. A Rust enum whose number is none of its variants is undefined behaviour, so bytes must be known
//! to be a value before they are taken for one. Each record therefore begins with
//!
//! 1. a **mark**: the kind of record, the algorithm, and a print of how this build lays out the value (which offsets,
//!    how many variants, which version of this crate), and
//! 2. a **check** over the mark and every byte of the value that holds information, made when it was last written.
//!
//! Only if both are right does the module `record` take the bytes behind them for a value. Any change of one byte is
//! noticed; of larger ones, and of bytes that were never written here, at most one in 2³² is not. Padding holds nothing,
//! may change whenever a value is copied, and is never read: [`Layout`](millpond_control::layout::Layout) says where it
//! is, from offsets that the compiler gives.
//!
//! References into the caller's memory exist only while a controller is asked, and only to the peer; the rest is copied
//! in and out. So even records that overlap do no harm. `tests/records.rs` tries all that, also under miri.

#![no_std]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects
)]

#[cfg(not(any(
    feature = "rfc7252",
    feature = "cocoa",
    feature = "fasor",
    feature = "linux-rto",
    feature = "peak-hopper",
    feature = "basic-rto",
    feature = "coap-plus-rate",
    feature = "bbr-con",
    feature = "tfrc-non",
    feature = "calm"
)))]
compile_error!(
    "choose at least one algorithm: rfc7252, cocoa, fasor, linux-rto, peak-hopper, basic-rto, coap-plus-rate, bbr-con, tfrc-non or calm"
);

// A library must have a panic handler, although nothing here panics. Where panics unwind (tests), it is the standard
// library's; else there is no standard library in the image, not even on a machine that has one.
#[cfg(not(any(panic = "abort", target_os = "none")))]
extern crate std;

mod calls;
mod calm;
mod header;
mod kept;
mod memory;
#[cfg(feature = "names")]
mod names;
mod record;
mod said;
mod types;

pub use calls::*;
pub use calm::*;
pub use header::*;
pub use memory::*;
#[cfg(feature = "names")]
pub use names::*;
pub use types::*;

#[cfg(any(panic = "abort", target_os = "none"))]
#[panic_handler]
fn halt(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
