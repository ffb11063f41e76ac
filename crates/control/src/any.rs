//! One type for every built-in controller.

use crate::{
    controller::{Admit, Class, Controller, Cx, End, Exchange, View, Wait, Wishes},
    evidence::Sample,
    setting::{Setting, SettingError, SettingValue},
    time::Span,
};

#[cfg(feature = "cocoa")]
use crate::cocoa::Cocoa;
#[cfg(feature = "rfc7252")]
use crate::rfc7252::Rfc7252;

/// Any built-in controller. Each variant stands behind a cargo feature of the same name.
///
/// A controller from outside is held as `dyn` [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyController {
    /// The timer of RFC 7252, with or without Full Backoff.
    #[cfg(feature = "rfc7252")]
    Rfc7252(Rfc7252),
    /// CoCoA, with or without Full Backoff.
    #[cfg(feature = "cocoa")]
    Cocoa(Cocoa),
}

/// Calls the same method on whichever controller is inside.
macro_rules! each {
    ($any:expr, $inner:ident => $call:expr) => {
        match $any {
            #[cfg(feature = "rfc7252")]
            AnyController::Rfc7252($inner) => $call,
            #[cfg(feature = "cocoa")]
            AnyController::Cocoa($inner) => $call,
        }
    };
}

impl AnyController {
    /// Sets a parameter by name, meant for before the first use: what was already learnt stays as it is.
    ///
    /// # Errors
    ///
    /// [`SettingError`] if this controller has no such parameter, or if the value is of another kind or out of range;
    /// nothing changes then.
    pub fn set(&mut self, name: &str, value: SettingValue<'_>) -> Result<(), SettingError> {
        let unknown = SettingError::Unknown { legal: self.settings() };
        let setting = Setting::from_name(name).filter(|setting| self.settings().contains(setting)).ok_or(unknown)?;
        each!(self, inner => inner.set(setting, value))
    }

    /// The parameters that this controller has.
    #[must_use]
    pub const fn settings(&self) -> &'static [Setting] {
        match self {
            #[cfg(feature = "rfc7252")]
            Self::Rfc7252(_) => Rfc7252::SETTINGS,
            #[cfg(feature = "cocoa")]
            Self::Cocoa(_) => Cocoa::SETTINGS,
        }
    }
}

impl Controller for AnyController {
    fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
        each!(self, inner => inner.admit(class, len, cx))
    }

    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        each!(self, inner => inner.on_start(exchange, len, cx))
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        each!(self, inner => inner.on_timeout(exchange, cx))
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        each!(self, inner => inner.on_reply(exchange, sample, cx));
    }

    fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
        each!(self, inner => inner.on_end(exchange, why, cx));
    }

    fn on_plain_send(&mut self, len: u16, cx: Cx) {
        each!(self, inner => inner.on_plain_send(len, cx));
    }

    fn wishes(&self) -> Wishes {
        each!(self, inner => inner.wishes())
    }

    fn view(&self) -> View {
        each!(self, inner => inner.view())
    }

    fn shortest_wait(&self) -> Span {
        each!(self, inner => inner.shortest_wait())
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        each!(self, inner => inner.longest_wait(copy, previous))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preset;

    #[test]
    fn controllers_stay_small() {
        #[cfg(all(feature = "rfc7252", feature = "cocoa"))]
        assert_eq!(size_of::<AnyController>(), 88);
        assert!(size_of::<AnyController>() <= 96);
        #[cfg(feature = "rfc7252")]
        assert_eq!(size_of::<Rfc7252>(), 20);
        #[cfg(feature = "cocoa")]
        assert_eq!(size_of::<Cocoa>(), 88);
    }

    #[test]
    fn a_controller_can_be_copied_between_threads() {
        const fn wanted<T: Copy + Send + Sync + 'static>() {}
        wanted::<AnyController>();
    }

    #[test]
    fn presets_are_found_by_their_names_alone() {
        for preset in Preset::ALL {
            assert_eq!(Preset::from_name(preset.name()), Some(*preset));
            assert!(!preset.source().is_empty());
        }
        assert_eq!(Preset::from_name("cocoa"), None);
        assert_eq!(Preset::from_name(""), None);
    }

    #[test]
    fn presets_differ() {
        for (i, one) in Preset::ALL.iter().enumerate() {
            for other in Preset::ALL.iter().skip(i.saturating_add(1)) {
                assert_ne!(one.build(), other.build());
                assert_ne!(one.name(), other.name());
            }
        }
    }
}
