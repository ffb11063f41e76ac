//! A mesh as a whole, worked out by hand.

use millpond_control::Purpose;

use super::{counts::Cause, medium::Fate, *};

/// A mesh of nodes at these places in metres, each with a client that sends to the node it is told.
pub(super) struct Rig {
    pub(super) mesh: Mesh,
    rec: Recorder,
    /// When which flow's packets arrived.
    pub(super) arrivals: Vec<(u64, u32)>,
}

pub(super) const CONTIKI: Rules = Rules::contiki(4, 4);

impl Rig {
    pub(super) fn new(metres: &[(i64, i64)], root: Node, rules: Rules, sinks: &[[Node; 2]], ratio: f64) -> Self {
        let carrier = if rules.access == Access::Ieee { 10_000 } else { 7_882 };
        Self::of(Self::plan(metres, root, rules, sinks, ratio, carrier), 1)
    }

    /// The same mesh as it is planned, with carriers that are sensed up to so many millimetres.
    pub(super) fn plan(
        metres: &[(i64, i64)],
        root: Node,
        rules: Rules,
        sinks: &[[Node; 2]],
        ratio: f64,
        carrier: u64,
    ) -> Plan {
        let name = |index: usize| LinkName::from(index.to_string().as_str());
        Plan {
            names: (0..metres.len()).map(name).collect(),
            places: metres.iter().map(|&(x, y)| Place { x: x * 1_000, y: y * 1_000 }).collect(),
            roles: vec![LinkName::from("device"); metres.len()],
            reach: Reach { transmission: 10_000, interference: 20_000, carrier },
            delivery: Delivery::new(vec![(ratio * WHOLE as f64) as u64], false),
            changes: VecDeque::new(),
            border_router: root,
            rpl: None,
            idle: 0,
            rules: vec![rules; metres.len()],
            processing: Span::from_millis(2),
            clients: sinks.to_vec(),
        }
    }

    /// A mesh after a plan, with this seed.
    pub(super) fn of(plan: Plan, seed: u64) -> Self {
        let rec = Recorder::new(&Options::default(), Vec::new(), std::iter::empty());
        Self { mesh: Mesh::new(plan, ChanceSeed::new(seed), false), rec, arrivals: Vec::new() }
    }

    /// A client sends a message of so many bytes.
    pub(super) fn send(&mut self, micros: u64, flow: u32, message: usize) {
        let now = Instant::from_micros(micros);
        let load = self.mesh.spare.copy(&vec![0; message]);
        let tag = Tag { exchange: 0, ..Tag::of(flow, 0, now) };
        self.mesh.send(now, flow, SERVER, HEADER + message as u32, load, tag, &mut self.rec);
    }

    /// Lets time pass until then, or until nothing more happens.
    pub(super) fn pass(&mut self, until: u64) {
        while self.mesh.next() <= Instant::from_micros(until) && self.mesh.next() != Instant::NEVER {
            let now = self.mesh.next();
            while let Some(packet) = self.mesh.deliver(now, &mut self.rec) {
                self.arrivals.push((now.as_micros(), packet.tag.flow));
            }
            self.mesh.check_conservation().unwrap();
        }
    }

    pub(super) fn counts(&self, node: usize) -> &counts::Counts {
        &self.mesh.stations[node].counts
    }

    /// Keeps two frames at each of these flows' nodes until then.
    pub(super) fn saturate(&mut self, flows: u32, message: usize, until: u64) {
        let mut now = 0;
        while now <= until {
            for flow in 0..flows {
                let node = self.mesh.plan.clients[flow as usize][0];
                while self.mesh.stations[node as usize].mac.held() < 2 {
                    self.send(now, flow, message);
                }
            }
            now = self.mesh.next().as_micros();
            while let Some(packet) = self.mesh.deliver(Instant::from_micros(now), &mut self.rec) {
                self.arrivals.push((now, packet.tag.flow));
            }
        }
        self.mesh.check_conservation().unwrap();
    }

    pub(super) fn sum(&self, what: impl Fn(&counts::Counts) -> u64) -> u64 {
        self.mesh.stations.iter().map(|station| what(&station.counts)).sum()
    }
}

fn row(metres: &[i64]) -> Vec<(i64, i64)> {
    metres.iter().map(|&x| (x, 0)).collect()
}

/// Assessment, turnaround, a frame of 96 bytes, and two milliseconds of processing.
const HOP: u64 = 128 + 192 + 3_264 + 2_000;

#[test]
fn a_hop_takes_assessment_turnaround_airtime_and_processing() {
    let mut rig = Rig::new(&row(&[0, 10]), 1, CONTIKI, &[[0, 1]], 1.0);
    rig.send(1_000, 0, 37);
    rig.pass(u64::MAX - 1);
    assert_eq!(rig.arrivals, [(1_000 + HOP, 0)]);
    assert_eq!((rig.counts(0).data_sent, rig.counts(1).acks_sent, rig.counts(0).acks.received), (1, 1, 1));
    assert_eq!((rig.counts(0).on_air, rig.counts(1).on_air), (3_264, 352));
}

#[test]
fn three_hops_take_three_times_as_long() {
    let mut rig = Rig::new(&row(&[0, 10, 20, 30]), 1, CONTIKI, &[[0, 3]], 1.0);
    rig.send(0, 0, 37);
    rig.pass(u64::MAX - 1);
    assert_eq!(rig.arrivals, [(3 * HOP, 0)]);
}

#[test]
fn fragments_follow_back_to_back_and_are_put_together_at_every_hop() {
    let mut rig = Rig::new(&row(&[0, 10, 20]), 1, CONTIKI, &[[0, 2]], 1.0);
    rig.send(0, 0, 96);
    rig.pass(u64::MAX - 1);
    // The second frame leaves when the acknowledgement of the first was read, 1.07 ms after its end.
    let hop = 2 * (128 + 192) + 3_488 + 1_070 + 2_880 + 2_000;
    assert_eq!(rig.arrivals, [(2 * hop, 0)]);
}

#[test]
fn two_hidden_senders_collide_and_both_get_through_later() {
    let mut rig = Rig::new(&row(&[0, 10, 20]), 1, CONTIKI, &[[0, 1], [2, 1]], 1.0);
    rig.send(0, 0, 37);
    rig.send(3_000, 1, 37);
    rig.pass(7_000);
    assert_eq!((rig.counts(1).data.collided, rig.counts(1).data.received), (2, 0));
    rig.pass(u64::MAX - 1);
    assert_eq!(rig.arrivals.len(), 2);
    assert!(rig.arrivals[0].0 > 125_000);
    assert_eq!(rig.sum(|counts| counts.lost.iter().sum()), 0);
}

#[test]
fn a_lost_acknowledgement_makes_a_duplicate_that_is_known() {
    // The third is 15 m from the sender and 25 m from the receiver: it disturbs acknowledgements alone.
    let mut rig = Rig::new(&row(&[0, 10, -15, -25]), 1, CONTIKI, &[[0, 1]], 1.0);
    rig.send(0, 0, 37);
    // The frame ends at 3584 µs, its acknowledgement is on the air from 3776 to 4128 µs.
    rig.pass(3_900);
    rig.mesh.medium.begin(2, 3);
    rig.pass(5_000);
    assert_eq!(rig.mesh.medium.end(2, &mut Vec::new()), Fate::Received);
    assert_eq!((rig.counts(0).acks.collided, rig.counts(0).acks.received), (1, 0));
    rig.pass(u64::MAX - 1);
    assert_eq!((rig.counts(0).data_sent, rig.counts(1).data.received, rig.counts(1).duplicates), (2, 2, 1));
    assert_eq!(rig.arrivals, [(HOP, 0)]);
    assert_eq!(rig.mesh.branches, 0);
}

#[test]
fn a_packet_that_got_on_is_not_lost_however_its_sender_sees_it() {
    let mut rig = Rig::new(&row(&[0, 10, -15, -25]), 1, CONTIKI, &[[0, 1]], 1.0);
    rig.send(0, 0, 37);
    rig.pass(3_900);
    // From now on no acknowledgement comes through.
    rig.mesh.medium.begin(2, 3);
    rig.pass(u64::MAX - 1);
    assert_eq!((rig.counts(0).data_sent, rig.counts(1).duplicates, rig.arrivals.len()), (4, 3, 1));
    assert_eq!((rig.counts(0).passed, rig.sum(|counts| counts.lost.iter().sum())), (1, 0));
}

#[test]
fn a_frame_that_was_forgotten_comes_twice_and_is_counted_as_one_more() {
    // The second pair makes the receiver forget while the first sender's acknowledgements are disturbed.
    let mut rig = Rig::new(&row(&[0, 10, 20, -15, -25]), 1, CONTIKI, &[[0, 1], [2, 1]], 1.0);
    rig.send(0, 0, 37);
    rig.pass(3_900);
    rig.mesh.medium.begin(3, 4);
    rig.pass(6_000);
    for packet in 0..8 {
        rig.send(10_000 + packet * 12_000, 1, 37);
        rig.pass(22_000 + packet * 12_000 - 1);
    }
    assert_eq!(rig.arrivals.len(), 9);
    rig.mesh.medium.end(3, &mut Vec::new());
    rig.pass(u64::MAX - 1);
    assert_eq!(rig.arrivals.iter().filter(|(_, flow)| *flow == 0).count(), 2);
    assert_eq!((rig.mesh.branches, rig.mesh.branched().map(|tag| tag.flow)), (1, Some(0)));
}

#[test]
fn full_buffers_and_a_third_neighbour_are_counted_apart() {
    let star = [(0, 0), (10, 0), (-10, 0), (0, 10)];
    let mut rig = Rig::new(&star, 0, CONTIKI, &[[0, 1], [0, 2], [0, 3]], 1.0);
    for flow in 0..3 {
        rig.send(0, flow, 37);
    }
    assert_eq!(rig.counts(0).lost[Cause::Neighbours as usize], 1);
    for _ in 0..3 {
        rig.send(0, 1, 37);
    }
    assert_eq!(rig.counts(0).lost[Cause::Buffers as usize], 1);
    rig.pass(u64::MAX - 1);
    assert_eq!(rig.arrivals.len(), 4);
    assert!(rig.mesh.lost().is_some() && rig.mesh.lost().is_some() && rig.mesh.lost().is_none());
}

/// What is checked at every step of these runs is that nothing leaves the books.
#[test]
fn every_frame_and_every_packet_ends_in_one_counted_way() {
    let grid: Vec<(i64, i64)> = (0..25).map(|node| (node % 5 * 10, node / 5 * 10)).collect();
    let sinks: Vec<[Node; 2]> = (0..24).map(|node| [node, 24]).collect();
    let access = [Access::Contiki27, Access::Ieee];
    let cases = access.into_iter().flat_map(|access| [(access, 4, 37), (access, 0, 37), (access, 4, 96)]);
    let mut fates = counts::Fates::default();
    for (access, attempts, message) in cases {
        let mut rig = Rig::new(&grid, 12, Rules { access, ..Rules::contiki(attempts, 6) }, &sinks, 0.9);
        let seed = ChanceSeed::new(3);
        for packet in 0..400_u64 {
            let flow = seed.at(Purpose::Workload, [packet as u32, 0, 0, 0]).pick(0, 23);
            rig.send(packet * 40_000, flow, message);
            rig.pass((packet + 1) * 40_000 - 1);
        }
        rig.pass(u64::MAX - 1);
        let lost = rig.sum(|counts| counts.lost.iter().sum());
        assert_eq!(400 + rig.mesh.branches, rig.arrivals.len() as u64 + lost, "{access:?} {attempts} {message}");
        assert!(rig.arrivals.len() > 40 && lost > 0, "{access:?} {attempts} {message}: {}", rig.arrivals.len());
        assert_eq!(rig.mesh.bodies.living(), 0);
        fates.collided += rig.sum(|counts| counts.data.collided);
        fates.deaf += rig.sum(|counts| counts.data.deaf);
        fates.faded += rig.sum(|counts| counts.data.faded);
    }
    assert!(fates.collided > 100 && fates.deaf > 10 && fates.faded > 100, "{fates:?}");
}
