//! Meshes that find their tree by RPL, as scenarios describe them.

use millpond_sim::{NodeRow, Options, Outcome, RplRow, Scenario, TraceKind, run};

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test").unwrap()
}

fn go(text: &str) -> Outcome {
    run(&read(text), 1, &Options::default(), || false).unwrap()
}

fn sum(outcome: &Outcome, what: fn(&RplRow) -> u64) -> u64 {
    outcome.nodes.iter().filter_map(|node| node.rpl.as_deref()).map(what).sum()
}

/// A grid with a message every half second from all together.
fn grid(routing: &str) -> String {
    format!(
        r#"
        [mesh]
        topology = {{ kind = "grid", columns = 4, rows = 4 }}
        delivery = [0.75, 1.0]
        {routing}
        [[clients]]
        controller = "cocoa-03"
        request_payload = "30 B"
        application_queue = 4
        workload = {{ kind = "periodic", period = {{ together = "500 ms" }} }}
        [server]
        payload = "0 B"
        [run]
        for = "5 min"
        "#
    )
}

#[test]
fn a_mesh_with_rpl_joins_delivers_and_repeats_itself() {
    let text = grid("routing = \"rpl\"");
    let outcome = go(&text);
    assert_eq!(outcome, go(&text));
    let (arrivals, delivered) = (outcome.summary.arrivals, outcome.summary.delivered);
    assert!((570..=600).contains(&arrivals) && delivered * 10 > arrivals * 8, "{delivered} of {arrivals}");
    assert!(
        outcome.nodes.iter().all(|node| node.depth < 10 && node.rpl.as_ref().is_some_and(|rpl| rpl.rank >= Some(256)))
    );
    // The root knows the way to each of the others.
    let root = outcome.nodes.iter().find(|node| *node.role == *"border-router").unwrap();
    assert_eq!((root.parent.as_ref(), root.rpl.as_ref().unwrap().routes), (None, 15));
    // Of five minutes after the first: of each node at least the DIOs of two intervals, and its DAOs for two of its parent's.
    let (dio, dao) = (sum(&outcome, |rpl| rpl.dio), sum(&outcome, |rpl| rpl.dao));
    assert!((32..200).contains(&dio) && dao >= 30, "{dio} {dao}");
    // What they asked before the run began is not counted.
    let at_once = go(&grid("routing = { kind = \"rpl\", idle_start = \"0 s\" }"));
    assert!(sum(&outcome, |rpl| rpl.dis) == 0 && sum(&at_once, |rpl| rpl.dis) > 0);
    assert!(sum(&at_once, |rpl| rpl.dio) > dio && sum(&at_once, |rpl| rpl.lost_no_route) > 0);
    // A packet that is passed on is counted here as well as there.
    assert!(outcome.nodes.iter().map(|node| node.data_sent).sum::<u64>() > 1_000);
}

#[test]
fn rpl_is_off_unless_it_is_asked_for() {
    let (plain, named) = (read(&grid("")), read(&grid("routing = \"static\"")));
    assert_eq!((plain.to_json(), &plain), (named.to_json(), &named));
    assert!(!plain.to_json().contains("routing"));
    let outcome = go(&grid(""));
    assert!(outcome.nodes.iter().all(|node| node.rpl.is_none()));
    let rpl = read(&grid("routing = { kind = \"rpl\", dao_delay = \"2 s\" }"));
    let again = Scenario::from_json(&rpl.to_json(), "test").unwrap();
    assert_eq!((&again, again.to_json()), (&rpl, rpl.to_json()));
}

/// Four nodes in a diamond: `a` and `b` beside the root, `far` within reach of these two only.
fn diamond(routing: &str, timeline: &str) -> String {
    format!(
        r#"
        [mesh]
        topology = {{ kind = "list", nodes = """
            root 0 0 border-router
            a 7 7
            b 7 -7
            far 14 0""" }}
        sinks = {{ primary = {{ nodes = ["root"] }} }}
        routing = {routing}
        [[clients]]
        at = ["a", "b", "far"]
        controller = "rfc7252"
        request_payload = "30 B"
        workload = {{ kind = "periodic", period = "1 s" }}
        [server]
        payload = "0 B"
        [run]
        for = "5 min"
        {timeline}
        "#
    )
}

fn parent(outcome: &Outcome) -> String {
    let far = |node: &&NodeRow| *node.node == *"far";
    outcome.nodes.iter().find(far).and_then(|node| node.parent.as_ref()).unwrap().to_string()
}

#[test]
fn a_node_whose_link_gets_bad_moves_to_a_better_parent() {
    let delivered = |outcome: &Outcome| outcome.summary.delivered;
    for rpl in ["\"rpl\"", "{ kind = \"rpl\", control_traffic = false }"] {
        let first = go(&diamond(rpl, ""));
        let parent_at_first = parent(&first);
        assert_eq!(sum(&first, |rpl| rpl.parent_switches), 0);
        let change = |parent: &str| {
            format!(
                "[[timeline]]\nat = \"2 min\"\nkind = \"delivery\"\nbetween = [\"{parent}\", \"far\"]\nratio = 0.2\n"
            )
        };
        let second = go(&diamond(rpl, &change(&parent_at_first)));
        assert_ne!(parent(&second), parent_at_first, "{rpl}");
        // A tree that stays, with the same bad link, delivers less than half as much of what arrives afterwards.
        let stays = "{ kind = \"rpl\", objective_function = \"of0\" }";
        let other = change(&parent(&go(&diamond(stays, ""))));
        let stayed = go(&diamond(stays, &other));
        assert!(
            delivered(&second) > delivered(&stayed) + 50 && delivered(&first) < delivered(&second) + 30,
            "{rpl}: {} at first, {} after a change, {} without",
            delivered(&first),
            delivered(&second),
            delivered(&stayed)
        );
    }
}

#[test]
fn the_example_loses_a_link_and_goes_on() {
    let outcome = go(include_str!("../../../scenarios/mesh-rpl.toml"));
    let summary = outcome.summary;
    assert!(summary.arrivals >= 590 && summary.delivered * 10 > summary.arrivals * 7, "{summary:?}");
    assert!(outcome.nodes.iter().all(|node| node.depth <= 20), "{:?}", outcome.nodes);
    assert!(sum(&outcome, |rpl| rpl.parent_switches) > 0);
}

/// Ten minutes without data. Each node that joins within 79 s makes seven DIOs (4.096 · (2⁷ − 1) s are seven intervals, and
/// the eighth speaks 262 s later at the earliest), and seven more at most for each time that its timer began anew.
#[test]
fn control_traffic_settles_without_data() {
    let silent = grid("routing = \"rpl\"").replace("together = \"500 ms\"", "together = \"1000 h\"");
    let text = silent.replace("5 min", "10 min").replace("[0.75, 1.0]", "[1.0]").replace(
        "routing = \"rpl\"",
        "routing = { kind = \"rpl\", objective_function = \"of0\", idle_start = \"0 s\", dio_redundancy_constant = 0 }",
    );
    let outcome = go(&text);
    assert_eq!(outcome.summary.arrivals, 0);
    for node in &outcome.nodes {
        let rpl = node.rpl.as_deref().unwrap();
        assert!(rpl.dio >= 7 && rpl.dio <= 14 + 7 * rpl.parent_switches, "{node:?}");
    }
    // With suppression after one consistent DIO a node is silent as soon as it has heard another.
    let quiet = go(&text.replace("dio_redundancy_constant = 0", "dio_redundancy_constant = 1"));
    let (all, few) = (sum(&outcome, |rpl| rpl.dio), sum(&quiet, |rpl| rpl.dio));
    assert!(few * 3 < all * 2, "{few} of {all}");
    // Nine minutes later the channel is silent but for DIOs of long intervals.
    let longer = go(&text.replace("10 min", "20 min"));
    assert!(sum(&longer, |rpl| rpl.dio) <= all + 2 * 16, "{all}");
}

#[test]
fn frames_of_rpl_are_traced_as_they_are_counted() {
    let options = Options { traces: vec![TraceKind::Frames, TraceKind::Packets], ..Options::default() };
    let text = grid("routing = { kind = \"rpl\", idle_start = \"10 s\" }");
    let traced = run(&read(&text), 1, &options, || false).unwrap();
    let plain = go(&text);
    assert_eq!((&traced.flows, &traced.nodes), (&plain.flows, &plain.nodes));
    let frames = |kinds: &[&str]| traced.frames.iter().filter(|frame| kinds.contains(&frame.kind)).count() as u64;
    assert_eq!(frames(&["dio", "dis", "dao"]), sum(&traced, |rpl| rpl.control_sent));
    assert!(frames(&["dio"]) > 0 && frames(&["dao"]) > 0);
    // To everyone is to nobody by name.
    assert!(traced.frames.iter().all(|frame| frame.to.is_empty() == matches!(frame.kind, "dio" | "dis")));
    let on_air: u64 = traced.frames.iter().map(|frame| u64::from(frame.us)).sum();
    assert_eq!(on_air, traced.nodes.iter().map(|node| node.on_air_us).sum::<u64>());
}

#[test]
fn the_tree_that_is_drawn_is_that_with_which_the_run_begins() {
    let scenario = read(&grid("routing = \"rpl\""));
    let drawn = scenario.mesh_nodes(1);
    let silent = go(&grid("routing = \"rpl\"").replace("for = \"5 min\"", "for = \"1 ms\""));
    for (drawn, ran) in drawn.iter().zip(&silent.nodes) {
        assert_eq!((&drawn.parent, drawn.depth), (&ran.parent, ran.depth), "{drawn:?}");
    }
    assert!(drawn.iter().filter(|node| node.parent.is_some()).count() > 10);
    assert_ne!(drawn, scenario.mesh_nodes(2));
}

#[test]
fn what_rpl_cannot_be_is_refused_with_its_place() {
    let rpl = |keys: &str| grid(&format!("routing = {{ kind = \"rpl\", {keys} }}"));
    let event = |keys: &str| diamond("\"rpl\"", &format!("[[timeline]]\nat = \"1 min\"\nkind = \"delivery\"\n{keys}"));
    for (text, parts) in [
        (grid("routing = \"rlp\""), &["unknown routing `rlp`", "did you mean `rpl`?"][..]),
        (grid("routing = { kind = \"static\", idle_start = \"1 s\" }"), &["idle_start"]),
        (rpl("idle_strat = \"1 s\""), &["did you mean `idle_start`?"]),
        (rpl("objective_function = \"mrhov\""), &["mrhov"]),
        (rpl("objective_function = \"of0\", control_traffic = false"), &["mesh.routing.objective_function", "static"]),
        (
            grid("retransmissions = 0\nrouting = \"rpl\""),
            &["mesh.routing.objective_function", "acknowledgements", "`of0`"],
        ),
        (rpl("dio_interval_min = \"0 s\""), &["mesh.routing.dio_interval_min", "write 1 ms to"]),
        (rpl("dio_interval_doublings = 30"), &["mesh.routing.dio_interval_doublings", "write fewer"]),
        (rpl("dio_interval_doublings = 255"), &["mesh.routing.dio_interval_doublings", "write fewer"]),
        (rpl("dis_interval = \"1 ms\""), &["mesh.routing.dis_interval", "write 1 s to"]),
        (rpl("dao_delay = \"2 h\""), &["mesh.routing.dao_delay"]),
        (rpl("parent_switch_threshold = 70000"), &["mesh.routing.parent_switch_threshold", "at most 65535"]),
        (rpl("idle_start = \"5 h\""), &["mesh.routing.idle_start", "write 0 s to"]),
        (event("between = [\"far\", \"root\"]\nratio = 0.5"), &["timeline[0].between", "no link joins"]),
        (event("between = [\"far\", \"c\"]\nratio = 0.5"), &["timeline[0].between", "unknown node `c`"]),
        (event("between = [\"far\", \"far\"]\nratio = 0.5"), &["timeline[0].between", "no link joins"]),
        (event("between = [\"far\", \"a\"]\nratio = 1.5"), &["timeline[0].ratio", "from 0 to 1"]),
        ("path = \"x\"\n".to_owned() + &event("between = [\"far\", \"a\"]\nratio = 0.5"), &[]),
    ] {
        let told = Scenario::from_toml(&text, "test.toml").unwrap_err().to_string();
        assert!(!told.contains('\n') && told.starts_with("test.toml"), "{told}");
        for part in parts {
            assert!(told.contains(part), "{told:?} does not say {part:?}");
        }
    }
    let path = "[path]\nprofile = \"nbiot-anrw18\"\n[[clients]]\ncount = 1\ncontroller = \"rfc7252\"\n\
        [[timeline]]\nat = \"1 s\"\nkind = \"delivery\"\nbetween = [\"a\", \"b\"]\nratio = 0.5\n";
    let told = Scenario::from_toml(path, "test.toml").unwrap_err().to_string();
    assert!(told.contains("timeline[0].kind") && told.contains("only a [mesh]"), "{told}");
}
