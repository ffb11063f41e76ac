//! Controllers of the user's own: how scenarios name them, and who gives them to a run.

use std::sync::atomic::{AtomicU32, Ordering};

use millpond_control::{Controller, Cx, Exchange, PeerController, Preset, Reason, Sample, Span, View, Wait};
use millpond_sim::scenario::{Controllers, OwnChoice, Value};
use millpond_sim::{Options, RunError, Scenario, run, run_with};

fn scenario(controller: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
        [path.uplink]
        rate = "60 kbit/s"
        delay = "215 ms"
        queue = "2500 B"
        [path.downlink]
        rate = "30 kbit/s"
        delay = "415 ms"
        queue = "2500 B"
        loss = {{ kind = "bernoulli", rate = 0.2 }}
        [[clients]]
        count = 20
        controller = {controller}
        workload = "random"
        exchanges = 250
        "#
    );
    Scenario::from_toml(&text, "test").map_err(|error| error.to_string())
}

/// Waits as long as its setting says, every time.
#[derive(Clone, Debug)]
struct Fixed(Span);

impl Controller for Fixed {
    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        exchange.begin(cx.now, self.0);
        Wait::then_retransmit(self.0, Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        exchange.advance(self.0);
        Wait::then_retransmit(self.0, Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {}

    fn view(&self) -> View {
        View::default()
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        self.0
    }
}

/// Gives `own:fixed`, and presets under another name; fails once it was asked so many times how it is.
#[derive(Default)]
struct Mine {
    fails_when_asked: Option<u32>,
    asked: AtomicU32,
}

impl Controllers for Mine {
    fn own(&self, choice: &OwnChoice) -> Result<PeerController, String> {
        match (choice.name(), choice.settings().get("seconds")) {
            ("own:fixed", Some(Value::Whole(seconds))) => {
                Ok(PeerController::own(Fixed(Span::from_secs(*seconds as u32))))
            }
            ("own:preset", None) => Ok(PeerController::own(Preset::COCOA_03.build())),
            _ => Err(format!("`{}` is not here", choice.name())),
        }
    }

    fn failure(&self) -> Option<String> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.fails_when_asked.filter(|limit| asked >= *limit).map(|_| "own:fixed cannot go on".to_owned())
    }
}

#[test]
fn a_controller_from_outside_behaves_as_the_same_one_inside() {
    let (own, built) = (scenario("\"own:preset\"").unwrap(), scenario("\"cocoa-03\"").unwrap());
    let options = Options { traces: millpond_sim::TraceKind::ALL.to_vec(), ..Options::default() };
    let outcome = run_with(&own, 5, &options, &Mine::default(), || false).unwrap();
    assert_eq!(outcome, run(&built, 5, &options, || false).unwrap());
}

#[test]
fn settings_reach_it() {
    let options = Options { traces: vec![millpond_sim::TraceKind::Rto], ..Options::default() };
    let own = scenario("{ own = \"own:fixed\", seconds = 7 }").unwrap();
    let outcome = run_with(&own, 5, &options, &Mine::default(), || false).unwrap();
    assert!(!outcome.rto_trace.is_empty());
    assert!(outcome.rto_trace.iter().all(|timer| timer.wait_us == 7_000_000));
}

#[test]
fn it_keeps_its_name_and_settings() {
    for written in
        ["{ own = \"own:fixed\", seconds = 7, on = true }", "{ preset = \"own:fixed\", on = true, seconds = 7 }"]
    {
        let read = scenario(written).unwrap();
        assert!(
            read.to_json().contains(r#""controller":{"own":"own:fixed","on":true,"seconds":7}"#),
            "{}",
            read.to_json()
        );
        assert_eq!(Scenario::from_json(&read.to_json(), "again").unwrap(), read);
        assert_eq!(read.clients[0].algorithm(), "own:fixed (on true, seconds 7)");
    }
    assert!(scenario("\"own:fixed\"").unwrap().to_json().contains(r#""controller":"own:fixed""#));
}

#[test]
fn nobody_has_it() {
    let own = scenario("\"own:other\"").unwrap();
    let why = "clients[0].controller: `own:other` is not here".to_owned();
    let options = Options::default();
    assert_eq!(run_with(&own, 1, &options, &Mine::default(), || false), Err(RunError::Controller(why)));
    let Err(RunError::Controller(why)) = run(&own, 1, &options, || false) else { panic!("it ran") };
    assert_eq!(
        why,
        "clients[0].controller: `own:other` is not built in, and this run was given no controllers of its own"
    );
}

#[test]
fn a_failure_ends_the_run_and_leaves_no_result() {
    let own = scenario("{ own = \"own:fixed\", seconds = 7 }").unwrap();
    let ended = |mine: &Mine| run_with(&own, 1, &Options::default(), mine, || false).map(|outcome| outcome.summary);
    let well = Mine::default();
    assert!(ended(&well).is_ok());
    let times = well.asked.load(Ordering::Relaxed);
    assert!(times > 2, "a run of this size asks in the middle too");
    for fails_when_asked in [0, 1, times - 1] {
        let mine = Mine { fails_when_asked: Some(fails_when_asked), ..Mine::default() };
        assert_eq!(ended(&mine), Err(RunError::Controller("own:fixed cannot go on".to_owned())));
    }
}

#[test]
fn bad_names_are_refused_in_one_line() {
    for (written, told) in [
        ("\"fixed\"", "unknown controller `fixed`"),
        ("\"fixed\"", "one of your own has a colon in its name"),
        ("{ own = \"fixed\" }", "`fixed` is no controller of your own: write two names with a colon"),
        ("{ own = \" :fixed\" }", "is no controller of your own"),
        ("{ own = \"own:\" }", "is no controller of your own"),
        ("{ own = \"own:fixed\", preset = \"rfc7252\" }", "both `own` and `preset`: name one controller"),
        ("{ seconds = 7 }", "missing key `preset`"),
        ("{ preset = \"rfc7252\", max-wait = true }", "`true` does not fit: max-wait takes a length of time"),
        ("{ preset = \"cocoa-03\", vbf-short = \"9 s\", vbf-long = \"1 s\" }", "vbf-short must not be above vbf-long"),
    ] {
        let error = scenario(written).unwrap_err();
        assert!(error.starts_with("test:") && error.contains(told) && !error.contains('\n'), "{written}: {error}");
    }
}
