//! A Wi-Fi hop between clients and the path, as a path says it: the key `wifi`.

use millpond_control::ChanceSeed;
use millpond_link::{Dcf, DcfRules};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{BitRate, InputError, unknown, word_or_table};

/// A channel of IEEE 802.11 that all clients share with their access point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wifi {
    /// What it is like.
    pub standard: Standard,
    /// Rate of the frames of all stations; left out, the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Transmissions of a frame after the first.
    pub retries: u8,
    /// Packets that wait at each station, the one being sent included.
    pub queue: u32,
}

/// A PHY of IEEE 802.11-2016 in the band of 2.4 GHz, without protection frames, RTS, aggregation and block acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standard {
    /// HR/DSSS with the long preamble (clause 16).
    #[serde(rename = "802.11b")]
    B,
    /// ERP-OFDM, all stations alike (clause 18).
    #[serde(rename = "802.11g")]
    G,
    /// HT-mixed, 20 MHz, one stream, guard interval of 800 ns (clause 19).
    #[serde(rename = "802.11n")]
    N,
}

impl Standard {
    const ALL: [(&'static str, Self); 3] = [("802.11b", Self::B), ("802.11g", Self::G), ("802.11n", Self::N)];

    fn read(word: &str) -> Result<Self, String> {
        let names = Self::ALL.map(|(name, _)| name);
        let found = Self::ALL.iter().find(|(name, _)| *name == word);
        found.map(|(_, standard)| *standard).ok_or_else(|| unknown("standard", word, &names))
    }

    /// Rates of frames in kbit/s (tables 16-2, 17-4 and 19-27), the highest last.
    const fn rates(self) -> &'static [u64] {
        match self {
            Self::B => &[1_000, 2_000, 5_500, 11_000],
            Self::G => &[6_000, 9_000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000],
            Self::N => &[6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000],
        }
    }

    /// Of these an acknowledgement has the highest that is no higher than its frame's (clause 10.7): those that all must know.
    const fn basic_rates(self) -> &'static [u64] {
        match self {
            Self::B => &[1_000, 2_000],
            Self::G | Self::N => &[6_000, 12_000, 24_000],
        }
    }
}

/// dot11ShortRetryLimit.
const RETRIES: u8 = 7;
/// Ours.
const QUEUE: u32 = 100;
/// Header and check sequence of MAC, LLC and SNAP: of a data frame, and of one with QoS control.
const DATA: u32 = 24 + 4 + 8;
const QOS_DATA: u32 = DATA + 2;
/// Bytes of an acknowledgement.
const ACK: u32 = 14;

impl Wifi {
    /// The channel that it describes.
    #[must_use]
    pub fn rules(&self) -> DcfRules {
        let rate = self.rate();
        // Table 16-4: short slots are of ERP, where all stations have them (table 18-5).
        let (slot, sifs, cw_min) = if self.standard == Standard::B { (20, 10, 31) } else { (9, 10, 15) };
        let plain = DcfRules {
            slot,
            sifs,
            difs: sifs + 2 * slot,
            cw_min,
            cw_max: 1_023,
            retries: self.retries,
            preamble: 192,
            rate,
            symbol: 1,
            around: 0,
            extension: 0,
            header: DATA,
            ack: 0,
            after_collision: 0,
            room: self.queue,
        };
        // Six bits end the convolutional code, sixteen begin it; 6 us of silence follow.
        let ofdm = DcfRules { preamble: 20, symbol: 4, around: 22, extension: 6, ..plain };
        let (frame, control) = match self.standard {
            Standard::B => (plain, plain),
            Standard::G => (ofdm, ofdm),
            Standard::N => (DcfRules { preamble: 36, header: QOS_DATA, ..ofdm }, ofdm),
        };
        let acknowledgement = |rate: u64| DcfRules { rate, header: 0, ..control }.frame(ACK) as u32;
        let basic = self.standard.basic_rates();
        let answer =
            basic.iter().rev().find(|known| **known * 1_000 <= rate).or(basic.first()).copied().unwrap_or(rate);
        // Who could not read a frame waits for EIFS, as if it were answered at the lowest rate (clause 10.3.7).
        let lowest = basic.first().copied().unwrap_or(answer);
        DcfRules {
            ack: acknowledgement(answer * 1_000),
            after_collision: sifs + acknowledgement(lowest * 1_000),
            ..frame
        }
    }

    /// Bits per second.
    fn rate(&self) -> u64 {
        let highest = self.standard.rates().last().copied().unwrap_or_default() * 1_000;
        self.rate.map_or(highest, |rate| rate.0)
    }

    /// An idle channel.
    #[must_use]
    pub fn channel<P>(&self, seed: ChanceSeed) -> Dcf<P> {
        Dcf::new(self.rules(), seed)
    }

    /// `key` is its place inside `origin`, as errors tell it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub fn check(&self, key: &str, origin: &str) -> Result<(), InputError> {
        let refuse = |name: &str, problem: String| Err(InputError::at_key(origin, &format!("{key}.{name}"), problem));
        let rates = self.standard.rates();
        if !rates.iter().any(|rate| rate * 1_000 == self.rate()) {
            let known: Vec<_> = rates.iter().map(|rate| BitRate(rate * 1_000).to_string()).collect();
            return refuse("rate", format!("{} is no rate of it (known: {})", BitRate(self.rate()), known.join(", ")));
        }
        if !(1..=65_535).contains(&self.queue) {
            return refuse("queue", format!("{} is out of range (1 to 65535 packets)", self.queue));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Wifi {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            standard: Standard,
            #[serde(default)]
            rate: Option<BitRate>,
            #[serde(default)]
            retries: Option<u8>,
            #[serde(default)]
            queue: Option<u32>,
        }
        let word = |word: &str| {
            Standard::read(word).map(|standard| Written { standard, rate: None, retries: None, queue: None })
        };
        let written = word_or_table(deserializer, "a standard such as `802.11g`, or a table with `standard`", word)?;
        let Written { standard, rate, retries, queue } = written;
        Ok(Self { standard, rate, retries: retries.unwrap_or(RETRIES), queue: queue.unwrap_or(QUEUE) })
    }
}
