//! Rows of flows and of groups of them: what became of requests and exchanges.

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
    /// When its first request left; `u64::MAX` if none did, which is no value in tables.
    pub first_send_us: u64,
    /// Exchanges that were answered; of a body that comes in blocks each block counts.
    pub completed: u32,
    /// Exchanges that were abandoned.
    pub exchanges_failed: u32,
    /// Transmissions in all.
    pub transmissions: u32,
    /// Retransmissions of their exchange.
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
    pub arrivals: u32,
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
    /// Segments with data that the client sent more than once, counted for each retransmission.
    pub request_retransmits: u64,
}

/// Answered exchanges of one group by number of retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// Whether the exchanges belong to their client's first batch.
    pub first_batch: bool,
    /// Retransmissions before the response was accepted.
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
    /// Requests that arrived for the event, all of them.
    pub of: u64,
    /// Clients of the group.
    pub clients_of: u32,
}

/// How many requests or exchanges of one group took about as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// `one_way` (arrival of a request to its delivery at the far end), `crossing` (its first copy to that), `answer`
    /// (arrival to answer), `wait` (arrival to first copy), `rtt` (first copy of an exchange to its answer), `first_wait` (for an answer after the first copy of
    /// an exchange) or `weak_variation` (of a client's weak estimator, after an answer to an exchange that was sent again).
    pub kind: &'static str,
    /// Upper edge of the bin, at most 1/64 above any value in it.
    pub upper_us: u64,
    /// How many.
    pub count: u64,
}

/// The requests of one group that arrived within one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalRow {
    /// The group.
    pub group: u32,
    /// When the second began, from the first event of the timeline; negative before it.
    pub since_us: i64,
    /// Requests that arrived in it.
    pub arrivals: u64,
    /// Those of them that reached the far application.
    pub delivered: u64,
    /// From arrival to arrival, all of those together, in microseconds.
    pub delay_us: u64,
    /// The same from their first copy.
    pub crossing_us: u64,
}

/// Answered exchanges of one group that gave the same kind of evidence about the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvidenceRow {
    /// Number of the group in the scenario.
    pub group: u32,
    /// Retransmissions before the response was accepted.
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
