//! What packets say, as far as somebody knows: the emulator itself carries any protocol and reads none.

use millpond_control::Instant;

use crate::{LinkRow, LinkStanding, Retransmissions, Toward};

/// Reads the datagrams of UDP at both ends of the links.
pub trait Reader: Send {
    /// One comes to a link, whatever becomes of it there. What this gives comes back with the datagram if it
    /// [arrives](Self::arrived). `client` is the number of its row ([`FlowRow::flow`](crate::FlowRow::flow)).
    fn sent(&mut self, now: Instant, toward: Toward, client: u32, datagram: &[u8]) -> u32;

    /// Whether one that came to the end of a link tells this client, or the server, what none before it has told; `None` if it
    /// cannot be read.
    fn arrived(&mut self, now: Instant, toward: Toward, client: u32, mark: u32, datagram: &[u8]) -> Option<bool>;

    /// What retransmissions were good for, as both ends saw it.
    fn retransmissions(&self) -> Retransmissions;
}

/// Bytes of the packets of one link that could be read, and of those that were the first to say what they say.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    read: u64,
    useful: u64,
}

/// A reader, if there is one, and what it made of both links.
#[derive(Default)]
pub(crate) struct Reading {
    reader: Option<Box<dyn Reader>>,
    /// The uplink, then the downlink.
    links: [Read; 2],
}

impl Reading {
    pub(crate) fn by(reader: Box<dyn Reader>) -> Self {
        Self { reader: Some(reader), links: <[Read; 2]>::default() }
    }

    /// A datagram comes to a link. Gives what is to be handed back with it.
    pub(crate) fn sent(&mut self, now: Instant, toward: Toward, client: Option<u32>, datagram: &[u8]) -> u32 {
        let (Some(reader), Some(client)) = (&mut self.reader, client) else { return 0 };
        reader.sent(now, toward, client, datagram)
    }

    /// A packet of so many bytes with this datagram in it came to its end.
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        toward: Toward,
        (client, mark): (Option<u32>, u32),
        len: u32,
        datagram: &[u8],
    ) {
        let (Some(reader), Some(client)) = (&mut self.reader, client) else { return };
        let Some(is_first) = reader.arrived(now, toward, client, mark, datagram) else { return };
        let link = &mut self.links[usize::from(toward == Toward::Clients)];
        link.read += u64::from(len);
        link.useful += if is_first { u64::from(len) } else { 0 };
    }

    pub(crate) fn retransmissions(&self) -> Option<Retransmissions> {
        self.reader.as_ref().map(|reader| reader.retransmissions())
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.reader.is_some()
    }

    pub(crate) fn standing(&self, links: &mut [LinkStanding; 2]) {
        for (link, Read { read, useful }) in links.iter_mut().zip(&self.links) {
            (link.read_bytes, link.useful_bytes) = (*read, *useful);
        }
    }

    pub(crate) fn rows(&self, rows: &mut [LinkRow]) {
        for (row, Read { read, useful }) in rows.iter_mut().zip(&self.links) {
            (row.read_bytes, row.useful_bytes) = (*read, *useful);
        }
    }
}
