//! Traces as they are written: lists, comma-separated values, Mahimahi's opportunities, and what is no trace.

use millpond_control::{ChanceSeed, Instant};
use millpond_link::Delivered;
use millpond_path::{BitRate, Duration, Path};

/// A path whose downlink has these keys, with files by their names.
fn read(keys: &str, files: &[(&str, &str)]) -> Result<Path, String> {
    let text = format!(
        "[uplink]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"1 MB\"\n[downlink]\nqueue = \"1 MB\"\n{keys}\n"
    );
    let find = |name: &str| {
        let found = files.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{name}: no such file"))
    };
    Path::with_files(&text, "test.toml", find).map_err(|error| error.to_string())
}

/// When packets of 100 B that are all offered at the start arrive, µs; those lost as none.
fn arrivals(path: &Path, packets: u32) -> Vec<Option<u64>> {
    let mut link = path.downlink.link(ChanceSeed::new(1), 1).unwrap();
    (0..packets).for_each(|_| link.offer(Instant::ORIGIN, 100, ()).unwrap());
    let mut out = Vec::new();
    while let Some(now) = link.next() {
        while let Some(delivered) = link.deliver(now) {
            out.push(match delivered {
                Delivered::Arrived(parcel) => Some(parcel.at.as_micros()),
                Delivered::Lost(_) | Delivered::Dropped(..) => None,
            });
        }
    }
    out
}

const LIST: &str = "trace = [ { at = \"0 s\", rate = \"8 kbit/s\", delay = \"100 ms\" }, \
                    { at = \"150 ms\", rate = \"0 bit/s\" }, { at = \"1 s\", rate = \"80 kbit/s\", delay = \"20 ms\" } ]";

#[test]
fn a_list_and_a_file_of_values_are_the_same_trace() {
    let list = read(LIST, &[]).unwrap();
    assert_eq!(arrivals(&list, 3), [Some(200_000), Some(1_025_000), Some(1_035_000)]);
    assert_eq!((list.downlink.rate, list.downlink.delay), (BitRate(80_000), Duration(100_000)));
    for text in [
        "time,rate,delay\n0 s,8 kbit/s,100 ms\n150 ms,0 bit/s,\n1 s,80 kbit/s,20 ms\n",
        "\u{feff}# measured\r\ntime (s),rate (kbit/s),delay (ms)\r\n0,8,100\r\n\r\n0.15,0,100.0004\r\n1,80,20",
        "delay ms,rate kbit/s,time s\n100.0000,8,0.000000000\n,0,0.150000009\n20,80,1.0",
    ] {
        let file = read("trace = \"cell.csv\"", &[("cell.csv", text)]).unwrap();
        assert_eq!(arrivals(&file, 3), arrivals(&list, 3), "{text}");
        assert_eq!((file.downlink.rate, file.downlink.delay), (list.downlink.rate, list.downlink.delay));
    }
}

#[test]
fn what_a_trace_does_not_speak_of_and_what_is_before_it_are_the_direction_s() {
    let keys = "rate = \"8 kbit/s\"\ndelay = \"1 s\"\ntrace = { file = \"a.csv\", every = \"10 s\" }";
    let path = read(keys, &[("a.csv", "time (s),rate (kbit/s)\n0.05,80\n9.5,8\n")]).unwrap();
    assert_eq!(arrivals(&path, 2), [Some(1_055_000), Some(1_065_000)]);
    let keys =
        "rate = \"8 kbit/s\"\ndelay = \"1 s\"\ntrace = { file = \"a.csv\", every = \"10 s\", offset = \"9.5 s\" }";
    let path = read(keys, &[("a.csv", "time (s),rate (kbit/s)\n0.05,80\n9.5,80\n")]).unwrap();
    assert_eq!(arrivals(&path, 1), [Some(1_010_000)]);
    let keys = "rate = \"8 kbit/s\"\ndelay = \"1 s\"\ntrace = \"a.csv\"";
    let path = read(keys, &[("a.csv", "time (s),loss (%)\n0.15,100\n0.25,0\n")]).unwrap();
    assert_eq!(arrivals(&path, 3), [Some(1_100_000), None, Some(1_300_000)]);
}

#[test]
fn opportunities_are_those_of_mahimahi() {
    // Two opportunities in the second millisecond: 3008 B at once, and again every 5 ms.
    let keys = "delay = \"0 ms\"\ntrace = \"cell.down\"";
    let path = read(keys, &[("cell.down", "2\n2\n5\n")]).unwrap();
    let mut expected = vec![Some(2_000); 30];
    expected.extend([Some(5_000); 15]);
    expected.extend([Some(7_000); 5]);
    assert_eq!(arrivals(&path, 50), expected);
    assert_eq!(path.downlink.rate, BitRate(3 * 1_504 * 8 * 200));
}

#[test]
fn a_place_for_each_seed_is_the_same_for_traces_of_one_length() {
    let keys = "delay = \"0 ms\"\ntrace = { file = \"cell.down\", offset = \"per-seed\" }";
    let text: String = (1..=1_000).map(|second| format!("{}\n", second * 1_000)).collect();
    let path = read(keys, &[("cell.down", &text)]).unwrap();
    let first = |seed: u64, number| {
        let mut link = path.downlink.link(ChanceSeed::new(seed), number).unwrap();
        link.offer(Instant::ORIGIN, 100, ()).unwrap();
        link.next().unwrap().as_micros()
    };
    let offsets: Vec<u64> = (0..40).map(|seed| first(seed, 0)).collect();
    assert_eq!(offsets, (0..40).map(|seed| first(seed, 1)).collect::<Vec<_>>());
    assert!(offsets.iter().all(|offset| *offset <= 1_000_000));
    assert!(offsets.iter().filter(|offset| **offset < 500_000).count() > 5);
    assert!(offsets.iter().filter(|offset| **offset > 500_000).count() > 5);
}

#[test]
fn a_trace_over_a_profile_replaces_its_rate() {
    let text =
        "path = { profile = \"nbiot-anrw18\", downlink = { trace = [ { at = \"1 s\", rate = \"8 kbit/s\" } ] } }";
    let path = Path::from_toml(text, "test.toml").unwrap();
    assert_eq!((path.downlink.rate, path.downlink.highest_rate()), (BitRate(30_000), BitRate(30_000)));
    assert!(path.downlink.trace.as_ref().is_some_and(|trace| trace.has_rates() && !trace.has_losses()));
}

#[test]
fn bad_traces_are_told_with_the_line_of_their_file() {
    let both = "rate = \"8 kbit/s\"\ndelay = \"1 s\"\n";
    for (trace, file, parts) in [
        ("\"t.csv\"", "time (s),rate (kbit/s)\n0,8\n2,9\n\n1,3\n", &["t.csv, line 5", "not after", "in order"][..]),
        ("\"t.csv\"", "time (s),rate (kbit/s)\n0,8\n0,9\n", &["t.csv, line 3", "not after"]),
        ("\"t.csv\"", "time (s),rate (kbit/s)\n0,8\n2,0\n", &["t.csv: nothing is ever sent again"]),
        (
            "{ file = \"t.csv\", every = \"4 s\" }",
            "time (s),rate (kbit/s)\n0,0\n2,0\n",
            &["nothing is ever sent again"],
        ),
        ("{ file = \"t.csv\", every = \"0 s\" }", "time (s),rate (kbit/s)\n0,8\n", &["after no time"]),
        ("{ file = \"t.csv\", every = \"2 s\" }", "time (s),rate (kbit/s)\n0,8\n2,9\n", &["line 3", "has begun again"]),
        ("\"t.csv\"", "", &["t.csv, line 1: no steps"]),
        ("\"t.csv\"", "time (s),rate (kbit/s)\n", &["t.csv: a trace without steps"]),
        ("\"t.csv\"", "time (s),rte (kbit/s)\n0,8\n", &["t.csv, line 1", "unknown column `rte", "did you mean `rate`"]),
        ("\"t.csv\"", "0,8\n", &["t.csv, line 1", "`0` names no column", "write a column `time`"]),
        ("\"t.csv\"", "rate (kbit/s)\n8\n", &["t.csv, line 1", "write a column `time`"]),
        ("\"t.csv\"", "time (s),rate\n0,8\n", &["t.csv, line 2", "no unit in `8`", "kbit/s"]),
        ("\"t.csv\"", "time (s),rate (kbps)\n0,8\n", &["t.csv, line 2", "unknown unit `kbps`"]),
        ("\"t.csv\"", "time (s),rate (kbit/s)\n0,8,9\n", &["t.csv, line 2", "3 values: write 2"]),
        ("\"t.csv\"", "time (s),delay (s)\n0,9000\n", &["t.csv, line 2", "longer than can be told"]),
        ("\"t.csv\"", "time (s),loss\n0,8\n", &["t.csv, line 2", "8 is not a probability"]),
        ("\"t.csv\"", "time (s),loss\n0,1\n9,1\n", &["t.csv: every packet is lost"]),
        ("\"t.csv\"", "time (s),loss\n0,nan\n", &["t.csv, line 2", "not a probability"]),
        ("\"t.csv\"", "time (s),rate (Gbit/s)\n0,9000000000\n", &["t.csv, line 2", "above the highest"]),
        ("\"t.down\"", "4\n3\n", &["t.down, line 2", "3 ms is before"]),
        ("\"t.down\"", "0\n0\n", &["t.down: a trace that begins again after no time"]),
        ("\"t.down\"", "4\nfive\n", &["t.down, line 2", "`five` is no millisecond"]),
        ("\"other.csv\"", "", &["other.csv: no such file"]),
        ("{ file = \"t.csv\", offset = \"per-seed\" }", "time (s),rate (kbit/s)\n0,8\n", &["write `every`"]),
        ("{ file = \"t.csv\", offset = \"per-run\" }", "time (s),rate (kbit/s)\n0,8\n", &["offset:", "`per-seed`"]),
        ("{ fil = \"t.csv\" }", "", &["did you mean `file`?"]),
        ("{ every = \"1 s\" }", "", &["missing key `file` or `steps`"]),
        ("5", "", &["write the name of a file, a list of steps"]),
        ("[ { at = \"0 s\", rate = \"8 kbit/s\" }, { at = \"0 s\" } ]", "", &["trace: step 2", "not after"]),
        ("[ { at = \"0 s\", rte = \"8 kbit/s\" } ]", "", &["did you mean `rate`?"]),
        ("[]", "", &["a trace without steps"]),
    ] {
        let told = read(&format!("{both}trace = {trace}"), &[("t.csv", file), ("t.down", file)]).unwrap_err();
        for part in parts {
            assert!(told.contains(part), "{trace} with {file:?}: {told:?} does not say {part:?}");
        }
        assert!(told.starts_with("test.toml") && !told.contains('\n'), "{told:?}");
    }
    let two =
        format!("{both}loss = {{ kind = \"bernoulli\", rate = 0.1 }}\ntrace = [ {{ at = \"0 s\", loss = 0.1 }} ]");
    assert!(read(&two, &[]).unwrap_err().contains("leave one of the two out"));
    let late = "queue_counts = \"all\"\ntrace = [ { at = \"1 s\", rate = \"8 kbit/s\", delay = \"1 s\" } ]";
    assert!(read(late, &[]).unwrap_err().contains("missing key `rate`"));
    let alone = "path = { profile = \"nbiot-anrw18\", downlink = { trace = \"t.csv\" } }";
    assert!(Path::from_toml(alone, "test.toml").unwrap_err().to_string().contains("t.csv: there is nobody"));
}
