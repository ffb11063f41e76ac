//! A client for a Cortex-M0 without operating system: reports a reading every minute over a radio that takes and gives whole
//! datagrams, under OSCORE unless built without. It shows what firmware has to do: store the bound of the sequence numbers before more
//! of them are used. Radio, clock and flash are registers here that no device has.
#![no_std]
#![no_main]

extern crate alloc;

mod device;

use cortex_m_rt::entry;
use embedded_alloc::LlffHeap;
#[cfg(feature = "oscore")]
use millpond_coap::oscore::{Context, Parameters, Start};
use millpond_coap::{
    Config, Endpoint, Event, IdGenerator, Outgoing, Output,
    message::{Code, number},
};
use millpond_control::{ChanceSeed, Preset};

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

/// Bytes of the heap.
const HEAP_BYTES: usize = 8 * 1_024;

/// The only peer.
const SERVER: u8 = 0;

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"readings")];

/// As it was given to the device when that was made; each has its own.
#[cfg(feature = "oscore")]
const GIVEN: Parameters<'static> =
    Parameters { sender_id: &[7], recipient_id: &[], ..Parameters::of(b"of this device..") };

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}

#[entry]
fn main() -> ! {
    static mut MEMORY: [u8; HEAP_BYTES] = [0; HEAP_BYTES];
    // SAFETY: once, before anything is allocated.
    unsafe { HEAP.init(MEMORY.as_mut_ptr() as usize, HEAP_BYTES) }
    let chance = ChanceSeed::new(u64::from(device::random()));
    let made = Endpoint::new(Config::SMALL, Preset::CALM.build(), chance, 0, IdGenerator::secret(device::secret()));
    #[cfg(feature = "oscore")]
    let made = made.ok().and_then(|endpoint| {
        let context = Context::derive(&GIVEN, Start::Stored(device::stored_bound())).ok()?;
        Some(endpoint.protected_with(context, device::store_bound))
    });
    #[cfg(not(feature = "oscore"))]
    let made = made.ok();
    let Some(mut endpoint) = made else { cortex_m::peripheral::SCB::sys_reset() };
    let mut datagram = [0; 1_152];
    loop {
        let now = device::now();
        if let Some(length) = device::receive(&mut datagram) {
            endpoint.receive(now, SERVER, &datagram[..length]);
        } else if device::is_time_to_report() {
            let reading = device::reading();
            let report = Outgoing::confirmable(Code::PUT, &PATH).with_payload(&reading);
            if endpoint.request(now, SERVER, &report).is_err() {
                device::signal(false);
            }
        }
        loop {
            match endpoint.poll(now) {
                Output::Transmit(transmit) => device::send(transmit.bytes),
                Output::Event(Event::Response { message, .. }) => device::signal(message.code.is_success()),
                Output::Event(Event::Failed { .. }) => device::signal(false),
                Output::Sleep(..) | Output::Idle => break,
                _ => {}
            }
        }
        cortex_m::asm::wfi();
    }
}
