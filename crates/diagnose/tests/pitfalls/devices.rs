//! What devices do is told as it was: how many exchanges they have open, whether they report together, and under which preset.

use millpond_diagnose::{Diagnosis, Fitting, Grade, Options, Side, diagnose};

use crate::laboratory::capture;

fn path(rate: &str, delay: &str, loss: f64) -> String {
    let loss = if loss > 0.0 { format!("{{ kind = \"bernoulli\", rate = {loss} }}") } else { "\"none\"".to_owned() };
    format!(
        "[path]\n{0}[path.downlink]\n{1}",
        format_args!("[path.uplink]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"1000 kB\"\nloss = {loss}\n"),
        format_args!("rate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"1000 kB\"\nloss = {loss}\n"),
    )
}

fn told(asking: &str, path: &str, run: &str, seed: u64, side: Side) -> Diagnosis {
    let scenario = format!("[[clients]]\ncount = 40\ntoken_length = 2\n{asking}\n{path}[run]\n{run}\n");
    let file = capture(&scenario, seed);
    diagnose([&file[..]], &Options { side: Some(side), ..Options::default() }, &mut |_| {}).unwrap()
}

const LOOPS: &str = "exchanges = 40\nstart_spread = \"20 s\"\ncontroller = ";

/// Each preset's own waits fit it, on paths that lose packets, and on one that is slow.
#[test]
fn timers_fit_the_preset_that_made_them() {
    let paths = [path("60 kbit/s", "150 ms", 0.15), path("8 kbit/s", "900 ms", 0.03)];
    for name in ["rfc7252", "calm", "cocoa-03", "cocoa-plus", "linux-rto", "fasor-token"] {
        for (path, seed) in paths.iter().zip([1, 2]) {
            let found = told(&format!("{LOOPS}\"{name}\""), path, "until = \"3 h\"", seed, Side::Devices).presets;
            assert_eq!((found.verdict, found.names.first()), (Fitting::Fits, Some(&name)), "{found:?}");
        }
    }
}

/// Loops of ten seconds end every exchange behind its third transmission, and say nothing of a limit; where little is
/// answered, the fifth is the last.
#[test]
fn answers_are_no_limit_of_retransmissions() {
    let of = |path: String, side| {
        told(&format!("{LOOPS}\"rfc7252\""), &path, "until = \"3 h\"", 1, side).timers.max_retransmit
    };
    for side in [Side::Devices, Side::Server] {
        let answered = of(path("1 Mbit/s", "5 s", 0.0), side);
        assert_eq!((answered.value, answered.grade), (Some(2.0), Grade::AtLeast), "{answered:?}");
    }
    let given_up = of(path("1 Mbit/s", "5 s", 0.7), Side::Devices);
    assert_eq!((given_up.value, given_up.grade), (Some(4.0), Grade::Estimate), "{given_up:?}");
}

/// Settings of their own: the wait alone is told beside the preset, another backoff is no preset's.
#[test]
fn timers_with_settings_of_their_own_are_told() {
    let lossy = path("60 kbit/s", "150 ms", 0.15);
    let of = |settings: &str, side| {
        let controller = format!("{LOOPS}{{ preset = \"rfc7252\", {settings} }}");
        told(&controller, &lossy, "until = \"3 h\"", 3, side).presets
    };
    for side in [Side::Devices, Side::Server] {
        let longer = of("ack-timeout = \"5 s\"", side);
        assert_eq!((longer.verdict, longer.names.first()), (Fitting::Fits, Some(&"rfc7252")), "{longer:?}");
        assert!(longer.because.contains("an ACK_TIMEOUT of 5.0 s"), "{longer:?}");
    }
    let spread = of("random-factor = 3", Side::Devices);
    assert_eq!((spread.verdict, &spread.names[..]), (Fitting::None, &[][..]), "{spread:?}");
    let slower = of("backoff-factor = 1.2", Side::Devices);
    assert_eq!((slower.verdict, &slower.names[..]), (Fitting::None, &[][..]), "{slower:?}");
}

/// A server sees the waits of a timer that is always the same, and nothing of what others measure.
#[test]
fn at_the_server_only_a_timer_that_measures_nothing_is_told() {
    let lossy = path("60 kbit/s", "150 ms", 0.15);
    let of = |name: &str| told(&format!("{LOOPS}\"{name}\""), &lossy, "until = \"3 h\"", 1, Side::Server).presets;
    let plain = of("rfc7252");
    assert_eq!((plain.verdict, plain.names.first()), (Fitting::Fits, Some(&"rfc7252")), "{plain:?}");
    for name in ["calm", "cocoa-03", "linux-rto"] {
        let measured = of(name);
        assert_eq!((measured.verdict, &measured.names[..]), (Fitting::Unknown, &[][..]), "{measured:?}");
    }
}

#[test]
fn without_retransmissions_no_preset_is_told() {
    let calm =
        told(&format!("{LOOPS}\"rfc7252\""), &path("60 kbit/s", "150 ms", 0.0), "until = \"3 h\"", 1, Side::Devices);
    assert_eq!(calm.presets.verdict, Fitting::Unknown);
    assert!(calm.presets.because.contains("too few"), "{:?}", calm.presets);
}

/// Where retransmissions or losses show it; a server that misses nothing sees one after the other.
#[test]
fn so_many_exchanges_are_open_as_nstart_says() {
    for nstart in [1, 2, 4] {
        let backlog = "workload = { kind = \"backlog\", requests = 40 }\nstart_spread = \"20 s\"";
        let asking = format!("controller = \"rfc7252\"\nnstart = {nstart}\n{backlog}");
        for (side, loss, delay) in
            [(Side::Devices, 0.1, "150 ms"), (Side::Devices, 0.0, "1700 ms"), (Side::Server, 0.0, "1700 ms")]
        {
            let found = told(&asking, &path("60 kbit/s", delay, loss), "until = \"3 h\"", 1, side).nstart;
            assert_eq!(found.value, Some(f64::from(nstart)), "{side:?} {loss} {found:?}");
        }
    }
}

/// Answers behind a full buffer come when devices have given up and begun another exchange: that was never open beside the first.
#[test]
fn what_was_given_up_is_not_open() {
    let asking = format!("max_retransmit = 3\n{LOOPS}\"rfc7252\"");
    let found = told(&asking, &path("1500 bit/s", "100 ms", 0.0), "until = \"3 h\"", 1, Side::Devices).nstart;
    assert_eq!((found.value, found.grade), (Some(1.0), Grade::AtLeast), "{found:?}");
}

#[test]
fn reports_that_are_aligned_are_told_from_those_that_are_not() {
    let quick = path("60 kbit/s", "150 ms", 0.0);
    for side in [Side::Devices, Side::Server] {
        for (jitter, aligned) in [("2 s", Some(true)), ("5 s", Some(true)), ("", Some(false))] {
            let together =
                if jitter.is_empty() { String::new() } else { format!(", aligned = true, jitter = \"{jitter}\"") };
            let asking =
                format!("controller = \"rfc7252\"\nworkload = {{ kind = \"periodic\", period = \"60 s\"{together} }}");
            let found = told(&asking, &quick, "for = \"900 s\"", 1, side);
            assert_eq!(
                found.alignment.aligned, aligned,
                "{side:?} {jitter} {:?} {:?}",
                found.alignment, found.period_s
            );
            let within = found.alignment.within_s;
            let expected = jitter.trim_end_matches(" s").parse::<f64>().ok();
            let is_near = |(within, jitter): (f64, f64)| (0.8 * jitter..=jitter + 0.7).contains(&within);
            assert!(
                within.zip(expected).is_none_or(is_near) && within.is_some() == expected.is_some(),
                "{:?}",
                found.alignment
            );
        }
        let loops = told(&format!("{LOOPS}\"rfc7252\""), &quick, "until = \"3 h\"", 1, side);
        assert_eq!(loops.alignment.aligned, None, "{:?}", loops.alignment);
    }
}

#[test]
fn payloads_are_as_long_as_they_were() {
    let asking = format!("{LOOPS}\"rfc7252\"\nrequest_payload = \"37 B\"\n[server]\npayload = \"101 B\"");
    let found = told(&asking, &path("60 kbit/s", "150 ms", 0.0), "until = \"3 h\"", 1, Side::Devices).sizes;
    assert_eq!((found.request_payload_bytes, found.answer_payload_bytes), (37, 101), "{found:?}");
    assert!(found.request_bytes > 37 + 28 + 4 && found.answer_bytes > 101 + 28 + 4, "{found:?}");
}
