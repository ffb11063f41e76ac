//! What a channel carries when everybody always has something to send.

use super::{
    laws::{CONTIKI, Rig},
    *,
};

const IEEE: Rules = Rules { access: Access::Ieee, attempts: 4, buffers: 4 };
const MINUTE: u64 = 60_000_000;

/// Frames received by the first node in a second.
fn carried(rig: &Rig, micros: u64) -> f64 {
    let counts = rig.counts(0);
    (counts.data.received - counts.duplicates) as f64 / (micros as f64 / 1e6)
}

#[test]
fn a_pair_carries_what_its_times_leave() {
    for (rules, frame) in [(CONTIKI, 320.0 + 3_264.0 + 1_070.0), (IEEE, 1_120.0 + 320.0 + 3_264.0 + 544.0)] {
        let mut rig = Rig::new(&[(0, 0), (5, 0)], 0, rules, &[[1, 0]], 1.0);
        rig.saturate(1, 37, MINUTE);
        let (ours, expected) = (carried(&rig, MINUTE), 1e6 / frame);
        assert!((ours / expected - 1.0).abs() < 0.01, "{:?}: {ours} instead of {expected}", rules.access);
    }
}

/// Bianchi's argument (IEEE JSAC 18, 2000) for the access of IEEE 802.15.4: every assessment finds the channel busy with one
/// probability, every frame collides with one, both whatever happened before; what the channel carries follows from how
/// often an idle channel is left by one node alone. Gives frames a second of so many nodes that hear each other.
fn bianchi(nodes: f64) -> f64 {
    let (frame, turn, ack) = (3_264.0, 192.0, 352.0);
    let waits = [3, 4, 5, 5, 5].map(|exponent| (f64::from(1 << exponent) - 1.0) / 2.0 * 320.0 + 128.0);
    // What two frames that collide are apart, on average.
    let apart = turn / 2.0;
    let mut busy = 0.5_f64;
    let mut carried = 0.0;
    for _ in 0..4_000 {
        let tried = |stage: i32| busy.powi(stage);
        let assessments: f64 = (0..5).map(tried).sum();
        let waiting: f64 = waits.iter().zip(0..).map(|(wait, stage)| wait * tried(stage)).sum();
        // Assessments of a node in a microsecond in which nobody sends.
        let rate = assessments / waiting;
        // A frame is alone if no further assessment ends while the first one's radio turns.
        let alone = |nodes: f64| (-(nodes - 1.0) * rate * turn).exp();
        let busy_for = |alone: f64, between: f64| frame + alone * (between + ack) + (1.0 - alone) * apart;
        // What one of them finds: the others' frames. An assessment of 128 µs hears a frame, an acknowledgement, and all
        // but 64 µs of what is between the two.
        let others = alone(nodes - 1.0);
        let cycle = 1.0 / ((nodes - 1.0) * rate) + turn + busy_for(others, turn);
        busy += 0.05 * ((128.0 + busy_for(others, turn - 64.0)) / cycle - busy);
        carried = alone(nodes) / (1.0 / (nodes * rate) + turn + busy_for(alone(nodes), turn)) * 1e6;
    }
    carried
}

/// Assessments of different nodes are not independent: after a frame that all heard they wait side by side. That is the model's
/// error here, up to a tenth.
#[test]
fn contending_nodes_carry_what_bianchis_model_says() {
    for nodes in [2_u32, 5, 10] {
        // A receiver in the middle of a square of less than the range.
        let mut places = vec![(3, 3)];
        places.extend((0..).map(|at| (at % 7, at / 7)).filter(|place| *place != (3, 3)).take(nodes as usize));
        let sinks: Vec<[Node; 2]> = (1..=nodes).map(|node| [node, 0]).collect();
        let mut rig = Rig::new(&places, 0, IEEE, &sinks, 1.0);
        rig.saturate(nodes, 37, MINUTE);
        let (ours, expected) = (carried(&rig, MINUTE), bianchi(f64::from(nodes)));
        assert!((ours / expected - 1.0).abs() < 0.1, "{nodes} nodes: {ours} instead of {expected}");
    }
}
