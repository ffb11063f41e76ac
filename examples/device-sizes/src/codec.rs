//! Reads messages, and answers each request with one that is written.

extern crate alloc;

use alloc::vec::Vec;

use millpond_coap::message::{Code, Kind, Message, WriteError, Writer, number};
use millpond_control::Instant;

use crate::{DATAGRAM, Device};

pub(crate) fn run(device: &mut impl Device) {
    let (mut datagram, mut answer) = ([0; DATAGRAM], Vec::with_capacity(DATAGRAM));
    loop {
        if let Some(length) = device.receive(&mut datagram) {
            let Ok(message) = Message::parse(&datagram[..length]) else { continue };
            if message.option(number::URI_PATH) != Some(b"reading") {
                continue;
            }
            let reading = device.reading();
            answer.clear();
            if write(&mut answer, &message, &reading).is_ok() {
                device.send(&answer);
            }
        }
        if !device.sleep(Instant::NEVER) {
            return;
        }
    }
}

fn write(answer: &mut Vec<u8>, request: &Message<'_>, reading: &[u8]) -> Result<(), WriteError> {
    let mut writer = Writer::start(answer, Kind::Acknowledgement, Code::CONTENT, request.id, request.token);
    writer.option(number::CONTENT_FORMAT, &[42])?;
    writer.payload(reading)?;
    writer.finish().map(drop)
}
