//! What a connection is made of.

use super::{Bbr, CongestionControl, Cubic, NewReno, Recovery};

/// Parameters of one end of a connection. Times are in microseconds, windows in segments, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longest payload of a segment.
    pub mss: u32,
    /// IP and TCP header of a segment.
    pub header: u32,
    /// The same of a segment that opens the connection: its options come on top.
    pub syn_header: u32,
    /// Segments that may leave before the first acknowledgement (RFC 3390).
    pub initial_window: u32,
    /// Bytes that the receiver has room for.
    pub receive_window: u64,
    /// The retransmission timer.
    pub timing: Timing,
    /// When acknowledgements leave.
    pub acks: DelayedAcks,
    /// Acknowledgements say what has arrived beyond a gap (RFC 2018).
    pub sack: bool,
    /// The congestion control.
    pub control: Control,
    /// Copies of a segment that opens the connection, after the first.
    pub syn_retries: u8,
}

impl Config {
    /// The parameters of the long-lived connections of the MSc thesis on CoAP over TCP (University of Helsinki, 2020), chapter 4:
    /// MTU 296 B, initial window 4, first timeout 2 s, longest 120 s.
    pub const HELSINKI: Self = Self {
        mss: 256,
        header: 40,
        syn_header: 48,
        initial_window: 4,
        receive_window: 1_000_000,
        timing: Timing { rule: TimerRule::Linux, initial: 2_000_000, min: 200_000, max: 120_000_000 },
        acks: DelayedAcks::AS_PRINTED,
        sack: false,
        control: Control::NewReno(Recovery::RateHalving),
        syn_retries: 40,
    };
}

/// How the retransmission timer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerRule {
    /// RFC 6298: the least is a floor under the whole timeout.
    Rfc6298,
    /// Linux: the variation is the largest of a round trip and falls slowly; the least is a floor under its term.
    Linux,
}

/// The retransmission timer. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Which rule.
    pub rule: TimerRule,
    /// Timeout before any sample, and of the segment that opens the connection.
    pub initial: u64,
    /// The least, as the rule means it.
    pub min: u64,
    /// The longest timeout.
    pub max: u64,
}

/// When a receiver acknowledges segments that come in order. What is out of order, or fills a gap, is acknowledged at
/// once. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAcks {
    /// How long an acknowledgement may wait.
    pub timer: u64,
    /// Every so many full segments are acknowledged at once.
    pub every: u32,
    /// So many segments in order are treated by `timer` and `every` alone.
    pub first_segments: u32,
    /// How long an acknowledgement may wait after those.
    pub later_timer: u64,
}

impl DelayedAcks {
    /// Every second segment, or after 200 ms: what the thesis on CoAP over TCP (University of Helsinki, 2020) states.
    pub const AS_PRINTED: Self = Self { timer: 200_000, every: 2, first_segments: u32::MAX, later_timer: 200_000 };
    /// The first four segments in order as printed, those after them within 40 ms: the least delay of an unmodified Linux
    /// receiver.
    pub const LINUX: Self = Self { first_segments: 4, later_timer: 40_000, ..Self::AS_PRINTED };
}

/// A congestion control by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// New Reno.
    NewReno(Recovery),
    /// CUBIC.
    Cubic(Recovery),
    /// CUBIC as Linux has it.
    LinuxCubic(Recovery),
    /// BBR version 1; the number seeds the phase in which probing starts.
    Bbr(u64),
}

impl Control {
    /// The congestion control for a new connection.
    pub(super) fn build(self, initial_window: u32, mss: u32) -> Box<dyn CongestionControl> {
        match self {
            Self::NewReno(recovery) => Box::new(NewReno::new(initial_window, recovery)),
            Self::Cubic(recovery) => Box::new(Cubic::new(initial_window, recovery)),
            Self::LinuxCubic(recovery) => Box::new(Cubic::linux(initial_window, recovery)),
            Self::Bbr(seed) => Box::new(Bbr::new(initial_window, mss, seed)),
        }
    }
}
