//! Any controller, with any legal settings, under any lawful list of calls.
//!
//! A list is a pure function of bytes, so that a fuzzer can look for one. Every call goes through [`Checked`], which
//! judges bounds and the order of calls; what holds beyond the contract is asserted here.

use millpond_control::{
    Admit, AnyController, Chance, Checked, Class, Controller, Cx, End, Evidence, Exchange, Fate, Feedback, Instant,
    Naming, PlainMessage, Preset, Reason, ReplyKind, Sample, Setting, SettingKind, SettingValue, Span, View, Wait,
};

const OPEN_AT_MOST: usize = 5;

/// What a call was answered, and what the controller knew afterwards.
pub(crate) type Answer = (Option<Wait>, View);

/// Plays a list: two bytes name a preset, the next ones change settings, the rest are calls.
pub(crate) fn check(bytes: &[u8]) -> Vec<Answer> {
    let mut source = Source { bytes };
    let number = u16::from(source.some()) | u16::from(source.some()) << 8;
    let any = || Preset::all().nth(usize::from(number) % Preset::all().count().max(1));
    let Some(preset) = Preset::from_id(number).or_else(any) else {
        return Vec::new();
    };
    let controller = set(preset.build(), &mut source);
    let mut play = Play::new(controller);
    while let Some(operation) = source.byte() {
        play.step(operation, &mut source);
    }
    play.close(&mut source);
    play.answers
}

/// Where the choices come from. At its end it gives zeros.
struct Source<'b> {
    bytes: &'b [u8],
}

impl Source<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn some(&mut self) -> u8 {
        self.byte().unwrap_or(0)
    }

    fn one_of(&mut self, count: usize) -> usize {
        usize::from(self.some()) % count
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.some(), self.some(), self.some(), self.some()])
    }
}

/// Up to seven settings, each to some legal value. What was put is what is got.
fn set(mut controller: AnyController, source: &mut Source<'_>) -> AnyController {
    for _ in 0..source.one_of(8) {
        let legal = controller.settings();
        let setting = legal[source.one_of(legal.len())];
        let value = legal_value(setting, source);
        assert_eq!(controller.put(setting, value), Ok(()), "{setting} {value:?}");
        let expected = if value == SettingValue::Time(Span::MAX) { controller.get(setting) } else { Some(value) };
        assert_eq!(controller.get(setting), expected, "{setting}");
    }
    controller
}

fn legal_value(setting: Setting, source: &mut Source<'_>) -> SettingValue<'static> {
    match setting.kind() {
        SettingKind::Time { none: true, .. } if source.some() < 32 => SettingValue::Word("none"),
        SettingKind::Time { low, high, .. } => {
            // Short ones as likely as long ones.
            let word = source.word() >> source.one_of(32);
            SettingValue::Time(Span::from_micros(word).clamp(low, high))
        }
        SettingKind::Ratio { low, high } => {
            SettingValue::Ratio(Chance::from_word(source.word()).pick(low.into(), high.into()))
        }
        SettingKind::Count { high } => SettingValue::Count(u32::from(source.some()).min(high.into())),
        SettingKind::Word(words) => SettingValue::Word(words[source.one_of(words.len())]),
        kind => panic!("{setting} takes {kind}, which this test cannot choose"),
    }
}

/// An exchange as an endpoint would keep it.
struct Open {
    exchange: Exchange,
    copies: Vec<Instant>,
    wait: Wait,
}

/// A list under way.
struct Play {
    now: Instant,
    controller: Checked<AnyController>,
    open: Vec<Open>,
    /// No message without acknowledgement may leave before this point.
    promised: Option<Instant>,
    /// Messages without acknowledgement that left.
    plain: u32,
    /// What the controller knew at first.
    nothing: View,
    answers: Vec<Answer>,
}

impl Play {
    fn new(controller: AnyController) -> Self {
        Self {
            now: Instant::ORIGIN,
            nothing: controller.view(),
            controller: Checked::new(controller),
            open: Vec::new(),
            promised: None,
            plain: 0,
            answers: Vec::new(),
        }
    }

    fn step(&mut self, operation: u8, source: &mut Source<'_>) {
        match operation % 8 {
            2 if self.open.len() < OPEN_AT_MOST => self.start(source),
            3 | 4 if !self.open.is_empty() => self.expire(source),
            5 if !self.open.is_empty() => self.answer(source),
            6 if !self.open.is_empty() => self.end(source),
            7 => self.plain(source),
            1 if operation >= 128 => self.feedback(source),
            0 if operation >= 192 => self.recall(source),
            _ => self.advance(source),
        }
        assert_eq!(self.controller.violation(), None, "{:?}", self.controller.inner());
    }

    fn cx(&self, source: &mut Source<'_>) -> Cx {
        let open = u16::try_from(self.open.len()).unwrap_or(u16::MAX);
        Cx { open, waiting: 0, ..Cx::new(self.now, Chance::from_word(source.word())) }
    }

    /// A base round trip of an earlier life, true or not. It is no measurement.
    fn recall(&mut self, source: &mut Source<'_>) {
        let before = (self.controller.base_rtt(), self.controller.view());
        let base_rtt = Span::from_micros(source.word() >> source.one_of(32));
        self.controller.recall(base_rtt);
        assert_eq!((self.controller.base_rtt(), self.controller.view()), before, "{:?}", self.controller.inner());
    }

    /// Nothing, a moment, a round trip, a wait, or a silence of hours.
    fn advance(&mut self, source: &mut Source<'_>) {
        let longest = [0, 10, 1_000_000, 100_000_000, u32::MAX][source.one_of(5)];
        let silence = Chance::from_word(source.word()).between(Span::ZERO, Span::from_micros(longest));
        self.now = self.now.after(silence);
    }

    fn start(&mut self, source: &mut Source<'_>) {
        let mut exchange = Exchange::new();
        let cx = Cx { open: u16::try_from(self.open.len() + 1).unwrap_or(u16::MAX), ..self.cx(source) };
        let wait = self.controller.on_start(&mut exchange, 40, cx);
        self.answers.push((Some(wait), self.controller.view()));
        self.open.push(Open { exchange, copies: vec![self.now], wait });
    }

    fn expire(&mut self, source: &mut Source<'_>) {
        let (chosen, cx) = (source.one_of(self.open.len()), self.cx(source));
        let open = &mut self.open[chosen];
        let wait = self.controller.on_timeout(&mut open.exchange, cx);
        // Only FASOR goes back, from its slow timeout to the series of the fast one.
        let grew = wait.span >= open.wait.span || open.wait.reason == Reason::Slow;
        assert!(grew, "a timer shrank from {} to {}", open.wait.span, wait.span);
        open.wait = wait;
        open.copies.push(self.now);
        self.answers.push((Some(wait), self.controller.view()));
    }

    fn answer(&mut self, source: &mut Source<'_>) {
        let (chosen, cx) = (source.one_of(self.open.len()), self.cx(source));
        let open = self.open.swap_remove(chosen);
        let sample = self.sample(&open, source);
        let before = self.controller.view();
        self.controller.on_reply(&open.exchange, sample, cx);
        let after = self.controller.view();

        // All may be forgotten, for the path may be gone.
        let is_forgotten = after == self.nothing;
        if sample.retransmissions() > 0 && !self.believes(sample) && !is_forgotten {
            let moved = (before.srtt, before.rttvar) != (after.srtt, after.rttvar);
            assert!(!moved, "an ambiguous sample moved an exact estimator: {sample:?}");
            // Some mix the timeout from guesses as well, and say so by a setting.
            let guesses = self.controller.inner().setting("weak-retransmissions").is_some();
            assert!(guesses || before.rto == after.rto, "an ambiguous sample moved the timeout: {sample:?}");
        }
        if sample.evidence() == Evidence::None && !is_forgotten {
            assert_eq!(View { carried: after.carried, ..before }, after, "a sample was made of nothing");
        }
        self.answers.push((None, after));
    }

    /// Whether the controller may take the word of this reply.
    fn believes(&self, sample: Sample) -> bool {
        let controller = self.controller.inner();
        let asks = matches!(controller.wishes().naming, Naming::Token | Naming::Count | Naming::Timestamp);
        let exact_only = controller.get(Setting::Echo) == Some(SettingValue::Word("exact-only"));
        asks && if exact_only { sample.exact().is_some() } else { sample.named_rtt().is_some() }
    }

    fn sample(&self, open: &Open, source: &mut Source<'_>) -> Sample {
        let first = self.now.since(open.copies[0]);
        let last = self.now.since(open.copies[open.copies.len() - 1]);
        let kind = [ReplyKind::Piggybacked, ReplyKind::EmptyAck, ReplyKind::Separate][source.one_of(3)];
        let sample = Sample::new(kind, first, last, open.exchange.retransmissions());
        let named = source.one_of(open.copies.len() + 2);
        match open.copies.get(named) {
            Some(copy) => sample.naming(u8::try_from(named).unwrap_or(u8::MAX), self.now.since(*copy)),
            None if named == open.copies.len() => sample.naming_a_further_copy(),
            None => sample,
        }
    }

    fn end(&mut self, source: &mut Source<'_>) {
        let (chosen, cx) = (source.one_of(self.open.len()), self.cx(source));
        let why = [End::GaveUp, End::Reset, End::Cancelled][source.one_of(3)];
        let open = self.open.swap_remove(chosen);
        let before = self.controller.view();
        self.controller.on_end(&open.exchange, why, cx);
        let after = self.controller.view();
        let kept = View { carried: after.carried, ..before };
        assert!(
            after == kept || after == self.nothing,
            "an end without an answer taught something: {kept:?}, {after:?}"
        );
        self.answers.push((None, after));
    }

    fn plain(&mut self, source: &mut Source<'_>) {
        let cx = self.cx(source);
        match self.controller.admit(Class::Plain, 40, cx) {
            Admit::Now => {
                assert!(self.promised.is_none_or(|point| self.now >= point), "opened before the promised point");
                self.controller.on_plain_send(40, cx);
                self.plain = self.plain.wrapping_add(1);
                self.promised = None;
            }
            Admit::At(point) => self.promised = Some(point),
            Admit::WhenOneEnds => assert!(!self.open.is_empty(), "waits for an end that cannot come"),
        }
    }

    /// Whatever somebody may say of messages without acknowledgement: as a rule of one of the last, and at times of one that
    /// never left, left before the beginning, or is reported twice.
    fn feedback(&mut self, source: &mut Source<'_>) {
        let cx = Cx { waiting: u16::from(source.some() & 1), ..self.cx(source) };
        let chosen = u32::from(source.some());
        let number = if chosen == 0 { source.word() } else { self.plain.wrapping_sub(chosen >> 4) };
        let feedback = Feedback {
            message: [PlainMessage::Request, PlainMessage::Further, PlainMessage::Block][source.one_of(8) % 3],
            fate: [Fate::Answered, Fate::Arrived, Fate::Lost][source.one_of(8) % 3],
            since: Span::from_micros(source.word() >> source.one_of(32)),
            len: 40,
            reply_len: 4,
            number,
        };
        self.controller.on_feedback(feedback, cx);
        // A rate may have grown.
        self.promised = None;
        self.answers.push((None, self.controller.view()));
    }

    /// Ends what is open, so that the watch can balance its books.
    fn close(&mut self, source: &mut Source<'_>) {
        while !self.open.is_empty() {
            self.end(source);
        }
        assert_eq!(self.controller.violation(), None);
    }
}
