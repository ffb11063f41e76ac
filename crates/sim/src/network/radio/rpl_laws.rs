//! A mesh that finds its tree by RPL: what goes on the air, and where packets go.

use millpond_control::Purpose;

use super::{
    counts::Cause,
    laws::{CONTIKI, Rig},
    rpl::Control,
    *,
};

const SECOND: u64 = 1_000_000;

pub(super) const SETTINGS: Settings = Settings {
    control_traffic: true,
    objective: Objective::Mrhof { threshold: 64 },
    trickle: Parameters { minimum: Span::from_millis(4_096), doublings: 8, redundancy: 10 },
    dis_interval: Span::from_secs(60),
    dao_delay: Span::from_secs(4),
};

fn rig(metres: &[(i64, i64)], sinks: &[[Node; 2]], ratio: f64, settings: Settings, seed: u64) -> Rig {
    let plan = Rig::plan(metres, 0, CONTIKI, sinks, ratio, 7_882);
    Rig::of(Plan { rpl: Some(settings), ..plan }, seed)
}

fn control(rig: &Rig, node: usize) -> Control {
    rig.mesh.rpl.as_ref().unwrap().control[node]
}

fn parents(rig: &Rig) -> Vec<Option<Node>> {
    (0..rig.mesh.stations.len() as Node).map(|node| rig.mesh.rpl.as_ref().unwrap().parent(node)).collect()
}

/// A grid of 5 by 5 with its root in a corner.
fn grid() -> Vec<(i64, i64)> {
    (0..25).map(|node| (node % 5 * 10, node / 5 * 10)).collect()
}

/// After ten minutes seven intervals of Trickle are over, 4.096 · (2⁷ − 1) = 520.192 s, and the eighth has not come to its second
/// half, which begins 262.144 s later: seven DIOs of each node that joined within 79 s and had no reason to begin anew. A
/// node that hears 5 neighbours at most is never suppressed.
#[test]
fn trickle_settles_to_its_closed_form() {
    for seed in 0..20 {
        let mut pair = rig(&[(0, 0), (10, 0)], &[], 1.0, SETTINGS, seed);
        pair.pass(600 * SECOND);
        let [root, node] = [0, 1].map(|node| control(&pair, node).made);
        // DIS, DIO, DAO, No-Path DAO. A second DIO that comes before the DAO for the first has left asks for no other.
        assert_eq!((root, node[1], node[3]), ([0, 7, 0, 0], 7, 0), "seed {seed}");
        assert!(node[0] <= 1 && (6..=7).contains(&node[2]), "seed {seed}: {node:?}");
        // 97 bytes of each DIO, 76 of a DAO and its acknowledgement, 64 of a DIS, with 6 in front of each.
        let on_air = (7 * 103 + node[2] * 82 + node[0] * 70) * 32;
        assert_eq!(pair.counts(1).on_air, on_air, "seed {seed}");
        assert_eq!(pair.counts(0).on_air, 7 * 103 * 32 + node[2] * 352, "seed {seed}");
    }
    // In a chain each joins by the first DIO of the one before: 2.048 to 4.096 s later, so that the fifth is there after 20.5 s.
    let mut clean = 0;
    for seed in 0..20 {
        let chain: Vec<(i64, i64)> = (0..6).map(|node| (node * 10, 0)).collect();
        let mut rig = rig(&chain, &[], 1.0, SETTINGS, seed);
        rig.pass(600 * SECOND);
        let lost: u64 = (0..6).map(|node| control(&rig, node).fates).map(|fates| fates.sum() - fates.received).sum();
        let dios: Vec<u64> = (0..6).map(|node| control(&rig, node).made[1]).collect();
        if lost == 0 {
            clean += 1;
            assert_eq!(dios, [7; 6], "seed {seed}");
        }
        assert!(dios.iter().all(|dios| (7..=14).contains(dios)), "seed {seed}: {dios:?}");
        assert_eq!(parents(&rig), [None, Some(0), Some(1), Some(2), Some(3), Some(4)]);
    }
    assert!(clean > 2, "{clean} of 20 without a loss test little");
}

#[test]
fn all_of_a_grid_join_and_are_to_be_reached() {
    for (objective, seed) in [(SETTINGS.objective, 1), (Objective::Of0, 2), (SETTINGS.objective, 3)] {
        let sinks: Vec<[Node; 2]> = (1..25).map(|node| [0, node]).collect();
        let mut rig = rig(&grid(), &sinks, 1.0, Settings { objective, ..SETTINGS }, seed);
        rig.pass(300 * SECOND);
        let rpl = rig.mesh.rpl.as_ref().unwrap();
        assert!((0..25).all(|node| rpl.depth(node).is_some()), "{:?}", parents(&rig));
        if objective == Objective::Of0 {
            let hops = |node: Node| Some(node % 5 + node / 5);
            assert!((0..25).all(|node| rpl.depth(node) == hops(node)), "{:?}", parents(&rig));
        }
        // From the root down to each, one after the other.
        for flow in 0..24 {
            rig.send((301 + 2 * u64::from(flow)) * SECOND, flow, 37);
            rig.pass((303 + 2 * u64::from(flow)) * SECOND - 1);
        }
        let lost = |cause: Cause| rig.sum(|counts| counts.lost[cause as usize]);
        assert_eq!((rig.arrivals.len(), lost(Cause::NoRoute), lost(Cause::StaleRoute)), (24, 0, 0), "seed {seed}");
    }
}

#[test]
fn what_a_node_that_has_not_joined_sends_is_lost_for_want_of_a_route() {
    let mut rig = rig(&[(0, 0), (10, 0)], &[[1, 0], [0, 1]], 1.0, SETTINGS, 1);
    rig.send(SECOND, 0, 37);
    rig.send(SECOND, 1, 37);
    rig.pass(SECOND);
    assert_eq!((rig.counts(0).lost[Cause::NoRoute as usize], rig.counts(1).lost[Cause::NoRoute as usize]), (1, 1));
    rig.pass(20 * SECOND - 1);
    // Once it has joined and told of itself both ways are there.
    rig.send(20 * SECOND, 0, 37);
    rig.send(20 * SECOND, 1, 37);
    rig.pass(25 * SECOND);
    assert_eq!(rig.arrivals.len(), 2);
}

/// The root 0, two nodes 1 and 2 beside it, and 3, which hears these two only. At 100 s the link of 3 to its parent gets bad.
#[test]
fn a_node_whose_link_gets_bad_moves_to_the_better_parent() {
    let diamond = [(0, 0), (7, 7), (7, -7), (14, 0)];
    let settled = |change: Option<Node>, control_traffic| {
        let plan = Rig::plan(&diamond, 0, CONTIKI, &[[3, 0], [0, 3], [1, 0], [2, 0]], 1.0, 7_882);
        let to = |parent| (Instant::from_micros(100 * SECOND), [parent, 3], WHOLE / 4);
        let changes = change.map(to).into_iter().collect();
        let settings = Settings { control_traffic, ..SETTINGS };
        let mut rig = Rig::of(Plan { rpl: Some(settings), changes, ..plan }, 1);
        for packet in 0..200 {
            rig.pass((60 + packet) * SECOND - 1);
            rig.send((60 + packet) * SECOND, 0, 37);
            for flow in 1..4 {
                rig.pass((60 + packet) * SECOND + u64::from(flow) * SECOND / 4 - 1);
                rig.send((60 + packet) * SECOND + u64::from(flow) * SECOND / 4, flow, 37);
            }
        }
        rig.pass(300 * SECOND);
        (parents(&rig)[3].unwrap(), rig)
    };
    for control_traffic in [true, false] {
        let (first, rig) = settled(None, control_traffic);
        assert_eq!((rig.arrivals.len(), rig.mesh.rpl.as_ref().unwrap().row(3, [0; 2]).parent_switches), (800, 0));
        let (second, rig) = settled(Some(first), control_traffic);
        assert_eq!((first.min(second), first.max(second)), (1, 2), "control traffic: {control_traffic}");
        assert!(rig.arrivals.len() > 750, "{}", rig.arrivals.len());
    }
}

/// Everything below `to` is known above it; one node has forgotten it.
#[test]
fn a_packet_that_a_stale_route_brings_where_there_is_none_is_lost_by_name() {
    let mut rig = rig(&[(0, 0), (10, 0), (20, 0), (30, 0)], &[[0, 3]], 1.0, SETTINGS, 4);
    rig.pass(60 * SECOND);
    rig.mesh.rpl.as_mut().unwrap().forget(2, 3);
    rig.send(60 * SECOND, 0, 37);
    rig.pass(61 * SECOND);
    assert_eq!((rig.counts(2).lost[Cause::StaleRoute as usize], rig.arrivals.len()), (1, 0));
}

/// What is checked at every step of these runs is that nothing leaves the books, frames of RPL included.
#[test]
fn every_frame_of_a_loaded_mesh_with_rpl_ends_in_one_counted_way() {
    let sinks: Vec<[Node; 2]> = (0..24).map(|node| [node, 24]).collect();
    let mut lost = counts::Fates::default();
    for (settings, access) in [
        (SETTINGS, Access::Contiki27),
        (Settings { objective: Objective::Of0, ..SETTINGS }, Access::Ieee),
        (Settings { control_traffic: false, ..SETTINGS }, Access::Contiki27),
    ] {
        let rules = Rules { access, ..Rules::contiki(4, 4) };
        let plan = Rig::plan(&grid(), 12, rules, &sinks, 0.8, 7_882);
        let mut rig = Rig::of(Plan { rpl: Some(settings), ..plan }, 2);
        rig.pass(60 * SECOND);
        let seed = ChanceSeed::new(3);
        for packet in 0..1_000_u64 {
            let flow = seed.at(Purpose::Workload, [packet as u32, 0, 0, 0]).pick(0, 23);
            rig.send(60 * SECOND + packet * 100_000, flow, 37);
            rig.pass(60 * SECOND + (packet + 1) * 100_000 - 1);
        }
        rig.pass(400 * SECOND);
        let gone = rig.sum(|counts| counts.lost.iter().sum());
        assert_eq!(1_000 + rig.mesh.branches, rig.arrivals.len() as u64 + gone);
        assert!(rig.arrivals.len() > 100, "{settings:?}: {}", rig.arrivals.len());
        assert_eq!(rig.mesh.bodies.living(), 0);
        for node in 0..25 {
            let fates = control(&rig, node).fates;
            lost.collided += fates.collided;
            lost.deaf += fates.deaf;
            lost.faded += fates.faded;
        }
    }
    assert!(lost.collided > 100 && lost.deaf > 10 && lost.faded > 100, "{lost:?}");
}

/// The parents of nodes form a tree at every step, however many messages get lost and however estimates move.
#[test]
fn no_loop_ever_forms() {
    for (seed, control_traffic) in [(1, true), (2, true), (3, false), (4, false)] {
        let sinks: Vec<[Node; 2]> = (0..24).map(|node| [node, 24]).collect();
        let mut rig = rig(&grid(), &sinks, 0.55, Settings { control_traffic, ..SETTINGS }, seed);
        let mut turned = 0;
        for packet in 0..600_u64 {
            rig.send(packet * 500_000, (packet * 7 % 24) as u32, 37);
            rig.pass((packet + 1) * 500_000 - 1);
            let parents = parents(&rig);
            for node in 0..25_u32 {
                let way = std::iter::successors(Some(node), |&at| parents[at as usize]);
                assert!(way.take(30).count() < 30, "seed {seed}: {parents:?}");
            }
        }
        turned += (0..25).map(|node| rig.mesh.rpl.as_ref().unwrap().row(node, [0; 2]).parent_switches).sum::<u64>();
        assert!(turned > 10, "{turned} changes test little");
    }
}
