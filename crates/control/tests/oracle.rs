//! The call lists of the exact oracle (`vectors/`), call by call.
//!
//! The oracle is a second implementation in rationals (`python/oracle`). Beside every value stands how far whole
//! microseconds may be from it; `vectors/README.md` says why.

#![cfg(any(
    feature = "rfc7252",
    feature = "cocoa",
    feature = "fasor",
    feature = "linux-rto",
    feature = "peak-hopper",
    feature = "basic-rto",
    feature = "coap-plus-rate",
    feature = "bbr-con",
    feature = "tfrc-non",
    feature = "calm"
))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

use millpond_control::{
    Admit, AnyController, Chance, Checked, Class, Controller, Cx, End, Exchange, Fate, Feedback, Instant, PlainMessage,
    Preset, ReplyKind, Sample, SettingValue, Span, Then, View, Wait,
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Display, fs, path::Path};

/// Reads and plays the file of one family.
fn play(family: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(format!("{family}.json"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(document.get("format").and_then(Value::as_u64), Some(1), "{}: another format", file.display());

    let (mut calls, mut values, mut differences) = (0, 0, Vec::new());
    for case in list(&document, "cases") {
        let name = format!("{} {}", word(case, "preset"), word(case, "name"));
        let mut player = Player::new(case);
        for call in list(case, "calls") {
            calls += 1;
            player.play(call);
            if let Some(difference) = player.difference.take() {
                // What follows in this case would only repeat it.
                differences.push(format!("{name}, call {calls} of the file: {difference}\n    {call}"));
                break;
            }
        }
        values += player.values;
    }
    println!("{family}: {calls} calls, {values} values checked");
    assert!(calls > 0 && values > 0, "{}: nothing to check", file.display());
    let shown = differences.iter().take(12).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{family}: {} cases differ from the oracle\n{shown}", differences.len());
}

macro_rules! families {
    ($($test:ident: $family:literal;)*) => {
        $(
            #[cfg(feature = $family)]
            #[test]
            fn $test() {
                play($family);
            }
        )*

        /// Every file that there is has a test above.
        #[test]
        fn no_file_is_forgotten() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
            let mut found: Vec<String> = fs::read_dir(&folder)
                .expect("the vectors")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
                .collect();
            found.sort();
            let mut known = [$($family),*];
            known.sort_unstable();
            assert_eq!(found, known);
        }
    };
}

families! {
    rfc7252: "rfc7252";
    cocoa: "cocoa";
    fasor: "fasor";
    linux_rto: "linux-rto";
    peak_hopper: "peak-hopper";
    basic_rto: "basic-rto";
    coap_plus_rate: "coap-plus-rate";
    bbr_con: "bbr-con";
    tfrc_non: "tfrc-non";
    calm: "calm";
}

/// One case under way.
struct Player {
    controller: Checked<AnyController>,
    exchanges: BTreeMap<u64, Exchange>,
    values: usize,
    difference: Option<String>,
}

impl Player {
    fn new(case: &Value) -> Self {
        let name = word(case, "preset");
        let mut controller = Preset::from_name(name).unwrap_or_else(|| panic!("no preset {name}")).build();
        for (setting, value) in case.get("settings").and_then(Value::as_object).expect("settings") {
            controller.set(setting, setting_value(value)).unwrap_or_else(|error| panic!("{name}: {setting}: {error}"));
        }
        controller.check().unwrap_or_else(|conflict| panic!("{name} {}: {conflict}", word(case, "name")));
        let controller = Checked::new(controller);
        Self { controller, exchanges: BTreeMap::new(), values: 0, difference: None }
    }

    fn play(&mut self, call: &Value) {
        let cx = Cx {
            now: Instant::from_micros(number(call, "now")),
            chance: Chance::from_word(narrow(number(call, "chance"))),
            open: narrow(number(call, "open")),
            waiting: narrow(number(call, "waiting")),
        };
        match word(call, "call") {
            "start" => {
                let mut exchange = Exchange::new();
                let wait = self.controller.on_start(&mut exchange, narrow(number(call, "len")), cx);
                self.exchanges.insert(number(call, "exchange"), exchange);
                self.judge_wait(call, wait);
            }
            "timeout" => {
                let exchange = self.exchanges.get_mut(&number(call, "exchange")).expect("an open exchange");
                let wait = self.controller.on_timeout(exchange, cx);
                self.judge_wait(call, wait);
            }
            "reply" => {
                let exchange = self.close(call);
                self.controller.on_reply(&exchange, sample(call), cx);
                self.judge_view(call);
            }
            "end" => {
                let exchange = self.close(call);
                self.controller.on_end(&exchange, end(word(call, "why")), cx);
                self.judge_view(call);
            }
            "plain" => self.controller.on_plain_send(narrow(number(call, "len")), cx),
            "feedback" => {
                self.controller.on_feedback(feedback(call), cx);
                self.judge_view(call);
            }
            "admit" => {
                let class = if word(call, "class") == "plain" { Class::Plain } else { Class::Confirmable };
                let admit = self.controller.admit(class, narrow(number(call, "len")), cx);
                self.judge_admit(call, admit);
            }
            other => panic!("no call {other}"),
        }
        let violation = self.controller.violation();
        self.demand(violation.is_none(), || format!("the contract is broken: {violation:?}"));
    }

    fn close(&mut self, call: &Value) -> Exchange {
        self.exchanges.remove(&number(call, "exchange")).expect("an open exchange")
    }

    fn judge_wait(&mut self, call: &Value, wait: Wait) {
        self.near("wait", wait.span, (number(call, "wait_ns"), number(call, "within_ns")));
        self.same("reason", wait.reason.name(), word(call, "reason"));
        let then = if wait.then == Then::Abandon { "abandon" } else { "retransmit" };
        self.same("what follows", then, call.get("then").and_then(Value::as_str).unwrap_or("retransmit"));
    }

    fn judge_view(&mut self, call: &Value) {
        let View { rto, srtt, rttvar, weak_srtt, weak_rttvar, carried } = self.controller.view();
        let expected = call.get("view").expect("a view");
        for (name, ours) in [
            ("rto", rto),
            ("srtt", srtt),
            ("rttvar", rttvar),
            ("weak_srtt", weak_srtt),
            ("weak_rttvar", weak_rttvar),
            ("carried", carried),
        ] {
            match (ours, expected.get(name).and_then(Value::as_array).map(Vec::as_slice)) {
                (Some(ours), Some([value, bound])) => {
                    self.near(name, ours, (value.as_u64().expect("ns"), bound.as_u64().expect("ns")));
                }
                (None, None) => self.values += 1,
                (ours, expected) => self.demand(false, || format!("{name} is {ours:?}, the oracle says {expected:?}")),
            }
        }
    }

    fn judge_admit(&mut self, call: &Value, admit: Admit) {
        match (admit, word(call, "admit")) {
            (Admit::Now, "now") | (Admit::WhenOneEnds, "when-one-ends") => self.values += 1,
            (Admit::At(at), "at") => {
                let off = at.as_micros().abs_diff(number(call, "at")) * 1_000;
                let within = number(call, "within_ns");
                self.demand(off <= within, || format!("at {at:?}, {off} ns off where {within} ns are allowed"));
            }
            (ours, expected) => self.demand(false, || format!("{ours:?}, the oracle says {expected}")),
        }
    }

    /// A length of time, in microseconds, against the oracle's nanoseconds and bound.
    fn near(&mut self, what: &str, ours: Span, (expected, within): (u64, u64)) {
        let off = (u64::from(ours.as_micros()) * 1_000).abs_diff(expected);
        self.demand(off <= within, || {
            format!("{what} is {ours}, the oracle says {expected} ns: {off} ns off where {within} ns are allowed")
        });
    }

    fn same<T: PartialEq + Display>(&mut self, what: &str, ours: T, expected: T) {
        self.demand(ours == expected, || format!("{what} is {ours}, the oracle says {expected}"));
    }

    fn demand(&mut self, holds: bool, difference: impl FnOnce() -> String) {
        self.values += 1;
        if !holds && self.difference.is_none() {
            self.difference = Some(difference());
        }
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_else(|| panic!("{key}: a list is missing in {value}"))
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("{key}: a word is missing in {value}"))
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_else(|| panic!("{key}: a number is missing in {value}"))
}

fn narrow<T: TryFrom<u64>>(number: u64) -> T {
    T::try_from(number).unwrap_or_else(|_| panic!("{number} does not fit"))
}

fn span(value: &Value, key: &str) -> Span {
    Span::from_micros(narrow(number(value, key)))
}

fn setting_value(value: &Value) -> SettingValue<'_> {
    let (kind, content) = value.as_object().and_then(|object| object.iter().next()).expect("a value");
    let number = || narrow(content.as_u64().expect("a number"));
    match kind.as_str() {
        "us" => SettingValue::Time(Span::from_micros(number())),
        "thousandths" => SettingValue::Ratio(number()),
        "count" => SettingValue::Count(number()),
        "word" => SettingValue::Word(content.as_str().expect("a word")),
        other => panic!("no kind of value {other}"),
    }
}

fn sample(call: &Value) -> Sample {
    let kind = match word(call, "kind") {
        "empty-ack" => ReplyKind::EmptyAck,
        "piggybacked" => ReplyKind::Piggybacked,
        "separate" => ReplyKind::Separate,
        other => panic!("no kind of reply {other}"),
    };
    let retransmissions = narrow(number(call, "retransmissions"));
    let sample = Sample::new(kind, span(call, "since_first"), span(call, "since_last"), retransmissions);
    match call.get("named") {
        Some(Value::Number(copy)) => sample.naming(narrow(copy.as_u64().expect("a copy")), span(call, "since_named")),
        Some(Value::String(_)) => sample.naming_a_further_copy(),
        _ => sample,
    }
}

fn feedback(call: &Value) -> Feedback {
    let message = match word(call, "message") {
        "request" => PlainMessage::Request,
        "further" => PlainMessage::Further,
        "block" => PlainMessage::Block,
        other => panic!("no message {other}"),
    };
    let fate = match word(call, "fate") {
        "answered" => Fate::Answered,
        "arrived" => Fate::Arrived,
        "lost" => Fate::Lost,
        other => panic!("no fate {other}"),
    };
    Feedback {
        message,
        fate,
        since: span(call, "since"),
        len: narrow(number(call, "len")),
        reply_len: narrow(number(call, "reply_len")),
        number: narrow(number(call, "number")),
    }
}

fn end(why: &str) -> End {
    match why {
        "gave-up" => End::GaveUp,
        "reset" => End::Reset,
        "cancelled" => End::Cancelled,
        other => panic!("no end {other}"),
    }
}
