//! Confirmable requests to one server whose payloads fit one message.

#[cfg(feature = "client-oscore")]
use millpond_coap::oscore::{Context, Parameters, Start};
use millpond_coap::{
    Config, Endpoint, Event, IdGenerator, Outgoing, Output,
    message::{Code, number},
};
use millpond_control::{ChanceSeed, Instant, Preset};

#[cfg(all(feature = "client-oscore", target_os = "none"))]
use crate::board::{store_bound, stored_bound};
#[cfg(all(feature = "client-oscore", not(target_os = "none")))]
use crate::here::{store_bound, stored_bound};
use crate::{DATAGRAM, Device, Task};

/// The only peer.
const SERVER: u8 = 0;

/// What the device was given when it was made; each has its own.
#[cfg(feature = "client-oscore")]
pub(crate) const GIVEN: Parameters<'static> = Parameters { sender_id: &[7], ..Parameters::of(b"of this device..") };

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"reading")];

pub(crate) fn run(device: &mut impl Device) {
    let secret = device.secret();
    let (controller, chance) = (Preset::CALM.build(), ChanceSeed::new(u64::from(secret[0])));
    let made = Endpoint::new(Config::SMALL, controller, chance, 0, IdGenerator::secret(secret));
    let Ok(mut endpoint) = made else { return };
    // No number below a bound that may have been used before a power cut is used again, and none above it before the next one is stored.
    #[cfg(feature = "client-oscore")]
    {
        let Ok(context) = Context::derive(&GIVEN, Start::Stored(stored_bound())) else { return };
        endpoint = endpoint.protected_with(context, store_bound);
    }
    let mut datagram = [0; DATAGRAM];
    loop {
        let now = device.now();
        if let Some(length) = device.receive(&mut datagram) {
            endpoint.receive(now, SERVER, &datagram[..length]);
        } else if let Some(task) = device.task() {
            let reading = device.reading();
            let request = match task {
                Task::Put => Outgoing::confirmable(Code::PUT, &PATH).with_payload(&reading),
                _ => Outgoing::confirmable(Code::GET, &PATH),
            };
            if endpoint.request(now, SERVER, &request).is_err() {
                device.answered(None);
            }
        }
        let until = loop {
            match endpoint.poll(now) {
                Output::Transmit(transmit) => device.send(transmit.bytes),
                Output::Event(Event::Response { message, .. }) => device.answered(Some(message.payload())),
                Output::Event(Event::Failed { .. }) => device.answered(None),
                Output::Event(_) => {}
                Output::Sleep(until, _) => break until,
                Output::Idle => break Instant::NEVER,
            }
        };
        if !device.sleep(until) {
            return;
        }
    }
}
