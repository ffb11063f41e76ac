//! TFRC for non-confirmable requests: RFC 5348 by plain arithmetic.

#![allow(clippy::float_arithmetic, reason = "closed forms are ratios")]

use std::collections::VecDeque;

use millpond_control::{
    Admit, Chance, Checked, Class, Controller, Cx, Exchange, Fate, Feedback, Instant, PlainMessage, Reason, Sample,
    Span, TfrcNon, rate::Rate, tfrc_non::Parts,
};

const RTT: Span = Span::from_millis(200);
const SLOWEST: u32 = 15_625;

/// A sender on a path of this round-trip time without a queue.
struct Bench {
    controller: Checked<TfrcNon>,
    now: Instant,
    sent: u32,
    under_way: VecDeque<(u32, Instant)>,
    departures: Vec<Instant>,
    waiting: u16,
    /// Whether this message is lost, sent then.
    loses: Box<dyn Fn(u32, Instant) -> bool>,
    /// Messages per second that the path passes on; none: any.
    narrow: Option<Span>,
    free: Instant,
}

impl Bench {
    fn new(loses: impl Fn(u32, Instant) -> bool + 'static) -> Self {
        Self {
            controller: Checked::new(TfrcNon::new(Parts::STANDARD)),
            now: Instant::ORIGIN,
            sent: 0,
            under_way: VecDeque::new(),
            departures: Vec::new(),
            waiting: 1,
            loses: Box::new(loses),
            narrow: None,
            free: Instant::ORIGIN,
        }
    }

    fn cx(&self) -> Cx {
        Cx { waiting: self.waiting, ..Cx::new(self.now, Chance::MIDDLE) }
    }

    fn send(&mut self) {
        let cx = self.cx();
        self.controller.on_plain_send(40, cx);
        self.departures.push(self.now);
        if !(self.loses)(self.sent, self.now) {
            self.free = self.free.max(self.now).after(self.narrow.unwrap_or(Span::ZERO));
            self.under_way.push_back((self.sent, self.now));
        }
        self.sent += 1;
    }

    fn answered(&mut self, number: u32, left: Instant) {
        let cx = self.cx();
        self.controller.on_feedback(answer(number, self.now.since(left)), cx);
        assert_eq!(self.controller.violation(), None);
    }

    /// Sends as fast as it may until this point.
    fn until(&mut self, end: Instant) {
        loop {
            let leaves = match self.controller.admit(Class::Plain, 40, self.cx()) {
                Admit::Now => self.now,
                Admit::At(at) => at,
                Admit::WhenOneEnds => panic!("nothing that could end is under way"),
            };
            let comes = self.under_way.front().map_or(Instant::NEVER, |(_, left)| left.after(RTT));
            let next = leaves.min(comes);
            if next > end {
                self.now = end;
                return;
            }
            let asks = next > self.now && next == leaves;
            self.now = next;
            if comes <= leaves {
                let (number, left) = self.under_way.pop_front().expect("one under way");
                self.answered(number, left);
            } else if !asks {
                self.send();
            }
        }
    }

    fn rate(&self) -> u32 {
        self.controller.inner().rate(self.now).as_millionths()
    }

    fn loss_event_rate(&self) -> Option<u32> {
        self.controller.inner().loss_event_rate()
    }
}

fn answer(number: u32, since: Span) -> Feedback {
    Feedback { message: PlainMessage::Request, fate: Fate::Answered, since, len: 40, reply_len: 4, number }
}

fn at(millis: u32) -> Instant {
    Instant::ORIGIN.after(Span::from_millis(millis))
}

fn near(ours: u32, exact: f64, share: f64) {
    assert!((f64::from(ours) / 1e6 - exact).abs() <= exact * share, "{ours} millionths, not {exact}");
}

/// f(p) of RFC 5348 §3.1 with t_RTO = 4R, in messages per second.
fn equation(p: f64, rtt: f64) -> f64 {
    1.0 / (rtt * (2.0 * p / 3.0).sqrt() + 4.0 * rtt * 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p))
}

#[test]
fn one_message_a_second_until_the_first_answer_then_four_in_a_round_trip_time() {
    let mut bench = Bench::new(|_, _| false);
    assert_eq!(bench.controller.admit(Class::Plain, 40, bench.cx()), Admit::Now);
    bench.send();
    assert_eq!(bench.controller.admit(Class::Plain, 40, bench.cx()), Admit::At(at(1_000)));
    assert_eq!(bench.controller.view().srtt, None);
    bench.now = at(200);
    bench.answered(0, at(0));
    assert_eq!(bench.rate(), 20_000_000);
    assert_eq!(bench.controller.view().srtt, Some(RTT));
    assert_eq!(bench.controller.admit(Class::Plain, 40, bench.cx()), Admit::Now, "a fiftieth of a second is over");
}

#[test]
fn without_a_loss_the_rate_doubles_with_what_is_received() {
    let mut bench = Bench::new(|_, _| false);
    let (mut rates, mut last) = (Vec::new(), 0);
    for millis in 0..1_700 {
        bench.until(at(millis));
        if bench.rate() != last {
            last = bench.rate();
            rates.push((millis, last / 1_000_000));
        }
    }
    // The first limit is none. From then on at most twice is sent of what was received, and that follows by a round trip.
    assert_eq!(rates, [(0, 1), (200, 20), (400, 40), (800, 80), (1_200, 160), (1_600, 320)]);
}

/// A path that passes on ten messages a second, and loses none: the rate is held at twice what is answered.
#[test]
fn the_rate_stays_below_twice_what_is_received() {
    let mut controller = Checked::new(TfrcNon::new(Parts::STANDARD));
    let (mut sent, mut answered, mut departures) = (0_u32, 0_u32, Vec::new());
    for millis in 0..20_000_u32 {
        let cx = Cx { waiting: 1, ..Cx::new(at(millis), Chance::MIDDLE) };
        if millis >= 200 && (millis - 200) % 100 == 0 && answered < sent {
            // Answers come as if each had waited for nobody, so that the round-trip time does not grow.
            controller.on_feedback(answer(answered, RTT), cx);
            answered += 1;
        }
        if controller.admit(Class::Plain, 40, cx) == Admit::Now {
            controller.on_plain_send(40, cx);
            departures.push(millis);
            sent += 1;
        }
        // Two answers in a round of 200 ms, or three where both ends count.
        let rate = controller.inner().rate(at(millis)).as_millionths();
        assert!(millis < 1_000 || rate <= 30_000_000, "{rate} at {millis} ms");
    }
    assert_eq!(controller.violation(), None);
}

/// Every hundredth message is lost: p = 1/100, and X as the equation has it.
#[test]
fn regular_losses_end_at_the_rate_of_the_equation() {
    for (every, share) in [(100, 0.02), (20, 0.04), (400, 0.02)] {
        let mut bench = Bench::new(move |number, _| number % every == every - 1);
        bench.until(at(600_000));
        let p = bench.loss_event_rate().expect("losses");
        near(p, 1.0 / f64::from(every), share);
        near(bench.rate(), equation(1.0 / f64::from(every), 0.2), 0.05);
        let last = bench.departures.iter().filter(|left| **left > at(500_000)).count();
        near(last as u32 * 10_000, equation(1.0 / f64::from(every), 0.2), 0.05);
    }
}

/// The order of answers that shows a loss, told by hand: the three weights of RFC 5348 §5.4 that differ.
#[test]
fn loss_intervals_weigh_as_the_rfc_has_it() {
    let mut controller = TfrcNon::new(Parts::STANDARD);
    let intervals = [10_u32, 20, 30, 40, 50, 60, 70, 80, 90];
    let mut now = 0;
    let mut tell = |controller: &mut TfrcNon, number: u32| {
        // A message a second, over a path of 200 ms, so that each loss is an event of its own.
        now = number * 1_000;
        let cx = Cx::new(at(now), Chance::MIDDLE);
        controller.on_plain_send(40, cx);
        controller.on_feedback(answer(number, RTT), Cx::new(at(now).after(RTT), Chance::MIDDLE));
    };
    let (mut number, mut lost) = (0, 5);
    for interval in intervals {
        while number < lost {
            tell(&mut controller, number);
            number += 1;
        }
        number += 1;
        lost += interval;
    }
    // Three that were answered after the last loss: the open interval has four messages.
    for number in number..number + 3 {
        tell(&mut controller, number);
    }
    // The eight intervals between nine losses, the newest first; the one before the first loss has dropped out.
    let mean: f64 = [(80, 1.0), (70, 1.0), (60, 1.0), (50, 1.0), (40, 0.8), (30, 0.6), (20, 0.4), (10, 0.2)]
        .iter()
        .map(|(interval, weight)| f64::from(*interval) * weight)
        .sum::<f64>()
        / 6.0;
    near(controller.loss_event_rate().expect("losses"), 1.0 / mean, 1e-4);
    // The open interval counts where it makes the mean longer.
    for number in number + 3..number + 200 {
        tell(&mut controller, number);
    }
    let open = 201.0;
    let with_open: f64 =
        [(open, 1.0), (80.0, 1.0), (70.0, 1.0), (60.0, 1.0), (50.0, 0.8), (40.0, 0.6), (30.0, 0.4), (20.0, 0.2)]
            .iter()
            .map(|(interval, weight)| interval * weight)
            .sum::<f64>()
            / 6.0;
    near(controller.loss_event_rate().expect("losses"), 1.0 / with_open, 1e-4);
}

/// Numbers of answered messages, one each millisecond from 1 s on, after twenty that were all answered.
fn told(numbers: &[u32]) -> TfrcNon {
    let mut controller = TfrcNon::new(Parts::STANDARD);
    for number in 0..40 {
        controller.on_plain_send(40, Cx { waiting: 1, ..Cx::new(at(number * 10), Chance::MIDDLE) });
    }
    for (place, number) in (0..20).chain(numbers.iter().copied()).enumerate() {
        let now = at(1_000 + place as u32);
        controller.on_feedback(answer(number, now.since(at(number * 10))), Cx::new(now, Chance::MIDDLE));
    }
    controller
}

#[test]
fn a_message_is_lost_once_three_later_ones_are_answered() {
    assert_eq!(told(&[21, 22]).loss_event_rate(), None);
    assert!(told(&[21, 22, 23]).loss_event_rate().is_some());
    assert_eq!(told(&[21, 22, 20, 23, 24]).loss_event_rate(), None, "out of order, and not lost");
    assert_eq!(told(&[22, 21, 20, 25, 24, 23]).loss_event_rate(), None);
    assert_eq!(told(&[21, 21, 21, 22, 22]).loss_event_rate(), None, "one that is told twice is one");
    let late = told(&[21, 22, 23, 20]);
    assert_eq!(late.loss_event_rate(), told(&[21, 22, 23]).loss_event_rate(), "too late");
}

/// Messages 10 ms apart on a path of 1 s: losses within 1 s of the first are one event.
#[test]
fn losses_within_a_round_trip_time_are_one_event() {
    let one = told(&[21, 22, 23]);
    let many = told(&[21, 23, 25, 27, 29, 30, 31]);
    let longer = |controller: TfrcNon| 1_000_000 / controller.loss_event_rate().expect("losses");
    // The interval that the first loss makes up is the only one that is closed.
    assert_eq!(longer(one), longer(many));
}

/// RFC 5348 §6.3.1: the first interval is the one that makes the equation give what was received.
#[test]
fn the_first_loss_does_not_halve_more_than_what_was_received() {
    let mut bench = Bench::new(|number, _| number == 100);
    let mut before = 0;
    while bench.loss_event_rate().is_none() {
        before = bench.rate();
        let next = bench.now.after(Span::from_millis(1));
        bench.until(next);
    }
    // In slow start half of what is sent is received.
    let after = bench.rate();
    assert!(after < before && after >= before / 4, "{before}, then {after}");
}

#[test]
fn silence_halves_the_rate_down_to_one_message_in_64_seconds() {
    let mut bench = Bench::new(|_, left| left > at(2_000));
    bench.until(at(2_000));
    let mut rates = vec![bench.rate()];
    for second in 2..400 {
        bench.until(at(second * 1_000));
        if rates.last() != Some(&bench.rate()) {
            rates.push(bench.rate());
        }
    }
    assert_eq!(rates.last(), Some(&SLOWEST));
    let halved = rates.windows(2).filter(|pair| pair[1].abs_diff(pair[0] / 2) <= 1).count();
    assert!(halved >= 6, "{rates:?}");
    assert!(rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
    // And recovers with the first answers.
    bench.loses = Box::new(|_, _| false);
    bench.until(at(900_000));
    assert!(bench.rate() > 20_000_000, "{}", bench.rate());
}

/// The nofeedback timer of 2 s, then twice the distance of two messages.
#[test]
fn before_the_first_answer_the_rate_is_halved_after_two_four_and_eight_seconds() {
    let mut bench = Bench::new(|_, _| true);
    for (millis, rate) in
        [(1_999, 1_000_000), (2_000, 500_000), (5_999, 500_000), (6_000, 250_000), (13_999, 250_000), (14_000, 125_000)]
    {
        bench.until(at(millis));
        assert_eq!(bench.rate(), rate, "after {millis} ms");
    }
}

#[test]
fn a_sender_with_little_to_say_keeps_its_rate() {
    let mut bench = Bench::new(|_, _| false);
    bench.until(at(1_500));
    bench.waiting = 0;
    let rate = bench.rate();
    // Two messages a second, where hundreds might leave.
    for number in 0..20 {
        let (left, sent) = (at(2_000 + number * 500), bench.sent);
        bench.under_way.clear();
        bench.now = left;
        bench.send();
        bench.under_way.clear();
        bench.now = left.after(RTT);
        bench.answered(sent, left);
    }
    assert!(bench.rate() >= 20_000_000, "W_init/R at least: {rate}, then {}", bench.rate());
}

#[test]
fn confirmable_messages_have_the_timer_of_rfc_7252() {
    let mut controller = Checked::new(TfrcNon::new(Parts::STANDARD));
    let mut exchange = Exchange::new();
    let first = controller.on_start(&mut exchange, 40, Cx::new(at(0), Chance::LOWEST));
    assert_eq!((first.span, first.reason), (Span::from_secs(2), Reason::Initial));
    let second = controller.on_timeout(&mut exchange, Cx::new(at(2_000), Chance::LOWEST));
    assert_eq!((second.span, second.reason), (Span::from_secs(4), Reason::BackedOff));
    controller.on_plain_send(40, Cx::new(at(2_000), Chance::LOWEST));
    assert_eq!(controller.admit(Class::Confirmable, 40, Cx::new(at(2_001), Chance::LOWEST)), Admit::Now);
    let sample = Sample::new(millpond_control::ReplyKind::Piggybacked, Span::from_secs(3), Span::from_secs(1), 1);
    controller.on_reply(&exchange, sample, Cx::new(at(3_000), Chance::LOWEST));
    assert_eq!(controller.violation(), None);
    assert_eq!(controller.view().srtt, None, "and teach it nothing");
}

/// Whatever the numbers and times that are told, no rate leaves its bounds.
#[test]
fn lies_about_answers_do_no_harm() {
    for jump in [1, 2, 7, 60_000, 65_535, 65_536, 1 << 31, u32::MAX, u32::MAX - 70_000] {
        let mut controller = Checked::new(TfrcNon::new(Parts::STANDARD));
        let mut number = 0_u32;
        for step in 0..200_u32 {
            let cx = Cx { waiting: 1, ..Cx::new(at(step * 50), Chance::MIDDLE) };
            controller.on_plain_send(40, cx);
            number = number.wrapping_add(jump);
            let since = Span::from_micros(jump.wrapping_mul(step) % 1_000_000);
            controller.on_feedback(answer(number, since), cx);
            let rate = controller.inner().rate(cx.now);
            assert!(rate >= Rate::per(1, Span::from_secs(64)), "{rate:?}");
        }
        assert_eq!(controller.violation(), None);
    }
}
