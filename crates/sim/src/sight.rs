//! What a packet carries, for traces.

use millpond_coap::{
    block::Block,
    message::{Message, number},
};

use crate::network::{Load, Packet};

/// What a packet carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) offset: Option<u64>,
    pub(crate) length: u32,
    pub(crate) ack: Option<u64>,
    pub(crate) again: bool,
}

/// Reads a packet.
pub(crate) fn contents(packet: &Packet) -> Contents {
    match &packet.load {
        Load::Segment(carried) => {
            let segment = &carried.segment;
            let length = segment.payload.len() as u32;
            let offset = (length > 0).then_some(segment.seq);
            Contents { offset, length, ack: segment.ack.filter(|_| !segment.opens()), again: segment.copy }
        }
        Load::Datagram(bytes) => {
            let again = packet.tag.copy > 0;
            let Ok(message) = Message::parse(bytes) else { return Contents { again, ..Contents::default() } };
            let block = [number::BLOCK2, number::Q_BLOCK2].into_iter().find_map(|option| message.option(option));
            let block = block.and_then(|value| Block::read(value, false).ok());
            let length = message.payload().len() as u32;
            let whole = packet.to_client && length > 0;
            let offset = block.map(Block::offset).or(whole.then_some(0));
            Contents { offset, length, ack: None, again }
        }
        Load::Cross => Contents::default(),
    }
}
