//! What travels on a network.

use crate::{ledger::Tag, tcp::Segment};

/// The address of a node: a client's is its number.
pub(crate) type Address = u32;

/// The address of the server.
pub(crate) const SERVER: Address = u32::MAX;

/// A packet on its way, with what only the laboratory knows about it.
pub(crate) struct Packet {
    pub(crate) load: Load,
    pub(crate) tag: Tag,
    /// The number of the client at one end of its way; at the other is the server.
    pub(crate) client: u32,
    /// Whether a client is to get it; the server otherwise.
    pub(crate) to_client: bool,
    /// A queue has marked it in place of dropping it.
    pub(super) marked: bool,
    /// How many links of its route it has crossed.
    pub(super) hop: u8,
    /// The number of its route.
    pub(super) route: u16,
}

impl Packet {
    /// Whether it is on the way there, from the one who asks, and not back.
    #[inline]
    pub(crate) fn asks(&self) -> bool {
        // Flows of the server have numbers of their own.
        (self.tag.flow == self.client) != self.to_client
    }

    /// One that is nothing yet.
    pub(super) fn blank(tag: Tag) -> Self {
        Self { load: Load::default(), tag, client: 0, to_client: false, marked: false, hop: 0, route: 0 }
    }

    /// It begins this way.
    #[inline]
    pub(super) fn begin(&mut self, Way { client, to_client, route }: Way) {
        (self.client, self.to_client, self.marked, self.hop, self.route) = (client, to_client, false, 0, route);
    }

    /// It reaches its node, with so many bytes.
    #[inline]
    pub(super) fn arrival(&self, length: u32) -> Arrival {
        let Self { tag, client, to_client, marked, .. } = *self;
        Arrival { tag, client, length, to_client, marked, is_segment: matches!(self.load, Load::Segment(_)) }
    }
}

/// From where to where a packet goes, one of which is the server.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) client: u32,
    pub(super) to_client: bool,
    pub(super) route: u16,
}

/// What reached its node. The bytes of a datagram lie with the network until the next one is handed out.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) tag: Tag,
    /// The number of the client at one end of its way.
    pub(crate) client: u32,
    /// Bytes, headers included.
    pub(crate) length: u32,
    /// Whether it is for the client; for the server otherwise.
    pub(crate) to_client: bool,
    /// A queue marked it in place of dropping it.
    pub(crate) marked: bool,
    pub(crate) is_segment: bool,
}

/// What a packet is.
pub(crate) enum Load {
    /// A datagram of CoAP.
    Datagram(Vec<u8>),
    /// A segment of a connection.
    Segment(Box<Carried>),
    /// Something of others, of which nothing is known but its length.
    Cross,
}

/// A segment, and the number of its connection among those of its client: the port that a real one would have.
pub(crate) struct Carried {
    pub(crate) segment: Segment,
    pub(crate) connection: u32,
}

impl Load {
    /// The place of a segment becomes that of a datagram.
    #[cold]
    pub(super) fn become_datagram(&mut self, payload: &[u8]) {
        *self = Self::Datagram(payload.to_vec());
    }
}

impl Default for Load {
    fn default() -> Self {
        Self::Datagram(Vec::new())
    }
}

/// Buffers of datagrams that have arrived or are lost, for those that leave next.
#[derive(Default)]
pub(super) struct Spare(Vec<Vec<u8>>);

impl Spare {
    /// A datagram as a load, in a buffer that was used before if there is one.
    #[inline]
    pub(super) fn copy(&mut self, payload: &[u8]) -> Load {
        let mut bytes = self.0.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(payload);
        Load::Datagram(bytes)
    }

    /// The buffer of a datagram that is no more.
    #[inline]
    pub(super) fn push(&mut self, bytes: Vec<u8>) {
        self.0.push(bytes);
    }
}
