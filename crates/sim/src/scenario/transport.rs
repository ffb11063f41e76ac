//! What carries a group's requests: datagrams, or a stream of TCP with its parameters.

use std::fmt;

use millpond_path::word_or_table;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Duration, ScenarioError, Size};
use crate::tcp;

/// What carries requests and responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// UDP: every exchange is its own, under a congestion controller (RFC 7252).
    #[default]
    Udp,
    /// TCP: a connection that brings its own congestion control (RFC 8323).
    Tcp(Tcp),
}

/// Parameters of the connections of a group, the same at both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// The congestion control.
    pub congestion: Congestion,
    /// How New Reno and CUBIC repair losses; as a rule by rate halving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Acknowledgements say what has arrived beyond a gap (RFC 2018), and repairs go by that (RFC 6675).
    #[serde(skip_serializing_if = "is_not")]
    pub sack: bool,
    /// When acknowledgements leave.
    pub delayed_acks: DelayedAcks,
    /// How the retransmission timeout is computed.
    pub rto: TimerRule,
    /// Timeout before any sample.
    pub rto_initial: Duration,
    /// The least timeout, as the rule means it; 200 ms for `linux`, 1 s for `rfc6298`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_min: Option<Duration>,
    /// The longest timeout.
    pub rto_max: Duration,
    /// Longest payload of a segment.
    pub mss: Size,
    /// Segments that may leave before the first acknowledgement.
    pub initial_window: u32,
    /// What a receiver has room for.
    pub receive_window: Size,
    /// Copies of an opening segment after the first.
    pub syn_retries: u8,
    /// A connection is opened so long before the first request on it.
    pub open_ahead: Duration,
}

/// A congestion control of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681 and RFC 6582.
    #[default]
    NewReno,
    /// RFC 9438.
    Cubic,
    /// CUBIC as Linux has it.
    LinuxCubic,
    /// BBR version 1.
    Bbr,
}

/// How New Reno and CUBIC repair losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Proportional rate reduction (RFC 6937), as Linux does.
    RateHalving,
    /// The window grows with every duplicate acknowledgement (RFC 6582).
    Inflation,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayedAcks {
    /// Every second segment, or after 200 ms.
    #[default]
    AsPrinted,
    /// The same for the first four segments, then within 40 ms.
    Linux,
}

/// How the retransmission timeout is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerRule {
    /// As Linux does: the variation is the largest of a round trip and falls slowly; the least is a floor under its term.
    #[default]
    Linux,
    /// To the letter of RFC 6298: the least is a floor under the whole timeout.
    Rfc6298,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_not(is: &bool) -> bool {
    !is
}

impl Default for Tcp {
    /// The parameters of [`tcp::Config::HELSINKI`], opened when the first request is due.
    fn default() -> Self {
        let config = tcp::Config::HELSINKI;
        Self {
            congestion: Congestion::default(),
            recovery: None,
            sack: false,
            delayed_acks: DelayedAcks::default(),
            rto: TimerRule::default(),
            rto_initial: Duration(config.timing.initial),
            rto_min: None,
            rto_max: Duration(config.timing.max),
            mss: Size(u64::from(config.mss)),
            initial_window: config.initial_window,
            receive_window: Size(config.receive_window),
            syn_retries: config.syn_retries,
            open_ahead: Duration(0),
        }
    }
}

/// Bytes that the header of a segment has more than that of a datagram: 20 for TCP instead of 8 for UDP.
pub(crate) const SEGMENT_OVER_DATAGRAM: u32 = 12;
/// Options of a segment that opens a connection.
const SYN_OPTIONS: u64 = 8;

impl Tcp {
    /// One end of a connection, with `header` bytes of IP and UDP header for a datagram of the same path.
    pub(crate) fn config(&self, header: Size, seed: u64) -> tcp::Config {
        let header = header.0 + u64::from(SEGMENT_OVER_DATAGRAM);
        let rule = match self.rto {
            TimerRule::Linux => tcp::TimerRule::Linux,
            TimerRule::Rfc6298 => tcp::TimerRule::Rfc6298,
        };
        let recovery = match self.recovery {
            Some(Recovery::Inflation) => tcp::Recovery::Inflation,
            Some(Recovery::RateHalving) | None => tcp::Recovery::RateHalving,
        };
        tcp::Config {
            mss: self.mss.0 as u32,
            header: header as u32,
            syn_header: (header + SYN_OPTIONS) as u32,
            initial_window: self.initial_window,
            receive_window: self.receive_window.0,
            timing: tcp::Timing { rule, initial: self.rto_initial.0, min: self.least_rto().0, max: self.rto_max.0 },
            acks: match self.delayed_acks {
                DelayedAcks::AsPrinted => tcp::DelayedAcks::AS_PRINTED,
                DelayedAcks::Linux => tcp::DelayedAcks::LINUX,
            },
            sack: self.sack,
            control: match self.congestion {
                Congestion::Bbr => tcp::Control::Bbr(seed),
                Congestion::NewReno => tcp::Control::NewReno(recovery),
                Congestion::Cubic => tcp::Control::Cubic(recovery),
                Congestion::LinuxCubic => tcp::Control::LinuxCubic(recovery),
            },
            syn_retries: self.syn_retries,
        }
    }

    /// Bytes of a segment on a path with so many bytes of header for a datagram.
    pub(crate) fn length(&self, header: u64, segment: &tcp::Segment) -> u32 {
        let options = if segment.opens() { SYN_OPTIONS } else { 0 };
        (header + options) as u32 + SEGMENT_OVER_DATAGRAM + segment.sack_bytes() + segment.payload.len() as u32
    }

    /// Bytes of a full segment on that path.
    pub(crate) fn full_segment(&self, header: u64) -> u32 {
        (header + self.mss.0) as u32 + SEGMENT_OVER_DATAGRAM
    }

    fn least_rto(&self) -> Duration {
        self.rto_min.unwrap_or(match self.rto {
            TimerRule::Linux => Duration(200_000),
            TimerRule::Rfc6298 => Duration(1_000_000),
        })
    }

    pub(super) fn check(&self, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        if self.congestion == Congestion::Bbr && self.recovery.is_some() {
            return refuse("recovery", "bbr repairs in its own way: leave this key out".to_owned());
        }
        if self.sack && self.recovery == Some(Recovery::Inflation) {
            let problem = "a window is inflated where nobody tells what has arrived: leave this key out, or `sack`";
            return refuse("recovery", problem.to_owned());
        }
        if !(16..=65_000).contains(&self.mss.0) {
            return refuse("mss", format!("{} is out of range (16 B to 65000 B)", self.mss));
        }
        if !(1..=1_000).contains(&self.initial_window) {
            return refuse("initial_window", format!("{} is out of range (1 to 1000 segments)", self.initial_window));
        }
        if !(self.mss.0..=1 << 30).contains(&self.receive_window.0) {
            let problem = format!("{} is out of range (one segment to 1 GiB)", self.receive_window);
            return refuse("receive_window", problem);
        }
        let longest = Duration(u64::from(u32::MAX));
        for (name, time) in [("rto_initial", self.rto_initial), ("rto_max", self.rto_max)] {
            if !(Duration(1_000)..=longest).contains(&time) {
                return refuse(name, format!("{time} is out of range (1 ms to {longest})"));
            }
        }
        if self.rto_initial > self.rto_max || self.least_rto() > self.rto_max {
            return refuse("rto_max", format!("{} is less than a timeout that it should bound", self.rto_max));
        }
        if self.open_ahead > longest {
            return refuse("open_ahead", format!("{} is too long (at most {longest})", self.open_ahead));
        }
        Ok(())
    }
}

impl fmt::Display for Tcp {
    /// The congestion control, with what differs from its defaults behind it: `tcp-new-reno (delayed_acks linux)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        f.write_str(match self.congestion {
            Congestion::NewReno => "tcp-new-reno",
            Congestion::Cubic => "tcp-cubic",
            Congestion::LinuxCubic => "tcp-linux-cubic",
            Congestion::Bbr => "tcp-bbr",
        })?;
        let mut told = Vec::new();
        if self.recovery == Some(Recovery::Inflation) {
            told.push("recovery inflation".to_owned());
        }
        if self.sack {
            told.push("sack".to_owned());
        }
        if self.delayed_acks == DelayedAcks::Linux {
            told.push("delayed_acks linux".to_owned());
        }
        if self.rto == TimerRule::Rfc6298 {
            told.push("rto rfc6298".to_owned());
        }
        let mut tell = |name: &str, differs: bool, value: String| {
            if differs {
                told.push(format!("{name} {value}"));
            }
        };
        tell("rto_initial", self.rto_initial != usual.rto_initial, self.rto_initial.to_string());
        let least = Self { rto_min: None, ..self.clone() }.least_rto();
        tell("rto_min", self.least_rto() != least, self.least_rto().to_string());
        tell("rto_max", self.rto_max != usual.rto_max, self.rto_max.to_string());
        tell("mss", self.mss != usual.mss, self.mss.to_string());
        tell("initial_window", self.initial_window != usual.initial_window, self.initial_window.to_string());
        tell("receive_window", self.receive_window != usual.receive_window, self.receive_window.to_string());
        if told.is_empty() { Ok(()) } else { write!(f, " ({})", told.join(", ")) }
    }
}

impl Transport {
    pub(crate) fn is_udp(&self) -> bool {
        *self == Self::Udp
    }

    /// The parameters, if it is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<&Tcp> {
        match self {
            Self::Udp => None,
            Self::Tcp(tcp) => Some(tcp),
        }
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.is_udp() { "udp" } else { "tcp" }
    }
}

/// As a table.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Written {
    Udp {},
    Tcp(Tcp),
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| match word {
            "udp" => Ok(Written::Udp {}),
            "tcp" => Ok(Written::Tcp(Tcp::default())),
            _ => Err(super::unknown("transport", word, &["udp", "tcp"])),
        };
        let written = word_or_table(deserializer, "`udp`, `tcp`, or a table with the key `kind`", word)?;
        Ok(match written {
            Written::Udp {} => Self::Udp,
            Written::Tcp(tcp) => Self::Tcp(tcp),
        })
    }
}

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Udp => serializer.serialize_str("udp"),
            Self::Tcp(tcp) => Written::Tcp(tcp.clone()).serialize(serializer),
        }
    }
}
