//! What stands at regular moments: queues, shares, devices that are done.

use millpond_sim::{Outcome, Scenario, scenario::Event};

/// One link at each moment, or in the step that begins there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) queue_packets: Vec<u32>,
    pub(crate) queue_bytes: Vec<f64>,
    pub(crate) carried_bytes: Vec<f64>,
    pub(crate) useful_bytes: Vec<f64>,
}

/// The lines of the links, in their order.
pub(crate) fn lines(outcome: &Outcome) -> Vec<Line> {
    let links = &outcome.links;
    let mut lines = vec![Line::default(); links.len()];
    for row in &outcome.queue_trace {
        if let Some(place) = links.iter().position(|link| link.link == row.link) {
            lines[place].queue_packets.push(u32::try_from(row.packets).unwrap_or(u32::MAX));
            lines[place].queue_bytes.push(row.bytes as f64);
        }
    }
    for row in &outcome.share_trace {
        if let Some(place) = links.iter().position(|link| link.link == row.link) {
            lines[place].carried_bytes.push(row.carried_bytes as f64);
            lines[place].useful_bytes.push(row.useful_bytes as f64);
        }
    }
    lines
}

/// How many clients had all their answers at each of so many moments: those to what the last event of the timeline that
/// clients report made them ask, or without one all of them.
pub(crate) fn done(scenario: &Scenario, outcome: &Outcome, step_us: u64, frames: usize) -> Vec<u32> {
    let event = outcome.reported.iter().map(|row| row.event).max().unwrap_or(0);
    let began = (event as usize).checked_sub(1).and_then(|place| scenario.timeline.get(place));
    let began = began.map_or(0, |event| event.at().0);
    let mut done = vec![0; frames];
    let groups = outcome.reported.iter().map(|row| row.group).max().map_or(0, |last| last + 1);
    for group in 0..groups {
        let rows: Vec<_> = outcome.reported.iter().filter(|row| (row.group, row.event) == (group, event)).collect();
        for (frame, done) in done.iter_mut().enumerate() {
            let Some(since) = (frame as u64 * step_us).checked_sub(began) else { continue };
            // Times are upper edges of bins: what is done when the run ends may have one behind its end.
            let is_last = frame + 1 == frames;
            let passed = if is_last { rows.len() } else { rows.partition_point(|row| row.t_us <= since) };
            *done += passed.checked_sub(1).map_or(0, |last| rows[last].clients);
        }
    }
    done
}

/// When devices were waiting for an answer: of each copy that left, by whom, the n-th it was, from when to when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) clients: Vec<u32>,
    pub(crate) copies: Vec<u8>,
    pub(crate) from: Vec<f32>,
    pub(crate) to: Vec<f32>,
}

/// The waits of all clients, in the order of their beginning.
pub(crate) fn waits(scenario: &Scenario, outcome: &Outcome) -> Waits {
    let groups = scenario.flow_groups();
    let restart = |flow: u32, from: u64| {
        let group = outcome.flows.get(flow as usize).and_then(|row| groups.get(row.group as usize));
        let named = group.and_then(|group| group.clients.name.as_ref());
        scenario.timeline.iter().find_map(|event| match event {
            Event::Restart { at, clients, .. } if at.0 >= from && (clients.is_none() || clients.as_ref() == named) => {
                Some(at.0)
            }
            _ => None,
        })
    };
    let mut waits = Waits::default();
    for row in &outcome.rto_trace {
        let of = (row.flow, row.exchange);
        let known = outcome.exchanges.binary_search_by_key(&of, |row| (row.flow, row.exchange)).ok();
        let accepted = known.and_then(|known| outcome.exchanges[known].accepted_us);
        let ran_out = row.t_us + u64::from(row.wait_us);
        let ran_out = restart(row.flow, row.t_us).map_or(ran_out, |at| at.min(ran_out));
        waits.clients.push(outcome.client(row.flow));
        waits.copies.push(u8::try_from(row.copy).unwrap_or(u8::MAX));
        waits.from.push(crate::packets::seconds(row.t_us));
        waits.to.push(crate::packets::seconds(accepted.map_or(ran_out, |at| at.min(ran_out).max(row.t_us))));
    }
    waits
}
