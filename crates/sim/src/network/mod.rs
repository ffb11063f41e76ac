//! What lies between the nodes. They hand packets over and are handed what arrives; that there are links, and how many,
//! nobody outside knows.

mod changes;
mod graph;
mod name;
mod packet;
mod route;

use millpond_control::{ChanceSeed, Instant};

pub use name::LinkName;
pub(crate) use packet::{Address, Carried, Load, Packet, SERVER};

use crate::{
    RunError,
    ledger::Tag,
    outcome::{FlowRow, LinkRow},
    recording::Recording,
    scenario::Scenario,
    trace::Recorder,
};
use graph::Graph;

/// A network. Packets come out of [`deliver`](Self::deliver) in the order of time, and of the links' places where they
/// arrive together.
pub(crate) enum Network {
    /// Named links with routes over them.
    Graph(Graph),
}

impl Network {
    /// The network of a scenario whose clients belong to these groups.
    pub(crate) fn new(scenario: &Scenario, seed: ChanceSeed, groups: &[u32], capture: bool) -> Result<Self, RunError> {
        Graph::new(scenario, seed, groups, capture).map(Self::Graph)
    }

    /// Takes a datagram from a node; whether the network will deliver it is its own affair.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        payload: &[u8],
        tag: Tag,
        rec: &mut Recorder,
    ) {
        let Self::Graph(graph) = self;
        let load = graph.copy(payload);
        graph.send(now, from, to, graph.length(payload), load, tag, rec);
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
        let Self::Graph(graph) = self;
        graph.send(now, from, to, length, Load::Segment(Box::new(carried)), tag, rec);
    }

    /// When something may arrive next, or [`Instant::NEVER`].
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        let Self::Graph(graph) = self;
        graph.next()
    }

    /// The next packet that reaches its node at or before `now`.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Instant, rec: &mut Recorder) -> Option<Packet> {
        let Self::Graph(graph) = self;
        graph.deliver(now, rec)
    }

    /// The tag of a datagram that was lost since somebody asked.
    #[inline]
    pub(crate) fn lost(&mut self) -> Option<Tag> {
        let Self::Graph(graph) = self;
        graph.lost()
    }

    /// Takes the buffer of a delivered datagram back and gives the packet's length in bytes.
    #[inline]
    pub(crate) fn take_back(&mut self, bytes: Vec<u8>) -> u32 {
        let Self::Graph(graph) = self;
        graph.take_back(bytes)
    }

    /// Bytes of a datagram with the headers in front of it.
    #[inline]
    pub(crate) fn length(&self, payload: &[u8]) -> u32 {
        let Self::Graph(graph) = self;
        graph.length(payload)
    }

    /// The packet that was delivered last, of so many bytes from one node to another, completed an exchange or a part of it.
    #[inline]
    pub(crate) fn useful(&mut self, from: Address, to: Address, bytes: u32, rec: &mut Recorder) {
        let Self::Graph(graph) = self;
        graph.useful(from, to, bytes);
        rec.useful(bytes);
    }

    /// So did, with its answer, the copy of a request that has this tag and went from one node to another.
    #[inline]
    pub(crate) fn useful_request(&mut self, from: Address, to: Address, tag: &Tag, rec: &mut Recorder) {
        let Self::Graph(graph) = self;
        graph.useful(from, to, tag.request_bytes);
        rec.useful_request(tag);
    }

    /// The names of its links.
    pub(crate) fn links(&self) -> Vec<LinkName> {
        let Self::Graph(graph) = self;
        graph.links()
    }

    /// Tells the recorder what waits at each link at `now`.
    pub(crate) fn sample(&mut self, now: Instant, rec: &mut Recorder) {
        let Self::Graph(graph) = self;
        rec.sample(now, |link, at| graph.queued(link, at));
    }

    /// Adds what became of the packets for a client to its row.
    pub(crate) fn sum(&self, row: &mut FlowRow) {
        let Self::Graph(graph) = self;
        graph.sum(row);
    }

    /// Closes the books: a row for each link, and how many events there were.
    pub(crate) fn rows(&mut self, end: Instant) -> Result<(Vec<LinkRow>, u64), RunError> {
        let Self::Graph(graph) = self;
        graph.rows(end)
    }

    /// What was captured, if anything was to be.
    pub(crate) fn take_recording(&mut self) -> Option<Box<Recording>> {
        let Self::Graph(graph) = self;
        graph.take_recording()
    }
}
