//! A client for a Cortex-M0 without operating system: reports a reading every minute over a radio that takes and gives whole
//! datagrams, under OSCORE unless built without. It shows what firmware has to do: share the context, and store the bound of its
//! sequence numbers before more of them are used. Radio, clock and flash are registers here that no device has.
#![no_std]
#![no_main]

extern crate alloc;

mod device;
#[cfg(feature = "oscore")]
mod protection;

use cortex_m_rt::entry;
use embedded_alloc::LlffHeap;
use millpond_coap::{
    Config, Endpoint, Identities, Output,
    message::{Code, number},
    transfer::{self, ClientRequest, Event, CoapStack},
};
use millpond_control::{ChanceSeed, Preset};

#[global_allocator]
static HEAP: LlffHeap = LlffHeap::empty();

/// Bytes of the heap.
const HEAP_BYTES: usize = 8 * 1_024;

/// The only peer.
const SERVER: u8 = 0;

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"readings")];

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
    let made = Endpoint::new(Config::SMALL, Preset::CALM.build(), chance, 0, Identities::secret(device::secret()));
    let Ok(endpoint) = made else { cortex_m::peripheral::SCB::sys_reset() };
    #[cfg(feature = "oscore")]
    let endpoint = match protection::Context::of_device() {
        Some(context) => endpoint.protected_by(context),
        None => cortex_m::peripheral::SCB::sys_reset(),
    };
    let Ok(mut stack) = CoapStack::new(endpoint, transfer::Config::SMALL, chance) else {
        cortex_m::peripheral::SCB::sys_reset()
    };
    let mut datagram = [0; 1_152];
    loop {
        let now = device::now();
        if let Some(length) = device::receive(&mut datagram) {
            stack.receive(now, SERVER, &datagram[..length]);
        } else if device::is_time_to_report() {
            let reading = device::reading();
            let report = ClientRequest::new(Code::PUT, &PATH).with_body(&reading);
            if stack.request(now, SERVER, &report).is_err() {
                device::signal(false);
            }
        }
        loop {
            match stack.poll(now) {
                Output::Transmit(transmit) => device::send(transmit.bytes),
                Output::Event(Event::Answer { message, .. }) => device::signal(message.code.is_success()),
                Output::Event(Event::Failed { .. }) => device::signal(false),
                Output::Sleep(..) | Output::Idle => break,
                _ => {}
            }
        }
        cortex_m::asm::wfi();
    }
}
