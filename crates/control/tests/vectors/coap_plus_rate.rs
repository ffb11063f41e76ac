//! Rate control of CoAP+ on a path of constant round-trip time, against closed forms.

#![allow(clippy::float_arithmetic, reason = "closed forms are ratios")]

use millpond_control::{
    Admit, Chance, Checked, Class, CoapPlusRate, Controller, Cx, End, Exchange, Instant, ReplyKind, Sample, Span, Then,
    Wait,
    coap_plus_rate::{EndsBackoff, FirstRtt, Increase, Leftover, LossSignal, Parts, Phase, StartCount, Window},
    rate::Rate,
};

const RTT: Span = Span::from_millis(240);
const MOST_RETRANSMISSIONS: u8 = 4;

/// A message under way.
struct Open {
    number: u32,
    exchange: Exchange,
    first: Instant,
    last: Instant,
    wait: Wait,
    answer: Option<Instant>,
}

/// A sender with an endless backlog on a path without a queue.
struct Bench {
    controller: Checked<CoapPlusRate>,
    now: Instant,
    open: Vec<Open>,
    sent: u32,
    departures: Vec<Instant>,
    copies: Vec<(u32, Instant)>,
    given_up: Vec<(u32, Instant)>,
    /// Whether copy so and so of a message is lost, sent then.
    loses: fn(u32, u8, Instant) -> bool,
}

impl Bench {
    fn new(parts: Parts, loses: fn(u32, u8, Instant) -> bool) -> Self {
        Self {
            controller: Checked::new(CoapPlusRate::new(parts)),
            now: Instant::ORIGIN,
            open: Vec::new(),
            sent: 0,
            departures: Vec::new(),
            copies: Vec::new(),
            given_up: Vec::new(),
            loses,
        }
    }

    fn cx(&self, further: u16) -> Cx {
        let open = u16::try_from(self.open.len()).expect("not so many") + further;
        Cx { now: self.now, chance: Chance::MIDDLE, open, waiting: 1 }
    }

    fn rate(&self) -> f64 {
        self.controller.inner().rate(self.now).map_or(0.0, |rate| f64::from(rate.as_millionths()) / 1e6)
    }

    fn phase(&self) -> Phase {
        self.controller.inner().phase()
    }

    /// Goes on until this point.
    fn until(&mut self, end: Instant) {
        loop {
            let admitted = self.controller.admit(Class::Confirmable, 40, self.cx(1));
            let mut next = match admitted {
                Admit::Now => self.now,
                Admit::At(at) => at,
                Admit::WhenOneEnds => Instant::NEVER,
            };
            let due = |open: &Open| open.answer.unwrap_or(Instant::NEVER).min(open.last.after(open.wait.span));
            let event =
                self.open.iter().enumerate().min_by_key(|(_, open)| due(open)).map(|(at, open)| (at, due(open)));
            let is_event = event.is_some_and(|(_, at)| at <= next);
            if let Some((_, at)) = event.filter(|_| is_event) {
                next = at;
            }
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            match event {
                Some((at, _)) if is_event => self.go_on(at),
                // Asked again at the time that was named.
                _ if admitted != Admit::Now => {}
                _ => self.send(),
            }
            assert_eq!(self.controller.violation(), None);
        }
    }

    fn send(&mut self) {
        let (cx, number, mut exchange) = (self.cx(1), self.sent, Exchange::new());
        let wait = self.controller.on_start(&mut exchange, 40, cx);
        self.sent += 1;
        self.departures.push(self.now);
        let answer = (!(self.loses)(number, 0, self.now)).then(|| self.now.after(RTT));
        self.open.push(Open { number, exchange, first: self.now, last: self.now, wait, answer });
    }

    fn go_on(&mut self, at: usize) {
        let (cx, now) = (self.cx(0), self.now);
        let open = &mut self.open[at];
        if open.answer.is_some_and(|answer| answer <= now) {
            let open = self.open.remove(at);
            let (first, last) = (now.since(open.first), now.since(open.last));
            let sample = Sample::new(ReplyKind::Piggybacked, first, last, open.exchange.retransmissions());
            self.controller.on_reply(&open.exchange, sample, cx);
        } else if open.wait.then == Then::Abandon || open.exchange.retransmissions() == MOST_RETRANSMISSIONS {
            let open = self.open.remove(at);
            self.given_up.push((open.number, now));
            self.controller.on_end(&open.exchange, End::GaveUp, cx);
        } else {
            open.wait = self.controller.on_timeout(&mut open.exchange, cx);
            open.last = now;
            self.copies.push((open.number, now));
            if !(self.loses)(open.number, open.exchange.retransmissions(), now) {
                open.answer = open.answer.or(Some(now.after(RTT)));
            }
        }
    }
}

fn never(_: u32, _: u8, _: Instant) -> bool {
    false
}

fn at(seconds: f64) -> Instant {
    Instant::from_micros((seconds * 1e6).round() as u64)
}

#[track_caller]
fn assert_close(ours: f64, exact: f64, what: &str) {
    assert!((ours - exact).abs() <= exact * 0.01, "{what}: {ours}, not {exact}");
}

#[test]
fn one_message_goes_ahead_and_four_leave_in_its_round_trip_time() {
    let mut bench = Bench::new(Parts::PRINTED, never);
    bench.until(at(0.239));
    assert_eq!((bench.sent, bench.phase()), (1, Phase::Probe), "nothing else before the first answer");
    bench.until(at(0.72));
    let gaps: Vec<_> = bench.departures.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert_eq!(gaps[0], RTT, "the start-up begins with the first answer");
    assert!(gaps[1..8].iter().all(|gap| *gap == RTT.scaled(1, 4)), "{gaps:?}");
}

#[test]
fn the_rate_after_the_start_up_is_its_answers_over_two_round_trip_times() {
    for (start_count, rtts) in [(StartCount::TwoRtts, 2.0), (StartCount::OneRtt, 1.0)] {
        let mut bench = Bench::new(Parts { start_count, ..Parts::PRINTED }, never);
        bench.until(at(0.72));
        // From 0.24 s to 0.72 s; answered within are those that left before 0.48 s: four of eight.
        assert_close(bench.rate(), 4.0 / (rtts * 0.24), "first rate");
    }
}

#[test]
fn without_a_loss_the_rate_grows_by_one_message_per_round_trip_time_in_each() {
    let mut bench = Bench::new(Parts::PRINTED, never);
    bench.until(at(0.72));
    let first = bench.rate();
    for rtts in 1..=100 {
        bench.until(at(0.72 + 0.24 * f64::from(rtts)));
        assert_close(bench.rate(), first + f64::from(rtts) / 0.24, "rate");
    }
    // Messages sent are the integral of the rate.
    let before = bench.sent;
    bench.until(at(0.72 + 0.24 * 101.0));
    assert_close(f64::from(bench.sent - before), 0.24 * (first + 100.0 / 0.24), "messages in a round-trip time");
}

#[test]
fn an_increase_with_every_answer_doubles_what_is_under_way() {
    let mut bench = Bench::new(Parts { increase: Increase::PerAck, ..Parts::PRINTED }, never);
    bench.until(at(0.72));
    let first = bench.rate();
    bench.until(at(0.72 + 5.0 * 0.24));
    let grown = bench.rate() / first;
    assert!(grown > 20.0, "five round-trip times of doubling, not of adding one: {grown} times");
}

#[test]
fn an_application_that_has_nothing_to_send_earns_no_rate() {
    let mut bench = Bench::new(Parts::PRINTED, never);
    bench.until(at(1.0));
    let before = bench.controller.inner().rate(bench.now);
    let later = bench.now.after(Span::from_secs(60));
    let after = bench.controller.inner().rate(later);
    let one_more = before.map(|rate| rate.plus(Rate::per(1, RTT)));
    assert!(after == one_more || after == before, "only the running round-trip time counts: {before:?}, {after:?}");
}

fn loses_one(number: u32, copy: u8, _: Instant) -> bool {
    number == 20 && copy == 0
}

fn loses_one_for_good(number: u32, _: u8, _: Instant) -> bool {
    number == 20
}

#[test]
fn a_first_timeout_halves_once_two_to_three_seconds_after_the_message() {
    let mut bench = Bench::new(Parts::RESPONSIVE, loses_one);
    bench.until(at(2.0));
    let lost = bench.departures[20];
    let timeout = lost.after(Span::from_millis(2_500));
    bench.until(Instant::from_micros(timeout.as_micros() - 1));
    let before = bench.rate();
    bench.until(timeout);
    assert_eq!((bench.phase(), &bench.copies[..]), (Phase::Backoff, &[(20, timeout)][..]));
    // The same round-trip time may have ended at this very point.
    assert!((bench.rate() - before / 2.0).abs() <= 0.5 / 0.24 + 1e-5, "{} after {before}", bench.rate());
    // Others are under way, so that the next answer ends it.
    bench.until(timeout.after(Span::from_millis(50)));
    assert_eq!(bench.phase(), Phase::Steady);
}

#[test]
fn a_message_given_up_halves_once_a_minute_or_more_after_it_left() {
    let mut bench = Bench::new(Parts::PRINTED, loses_one_for_good);
    bench.until(at(2.0));
    let lost = bench.departures[20];
    // 2.5 s · 31, of which nothing is seen before.
    let end = lost.after(Span::from_millis(77_500));
    bench.until(Instant::from_micros(end.as_micros() - 1));
    assert_eq!((bench.phase(), bench.given_up.len()), (Phase::Steady, 0));
    let before = bench.rate();
    bench.until(end);
    assert_eq!((bench.phase(), &bench.given_up[..]), (Phase::Backoff, &[(20, end)][..]));
    assert!((bench.rate() - before / 2.0).abs() <= 0.5 / 0.24 + 1e-5, "{} after {before}", bench.rate());
}

fn loses_a_burst(number: u32, copy: u8, _: Instant) -> bool {
    (30..50).contains(&number) && copy == 0
}

/// Twenty losses in a row, whose timeouts are a few milliseconds apart: one halving in each round-trip time at most.
#[test]
fn losses_count_once_in_a_round_trip_time() {
    let mut bench = Bench::new(Parts::RESPONSIVE, loses_a_burst);
    bench.until(at(2.0));
    let (mut before, mut lowered) = (bench.rate(), Vec::new());
    while bench.now < at(10.0) {
        bench.until(bench.now.after(Span::from_millis(1)));
        let rate = bench.rate();
        if rate < before * 0.9 {
            assert!(rate > before * 0.49, "no more than a half at once: {before} to {rate}");
            lowered.push(bench.now);
        }
        before = rate;
    }
    assert!(!lowered.is_empty(), "twenty losses go unnoticed");
    let spread = bench.departures[49].since(bench.departures[30]);
    let most = 2 + spread.as_micros() / RTT.as_micros();
    assert!(lowered.len() <= most as usize, "{} halvings for losses within {spread}", lowered.len());
    for pair in lowered.windows(2) {
        assert!(pair[1].since(pair[0]) >= RTT.minus(Span::from_millis(1)), "{lowered:?}");
    }
}

fn falls_silent(_: u32, _: u8, now: Instant) -> bool {
    now >= Instant::from_micros(3_000_000)
}

#[test]
fn in_silence_the_rate_is_halved_every_round_trip_time_and_forgotten_in_the_end() {
    let mut bench = Bench::new(Parts::RESPONSIVE, falls_silent);
    bench.until(at(3.0));
    while bench.phase() != Phase::Backoff {
        bench.until(bench.now.after(Span::from_millis(1)));
    }
    let (begun, sent) = (bench.now, bench.sent);
    let first = bench.rate();
    for rtts in 1_u32..=20 {
        bench.until(begun.after(RTT.times(rtts)));
        let exact = (first / f64::from(1 << rtts)).max(1.0 / 64.0);
        assert_close(bench.rate(), exact, "rate in silence");
    }
    // The last one left just before, and takes 77.5 s to fail.
    bench.until(begun.after(Span::from_secs(77)));
    assert_eq!(bench.sent, sent, "nothing leaves for the first time");
    while bench.phase() == Phase::Backoff {
        bench.until(bench.now.after(Span::from_millis(10)));
        assert!(bench.now.since(begun) <= Span::from_secs(93), "the longest that a message can take");
    }
    assert!(bench.open.is_empty());
    assert!(bench.given_up.len() > 1, "what was under way has failed");
    // A pause as long as a first wait, and one message at a time again.
    let over = bench.now;
    bench.until(over.after(Span::from_millis(2_400)));
    assert_eq!(bench.sent, sent);
    bench.until(over.after(Span::from_millis(2_600)));
    assert_eq!(bench.sent, sent + 1, "the path is probed anew");
    assert_eq!(bench.rate(), 0.0, "no rate is known");
}

fn loses_the_start(number: u32, _: u8, _: Instant) -> bool {
    (1..9).contains(&number)
}

#[test]
fn the_start_up_retransmits_nothing_and_begins_anew_when_nothing_is_answered() {
    let mut bench = Bench::new(Parts::PRINTED, loses_the_start);
    bench.until(at(0.72));
    assert!(bench.copies.is_empty(), "no copies in the start-up");
    let sent = bench.sent;
    bench.until(at(2.7));
    assert_eq!(bench.sent, sent, "nothing was answered: nothing more leaves");
    bench.until(at(3.2));
    assert_eq!(bench.phase(), Phase::Restart);
}

fn loses_the_third(number: u32, copy: u8, _: Instant) -> bool {
    number == 3 && copy == 0
}

#[test]
fn what_the_start_up_leaves_over_is_retransmitted_or_lost_and_is_no_loss_mark() {
    for (leftover, copies, given_up) in [(Leftover::Retransmitted, 1, 0), (Leftover::Dropped, 0, 1)] {
        let mut bench = Bench::new(Parts { leftover, ..Parts::RESPONSIVE }, loses_the_third);
        bench.until(at(0.72));
        let first = bench.rate();
        assert_close(first, 3.0 / 0.48, "three of four were answered");
        bench.until(at(6.0));
        assert_eq!((bench.copies.len(), bench.given_up.len()), (copies, given_up), "{leftover:?}");
        assert!(bench.rate() > first + 20.0, "no loss was marked: {}", bench.rate());
    }
}

#[test]
fn without_a_probe_the_start_up_takes_two_default_timeouts() {
    let mut bench = Bench::new(Parts { first_rtt: FirstRtt::Default, ..Parts::PRINTED }, never);
    bench.until(at(0.2));
    assert_eq!((bench.sent, bench.phase()), (1, Phase::StartUp), "four in two seconds");
    bench.until(at(0.5));
    // The first answer says how long a round trip takes, and two of those are over.
    assert!(bench.sent >= 2 && bench.phase() == Phase::Steady, "{} {:?}", bench.sent, bench.phase());
}

#[test]
fn a_window_of_the_product_holds_back_what_the_rate_would_let_go() {
    let parts = Parts { window: Window::AlphaTLambda, ..Parts::PRINTED };
    let mut bench = Bench::new(parts, never);
    // What the start-up left under way is gone a round-trip time later.
    for step in 1..400 {
        bench.until(at(0.97 + 0.01 * f64::from(step)));
        let product = (bench.rate() * 0.24 + 1e-6).floor().max(1.0);
        assert!(bench.open.len() as f64 <= product, "{} under way, T·λ is {product}", bench.open.len());
    }
}

fn loses_first_copies(number: u32, copy: u8, now: Instant) -> bool {
    copy == 0 && (number == 20 || now >= Instant::from_micros(3_000_000))
}

#[test]
fn only_a_clean_answer_ends_the_backoff_where_that_is_asked_for() {
    let parts = Parts { ends_backoff: EndsBackoff::CleanAnswer, ..Parts::RESPONSIVE };
    for (parts, steady) in [(Parts::RESPONSIVE, true), (parts, false)] {
        let mut bench = Bench::new(parts, loses_first_copies);
        bench.until(at(3.0));
        while bench.phase() != Phase::Backoff {
            bench.until(bench.now.after(Span::from_millis(1)));
        }
        // Whatever is under way then is answered after a retransmission only.
        let mut was_steady = false;
        for _ in 0..300 {
            bench.until(bench.now.after(Span::from_millis(10)));
            was_steady |= bench.phase() == Phase::Steady;
        }
        let answered_clean = bench.open.iter().any(|open| open.first < at(3.0));
        assert!(was_steady == steady || answered_clean, "{was_steady}");
    }
}

#[test]
fn a_probe_is_retransmitted_like_any_message_and_its_failure_changes_nothing() {
    let mut bench = Bench::new(Parts::PRINTED, |number, _, _| number == 0);
    bench.until(at(77.0));
    assert_eq!((bench.sent, bench.copies.len()), (1, 4));
    bench.until(at(78.0));
    assert_eq!(bench.given_up.len(), 1);
    assert!(bench.sent > 1, "the next message is the next probe");
}

#[test]
fn two_readings_differ_in_what_marks_a_loss_only() {
    assert_eq!(Parts { loss_signal: LossSignal::Exhausted, ..Parts::RESPONSIVE }, Parts::PRINTED);
}
