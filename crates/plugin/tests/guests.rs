//! A controller behind the functions of a plugin answers as it does by itself, and its faults are told.

use std::sync::{Arc, Mutex};

use millpond_control::{
    Admit, Chance, Checked, Class, Controller, Cx, End, Exchange, Feedback, Instant, PeerController, Preset, Reason,
    ReplyKind, Sample, Span, View, Wait, Wishes,
};
use millpond_plugin::{Guest, Plugin};

fn guest(controller: impl Controller + Clone + std::fmt::Debug + Send + Sync + 'static) -> Guest {
    taken(&Plugin::of(controller)).expect("the plugin is of this version")
}

#[expect(unsafe_code, reason = "what a module hands over is a pointer")]
fn taken(plugin: &Plugin) -> Result<Guest, String> {
    // SAFETY: the reference points to a plugin, whose code is this program's.
    unsafe { Guest::of(plugin) }.map_err(|refused| refused.to_string())
}

fn at(micros: u64, chance: u32) -> Cx {
    Cx { waiting: 3, ..Cx::new(Instant::from_micros(micros), Chance::from_word(chance)) }
}

/// Everything that a controller answers over exchanges that end in every way.
fn told(mut controller: impl Controller + Clone) -> String {
    let mut told = String::new();
    let mut now = 1_000_000;
    let mut say = |what: &dyn std::fmt::Debug| told.push_str(&format!("{what:?}\n"));
    say(&(controller.wishes(), controller.shortest_wait(), controller.base_rtt()));
    controller.recall(Span::from_millis(80));
    for round in 0..60_u32 {
        let mut exchange = Exchange::new();
        say(&controller.admit(Class::Confirmable, 40, at(now, round)));
        say(&controller.on_start(&mut exchange, 40, at(now, round.wrapping_mul(2_654_435_761))));
        for _ in 0..round % 4 {
            now += u64::from(exchange.current().as_micros());
            say(&controller.on_timeout(&mut exchange, at(now, round)));
            // From now on a clone, which knows as much.
            controller = controller.clone();
        }
        now += 300_000 + u64::from(round) * 7_000;
        let since = at(now, 0).now.since(exchange.started());
        let sample = Sample::new(ReplyKind::Piggybacked, since, Span::from_millis(200), exchange.retransmissions());
        match round % 5 {
            0 => controller.on_end(&exchange, End::GaveUp, at(now, 0)),
            1 if controller.wishes().ecn => {
                controller.on_reply(&exchange, sample.of_bytes(40, 60).marked(), at(now, 0))
            }
            1 => controller.on_reply(&exchange, sample.of_bytes(40, 60), at(now, 0)),
            2 => controller.on_reply(&exchange, sample.naming(exchange.retransmissions(), since), at(now, 0)),
            _ => controller.on_reply(&exchange, sample.naming_a_further_copy(), at(now, 0)),
        }
        controller.on_plain_send(50, at(now, 0));
        say(&(exchange, controller.view(), controller.base_rtt(), controller.longest_wait(0, Span::ZERO)));
    }
    told
}

#[test]
fn every_preset_answers_as_by_itself() {
    for preset in Preset::all() {
        let own = PeerController::from(preset.build());
        assert_eq!(told(guest(own.clone())), told(own), "{}", preset.name());
    }
}

/// Faulty in the way that it is made with.
#[derive(Clone, Debug)]
struct Faulty(&'static str);

impl Controller for Faulty {
    fn admit(&self, _class: Class, _len: u16, cx: Cx) -> Admit {
        if self.0 == "late" { Admit::At(cx.now) } else { Admit::Now }
    }

    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        assert_ne!(self.0, "panic", "it had to come");
        let span = Span::from_secs(if self.0 == "long" { 61 } else { u32::from(self.0 != "short") });
        if self.0 != "unsaid" {
            exchange.begin(cx.now, span);
        }
        Wait::then_retransmit(span, Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        exchange.advance(Span::from_secs(9));
        Wait::then_retransmit(Span::from_secs(9), Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {}

    fn on_feedback(&mut self, _feedback: Feedback, _cx: Cx) {}

    fn wishes(&self) -> Wishes {
        Wishes { nstart: 4, ..Wishes::NONE }
    }

    fn view(&self) -> View {
        View::default()
    }

    fn shortest_wait(&self) -> Span {
        Span::from_secs(u32::from(self.0 != "zero"))
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        Span::from_secs(60)
    }
}

#[test]
fn a_fault_is_told_in_one_line_and_the_contract_is_kept() {
    for (fault, line) in [
        ("none", ""),
        ("panic", "on_start panicked: assertion `left != right` failed: it had to come"),
        ("short", "on_start answered a wait of 0 µs, less than its shortest_wait, 1000000 µs"),
        ("long", "on_start answered a wait of 61000000 µs, more than its longest_wait for copy 0, 60000000 µs"),
        (
            "unsaid",
            "on_start answered a wait of 1000000 µs, of which it did not tell the exchange: call begin, then advance",
        ),
        ("late", "admit answered a point in time that does not lie after now"),
    ] {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let guest = guest(Faulty(fault)).telling(Arc::new(move |line| kept.lock().unwrap().push(line)));
        assert_eq!(guest.wishes().nstart, 4);
        let mut watched = Checked::new(guest);
        let mut exchange = Exchange::new();
        watched.admit(Class::Confirmable, 40, at(5, 0));
        watched.on_start(&mut exchange, 40, at(5, 0));
        watched.on_timeout(&mut exchange, at(3_000_000, 0));
        watched.on_end(&exchange, End::GaveUp, at(4_000_000, 0));
        assert_eq!(watched.violation(), None, "{fault}");
        assert_eq!(lines.lock().unwrap().join("\n"), line);
    }
}

#[test]
fn a_plugin_of_another_version_or_without_bounds_is_refused() {
    let told = taken(&Plugin::of(Faulty("zero"))).expect_err("its shortest wait is zero");
    assert_eq!(told, "shortest_wait is 0: a wait is never zero");
    // All that versions have in common is their first word.
    let other = [u32::MAX; 16];
    #[expect(unsafe_code, reason = "what a module hands over is a pointer")]
    // SAFETY: a plugin of another version is not looked at beyond its first word.
    let told = unsafe { Guest::of(other.as_ptr().cast()) }.expect_err("it is of another version").to_string();
    let (theirs, ours) = (u32::MAX, millpond_plugin::VERSION);
    assert!(
        told.starts_with(&format!(
            "built for version {theirs} of controllers in modules, and this laboratory has version {ours}: "
        )),
        "{told}"
    );
}
