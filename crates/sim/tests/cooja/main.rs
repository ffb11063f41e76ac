//! The mesh beside a real Contiki: runs of Contiki 2.7 on emulated Z1 nodes in Cooja 2.7, a row each in `cooja-mesh.csv`.
//!
//! The times of a node are those that were measured there: 7.3 ms from the end of a frame that a relay receives to the beginning
//! of the one that it sends, and 3.86 ms between two frames of a list. Of these 1.07 ms are for the acknowledgement, 0.32 ms for
//! assessment and turnaround; so 2.47 ms are for loading, and 4.51 ms for processing. Frames have the measured 97 bytes.

use millpond_sim::{Options, Scenario, run};

const TIMES: &str = "loading = \"2470 us\"\nprocessing = \"4510 us\"\n";
/// As the study has them (docs/studies/cocoaplus15.md).
const LOSSY: &str = "delivery = [0.75, 0.8495, 0.8813, 0.9045, 0.9233, 0.9395, 0.9538, 0.9668, 0.9787, 0.9897, 1.0]\n";

/// A row of the file.
struct Row {
    topology: String,
    kbps: f64,
    is_lossy: bool,
    retransmissions: u8,
    generated: f64,
    delivered: f64,
    mean_delay: f64,
    simulator: String,
}

impl Row {
    fn read(line: &str) -> Self {
        // The third cell alone is quoted, and has commas.
        let mut parts = line.split('"');
        let cells: Vec<&str> = match (parts.next(), parts.next(), parts.next()) {
            (Some(front), Some(sink), Some(rest)) => {
                front.trim_end_matches(',').split(',').chain([sink]).chain(rest[1..].split(',')).collect()
            }
            _ => line.split(',').collect(),
        };
        let number = |place: usize| cells[place].parse::<f64>().unwrap();
        Self {
            topology: cells[0].to_owned(),
            kbps: number(3),
            is_lossy: cells[4] != "100",
            retransmissions: cells[5].parse().unwrap(),
            generated: number(7),
            delivered: number(8),
            mean_delay: number(9),
            simulator: cells[14].to_owned(),
        }
    }

    /// The share that was delivered there, in percent.
    fn share(&self) -> f64 {
        100.0 * self.delivered / self.generated
    }

    fn scenario(&self) -> Scenario {
        let is_mixed = self.topology.ends_with("mixed");
        let topology = if self.topology.starts_with("grid") { "grid-6x6" } else { "chain-17" };
        // 768 bits a message; three bursts in four minutes of mixed traffic.
        let seconds = if is_mixed { 240.0 } else { self.generated * 0.768 / self.kbps };
        let access = if self.simulator.contains("2.6") { "contiki26" } else { "contiki27" };
        let timebase = [("T=15.6ms", 15_625), ("T=31ms", 31_250), ("T=62.5ms", 62_500)];
        let timebase =
            timebase.iter().find(|(word, _)| self.simulator.contains(word)).map_or(125_000, |(_, time)| *time);
        let objective = if self.retransmissions == 0 { "of0" } else { "mrhof" };
        let payload = if self.simulator.contains("2 frames") { 89 } else { 31 };
        let queue = if self.simulator.contains("no application queue") { 1 } else { 4 };
        let group = |sink: &str, workload: &str| {
            format!(
                "[[clients]]\ncontroller = \"rfc7252\"\nsink = \"{sink}\"\nuri_path = \"s\"\nrequest_payload = \"{payload} B\"\n\
                 application_queue = {queue}\nworkload = [ {workload} ]\n"
            )
        };
        let period = 768_000.0 / self.kbps;
        let mut text = format!(
            "[mesh]\ntopology = \"{topology}\"\nretransmissions = {}\naccess = \"{access}\"\ntimebase = \"{timebase} us\"\n\
             routing = {{ kind = \"rpl\", objective_function = \"{objective}\" }}\n{TIMES}{}",
            self.retransmissions,
            if self.is_lossy { LOSSY } else { "" },
        );
        let steady = format!(
            "{{ kind = \"periodic\", period = {{ together = \"{period:.0} us\" }}, for = \"{seconds:.0} s\" }}"
        );
        text += &group("primary", &steady);
        if is_mixed {
            text += &group("secondary", "{ kind = \"after-event\" }");
            for minute in 1..=3 {
                text += &format!("[[timeline]]\nat = \"{minute} min\"\nkind = \"alarm\"\n");
            }
        }
        // What is under way ends.
        text += &format!("[server]\npayload = \"0 B\"\n[run]\nfor = \"{:.0} s\"\n", seconds + 93.0);
        Scenario::from_toml(&text, "row").unwrap()
    }
}

/// The share delivered in all runs, in percent, and the mean delays of each, in seconds, in order.
fn measured(scenario: &Scenario, runs: u64) -> (f64, Vec<f64>) {
    let (mut arrivals, mut delivered, mut means) = (0, 0, Vec::new());
    for seed in 1..=runs {
        let outcome = run(scenario, seed, &Options::default(), || false).unwrap();
        arrivals += outcome.summary.arrivals;
        delivered += outcome.summary.delivered;
        // A bin ends at most 1/64 above what is in it.
        let ways = outcome.delays.iter().filter(|row| row.kind == "one_way");
        let (count, sum) = ways.fold((0, 0), |(count, sum), row| (count + row.count, sum + row.count * row.upper_us));

        means.push(sum as f64 / count as f64 / 1e6 / 1.008);
    }
    means.sort_by(f64::total_cmp);
    (100.0 * delivered as f64 / arrivals as f64, means)
}

/// Rows whose mean a handful of waits of 2 s and more make, so that single runs of ours differ by far more than a third.
fn is_decided_by_few(row: &Row) -> bool {
    row.retransmissions == 0 || row.simulator.contains("2 frames")
}

#[test]
fn chains_deliver_what_they_do_in_cooja_and_as_late() {
    let rows: Vec<Row> = include_str!("cooja-mesh.csv").lines().skip(1).map(Row::read).collect();
    let chains: Vec<&Row> = rows.iter().filter(|row| row.topology.starts_with("chain")).collect();
    assert_eq!(chains.len(), 24);
    let mut told = String::new();
    let mut fails = 0;
    for row in chains {
        let (share, means) = measured(&row.scenario(), if is_decided_by_few(row) { 9 } else { 3 });
        let (middle, least, most) = (means[means.len() / 2], means[0], means[means.len() - 1]);
        let ratio = middle / row.mean_delay;
        let is_late = if is_decided_by_few(row) {
            !(least..=most).contains(&row.mean_delay)
        } else {
            !(0.65..=1.35).contains(&ratio)
        };
        fails += u32::from(is_late || (share - row.share()).abs() > 6.0);
        let (kbps, retransmissions, simulator) = (row.kbps, row.retransmissions, &row.simulator);
        told += &format!(
            "{} {kbps} kbit/s, lossy {}, {retransmissions} retransmissions, {simulator}: {:.1} % and {share:.1} %, {:.3} s and \
             {middle:.3} s ({least:.3} to {most:.3})\n",
            row.topology,
            row.is_lossy,
            row.share(),
            row.mean_delay,
        );
    }
    println!("{told}");
    assert_eq!(fails, 0, "{told}");
}

/// Grids were not looked at when the times above were read. With lossy links ours deliver 8 to 10 points less: nodes of Contiki
/// change their parents more freely than those of `routing = "rpl"`, which may be why.
#[test]
fn grids_deliver_about_what_they_do_in_cooja() {
    for (simulator, links, theirs, bound) in [
        ("2.7", "100", 69.0, 8.0),
        ("2.7", "lossy", 68.0, 8.0),
        ("csma+nullrdc of 2.6", "100", 99.7, 8.0),
        ("T=62.5ms", "100", 91.0, 8.0),
        ("T=62.5ms", "lossy", 94.0, 10.0),
    ] {
        let row =
            Row::read(&format!("grid mixed,36,corner,3,{links},3,1,1000,{},0,0,0,0,0,{simulator}", 10.0 * theirs));
        let (share, _) = measured(&row.scenario(), 5);
        println!("grid, {links}, {simulator}: {theirs} % and {share:.1} %");
        assert!((share - theirs).abs() <= bound, "{simulator}, {links}: {theirs} % and {share:.1} %");
    }
}
