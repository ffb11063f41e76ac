//! The sending half: what is outstanding, what is lost, what leaves next.
//!
//! Accounting is that of Linux. Without SACK a duplicate acknowledgement counts as one segment that arrived without
//! saying which; with it (RFC 6675) the acknowledgement says so, and what three later ones have overtaken is lost.

use std::collections::VecDeque;

use super::{Ack, Config, CongestionControl, Flight, Micros, Progress, RateSample, State, Totals, timer::Timeout};

/// As many duplicate acknowledgements, or later segments that arrived, say that one is lost (RFC 5681, RFC 6675).
const DUPLICATES: u32 = 3;

/// A segment that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    len: u32,
    /// When it left last.
    at: Micros,
    /// For the delivery rate: how things stood then.
    first_sent: Micros,
    delivered: u64,
    delivered_at: Micros,
    app_limited: bool,
    ever_retransmitted: bool,
    /// Marked lost.
    lost: bool,
    /// Lost, and sent again since.
    repaired: bool,
    /// It has arrived, beyond a gap.
    arrived: bool,
}

impl Sent {
    /// The one of two that left last, for the delivery rate.
    fn newer(newest: Option<Self>, other: Self) -> Option<Self> {
        match newest {
            Some(newest) if (other.delivered, other.at) < (newest.delivered, newest.at) => Some(newest),
            _ => Some(other),
        }
    }
}

/// A segment that leaves now: its first byte, its length, and whether it is a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) seq: u64,
    pub(super) len: u32,
    pub(super) copy: bool,
}

#[derive(Debug)]
pub(super) struct Sender {
    pub(super) control: Box<dyn CongestionControl>,
    pub(super) timeout: Timeout,
    mss: u32,
    window: u64,
    sack: bool,
    sent: VecDeque<Sent>,
    /// Lengths of segments that were written and have not left.
    waiting: VecDeque<u32>,
    /// First byte not acknowledged, and first byte not sent.
    una: u64,
    next: u64,
    /// Segments that arrived beyond a gap; without SACK duplicate acknowledgements, in effect.
    dup: u32,
    lost: u32,
    repaired: u32,
    state: State,
    /// Recovery ends once something beyond this byte is acknowledged.
    high: u64,
    /// The timer ran out since data was last acknowledged.
    timed_out: bool,
    alarm: Option<Micros>,
    /// The window held the sender back when it last looked.
    window_limited: bool,
    /// Nothing leaves before, if data is paced.
    pace_from: f64,
    delivered: u64,
    delivered_at: Micros,
    first_sent: Micros,
    /// Samples count as limited by the application until so much is delivered.
    app_limited_until: u64,
    totals: Totals,
}

impl Sender {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            control: config.control.build(config.initial_window, config.mss),
            timeout: Timeout::new(config.timing),
            mss: config.mss,
            window: config.receive_window,
            sack: config.sack,
            sent: VecDeque::new(),
            waiting: VecDeque::new(),
            una: 0,
            next: 0,
            dup: 0,
            lost: 0,
            repaired: 0,
            state: State::Open,
            high: 0,
            timed_out: false,
            alarm: None,
            window_limited: false,
            pace_from: 0.0,
            delivered: 0,
            delivered_at: 0,
            first_sent: 0,
            app_limited_until: 0,
            totals: Totals::default(),
        }
    }

    /// Cuts data into segments; nothing is joined with what was written before.
    pub(super) fn write(&mut self, bytes: u64) {
        let mss = u64::from(self.mss);
        for _ in 0..bytes / mss {
            self.waiting.push_back(self.mss);
        }
        if !bytes.is_multiple_of(mss) {
            self.waiting.push_back((bytes % mss) as u32);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.una
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            window: self.control.window(),
            threshold: self.control.slow_start_threshold(),
            state: self.state,
            phase: self.control.phase(),
            pacing: self.control.pacing().map(|rate| rate * 1e6),
            timeout: self.timeout.in_force(),
            srtt: self.timeout.srtt(),
            flight: self.flight(),
        }
    }

    fn flight(&self) -> Flight {
        let outstanding = self.sent.len() as u32;
        let pipe = (outstanding + self.repaired).saturating_sub(self.dup + self.lost);
        Flight { outstanding, pipe }
    }

    /// When the timer runs out or the next paced segment may leave.
    pub(super) fn due(&self) -> Option<Micros> {
        let paced = self.wants_to_send().then(|| self.pace_from.ceil() as Micros);
        match (self.alarm, paced) {
            (Some(alarm), Some(paced)) => Some(alarm.min(paced)),
            (alarm, paced) => alarm.or(paced),
        }
    }

    /// There is something to send, and window and receiver allow it.
    fn wants_to_send(&self) -> bool {
        self.flight().pipe < self.control.window() && (self.lost > self.repaired || self.may_send_more())
    }

    fn may_send_more(&self) -> bool {
        self.waiting.front().is_some_and(|&len| self.next - self.una + u64::from(len) <= self.window)
    }

    /// The next segment that leaves at `now`, if any does.
    pub(super) fn poll(&mut self, now: Micros) -> Option<Leaving> {
        if self.alarm.is_some_and(|alarm| alarm <= now) {
            self.time_out(now);
        }
        if self.flight().pipe >= self.control.window() {
            self.window_limited |= self.lost > self.repaired || !self.waiting.is_empty();
            return None;
        }
        let paced = self.control.pacing();
        if paced.is_some() && self.pace_from > now as f64 {
            return None;
        }
        let leaving = if self.lost > self.repaired {
            self.repair(now)?
        } else {
            if !self.may_send_more() {
                // The application is the limit from here on.
                if self.waiting.is_empty() {
                    self.limited_by_application();
                }
                return None;
            }
            self.send_more(now)?
        };
        self.totals.segments += 1;
        self.totals.retransmissions += u64::from(leaving.copy);
        self.totals.timeout_retransmissions += u64::from(leaving.copy && self.state == State::Loss);
        if let Some(rate) = paced {
            self.pace_from = self.pace_from.max(now as f64) + 1.0 / rate;
        }
        if self.alarm.is_none() {
            self.arm(now);
        }
        Some(leaving)
    }

    /// Sends the oldest lost segment again.
    fn repair(&mut self, now: Micros) -> Option<Leaving> {
        let (delivered, delivered_at) = (self.delivered, self.delivered_at);
        let app_limited = self.app_limited_until > 0;
        let first_sent = self.first_sent;
        let segment = self.sent.iter_mut().find(|segment| segment.lost && !segment.repaired)?;
        (segment.repaired, segment.ever_retransmitted, segment.at) = (true, true, now);
        (segment.delivered, segment.delivered_at, segment.first_sent) = (delivered, delivered_at, first_sent);
        segment.app_limited = app_limited;
        let leaving = Leaving { seq: segment.seq, len: segment.len, copy: true };
        self.repaired += 1;
        self.control.on_sent(now, true, false);
        Some(leaving)
    }

    /// Sends a segment for the first time.
    fn send_more(&mut self, now: Micros) -> Option<Leaving> {
        let len = self.waiting.pop_front()?;
        let idle = self.sent.is_empty();
        if idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        self.sent.push_back(Sent {
            seq: self.next,
            len,
            at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            app_limited: self.app_limited_until > 0,
            ever_retransmitted: false,
            lost: false,
            repaired: false,
            arrived: false,
        });
        let leaving = Leaving { seq: self.next, len, copy: false };
        self.next += u64::from(len);
        self.control.on_sent(now, false, idle);
        Some(leaving)
    }

    /// The timer ran out: everything outstanding counts as lost.
    fn time_out(&mut self, now: Micros) {
        let first =
            self.state == State::Open || self.una >= self.high || (self.state == State::Loss && !self.timed_out);
        self.totals.timeouts += 1;
        self.totals.first_timeout.get_or_insert(now);
        let before = self.flight();
        // What is known to have arrived need not be sent again (RFC 6675 section 5.1).
        for segment in &mut self.sent {
            (segment.lost, segment.repaired) = (!segment.arrived, false);
        }
        self.dup = if self.sack { self.dup } else { 0 };
        (self.lost, self.repaired) = (self.sent.len() as u32 - self.dup, 0);
        self.control.on_timeout(now, before, first);
        (self.state, self.high, self.timed_out) = (State::Loss, self.next, true);
        self.timeout.back_off();
        self.pace_from = 0.0;
        self.arm(now);
    }

    /// Starts the timer.
    fn arm(&mut self, now: Micros) {
        let timeout = self.timeout.in_force();
        self.totals.longest_timeout = self.totals.longest_timeout.max(timeout);
        self.alarm = Some(now + timeout);
    }

    /// An acknowledgement came. `duplicate`: it could be one, carrying neither data nor another window; `sacks`: what has
    /// arrived beyond it.
    pub(super) fn acknowledge(&mut self, now: Micros, ack: u64, duplicate: bool, sacks: &[(u64, u64)]) {
        let before_flight = self.flight();
        let mut report = Ack {
            now,
            acked: 0,
            delivered: 0,
            delivered_total: 0,
            lost: 0,
            before: self.state,
            state: self.state,
            before_flight,
            flight: before_flight,
            window_limited: self.window_limited,
            rtt: None,
            delayed: false,
            rate: None,
        };
        if ack > self.una && ack <= self.next {
            let newest = self.take_sacks(ack, sacks, &mut report);
            self.advance(now, ack, newest, &mut report);
        } else if ack == self.una && duplicate && !self.sent.is_empty() {
            let newest = self.take_sacks(ack, sacks, &mut report);
            self.repeat(now, newest, &mut report);
        } else {
            return;
        }
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        report.state = self.state;
        report.flight = self.flight();
        report.delivered_total = self.delivered;
        self.window_limited = false;
        self.control.on_ack(&report);
        if self.control.limits_itself() {
            self.limited_by_application();
        }
    }

    /// Takes off what is acknowledged for the first time.
    fn advance(&mut self, now: Micros, ack: u64, mut newest: Option<Sent>, report: &mut Ack) {
        let (mut oldest, mut last): (Option<Micros>, Option<Sent>) = (None, None);
        let (mut repeated, mut known) = (false, 0);
        while let Some(segment) = self.sent.front() {
            if segment.seq + u64::from(segment.len) > ack {
                break;
            }
            let Some(segment) = self.sent.pop_front() else { break };
            report.acked += 1;
            self.lost -= u32::from(segment.lost);
            self.repaired -= u32::from(segment.repaired);
            repeated |= segment.ever_retransmitted;
            if segment.arrived {
                // It counted when it was told.
                known += 1;
                continue;
            }
            oldest = oldest.or(Some(segment.at));
            last = Sent::newer(last, segment);
        }
        let acked = report.acked;
        self.una = ack;
        if self.sack {
            report.delivered += acked - known;
            self.dup -= known;
        } else {
            report.delivered = acked.saturating_sub(self.dup).max(1);
            self.dup = if self.state == State::Recovery { self.dup.saturating_sub(acked - 1) } else { 0 };
        }
        self.deliver(now, report.delivered);
        if !repeated {
            if let Some(at) = oldest {
                self.timeout.sample(now - at, ack, self.next);
            }
            report.rtt = last.as_ref().map(|segment| now - segment.at);
        }
        report.delayed = acked == 1 && report.before_flight.outstanding == 1;
        newest = last.map_or(newest, |segment| Sent::newer(newest, segment));
        self.sample_rate(now, newest, report);
        self.timed_out = false;
        match self.state {
            State::Open => self.find_lost(now, report),
            State::Recovery | State::Loss if self.sack && ack >= self.high => {
                self.state = State::Open;
                self.find_lost(now, report);
            }
            State::Recovery | State::Loss if ack > self.high => {
                self.state = State::Open;
                self.dup = 0;
            }
            // Held until something beyond is acknowledged: what was sent again without need draws duplicates now, which must
            // not start another repair (RFC 6582 §4.1).
            State::Recovery | State::Loss if ack == self.high => self.dup = 0,
            State::Recovery => {
                // A partial acknowledgement: the next hole is lost as well, with SACK if something behind it has arrived.
                self.find_lost(now, report);
                if !self.sack || self.dup > 0 {
                    report.lost += self.mark_oldest_lost();
                }
            }
            State::Loss => self.find_lost(now, report),
        }
        self.alarm = None;
        if !self.sent.is_empty() {
            self.arm(now);
        }
    }

    /// Notes what has arrived beyond an acknowledgement; gives the one of those segments that left last.
    fn take_sacks(&mut self, ack: u64, sacks: &[(u64, u64)], report: &mut Ack) -> Option<Sent> {
        let mut newest = None;
        for &(from, to) in sacks.iter().filter(|(from, to)| *from >= ack && to <= &self.next) {
            let first = self.sent.partition_point(|segment| segment.seq < from);
            for segment in self.sent.range_mut(first..) {
                if segment.seq + u64::from(segment.len) > to {
                    break;
                }
                if !segment.arrived {
                    newest = Sent::newer(newest, *segment);
                    self.lost -= u32::from(segment.lost);
                    self.repaired -= u32::from(segment.repaired);
                    (segment.lost, segment.repaired, segment.arrived) = (false, false, true);
                    self.dup += 1;
                    report.delivered += 1;
                }
            }
        }
        newest
    }

    /// What three segments have overtaken that arrived is lost (RFC 6675 section 4, `IsLost`), and a repair begins with it.
    fn find_lost(&mut self, now: Micros, report: &mut Ack) {
        if !self.sack || self.dup < DUPLICATES {
            return;
        }
        let (mut overtakers, mut found) = (0, 0);
        for segment in self.sent.iter_mut().rev() {
            if segment.arrived {
                overtakers += 1;
            } else if overtakers >= DUPLICATES && !segment.lost {
                segment.lost = true;
                found += 1;
            }
        }
        self.lost += found;
        report.lost += found;
        if found > 0 && self.state == State::Open {
            self.begin_recovery(now, report);
        }
    }

    fn begin_recovery(&mut self, now: Micros, report: &Ack) {
        (self.state, self.high) = (State::Recovery, self.next);
        self.totals.recoveries += 1;
        self.control.on_recovery(now, report.before_flight);
    }

    /// How fast segments arrive, by the one of them that left last.
    fn sample_rate(&mut self, now: Micros, newest: Option<Sent>, report: &mut Ack) {
        if let Some(segment) = newest {
            let sending = segment.at.saturating_sub(segment.first_sent);
            let acknowledging = now - segment.delivered_at;
            report.rate = Some(RateSample {
                prior_delivered: segment.delivered,
                delivered: self.delivered - segment.delivered,
                interval: sending.max(acknowledging),
                app_limited: segment.app_limited,
            });
            self.first_sent = segment.at;
        }
    }

    /// A duplicate: one more segment arrived somewhere behind a hole.
    fn repeat(&mut self, now: Micros, newest: Option<Sent>, report: &mut Ack) {
        self.totals.duplicate_acks += 1;
        if self.sack {
            self.deliver(now, report.delivered);
            self.sample_rate(now, newest, report);
            self.find_lost(now, report);
            return;
        }
        // After the timer ran out only data sent since then can cause duplicates that mean something.
        if self.state == State::Loss && self.next == self.high {
            return;
        }
        let most = (self.sent.len() as u32).saturating_sub(1);
        if self.dup < most {
            self.dup += 1;
            report.delivered = 1;
            self.deliver(now, 1);
        }
        if self.state == State::Open && self.dup >= DUPLICATES {
            report.lost += self.mark_oldest_lost();
            self.begin_recovery(now, report);
        }
    }

    /// What is under way now says nothing about the bandwidth of the path.
    fn limited_by_application(&mut self) {
        self.app_limited_until = (self.delivered + u64::from(self.flight().pipe)).max(1);
    }

    fn deliver(&mut self, now: Micros, segments: u32) {
        self.delivered += u64::from(segments);
        self.delivered_at = now;
    }

    /// Marks the oldest segment lost, and what was sent of it again too. Gives how many were marked.
    fn mark_oldest_lost(&mut self) -> u32 {
        let Some(segment) = self.sent.front_mut() else { return 0 };
        if segment.lost {
            return 0;
        }
        segment.lost = true;
        self.lost += 1;
        1
    }
}
