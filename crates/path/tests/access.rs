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
