//! What one chapter of a capture says.

use crate::doubts::Doubt;
use crate::exchanges::Exchange;
use crate::figure::Figure;
use crate::judgement::{Judged, Judgements, Verdict};
use crate::presets::Presets;
use crate::rhythm::Rhythm;
use crate::timers::Timers;

/// What a link's packets say.
#[derive(Clone, Debug)]
pub(crate) struct LinkFigures {
    pub rate_bps: Figure,
    pub buffer_bytes: Figure,
    pub loss: Figure,
}

/// What one chapter says.
#[derive(Debug)]
pub(crate) struct Findings {
    /// By exchange and transmission.
    pub judged: Vec<Judgements>,
    pub uplink: LinkFigures,
    pub downlink: LinkFigures,
    pub base_rtt_s: Figure,
    pub timers: Timers,
    pub presets: Presets,
    /// Exchanges that a device has open at once, if answers and what follows them say so.
    pub open: Option<usize>,
    pub rhythm: Option<Rhythm>,
    /// Devices ask again as soon as they are answered.
    pub closed_loop: bool,
    /// Bytes of answers that were of use and all that the downlink carried.
    pub useful_bytes: f64,
    pub carried_bytes: f64,
    /// The uplink may be saturated and its queue is not seen: health cannot be told.
    pub hidden_strain: bool,
    pub doubts: Vec<Doubt>,
}

/// How retransmissions were judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub transmissions: u64,
    pub spurious: u64,
    pub needed: u64,
    pub unknown: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, judged: &[Judged]) {
        self.transmissions += judged.len() as u64;
        for one in judged {
            match one.verdict {
                Verdict::First => {}
                Verdict::Spurious => self.spurious += 1,
                Verdict::Needed => self.needed += 1,
                Verdict::Unknown => self.unknown += 1,
            }
        }
    }

    pub(crate) fn retransmissions(&self) -> u64 {
        self.spurious + self.needed + self.unknown
    }
}

/// Bytes of answers of which one each was of use, and of all of them.
pub(crate) fn bytes_of_answers(exchanges: &[Exchange]) -> (f64, f64) {
    let answered = || exchanges.iter().filter(|exchange| !exchange.answered.is_empty());
    let useful = answered().map(|exchange| f64::from(exchange.answer_bytes)).sum();
    let all = answered().map(|exchange| f64::from(exchange.answer_bytes) * exchange.answered.len() as f64).sum();
    (useful, all)
}
