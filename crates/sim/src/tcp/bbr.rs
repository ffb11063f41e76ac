//! BBR version 1 as in Linux 4.17 to 5.0: a model of the path (bottleneck bandwidth, least round-trip time) instead of
//! losses decides how fast data leaves.

use std::collections::VecDeque;

use millpond_control::{ChanceSeed, Purpose};

use super::{
    Ack, CongestionControl, Flight, Micros, RateSample, State,
    policed::{Policed, Seen},
};

/// 2/ln 2, as the kernel rounds it: doubles the rate every round.
const HIGH_GAIN: f64 = 739.0 / 256.0;
/// Undoes what one round of the high gain queued.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// Window in units of the bandwidth-delay product while probing for bandwidth.
const WINDOW_GAIN: f64 = 2.0;
/// Probe, drain, then six round-trip times at the bandwidth.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Rounds over which the highest bandwidth counts.
const BANDWIDTH_ROUNDS: u64 = 10;
/// How long the least round-trip time counts.
const MIN_RTT_FILTER: Micros = 10_000_000;
/// How long the window is kept small to measure it anew.
const PROBE_RTT: Micros = 200_000;
/// The least window.
const MIN_WINDOW: u32 = 4;
/// Below 1.2 Mbit/s segments leave one by one.
const BURST_GOAL: u32 = 1;
/// The window while no round-trip time is known.
const SAFE_WINDOW: u32 = 10;

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR version 1. Rates in segments per microsecond.
#[derive(Debug)]
pub struct Bbr {
    mss: f64,
    seed: ChanceSeed,
    draws: u32,
    mode: Mode,
    window: u32,
    saved_window: u32,
    pacing_rate: f64,
    pacing_gain: f64,
    window_gain: f64,
    /// Bandwidths by round, falling: the first is the highest of the last rounds.
    bandwidths: VecDeque<(u64, f64)>,
    round: u64,
    round_starts: bool,
    next_round: u64,
    full_bandwidth: f64,
    rounds_without_growth: u32,
    full: bool,
    min_rtt: Option<Micros>,
    min_rtt_at: Micros,
    probe_rtt_done: Option<Micros>,
    probe_rtt_round_done: bool,
    phase: usize,
    phase_from: Micros,
    before: State,
    conserving: bool,
    idle_restart: bool,
    lost: u64,
    delivered: u64,
    policed: Policed,
}

impl Bbr {
    /// A new connection; `seed` draws where the cycle of probing starts.
    #[must_use]
    pub fn new(initial_window: u32, mss: u32, seed: u64) -> Self {
        Self {
            mss: f64::from(mss),
            seed: ChanceSeed::new(seed),
            draws: 0,
            mode: Mode::Startup,
            window: initial_window,
            saved_window: 0,
            pacing_rate: HIGH_GAIN * f64::from(initial_window) / 1_000.0,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            bandwidths: VecDeque::new(),
            round: 0,
            round_starts: false,
            next_round: 0,
            full_bandwidth: 0.0,
            rounds_without_growth: 0,
            full: false,
            min_rtt: None,
            min_rtt_at: 0,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            phase: 0,
            phase_from: 0,
            before: State::Open,
            conserving: false,
            idle_restart: false,
            lost: 0,
            delivered: 0,
            policed: Policed::default(),
        }
    }

    fn max_bandwidth(&self) -> f64 {
        self.bandwidths.front().map_or(0.0, |&(_, bandwidth)| bandwidth)
    }

    fn bandwidth(&self) -> f64 {
        self.policed.bandwidth().unwrap_or_else(|| self.max_bandwidth())
    }

    /// The window that keeps `gain` bandwidth-delay products under way.
    fn target(&self, bandwidth: f64, gain: f64) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return SAFE_WINDOW };
        let product = (bandwidth * min_rtt as f64 * gain).ceil() as u32;
        let even = (product + 3 * BURST_GOAL + 1) & !1;
        even + if self.mode == Mode::ProbeBandwidth && gain > 1.0 { 2 } else { 0 }
    }

    fn update_bandwidth(&mut self, ack: &Ack) {
        self.round_starts = false;
        let Some(sample) =
            ack.rate.filter(|rate| rate.interval > 0 && self.min_rtt.is_none_or(|rtt| rate.interval >= rtt))
        else {
            return;
        };
        if sample.prior_delivered >= self.next_round {
            self.next_round = ack.delivered_total;
            self.round += 1;
            self.round_starts = true;
            self.conserving = false;
        }
        self.sample_policed(ack.now, ack.lost > 0, sample.app_limited);
        let RateSample { delivered, interval, app_limited, .. } = sample;
        let bandwidth = delivered as f64 / interval as f64;
        if !app_limited || bandwidth >= self.max_bandwidth() {
            while self.bandwidths.back().is_some_and(|&(_, other)| other <= bandwidth) {
                self.bandwidths.pop_back();
            }
            self.bandwidths.push_back((self.round, bandwidth));
        }
        while self.bandwidths.len() > 1
            && self.bandwidths.front().is_some_and(|&(round, _)| self.round - round > BANDWIDTH_ROUNDS)
        {
            self.bandwidths.pop_front();
        }
    }

    fn sample_policed(&mut self, now: Micros, loses: bool, app_limited: bool) {
        if self.policed.bandwidth().is_some() {
            if self.mode == Mode::ProbeBandwidth && self.round_starts && self.policed.spend_round() {
                self.probe_bandwidth(now);
            }
            return;
        }
        let Self { delivered, lost, round_starts, mss, .. } = *self;
        if self.policed.sample(&Seen { now, delivered, lost, loses, round_starts, app_limited, mss }) {
            self.pacing_gain = 1.0;
        }
    }

    fn update_phase(&mut self, ack: &Ack) {
        if self.mode != Mode::ProbeBandwidth || self.policed.bandwidth().is_some() {
            return;
        }
        let whole = self.min_rtt.is_some_and(|rtt| ack.now.saturating_sub(self.phase_from) > rtt);
        let under_way = ack.before_flight.pipe;
        let over = if self.pacing_gain > 1.0 {
            whole && (ack.lost > 0 || under_way >= self.target(self.max_bandwidth(), self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            whole || under_way <= self.target(self.max_bandwidth(), 1.0)
        } else {
            whole
        };
        if over {
            self.advance_phase(ack.now);
        }
    }

    fn advance_phase(&mut self, now: Micros) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_from = now;
        self.pacing_gain = if self.policed.bandwidth().is_some() { 1.0 } else { CYCLE[self.phase] };
    }

    fn probe_bandwidth(&mut self, now: Micros) {
        self.mode = Mode::ProbeBandwidth;
        self.window_gain = WINDOW_GAIN;
        let back = self.seed.at(Purpose::Workload, [self.draws, 0, 0, 0]).pick(0, 6);
        self.draws += 1;
        self.phase = CYCLE.len() - 1 - back as usize;
        self.advance_phase(now);
    }

    fn check_full(&mut self, ack: &Ack) {
        let app_limited = ack.rate.is_none_or(|rate| rate.app_limited);
        if self.full || !self.round_starts || app_limited {
            return;
        }
        if self.max_bandwidth() >= 1.25 * self.full_bandwidth {
            self.full_bandwidth = self.max_bandwidth();
            self.rounds_without_growth = 0;
            return;
        }
        self.rounds_without_growth += 1;
        self.full = self.rounds_without_growth >= 3;
    }

    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            (self.pacing_gain, self.window_gain) = (DRAIN_GAIN, HIGH_GAIN);
        }
        if self.mode == Mode::Drain && ack.flight.pipe <= self.target(self.max_bandwidth(), 1.0) {
            self.probe_bandwidth(ack.now);
        }
    }

    fn update_min_rtt(&mut self, ack: &Ack) {
        let now = ack.now;
        let expired = now > self.min_rtt_at + MIN_RTT_FILTER;
        if let Some(rtt) = ack.rtt
            && (self.min_rtt.is_none_or(|least| rtt <= least) || (expired && !ack.delayed))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            (self.pacing_gain, self.window_gain) = (1.0, 1.0);
            self.save_window();
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            match self.probe_rtt_done {
                None if ack.flight.pipe <= MIN_WINDOW => {
                    self.probe_rtt_done = Some(now + PROBE_RTT);
                    self.probe_rtt_round_done = false;
                    self.next_round = ack.delivered_total;
                }
                None => {}
                Some(done) => {
                    self.probe_rtt_round_done |= self.round_starts;
                    if self.probe_rtt_round_done && now > done {
                        self.min_rtt_at = now;
                        self.window = self.window.max(self.saved_window);
                        if self.full {
                            self.probe_bandwidth(now);
                        } else {
                            self.mode = Mode::Startup;
                            (self.pacing_gain, self.window_gain) = (HIGH_GAIN, HIGH_GAIN);
                        }
                    }
                }
            }
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn save_window(&mut self) {
        self.saved_window = if self.before == State::Open && self.mode != Mode::ProbeRtt {
            self.window
        } else {
            self.saved_window.max(self.window)
        };
    }

    fn update_pacing(&mut self) {
        let rate = self.bandwidth() * self.pacing_gain;
        if rate > 0.0 && (self.full || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    fn update_window(&mut self, ack: &Ack) {
        let acked = ack.delivered;
        if acked == 0 {
            return;
        }
        let mut window = self.window;
        if ack.lost > 0 {
            window = window.saturating_sub(ack.lost).max(1);
        }
        if ack.state == State::Recovery && self.before != State::Recovery {
            self.conserving = true;
            self.next_round = ack.delivered_total;
            window = ack.flight.pipe + acked;
        } else if self.before != State::Open && ack.state == State::Open {
            self.conserving = false;
            window = window.max(self.saved_window);
        }
        self.before = ack.state;
        if self.conserving {
            window = window.max(ack.flight.pipe + acked);
        } else {
            let target = self.target(self.bandwidth(), self.window_gain);
            if self.full {
                window = (window + acked).min(target);
            } else if window < target || ack.delivered_total < u64::from(SAFE_WINDOW) {
                window += acked;
            }
            window = window.max(MIN_WINDOW);
        }
        self.window = if self.mode == Mode::ProbeRtt { window.min(MIN_WINDOW) } else { window };
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> u32 {
        self.window
    }

    fn pacing(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBandwidth => "probe-bandwidth",
            Mode::ProbeRtt => "probe-rtt",
        }
    }

    fn limits_itself(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }

    fn on_recovery(&mut self, _now: Micros, _flight: Flight) {
        self.save_window();
    }

    fn on_timeout(&mut self, now: Micros, flight: Flight, first: bool) {
        if first {
            self.save_window();
        }
        self.before = State::Loss;
        self.full_bandwidth = 0.0;
        self.round_starts = true;
        self.lost += u64::from(flight.outstanding);
        self.sample_policed(now, true, false);
        self.window = 1;
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.delivered = ack.delivered_total;
        self.lost += u64::from(ack.lost);
        self.update_bandwidth(ack);
        self.update_phase(ack);
        self.check_full(ack);
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_pacing();
        self.update_window(ack);
    }

    fn on_sent(&mut self, _now: Micros, _retransmission: bool, idle: bool) {
        if idle && self.full {
            self.idle_restart = true;
            if self.mode == Mode::ProbeBandwidth && self.bandwidth() > 0.0 {
                self.pacing_rate = self.bandwidth();
            }
        }
    }

    fn on_open(&mut self, now: Micros, rtt: Option<Micros>, retried: bool) {
        if retried {
            self.window = 1;
        }
        (self.min_rtt, self.min_rtt_at) = (rtt, now);
        self.pacing_rate = HIGH_GAIN * f64::from(self.window) / rtt.unwrap_or(1_000).max(1) as f64;
    }
}
