//! What a run came to: rows with the names of the simulator's tables. Times are whole microseconds since the run began.

use millpond_link::{AccessCounters, Counters, Statistics};
use serde::Serialize;

use crate::LatenessRow;

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// How long it lasted.
    pub elapsed_us: u64,
    /// Where random numbers came from.
    pub seed: u64,
    /// How late packets were forwarded.
    pub lateness: LatenessRow,
    /// What kept it from being timed as well as this machine can, if anything did.
    pub hindrances: Vec<String>,
    /// The thread with the links had real-time priority.
    pub real_time_priority: bool,
    /// The uplink, then the downlink.
    pub links: Vec<LinkRow>,
    /// What became of preambles, and of packets before they came to a link; of a path with access only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessRow>,
    /// Clients in the order in which they appeared, up to a limit.
    pub flows: Vec<FlowRow>,
    /// Packets and datagrams that no link was offered, by reason; only reasons that occurred.
    pub left_out: Vec<LeftOut>,
    /// What retransmissions of messages that a [`Reader`](crate::Reader) could read were good for; nothing without one.
    pub retransmissions: Option<Retransmissions>,
    /// Devices that sent something; nothing where clients are distinguished by their ports alone.
    pub devices: Option<usize>,
    /// What the gate before the server counted; nothing without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateRow>,
}

/// Retransmissions of confirmable messages of clients and server, with the truth that neither of them knows: both ends were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retransmissions {
    /// All of them.
    pub sent: u64,
    /// Those after a transmission whose answer arrived, by then or later.
    pub spurious: u64,
    /// Those up to the first transmission whose answer arrived: without them there would have been none.
    pub needed: u64,
    /// Those of messages to which no answer arrived.
    pub unanswered: u64,
    /// Messages that the server was told once more.
    pub twice_at_server: u64,
    /// Messages that clients were told once more.
    pub twice_at_clients: u64,
}

/// One link. The columns are those of the simulator's table `links`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// `uplink` or `downlink`.
    pub link: &'static str,
    /// Packets that came to the queue.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that found the queue full.
    pub dropped_queue_packets: u64,
    /// Their bytes.
    pub dropped_queue_bytes: u64,
    /// Those of them that a queue dropped which keeps itself short.
    pub dropped_aqm_packets: u64,
    /// Packets lost by the radio.
    pub dropped_radio_packets: u64,
    /// Their bytes.
    pub dropped_radio_bytes: u64,
    /// Packets that arrived.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Of the bytes that arrived, those of packets that a [`Reader`](crate::Reader) could read.
    pub read_bytes: u64,
    /// Of those, those of packets that were no copies of others that had arrived.
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

impl LinkRow {
    pub(crate) fn of(link: &'static str, counters: &Counters, statistics: &Statistics) -> Self {
        let dropped = counters.dropped_by_queue();
        Self {
            link,
            offered_packets: counters.offered.packets,
            offered_bytes: counters.offered.bytes,
            dropped_queue_packets: dropped.packets,
            dropped_queue_bytes: dropped.bytes,
            dropped_aqm_packets: counters.dropped_managed.packets,
            dropped_radio_packets: counters.lost.packets,
            dropped_radio_bytes: counters.lost.bytes,
            delivered_packets: counters.delivered.packets,
            delivered_bytes: counters.delivered.bytes,
            read_bytes: 0,
            useful_bytes: 0,
            busy_us: statistics.busy_micros,
            queue_mean_bytes: statistics.bytes.mean,
            queue_p95_bytes: statistics.bytes.p95,
            queue_max_bytes: statistics.bytes.max,
            queue_mean_packets: statistics.packets.mean,
            queue_max_packets: statistics.packets.max,
        }
    }
}

/// Access to the cell. The columns are those of the simulator's table `access`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessRow {
    /// Packets that went on to a link.
    pub passed_packets: u64,
    /// Packets that were dropped, because their device gave up connecting or had no room for more.
    pub dropped_packets: u64,
    /// Packets that wait.
    pub held_packets: u64,
    /// Preambles sent.
    pub preambles: u64,
    /// Those that another device sent at the same opportunity.
    pub preambles_collided: u64,
    /// Those that nobody else sent and that were not answered.
    pub preambles_unanswered: u64,
    /// Connections made.
    pub connections: u64,
    /// How often a device gave up connecting.
    pub given_up: u64,
}

impl AccessRow {
    pub(crate) const fn of(counters: &AccessCounters, held: u64) -> Self {
        Self {
            passed_packets: counters.passed,
            dropped_packets: counters.dropped,
            held_packets: held,
            preambles: counters.preambles,
            preambles_collided: counters.collided,
            preambles_unanswered: counters.unanswered,
            connections: counters.connections,
            given_up: counters.given_up,
        }
    }
}

/// One client: an address and port behind the link, and what it spoke with the other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowRow {
    /// Its number.
    pub flow: u32,
    /// `udp`, `tcp`, `icmp`, or the protocol's number.
    pub transport: String,
    /// Its address, with the port if there are ports.
    pub client: String,
    /// When its first packet came to the uplink.
    pub first_send_us: u64,
    /// From then until the last packet was handed to it; `None` if none was.
    pub fct_us: Option<u64>,
    /// Packets it sent.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets handed to it.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets to it or from it that found a queue full.
    pub dropped_queue: u64,
    /// Packets to it or from it that the radio lost.
    pub dropped_radio: u64,
}

/// One count of the gate before the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct GateRow {
    /// Its name, for programs.
    pub name: &'static str,
    /// What was counted, in words.
    pub what: &'static str,
    /// How many.
    pub datagrams: u64,
}

/// What no link was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Why.
    pub why: &'static str,
    /// How often.
    pub packets: u64,
}
