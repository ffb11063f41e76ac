//! Requests and observations of one server with bodies of any length; and a resource that is read and observed by others, if
//! there is a server in this program.

#[cfg(feature = "client-server")]
use millpond_coap::transfer::Answer;
use millpond_coap::{
    Config, Endpoint, IdGenerator, Output,
    message::{Code, number},
    transfer::{self, ClientRequest, Event, CoapStack},
};
use millpond_control::{ChanceSeed, Instant, Preset};

use crate::{DATAGRAM, Device, Task};

/// The only peer.
const SERVER: u8 = 0;

const PATH: [(u16, &[u8]); 1] = [(number::URI_PATH, b"reading")];

pub(crate) fn run(device: &mut impl Device) {
    let secret = device.secret();
    let (controller, chance) = (Preset::CALM.build(), ChanceSeed::new(u64::from(secret[0])));
    let made = Endpoint::new(Config::SMALL, controller, chance, 0, IdGenerator::secret(secret));
    let Ok(endpoint) = made else { return };
    let Ok(mut stack) = CoapStack::new(endpoint, transfer::Config::SMALL, chance) else { return };
    let mut datagram = [0; DATAGRAM];
    loop {
        let now = device.now();
        if let Some(length) = device.receive(&mut datagram) {
            stack.receive(now, SERVER, &datagram[..length]);
        } else if let Some(task) = device.task() {
            let reading = device.reading();
            let ask = match task {
                Task::Get => ClientRequest::new(Code::GET, &PATH),
                Task::Put => ClientRequest::new(Code::PUT, &PATH).with_body(&reading),
                Task::Observe => ClientRequest::new(Code::GET, &PATH).observing(),
            };
            if stack.request(now, SERVER, &ask).is_err() {
                device.answered(None);
            }
        }
        let until = loop {
            #[cfg(feature = "client-server")]
            let mut asked = None;
            match stack.poll(now) {
                Output::Transmit(transmit) => device.send(transmit.bytes),
                Output::Event(Event::Answer { body, .. }) => device.answered(Some(&body)),
                Output::Event(Event::Failed { .. }) => device.answered(None),
                #[cfg(feature = "client-server")]
                Output::Event(Event::Request { id, message, wants_to_observe, .. }) => {
                    asked = Some((id, message.code, wants_to_observe));
                }
                Output::Sleep(until, _) => break until,
                Output::Idle => break Instant::NEVER,
                _ => {}
            }
            #[cfg(feature = "client-server")]
            if let Some((id, code, wants_to_observe)) = asked {
                let reading = device.reading();
                let answer = match code {
                    Code::GET => Answer::new(Code::CONTENT, &[]).with_body(&reading),
                    _ => Answer::new(Code::METHOD_NOT_ALLOWED, &[]),
                };
                let _ = if wants_to_observe {
                    stack.accept_observer(now, id, &answer).map(drop)
                } else {
                    stack.answer(now, id, &answer)
                };
            }
        };
        if !device.sleep(until) {
            return;
        }
    }
}
