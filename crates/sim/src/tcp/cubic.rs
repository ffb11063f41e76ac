//! CUBIC (RFC 9438): slow start that HyStart++ ends, then a window that is a cubic function of the time since the last
//! reduction; or as Linux has it.

use super::{
    Ack, CongestionControl, Flight, Micros, Recovery, State,
    hystart::{HyStart, LinuxHyStart},
    repair::Repair,
};

/// RFC 9438 §4.6: what is left of the window.
const BETA: f64 = 0.7;
/// RFC 9438 §5.1, in segments per cubed second.
const C: f64 = 0.4;
/// RFC 9438 §4.3: by which New Reno's window would grow each round trip with such reductions.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC. Windows in segments.
#[derive(Debug)]
pub struct Cubic {
    initial_window: u32,
    window: f64,
    threshold: f64,
    /// The window at the last reduction, or less if it has shrunk since the one before it (§4.7).
    most: f64,
    /// The window when it was reduced.
    prior: f64,
    avoidance: Option<Avoidance>,
    /// Since when nothing is under way, if nothing is.
    idle: Option<Micros>,
    /// The round trip that the window looks ahead, seconds: the latest, or the shortest where Linux counts.
    ahead: f64,
    repair: Repair,
    slow_start: SlowStart,
    /// It was reduced last because the timer ran out.
    after_timeout: bool,
}

/// What ends the first slow start.
#[derive(Debug)]
enum SlowStart {
    /// RFC 9406.
    Conservative(HyStart),
    /// HyStart. Until the first reduction, and after a timeout, the window grows by at least a twentieth in a round trip; and it looks
    /// ahead by the shortest round trip.
    Linux(LinuxHyStart),
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Avoidance {
    since: Micros,
    /// The time at which the window is what it was before the reduction, s.
    k: f64,
    most: f64,
    /// New Reno's window.
    estimate: f64,
}

impl SlowStart {
    const fn is_of_linux(&self) -> bool {
        matches!(self, Self::Linux(_))
    }
}

impl Cubic {
    /// A new connection.
    #[must_use]
    pub fn new(initial_window: u32, recovery: Recovery) -> Self {
        Self::with(initial_window, recovery, SlowStart::Conservative(HyStart::default()))
    }

    /// The same as Linux has it.
    #[must_use]
    pub fn linux(initial_window: u32, recovery: Recovery) -> Self {
        Self::with(initial_window, recovery, SlowStart::Linux(LinuxHyStart::default()))
    }

    fn with(initial_window: u32, recovery: Recovery, slow_start: SlowStart) -> Self {
        Self {
            initial_window,
            window: initial_window.into(),
            threshold: f64::INFINITY,
            most: 0.0,
            prior: 0.0,
            avoidance: None,
            idle: None,
            ahead: 0.0,
            repair: Repair::new(recovery),
            slow_start,
            after_timeout: false,
        }
    }

    /// RFC 9438 §4.6 and §4.7.
    fn reduce(&mut self) {
        self.most = if self.window < self.most { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.prior = self.window;
        self.threshold = (self.window * BETA).max(2.0);
        self.avoidance = None;
    }

    fn grow(&mut self, ack: &Ack) {
        let mut acked = f64::from(ack.acked);
        if self.threshold.is_infinite() {
            // Of the first slow start alone (RFC 9406 §4.3).
            let divisor = match &mut self.slow_start {
                SlowStart::Conservative(hystart) => hystart.heard(ack),
                SlowStart::Linux(hystart) => {
                    hystart.goes_on(ack, self.window, (self.ahead * 1e6) as Micros).then_some(1.0)
                }
            };
            match divisor {
                Some(divisor) => acked /= divisor,
                None => self.threshold = self.window,
            }
        }
        if self.window < self.threshold {
            if self.window >= f64::from(2 * ack.before_flight.outstanding) {
                return;
            }
            let step = acked.min(self.threshold - self.window);
            self.window += step;
            acked -= step;
        }
        if acked > 0.0 && ack.window_limited {
            self.avoid(ack.now, acked);
        }
    }

    /// RFC 9438 §4.2 to §4.5.
    fn avoid(&mut self, now: Micros, acked: f64) {
        let (window, after_timeout) = (self.window, self.after_timeout);
        // After the timer ran out, and where nothing was reduced yet, it starts at the plateau (§4.8, §4.10).
        let most = if after_timeout { window } else { self.most.max(window) };
        let begin = || Avoidance { since: now, k: ((most - window) / C).cbrt(), most, estimate: window };
        let stage = self.avoidance.get_or_insert_with(begin);
        let t = now.saturating_sub(stage.since) as f64 / 1e6;
        let cubic = |t: f64| C * (t - stage.k).powi(3) + stage.most;
        let alpha = if stage.estimate < self.prior { ALPHA } else { 1.0 };
        stage.estimate += alpha * acked / window;
        let is_first = self.slow_start.is_of_linux() && (self.most == 0.0 || after_timeout);
        let least = if is_first { 0.05 } else { 0.0 };
        if cubic(t) < stage.estimate {
            self.window = stage.estimate.max(window + least * acked);
            return;
        }
        let target = cubic(t + self.ahead).clamp(window, 1.5 * window);
        self.window += ((target - window) / window).max(least) * acked;
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> u32 {
        (self.window as u32).max(1)
    }

    fn slow_start_threshold(&self) -> Option<u32> {
        self.threshold.is_finite().then_some(self.threshold as u32)
    }

    fn phase(&self) -> &'static str {
        if self.window < self.threshold { "slow-start" } else { "congestion-avoidance" }
    }

    fn on_recovery(&mut self, _now: Micros, _flight: Flight) {
        self.reduce();
        self.after_timeout = false;
        let window = self.repair.begin(self.prior as u32, self.threshold as u32);
        self.window = f64::from(window);
    }

    fn on_timeout(&mut self, _now: Micros, _flight: Flight, first: bool) {
        if first {
            self.reduce();
        }
        (self.window, self.after_timeout, self.avoidance) = (1.0, true, None);
        self.repair.give_up();
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt.map(|rtt| rtt as f64 / 1e6) {
            let looks_back = self.slow_start.is_of_linux() && self.ahead > 0.0;
            self.ahead = if looks_back { self.ahead.min(rtt) } else { rtt };
        }
        if ack.flight.outstanding == 0 {
            self.idle = Some(ack.now);
        }
        if ack.state == State::Recovery {
            self.window = f64::from(self.repair.window(self.window(), self.threshold as u32, ack));
        } else if self.repair.end() {
            self.window = self.threshold;
        } else if ack.acked > 0 {
            self.grow(ack);
        }
    }

    fn on_sent(&mut self, now: Micros, _retransmission: bool, _idle: bool) {
        self.repair.sent();
        // The time without anything to send is none in which the window grows (§5.8).
        if let (Some(since), Some(stage)) = (self.idle.take(), &mut self.avoidance) {
            stage.since += now.saturating_sub(since);
        }
    }

    fn on_open(&mut self, _now: Micros, _rtt: Option<Micros>, retried: bool) {
        self.window = if retried { 1.0 } else { self.initial_window.into() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that always has data, reduced from this window once and again after each `epoch` of seconds: its mean window over
    /// the time of the last epoch, and one over the packets that it sent in that.
    fn mean_window(rtt: f64, from: f64, epochs: u32, epoch: f64) -> (f64, f64) {
        let mut cubic = Cubic { window: from, ..Cubic::new(10, Recovery::RateHalving) };
        let (mut now, mut mean) = (0.0, (0.0, 0.0));
        let ack = |now: f64, window: u32| {
            let flight = Flight { outstanding: window, pipe: window };
            Ack::of_one((now * 1e6) as Micros, 0, flight, (rtt * 1e6) as Micros)
        };
        for _ in 0..epochs {
            let window = cubic.window();
            cubic.on_recovery((now * 1e6) as Micros, Flight { outstanding: window, pipe: window });
            cubic.on_ack(&ack(now, window));
            let (begins, mut sent, mut rounds) = (now, 0.0, 0.0);
            while now - begins < epoch {
                // One round trip: an acknowledgement for every segment, evenly over it.
                let window = cubic.window();
                for segment in 0..window {
                    cubic.on_ack(&ack(now + rtt * f64::from(segment) / f64::from(window), window));
                }
                (now, sent, rounds) = (now + rtt, sent + cubic.window, rounds + 1.0);
            }
            mean = (sent / rounds, 1.0 / sent);
        }
        mean
    }

    /// RFC 9438 §5.1: of a plateau W the mean is (3 + beta) W / 4, and with one packet lost each K seconds the response function
    /// follows. Where New Reno's window is larger it is AIMD (§4.3), with the mean of New Reno.
    #[test]
    fn the_mean_window_is_that_of_the_response_function() {
        for (rtt, plateau) in [(0.1_f64, 226.0_f64), (0.1, 1_270.0), (0.2, 2_000.0)] {
            let k = (plateau * (1.0 - BETA) / C).cbrt();
            let (found, p) = mean_window(rtt, plateau, 1, k);
            let expected = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))).powf(0.25) * (rtt / p).powf(0.75);
            assert!((found / expected - 1.0).abs() < 0.02, "RTT {rtt} s, p {p}: {found:.1}, not {expected:.1}");
            assert!((found / (plateau * (3.0 + BETA) / 4.0) - 1.0).abs() < 0.02, "{found:.1} below {plateau}");
        }
        for (rtt, epoch) in [(0.005, 0.3), (0.01, 0.4)] {
            let (found, p) = mean_window(rtt, 30.0, 60, epoch);
            let expected = (1.5 / p).sqrt();
            assert!((found / expected - 1.0).abs() < 0.08, "RTT {rtt} s, p {p}: {found:.1}, not {expected:.1}");
        }
    }

    #[test]
    fn the_window_is_back_where_it_was_after_k() {
        let mut cubic = Cubic::new(10, Recovery::RateHalving);
        cubic.window = 1_000.0;
        cubic.on_recovery(0, Flight { outstanding: 1_000, pipe: 1_000 });
        assert_eq!((cubic.threshold, cubic.most), (700.0, 1_000.0));
        // K = ((1000 - 700) / 0.4)^(1/3) = 9.09 s. A second reduction below the first lowers the plateau to 0.85 of the window.
        cubic.window = 700.0;
        cubic.avoid(0, 1.0);
        assert!((cubic.avoidance.unwrap().k - 9.0856).abs() < 1e-3);
        cubic.on_recovery(1, Flight { outstanding: 700, pipe: 700 });
        assert!((cubic.most - 0.85 * cubic.prior).abs() < 1e-9);
    }
}
