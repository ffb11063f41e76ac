//! Rows that a run has only if they were asked for.

use crate::network::LinkName;

/// The queue of one link at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// The link.
    pub link: LinkName,
    /// When.
    pub t_us: u64,
    /// Bytes in the queue, the packet in service included.
    pub bytes: u64,
    /// Packets in the queue.
    pub packets: u64,
}

/// What one link carried in one window of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareSample {
    /// The link.
    pub link: LinkName,
    /// Start of the window.
    pub t_us: u64,
    /// Bytes that arrived in the window.
    pub carried_bytes: u64,
    /// Bytes of the copies that completed an exchange in the window.
    pub useful_bytes: u64,
}

/// What the flows of one group sent in one window of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentSample {
    /// Number of the group.
    pub group: u32,
    /// Start of the window.
    pub t_us: u64,
    /// Requests that left for the first time.
    pub first: u32,
    /// Retransmissions of requests that left.
    pub again: u32,
    /// Bytes of both, headers included.
    pub bytes: u64,
}

/// One armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerSample {
    /// Number of the client.
    pub flow: u32,
    /// Number of the exchange within the client.
    pub exchange: u32,
    /// Number of the copy that left, 0 being the first.
    pub copy: u32,
    /// When it left.
    pub t_us: u64,
    /// How long the client waits now.
    pub wait_us: u32,
    /// Why this long.
    pub reason: &'static str,
}

/// One frame on the air of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameEvent {
    /// When it began.
    pub t_us: u64,
    /// How long it was on the air.
    pub us: u32,
    /// The node that sent it.
    pub node: LinkName,
    /// The node that it was for.
    pub to: LinkName,
    /// `data` or `ack`.
    pub kind: &'static str,
    /// What became of it there: `received`, `collided`, `deaf` (the receiver was sending) or `faded` (the link lost it).
    pub fate: &'static str,
}

/// What happened to one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When.
    pub t_us: u64,
    /// `enq`, `drop_queue`, `drop_aqm`, `drop_radio` or `recv`; before that `mark`, if the queue marked it in place of dropping it.
    pub event: &'static str,
    /// The link.
    pub link: LinkName,
    /// Number of the client.
    pub flow: u32,
    /// Number of the exchange within the client.
    pub exchange: u32,
    /// Number of the request copy that the packet is, or answers.
    pub copy: u32,
    /// Bytes with IP and UDP or TCP headers.
    pub bytes: u32,
    /// First byte that it carries, counted from the start of the body, over TCP from the start of the stream. A request for
    /// a block has that of the block. `None` without.
    pub offset: Option<u64>,
    /// Bytes that it carries: payload of a message, over TCP of a segment.
    pub length: u32,
    /// Over TCP, the byte of the stream before which all have arrived.
    pub ack: Option<u64>,
    /// It was sent before, or answers a copy of a request after the first.
    pub again: bool,
}

/// How a sender of TCP stood when something about that had changed. Windows in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpSample {
    /// When.
    pub t_us: u64,
    /// Number of the client that the data is for.
    pub flow: u32,
    /// The congestion window.
    pub cwnd: u32,
    /// The slow-start threshold, if there is one.
    pub ssthresh: Option<u32>,
    /// Segments thought to be in the network.
    pub in_flight: u32,
    /// Where loss recovery stands: `open`, `recovery` or `loss`.
    pub state: &'static str,
    /// The congestion control's own word for its state.
    pub phase: &'static str,
    /// Bits of IP per second at which data leaves, if it is paced.
    pub pacing_bps: Option<f64>,
    /// The retransmission timeout in force.
    pub rto_us: u64,
    /// The smoothed round-trip time, once there is one.
    pub srtt_us: Option<u64>,
}

/// One exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeRow {
    /// Number of the client.
    pub flow: u32,
    /// Number of the exchange within the client.
    pub exchange: u32,
    /// When the first copy left.
    pub first_send_us: u64,
    /// How long the client was ready to wait before the second.
    pub first_wait_us: u32,
    /// When the response was accepted.
    pub accepted_us: Option<u64>,
    /// Transmissions.
    pub copies: u32,
    /// The copy whose response was accepted, 0 being the first.
    pub winning_copy: Option<u32>,
    /// The first copy whose response ever reached the client.
    pub first_useful_copy: Option<u32>,
    /// The grade of the evidence, see [`EvidenceRow::grade`](super::EvidenceRow::grade).
    pub grade: Option<&'static str>,
    /// The copy that the response names.
    pub named_copy: Option<u32>,
    /// The sample: from the copy named, or else from the first.
    pub sample_us: Option<u64>,
    /// From the copy that caused the response to its acceptance.
    pub true_us: Option<u64>,
    /// The controller's timeout after it took the sample, before limit and dither.
    pub rto_us: Option<u32>,
}
