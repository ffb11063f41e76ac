//! What a channel carries when everybody always has something to send.

use super::{
    laws::{CONTIKI, Rig},
    *,
};

const IEEE: Rules = Rules { access: Access::Ieee, ..Rules::contiki(4, 4) };
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
    for nodes in [2_u32, 5, 10, 20] {
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

/// Four nodes in a row that all sense each other: the first always has something to send, two relays hand it on. Those that
/// have something take turns, each as likely as the others, as many in a second as that number of contending nodes carry;
/// a packet that finds the buffers of the next relay full is lost. Gives packets a second that get to the end.
fn chain_of_three_hops(buffers: usize) -> f64 {
    let turns = [1.0, 2.0, 3.0].map(bianchi);
    let states = || (0..=buffers).flat_map(|first| (0..=buffers).map(move |second| (first, second)));
    let place = |first: usize, second: usize| first * (buffers + 1) + second;
    // Each of those with something to send has its turn so often.
    let rate = |first: usize, second: usize| {
        let contending = 1 + usize::from(first > 0) + usize::from(second > 0);
        turns[contending - 1] / contending as f64
    };
    let mut chance = vec![1.0 / states().count() as f64; states().count()];
    for _ in 0..20_000 {
        let mut next = chance.clone();
        for (first, second) in states() {
            // A step of a millisecond, in which hardly ever two have a turn.
            let moved = chance[place(first, second)] * rate(first, second) / 1_000.0;
            let mut turn = |to: usize| {
                next[place(first, second)] -= moved;
                next[to] += moved;
            };
            turn(place((first + 1).min(buffers), second));
            if first > 0 {
                turn(place(first - 1, (second + 1).min(buffers)));
            }
            if second > 0 {
                turn(place(first, second - 1));
            }
        }
        chance = next;
    }
    states().filter(|state| state.1 > 0).map(|(first, second)| chance[place(first, second)] * rate(first, second)).sum()
}

#[test]
fn a_chain_of_three_hops_carries_what_turns_and_buffers_leave() {
    let row: Vec<(i64, i64)> = (0..4).map(|node| (node * 10, 0)).collect();
    // With two buffers a relay that receives is full oftener than chance would have it.
    for (buffers, error) in [(2, 0.2), (4, 0.1), (8, 0.1)] {
        let rules = Rules { buffers, ..IEEE };
        let mut rig = Rig::of(Rig::plan(&row, 3, rules, &[[0, 3]], 1.0, 40_000), 1);
        rig.saturate(1, 37, MINUTE);
        let ours = rig.arrivals.len() as f64 / (MINUTE as f64 / 1e6);
        let expected = chain_of_three_hops(usize::from(buffers));
        assert!((ours / expected - 1.0).abs() < error, "{buffers} buffers: {ours} instead of {expected}");
    }
}

/// With one packet on its way at a time a chain is as slow as its hops.
#[test]
fn a_chain_that_waits_for_each_packet_takes_three_hops_for_it() {
    let row: Vec<(i64, i64)> = (0..4).map(|node| (node * 10, 0)).collect();
    let mut rig = Rig::new(&row, 3, CONTIKI, &[[0, 3]], 1.0);
    let mut now = 0;
    for packet in 1..=100 {
        rig.send(now, 0, 37);
        rig.pass(u64::MAX - 1);
        assert_eq!(rig.arrivals.len(), packet);
        let arrived = rig.arrivals[packet - 1].0;
        assert_eq!(arrived - now, 3 * (128 + 192 + 3_264 + 2_000));
        now = arrived + 10_000;
    }
}
