//! CoCoA as its sources have it.

use super::{Branch, Cocoa, LearnsFrom, Parts};
use crate::{
    ageing::Ageing,
    backoff::{Basis, Factor, Variable},
    blind::Blind,
    carry::Carry,
    dither::Dither,
    estimator::{Gains, Share},
    preset::presets,
    time::Span,
};

impl Parts {
    /// draft-ietf-core-cocoa-03 §4: strong K = 4 and share 1/2, weak K = 1 and share 1/4 for one or two
    /// retransmissions; variable backoff 3 / 2 / 1.5 at every expiry up to 32 s; gains of RFC 6298.
    pub const DRAFT_03: Self = Self {
        ack_timeout: Span::from_secs(2),
        longest_estimate: Span::from_secs(32),
        backoff: Variable::COCOA_03,
        dither: Dither::RFC7252,
        gains: Gains::RFC6298,
        strong: Branch { k: 4, share: Share::HALF },
        weak: Branch { k: 1, share: Share::QUARTER },
        learns_from: LearnsFrom::Copies,
        weak_retransmissions: 2,
        blind: Blind::PerOpen,
        ageing: Ageing::Draft03,
        carry: Carry::None,
    };

    /// The same with Full Backoff 1 ("Is CoAP Congestion Safe?", ANRW 2018, §4.2).
    pub const FULL_BACKOFF_1: Self = Self { carry: Carry::FullBackoff1, ..Self::DRAFT_03 };

    /// The same with Full Backoff 2 (same source).
    pub const FULL_BACKOFF_2: Self = Self { carry: Carry::FullBackoff2, ..Self::DRAFT_03 };

    /// CoCoA-S (Eclipse Californium calls it `CocoaStrong`): no sample from an exchange with retransmissions.
    pub const STRONG_ONLY: Self = Self { weak_retransmissions: 0, ..Self::DRAFT_03 };

    /// draft-bormann-core-cocoa-00 (2012), as "CoCoA+" (2015), §2, describes it, and as
    /// draft-bormann-core-cocoa-01 where that is silent: doubling up to 32 s; K = 4 and share 1/2 for both estimators,
    /// whatever the number of copies; estimates below 1 s age to 1 s.
    pub const DRAFT_00: Self = Self {
        backoff: Variable { low: Factor::TWO, middle: Factor::TWO, high: Factor::TWO, ..Variable::COCOA_03 },
        weak: Branch { k: 4, share: Share::HALF },
        weak_retransmissions: u8::MAX,
        blind: Blind::Doubling,
        ageing: Ageing::Cocoa00,
        ..Self::DRAFT_03
    };

    /// CoCoA+ (2015), §3: one factor of 3 / 2 / 1.3 for the whole exchange, chosen by its first wait; no cap; weak
    /// samples after one retransmission only; estimates above 2 s age as well.
    pub const COCOA_PLUS: Self = Self {
        longest_estimate: Span::MAX,
        backoff: Variable {
            high: Factor::from_thousandths(1_300),
            cap: Span::MAX,
            basis: Basis::FirstWait,
            ..Variable::COCOA_03
        },
        weak_retransmissions: 1,
        blind: Blind::Doubling,
        ageing: Ageing::CocoaPlus,
        ..Self::DRAFT_03
    };

    /// CoCoA as Eclipse Californium 1 and 2 run it, with weak samples after up to 20 retransmissions (L. Aldana Parra,
    /// 2019, §3.2): gains swapped, one factor for the whole exchange, chosen by the estimate, waits up to 60 s.
    pub const WEAK_ALL: Self = Self {
        backoff: Variable { cap: Span::from_secs(60), basis: Basis::Estimate, ..Variable::COCOA_03 },
        gains: Gains::SWAPPED,
        weak_retransmissions: 20,
        ..Self::DRAFT_03
    };

    /// The same where answers name the copy by its time (same source, §4.2.5).
    pub const ECHO: Self = Self { learns_from: LearnsFrom::Echo, weak_retransmissions: 0, ..Self::WEAK_ALL };

    /// The same where answers name the copy by its number (same source, §7.2.1).
    pub const NUMBER: Self = Self { learns_from: LearnsFrom::Number, ..Self::ECHO };

    /// The same where answers distinguish a retransmission from the first transmission (same source, §7.2.2).
    pub const FLAG: Self = Self { learns_from: LearnsFrom::Flag, ..Self::ECHO };
}

presets! { Cocoa {
    COCOA_00 = 16, Parts::DRAFT_00, {
        name: "cocoa-00",
        label: "CoCoA draft 0",
        source: "draft-bormann-core-cocoa-00 (2012), as \"CoCoA+\" (Ad Hoc Networks 33, 2015), section 2, describes it",
        readings: &["D1", "D2", "D3", "D4", "D5", "D9", "E2", "E14", "E15"],
        summary: "doubling up to 32 s; weak samples count as much as strong ones, after any number of copies",
    };
    COCOA_PLUS = 17, Parts::COCOA_PLUS, {
        name: "cocoa-plus",
        label: "CoCoA+",
        source: "CoCoA+: An Advanced Congestion Control Mechanism for CoAP (Ad Hoc Networks 33, 2015), section 3",
        readings: &["D1", "D2", "D3", "D4", "D5", "D7", "E3", "E14", "E15"],
        summary: "one factor of 3, 2 or 1.3 for each exchange, no cap, weak samples after one retransmission only",
    };
    COCOA_03 = 18, Parts::DRAFT_03, {
        name: "cocoa-03",
        label: "CoCoA",
        source: "draft-ietf-core-cocoa-03, section 4 and appendix B",
        readings: &["D1", "D2", "D3", "D4", "D5", "D8", "D9", "D10", "E14", "E15"],
        summary: "a factor of 3, 2 or 1.5 chosen at every expiry, up to 32 s; weak samples up to two retransmissions",
    };
    COCOA_S = 19, Parts::STRONG_ONLY, {
        name: "cocoa-s",
        label: "CoCoA-S",
        source: "Eclipse Californium (CocoaStrong) over draft-ietf-core-cocoa-03",
        readings: &["D1", "D2", "D3", "D4", "D5", "D8", "D9", "D10", "E4", "E14", "E15"],
        summary: "cocoa-03 without weak samples",
    };
    COCOA_WEAK_ALL = 20, Parts::WEAK_ALL, {
        name: "cocoa-weak-all",
        label: "modified CoCoA",
        source: "L. Aldana Parra: Advanced Congestion Control Mechanisms for Internet of Things (2019), section 3.2",
        readings: &["D1", "D2", "D3", "D4", "D5", "D9", "D10", "D11", "E1", "E5", "E14", "E15"],
        summary: "CoCoA as Eclipse Californium runs it, with weak samples up to 20 retransmissions",
    };
    COCOA_ECHO = 21, Parts::ECHO, {
        name: "cocoa-echo",
        label: "CoCoA, echoed times",
        source: "L. Aldana Parra: Advanced Congestion Control Mechanisms for Internet of Things (2019), section 4.2.5",
        readings: &["D1", "D2", "D3", "D4", "D5", "D9", "D10", "E1", "E6", "E14", "E15"],
        summary: "copies carry the time they left; every answer that names one is a strong sample",
    };
    COCOA_NUMBER = 22, Parts::NUMBER, {
        name: "cocoa-number",
        label: "CoCoA, echoed numbers",
        source: "L. Aldana Parra: Advanced Congestion Control Mechanisms for Internet of Things (2019), section 7.2.1",
        readings: &["D1", "D2", "D3", "D4", "D5", "D9", "D10", "E1", "E7", "E14", "E15"],
        summary: "copies carry their number; an answer to the first one after retransmissions means congestion",
    };
    COCOA_FLAG = 23, Parts::FLAG, {
        name: "cocoa-flag",
        label: "CoCoA, echoed flag",
        source: "L. Aldana Parra: Advanced Congestion Control Mechanisms for Internet of Things (2019), section 7.2.2",
        readings: &["D1", "D2", "D3", "D4", "D5", "D9", "D10", "D12", "E1", "E7", "E8", "E14", "E15"],
        summary: "one bit tells a retransmission from the first; congestion as in cocoa-number, else a guess",
    };
    COCOA_FB1 = 24, Parts::FULL_BACKOFF_1, {
        name: "cocoa-fb1",
        label: "CoCoA + Full Backoff 1",
        source: "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 1 over draft-ietf-core-cocoa-03",
        readings: &["D1", "D2", "D3", "D4", "D5", "D8", "D9", "D10", "E14", "E15"],
        summary: "cocoa-03 that keeps a backed-off wait until an answer comes without a retransmission",
    };
    COCOA_FB2 = 25, Parts::FULL_BACKOFF_2, {
        name: "cocoa-fb2",
        label: "CoCoA + Full Backoff 2",
        source: "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 2 over draft-ietf-core-cocoa-03",
        readings: &["D1", "D2", "D3", "D4", "D5", "D8", "D9", "D10", "D14", "E14", "E15"],
        summary: "cocoa-03 that keeps a wait rebuilt from the larger estimate until an answer comes without a retransmission",
    };
} }
