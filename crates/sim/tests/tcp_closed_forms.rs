//! TCP over a path of unlimited rate that loses what the test says, against what is known in closed form.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::VecDeque;

use millpond_control::{Instant, Span};
use millpond_sim::tcp::{Config, Connection, Control, DelayedAcks, Polled, Recovery, Segment, Totals};

/// A sender that always has data, its receiver, and half a round trip between them. Every full segment is acknowledged.
struct Path {
    ends: [Connection; 2],
    flying: [VecDeque<(Instant, Segment)>; 2],
    wakes: [Instant; 2],
    now: Instant,
    half: Span,
    /// Segments with data that left, and bytes that arrived.
    sent: u64,
    arrived: u64,
}

const MSS: u32 = 1_000;

fn config(control: Control, window: u32, sack: bool) -> Config {
    let acks = DelayedAcks { every: 1, ..DelayedAcks::LINUX };
    Config { mss: MSS, initial_window: window, receive_window: 1 << 29, acks, sack, control, ..Config::HELSINKI }
}

impl Path {
    fn open(config: &Config, rtt: Span) -> Self {
        let ends = [Connection::connect(config.clone()), Connection::listen(config.clone())];
        let half = Span::from_micros(rtt.as_micros() / 2);
        let wakes = [Instant::ORIGIN, Instant::NEVER];
        let flying = [VecDeque::new(), VecDeque::new()];
        let mut path = Self { ends, flying, wakes, now: Instant::ORIGIN, half, sent: 0, arrived: 0 };
        path.run(Instant::ORIGIN.after(rtt), |_| false);
        path
    }

    /// Goes on until then; `loses` says of which segments with data, by their numbers.
    fn run(&mut self, until: Instant, mut loses: impl FnMut(u64) -> bool) {
        loop {
            let front = |line: &VecDeque<(Instant, Segment)>| line.front().map_or(Instant::NEVER, |(at, _)| *at);
            let next = self.wakes.into_iter().chain(self.flying.iter().map(front)).min().unwrap();
            if next > until {
                self.now = until;
                return;
            }
            self.now = next.max(self.now);
            for way in 0..2 {
                while self.flying[way].front().is_some_and(|(at, _)| *at <= self.now) {
                    let (_, segment) = self.flying[way].pop_front().unwrap();
                    self.ends[1 - way].receive(self.now, segment);
                    self.wakes[1 - way] = self.now;
                }
                self.arrived += self.ends[way].read().len() as u64;
            }
            for end in 0..2 {
                while self.wakes[end] <= self.now {
                    self.wakes[end] = match self.ends[end].poll(self.now) {
                        Polled::Sleep(until) => until,
                        Polled::Idle => Instant::NEVER,
                        Polled::Send(segment) => {
                            let has_data = !segment.payload.is_empty();
                            self.sent += u64::from(has_data);
                            if !has_data || !loses(self.sent - 1) {
                                self.flying[end].push_back((self.now.after(self.half), segment));
                            }
                            self.now
                        }
                    };
                }
            }
        }
    }

    fn write(&mut self, segments: usize) {
        self.ends[0].write(&vec![0; segments * MSS as usize]);
        self.wakes[0] = self.now;
    }

    fn totals(&self) -> Totals {
        self.ends[0].totals()
    }
}

/// Segments a round trip of a long transfer of which every so many segments one is lost, the first of them that with this number.
fn window(control: Control, first: u64, every: u64, rtt: Span, cycles: u64) -> f64 {
    let mut path = Path::open(&config(control, 4, true), rtt);
    let cycle = Span::from_secs(30);
    let mut measured = (0, Instant::ORIGIN);
    let wanted = u64::from(MSS) * every * cycles;
    while path.arrived < wanted {
        path.write((2 * every) as usize);
        let backlog = path.ends[0].written() - path.ends[0].acknowledged();
        // Before the data runs out.
        while path.ends[0].written() - path.ends[0].acknowledged() > backlog.min(u64::from(MSS) * every) {
            path.run(path.now.after(rtt), |number| number >= first && (number - first).is_multiple_of(every));
            assert!(path.now < Instant::ORIGIN.after(cycle).after(Span::from_secs(4_000)), "it stands still");
        }
        if path.arrived < u64::from(MSS) * every * (cycles / 4) {
            measured = (path.arrived, path.now);
        }
    }
    assert_eq!(path.totals().timeouts, 0);
    let rounds = f64::from(path.now.since(measured.1).as_micros()) / f64::from(rtt.as_micros());
    (path.arrived - measured.0) as f64 / f64::from(MSS) / rounds
}

#[track_caller]
fn assert_near(ours: f64, expected: f64, share: f64) {
    assert!((ours / expected - 1.0).abs() <= share, "{ours}, expected {expected} within {share}");
}

/// Mathis et al., "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm" (CCR 1997), equation 3 with
/// C = √(3/2): √(3 / 2p) segments a round trip where each is acknowledged.
#[test]
fn new_reno_with_sack_is_as_fast_as_mathis_says() {
    for every in [1_600, 6_400] {
        let ours = window(Control::NewReno(Recovery::RateHalving), every - 1, every, Span::from_millis(100), 40);
        assert_near(ours, (1.5 * every as f64).sqrt(), 0.06);
    }
}

/// RFC 9438 in a fluid: the mean of the window over the last three quarters of so many stages, each of so many segments, after a first
/// reduction at this window. A round trip of each goes for the repair, in which the window falls.
fn fluid(mut window: f64, every: f64, rtt: f64, cycles: u32) -> f64 {
    let (c, beta) = (0.4, 0.7);
    let (mut most, mut sent, mut rounds) = (0.0_f64, 0.0, 0.0);
    for cycle in 0..cycles {
        let prior = window;
        // Section 4.7.
        most = if window < most { window * (1.0 + beta) / 2.0 } else { window };
        let (low, mut left) = (beta * window, every - (1.0 + beta) / 2.0 * window);
        let k = ((most - low) / c).cbrt();
        let (mut t, mut estimate) = (0.0, low);
        window = low;
        while left > 0.0 {
            // A fiftieth of a round trip; sections 4.2 and 4.3.
            let part = 0.02;
            let alpha = if estimate < prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
            (left, t, estimate) = (left - part * window, t + part * rtt, estimate + part * alpha);
            window = (c * (t - k).powi(3) + most).max(estimate).max(low);
        }
        if cycle >= cycles / 4 {
            (sent, rounds) = (sent + every, rounds + t / rtt + 1.0);
        }
    }
    sent / rounds
}

/// The response function of RFC 9438 §5.1 wants the window at each loss to be the plateau. There the cubic is flat: a stage that
/// outlasts K by d changes the next plateau by no more than 0.4 d³ segments, so that forty losses hardly move a window that is a tenth
/// off, and for how long a start is remembered, and to which side, is a matter of fast convergence and of the round trip that goes for
/// each repair. The rules themselves, in a fluid, say where it stands.
#[test]
fn cubic_with_sack_is_as_fast_as_its_rules_say_and_hardly_moves_towards_its_response_function() {
    for (every, rtt, first) in [(1_600, 0.2_f64, 43), (3_200, 0.2, 72)] {
        let response = (0.4_f64 * 3.7 / (4.0 * 0.3)).powf(0.25) * (rtt * every as f64).powf(0.75);
        let trip = Span::from_micros((rtt * 1e6) as u32);
        let ours = window(Control::Cubic(Recovery::RateHalving), first, every, trip, 40);
        let rules = fluid(first as f64, every as f64, rtt, 40);
        assert_near(ours, rules, 0.02);
        assert!((0.8..0.9).contains(&(rules / response)), "{rules}, and {response} in the long run");
    }
    // Of the rules alone: three thousand losses come closer, and what is left is the round trip of each repair.
    let [early, late] = [40, 3_000].map(|cycles| fluid(43.0, 1_600.0, 0.2, cycles));
    assert!(early < 0.98 * late, "{early} and {late}");
}

/// When a flight of 32 segments of which five are lost has been acknowledged, in round trips after it left, and the totals.
fn repair(control: Control, sack: bool, lost: &[u64]) -> (f64, Totals) {
    let rtt = Span::from_millis(100);
    let mut path = Path::open(&config(control, 32, sack), rtt);
    path.write(32);
    let begun = path.now;
    while path.ends[0].acknowledged() < 32 * u64::from(MSS) {
        path.run(path.now.after(Span::from_millis(1)), |number| lost.contains(&number));
    }
    (f64::from(path.now.since(begun).as_micros()) / 1e5, path.totals())
}

#[test]
fn with_sack_several_losses_of_one_window_are_repaired_in_one_round_trip() {
    let lost = [3, 7, 8, 15, 21];
    for control in [Control::NewReno(Recovery::RateHalving), Control::Cubic(Recovery::RateHalving), Control::Bbr(1)] {
        let (rounds, totals) = repair(control, true, &lost);
        assert!((2.0..2.3).contains(&rounds), "{control:?}: {rounds}");
        assert_eq!((totals.retransmissions, totals.recoveries, totals.timeouts), (5, 1, 0), "{control:?}");
    }
    // Without it each partial acknowledgement tells of one more.
    let (rounds, _) = repair(Control::NewReno(Recovery::RateHalving), false, &lost);
    assert!(rounds >= 6.0, "{rounds}");
}

/// What arrived is not sent again after the timer ran out (RFC 6675 section 5.1).
#[test]
fn after_a_timeout_only_what_is_missing_leaves_again() {
    // Nothing overtakes the last three, which wait for the timer.
    let (_, totals) = repair(Control::NewReno(Recovery::RateHalving), true, &[2, 29, 30, 31]);
    assert_eq!((totals.timeouts, totals.retransmissions), (1, 4));
}
