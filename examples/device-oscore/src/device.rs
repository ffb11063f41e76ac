//! What the device has beside its processor, as registers.

use core::ptr::{read_volatile, write_volatile};

use millpond_control::Instant;

/// Where its registers are.
const REGISTERS: usize = 0x4000_0000;

fn get(register: usize) -> u32 {
    // SAFETY: a register, which may be read at any time.
    unsafe { read_volatile((REGISTERS + register * 4) as *const u32) }
}

fn set(register: usize, value: u32) {
    // SAFETY: a register, which may be written at any time.
    unsafe { write_volatile((REGISTERS + register * 4) as *mut u32, value) }
}

/// Microseconds since it was switched on.
pub(crate) fn now() -> Instant {
    Instant::from_micros(u64::from(get(0)) << 32 | u64::from(get(1)))
}

pub(crate) fn random() -> u32 {
    get(2)
}

/// Random bytes.
pub(crate) fn secret() -> [u8; 16] {
    let mut secret = [0; 16];
    secret.chunks_mut(4).for_each(|word| word.copy_from_slice(&random().to_le_bytes()));
    secret
}

/// The length of a datagram that came in and is now in `datagram`.
pub(crate) fn receive(datagram: &mut [u8]) -> Option<usize> {
    let length = (get(3) as usize).min(datagram.len());
    datagram.iter_mut().take(length).for_each(|byte| *byte = get(4) as u8);
    (length > 0).then_some(length)
}

pub(crate) fn send(datagram: &[u8]) {
    set(5, datagram.len() as u32);
    datagram.iter().for_each(|byte| set(6, u32::from(*byte)));
}

pub(crate) fn is_time_to_report() -> bool {
    get(7) != 0
}

/// What is reported.
pub(crate) fn reading() -> [u8; 4] {
    get(8).to_be_bytes()
}

/// Lets its light say whether a report was taken.
pub(crate) fn signal(is_taken: bool) {
    set(9, u32::from(is_taken));
}

/// The bound that was stored last.
#[cfg(feature = "oscore")]
pub(crate) fn stored_bound() -> u64 {
    u64::from(get(10)) << 32 | u64::from(get(11))
}

/// Stores a bound in flash; returns once it would be found after a power cut.
#[cfg(feature = "oscore")]
pub(crate) fn store_bound(bound: u64) -> bool {
    set(10, (bound >> 32) as u32);
    set(11, bound as u32);
    while get(12) != 0 {}
    true
}
