//! The tables of one run: which columns they have and where each comes from.
//!
//! Times are whole microseconds of simulated time and end in `_us`; every table carries `run`, the number that the
//! caller gave the run.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use millpond_sim::{FlowRow, Options, Outcome, Scenario, TcpCounts, TraceKind};

use crate::columns::{Columns, time};
use crate::workers::Job;

/// Tables of one run by name, in the order of the results directory.
pub(crate) type Tables = Vec<(&'static str, RecordBatch)>;

/// Turns the rows of one run into tables. Traces appear only if `options` asks for them,
/// births by the second only where the scenario has a timeline, nodes only where it has a mesh.
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
    if job.scenario.mesh.is_some() {
        tables.push(("nodes", nodes(run, outcome)?));
    }
    if !job.scenario.timeline.is_empty() {
        tables.push(("births", births(run, outcome)?));
    }
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

/// The columns of some rows, in order: `flow` is the field of that name, `t_us: time` the same by way of a call, and
/// `link = …` whatever it says of `row`.
macro_rules! table {
    (@ $row:ident $name:ident) => { $row.$name };
    (@ $row:ident $name:ident $call:ident) => { $call($row.$name) };
    (@ $row:ident $name:ident = $cell:expr) => {{
        let _ = $row;
        $cell
    }};
    ($rows:expr, $row:ident => $($name:ident $(: $call:ident)? $(= $cell:expr)?),+ $(,)?) => {
        Columns::of($rows)$(.column(stringify!($name), |$row| table!(@ $row $name $($call)? $(= $cell)?)))+.finish()
    };
}

fn runs(job: &Job, outcome: &Outcome, wall: Duration) -> Result<RecordBatch, ArrowError> {
    table! { std::slice::from_ref(&outcome.summary), row =>
        run = job.run, seed = job.seed, simulated_us: time,
        wall_us = i64::try_from(wall.as_micros()).unwrap_or(i64::MAX),
        events, makespan_us: time, flows, unfinished, clients_complete, clients_lost, born, answered, failed,
        never_finished, delivered,
    }
}

fn flows(run: u32, outcome: &Outcome, scenario: &Scenario) -> Result<RecordBatch, ArrowError> {
    let controllers: Vec<_> = scenario.flow_groups().iter().map(|group| group.clients.algorithm()).collect();
    table! { &outcome.flows, row =>
        run = run, flow, group,
        controller = controllers.get(row.group as usize).map_or("", String::as_str),
        fct_us: time, first_send_us: time, completed, failed, transmissions, retransmissions, unnecessary,
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
        born, answered, requests_failed, never_finished, delivered, dropped_source, done_us: time,
        client = outcome.client(row.flow),
    }
}

fn reported(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.reported, row =>
        run = run, group, event, t_us: time, answered, clients, of, clients_of,
    }
}

fn delays(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.delays, row =>
        run = run, group, kind, upper_us: time, count,
    }
}

fn births(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.births, row =>
        run = run, group, since_us, born, delivered, delay_us: time,
    }
}

fn histogram(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.histogram, row =>
        run = run, group, first_batch, retransmissions, exchanges,
    }
}

fn evidence(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.evidence, row =>
        run = run, group, retransmissions, grade, right, exchanges, error_us, error_rtts,
    }
}

fn links(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.links, row =>
        run = run, link = &*row.link, offered_packets, offered_bytes, dropped_queue_packets, dropped_queue_bytes,
        dropped_radio_packets, dropped_radio_bytes, delivered_packets, delivered_bytes, useful_bytes, busy_us: time,
        queue_mean_bytes, queue_p95_bytes, queue_max_bytes, queue_mean_packets, queue_max_packets,
    }
}

fn nodes(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.nodes, row =>
        run = run, node = &*row.node, x_mm, y_mm, role = &*row.role, parent = row.parent.as_deref(), depth,
        data_sent, acks_sent, data_received, data_duplicate, data_collided, data_deaf, data_faded,
        acks_received, acks_collided, acks_deaf, acks_faded, acks_omitted,
        packets_begun, packets_arrived, packets_passed,
        lost_buffers, lost_neighbours, lost_no_ack, lost_no_channel, lost_air, lost_reassembly, on_air_us: time,
    }
}

fn queue_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.queue_trace, row =>
        run = run, link = &*row.link, t_us: time, bytes, packets,
    }
}

fn share_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.share_trace, row =>
        run = run, link = &*row.link, t_us: time, carried_bytes, useful_bytes,
    }
}

fn rto_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.rto_trace, row =>
        run = run, flow, exchange, copy, t_us: time, wait_us: time, reason,
    }
}

fn packets(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.packets, row =>
        run = run, t_us: time, event, link = &*row.link, flow, exchange, copy, bytes, offset, length, ack, again,
    }
}

fn tcp_trace(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.tcp_trace, row =>
        run = run, flow, t_us: time, cwnd, ssthresh, in_flight, state, phase, pacing_bps, rto_us: time, srtt_us: time,
    }
}

fn exchanges(run: u32, outcome: &Outcome) -> Result<RecordBatch, ArrowError> {
    table! { &outcome.exchanges, row =>
        run = run, flow, exchange, first_send_us: time, first_wait_us: time, accepted_us: time, copies, winning_copy,
        first_useful_copy, grade, named_copy, sample_us: time, true_us: time, rto_us: time,
    }
}

fn tcp(row: &FlowRow) -> Option<&TcpCounts> {
    row.tcp.as_deref()
}
