//! One type for every built-in controller, and the one list of them.

use crate::{
    controller::{Admit, Class, Controller, Cx, End, Exchange, View, Wait, Wishes},
    evidence::Sample,
    feedback::Feedback,
    preset::{Preset, Text},
    setting::{Place, Setting, SettingConflict, SettingError, SettingValue},
    time::Span,
};

/// Makes the enum of all families and everything that only passes a call on to the one inside.
macro_rules! families {
    ($($(#[$doc:meta])* $feature:literal => $module:ident::$family:ident,)*) => {
        /// Any built-in controller. Each variant stands behind a cargo feature of the same name.
        ///
        /// A controller from outside is held as `dyn` [`Controller`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum AnyController {
            $($(#[$doc])* #[cfg(feature = $feature)] $family(crate::$module::$family),)*
        }

        /// Which of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Family {
            $(#[cfg(feature = $feature)] $family,)*
        }

        #[allow(unused_variables, reason = "without any algorithm there is nothing to ask")]
        impl Family {
            pub(crate) const ALL: &[Self] = &[$(#[cfg(feature = $feature)] Self::$family),*];

            pub(crate) const fn presets(self) -> &'static [Preset] {
                match self { $(#[cfg(feature = $feature)] Self::$family => crate::$module::$family::PRESETS,)* }
            }

            pub(crate) const fn name(self) -> &'static str {
                match self { $(#[cfg(feature = $feature)] Self::$family => stringify!($module),)* }
            }

            pub(crate) const fn build(self, preset: Preset) -> AnyController {
                match self {
                    $(#[cfg(feature = $feature)]
                    Self::$family => AnyController::$family(crate::$module::$family::published(preset)),)*
                }
            }

            pub(crate) const fn text(self, preset: Preset) -> &'static Text {
                match self { $(#[cfg(feature = $feature)] Self::$family => crate::$module::$family::text(preset),)* }
            }
        }

        $(
            #[cfg(feature = $feature)]
            impl crate::$module::$family {
                /// Sets a parameter, as [`AnyController::put_number`] does.
                ///
                /// # Errors
                ///
                /// As there.
                pub fn put_number(&mut self, setting: Setting, number: u32) -> Result<(), SettingError> {
                    put(self.place(setting), setting, number).unwrap_or(Err(SettingError::Unknown { legal: Self::SETTINGS }))
                }

                /// Whether its parameters go together, as [`AnyController::check`] has it.
                #[must_use]
                pub fn is_settled(&self) -> bool {
                    self.check().is_ok()
                }
            }
        )*

        #[allow(unused_variables, reason = "without any algorithm there is nothing to ask")]
        impl AnyController {
            /// The parameters that this controller has.
            #[must_use]
            pub const fn settings(&self) -> &'static [Setting] {
                match *self { $(#[cfg(feature = $feature)] Self::$family(_) => crate::$module::$family::SETTINGS,)* }
            }

            /// Bytes that it keeps for each peer, its parameters included.
            #[must_use]
            pub const fn state_bytes(&self) -> usize {
                match *self { $(#[cfg(feature = $feature)] Self::$family(_) => size_of::<crate::$module::$family>(),)* }
            }

            /// Whether its parameters go together. To be asked once all are set.
            ///
            /// # Errors
            ///
            /// [`SettingConflict`] names two parameters that contradict each other.
            pub fn check(&self) -> Result<(), SettingConflict> {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.check(),)* }
            }

            fn place(&mut self, setting: Setting) -> Option<Place<'_>> {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.place(setting),)* }
            }
        }

        #[allow(unused_variables, reason = "without any algorithm there is nothing to ask")]
        impl Controller for AnyController {
            fn admit(&self, class: Class, len: u16, cx: Cx) -> Admit {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.admit(class, len, cx),)* }
            }

            fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.on_start(exchange, len, cx),)*
                }
            }

            fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.on_timeout(exchange, cx),)*
                }
            }

            fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.on_reply(exchange, sample, cx),)*
                }
            }

            fn on_end(&mut self, exchange: &Exchange, why: End, cx: Cx) {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.on_end(exchange, why, cx),)*
                }
            }

            fn on_plain_send(&mut self, len: u16, cx: Cx) {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.on_plain_send(len, cx),)*
                }
            }

            fn on_feedback(&mut self, feedback: Feedback, cx: Cx) {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.on_feedback(feedback, cx),)*
                }
            }

            fn wishes(&self) -> Wishes {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.wishes(),)* }
            }

            fn view(&self) -> View {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.view(),)* }
            }

            fn base_rtt(&self) -> Option<Span> {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.base_rtt(),)* }
            }

            fn recall(&mut self, base_rtt: Span) {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref mut inner) => inner.recall(base_rtt),)* }
            }

            fn shortest_wait(&self) -> Span {
                match *self { $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.shortest_wait(),)* }
            }

            fn longest_wait(&self, copy: u8, previous: Span) -> Span {
                match *self {
                    $(#[cfg(feature = $feature)] Self::$family(ref inner) => inner.longest_wait(copy, previous),)*
                }
            }
        }
    };
}

families! {
    /// The timer of RFC 7252, with or without Full Backoff.
    "rfc7252" => rfc7252::Rfc7252,
    /// CoCoA and its variants, with or without Full Backoff.
    "cocoa" => cocoa::Cocoa,
    /// FASOR, with and without names for copies.
    "fasor" => fasor::Fasor,
    /// The timer of Linux TCP.
    "linux-rto" => linux_rto::LinuxRto,
    /// Peak-Hopper.
    "peak-hopper" => peak_hopper::PeakHopper,
    /// Basic RTO of Eclipse Californium.
    "basic-rto" => basic_rto::BasicRto,
    /// Rate control of CoAP+.
    "coap-plus-rate" => coap_plus_rate::CoapPlusRate,
    /// BBR for confirmable messages.
    "bbr-con" => bbr_con::BbrCon,
    /// TFRC for non-confirmable requests.
    "tfrc-non" => tfrc_non::TfrcNon,
    /// Calm.
    "calm" => calm::Calm,
}

impl AnyController {
    /// The parameter of this name, if the controller has one.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<Setting> {
        self.settings().iter().copied().find(|setting| setting.name() == name)
    }

    /// Sets a parameter by name, as [`put`](Self::put) does.
    ///
    /// # Errors
    ///
    /// [`SettingError`] as in [`put`](Self::put).
    pub fn set(&mut self, name: &str, value: SettingValue<'_>) -> Result<(), SettingError> {
        let setting = self.setting(name).ok_or(SettingError::Unknown { legal: self.settings() })?;
        self.put(setting, value)
    }

    /// Sets a parameter, meant for before the first use: what was already learnt stays as it is. Once all are set,
    /// [`check`](Self::check) reports whether they go together.
    ///
    /// # Errors
    ///
    /// [`SettingError`] if this controller has no such parameter, or if the value is of another kind or out of range;
    /// nothing changes then.
    pub fn put(&mut self, setting: Setting, value: SettingValue<'_>) -> Result<(), SettingError> {
        self.put_number(setting, setting.number_of(value)?)
    }

    /// The same for callers without strings: microseconds, thousandths, a count, or the place of a word among the
    /// legal ones, as [`Setting::range`] has them.
    ///
    /// # Errors
    ///
    /// [`SettingError`] if this controller has no such parameter, or if the number is out of range; nothing changes
    /// then.
    pub fn put_number(&mut self, setting: Setting, number: u32) -> Result<(), SettingError> {
        let legal = self.settings();
        put(self.place(setting), setting, number).unwrap_or(Err(SettingError::Unknown { legal }))
    }

    /// The value of a parameter that is in force; nothing if this controller has no such parameter, or if it was made of
    /// a part that no word names.
    #[must_use]
    pub fn get(&self, setting: Setting) -> Option<SettingValue<'static>> {
        self.get_number(setting).and_then(|number| setting.value_of(number))
    }

    /// The same in numbers, as [`put_number`](Self::put_number) takes them.
    #[must_use]
    pub fn get_number(&self, setting: Setting) -> Option<u32> {
        let mut copy = *self;
        copy.place(setting).and_then(Place::get)
    }
}

/// Puts a number where a controller keeps a parameter, if it has that.
fn put(place: Option<Place<'_>>, setting: Setting, number: u32) -> Option<Result<(), SettingError>> {
    let (low, high) = setting.range();
    let place = place?;
    if number < low || number > high {
        return Some(Err(SettingError::OutOfRange(setting)));
    }
    place.put(number);
    Some(Ok(()))
}

#[cfg(all(test, feature = "all"))]
mod tests {
    use super::*;

    #[test]
    fn controllers_stay_small() {
        assert!(size_of::<AnyController>() <= 88);
        // With the head of a record and its least wait a peer of the C library takes 96 bytes.
        for preset in Preset::all() {
            assert!(preset.build().state_bytes() <= 84, "{preset:?}");
        }
        assert!(size_of::<Preset>() <= 4);
    }
}
