//! The tables of one run: which columns they have and where each comes from.
//!
//! Times are whole microseconds of simulated time and end in `_us`; every table carries `run`, the number that the
//! caller gave the run.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use millpond_sim::{Options, Outcome, Scenario, TraceKind};

use crate::columns::Columns;
use crate::workers::Job;

/// Tables of one run by name, in the order of the results directory.
pub(crate) type Tables = Vec<(&'static str, RecordBatch)>;

/// Turns the rows of one run into tables. Traces appear only if `options` asks for them.
pub(crate) fn of(job: &Job, options: &Options, outcome: &Outcome, wall: Duration) -> Result<Tables, ArrowError> {
    let run = job.run;
    let mut tables = vec![
        ("runs", runs(job, outcome, wall)?),
        ("flows", flows(run, outcome, &job.scenario)?),
        ("histogram", histogram(run, outcome)?),
        ("evidence", evidence(run, outcome)?),
        ("links", links(run, outcome)?),
        ("reported", reported(run, outcome)?),
        ("delays", delays(run, outcome)?),
    ];
    for kind in TraceKind::ALL.iter().filter(|kind| options.traces.contains(kind)) {
        tables.push(match kind {
            TraceKind::Queue => ("queue_trace", queue_trace(run, outcome)?),
            TraceKind::Share => ("share_trace", share_trace(run, outcome)?),
            TraceKind::Rto => ("rto_trace", rto_trace(run, outcome)?),
            TraceKind::Packets => ("packets", packets(run, outcome)?),
            TraceKind::Exchanges => ("exchanges", exchanges(run, outcome)?),
            TraceKind::Tcp => ("tcp_trace", tcp_trace(run, outcome)?),
        });
    }
    Ok(tables)
}

fn runs(job: &Job, outcome: &Outcome, wall: Duration) -> Result<RecordBatch, ArrowError> {
    Columns::of(std::slice::from_ref(&outcome.summary))
        .column("run", |_| job.run)
        .column("seed", |_| job.seed)
        .column("simulated_us", |row| time(row.simulated_us))
        .column("wall_us", |_| i64::try_from(wall.as_micros()).unwrap_or(i64::MAX))
        .column("events", |row| row.events)
        .column("makespan_us", |row| row.makespan_us.map(time))
        .column("flows", |row| row.flows)
        .column("unfinished", |row| row.unfinished)
        .column("clients_complete", |row| row.clients_complete)
        .column("clients_lost", |row| row.clients_lost)
        .column("born", |row| row.born)
        .column("answered", |row| row.answered)
        .column("failed", |row| row.failed)
        .column("never_finished", |row| row.never_finished)
        .column("delivered", |row| row.delivered)
        .finish()
}

fn flows(run: u32, outcome: &Outcome, scenario: &Scenario) -> Result<RecordBatch, ArrowError> {
    let controllers: Vec<_> = scenario.clients.iter().map(millpond_sim::scenario::Clients::algorithm).collect();
    Columns::of(&outcome.flows)
        .column("run", |_| run)
        .column("flow", |row| row.flow)
        .column("group", |row| row.group)
        .column("controller", |row| controllers.get(row.group as usize).map_or("", String::as_str))
        .column("fct_us", |row| row.fct_us.map(time))
        .column("first_send_us", |row| time(row.first_send_us))
        .column("completed", |row| row.completed)
        .column("failed", |row| row.failed)
        .column("transmissions", |row| row.transmissions)
        .column("retransmissions", |row| row.retransmissions)
        .column("unnecessary", |row| row.unnecessary)
        .column("late_replies", |row| row.late_replies)
        .column("rtt_first_mean_us", |row| row.rtt_first_mean_us)
        .column("rtt_true_mean_us", |row| row.rtt_true_mean_us)
        .column("rtt_strong_mean_us", |row| row.rtt_strong_mean_us)
        .column("strong_samples", |row| row.strong_samples)
        .column("batches", |row| row.batches)
        .column("first_wait_mean_us", |row| row.first_wait_mean_us)
        .column("first_wait_median_us", |row| row.first_wait_median_us)
        .column("transport", |row| row.transport)
        .column("body_bytes", |row| row.body_bytes)
        .column("dropped_queue", |row| row.dropped_queue)
        .column("dropped_radio", |row| row.dropped_radio)
        .column("connections", |row| row.tcp.as_ref().map(|tcp| tcp.connections))
        .column("segments", |row| row.tcp.as_ref().map(|tcp| tcp.segments))
        .column("fast_retransmits", |row| row.tcp.as_ref().map(|tcp| tcp.fast_retransmits))
        .column("timeout_retransmits", |row| row.tcp.as_ref().map(|tcp| tcp.timeout_retransmits))
        .column("timeouts", |row| row.tcp.as_ref().map(|tcp| tcp.timeouts))
        .column("first_timeout_us", |row| row.tcp.as_ref().and_then(|tcp| tcp.first_timeout_us).map(time))
        .column("spurious", |row| row.tcp.as_ref().map(|tcp| tcp.spurious))
        .column("duplicate_acks", |row| row.tcp.as_ref().map(|tcp| tcp.duplicate_acks))
        .column("longest_rto_us", |row| row.tcp.as_ref().map(|tcp| time(tcp.longest_rto_us)))
        .column("request_retransmits", |row| row.tcp.as_ref().map(|tcp| tcp.request_retransmits))
        .column("born", |row| row.born)
        .column("answered", |row| row.answered)
        .column("requests_failed", |row| row.requests_failed)
        .column("never_finished", |row| row.never_finished)
        .column("delivered", |row| row.delivered)
        .column("dropped_source", |row| row.dropped_source)
        .column("done_us", |row| row.done_us.map(time))
        .finish()
}

fn reported(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.reported)
        .column("run", |_| run)
        .column("group", |row| row.group)
        .column("event", |row| row.event)
        .column("t_us", |row| time(row.t_us))
        .column("answered", |row| row.answered)
        .column("clients", |row| row.clients)
        .column("of", |row| row.of)
        .column("clients_of", |row| row.clients_of)
        .finish()
}

fn delays(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.delays)
        .column("run", |_| run)
        .column("group", |row| row.group)
        .column("kind", |row| row.kind)
        .column("upper_us", |row| time(row.upper_us))
        .column("count", |row| row.count)
        .finish()
}

fn histogram(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.histogram)
        .column("run", |_| run)
        .column("group", |row| row.group)
        .column("first_batch", |row| row.first_batch)
        .column("retransmissions", |row| row.retransmissions)
        .column("exchanges", |row| row.exchanges)
        .finish()
}

fn evidence(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.evidence)
        .column("run", |_| run)
        .column("group", |row| row.group)
        .column("retransmissions", |row| row.retransmissions)
        .column("grade", |row| row.grade)
        .column("right", |row| row.right)
        .column("exchanges", |row| row.exchanges)
        .column("error_us", |row| row.error_us)
        .column("error_rtts", |row| row.error_rtts)
        .finish()
}

fn links(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.links)
        .column("run", |_| run)
        .column("link", |row| &*row.link)
        .column("offered_packets", |row| row.offered_packets)
        .column("offered_bytes", |row| row.offered_bytes)
        .column("dropped_queue_packets", |row| row.dropped_queue_packets)
        .column("dropped_queue_bytes", |row| row.dropped_queue_bytes)
        .column("dropped_radio_packets", |row| row.dropped_radio_packets)
        .column("dropped_radio_bytes", |row| row.dropped_radio_bytes)
        .column("delivered_packets", |row| row.delivered_packets)
        .column("delivered_bytes", |row| row.delivered_bytes)
        .column("useful_bytes", |row| row.useful_bytes)
        .column("busy_us", |row| time(row.busy_us))
        .column("queue_mean_bytes", |row| row.queue_mean_bytes)
        .column("queue_p95_bytes", |row| row.queue_p95_bytes)
        .column("queue_max_bytes", |row| row.queue_max_bytes)
        .column("queue_mean_packets", |row| row.queue_mean_packets)
        .column("queue_max_packets", |row| row.queue_max_packets)
        .finish()
}

fn queue_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.queue_trace)
        .column("run", |_| run)
        .column("link", |row| &*row.link)
        .column("t_us", |row| time(row.t_us))
        .column("bytes", |row| row.bytes)
        .column("packets", |row| row.packets)
        .finish()
}

fn share_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.share_trace)
        .column("run", |_| run)
        .column("link", |row| &*row.link)
        .column("t_us", |row| time(row.t_us))
        .column("carried_bytes", |row| row.carried_bytes)
        .column("useful_bytes", |row| row.useful_bytes)
        .finish()
}

fn rto_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.rto_trace)
        .column("run", |_| run)
        .column("flow", |row| row.flow)
        .column("exchange", |row| row.exchange)
        .column("copy", |row| row.copy)
        .column("t_us", |row| time(row.t_us))
        .column("wait_us", |row| i64::from(row.wait_us))
        .column("reason", |row| row.reason)
        .finish()
}

fn packets(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.packets)
        .column("run", |_| run)
        .column("t_us", |row| time(row.t_us))
        .column("event", |row| row.event)
        .column("link", |row| &*row.link)
        .column("flow", |row| row.flow)
        .column("exchange", |row| row.exchange)
        .column("copy", |row| row.copy)
        .column("bytes", |row| row.bytes)
        .column("offset", |row| row.offset)
        .column("length", |row| row.length)
        .column("ack", |row| row.ack)
        .column("again", |row| row.again)
        .finish()
}

fn tcp_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.tcp_trace)
        .column("run", |_| run)
        .column("flow", |row| row.flow)
        .column("t_us", |row| time(row.t_us))
        .column("cwnd", |row| row.cwnd)
        .column("ssthresh", |row| row.ssthresh)
        .column("in_flight", |row| row.in_flight)
        .column("state", |row| row.state)
        .column("phase", |row| row.phase)
        .column("pacing_bps", |row| row.pacing_bps)
        .column("rto_us", |row| time(row.rto_us))
        .column("srtt_us", |row| row.srtt_us.map(time))
        .finish()
}

fn exchanges(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    Columns::of(&outcome.exchanges)
        .column("run", |_| run)
        .column("flow", |row| row.flow)
        .column("exchange", |row| row.exchange)
        .column("first_send_us", |row| time(row.first_send_us))
        .column("first_wait_us", |row| i64::from(row.first_wait_us))
        .column("accepted_us", |row| row.accepted_us.map(time))
        .column("copies", |row| row.copies)
        .column("winning_copy", |row| row.winning_copy)
        .column("first_useful_copy", |row| row.first_useful_copy)
        .column("grade", |row| row.grade)
        .column("named_copy", |row| row.named_copy)
        .column("sample_us", |row| row.sample_us.map(time))
        .column("true_us", |row| row.true_us.map(time))
        .column("rto_us", |row| row.rto_us.map(i64::from))
        .finish()
}

/// Times are signed in tables, so that differences of columns are what they seem.
fn time(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
