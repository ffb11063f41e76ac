//! Queues that manage themselves in a run: who is slowed down, what tables say of the drops, and what is refused.

use millpond_sim::{LinkRow, Options, Outcome, Scenario, TraceKind, run};

/// 60 clients on the narrow cell whose queue hardly ever fills, with these keys of the downlink.
fn scenario(downlink: &str, more: &str) -> Result<Scenario, String> {
    let text = format!(
        "[path]\nprofile = \"nbiot-anrw18\"\ndownlink = {{ queue = \"1410 kB\", {downlink} }}\n\
         [[clients]]\ncount = 60\nexchanges = 10\ncontroller = \"rfc7252\"\nmax_retransmit = 20\n{more}"
    );
    Scenario::from_toml(&text, "test.toml").map_err(|error| error.to_string())
}

fn go(downlink: &str) -> Outcome {
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    run(&scenario(downlink, "").unwrap(), 1, &options, || false).unwrap()
}

#[test]
fn a_queue_that_manages_itself_is_shorter_and_its_drops_are_told_apart() {
    let plain = go("aqm = \"none\"");
    let row = |outcome: &Outcome| outcome.links.iter().find(|row| &*row.link == "downlink").cloned().unwrap();
    assert_eq!(plain, go("queue_counts = \"waiting\""), "none is none");
    assert_eq!((row(&plain).dropped_queue_packets, row(&plain).dropped_aqm_packets), (0, 0));
    // A client has a packet or two in its own queue of FQ-CoDel, which empties before it has stood for an interval.
    for (aqm, is_shorter, least) in [("codel", true, 20), ("fq-codel", false, 1), ("pie", true, 20)] {
        let managed = go(&format!("aqm = {{ kind = \"{aqm}\", max_packet = \"188 B\" }}"));
        let (long, short) = (row(&plain), row(&managed));
        let is_short = short.queue_mean_bytes < long.queue_mean_bytes / 1.5;
        assert!(is_short || !is_shorter, "{aqm}: {short:?} instead of {long:?}");
        assert!(short.dropped_aqm_packets >= least, "{aqm}: {short:?}");
        assert_eq!(short.dropped_queue_packets, short.dropped_aqm_packets);
        let flows: u64 = managed.flows.iter().map(|flow| u64::from(flow.dropped_queue)).sum();
        assert_eq!(flows, short.dropped_aqm_packets, "{aqm}: every drop is somebody's");
        let events = |name: &str| {
            let of_link = managed.packets.iter().filter(|packet| packet.link == "downlink");
            of_link.filter(|packet| packet.event == name).count() as u64
        };
        // PIE drops as packets come, CoDel when they would leave.
        let expected = if aqm == "pie" { "drop_queue" } else { "drop_aqm" };
        assert_eq!(events(expected), short.dropped_aqm_packets, "{aqm}");
        assert_eq!(events("enq") + events("drop_queue"), short.offered_packets);
        assert_eq!(events("recv"), short.delivered_packets);
        assert!(managed.packets.is_sorted_by_key(|packet| packet.t_us), "{aqm}: in the order of time");
    }
}

#[test]
fn what_no_queue_can_do_is_one_line() {
    for (aqm, more, parts) in [
        ("aqm = \"cdel\"", "", &["unknown aqm `cdel`", "did you mean `codel`?", "fq-codel"][..]),
        ("aqm = { kind = \"red\" }", "", &["unknown value `red`", "pie"]),
        ("aqm = { kind = \"pie\", interval = \"1 s\" }", "", &["unknown key `interval`", "target"]),
        (
            "aqm = { kind = \"codel\", ecn = true }",
            "",
            &["path.downlink.aqm.ecn", "RFC 7252", "ecn = true in [[clients]]"],
        ),
        (
            "aqm = { kind = \"codel\", ecn = true }",
            "ecn = true\n",
            &["clients[0].ecn", "`rfc7252`", "does not react", "RFC 3168 §6.1.2", "such as `calm`"],
        ),
        (
            "aqm = \"codel\"",
            "[[clients]]\ncount = 1\nexchanges = 1\ncontroller = \"calm\"\necn = true\nconfirmable = false\n",
            &["clients[1].ecn", "confirmable requests", "leave this key out"],
        ),
        (
            "aqm = \"codel\"",
            "[[clients]]\ncount = 1\nexchanges = 1\ntransport = \"tcp\"\necn = true\n",
            &["clients[1].ecn", "TCP here does not react"],
        ),
        (
            "aqm = { kind = \"pie\", ecn = true }",
            "ecn = true\n[[relays]]\nname = \"gateway\"\nbefore = \"downlink\"\n[[clients]]\ncount = 1\nexchanges = 1\n\
             controller = \"calm\"\n",
            &["clients[0].ecn", "does not react"],
        ),
        ("aqm = { kind = \"codel\", target = \"0 s\" }", "", &["path.downlink.aqm", "target of 0 s"]),
        ("aqm = { kind = \"fq-codel\", flows = 0 }", "", &["path.downlink.aqm", "at least 1"]),
        ("aqm = { kind = \"pie\", max_burst = \"2 h\" }", "", &["path.downlink.aqm.max_burst", "at most"]),
        ("aqm = { kind = \"codel\", max_packet = \"2 MB\" }", "", &["path.downlink.aqm.max_packet", "at most"]),
        (
            "aqm = \"fq-codel\"",
            "[[relays]]\nname = \"gateway\"\nbefore = \"downlink\"\ncopies = \"withheld\"\n",
            &["relays[0].copies", "in turns", "aqm = \"codel\""],
        ),
    ] {
        let told = scenario(aqm, more).unwrap_err();
        assert!(parts.iter().all(|part| told.contains(part)), "{told:?} does not say {parts:?}");
        assert!(!told.contains('\n'), "{told:?}");
    }
    let full = scenario("aqm = \"fq-codel\"", "").unwrap();
    assert!(full.to_json().contains("\"aqm\":{\"kind\":\"fq-codel\",\"target\":\"5 ms\""), "{}", full.to_json());
    assert_eq!(Scenario::from_json(&full.to_json(), "again"), Ok(full));
}

/// 400 devices under calm, without bounds of its waits, whose answers wait in a queue that manages itself, and marks in place of
/// dropping or does not.
fn crowd(kind: &str, rate: &str, marks: bool) -> Outcome {
    let (ecn, group) = if marks { (", ecn = true", "ecn = true\n") } else { ("", "") };
    let text = format!(
        "[path]\nprofile = \"nbiot-anrw18\"\nuplink.rate = \"600 kbit/s\"\n\
         downlink = {{ rate = \"{rate}\", queue = \"1410 kB\", \
         aqm = {{ kind = \"{kind}\", target = \"100 ms\", max_packet = \"188 B\"{ecn} }} }}\n\
         [[clients]]\ncount = 400\nexchanges = 10\ncontroller = \"calm-unlimited\"\nmax_retransmit = 20\n{group}"
    );
    let scenario = Scenario::from_toml(&text, "test.toml").unwrap();
    let options = Options { traces: vec![TraceKind::Packets], ..Options::default() };
    let outcome = run(&scenario, 1, &options, || false).unwrap();
    assert_eq!(outcome.summary.answered, 4_000);
    let marked = outcome.packets.iter().filter(|packet| packet.event == "mark").count() as u64;
    assert_eq!(marked, downlink(&outcome).marked_packets, "{kind}: nothing is lost behind the queue");
    assert_eq!(marked > 0, marks && (kind, rate) != ("pie", "30 kbit/s"), "{kind}");
    outcome
}

fn downlink(outcome: &Outcome) -> &LinkRow {
    outcome.links.iter().find(|row| &*row.link == "downlink").unwrap()
}

#[test]
fn marks_in_place_of_drops_lose_less_and_ask_for_fewer_copies() {
    let copies = |outcome: &Outcome| outcome.flows.iter().map(|flow| u64::from(flow.retransmissions)).sum::<u64>();
    for (kind, rate) in [("codel", "30 kbit/s"), ("pie", "300 kbit/s")] {
        let [without, with] = [false, true].map(|marks| crowd(kind, rate, marks));
        let lost = [&without, &with].map(|outcome| downlink(outcome).dropped_queue_packets);
        assert!(lost[1] < lost[0], "{kind}: {lost:?}");
        assert!(copies(&with) < copies(&without), "{kind}: {} and {}", copies(&without), copies(&with));
    }
    // CoDel has nothing to drop: everybody reacts. So it is not where PIE is beyond a tenth as soon as it drops (RFC 8033 §5.1).
    assert_eq!(downlink(&crowd("codel", "30 kbit/s", true)).dropped_queue_packets, 0);
    assert_eq!(crowd("pie", "30 kbit/s", true), crowd("pie", "30 kbit/s", false));
}

/// The key of the clients alone, and that of the queue where nobody's packets are marked, change nothing.
#[test]
fn without_both_keys_nothing_is_marked() {
    let calm = |queue: &str, group: &str| {
        let text = format!(
            "[path]\nprofile = \"nbiot-anrw18\"\ndownlink = {{ queue = \"1410 kB\", aqm = {queue} }}\n\
             [[clients]]\ncount = 60\nexchanges = 10\ncontroller = \"calm\"\nmax_retransmit = 20\n{group}"
        );
        run(&Scenario::from_toml(&text, "test.toml").unwrap(), 1, &Options::default(), || false).unwrap()
    };
    let codel = "{ kind = \"codel\", max_packet = \"188 B\" }";
    assert_eq!(calm(codel, ""), calm(codel, "ecn = true\n"));
    // A group whose answers never wait: everybody else's are dropped as before.
    let marking = "{ kind = \"codel\", max_packet = \"188 B\", ecn = true }";
    let late = "[[clients]]\ncount = 1\nexchanges = 1\ncontroller = \"calm\"\nworkload = { kind = \"periodic\", period = \"2 h\", phase = \"1 h\", requests = 1 }\n";
    let (dropping, with) = (calm(codel, late), calm(marking, &format!("{late}ecn = true\n")));
    let flows = |outcome: &Outcome| outcome.flows.clone();
    assert_eq!(flows(&dropping), flows(&with));
}
