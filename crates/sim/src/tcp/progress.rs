//! What a sending half reports of itself.

use super::{Flight, Micros, State};

/// Counts of one sending half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments with data that left, copies included.
    pub segments: u64,
    /// Of those, copies.
    pub retransmissions: u64,
    /// Of the copies, those sent after the timer had run out.
    pub timeout_retransmissions: u64,
    /// Times that the timer ran out.
    pub timeouts: u64,
    /// When it ran out first, in microseconds.
    pub first_timeout: Option<Micros>,
    /// Repairs after three duplicate acknowledgements.
    pub recoveries: u64,
    /// Duplicate acknowledgements that came in.
    pub duplicate_acks: u64,
    /// The longest timeout that was in force while data was under way, in microseconds.
    pub longest_timeout: Micros,
}

/// How a sending half stands, for traces. Windows in segments, times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The congestion window.
    pub window: u32,
    /// The slow-start threshold.
    pub threshold: Option<u32>,
    /// The state of loss recovery.
    pub state: State,
    /// The congestion control's own word for its state.
    pub phase: &'static str,
    /// Segments per second, if data is paced.
    pub pacing: Option<f64>,
    /// The retransmission timeout in force.
    pub timeout: Micros,
    /// The smoothed round-trip time.
    pub srtt: Option<Micros>,
    /// What is under way.
    pub flight: Flight,
}
