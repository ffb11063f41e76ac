//! Published controllers by name.

use crate::any::AnyController;

#[cfg(feature = "cocoa")]
use crate::cocoa::{self, Cocoa};
#[cfg(feature = "rfc7252")]
use crate::rfc7252::{self, Rfc7252};

/// A controller as one source describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// `rfc7252`: the timer of RFC 7252 §4.2 and §4.8 (June 2014). No cap.
    #[cfg(feature = "rfc7252")]
    Rfc7252,
    /// `cocoa-03`: CoCoA as in draft-ietf-core-cocoa-03 (February 2018), §4 and App. B: variable backoff chosen anew
    /// at every expiry, gains of RFC 6298, 32 s cap.
    #[cfg(feature = "cocoa")]
    Cocoa03,
    /// `default-fb1`: RFC 7252 with Full Backoff 1, I. Järvinen, I. Raitahila, Z. Cao, M. Kojo: "Is CoAP Congestion
    /// Safe?", ANRW 2018, doi 10.1145/3232755.3232857, §4.2. Backed-off waits end at the 60 s of that paper's
    /// experiments (§3.3).
    #[cfg(feature = "rfc7252")]
    DefaultFb1,
    /// `default-fb2`: RFC 7252 with Full Backoff 2 of the same paper, which halves the kept wait after a clean
    /// exchange. 60 s cap.
    #[cfg(feature = "rfc7252")]
    DefaultFb2,
    /// `cocoa-fb1`: draft-ietf-core-cocoa-03 with Full Backoff 1 of the same paper. 32 s cap.
    #[cfg(feature = "cocoa")]
    CocoaFb1,
    /// `cocoa-fb2`: draft-ietf-core-cocoa-03 with Full Backoff 2 of the same paper, which rebuilds the kept wait from
    /// the larger estimate. 32 s cap.
    #[cfg(feature = "cocoa")]
    CocoaFb2,
}

impl Preset {
    /// Every preset.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "rfc7252")]
        Self::Rfc7252,
        #[cfg(feature = "cocoa")]
        Self::Cocoa03,
        #[cfg(feature = "rfc7252")]
        Self::DefaultFb1,
        #[cfg(feature = "rfc7252")]
        Self::DefaultFb2,
        #[cfg(feature = "cocoa")]
        Self::CocoaFb1,
        #[cfg(feature = "cocoa")]
        Self::CocoaFb2,
    ];

    /// The name by which scenarios call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "rfc7252")]
            Self::Rfc7252 => "rfc7252",
            #[cfg(feature = "cocoa")]
            Self::Cocoa03 => "cocoa-03",
            #[cfg(feature = "rfc7252")]
            Self::DefaultFb1 => "default-fb1",
            #[cfg(feature = "rfc7252")]
            Self::DefaultFb2 => "default-fb2",
            #[cfg(feature = "cocoa")]
            Self::CocoaFb1 => "cocoa-fb1",
            #[cfg(feature = "cocoa")]
            Self::CocoaFb2 => "cocoa-fb2",
        }
    }

    /// Where it is described, in one line.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            #[cfg(feature = "rfc7252")]
            Self::Rfc7252 => "RFC 7252, sections 4.2 and 4.8",
            #[cfg(feature = "cocoa")]
            Self::Cocoa03 => "draft-ietf-core-cocoa-03, section 4 and appendix B",
            #[cfg(feature = "rfc7252")]
            Self::DefaultFb1 => {
                "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 1 over RFC 7252, 60 s cap"
            }
            #[cfg(feature = "rfc7252")]
            Self::DefaultFb2 => {
                "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 2 over RFC 7252, 60 s cap"
            }
            #[cfg(feature = "cocoa")]
            Self::CocoaFb1 => {
                "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 1 over draft-ietf-core-cocoa-03"
            }
            #[cfg(feature = "cocoa")]
            Self::CocoaFb2 => {
                "Is CoAP Congestion Safe? (ANRW 2018), section 4.2: Full Backoff 2 over draft-ietf-core-cocoa-03"
            }
        }
    }

    /// The preset with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.name() == name)
    }

    /// The controller, for a peer about which nothing is known.
    #[must_use]
    pub const fn build(self) -> AnyController {
        match self {
            #[cfg(feature = "rfc7252")]
            Self::Rfc7252 => AnyController::Rfc7252(Rfc7252::new(rfc7252::Parts::RFC7252)),
            #[cfg(feature = "cocoa")]
            Self::Cocoa03 => AnyController::Cocoa(Cocoa::new(cocoa::Parts::DRAFT_03)),
            #[cfg(feature = "rfc7252")]
            Self::DefaultFb1 => AnyController::Rfc7252(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_1)),
            #[cfg(feature = "rfc7252")]
            Self::DefaultFb2 => AnyController::Rfc7252(Rfc7252::new(rfc7252::Parts::FULL_BACKOFF_2)),
            #[cfg(feature = "cocoa")]
            Self::CocoaFb1 => AnyController::Cocoa(Cocoa::new(cocoa::Parts::FULL_BACKOFF_1)),
            #[cfg(feature = "cocoa")]
            Self::CocoaFb2 => AnyController::Cocoa(Cocoa::new(cocoa::Parts::FULL_BACKOFF_2)),
        }
    }
}
