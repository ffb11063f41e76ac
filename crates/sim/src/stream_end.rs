//! One end of a connection: TCP below, the stack that ships above.

use std::collections::VecDeque;

use millpond_coap::{
    Output, RequestId, stream,
    transfer::{self, ClientRequestId, CoapStack, Event},
};
use millpond_control::Instant;

use crate::{
    application::Application,
    outcome::{FlowRow, TcpCounts},
    scenario::{Scenario, Tcp},
    tcp::{self, Config, Phase, Progress, Segment, Totals},
    workload::{ClientProfile, Due},
};

/// One end of a connection.
pub(crate) struct StreamEnd {
    pub(crate) tcp: tcp::Connection,
    pub(crate) coap: CoapStack<stream::Connection>,
}

impl StreamEnd {
    /// Moves what came in up and what is to leave down; stops at an event for which `told` gives something.
    pub(crate) fn hear<T>(&mut self, now: Instant, mut told: impl FnMut(Event<'_, ()>) -> Option<T>) -> Option<T> {
        if self.tcp.has_data() {
            let bytes = self.tcp.read();
            self.coap.receive(now, &bytes);
        }
        loop {
            match self.coap.poll(now) {
                Output::Transmit(transmit) => self.tcp.write(transmit.bytes),
                Output::Event(event) => {
                    if let Some(told) = told(event) {
                        return Some(told);
                    }
                }
                Output::Trace(_) => {}
                Output::Close(_) | Output::Sleep(..) | Output::Idle => return None,
            }
        }
    }

    /// A segment comes in; gives the bytes of its payload if any of them was not here already.
    pub(crate) fn take(&mut self, now: Instant, segment: Segment) -> Option<u32> {
        let (bytes, repeats) = (segment.payload.len() as u32, self.tcp.repeats());
        self.tcp.receive(now, segment);
        (bytes > 0 && self.tcp.repeats() == repeats).then_some(bytes)
    }

    /// Whether nobody answered its opening segments.
    pub(crate) fn has_failed(&self) -> bool {
        self.tcp.phase() == Phase::Failed
    }
}

/// The longest frame that either side must take, and no more than RFC 8323 §5.3.1 expects anyway if that is enough.
fn longest(bytes: u64) -> u32 {
    /// Length, code, token and options of a frame.
    const AROUND: u64 = 64;
    u32::try_from(bytes + AROUND).unwrap_or(u32::MAX).max(stream::Settings::BASE.max_message_size)
}

/// CoAP at an end of a connection of this scenario: bodies travel whole.
fn coap(scenario: &Scenario, serves: bool) -> CoapStack<stream::Connection> {
    let asks = scenario.clients.iter().map(|group| group.longest_request());
    let most = if serves { asks.max().unwrap_or(0) } else { scenario.longest_body().0 };
    let options = stream::Options { max_message_size: longest(most), block_wise: false, serves, ..Default::default() };
    CoapStack::over_stream(stream::Connection::new(options), transfer::Config::STREAM)
}

/// A client over TCP and what it has done so far.
pub(crate) struct StreamClient {
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// Where the server's end of its connections stands among all.
    pub(crate) far: usize,
    pub(crate) end: Option<StreamEnd>,
    /// Connections begun; the last of them is the one at hand.
    pub(crate) connections: u32,
    /// When the next request may be made, while one is due and was not made.
    pub(crate) ask_at: Option<Instant>,
    /// That request.
    pub(crate) due: Option<Due>,
    /// The request under way.
    pub(crate) open: Option<Asked>,
    /// Requests made.
    pub(crate) asked: u32,
    /// Of the connections before this one.
    repeats: u64,
    retransmissions: u64,
}

/// A request under way.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) id: ClientRequestId,
    /// Its number within the client.
    pub(crate) number: u32,
    /// Its place in the ledger.
    pub(crate) request: u32,
    /// Where in the stream its first byte is.
    pub(crate) from: u64,
    /// When that byte left.
    pub(crate) sent: Option<Instant>,
}

impl StreamClient {
    pub(crate) const fn new(application: Application, group: u32, far: usize) -> Self {
        Self {
            application,
            group,
            far,
            end: None,
            connections: 0,
            ask_at: None,
            due: None,
            open: None,
            asked: 0,
            repeats: 0,
            retransmissions: 0,
        }
    }

    /// Opens a connection, in place of the one at hand if there is one.
    pub(crate) fn connect(&mut self, now: Instant, config: Config, tcp: &Tcp, scenario: &Scenario) {
        self.hang_up();
        self.connections += 1;
        self.end = Some(StreamEnd { tcp: tcp::Connection::connect(config), coap: coap(scenario, false) });
        self.ask_at = Some(now.after(tcp.open_ahead.span()));
    }

    /// Drops the connection at hand.
    pub(crate) fn hang_up(&mut self) {
        if let Some(end) = self.end.take() {
            self.repeats += end.tcp.repeats();
            self.retransmissions += end.tcp.totals().retransmissions;
        }
    }

    /// This client's row, with what the server's end knows.
    pub(crate) fn row(mut self, flow: u32, profile: &ClientProfile<'_>, far: &StreamServer) -> FlowRow {
        self.hang_up();
        let row = self.application.row(flow, self.group, profile);
        let first_send = row.first_send_us;
        let totals = far.totals();
        FlowRow {
            tcp: Some(Box::new(TcpCounts {
                connections: self.connections,
                segments: totals.segments,
                fast_retransmits: totals.retransmissions - totals.timeout_retransmissions,
                timeout_retransmits: totals.timeout_retransmissions,
                timeouts: totals.timeouts,
                first_timeout_us: totals.first_timeout.map(|at| at.saturating_sub(first_send)),
                spurious: self.repeats,
                duplicate_acks: totals.duplicate_acks,
                longest_rto_us: totals.longest_timeout,
                request_retransmits: self.retransmissions,
            })),
            ..row
        }
    }
}

/// A request that came over a connection.
#[derive(Clone, Copy)]
pub(crate) struct StreamAsked {
    pub(crate) id: RequestId,
    pub(crate) is_get: bool,
    /// The place of its resource among those that answer its group otherwise than as usual.
    pub(crate) resource: Option<u16>,
}

/// The server's end of one client's connections.
#[derive(Default)]
pub(crate) struct StreamServer {
    /// The client.
    pub(crate) flow: u32,
    pub(crate) end: Option<StreamEnd>,
    /// Which connection of the client it is.
    pub(crate) connection: u32,
    /// Requests that the application is working on, and when it is done.
    pub(crate) working: VecDeque<(Instant, StreamAsked)>,
    /// Requests taken so far.
    pub(crate) taken: u32,
    /// How the sender stood when it was traced last.
    pub(crate) traced: Option<Progress>,
    /// Of the connections before this one.
    before: Totals,
}

impl StreamServer {
    pub(crate) fn new(flow: u32) -> Self {
        Self { flow, ..Self::default() }
    }

    /// Awaits the opening segment of a connection, and forgets the one before.
    pub(crate) fn listen(&mut self, connection: u32, config: Config, scenario: &Scenario) {
        self.before = self.totals();
        self.working.clear();
        self.connection = connection;
        self.end = Some(StreamEnd { tcp: tcp::Connection::listen(config), coap: coap(scenario, true) });
    }

    /// Counts of all connections so far.
    pub(crate) fn totals(&self) -> Totals {
        let now = self.end.as_ref().map(|end| end.tcp.totals()).unwrap_or_default();
        let before = self.before;
        Totals {
            segments: before.segments + now.segments,
            retransmissions: before.retransmissions + now.retransmissions,
            timeout_retransmissions: before.timeout_retransmissions + now.timeout_retransmissions,
            timeouts: before.timeouts + now.timeouts,
            first_timeout: before.first_timeout.or(now.first_timeout),
            recoveries: before.recoveries + now.recoveries,
            duplicate_acks: before.duplicate_acks + now.duplicate_acks,
            longest_timeout: before.longest_timeout.max(now.longest_timeout),
        }
    }

    /// When the application is done with a request next.
    pub(crate) fn next_done(&self) -> Instant {
        self.working.front().map_or(Instant::NEVER, |(due, ..)| *due)
    }
}
