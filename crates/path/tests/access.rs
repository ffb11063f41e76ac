//! Access to a cell as it is written, over a profile, and what is refused.

use millpond_path::{Access, Duration, Path};

const CELL: &str = r#"
[uplink]
rate = "60 kbit/s"
delay = "200 ms"
queue = "10 kB"
[downlink]
rate = "30 kbit/s"
delay = "200 ms"
queue = "10 kB"
[access]
inactivity = "20 s"
set_up = "100 ms"
preambles = 48
every = "640 ms"
response = "40 ms"
backoff = "1 s"
paging = "2.56 s"
sleeps_after = "3 h"
levels = [{ share = 0.8, repetitions = 1 }, { share = "20 %", repetitions = 16 }]
duty_cycle = "1 %"
"#;

fn read(text: &str) -> Result<Path, String> {
    Path::from_toml(text, "cell.toml").map_err(|error| error.to_string())
}

#[test]
fn what_is_written_is_read_and_laid_over_another() {
    let path = read(CELL).unwrap();
    let access = path.access.as_ref().unwrap();
    assert_eq!((access.preambles, access.sleeps_after), (Some(48), Some(Duration(10_800_000_000))));
    let rules = access.rules(&path.uplink).unwrap();
    let random = rules.connection.unwrap().random.unwrap();
    assert_eq!((random.attempts, random.grants, rules.levels.is_plain()), (10, None, false));
    let over = |keys: &str| {
        let text = format!("path = {{ profile = \"nbiot-anrw18\", access = {keys} }}");
        read(&text).unwrap().access
    };
    assert_eq!(over("\"none\""), None);
    let duty = Access { duty_cycle: Some(0.01), ..Access::default() };
    assert_eq!(over("{ duty_cycle = \"1 %\" }"), Some(duty.clone()));
    // 0.01 · 3600 s at 60 kbit/s carry 270,000 B.
    assert_eq!(duty.holds_back(&path.uplink, 270_000), None);
    assert!(duty.holds_back(&path.uplink, 270_001).is_some());
}

#[test]
fn what_gives_no_access_is_refused_in_one_line() {
    for (from, to, told) in [
        ("preambles = 48", "preambles = 0", "cell.toml: access.preambles: with 0 no device ever connects"),
        ("inactivity = \"20 s\"", "", "access.set_up: devices are connected all the time here: write `inactivity`"),
        ("inactivity = \"20 s\"", "inactivity = \"0 s\"", "access.inactivity: a connection that ends before"),
        ("preambles = 48", "", "access.every: nobody sends preambles here: write `preambles`"),
        ("every = \"640 ms\"", "", "access.every: opportunities at all times are none"),
        ("backoff = \"1 s\"", "backoff = \"2 h\"", "access.backoff: 2 h is longer than can be told"),
        ("repetitions = 16", "repetitions = 0", "access.levels: write up to 4 levels"),
        ("share = 0.8", "share = -1", "access.levels: write up to 4 levels"),
        ("duty_cycle = \"1 %\"", "duty_cycle = 0", "access.duty_cycle: nothing is ever sent in 0 %"),
        ("duty_cycle = \"1 %\"", "duty_cycle = 1.5", "access.duty_cycle: 1.5 is no share of the time"),
        ("set_up", "setup", "unknown key `setup`: did you mean `set_up`?"),
    ] {
        let error = read(&CELL.replace(from, to)).unwrap_err();
        assert!(error.contains(told) && !error.contains('\n'), "{to}: {error}");
    }
}

/// The figures of the cellular profiles, from the documents that they name.
#[test]
fn profiles_of_cells_are_what_their_sources_come_to() {
    let of = |name: &str| Path::of_profile(name).unwrap();
    // Blocks of category NB1: 1000 bits in 16 ms up, 680 bits in 26 ms down; of category M1 three in 8 and in 10 ms.
    for (name, up, down) in [("nbiot-ce0", 1_000.0 / 0.016, 680.0 / 0.026), ("lte-m", 3_000.0 / 0.008, 3_000.0 / 0.010)]
    {
        let path = of(name);
        let [told, computed] = [[path.uplink.rate.0 as f64, path.downlink.rate.0 as f64], [up, down]];
        assert!(told.iter().zip(computed).all(|(told, computed)| (told - computed).abs() < 0.5), "{name}: {told:?}");
    }
    for (name, coupling_loss) in [("nbiot-ce0", 144), ("nbiot-ce1", 154), ("nbiot-ce2", 164)] {
        let path = of(name);
        let access = path.access.clone().unwrap();
        // Repetitions, a power of two, make up for what is lost beyond 144 dB.
        let times = access.levels[0].repetitions;
        let gain = 10.0 * f64::from(times).log10();
        let needed = f64::from(coupling_loss - 144);
        assert!(times.is_power_of_two() && gain >= needed && gain < needed + 3.1, "{name}: {gain} dB");
        // 3GPP TR 45.820 asks for 160 bit/s at 164 dB.
        assert!(path.downlink.rate.0 / u64::from(times) >= 160, "{name}");
        // The preamble, four symbol groups of 1.4 ms, takes less than a third of the period, and no shorter period would do.
        let preamble = 5.6 * f64::from(times);
        let periods = [40.0, 80.0, 160.0, 240.0, 320.0, 640.0, 1_280.0, 2_560.0];
        let shortest = periods.iter().find(|period| preamble < *period / 3.0).unwrap();
        let every = access.every.unwrap().0 as f64 / 1e3;
        let until = if times >= 64 { 41.0 } else { 4.0 };
        let response = access.response.unwrap().0 as f64 / 1e3;
        assert_eq!(every, *shortest, "{name}");
        assert!((response - preamble - until).abs() < 1.0, "{name}");
        assert!((access.grant.unwrap().0 as f64 / 1e3 - every / 2.0 - response).abs() < 3.0, "{name}");
        let blocks = 176.0 * f64::from(times) * (1.0 / 62_500.0 + 1.0 / 26_154.0) * 1e3;
        assert!((access.set_up.unwrap().0 as f64 / 1e3 - blocks - 70.0).abs() < 4.0, "{name}: {blocks}");
    }
    // An orbit of 6971 km, and the arc over which it is 10 degrees high or more.
    let (earth, orbit) = (6_371e3_f64, 6_971e3_f64);
    let period = std::f64::consts::TAU * (orbit.powi(3) / 3.986e14).sqrt();
    let elevation = 10.0_f64.to_radians();
    let arc = 2.0 * ((earth / orbit * elevation.cos()).acos() - elevation);
    assert!((period - 5_792.0).abs() < 2.0, "{period}");
    assert!((arc / std::f64::consts::TAU * period - 510.0).abs() < 2.0);
    assert!(of("leo-nbiot").uplink.trace.is_some() && of("geo-nbiot").access == of("nbiot-ce0").access);
}
