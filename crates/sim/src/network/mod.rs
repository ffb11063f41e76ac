//! What lies between the nodes. They hand packets over and are handed what arrives; that there are links, and how many,
//! nobody outside knows.

mod away;
mod changes;
mod graph;
mod name;
mod packet;
pub(crate) mod radio;
mod relay;
mod route;

use millpond_control::{ChanceSeed, Instant};
use millpond_link::{Delivered, DropReason, Statistics};

pub(crate) use away::Offer;
pub use name::LinkName;
pub(crate) use packet::{Address, Arrival, Carried, Load, Packet, SERVER};
use packet::{Spare, Way};

use crate::{
    RunError,
    ledger::Tag,
    outcome::{Books, FlowRow},
    recording::Recording,
    scenario::Scenario,
    trace::Recorder,
};
use graph::Graph;
use radio::Mesh;

/// A network. Packets come out of [`deliver`](Self::deliver) in the order of time, and of the links' places where they
/// arrive together.
#[expect(clippy::large_enum_variant, reason = "a run has one, and most runs have links, which are at hand this way")]
pub(crate) enum Network {
    /// Named links with routes over them.
    Graph(Graph),
    /// Radios that hand packets on to each other.
    Mesh(Box<Mesh>),
}

impl Network {
    /// The network of a scenario whose clients, or other nodes that ask, belong to these groups: the proxies are groups behind
    /// those of the clients.
    pub(crate) fn new(scenario: &Scenario, seed: ChanceSeed, groups: &[u32], capture: bool) -> Result<Self, RunError> {
        match scenario.mesh_plan(groups) {
            Some(plan) => Ok(Self::Mesh(Box::new(Mesh::new(plan, seed, capture)))),
            None => Graph::new(scenario, seed, groups, capture).map(Self::Graph),
        }
    }

    /// Takes a datagram from a node; whether the network will deliver it is its own affair.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        payload: &[u8],
        tag: &Tag,
        rec: &mut Recorder,
    ) {
        match self {
            Self::Graph(graph) => graph.send(now, from, to, payload, tag, rec),
            Self::Mesh(mesh) => mesh.send_datagram(now, from, to, payload, tag, rec),
        }
    }

    /// Takes a segment of a connection from a node; `length` is that of the whole packet in bytes.
    #[expect(clippy::too_many_arguments, reason = "the packet, and from where to where and when it goes")]
    pub(crate) fn send_segment(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        length: u32,
        carried: Carried,
        tag: Tag,
        rec: &mut Recorder,
    ) {
        // A scenario with a mesh has no groups over TCP.
        if let Self::Graph(graph) = self {
            graph.send_segment(now, from, to, length, carried, tag, rec);
        }
    }

    /// When something may arrive next, or [`Instant::NEVER`].
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        match self {
            Self::Graph(graph) => graph.next(),
            Self::Mesh(mesh) => mesh.next(),
        }
    }

    /// The next packet that reaches its node at or before `now`.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Instant, rec: &mut Recorder) -> Option<Arrival> {
        match self {
            Self::Graph(graph) => graph.deliver(now, rec),
            Self::Mesh(mesh) => mesh.deliver_datagram(now, rec),
        }
    }

    /// Whether any datagram was lost, or branched, since somebody asked for each.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        match self {
            Self::Graph(graph) => graph.has_lost(),
            Self::Mesh(mesh) => mesh.has_news(),
        }
    }

    /// The tag of a datagram that was lost since somebody asked.
    #[inline]
    pub(crate) fn lost(&mut self) -> Option<Tag> {
        match self {
            Self::Graph(graph) => graph.lost(),
            Self::Mesh(mesh) => mesh.lost(),
        }
    }

    /// The tag of a datagram of which there was one more since somebody asked: a node sent it on a second time.
    #[inline]
    pub(crate) fn branched(&mut self) -> Option<Tag> {
        match self {
            Self::Graph(_) => None,
            Self::Mesh(mesh) => mesh.branched(),
        }
    }

    /// The bytes of the datagram that was delivered last.
    #[inline]
    pub(crate) fn datagram(&self) -> &[u8] {
        match self {
            Self::Graph(graph) => graph.datagram(),
            Self::Mesh(mesh) => mesh.datagram(),
        }
    }

    /// The segment that was delivered last. It is handed out once.
    pub(crate) fn segment(&mut self) -> Option<Box<Carried>> {
        match self {
            Self::Graph(graph) => graph.segment(),
            Self::Mesh(_) => None,
        }
    }

    /// Bytes of a datagram with the headers in front of it.
    #[inline]
    pub(crate) fn length(&self, payload: &[u8]) -> u32 {
        match self {
            Self::Graph(graph) => graph.length(payload),
            Self::Mesh(mesh) => mesh.length(payload),
        }
    }

    /// The packet that was delivered last, of so many bytes from one node to another, completed an exchange or a part of it.
    #[inline]
    pub(crate) fn useful(&mut self, from: Address, to: Address, bytes: u32, rec: &mut Recorder) {
        match self {
            Self::Graph(graph) => graph.useful(from, to, bytes),
            Self::Mesh(mesh) => mesh.useful(from, to, bytes),
        }
        rec.useful(bytes);
    }

    /// So did, with its answer, the copy of a request that has this tag and went from one node to another.
    #[inline]
    pub(crate) fn useful_request(&mut self, from: Address, to: Address, tag: &Tag, rec: &mut Recorder) {
        match self {
            Self::Graph(graph) => graph.useful(from, to, tag.request_bytes),
            Self::Mesh(mesh) => mesh.useful(from, to, tag.request_bytes),
        }
        rec.useful_request(tag);
    }

    /// The names of its links.
    pub(crate) fn links(&self) -> Vec<LinkName> {
        match self {
            Self::Graph(graph) => graph.links(),
            Self::Mesh(mesh) => mesh.links(),
        }
    }

    /// Tells the recorder what waits at each link at `now`.
    pub(crate) fn sample(&mut self, now: Instant, rec: &mut Recorder) {
        match self {
            Self::Graph(graph) => rec.sample(now, |link, at| graph.queued(link, at)),
            Self::Mesh(mesh) => rec.sample(now, |node, _| mesh.queued(node)),
        }
    }

    /// Adds what became of the packets for a client to its row.
    pub(crate) fn sum(&self, row: &mut FlowRow) {
        match self {
            Self::Graph(graph) => graph.sum(row),
            Self::Mesh(mesh) => mesh.sum(row),
        }
    }

    /// The books as they stand when the warm-up ends at `now`. From then on what is known of queues, and the drops of each
    /// client, are those since then; other counts go on.
    pub(crate) fn warmed_up(&mut self, now: Instant) -> Result<Books, RunError> {
        let mut books = self.books(now)?.0;
        match self {
            Self::Graph(graph) => {
                graph.restart_statistics(now);
                // Links forget with what they know of their queues how long they were busy.
                books.links.iter_mut().for_each(|row| row.busy_us = 0);
            }
            Self::Mesh(mesh) => mesh.restart_statistics(now),
        }
        Ok(books)
    }

    /// Closes the books: a row for each link, each relay and each node of a mesh, and how many events there were.
    pub(crate) fn books(&mut self, end: Instant) -> Result<(Books, u64), RunError> {
        let (links, events) = match self {
            Self::Graph(graph) => graph.rows(end),
            Self::Mesh(mesh) => mesh.rows(end),
        }?;
        let mut books = Books { links, ..Books::default() };
        match self {
            Self::Graph(graph) => {
                (books.relays, books.access) = (graph.relays(), graph.access_rows());
                (books.cross_traffic, books.wifi) = (graph.cross_rows(), graph.wifi_rows());
            }
            Self::Mesh(mesh) => books.nodes = mesh.nodes(),
        }
        Ok((books, events))
    }

    /// The links of these places are elsewhere: sites of a fleet share them.
    pub(crate) fn send_away(&mut self, places: &[usize]) {
        if let Self::Graph(graph) = self {
            places.iter().for_each(|&place| graph.send_away(place));
        }
    }

    /// Packets that came to such links, in the order of time.
    pub(crate) fn take_offers(&mut self, into: &mut Vec<Offer>) {
        if let Self::Graph(graph) = self {
            graph.take_offers(into);
        }
    }

    /// Such a link, told by its place, says when a packet comes back, or that it does not.
    pub(crate) fn comes_back(&mut self, place: usize, packet: Delivered<u32>) {
        if let Self::Graph(graph) = self {
            graph.comes_back(place, packet);
        }
    }

    /// Such a link did not take a packet.
    pub(crate) fn turned_away(&mut self, offer: &Offer, reason: DropReason, rec: &mut Recorder) {
        if let Self::Graph(graph) = self {
            graph.turned_away(offer, reason, rec);
        }
    }

    /// What the queue of such a link was like, once all is over.
    pub(crate) fn was_like(&mut self, place: usize, statistics: Statistics) {
        if let Self::Graph(graph) = self {
            graph.was_like(place, statistics);
        }
    }

    /// What was captured, if anything was to be.
    pub(crate) fn take_recording(&mut self) -> Option<Box<Recording>> {
        match self {
            Self::Graph(graph) => graph.take_recording(),
            Self::Mesh(mesh) => mesh.take_recording(),
        }
    }
}
