//! Sites that share links: the same results on any number of threads, those of a run alone where one site has the links for itself,
//! and plain arithmetic where many meet.

mod path;

use millpond_sim::{Options, Outcome, RunError, Scenario, Site, run, run_sites};

/// Bytes of a response, headers included.
const RESPONSE: u64 = 94;

/// A cell with so many clients whose packets cross a backbone of this rate, queue and further keys both ways.
fn cell(count: u32, rate: &str, queue: &str, more: &str) -> Scenario {
    Scenario::from_toml(&text(count, rate, queue, more), "test").unwrap()
}

fn text(count: u32, rate: &str, queue: &str, more: &str) -> String {
    let link = |name: &str, rate: &str, delay: &str, queue: &str, more: &str| {
        format!("[network.links.{name}]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"{queue}\"\n{more}\n")
    };
    format!(
        "[network]\nup = [\"cell-up\", \"backbone-up\"]\ndown = [\"backbone-down\", \"cell-down\"]\n\
         shared = [\"backbone-down\", \"backbone-up\"]\n{}{}{}{}\
         [[clients]]\ncount = {count}\ncontroller = \"cocoa-03\"\nexchanges = 8\nworkload = \"random\"\n",
        link("cell-up", "60 kbit/s", "115 ms", "2500 B", ""),
        link("cell-down", "30 kbit/s", "215 ms", "2500 B", ""),
        link("backbone-up", rate, "40 ms", queue, more),
        link("backbone-down", rate, "60 ms", queue, more),
    )
}

fn together(sites: &[Site<'_>], threads: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    run_sites(
        sites,
        threads,
        || false,
        |number, outcome| {
            assert_eq!(number, outcomes.len());
            outcomes.push(outcome);
        },
    )
    .unwrap();
    outcomes
}

fn of(scenario: &Scenario, sites: u64) -> Vec<Site<'_>> {
    (0..sites).map(|seed| Site { scenario, seed: seed + 1 }).collect()
}

/// Tight enough that packets wait, are refused and get lost on what is shared.
fn tight() -> Scenario {
    cell(
        3,
        "200 kbit/s",
        "4000 B",
        "loss = { kind = \"bernoulli\", rate = 0.02 }\njitter = { from = \"0 ms\", to = \"7 ms\" }",
    )
}

#[test]
fn results_are_the_same_on_any_number_of_threads() {
    let scenario = tight();
    let sites = of(&scenario, 150);
    let alone = together(&sites, 1);
    let refused: u64 = alone.iter().flat_map(|one| &one.links).map(|link| link.dropped_queue_packets).sum();
    let lost: u64 = alone.iter().flat_map(|one| &one.links).map(|link| link.dropped_radio_packets).sum();
    assert!(refused > 100 && lost > 100, "{refused} refused, {lost} lost");
    for threads in [2, 3, 7] {
        assert_eq!(together(&sites, threads), alone, "{threads} threads");
    }
}

#[test]
fn one_site_that_shares_with_nobody_has_the_results_of_a_run() {
    for scenario in [tight(), cell(40, "20 kbit/s", "1500 B", ""), cell(1, "1 Mbit/s", "100 kB", "")] {
        for seed in 1..6 {
            let alone = run(&scenario, seed, &Options::default(), || false).unwrap();
            let [mut site] = <[Outcome; 1]>::try_from(together(&[Site { scenario: &scenario, seed }], 1)).unwrap();
            // What left the queue and had not arrived when all was done is not told of a site.
            site.summary.events = alone.summary.events;
            assert_eq!(site, alone, "seed {seed}");
        }
    }
}

#[test]
fn a_backbone_that_is_wide_enough_changes_nothing_for_anybody() {
    let scenario = cell(4, "10 Gbit/s", "10 MB", "");
    let sites = of(&scenario, 20);
    for (site, outcome) in sites.iter().zip(together(&sites, 2)) {
        let alone = run(&scenario, site.seed, &Options::default(), || false).unwrap();
        for (here, there) in outcome.flows.iter().zip(&alone.flows) {
            let apart = here.fct_us.unwrap().abs_diff(there.fct_us.unwrap());
            // Parts of a microsecond that a packet takes add up for all who share.
            assert!(apart <= 8, "{apart} us");
            assert_eq!((here.transmissions, here.completed), (there.transmissions, there.completed));
        }
    }
}

#[test]
fn what_all_sites_ask_for_takes_the_time_of_the_backbone() {
    // Timers that never run out, and 100 sites of 10 clients with 8 answers each, over 200 kbit/s.
    let patient = "{ preset = \"rfc7252\", ack-timeout = \"600 s\" }";
    let text = text(10, "200 kbit/s", "10 MB", "").replace("\"cocoa-03\"", patient);
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    let outcomes = together(&of(&scenario, 100), 2);
    let last = outcomes.iter().map(|one| one.summary.simulated_us).max().unwrap() as f64;
    let link = (100 * 10 * 8 * RESPONSE) as f64 * 8e6 / 200_000.0;
    assert!(last > link && last < link + 700e3, "{last} us against {link} us");
    for outcome in &outcomes {
        let row = outcome.links.iter().find(|row| row.link == "backbone-down").unwrap();
        assert_eq!((row.offered_packets, row.delivered_packets), (80, 80));
        // Of the link as a whole.
        assert!(row.busy_us as f64 > 0.99 * link, "{}", row.busy_us);
    }
}

/// Who hears at the end of a window that a message was refused goes on at once.
#[test]
fn what_nobody_acknowledges_and_a_shared_link_refuses_is_lost() {
    let told = "confirmable = false\nworkload = { kind = \"periodic\", period = \"10 s\", requests = 5 }";
    let text = text(30, "20 kbit/s", "200 B", "").replace("exchanges = 8\nworkload = \"random\"", told);
    let scenario = Scenario::from_toml(&text, "test").unwrap();
    let sites = of(&scenario, 70);
    let outcomes = together(&sites, 1);
    for outcome in &outcomes {
        let sum = |of: fn(&millpond_sim::FlowRow) -> u32| outcome.flows.iter().map(of).sum::<u32>();
        assert_eq!(sum(|row| row.arrivals), 150);
        assert_eq!(sum(|row| row.answered + row.requests_failed), 150);
    }
    let refused: u64 = outcomes.iter().flat_map(|one| &one.links).map(|link| link.dropped_queue_packets).sum();
    assert!(refused > 1_000, "{refused}");
    assert_eq!(together(&sites, 2), outcomes);
}

#[test]
fn sites_may_differ_but_not_in_what_they_share() {
    let (few, many) = (cell(1, "1 Mbit/s", "10 kB", ""), cell(5, "1 Mbit/s", "10 kB", ""));
    let outcomes = together(&[Site { scenario: &few, seed: 1 }, Site { scenario: &many, seed: 1 }], 2);
    assert_eq!(outcomes.iter().map(|one| one.flows.len()).collect::<Vec<_>>(), [1, 5]);
    let other = cell(1, "2 Mbit/s", "10 kB", "");
    let refused = |sites: &[Site<'_>]| run_sites(sites, 1, || false, |_, _| {}).unwrap_err();
    let (number, error) = refused(&[Site { scenario: &few, seed: 1 }, Site { scenario: &other, seed: 1 }]);
    assert_eq!(number, 1);
    assert_eq!(error.to_string(), "network.shared: sites share links that are the same for all of them");
    let path = Scenario::from_toml(
        &format!("{}\n[[clients]]\ncount = 1\ncontroller = \"rfc7252\"\n", path::path("2500 B")),
        "test",
    );
    let error = refused(&[Site { scenario: &path.unwrap(), seed: 1 }]).1;
    assert!(error.to_string().contains("the sites share nothing"), "{error}");
}

#[test]
fn it_stops_when_told_to() {
    let scenario = cell(4, "1 Mbit/s", "10 kB", "");
    let mut looks = 0;
    let stopped = || {
        looks += 1;
        looks > 3
    };
    let ended = run_sites(&of(&scenario, 100), 2, stopped, |_, _| unreachable!());
    assert_eq!(ended.unwrap_err().1, RunError::Cancelled);
}

#[test]
fn what_cannot_be_shared_is_said_in_one_line() {
    let text = text(1, "1 Mbit/s", "10 kB", "");
    let refused = |text: &str| Scenario::from_toml(text, "test").unwrap_err().to_string();
    for (before, after, told) in [
        ("[\"backbone-down\", ", "[\"backbon-down\", ", "unknown link `backbon-down`: did you mean `backbone-down`?"),
        ("[\"backbone-down\", \"backbone-up\"]\n[", "[\"backbone-up\", \"backbone-up\"]\n[", "stands there twice"),
        ("\"40 ms\"", "\"0 s\"", "sites share links of at least 1 ms"),
    ] {
        let line = refused(&text.replace(before, after));
        assert!(line.contains(told), "{line}");
    }
    let event = "\n[[timeline]]\nkind = \"outage\"\nat = \"5 s\"\nfor = \"1 s\"\n";
    let line = refused(&format!("{text}{event}"));
    assert!(line.contains("the timeline changes `backbone-down`"), "{line}");
}
