//! A micro-controller whose radio and clock are registers that no device has.

use core::ptr::{read_volatile, write_volatile};

use embedded_alloc::LlffHeap;
use millpond_control::Instant;

use crate::{Device, Task};

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

/// Bytes of the heap.
const HEAP_BYTES: usize = 8 * 1_024;

/// Where its registers are.
const REGISTERS: usize = 0x4000_0000;

struct Alone;
critical_section::set_impl!(Alone);

// SAFETY: there is one thread, and nothing interrupts it.
unsafe impl critical_section::Impl for Alone {
    unsafe fn acquire() {}
    unsafe fn release((): ()) {}
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    static mut MEMORY: [u8; HEAP_BYTES] = [0; HEAP_BYTES];
    // SAFETY: once, before anything is allocated.
    unsafe { HEAP.init((&raw mut MEMORY) as usize, HEAP_BYTES) }
    crate::run(&mut Board);
    loop {}
}

struct Board;

fn get(register: usize) -> u32 {
    // SAFETY: a register, which may be read at any time.
    unsafe { read_volatile((REGISTERS + register * 4) as *const u32) }
}

fn set(register: usize, value: u32) {
    // SAFETY: a register, which may be written at any time.
    unsafe { write_volatile((REGISTERS + register * 4) as *mut u32, value) }
}

impl Device for Board {
    fn now(&mut self) -> Instant {
        Instant::from_micros(u64::from(get(0)) << 32 | u64::from(get(1)))
    }

    fn secret(&mut self) -> [u8; 16] {
        let mut secret = [0; 16];
        secret.chunks_mut(4).for_each(|word| word.copy_from_slice(&get(2).to_le_bytes()));
        secret
    }

    fn receive(&mut self, datagram: &mut [u8]) -> Option<usize> {
        let length = (get(3) as usize).min(datagram.len());
        datagram.iter_mut().take(length).for_each(|byte| *byte = get(4) as u8);
        (length > 0).then_some(length)
    }

    fn send(&mut self, datagram: &[u8]) {
        set(5, datagram.len() as u32);
        datagram.iter().for_each(|byte| set(6, u32::from(*byte)));
    }

    fn task(&mut self) -> Option<Task> {
        match get(7) {
            0 => None,
            1 => Some(Task::Get),
            2 => Some(Task::Put),
            _ => Some(Task::Observe),
        }
    }

    fn reading(&mut self) -> [u8; 4] {
        get(8).to_be_bytes()
    }

    fn answered(&mut self, payload: Option<&[u8]>) {
        set(9, payload.map_or(0, |payload| payload.len() as u32));
    }

    fn sleep(&mut self, until: Instant) -> bool {
        set(10, (until.as_micros() >> 32) as u32);
        set(11, until.as_micros() as u32);
        true
    }
}

/// The bound of sequence numbers that was stored last.
#[cfg(feature = "client-oscore")]
pub(crate) fn stored_bound() -> u64 {
    u64::from(get(12)) << 32 | u64::from(get(13))
}

/// Stores a bound in flash; returns once it would be found after a power cut.
#[cfg(feature = "client-oscore")]
pub(crate) fn store_bound(bound: u64) -> bool {
    set(12, (bound >> 32) as u32);
    set(13, bound as u32);
    while get(14) != 0 {}
    true
}
