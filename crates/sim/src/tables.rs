//! The tables of one run: which columns they have and where each comes from. Code that shows or keeps them takes the columns
//! one by one: as Arrow arrays for Python, as text for a browser.
//!
//! Times are whole microseconds of simulated time and end in `_us`; every table carries `run`, the number that the
//! caller gave the run.

use millpond_control::Instant;

use crate::{
    Options, Outcome, Scenario, TraceKind,
    outcome::{FlowRow, TcpCounts},
    scenario::Mesh,
};

/// The cells of one column, from the first row to the last.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is what it holds; with `Maybe`, some rows have none")]
pub enum Column<'r> {
    Bool(Vec<bool>),
    U32(Vec<u32>),
    MaybeU32(Vec<Option<u32>>),
    U64(Vec<u64>),
    MaybeU64(Vec<Option<u64>>),
    I64(Vec<i64>),
    MaybeI64(Vec<Option<i64>>),
    F64(Vec<f64>),
    MaybeF64(Vec<Option<f64>>),
    /// Words of a small vocabulary.
    Word(Vec<&'r str>),
    MaybeWord(Vec<Option<&'r str>>),
}

/// What takes tables in: it is notified of each table, then handed its columns in their order.
pub trait Sink {
    /// The columns from here on belong to the table of this name.
    fn table(&mut self, name: &'static str);
    /// The next column of that table.
    fn column(&mut self, name: &'static str, cells: Column<'_>);
}

/// What the caller knows of a run: it stands in its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its number.
    pub run: u32,
    /// Its seed.
    pub seed: u64,
    /// How long it took by the clock, in microseconds.
    pub wall_us: u64,
}

/// Hands every table of a run to `sink`, in the order of the results directory. Traces appear only if `options` asks for
/// them, arrivals by the second only where the scenario has a timeline, marks where a queue marks, relays, access, Wi-Fi, other traffic
/// and proxies where it has any, nodes only where it has a mesh.
pub fn write(label: Label, scenario: &Scenario, options: &Options, outcome: &Outcome, sink: &mut impl Sink) {
    let run = label.run;
    runs(label, outcome, sink);
    flows(run, outcome, scenario, sink);
    histogram(run, outcome, sink);
    evidence(run, outcome, sink);
    links(run, outcome, sink);
    reported(run, outcome, sink);
    delays(run, outcome, sink);
    if scenario.links().iter().any(|(_, link)| link.aqm.marks()) {
        marks(run, outcome, sink);
    }
    if !scenario.relays.is_empty() {
        relays(run, outcome, sink);
    }
    if !outcome.access.is_empty() {
        access(run, outcome, sink);
    }
    if !outcome.wifi.is_empty() {
        wifi(run, outcome, sink);
    }
    if !scenario.cross_traffic.is_empty() {
        cross_traffic(run, outcome, sink);
    }
    if !scenario.proxies.is_empty() {
        proxies(run, outcome, sink);
    }
    if scenario.mesh.is_some() {
        nodes(run, outcome, sink);
    }
    if scenario.mesh.as_ref().is_some_and(Mesh::has_rpl) {
        rpl(run, outcome, sink);
    }
    if !scenario.timeline.is_empty() {
        arrivals(run, outcome, sink);
    }
    for kind in TraceKind::ALL.iter().filter(|kind| options.traces.contains(kind)) {
        match kind {
            TraceKind::Queue => queue_trace(run, outcome, sink),
            TraceKind::Share => share_trace(run, outcome, sink),
            TraceKind::Sent => sent_trace(run, outcome, sink),
            TraceKind::Rto => rto_trace(run, outcome, sink),
            TraceKind::Packets => packets(run, outcome, sink),
            TraceKind::Exchanges => exchanges(run, outcome, sink),
            TraceKind::Tcp => tcp_trace(run, outcome, sink),
            TraceKind::Frames if scenario.mesh.is_some() => frames(run, outcome, sink),
            TraceKind::Frames => {}
        }
    }
}

/// A table and its columns, in order: `flow` is the field of that name, `t_us: time` the same by way of a call, and
/// `link = …` whatever it says of `row`.
macro_rules! table {
    (@ $row:ident $name:ident) => { $row.$name };
    (@ $row:ident $name:ident $call:ident) => { $call($row.$name) };
    (@ $row:ident $name:ident = $cell:expr) => {{
        let _ = $row;
        $cell
    }};
    ($sink:ident, $table:literal, $rows:expr, $row:ident => $($name:ident $(: $call:ident)? $(= $cell:expr)?),+ $(,)?) => {{
        $sink.table($table);
        let rows = $rows;
        $($sink.column(stringify!($name), gather(rows.iter().map(|$row| table!(@ $row $name $($call)? $(= $cell)?))));)+
    }};
}

fn runs(label: Label, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "runs", std::slice::from_ref(&outcome.summary), row =>
        run = label.run, seed = label.seed, simulated_us: time, wall_us = time(label.wall_us),
        events, makespan_us: time, flows, unfinished, clients_complete, clients_lost, arrivals, answered, failed,
        never_finished, delivered,
    }
}

fn flows(run: u32, outcome: &Outcome, scenario: &Scenario, sink: &mut impl Sink) {
    let controllers: Vec<_> = scenario.flow_groups().iter().map(|group| group.clients.algorithm()).collect();
    table! { sink, "flows", &outcome.flows, row =>
        run = run, flow, group,
        controller = controllers.get(row.group as usize).map_or("", String::as_str),
        fct_us: time, first_send_us = sent(row.first_send_us), completed, exchanges_failed, transmissions, retransmissions, unnecessary,
        late_replies, rtt_first_mean_us, rtt_true_mean_us, rtt_strong_mean_us, strong_samples, batches,
        first_wait_mean_us, first_wait_median_us, transport, body_bytes, dropped_queue, dropped_radio,
        connections = tcp(row).map(|tcp| tcp.connections),
        segments = tcp(row).map(|tcp| tcp.segments),
        fast_retransmits = tcp(row).map(|tcp| tcp.fast_retransmits),
        timeout_retransmits = tcp(row).map(|tcp| tcp.timeout_retransmits),
        timeouts = tcp(row).map(|tcp| tcp.timeouts),
        first_timeout_us = time(tcp(row).and_then(|tcp| tcp.first_timeout_us)),
        spurious = tcp(row).map(|tcp| tcp.spurious),
        duplicate_acks = tcp(row).map(|tcp| tcp.duplicate_acks),
        longest_rto_us = tcp(row).map(|tcp| time(tcp.longest_rto_us)),
        request_retransmits = tcp(row).map(|tcp| tcp.request_retransmits),
        arrivals, answered, requests_failed, never_finished, delivered, dropped_source, done_us: time,
        client = outcome.client(row.flow),
    }
}

fn reported(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "reported", &outcome.reported, row =>
        run = run, group, event, t_us: time, answered, clients, of, clients_of,
    }
}

fn delays(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "delays", &outcome.delays, row =>
        run = run, group, kind, upper_us: time, count,
    }
}

fn arrivals(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "arrivals", &outcome.arrivals, row =>
        run = run, group, since_us, arrivals, delivered, delay_us: time, crossing_us: time,
    }
}

fn histogram(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "histogram", &outcome.histogram, row =>
        run = run, group, first_batch, retransmissions, exchanges,
    }
}

fn evidence(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "evidence", &outcome.evidence, row =>
        run = run, group, retransmissions, grade, right, exchanges, error_us, error_rtts,
    }
}

fn links(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "links", &outcome.links, row =>
        run = run, link = &*row.link, offered_packets, offered_bytes, dropped_queue_packets, dropped_queue_bytes,
        dropped_radio_packets, dropped_radio_bytes, delivered_packets, delivered_bytes, useful_bytes, busy_us: time,
        queue_mean_bytes, queue_p95_bytes, queue_max_bytes, queue_mean_packets, queue_max_packets, dropped_aqm_packets,
    }
}

fn marks(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "marks", &outcome.links, row =>
        run = run, link = &*row.link, marked_packets,
    }
}

fn relays(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "relays", &outcome.relays, row =>
        run = run, relay = &*row.relay, link = &*row.link, passed_packets, passed_bytes, withheld_packets, withheld_bytes,
    }
}

fn access(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "access", &outcome.access, row =>
        run = run, passed_packets, dropped_packets, held_packets, preambles, preambles_collided, preambles_unanswered,
        connections, given_up,
    }
}

fn wifi(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "wifi", &outcome.wifi, row =>
        run = run, passed_packets, refused_packets, given_up_packets, held_packets, frames, frames_collided,
        busy_us: time,
    }
}

fn cross_traffic(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "cross_traffic", &outcome.cross_traffic, row =>
        run = run, name = &*row.name, sent_packets, sent_bytes, dropped_queue_packets, dropped_radio_packets,
        arrived_packets, arrived_bytes, delay_us: time,
    }
}

fn proxies(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "proxies", &outcome.proxies, row =>
        run = run, proxy = &*row.proxy, requests, answered, failed, refused, transmissions, retransmissions, unnecessary,
        held_max,
    }
}

fn nodes(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "nodes", &outcome.nodes, row =>
        run = run, node = &*row.node, x_mm, y_mm, role = &*row.role, parent = row.parent.as_deref(), depth,
        data_sent, acks_sent, data_received, data_duplicate, data_collided, data_deaf, data_faded,
        acks_received, acks_collided, acks_deaf, acks_faded, acks_omitted,
        packets_begun, packets_arrived, packets_passed,
        lost_buffers, lost_neighbours, lost_no_ack, lost_no_channel, lost_air, lost_reassembly, on_air_us: time,
    }
}

fn rpl(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    let rows: Vec<_> = outcome.nodes.iter().filter_map(|node| Some((&*node.node, node.rpl.as_deref()?))).collect();
    table! { sink, "rpl", &rows, row =>
        run = run, node = row.0, rank = row.1.rank, routes = row.1.routes, parent_switches = row.1.parent_switches,
        dis = row.1.dis, dio = row.1.dio, dao = row.1.dao, dao_no_path = row.1.dao_no_path,
        control_refused = row.1.control_refused, control_given_up = row.1.control_given_up,
        control_sent = row.1.control_sent, control_received = row.1.control_received,
        control_collided = row.1.control_collided, control_deaf = row.1.control_deaf,
        control_faded = row.1.control_faded, lost_no_route = row.1.lost_no_route,
        lost_stale_route = row.1.lost_stale_route,
    }
}

fn queue_trace(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "queue_trace", &outcome.queue_trace, row =>
        run = run, link = &*row.link, t_us: time, bytes, packets,
    }
}

fn share_trace(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "share_trace", &outcome.share_trace, row =>
        run = run, link = &*row.link, t_us: time, carried_bytes, useful_bytes,
    }
}

fn sent_trace(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "sent_trace", &outcome.sent_trace, row =>
        run = run, group, t_us: time, first, again, bytes,
    }
}

fn rto_trace(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "rto_trace", &outcome.rto_trace, row =>
        run = run, flow, exchange, copy, t_us: time, wait_us: time, reason,
    }
}

fn packets(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "packets", &outcome.packets, row =>
        run = run, t_us: time, event, link = &*row.link, flow, exchange, copy, bytes, offset, length, ack, again,
    }
}

fn tcp_trace(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "tcp_trace", &outcome.tcp_trace, row =>
        run = run, flow, t_us: time, cwnd, ssthresh, in_flight, state, phase, pacing_bps, rto_us: time, srtt_us: time,
    }
}

fn frames(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "frames", &outcome.frames, row =>
        run = run, t_us: time, us, node = &*row.node, to = &*row.to, kind, fate,
    }
}

fn exchanges(run: u32, outcome: &Outcome, sink: &mut impl Sink) {
    table! { sink, "exchanges", &outcome.exchanges, row =>
        run = run, flow, exchange, first_send_us: time, first_wait_us: time, accepted_us: time, copies, winning_copy,
        first_useful_copy, grade, named_copy, sample_us: time, true_us: time, rto_us: time,
    }
}

/// When a client first sent; no time if it never did.
fn sent(micros: u64) -> Option<i64> {
    time(Some(micros).filter(|&at| at != Instant::NEVER.as_micros()))
}

fn tcp(row: &FlowRow) -> Option<&TcpCounts> {
    row.tcp.as_deref()
}

/// A value that can stand in a column.
trait Cell<'r>: Sized {
    fn column(cells: impl Iterator<Item = Self>) -> Column<'r>;
}

fn gather<'r, C: Cell<'r>>(cells: impl Iterator<Item = C>) -> Column<'r> {
    C::column(cells)
}

macro_rules! cells {
    ($($cell:ty => $column:ident, $maybe:ident);+ $(;)?) => {$(
        impl<'r> Cell<'r> for $cell {
            fn column(cells: impl Iterator<Item = Self>) -> Column<'r> {
                Column::$column(cells.collect())
            }
        }

        impl<'r> Cell<'r> for Option<$cell> {
            fn column(cells: impl Iterator<Item = Self>) -> Column<'r> {
                Column::$maybe(cells.collect())
            }
        }
    )+};
}

cells! {
    u32 => U32, MaybeU32;
    u64 => U64, MaybeU64;
    i64 => I64, MaybeI64;
    f64 => F64, MaybeF64;
    &'r str => Word, MaybeWord;
}

impl<'r> Cell<'r> for bool {
    fn column(cells: impl Iterator<Item = Self>) -> Column<'r> {
        Column::Bool(cells.collect())
    }
}

/// Times are signed in tables, so that differences of columns are what they seem.
fn time<T: Micros>(micros: T) -> T::Cell {
    micros.cell()
}

/// Microseconds, maybe of something that never was.
trait Micros {
    type Cell;

    fn cell(self) -> Self::Cell;
}

impl Micros for u32 {
    type Cell = i64;

    fn cell(self) -> i64 {
        self.into()
    }
}

impl Micros for u64 {
    type Cell = i64;

    fn cell(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

impl<T: Micros<Cell = i64>> Micros for Option<T> {
    type Cell = Option<i64>;

    fn cell(self) -> Option<i64> {
        self.map(Micros::cell)
    }
}
