//! What a run gives: rows of plain numbers. Times are whole microseconds of simulated time.

mod network;
mod requests;
mod traces;

use millpond_control::Instant;

pub(crate) use network::Books;
pub use network::{AccessRow, CrossRow, LinkRow, NodeRow, ProxyRow, RelayRow, RplRow, WifiRow};
pub use requests::{ArrivalRow, DelayRow, EvidenceRow, FlowRow, HistogramRow, ReportedRow, TcpCounts};
pub use traces::{ExchangeRow, FrameEvent, PacketEvent, QueueSample, SentSample, ShareSample, TcpSample, TimerSample};

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
    /// One row a relay, in the order of the links that they send over.
    pub relays: Vec<RelayRow>,
    /// One row, of a path with access only.
    pub access: Vec<AccessRow>,
    /// One row, of a path with a Wi-Fi hop only.
    pub wifi: Vec<WifiRow>,
    /// One row for each kind of other traffic, in the order of the scenario.
    pub cross_traffic: Vec<CrossRow>,
    /// One row a proxy, in the order of the scenario.
    pub proxies: Vec<ProxyRow>,
    /// One row a node, of a mesh only.
    pub nodes: Vec<NodeRow>,
    /// What was done by when, since the start and since each event.
    pub reported: Vec<ReportedRow>,
    /// How long requests and exchanges took.
    pub delays: Vec<DelayRow>,
    /// What became of the requests of each second before and after the first event; of a run with a timeline only.
    pub arrivals: Vec<ArrivalRow>,
    /// Queue over time, if asked for.
    pub queue_trace: Vec<QueueSample>,
    /// Carried and useful bytes over time, if asked for.
    pub share_trace: Vec<ShareSample>,
    /// What groups sent, if traced.
    pub sent_trace: Vec<SentSample>,
    /// Every timer that was armed, if asked for.
    pub rto_trace: Vec<TimerSample>,
    /// What happened to each packet, if asked for.
    pub packets: Vec<PacketEvent>,
    /// One row an exchange, if asked for.
    pub exchanges: Vec<ExchangeRow>,
    /// How the server's senders of TCP stood, if asked for.
    pub tcp_trace: Vec<TcpSample>,
    /// Every frame on the air of a mesh, if asked for.
    pub frames: Vec<FrameEvent>,
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
    /// Requests that arrived: answered, failed and never finished ones.
    pub arrivals: u64,
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
            clients_complete: count(|row| row.done_us.is_some() && row.requests_failed == 0 && row.arrivals > 0),
            clients_lost: count(|row| row.requests_failed > 0),
            arrivals: sum(|row| row.arrivals),
            answered: sum(|row| row.answered),
            failed: sum(|row| row.requests_failed),
            never_finished: sum(|row| row.never_finished),
            delivered: sum(|row| row.delivered),
        }
    }
}
