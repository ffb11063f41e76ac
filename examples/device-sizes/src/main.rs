//! Programs for a micro-controller, of which each uses more of the stack than the one before; a feature says which this is.
//! `examples/firmware/run --builds` prints what each takes of flash, and what of the heap on its way through 1,000 exchanges over
//! a path that loses one datagram of five. The rest of a firmware (its start, its radio, its clock) is not counted.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![cfg_attr(not(feature = "client"), allow(dead_code, reason = "messages alone ask for nothing"))]

#[cfg(target_os = "none")]
mod board;
#[cfg(not(target_os = "none"))]
mod here;

#[cfg(all(feature = "client", not(feature = "client-blocks")))]
mod client;
#[cfg(not(feature = "client"))]
mod codec;
#[cfg(feature = "client-blocks")]
mod stack;

#[cfg(all(feature = "client", not(feature = "client-blocks")))]
use client::run;
#[cfg(not(feature = "client"))]
use codec::run;
#[cfg(feature = "client-blocks")]
use stack::run;

use millpond_control::Instant;

#[cfg(not(target_os = "none"))]
fn main() {
    here::main();
}

/// Bytes of the longest datagram.
const DATAGRAM: usize = 576;

/// What the application is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Get,
    Put,
    /// Begin to observe.
    #[allow(dead_code, reason = "only boards want it, and only hosts do it")]
    Observe,
}

/// What a program has beside its processor.
trait Device {
    fn now(&mut self) -> Instant;
    /// Random bytes.
    fn secret(&mut self) -> [u8; 16];
    /// The length of a datagram that came in and is now in `datagram`.
    fn receive(&mut self, datagram: &mut [u8]) -> Option<usize>;
    fn send(&mut self, datagram: &[u8]);
    fn task(&mut self) -> Option<Task>;
    /// What the program serves and sends.
    fn reading(&mut self) -> [u8; 4];
    /// A response came, or the end of a request without one.
    fn answered(&mut self, payload: Option<&[u8]>);
    /// Nothing is to be done until then, or a datagram comes in. False if there is no more to do.
    fn sleep(&mut self, until: Instant) -> bool;
}
