//! Any controller under any lawful list of calls.
//!
//! A list is a pure function of its seed. Every call goes through [`Checked`], which judges bounds and the order of
//! calls; what holds beyond the contract is asserted here.

#![cfg(any(feature = "rfc7252", feature = "cocoa"))]
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "a test may stop at the first surprise")]

use millpond_control::{
    Admit, AnyController, Chance, ChanceSeed, Checked, Class, Controller, Cx, End, Evidence, Exchange, Instant, Preset,
    Purpose, ReplyKind, Sample, SettingValue, Span, View, Wait,
};

const OPEN_AT_MOST: usize = 5;
const CALLS: u32 = 600;
const LISTS: u64 = 40;

/// An exchange as an endpoint would keep it.
struct Open {
    exchange: Exchange,
    copies: Vec<Instant>,
    wait: Wait,
}

/// A list of calls, played.
struct Play {
    seed: ChanceSeed,
    drawn: u32,
    now: Instant,
    controller: Checked<AnyController>,
    open: Vec<Open>,
    /// No message without acknowledgement may leave before this point.
    promised: Option<Instant>,
    answers: Vec<(Option<Wait>, View)>,
}

impl Play {
    fn new(controller: AnyController, seed: u64) -> Self {
        Self {
            seed: ChanceSeed::new(seed),
            drawn: 0,
            now: Instant::ORIGIN,
            controller: Checked::new(controller),
            open: Vec::new(),
            promised: None,
            answers: Vec::new(),
        }
    }

    fn chance(&mut self) -> Chance {
        self.drawn += 1;
        self.seed.at(Purpose::Workload, [self.drawn, 0, 0, 0])
    }

    fn one_of(&mut self, count: usize) -> usize {
        let last = u32::try_from(count - 1).unwrap_or(u32::MAX);
        self.chance().pick(0, last) as usize
    }

    fn cx(&mut self) -> Cx {
        let open = u16::try_from(self.open.len()).unwrap_or(u16::MAX);
        Cx { open, ..Cx::new(self.now, self.chance()) }
    }

    /// Nothing, a moment, a round trip, a wait, or a silence of hours.
    fn advance(&mut self) {
        let longest = [0, 10, 1_000_000, 100_000_000, u32::MAX][self.one_of(5)];
        let silence = self.chance().between(Span::ZERO, Span::from_micros(longest));
        self.now = self.now.after(silence);
    }

    fn start(&mut self) {
        let mut exchange = Exchange::new();
        let cx = Cx { open: u16::try_from(self.open.len() + 1).unwrap_or(u16::MAX), ..self.cx() };
        let wait = self.controller.on_start(&mut exchange, 40, cx);
        self.answers.push((Some(wait), self.controller.view()));
        self.open.push(Open { exchange, copies: vec![self.now], wait });
    }

    fn expire(&mut self) {
        let (chosen, cx) = (self.one_of(self.open.len()), self.cx());
        let open = &mut self.open[chosen];
        let wait = self.controller.on_timeout(&mut open.exchange, cx);
        assert!(wait.span >= open.wait.span, "a timer shrank from {} to {}", open.wait.span, wait.span);
        open.wait = wait;
        open.copies.push(self.now);
        self.answers.push((Some(wait), self.controller.view()));
    }

    fn answer(&mut self) {
        let (chosen, cx) = (self.one_of(self.open.len()), self.cx());
        let open = self.open.swap_remove(chosen);
        let sample = self.sample(&open);
        let before = self.controller.view();
        self.controller.on_reply(&open.exchange, sample, cx);
        let after = self.controller.view();

        if sample.retransmissions() > 0 {
            assert_eq!((before.srtt, before.rttvar), (after.srtt, after.rttvar), "a retransmission was sampled");
        }
        if sample.evidence() == Evidence::None {
            assert_eq!(
                (before.rto, before.srtt, before.weak_srtt),
                (after.rto, after.srtt, after.weak_srtt),
                "a sample was made of nothing"
            );
        }
        self.answers.push((None, after));
    }

    fn sample(&mut self, open: &Open) -> Sample {
        let first = self.now.since(open.copies[0]);
        let last = self.now.since(open.copies[open.copies.len() - 1]);
        let kind = [ReplyKind::Piggybacked, ReplyKind::EmptyAck, ReplyKind::Separate][self.one_of(3)];
        let sample = Sample::new(kind, first, last, open.exchange.retransmissions());
        let named = self.one_of(open.copies.len() * 2);
        match open.copies.get(named) {
            Some(copy) => sample.naming(u8::try_from(named).unwrap_or(u8::MAX), self.now.since(*copy)),
            None => sample,
        }
    }

    fn end(&mut self) {
        let (chosen, cx) = (self.one_of(self.open.len()), self.cx());
        let why = [End::GaveUp, End::Reset, End::Cancelled][self.one_of(3)];
        let open = self.open.swap_remove(chosen);
        let before = self.controller.view();
        self.controller.on_end(&open.exchange, why, cx);
        let after = self.controller.view();
        assert_eq!(View { carried: after.carried, ..before }, after, "an end without an answer taught something");
        self.answers.push((None, after));
    }

    fn plain(&mut self) {
        let cx = self.cx();
        match self.controller.admit(Class::Plain, 40, cx) {
            Admit::Now => {
                assert!(self.promised.is_none_or(|point| self.now >= point), "opened before the promised point");
                self.controller.on_plain_send(40, cx);
                self.promised = None;
            }
            Admit::At(point) => self.promised = Some(point),
            Admit::WhenOneEnds => assert!(!self.open.is_empty(), "waits for an end that cannot come"),
        }
    }

    fn step(&mut self) {
        let kind = self.one_of(8);
        match kind {
            0 | 1 => self.advance(),
            2 if self.open.len() < OPEN_AT_MOST => self.start(),
            3 | 4 if !self.open.is_empty() => self.expire(),
            5 if !self.open.is_empty() => self.answer(),
            6 if !self.open.is_empty() => self.end(),
            7 => self.plain(),
            _ => self.advance(),
        }
        let view = self.controller.view();
        assert_eq!(self.controller.violation(), None, "after {} draws: {view:?}", self.drawn);
    }

    /// Ends what is open, so that the watch can balance its books.
    fn close(&mut self) {
        while !self.open.is_empty() {
            self.end();
        }
        assert_eq!(self.controller.violation(), None);
    }
}

/// Every preset, as published and with other parts.
fn controllers() -> Vec<AnyController> {
    let mut controllers = Vec::new();
    for preset in Preset::ALL {
        let variants: [&[(&str, SettingValue<'_>)]; 5] = [
            &[],
            &[("max-wait", SettingValue::Word("none"))],
            &[
                ("max-wait", SettingValue::Time(Span::from_millis(1))),
                ("ack-timeout", SettingValue::Time(Span::from_secs(600))),
            ],
            &[
                ("max-estimate", SettingValue::Word("none")),
                ("gains", SettingValue::Word("swapped")),
                ("vbf", SettingValue::Word("per-exchange")),
            ],
            &[
                ("weak-retransmissions", SettingValue::Count(255)),
                ("blind", SettingValue::Word("doubling")),
                ("ageing", SettingValue::Word("cocoa+")),
                ("vbf", SettingValue::Word("by-estimate")),
            ],
        ];
        for settings in variants {
            let mut controller = preset.build();
            if settings.iter().all(|(name, value)| controller.set(name, *value).is_ok()) {
                controllers.push(controller);
            }
        }
    }
    controllers
}

#[test]
fn any_list_of_calls_keeps_the_contract() {
    let controllers = controllers();
    assert!(controllers.len() >= Preset::ALL.len() * 3, "the variants must not fall away unseen");
    for controller in controllers {
        for seed in 0..LISTS {
            let mut play = Play::new(controller, seed);
            for _ in 0..CALLS {
                play.step();
            }
            play.close();
            assert!(play.answers.len() > 50, "the list must not be empty talk");
        }
    }
}

#[test]
fn the_same_calls_give_the_same_answers() {
    for controller in controllers() {
        let play = |seed| {
            let mut play = Play::new(controller, seed);
            for _ in 0..CALLS {
                play.step();
            }
            (play.answers, play.controller)
        };
        assert!(play(3) == play(3));
        assert!(play(3).0 != play(4).0);
    }
}

/// What is answered at once leaves no backoff behind, whatever came before: two clean exchanges in a row start alike.
#[test]
fn nothing_is_carried_without_a_rule_and_full_backoff_ends() {
    for preset in Preset::ALL {
        let mut play = Play::new(preset.build(), 11);
        let mut carried_once = false;
        for _ in 0..CALLS {
            play.step();
            carried_once |= play.controller.view().carried.is_some();
        }
        assert_eq!(carried_once, preset.name().contains("-fb"), "{}", preset.name());
        play.close();
        // From the longest wait there is, halving takes at most 32 clean answers.
        for _ in 0..32 {
            play.start();
            let open = play.open.remove(0);
            let cx = Cx { open: 1, ..play.cx() };
            play.now = play.now.after(Span::from_millis(100));
            let rtt = Span::from_millis(100);
            let sample = Sample::new(ReplyKind::EmptyAck, rtt, rtt, 0);
            play.controller.on_reply(&open.exchange, sample, Cx { now: play.now, ..cx });
        }
        assert_eq!(play.controller.view().carried, None, "{}", preset.name());
        assert_eq!(play.controller.violation(), None);
    }
}

/// With one round-trip time, always, an estimator ends at it: SRTT = R, RTTVAR = 0 and a timeout of R, up to
/// rounding. A controller without an estimator stays where it was.
#[test]
fn a_constant_round_trip_time_converges() {
    const ROUNDING: u32 = 4 + 4 * 6 + 2;
    for rtt in [Span::from_micros(1), Span::from_micros(777), Span::from_millis(500), Span::from_millis(1_999)] {
        for preset in Preset::ALL {
            let mut play = Play::new(preset.build(), 5);
            for _ in 0..400 {
                play.start();
                let open = play.open.remove(0);
                assert!(open.wait.span > rtt, "{}: {} cut an exchange of {rtt} short", preset.name(), open.wait.span);
                play.now = play.now.after(rtt);
                let cx = Cx { open: 1, ..play.cx() };
                play.controller.on_reply(&open.exchange, Sample::new(ReplyKind::EmptyAck, rtt, rtt, 0), cx);
            }
            assert_eq!(play.controller.violation(), None);
            let view = play.controller.view();
            if let (Some(srtt), Some(rttvar), Some(rto)) = (view.srtt, view.rttvar, view.rto) {
                assert!(srtt.distance(rtt) <= Span::from_micros(4), "{}: SRTT {srtt} for {rtt}", preset.name());
                assert!(rttvar <= Span::from_micros(6), "{}: RTTVAR {rttvar} for {rtt}", preset.name());
                assert!(rto.distance(rtt) <= Span::from_micros(ROUNDING), "{}: RTO {rto} for {rtt}", preset.name());
            } else {
                assert_eq!(view, preset.build().view());
            }
        }
    }
}
