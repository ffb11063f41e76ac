//! The packets of a run, kept until it is over: only then is it known which of them the radio lost.

use std::net::SocketAddrV4;

use millpond_control::Instant;

use crate::{
    capture::{Capture, Seen, Way, client, server},
    network::{Carried, Load, Packet},
    tcp::Segment,
};

/// One sight of one packet.
struct Sight {
    at: Instant,
    seen: Seen,
    way: Way,
    load: Kept,
    comment: &'static str,
}

enum Kept {
    Datagram(Vec<u8>),
    Segment(Segment),
}

/// All sights of all packets, in the order of time.
pub(crate) struct Recording {
    sights: Vec<Sight>,
    /// Where each packet that a link was offered was seen first, by the link's number for it.
    offered: Vec<Vec<usize>>,
}

impl Recording {
    /// A recording of a network with so many links.
    pub(crate) fn new(links: usize) -> Self {
        Self { sights: Vec::new(), offered: vec![Vec::new(); links] }
    }

    /// A packet leaves its sender over this link.
    #[cold]
    pub(crate) fn sent(&mut self, link: usize, at: Instant, packet: &Packet) {
        self.offered[link].push(self.sights.len());
        self.see(at, if packet.to_client { Seen::Server } else { Seen::Clients }, packet);
    }

    /// A packet that is left out is offered to this link.
    #[cold]
    pub(crate) fn unseen(&mut self, link: usize) {
        self.offered[link].push(usize::MAX);
    }

    /// The packet with this number among those of one link is offered to another.
    #[cold]
    pub(crate) fn forwarded(&mut self, link: usize, number: u64, further: usize) {
        if let Some(index) = self.sight(link, number) {
            self.offered[further].push(index);
        }
    }

    /// A packet reaches its receiver.
    #[cold]
    pub(crate) fn arrived(&mut self, at: Instant, packet: &Packet) {
        self.see(at, if packet.to_client { Seen::Clients } else { Seen::Server }, packet);
    }

    /// The packet that this link was offered last will not arrive.
    #[cold]
    pub(crate) fn lost_last(&mut self, link: usize, why: &'static str) {
        if let Some(number) = self.offered[link].len().checked_sub(1) {
            self.lost(link, number as u64, why);
        }
    }

    /// The packet that this link was to be offered last never came to it.
    #[cold]
    pub(crate) fn withheld(&mut self, link: usize, why: &'static str) {
        self.lost_last(link, why);
        self.offered[link].pop();
    }

    /// The packet with this number among those of a link will not arrive.
    #[cold]
    pub(crate) fn lost(&mut self, link: usize, number: u64, why: &'static str) {
        if let Some(sight) = self.sight(link, number).and_then(|index| self.sights.get_mut(index)) {
            sight.comment = why;
        }
    }

    fn sight(&self, link: usize, number: u64) -> Option<usize> {
        usize::try_from(number).ok().and_then(|number| self.offered[link].get(number).copied())
    }

    fn see(&mut self, at: Instant, seen: Seen, packet: &Packet) {
        let (load, port) = match &packet.load {
            Load::Datagram(bytes) => (Kept::Datagram(bytes.clone()), None),
            Load::Segment(carried) => {
                let Carried { segment, connection } = &**carried;
                (Kept::Segment(segment.clone()), Some(*connection))
            }
            Load::Cross => return,
        };
        let at_client = client(packet.client);
        // Each connection of a client comes from a port of its own.
        let at_client = port.map_or(at_client, |number| SocketAddrV4::new(*at_client.ip(), ephemeral(number)));
        let way = if packet.to_client {
            Way { from: server(), to: at_client }
        } else {
            Way { from: at_client, to: server() }
        };
        self.sights.push(Sight { at, seen, way, load, comment: "" });
    }

    /// The capture as a file. Writing into memory does not fail.
    pub(crate) fn into_file(self) -> Vec<u8> {
        let write = |sights: Vec<Sight>| -> std::io::Result<Vec<u8>> {
            let mut capture = Capture::new(Vec::new())?;
            for Sight { at, seen, way, load, comment } in sights {
                match load {
                    Kept::Datagram(bytes) => capture.datagram(at, seen, way, &bytes, comment)?,
                    Kept::Segment(segment) => capture.segment(at, seen, way, &(&segment).into(), comment)?,
                }
            }
            Ok(capture.into_inner())
        };
        write(self.sights).unwrap_or_default()
    }
}

/// The port of a client's connection: the first of the dynamic ports (RFC 6335 §6), and on from there.
fn ephemeral(connection: u32) -> u16 {
    49_152 + (connection % 16_384) as u16
}
