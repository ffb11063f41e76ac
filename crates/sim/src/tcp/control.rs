//! The interface between a connection and its congestion control.

use std::fmt::Debug;

use super::Micros;

/// Where loss recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is known to be lost.
    Open,
    /// Repairing what three duplicate acknowledgements said was lost.
    Recovery,
    /// Repairing after the timer ran out.
    Loss,
}

impl State {
    /// Its name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

/// What is under way, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Sent and not acknowledged.
    pub outstanding: u32,
    /// Of those, thought to be in the network: not known to have left it, not marked lost, plus what was sent again.
    pub pipe: u32,
}

/// A delivery-rate sample: how much was delivered while a segment was under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Segments delivered on this connection when that segment left.
    pub prior_delivered: u64,
    /// Segments delivered meanwhile.
    pub delivered: u64,
    /// Over how long, in microseconds: the longer of sending and acknowledging.
    pub interval: Micros,
    /// The application, not the path, was the limit.
    pub app_limited: bool,
}

/// An acknowledgement that was taken in, duplicate or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// When.
    pub now: Micros,
    /// Segments that it acknowledges for the first time; zero for a duplicate.
    pub acked: u32,
    /// Segments known to have arrived because of it.
    pub delivered: u32,
    /// Segments known to have arrived so far.
    pub delivered_total: u64,
    /// Segments marked lost because of it.
    pub lost: u32,
    /// State before.
    pub before: State,
    /// State after.
    pub state: State,
    /// What was under way before it came.
    pub before_flight: Flight,
    /// What is under way now.
    pub flight: Flight,
    /// The window, not the application, held the sender back before it came.
    pub window_limited: bool,
    /// Round-trip time of the newest segment acknowledged, unless it was ever sent again.
    pub rtt: Option<Micros>,
    /// The receiver is likely to have held it back.
    pub delayed: bool,
    /// The delivery rate.
    pub rate: Option<RateSample>,
}

#[cfg(test)]
impl Ack {
    /// Of one segment in order, by a sender that the window held back.
    pub(super) const fn of_one(now: Micros, delivered_total: u64, flight: Flight, rtt: Micros) -> Self {
        Self {
            now,
            acked: 1,
            delivered: 1,
            delivered_total,
            lost: 0,
            before: State::Open,
            state: State::Open,
            before_flight: flight,
            flight,
            window_limited: true,
            rtt: Some(rtt),
            delayed: false,
            rate: None,
        }
    }
}

/// A congestion control: decides how much may be under way and how fast it leaves. Windows are in segments.
///
/// Per acknowledgement, [`on_recovery`](Self::on_recovery) comes first if it starts a repair, then
/// [`on_ack`](Self::on_ack).
pub trait CongestionControl: Debug + Send {
    /// How many segments may be in the network.
    fn window(&self) -> u32;

    /// The slow-start threshold, if there is one.
    fn slow_start_threshold(&self) -> Option<u32> {
        None
    }

    /// Segments per microsecond at which data leaves; none: as fast as the window allows.
    fn pacing(&self) -> Option<f64> {
        None
    }

    /// It keeps less under way than the path takes, on purpose: rates measured now say nothing about the path.
    fn limits_itself(&self) -> bool {
        false
    }

    /// One word for traces.
    fn phase(&self) -> &'static str;

    /// Three duplicate acknowledgements: the oldest segment outstanding was marked lost.
    fn on_recovery(&mut self, now: Micros, flight: Flight);

    /// The timer ran out: everything outstanding was marked lost. `first` is false if it ran out before for the same loss.
    fn on_timeout(&mut self, now: Micros, flight: Flight, first: bool);

    /// An acknowledgement was taken in.
    fn on_ack(&mut self, ack: &Ack);

    /// A segment leaves.
    fn on_sent(&mut self, now: Micros, retransmission: bool, idle: bool) {
        let _ = (now, retransmission, idle);
    }

    /// The handshake is over, after this round-trip time if it was measured. `retried`: a segment of the handshake was lost.
    fn on_open(&mut self, now: Micros, rtt: Option<Micros>, retried: bool);
}
