//! Networks of several links: what they must do by plain arithmetic, and what a scenario may not say of them.

mod path;

use millpond_sim::{Options, Outcome, Scenario, TraceKind, run};

/// Bytes of a request and of its response, headers included.
const REQUEST: u64 = 38;
const RESPONSE: u64 = 94;

fn go(text: &str) -> Outcome {
    run(&Scenario::from_toml(text, "test").unwrap(), 1, &Options::default(), || false).unwrap()
}

fn everything() -> Options {
    Options { traces: TraceKind::ALL.to_vec(), trace_step_us: 1_000_000, capture: true }
}

fn link(name: &str, rate: &str, delay: &str, queue: &str, more: &str) -> String {
    format!("[network.links.{name}]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n{more}\n")
}

fn clients(count: u32, exchanges: u32, more: &str) -> String {
    format!("[[clients]]\ncount = {count}\nexchanges = {exchanges}\ncontroller = \"rfc7252\"\n{more}\n")
}

/// Microseconds that so many bytes take at a rate in bits per second.
fn service(bytes: u64, rate: u64) -> f64 {
    bytes as f64 * 8e6 / rate as f64
}

#[test]
fn a_path_is_the_smallest_graph() {
    let group = "[[clients]]\ncount = 60\ncontroller = \"cocoa-03\"\nworkload = \"random\"\n";
    let path = path::path("2500 B");
    let graph = path.replace("[path.", "[network.links.");
    let graph = format!("[network]\nup = [\"uplink\"]\ndown = [\"downlink\"]\n{graph}");
    let of = |text: &str| {
        let scenario = Scenario::from_toml(&format!("{text}\n{group}"), "test").unwrap();
        let mut outcome = run(&scenario, 3, &Options::default(), || false).unwrap();
        // Rows stand in the order of the links, of which a network sorts the names.
        outcome.links.sort_by(|a, b| a.link.cmp(&b.link));
        outcome
    };
    assert_eq!(of(&path), of(&graph));
}

#[test]
fn a_chain_of_two_links_takes_the_time_of_both() {
    let text = "[network]\nup = [\"a\", \"b\"]\ndown = [\"c\", \"d\"]\n".to_owned()
        + &link("a", "60 kbit/s", "215 ms", "2500 B", "")
        + &link("b", "10 kbit/s", "20 ms", "2500 B", "")
        + &link("c", "1 Mbit/s", "7 ms", "2500 B", "")
        + &link("d", "30 kbit/s", "415 ms", "2500 B", "")
        + &clients(1, 1, "");
    let outcome = go(&text);
    let up = service(REQUEST, 60_000) + 215e3 + service(REQUEST, 10_000) + 20e3;
    let down = service(RESPONSE, 1_000_000) + 7e3 + service(RESPONSE, 30_000) + 415e3;
    let fct = outcome.flows[0].fct_us.unwrap() as f64;
    // Each link rounds up to a whole microsecond.
    assert!((0.0..=4.0).contains(&(fct - up - down)), "{fct} instead of {}", up + down);
}

#[test]
fn a_half_duplex_hop_carries_its_rate_for_both_directions_together() {
    let text = "[network]\nup = [\"air\"]\ndown = [\"air\"]\n".to_owned()
        + &link("air", "100 kbit/s", "1 ms", "100 kB", "")
        + &clients(20, 50, "");
    let outcome = go(&text);
    let air = &outcome.links[0];
    let work = service(REQUEST + RESPONSE, 100_000) * 1_000.0;
    assert_eq!(air.delivered_bytes, 1_000 * (REQUEST + RESPONSE));
    assert_eq!((air.delivered_bytes, outcome.links.len()), (air.useful_bytes, 1));
    assert!((air.busy_us as f64 - work).abs() < 2.0, "{} busy, {work} to do", air.busy_us);
    // Twenty clients keep it busy but for the first and the last way through the air.
    let makespan = outcome.summary.makespan_us.unwrap() as f64;
    assert!((makespan - work) / work < 0.002, "{makespan} for {work}");
    assert!(makespan > work);
}

#[test]
fn two_equal_flows_share_evenly() {
    let star = "[network]\n".to_owned()
        + &link("left", "50 kbit/s", "10 ms", "5000 B", "")
        + &link("right", "50 kbit/s", "10 ms", "5000 B", "")
        + &link("hub-up", "20 kbit/s", "50 ms", "5000 B", "")
        + &link("hub-down", "20 kbit/s", "50 ms", "5000 B", "")
        + &clients(1, 200, "route = { up = [\"left\", \"hub-up\"], down = [\"hub-down\", \"left\"] }")
        + &clients(1, 200, "route = { up = [\"right\", \"hub-up\"], down = [\"hub-down\", \"right\"] }");
    let outcome = go(&star);
    let goodput: Vec<f64> = outcome.flows.iter().map(|row| 1.0 / row.fct_us.unwrap() as f64).collect();
    let (sum, squares): (f64, f64) = (goodput.iter().sum(), goodput.iter().map(|x| x * x).sum());
    let fairness = sum * sum / (2.0 * squares);
    assert!((fairness - 1.0).abs() < 1e-6, "{fairness}");
    // Their own links carry their own packets, the hub's those of both.
    let carried = |name: &str| outcome.links.iter().find(|row| row.link == name).unwrap().delivered_packets;
    assert_eq!(["left", "right", "hub-up", "hub-down"].map(carried), [400, 400, 400, 400]);
}

#[test]
fn what_one_link_hands_on_the_next_is_offered() {
    let lossy = "loss = { kind = \"bernoulli\", rate = 0.1 }";
    let text = "[network]\nup = [\"a\", \"air\"]\ndown = [\"air\", \"c\"]\n".to_owned()
        + &link("a", "60 kbit/s", "10 ms", "1500 B", lossy)
        + &link("air", "30 kbit/s", "50 ms", "1500 B", lossy)
        + &link("c", "5 kbit/s", "10 ms", "300 B", "")
        + &clients(40, 20, "");
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    let outcome = run(&scenario, 1, &everything(), || false).unwrap();
    let [a, air, c] = &outcome.links[..] else { panic!("{} links", outcome.links.len()) };
    let sent: u64 = outcome.flows.iter().map(|row| u64::from(row.transmissions)).sum();
    assert_eq!(a.offered_packets, sent);
    assert!(a.dropped_radio_packets > 0 && air.dropped_queue_packets > 0 && c.dropped_queue_packets > 0);
    let count = |link: &str, event: &str, length: bool| {
        let of_kind = |p: &&millpond_sim::PacketEvent| p.link == link && p.event == event && (p.length > 0) == length;
        outcome.packets.iter().filter(of_kind).count() as u64
    };
    // Requests have no payload: those that the channel forwarded reached the server; the rest of it goes on over `c`.
    let offered = count("air", "enq", false) + count("air", "drop_queue", false);
    assert_eq!(offered, a.delivered_packets);
    assert_eq!(c.offered_packets, count("air", "recv", true));
    assert_eq!(air.delivered_packets, count("air", "recv", false) + count("air", "recv", true));
    // What a client did not get was lost on some link.
    let lost: u64 = outcome.flows.iter().map(|row| u64::from(row.dropped_queue + row.dropped_radio)).sum();
    let dropped = |link| count(link, "drop_queue", true) + count(link, "drop_radio", true);
    assert_eq!(lost, dropped("air") + dropped("c"));
}

#[test]
fn what_was_of_use_counts_where_it_was_carried() {
    // Seconds in every queue: requests are carried long before their answers show that they were of use.
    let chain = include_str!("../../../scenarios/chain.toml").replace("2000 B", "20 kB").replace("8000 B", "40 kB");
    let path = path::path("1410000 B") + &clients(200, 20, "max_retransmit = 20");
    for text in [chain, path] {
        let scenario = Scenario::from_toml(&text, "test").unwrap();
        let outcome = run(&scenario, 1, &everything(), || false).unwrap();
        assert!(outcome.share_trace.iter().any(|row| row.useful_bytes > 0));
        for row in &outcome.share_trace {
            assert!(row.useful_bytes <= row.carried_bytes, "{row:?}");
        }
        for link in &outcome.links {
            let of = |row: &&millpond_sim::ShareSample| row.link == link.link;
            let useful: u64 = outcome.share_trace.iter().filter(of).map(|row| row.useful_bytes).sum();
            assert_eq!(useful, link.useful_bytes, "{}", link.link);
        }
    }
}

#[test]
fn clients_with_radios_of_their_own_do_not_fade_together() {
    let markov =
        "loss = { kind = \"markov\", good_loss = 0.0, bad_loss = 1.0, good_dwell = \"2 s\", bad_dwell = \"0.5 s\" }";
    let losses = |of: &str, count: u32| {
        let text = "[network]\nup = [\"up\"]\ndown = [\"down\"]\n".to_owned()
            + &link("up", "10 Mbit/s", "10 ms", "100 kB", "")
            + &link("down", "10 Mbit/s", "10 ms", "100 kB", &format!("{markov}\nloss_of = \"{of}\""))
            + &clients(count, 500, "max_retransmit = 20");
        let scenario = Scenario::from_toml(&text, "test").unwrap();
        let outcome = run(&scenario, 1, &everything(), || false).unwrap();
        let lost = outcome.packets.iter().filter(|packet| packet.event == "drop_radio");
        let first = lost.fold(vec![None; count as usize], |mut first, packet| {
            first[packet.flow as usize].get_or_insert(packet.t_us);
            first
        });
        first.into_iter().flatten().collect::<Vec<u64>>()
    };
    // All clients send all the time: on one radio the first fade strikes all of them at once.
    let spread = |times: &[u64]| times.iter().max().unwrap() - times.iter().min().unwrap();
    let (together, apart) = (losses("link", 20), losses("each-client", 20));
    assert!(together.len() == 20 && spread(&together) < 1_000_000, "{together:?}");
    assert!(apart.len() > 5 && spread(&apart) > 1_000_000, "{apart:?}");
    // What the first client meets is the same however many others there are: only waiting makes a difference.
    assert!(losses("each-client", 3)[0].abs_diff(apart[0]) < 100_000);
}

#[test]
fn the_examples_run() {
    for text in [include_str!("../../../scenarios/star.toml"), include_str!("../../../scenarios/chain.toml")] {
        let outcome = go(text);
        assert_eq!(outcome.summary.unfinished, 0);
        assert_eq!(outcome.links.len(), 4);
        assert!(outcome.links.iter().all(|row| row.useful_bytes > 0));
    }
}

const GOOD: &str = r#"
[network]
up = ["air", "line"]
down = ["line", "air"]
[network.links.air]
rate = "50 kbit/s"
delay = "5 ms"
queue = "4000 B"
[network.links.line]
rate = "1 Mbit/s"
delay = "40 ms"
queue = "20 kB"
[[clients]]
count = 4
controller = "rfc7252"
route = { up = ["air"], down = ["air"] }
[[clients]]
count = 2
controller = "rfc7252"
"#;

#[test]
fn a_network_is_written_as_it_was_read() {
    let scenario = Scenario::from_toml(GOOD, "test.toml").unwrap();
    assert_eq!(scenario, Scenario::from_json(&scenario.to_json(), "test.json").unwrap());
    let path = Scenario::from_toml(&(path::path("2500 B") + &clients(1, 1, "")), "test.toml").unwrap().to_json();
    assert!(!path.contains("network") && !path.contains("route"), "{path}");
}

#[track_caller]
fn tells(from: &str, to: &str, parts: &[&str]) {
    assert!(GOOD.contains(from), "{from:?} is not in the scenario");
    let told = Scenario::from_toml(&GOOD.replacen(from, to, 1), "test.toml").unwrap_err().to_string();
    assert!(!told.contains('\n'), "more than one line: {told}");
    for part in ["test.toml"].iter().chain(parts) {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
}

#[test]
fn routes_that_lead_nowhere_and_links_without_use_are_refused() {
    tells(
        "up = [\"air\", \"line\"]",
        "up = [\"aur\", \"line\"]",
        &["network.up", "unknown link `aur`", "did you mean `air`?"],
    );
    tells("route = { up = [\"air\"]", "route = { up = []", &["clients[0].route.up", "leads nowhere"]);
    tells(", down = [\"air\"] }", " }", &["clients[0].route.down", "leads nowhere", "down = [\"air\"]"]);
    tells("down = [\"line\", \"air\"]", "", &["network.down", "leads nowhere"]);
    tells("[[clients]]\ncount = 2\ncontroller = \"rfc7252\"", "", &["network.links.line", "nobody uses this link"]);
    tells(
        "[network.links.line]",
        "[network.links.wire]",
        &["network.up", "unknown link `line`", "known here: air, wire"],
    );
    tells("down = [\"line\"", "dwon = [\"line\"", &["unknown key `dwon`", "did you mean `down`?"]);
    let idle = "[network.links.spare]\nrate = \"1 Mbit/s\"\ndelay = \"0 s\"\nqueue = \"1 kB\"\n[network.links.line]";
    tells("[network.links.line]", idle, &["network.links.spare", "nobody uses this link"]);
    tells("delay = \"40 ms\"", "delay = \"2 h\"", &["network.links.line.delay", "at most"]);
    tells("[network.links.line]", "[network.links.\"a b\"]", &["`a b` is no name"]);
    let both = format!("{}\n[[clients]]", path::path("2500 B"));
    tells("[[clients]]", &both, &["network", "[path] already"]);
}

#[test]
fn a_route_needs_a_network_and_a_scenario_a_network_or_a_path() {
    let told = |text: &str| Scenario::from_toml(text, "test.toml").unwrap_err().to_string();
    let group = clients(1, 1, "route = { up = [\"air\"], down = [\"air\"] }");
    let told_of_path = told(&(path::path("2500 B") + &group));
    assert!(told_of_path.contains("clients[0].route") && told_of_path.contains("[network]"), "{told_of_path}");
    let told_of_none = told(&clients(1, 1, ""));
    assert!(told_of_none.contains("[path.uplink]") && told_of_none.contains("[network]"), "{told_of_none}");
}

/// Packets that the uplink handed over in each of these stretches, in seconds, of a client that keeps it full.
fn carried(events: &str, stretches: &[(u64, u64)]) -> Vec<u64> {
    let text = "[network]\nup = [\"up\"]\ndown = [\"down\"]\n".to_owned()
        + &link("up", "8 kbit/s", "10 ms", "100 kB", "")
        + &link("down", "1 Mbit/s", "10 ms", "100 kB", "")
        + &clients(40, 500, "max_retransmit = 20")
        + events
        + "[run]\nuntil = \"100 s\"\n";
    let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &everything(), || false).unwrap();
    let mut counts = vec![0; stretches.len()];
    for packet in outcome.packets.iter().filter(|packet| packet.link == "up" && packet.event == "recv") {
        for (count, (from, to)) in counts.iter_mut().zip(stretches) {
            *count += u64::from((from * 1_000_000..to * 1_000_000).contains(&packet.t_us));
        }
    }
    counts
}

#[test]
fn half_the_rate_is_half_the_throughput() {
    let step = "[[timeline]]\nat = \"50 s\"\nkind = \"rate\"\nlink = \"up\"\nrate = \"4 kbit/s\"\n";
    let counts = carried(step, &[(10, 40), (60, 90)]);
    // 30 s at 1000 and at 500 bytes a second, in packets of 38.
    assert!(counts[0].abs_diff(30_000 / REQUEST) <= 1 && counts[1].abs_diff(15_000 / REQUEST) <= 1, "{counts:?}");
}

#[test]
fn nothing_arrives_while_a_link_stands_still_and_nothing_is_forgotten() {
    let stretches = [(10, 40), (50, 60), (60, 90)];
    let outage = "[[timeline]]\nat = \"50 s\"\nkind = \"outage\"\nfor = \"10 s\"\n";
    for link in ["", "link = \"up\"\n"] {
        let counts = carried(&format!("{outage}{link}"), &stretches);
        assert_eq!(counts[1], 0);
        // The queue waited: the link goes on at its rate.
        assert!(counts[0].abs_diff(30_000 / REQUEST) <= 1 && counts[2].abs_diff(30_000 / REQUEST) <= 2, "{counts:?}");
    }
    // Two outages that overlap last until both are over.
    let second = "[[timeline]]\nat = \"55 s\"\nkind = \"outage\"\nfor = \"10 s\"\nlink = \"up\"\n";
    let counts = carried(&format!("{outage}{second}"), &[(50, 65), (65, 95)]);
    assert!(counts[0] == 0 && counts[1].abs_diff(30_000 / REQUEST) <= 2, "{counts:?}");
}

#[test]
fn an_outage_comes_again_and_each_time_is_an_event_of_its_own() {
    let event = "[[timeline]]\nkind = \"outage\"\nat = \"20 s\"\nfor = \"10 s\"\nevery = \"20 s\"\n";
    let counts = carried(event, &[(0, 20), (20, 30), (30, 40), (40, 50), (50, 60), (60, 70), (80, 90), (90, 100)]);
    assert_eq!([1, 3, 5, 6].map(|stretch| counts[stretch]), [0; 4]);
    assert!([2, 4, 7].iter().all(|stretch| counts[*stretch].abs_diff(10_000 / REQUEST) <= 2), "{counts:?}");
    let text = format!("{GOOD}\n{event}[run]\nfor = \"100 s\"\n");
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    let at = scenario.timeline.iter().map(|event| event.at().to_string()).collect::<Vec<_>>();
    assert_eq!(at, ["20 s", "40 s", "1 min", "80 s"]);
    assert_eq!(Scenario::from_json(&scenario.to_json(), "test"), Ok(scenario));
}

#[test]
fn an_outage_delays_keeps_or_loses_what_is_in_flight() {
    // 38 B take 38 ms and are on their way for a second more: 26 packets are in the air.
    let run = |in_flight: &str| {
        let text = "[network]\nup = [\"up\"]\ndown = [\"down\"]\n".to_owned()
            + &link("up", "8 kbit/s", "1 s", "100 kB", "")
            + &link("down", "1 Mbit/s", "10 ms", "100 kB", "")
            + &clients(40, 500, "max_retransmit = 20")
            + "[[timeline]]\nkind = \"outage\"\nat = \"50 s\"\nfor = \"10 s\"\nlink = \"up\"\n"
            + in_flight
            + "[run]\nfor = \"70 s\"\n";
        let outcome = run(&Scenario::from_toml(&text, "test").unwrap(), 1, &everything(), || false).unwrap();
        let up = outcome.links.iter().find(|row| &*row.link == "up").unwrap().dropped_radio_packets;
        let seen = |from: u64, to: u64| {
            let packets = outcome.packets.iter().filter(|packet| packet.link == "up" && packet.event == "recv");
            packets.filter(|packet| (from..to).contains(&packet.t_us)).count()
        };
        (up, seen(50_000_000, 59_999_999), seen(60_000_000, 60_030_000))
    };
    assert_eq!(run(""), (0, 0, 26));
    assert_eq!(run("in_flight = \"delayed\"\n"), (0, 0, 26));
    assert_eq!(run("in_flight = \"kept\"\n"), (0, 26, 0));
    assert_eq!(run("in_flight = \"lost\"\n"), (26, 0, 0));
}

#[test]
fn a_rate_that_follows_a_trace_is_the_same_as_that_of_the_timeline() {
    let step = |at: &str, rate: &str| {
        format!("[[timeline]]\nkind = \"rate\"\nlink = \"up\"\nat = \"{at}\"\nrate = \"{rate}\"\n")
    };
    let text = |more: &str, events: &str| {
        "[network]\nup = [\"up\"]\ndown = [\"down\"]\n".to_owned()
            + &link("up", "8 kbit/s", "10 ms", "1 kB", more)
            + &link("down", "1 Mbit/s", "10 ms", "100 kB", "")
            + &clients(40, 20, "max_retransmit = 20")
            + events
    };
    let trace = "trace = { steps = [ { at = \"0 s\", rate = \"8 kbit/s\" }, { at = \"9.5 s\", rate = \"2 kbit/s\" } ], \
                 every = \"19 s\" }\n";
    let events: String = (0..400)
        .flat_map(|round: u64| {
            let slow = step(&format!("{} ms", 9_500 + 19_000 * round), "2 kbit/s");
            [slow, step(&format!("{} ms", 19_000 + 19_000 * round), "8 kbit/s")]
        })
        .collect();
    let outcome = |text: &str| run(&Scenario::from_toml(text, "test").unwrap(), 1, &everything(), || false).unwrap();
    let (traced, told) = (outcome(&text(trace, "")), outcome(&text("", &events)));
    assert_eq!((&traced.flows, &traced.packets), (&told.flows, &told.packets));
    assert!(
        traced.packets.last().is_some_and(|last| last.t_us > 60_000_000),
        "it went through the trace several times"
    );
    let both = Scenario::from_toml(&text(trace, &step("1 s", "2 kbit/s")), "test").unwrap_err().to_string();
    assert!(both.contains("timeline[0].kind") && both.contains("follows a trace"), "{both}");
    let scenario = Scenario::from_toml(&text(trace, ""), "test").unwrap();
    assert_eq!(Scenario::from_json(&scenario.to_json(), "test"), Ok(scenario));
    let file = Scenario::from_toml(&text("trace = \"cell.csv\"\n", ""), "test").unwrap_err().to_string();
    assert!(file.contains("cell.csv: files are read by the programs"), "{file}");
}

#[test]
fn another_loss_counts_from_its_moment_on() {
    let step =
        "[[timeline]]\nat = \"50 s\"\nkind = \"loss\"\nlink = \"up\"\nloss = { kind = \"bernoulli\", rate = 0.9 }\n";
    let counts = carried(step, &[(0, 50), (51, 100)]);
    // One in ten arrives, and the clients, unanswered, send less and less.
    assert!(counts[0] > 1_000 && (1..100).contains(&counts[1]), "{counts:?}");
}

#[test]
fn events_without_a_place_or_a_time_are_refused() {
    let told = |event: &str| {
        let text = format!("{GOOD}\n[[timeline]]\n{event}\n[run]\nuntil = \"10 min\"\n");
        let told = Scenario::from_toml(&text, "test.toml").unwrap_err().to_string();
        assert!(!told.contains('\n'), "more than one line: {told}");
        told
    };
    let rate = "kind = \"rate\"\nrate = \"4 kbit/s\"\nlink = \"air\"\n";
    for (event, parts) in [
        (format!("{rate}at = \"10 min\""), ["timeline[0].at", "not before the end of the run (10 min)"]),
        (format!("{rate}at = \"0 s\""), ["timeline[0].at", "write a time after it"]),
        (rate.replace("air", "arr") + "at = \"1 s\"", ["timeline[0].link", "did you mean `air`?"]),
        (rate.replace("4 kbit/s", "4 kbps") + "at = \"1 s\"", ["kbps", "kbit/s"]),
        (format!("{rate}at = \"-1 s\""), ["-1", "test.toml"]),
        ("kind = \"outage\"\nat = \"1 s\"\nfor = \"0 s\"".to_owned(), ["timeline[0].for", "how long"]),
        (
            "kind = \"outage\"\nat = \"1 s\"\nfor = \"5 s\"\nevery = \"5 s\"".to_owned(),
            ["timeline[0].every", "would never end"],
        ),
        (format!("{rate}at = \"1 s\"\nevery = \"0 s\""), ["timeline[0].every", "write how long"]),
        (format!("{rate}at = \"1 s\"\nevery = \"1 ms\""), ["timeline: 599000 events", "at most 65000"]),
        (
            "kind = \"outage\"\nat = \"1 s\"\nfor = \"5 s\"\nin_flight = \"late\"".to_owned(),
            ["unknown value `late`", "delayed, kept, lost"],
        ),
        ("kind = \"outrage\"\nat = \"1 s\"\nfor = \"1 s\"".to_owned(), ["`outrage`", "did you mean `outage`?"]),
        (
            "kind = \"loss\"\nat = \"1 s\"\nlink = \"air\"\nloss = { kind = \"bernoulli\", rate = 2 }".to_owned(),
            ["timeline[0].loss.rate", "from 0 to 1"],
        ),
    ] {
        let told = told(&event);
        assert!(parts.iter().all(|part| told.contains(part)), "{told:?} does not say {parts:?}");
    }
    let unordered = format!("{rate}at = \"2 s\"\n[[timeline]]\n{rate}at = \"1 s\"");
    assert!(told(&unordered).contains("write them in order"));
}
