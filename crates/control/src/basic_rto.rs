//! Basic RTO: one and a half times the last round-trip time, smoothed by nothing.
//!
//! It comes from Eclipse Californium 4 (`BasicRto`) and from no paper. It accepts ambiguous samples by design, which
//! RFC 8961 §4 (2d) forbids; it is here to be compared with.

use crate::{
    backoff::Factor,
    blind::Blind,
    estimator::GRANULARITY,
    evidence::{Evidence, Sample},
    frame::{Frame, Framed, Keep, Timer},
    layout::laid_out,
    preset::presets,
    setting::{Place, Setting, SettingConflict},
    time::Span,
};

/// One peer under Basic RTO.
pub type BasicRto = Framed<Basic>;

/// The timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basic {
    /// Zero before the first sample.
    timeout: Span,
    /// An exchange with more retransmissions than this is no sample.
    pub most_retransmissions: u8,
}

laid_out!(Basic { timeout, most_retransmissions });

impl Basic {
    /// As Californium 4 runs it: exchanges with up to two retransmissions are samples.
    pub const CALIFORNIUM_4: Self = Self { timeout: Span::ZERO, most_retransmissions: 2 };

    /// Californium 4 leaves everything out of the frame but doubling up to 60 s.
    pub const FRAME: Frame = Frame {
        longest_estimate: Span::from_secs(60),
        blind: Blind::Plain,
        keep: Keep::Nothing,
        ..Frame::CALIFORNIUM_1
    };
}

presets! { BasicRto {
    BASIC_RTO = 96, (Basic::FRAME, Basic::CALIFORNIUM_4), {
        name: "basic-rto",
        label: "Basic RTO",
        source: "Eclipse Californium 4 (BasicRto); no paper",
        readings: &["D2", "D3", "D5", "D9", "E13", "E14"],
        summary: "one and a half times the last round-trip time, counted from the first copy up to two retransmissions",
    };
} }

impl Timer for Basic {
    fn timeout(&self) -> Option<Span> {
        (self.timeout > Span::ZERO).then_some(self.timeout)
    }

    /// Clean or not, the time counts from the first copy.
    fn learn(&mut self, sample: Sample) {
        if sample.evidence() != Evidence::None && sample.retransmissions() <= self.most_retransmissions {
            let rtt = sample.since_first().max(GRANULARITY);
            self.timeout = Factor::ONE_AND_A_HALF.times(rtt);
        }
    }
}

impl BasicRto {
    /// The parameters that it has.
    pub const SETTINGS: &[Setting] = {
        let [a, b, c, d, e, f, g] = Frame::SETTINGS;
        &[a, b, c, d, e, f, g, Setting::WeakRetransmissions]
    };

    pub(crate) fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
        Some(match setting {
            Setting::WeakRetransmissions => Place::Count(&mut self.timer.most_retransmissions),
            _ => return self.frame_mut().place(setting),
        })
    }

    pub(crate) fn check(&self) -> Result<(), SettingConflict> {
        self.frame().check()
    }
}
