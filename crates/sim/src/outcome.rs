//! What a run gives: rows of plain numbers. Times are whole microseconds of simulated time.

use millpond_control::Instant;

use crate::network::LinkName;

/// The results of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The run as a whole.
    pub summary: Summary,
    /// One row a client, then one for each purpose for which the server sends to one by itself.
    pub flows: Vec<FlowRow>,
    /// The clients of these latter.
    pub called: Vec<u32>,
    /// Exchanges by number of retransmissions.
    pub histogram: Vec<HistogramRow>,
    /// What replies said about the round-trip time, and how true it was.
    pub evidence: Vec<EvidenceRow>,
    /// One row a link, in the order of their names; of a plain path the uplink, then the downlink.
    pub links: Vec<LinkRow>,
    /// One row a node, of a mesh only.
    pub nodes: Vec<NodeRow>,
    /// What was done by when, since the start and since each event.
    pub reported: Vec<ReportedRow>,
    /// How long requests and exchanges took.
    pub delays: Vec<DelayRow>,
    /// What became of the requests of each second before and after the first event; of a run with a timeline only.
    pub births: Vec<BirthRow>,
    /// Queue over time, if asked for.
    pub queue_trace: Vec<QueueSample>,
    /// Carried and useful bytes over time, if asked for.
    pub share_trace: Vec<ShareSample>,
    /// Every timer that was armed, if asked for.
    pub rto_trace: Vec<TimerSample>,
    /// What happened to each packet, if asked for.
    pub packets: Vec<PacketEvent>,
    /// One row an exchange, if asked for.
    pub exchanges: Vec<ExchangeRow>,
    /// How the server's senders of TCP stood, if asked for.
    pub tcp_trace: Vec<TcpSample>,
    /// Every packet as a pcapng file, if asked for.
    pub capture: Option<Vec<u8>>,
}

impl Outcome {
    /// The number of the client of a flow: its own, or the one that the server sends to.
    #[must_use]
    pub fn client(&self, flow: u32) -> u32 {
        let clients = self.flows.len() - self.called.len();
        let called = (flow as usize).checked_sub(clients).and_then(|place| self.called.get(place));
        called.copied().unwrap_or(flow)
    }
}

/// The run as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// When the run ended.
    pub simulated_us: u64,
    /// Steps of state machines: transmissions, packets offered to, served by and delivered by links, datagrams handled.
    pub events: u64,
    /// From the first request of any client to the last response of any; `None` while a client is unfinished.
    pub makespan_us: Option<u64>,
    /// Clients.
    pub flows: u32,
    /// Clients that were not done when the run ended, or that had a request open.
    pub unfinished: u32,
    /// Clients of which every request was answered, all that they had to make.
    pub clients_complete: u32,
    /// Clients of which a request failed.
    pub clients_lost: u32,
    /// Requests that were born: answered, failed and never finished ones.
    pub born: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that their clients gave up, or that the full queue of their own application refused.
    pub failed: u64,
    /// Requests that were open when the run ended.
    pub never_finished: u64,
    /// Requests that reached the application at their far side, whatever became of the answer.
    pub delivered: u64,
}

impl Summary {
    /// Sums up the rows of all clients of a run that ended then.
    pub(crate) fn of(flows: &[FlowRow], end: Instant, events: u64) -> Self {
        let end = end.as_micros();
        let sum = |what: fn(&FlowRow) -> u32| flows.iter().map(|row| u64::from(what(row))).sum();
        let count = |is: fn(&FlowRow) -> bool| flows.iter().filter(|row| is(row)).count() as u32;
        let first = flows.iter().map(|row| row.first_send_us).min().unwrap_or(0);
        let unfinished = count(|row| row.done_us.is_none());
        Self {
            simulated_us: end,
            events,
            // None either if nothing ever left.
            makespan_us: end.checked_sub(first).filter(|_| unfinished == 0),
            flows: flows.len() as u32,
            unfinished,
            clients_complete: count(|row| row.done_us.is_some() && row.requests_failed == 0),
            clients_lost: count(|row| row.requests_failed > 0),
            born: sum(|row| row.born),
            answered: sum(|row| row.answered),
            failed: sum(|row| row.requests_failed),
            never_finished: sum(|row| row.never_finished),
            delivered: sum(|row| row.delivered),
        }
    }
}

/// One flow: what a client asks, or what the server sends to one client by itself for one purpose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    /// Its number. Those of clients are the clients'; those of the server follow, in the order of the clients.
    pub flow: u32,
    /// Number of its group in [`Scenario::flow_groups`](crate::Scenario::flow_groups); of a client that in the scenario.
    pub group: u32,
    /// `udp` or `tcp`.
    pub transport: &'static str,
    /// From its first request to its last response; `None` if it was not done or lost its last request. Whether it lost
    /// others is told by `requests_failed`.
    pub fct_us: Option<u64>,
    /// When its first request left.
    pub first_send_us: u64,
    /// Exchanges that were answered; of a body that comes in blocks each block counts.
    pub completed: u32,
    /// Exchanges that were abandoned.
    pub failed: u32,
    /// Copies sent in all.
    pub transmissions: u32,
    /// Copies sent after the first of their exchange.
    pub retransmissions: u32,
    /// Retransmissions that were not needed: the response to an earlier copy reached the client after all.
    pub unnecessary: u32,
    /// Responses that came after their exchange had ended.
    pub late_replies: u32,
    /// Mean time from first copy to response, over answered exchanges.
    pub rtt_first_mean_us: Option<f64>,
    /// Mean time from the copy that was answered to its response.
    pub rtt_true_mean_us: Option<f64>,
    /// Mean time from first copy to response, over exchanges without retransmission.
    pub rtt_strong_mean_us: Option<f64>,
    /// Exchanges without retransmission.
    pub strong_samples: u32,
    /// Batches begun (1 for continuous clients).
    pub batches: u32,
    /// Mean first wait, over exchanges begun: the timeout in force when their first copy left, dither included.
    pub first_wait_mean_us: Option<f64>,
    /// Its median.
    pub first_wait_median_us: Option<f64>,
    /// Bytes of bodies that reached its application.
    pub body_bytes: u64,
    /// Packets for it that found a queue full.
    pub dropped_queue: u32,
    /// Packets for it that a radio lost.
    pub dropped_radio: u32,
    /// Requests that its application handed over: answered, failed and never finished ones.
    pub born: u32,
    /// Requests that were answered.
    pub answered: u32,
    /// Requests that it gave up, or that the full queue of its application refused.
    pub requests_failed: u32,
    /// Requests that were open when the run ended.
    pub never_finished: u32,
    /// Requests that reached the application at their far side, whatever became of the answer.
    pub delivered: u32,
    /// Requests that the full queue of its application refused.
    pub dropped_source: u32,
    /// When its last request ended, on the run's clock; `None` if it was not done.
    pub done_us: Option<u64>,
    /// What its connections did, if it has any. In a box: most have none.
    pub tcp: Option<Box<TcpCounts>>,
}

/// What the connections of one client did, all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Connections begun.
    pub connections: u32,
    /// Segments with data that the server sent, retransmissions included.
    pub segments: u64,
    /// Retransmissions of the server after three duplicate acknowledgements.
    pub fast_retransmits: u64,
    /// Retransmissions of the server after its timer ran out.
    pub timeout_retransmits: u64,
    /// Times that the server's timer ran out.
    pub timeouts: u64,
    /// From the client's first request to the first of these.
    pub first_timeout_us: Option<u64>,
    /// Segments with data that the client had already.
    pub spurious: u64,
    /// Duplicate acknowledgements that the server took in.
    pub duplicate_acks: u64,
    /// The longest timeout of the server that was in force while data was under way.
    pub longest_rto_us: u64,
    /// Segments with data that the client sent more than once, counted for each further copy.
    pub request_retransmits: u64,
}

/// Answered exchanges of one group by number of retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// Whether the exchanges belong to their client's first batch.
    pub first_batch: bool,
    /// Copies sent after the first before the response was accepted.
    pub retransmissions: u32,
    /// How many exchanges.
    pub exchanges: u64,
}

/// What was done of one group's requests until one moment after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// 0: the start of the run; else the event of the timeline with this number, the first being 1.
    pub event: u32,
    /// Time since the event: upper edge of a bin.
    pub t_us: u64,
    /// Requests answered until then.
    pub answered: u64,
    /// Clients of which by then all requests were answered.
    pub clients: u32,
    /// Requests born for the event, all of them.
    pub of: u64,
    /// Clients of the group.
    pub clients_of: u32,
}

/// How many requests or exchanges of one group took about as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// `one_way` (birth of a request to its arrival at the far application), `answer` (birth to answer), `wait` (birth to
    /// first copy) or `rtt` (first copy of an exchange to its answer).
    pub kind: &'static str,
    /// Upper edge of the bin, at most 1/64 above any value in it.
    pub upper_us: u64,
    /// How many.
    pub count: u64,
}

/// The requests of one group that were born within one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BirthRow {
    /// The group.
    pub group: u32,
    /// When the second began, from the first event of the timeline; negative before it.
    pub since_us: i64,
    /// Requests born in it.
    pub born: u64,
    /// Those of them that reached the far application.
    pub delivered: u64,
    /// From birth to arrival, all of those together, in microseconds.
    pub delay_us: u64,
}

/// Answered exchanges of one group that gave the same kind of evidence about the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidenceRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// Copies sent after the first before the response was accepted.
    pub retransmissions: u32,
    /// How far the reply may be trusted: `exact` (one copy was sent, or it names the last), `echoed` (it names an earlier
    /// one) or `ambiguous` (it names none).
    pub grade: &'static str,
    /// Whether the copy that the sample counts from (the one named; the first, if ambiguous) is the one that caused the
    /// reply.
    pub right: bool,
    /// How many exchanges.
    pub exchanges: u64,
    /// Sum of sample less true round-trip time.
    pub error_us: i64,
    /// Sum of the same, each as a share of its true round-trip time.
    pub error_rtts: f64,
}

/// One link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// The link.
    pub link: LinkName,
    /// Packets that came to the queue.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that found the queue full.
    pub dropped_queue_packets: u64,
    /// Their bytes.
    pub dropped_queue_bytes: u64,
    /// Packets lost by the radio.
    pub dropped_radio_packets: u64,
    /// Their bytes.
    pub dropped_radio_bytes: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Bytes of the copies that completed an exchange.
    pub useful_bytes: u64,
    /// Time the link was busy.
    pub busy_us: u64,
    /// Time-weighted mean of the queue.
    pub queue_mean_bytes: f64,
    /// The queue was at most this long for 95 % of the time.
    pub queue_p95_bytes: u64,
    /// The longest queue.
    pub queue_max_bytes: u64,
    /// Time-weighted mean of the queue in packets.
    pub queue_mean_packets: f64,
    /// The longest queue in packets.
    pub queue_max_packets: u64,
}

/// One node of a mesh. What became of frames is counted at the node that they were for, what became of packets at the node
/// that held them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub node: LinkName,
    /// Where it stands, in millimetres.
    pub x_mm: i64,
    /// Where it stands, in millimetres.
    pub y_mm: i64,
    /// `border-router`, the name of a group of sinks, or `device`.
    pub role: LinkName,
    /// Its parent in the tree, if it has one.
    pub parent: Option<LinkName>,
    /// Hops to the border router.
    pub depth: u32,
    /// Frames with data that it sent.
    pub data_sent: u64,
    /// Acknowledgements that it sent.
    pub acks_sent: u64,
    /// Frames with data for it that it received.
    pub data_received: u64,
    /// Those of them that it had received before.
    pub data_duplicate: u64,
    /// Frames with data for it that another frame destroyed.
    pub data_collided: u64,
    /// Those that came while it was sending.
    pub data_deaf: u64,
    /// Those that the link lost.
    pub data_faded: u64,
    /// Acknowledgements for it that it received.
    pub acks_received: u64,
    /// Acknowledgements for it that another frame destroyed.
    pub acks_collided: u64,
    /// Those that came while it was sending.
    pub acks_deaf: u64,
    /// Those that the link lost.
    pub acks_faded: u64,
    /// Acknowledgements that it owed while its radio was busy sending.
    pub acks_omitted: u64,
    /// Packets that began here.
    pub packets_begun: u64,
    /// Packets that were for it and arrived.
    pub packets_arrived: u64,
    /// Packets that it got to the next node.
    pub packets_passed: u64,
    /// Packets lost for want of a buffer.
    pub lost_buffers: u64,
    /// Packets lost because frames for as many other neighbours as may be were waiting.
    pub lost_neighbours: u64,
    /// Packets lost because no attempt was acknowledged.
    pub lost_no_ack: u64,
    /// Packets lost because the channel was never idle.
    pub lost_no_channel: u64,
    /// Packets lost on the air that nobody had to acknowledge.
    pub lost_air: u64,
    /// Packets of which the next node could not put the parts together.
    pub lost_reassembly: u64,
    /// Microseconds that its radio was sending.
    pub on_air_us: u64,
}

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

/// What happened to one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketEvent {
    /// When.
    pub t_us: u64,
    /// `enq`, `drop_queue`, `drop_radio` or `recv`.
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
    /// Copies sent.
    pub copies: u32,
    /// The copy whose response was accepted, 0 being the first.
    pub winning_copy: Option<u32>,
    /// The first copy whose response ever reached the client.
    pub first_useful_copy: Option<u32>,
    /// The grade of the evidence, see [`EvidenceRow::grade`].
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
