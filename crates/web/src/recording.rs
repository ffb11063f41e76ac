//! One run, kept whole.

use millpond_sim::{LinkName, Options, Outcome, RunError, TraceKind, tables};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    frames::{self, Line, Waits},
    packets::{self, Packets},
    scenario::Scenario,
    text::Text,
};

/// Moments of a run that a page gets at most: more than there are pixels across a chart.
const FRAMES: u64 = 1_200;
/// Between two of them lies at least this, in microseconds.
const SHORTEST_STEP: u64 = 1_000;
/// Packets that are kept one by one, at most: what a telephone has memory for.
const MOST_PACKETS: u64 = 600_000;
/// The most memory that a run may take, in bytes, by its own estimate.
const MOST_BYTES: u64 = 1 << 29;
/// A run is looked at every 4096 steps; after so many looks it is too long for a page: some ten seconds.
const MOST_LOOKS: u32 = 10_000;

/// One run: its tables, and what a page draws. Times are seconds of simulated time.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Recording {
    scenario: millpond_sim::Scenario,
    seed: u64,
    options: Options,
    outcome: Outcome,
    lines: Vec<Line>,
    packets: Vec<Packets>,
    done: Vec<u32>,
    waits: Waits,
}

/// Runs a scenario. The result depends on scenario and seed alone, and equals that of any other machine.
///
/// # Errors
/// One line that says why there is no result; that a run is too large for a page is one of them.
#[wasm_bindgen]
pub fn run(scenario: &Scenario, seed: u32) -> Result<Recording, String> {
    let (scenario, seed) = (scenario.0.clone(), u64::from(seed));
    if scenario.estimated_bytes() > MOST_BYTES {
        return Err(format!(
            "this run needs about {} MiB, more than a page may take: {INSTEAD}",
            scenario.estimated_bytes() >> 20
        ));
    }
    // Once for how long it is and how much there is to keep, then once more to keep it.
    let plain = simulate(&scenario, seed, &Options::default())?;
    let step = (plain.summary.simulated_us / FRAMES).max(SHORTEST_STEP).next_multiple_of(SHORTEST_STEP);
    let offered: u64 = plain.links.iter().map(|link| link.offered_packets).sum();
    let mut traces = vec![TraceKind::Queue, TraceKind::Share];
    if offered <= MOST_PACKETS {
        traces.extend([TraceKind::Rto, TraceKind::Packets, TraceKind::Exchanges]);
    }
    let options = Options { traces, trace_step_us: step, capture: false };
    let mut outcome = simulate(&scenario, seed, &options)?;
    let lines = frames::lines(&outcome);
    let frames = lines.iter().map(|line| line.queue_packets.len()).max().unwrap_or(0);
    let packets = packets::of(&outcome, &delays(&scenario, &outcome));
    let done = frames::done(&scenario, &outcome, step, frames);
    let waits = frames::waits(&scenario, &outcome);
    // What was only needed for these is large.
    outcome.packets = Vec::new();
    outcome.rto_trace = Vec::new();
    outcome.exchanges = Vec::new();
    Ok(Recording { scenario, seed, options, outcome, lines, packets, done, waits })
}

const INSTEAD: &str = "take the scenario out and give it to `millpond run`, which has no such limit";

fn simulate(scenario: &millpond_sim::Scenario, seed: u64, options: &Options) -> Result<Outcome, String> {
    let mut looks = 0;
    let too_long = || {
        looks += 1;
        looks > MOST_LOOKS
    };
    millpond_sim::run(scenario, seed, options, too_long).map_err(|error| match error {
        RunError::Cancelled => format!("this run is too long for a page: {INSTEAD}"),
        other => other.to_string(),
    })
}

/// The links and how long packets are under way on each, without jitter.
fn delays(scenario: &millpond_sim::Scenario, outcome: &Outcome) -> Vec<(LinkName, u64)> {
    let known = scenario.links();
    let delay = |name: &LinkName| known.iter().find(|(known, _)| **known == **name).map_or(0, |(_, link)| link.delay.0);
    outcome.links.iter().map(|row| (row.link.clone(), delay(&row.link))).collect()
}

#[wasm_bindgen]
impl Recording {
    /// When the run ended.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.outcome.summary.simulated_us as f64 / 1e6
    }

    /// What lies between two moments of `queue`, `carried`, `useful` and `done`.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn step(&self) -> f64 {
        self.options.trace_step_us as f64 / 1e6
    }

    /// Whether every packet was kept; of a very long run there are too many.
    #[wasm_bindgen(getter, js_name = hasPackets)]
    #[must_use]
    pub fn has_packets(&self) -> bool {
        self.options.traces.contains(&TraceKind::Packets)
    }

    /// Names of the links.
    #[must_use]
    pub fn links(&self) -> Vec<String> {
        self.outcome.links.iter().map(|row| row.link.to_string()).collect()
    }

    /// Packets in the queue of a link at each moment.
    #[must_use]
    pub fn queue(&self, link: usize) -> Vec<u32> {
        self.line(link, |line| line.queue_packets.clone())
    }

    /// Their bytes.
    #[wasm_bindgen(js_name = queueBytes)]
    #[must_use]
    pub fn queue_bytes(&self, link: usize) -> Vec<f64> {
        self.line(link, |line| line.queue_bytes.clone())
    }

    /// Bytes that a link carried from each moment to the next.
    #[must_use]
    pub fn carried(&self, link: usize) -> Vec<f64> {
        self.line(link, |line| line.carried_bytes.clone())
    }

    /// Those of them that belong to copies which completed their exchange.
    #[must_use]
    pub fn useful(&self, link: usize) -> Vec<f64> {
        self.line(link, |line| line.useful_bytes.clone())
    }

    /// Devices that had all their answers, at each moment.
    #[must_use]
    pub fn done(&self) -> Vec<u32> {
        self.done.clone()
    }

    /// When each packet came to a link's queue, in order.
    #[must_use]
    pub fn came(&self, link: usize) -> Vec<f32> {
        self.packet(link, |packets| packets.came.clone())
    }

    /// When its last bit was sent; infinite if never.
    #[must_use]
    pub fn sent(&self, link: usize) -> Vec<f32> {
        self.packet(link, |packets| packets.sent.clone())
    }

    /// When it arrived; infinite if it did not.
    #[must_use]
    pub fn arrived(&self, link: usize) -> Vec<f32> {
        self.packet(link, |packets| packets.arrived.clone())
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self, link: usize) -> Vec<u32> {
        self.packet(link, |packets| packets.bytes.clone())
    }

    /// What became of it: 0 useful, 1 useless, 2 refused by the full queue, 3 lost by the radio, 4 still under way.
    #[must_use]
    pub fn fates(&self, link: usize) -> Vec<u8> {
        self.packet(link, |packets| packets.fates.clone())
    }

    /// The client of each wait for an answer, in the order of their beginning.
    #[wasm_bindgen(js_name = waitClients)]
    #[must_use]
    pub fn wait_clients(&self) -> Vec<u32> {
        self.waits.clients.clone()
    }

    /// The copy that it waited after, 0 being the first.
    #[wasm_bindgen(js_name = waitCopies)]
    #[must_use]
    pub fn wait_copies(&self) -> Vec<u8> {
        self.waits.copies.clone()
    }

    /// From when.
    #[wasm_bindgen(js_name = waitFrom)]
    #[must_use]
    pub fn wait_from(&self) -> Vec<f32> {
        self.waits.from.clone()
    }

    /// To when: the answer, the timer, or a restart.
    #[wasm_bindgen(js_name = waitTo)]
    #[must_use]
    pub fn wait_to(&self) -> Vec<f32> {
        self.waits.to.clone()
    }

    /// The tables of the run as JSON, columns by name, those of the results directory; the two traces that are sampled too.
    #[must_use]
    pub fn tables(&self) -> String {
        let sampled = [TraceKind::Queue, TraceKind::Share];
        let options = Options { traces: sampled.to_vec(), ..self.options.clone() };
        let label = tables::Label { run: 0, seed: self.seed, wall_us: 0 };
        let mut text = Text::default();
        tables::write(label, &self.scenario, &options, &self.outcome, &mut text);
        text.json()
    }

    fn line<T>(&self, link: usize, of: impl Fn(&Line) -> Vec<T>) -> Vec<T> {
        self.lines.get(link).map_or_else(Vec::new, of)
    }

    fn packet<T>(&self, link: usize, of: impl Fn(&Packets) -> Vec<T>) -> Vec<T> {
        self.packets.get(link).map_or_else(Vec::new, of)
    }
}
