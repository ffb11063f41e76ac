//! Path sections: alone, in a scenario, and laid over a profile.

use millpond_path::{BitRate, Duration, Loss, LossOf, Path, QueueLimit, Size, profiles};

/// A file that is a path, every key written.
const ALONE: &str = r#"
title = "A satellite"
source = "made up"
header = "48 B"
[uplink]
rate = "2 kbit/s"
delay = "270 ms"
queue = "8 packets"
queue_counts = "all"
jitter = { from = "0 ms", to = "10 ms", order = "free" }
loss = { kind = "markov", good_loss = 0, bad_loss = "50 %", good_dwell = "2 s", bad_dwell = "100 ms" }
loss_of = "each-client"
loss_at = "before-rate"
overhead = "14 B"
[downlink]
rate = "2 Mbit/s"
delay = "270 ms"
queue = "1 MB"
loss = "none"
"#;

/// Reads it, and gives the path or the error's line.
fn read(text: &str) -> Result<Path, String> {
    Path::from_toml(text, "test.toml").map_err(|error| error.to_string())
}

/// What a file that differs in one place is answered with.
fn told(from: &str, to: &str) -> String {
    assert!(ALONE.contains(from), "{from}");
    read(&ALONE.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn a_file_that_is_a_path_and_a_section_of_another_are_the_same_path() {
    let alone = read(ALONE).unwrap();
    assert_eq!(alone.header, Size(48));
    assert_eq!(alone.uplink.queue, QueueLimit::Packets(8));
    assert_eq!((alone.uplink.loss_of, alone.downlink.loss_of), (LossOf::EachClient, LossOf::Link));
    assert_eq!(alone.downlink.loss, Loss::None);
    let inside = ALONE.replace("[uplink]", "[path.uplink]").replace("[downlink]", "[path.downlink]");
    let inside = inside.replace("source = \"made up\"\nheader", "[[clients]]\ncount = 3\n[path]\nheader");
    assert_eq!(read(&inside), Ok(alone), "other sections are for whom they concern");
}

#[test]
fn what_a_profile_does_not_say_is_laid_over_it() {
    let plain = read("path = \"nbiot-anrw18\"").unwrap();
    assert_eq!((plain.uplink.rate, plain.uplink.delay), (BitRate(60_000), Duration(215_000)));
    assert_eq!(plain.downlink.queue, QueueLimit::Bytes(14_100));
    let text = "path = { profile = \"nbiot-anrw18\", uplink = { queue = \"20 kB\" } }";
    let mut changed = plain.clone();
    changed.uplink.queue = QueueLimit::Bytes(20_000);
    assert_eq!(read(text), Ok(changed.clone()));
    assert_eq!(
        read("profile = \"nbiot-anrw18\"\n[uplink]\nqueue = \"20 kB\""),
        Ok(changed),
        "in a file of its own too"
    );
    let jittery = read("path = \"nbiot-upc\"").unwrap();
    assert!(jittery.uplink.jitter.is_some() && jittery.downlink.jitter.is_some());
    let calm = read(
        "profile = \"nbiot-upc\"\ndownlink = { jitter = \"none\", loss = { kind = \"bernoulli\", rate = \"1 %\" } }",
    );
    let calm = calm.unwrap();
    assert_eq!((calm.downlink.jitter, calm.downlink.loss), (None, Loss::Bernoulli { rate: 0.01 }));
    assert_eq!((calm.uplink, calm.downlink.overhead), (jittery.uplink, Size(14)), "the rest stays");
}

#[test]
fn profiles_are_the_paths_of_their_sources() {
    let names: Vec<_> = profiles().iter().map(|profile| profile.name).collect();
    assert!(names.contains(&"nbiot-anrw18") && names.contains(&"nbiot-upc"), "{names:?}");
    // Mean losses of the three error levels.
    for (name, mean) in [("nbiot-tcp20-low", 0.02), ("nbiot-tcp20-medium", 0.1), ("nbiot-tcp20-high", 0.176)] {
        let path = Path::of_profile(name).unwrap();
        for direction in [path.uplink, path.downlink] {
            assert!((direction.loss.mean() - mean).abs() < 1e-12, "{name}");
        }
    }
}

#[test]
fn unknown_profiles_name_the_nearest() {
    let told = read("path = \"nbiot-anrw\"").unwrap_err();
    assert!(told.starts_with("test.toml:1: unknown profile `nbiot-anrw`: did you mean `nbiot-anrw18`?"), "{told}");
    let told = read("title = \"x\"\n[path]\nprofile = \"nb-iot-upc\"").unwrap_err();
    assert!(told.starts_with("test.toml:3: unknown profile") && told.contains("`nbiot-upc`"), "{told}");
}

#[test]
fn what_is_misspelt_or_missing_is_told_with_its_place() {
    for (from, to, parts) in [
        (
            "loss_of = \"each-client\"",
            "loss_of = \"client\"",
            vec!["test.toml:12", "unknown value `client`", "each-client"],
        ),
        ("queue_counts", "quue_counts", vec!["test.toml:9", "unknown key `quue_counts`", "`queue_counts`"]),
        ("rate = \"2 kbit/s\"\n", "", vec!["uplink: missing key `rate`"]),
        ("loss = \"none\"", "loss = \"non\"", vec!["test.toml:19", "unknown loss `non`", "`none`"]),
        ("loss = \"none\"", "loss = \"bernoulli\"", vec!["needs a rate", "rate = \"1 %\""]),
        ("loss = \"none\"", "loss = { kind = \"bernouli\", rate = 0.1 }", vec!["did you mean `bernoulli`?"]),
        ("loss = \"none\"", "loss = { kind = \"bernoulli\", rate = 1 }", vec!["downlink.loss", "loses everything"]),
        ("loss = \"none\"", "loss = { kind = \"bernoulli\", rate = \"1\" }", vec!["1 without quotes", "\"1 %\""]),
        ("header = \"48 B\"", "header = 48", vec!["test.toml:4", "48 has no unit: write \"48 B\""]),
        ("rate = \"2 kbit/s\"", "rate = 2000", vec!["test.toml:6", "write \"2 kbit/s\""]),
        ("delay = \"270 ms\"", "delay = 270", vec!["test.toml:7", "write \"270 ms\" or \"270 s\""]),
        ("[downlink]", "[donlink]", vec!["unknown key `donlink`", "did you mean `downlink`?"]),
    ] {
        let told = told(from, to);
        assert!(parts.iter().all(|part| told.contains(part)), "{to}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn a_file_without_a_path_is_told_so() {
    assert!(read("title = \"nothing\"").unwrap_err().contains("no path here: write [path.uplink]"));
    assert!(read("[pth.uplink]\nrate = \"1 bit/s\"").unwrap_err().contains("did you mean `path`?"));
    assert!(read("path = 3").unwrap_err().contains("a profile's name, or a table"));
    assert!(read("[path.uplink]").unwrap_err().contains("uplink: missing key `rate`"));
}
