//! A controller as a scenario names it: a preset or one of the user's own, with settings where wanted.

use std::{collections::BTreeMap, fmt};

use millpond_control::{AnyController, PeerController, Preset, Setting, SettingKind, SettingValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

use super::{Duration, unknown};

/// A controller and the settings that differ from its own.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerChoice {
    /// A built-in one.
    Built(BuiltChoice),
    /// One that the caller of the run brings along.
    Own(OwnChoice),
}

/// A preset and the settings that differ from it.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltChoice {
    preset: Preset,
    settings: Settings,
    controller: AnyController,
}

/// A controller of the user's own: two names with a colon between, such as `file:Class`, and its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnChoice {
    name: String,
    settings: Settings,
}

/// Settings by name.
pub type Settings = BTreeMap<String, Value>;

/// A setting's value as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A word of yes or no.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// Any number.
    Fraction(f64),
    /// A text, such as `60 s`.
    Text(String),
}

/// Where a run gets controllers that are not built in.
pub trait Controllers {
    /// The controller for a peer about which nothing is known. Every new peer gets a [fork](PeerController::clone).
    ///
    /// # Errors
    /// One line, if there is no such controller or it has no such settings.
    fn own(&self, choice: &OwnChoice) -> Result<PeerController, String>;

    /// Why a controller given out cannot go on, in one line. The run is then without a result. Asked every few thousand
    /// steps and at the end.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// Only the built-in controllers.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Controllers for BuiltIn {
    fn own(&self, choice: &OwnChoice) -> Result<PeerController, String> {
        Err(format!("`{}` is not built in, and this run was given no controllers of its own", choice.name))
    }
}

impl ControllerChoice {
    /// A preset as it is.
    #[must_use]
    pub fn preset(preset: Preset) -> Self {
        Self::Built(BuiltChoice { preset, settings: Settings::new(), controller: preset.build() })
    }

    /// The preset or own controller of this name, with these settings. A name with a colon is a custom one's.
    ///
    /// # Errors
    /// One line that names what is unknown or out of range, with the nearest legal name.
    pub fn named(name: &str, settings: Settings) -> Result<Self, String> {
        if name.contains(':') {
            return Ok(Self::Own(OwnChoice::named(name, settings)?));
        }
        Ok(Self::Built(BuiltChoice::named(name, settings)?))
    }

    /// The controller for a peer about which nothing is known.
    ///
    /// # Errors
    /// One line, if it is a custom one and `own` cannot give it.
    pub fn build(&self, own: &dyn Controllers) -> Result<PeerController, String> {
        match self {
            Self::Built(choice) => Ok(choice.build().into()),
            Self::Own(choice) => own.own(choice),
        }
    }

    /// The name and settings, if it is a custom one.
    #[must_use]
    pub fn own(&self) -> Option<&OwnChoice> {
        match self {
            Self::Built(_) => None,
            Self::Own(choice) => Some(choice),
        }
    }

    /// Whether the name is a preset's, and what is written.
    fn written(&self) -> (&'static str, &str, &Settings) {
        match self {
            Self::Built(choice) => (PRESET, choice.preset.name(), &choice.settings),
            Self::Own(choice) => (OWN, &choice.name, &choice.settings),
        }
    }
}

/// The keys of a controller's table that are no settings.
const PRESET: &str = "preset";
const OWN: &str = "own";

impl BuiltChoice {
    /// The preset of this name with these settings.
    ///
    /// # Errors
    /// One line that names what is unknown or out of range, with the nearest legal name.
    pub fn named(name: &str, settings: Settings) -> Result<Self, String> {
        let Some(preset) = Preset::from_name(name) else {
            let names: Vec<_> = Preset::all().map(|preset| preset.name()).collect();
            return Err(format!(
                "{}; one of your own has a colon in its name, such as `file:Class`",
                unknown("controller", name, &names)
            ));
        };
        let mut controller = preset.build();
        for (key, value) in &settings {
            let Some(setting) = controller.setting(key) else {
                let names: Vec<_> = controller.settings().iter().map(|setting| setting.name()).collect();
                return Err(unknown("setting", key, &names));
            };
            let value = value.read(setting)?;
            controller.put(setting, value).map_err(|error| error.to_string())?;
        }
        controller.check().map_err(|conflict| conflict.to_string())?;
        Ok(Self { preset, settings, controller })
    }

    /// The preset.
    #[must_use]
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// The controller for a peer about which nothing is known.
    #[must_use]
    pub fn build(&self) -> AnyController {
        self.controller
    }
}

impl OwnChoice {
    fn named(name: &str, settings: Settings) -> Result<Self, String> {
        match name.rsplit_once(':') {
            Some((place, class)) if !place.trim().is_empty() && !class.trim().is_empty() => {
                Ok(Self { name: name.to_owned(), settings })
            }
            _ => Err(format!(
                "`{name}` is no controller of your own: write two names with a colon, such as `file:Class`"
            )),
        }
    }

    /// The two names with the colon between.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings, unchecked.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl fmt::Display for ControllerChoice {
    /// The name, with its settings behind it: `rfc7252 (max-wait 60 s)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, settings) = self.written();
        f.write_str(name)?;
        for (index, (key, value)) in settings.iter().enumerate() {
            write!(f, "{}{key} {value}", if index == 0 { " (" } else { ", " })?;
        }
        if settings.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl Value {
    /// The value as the setting takes it; whether it is in range, the controller says.
    ///
    /// # Errors
    /// One line, if it is of another kind.
    pub fn read(&self, setting: Setting) -> Result<SettingValue<'_>, String> {
        let wrong = || format!("`{self}` does not fit: {setting} takes {}", setting.kind());
        match (setting.kind(), self) {
            (SettingKind::Time { none: true, .. }, Self::Text(text)) if text == "none" => {
                Ok(SettingValue::Word("none"))
            }
            (SettingKind::Time { .. }, Self::Text(text)) => {
                let time: Duration = text.parse().map_err(|error| format!("{setting}: {error}"))?;
                Ok(SettingValue::Time(time.span()))
            }
            (SettingKind::Ratio { .. }, Self::Whole(whole)) => {
                let whole = u32::try_from(*whole).map_err(|_| wrong())?;
                Ok(SettingValue::Ratio(whole.checked_mul(1_000).ok_or_else(wrong)?))
            }
            (SettingKind::Ratio { .. }, Self::Fraction(ratio)) => {
                let thousandths = (ratio * 1_000.0).round();
                if !(0.0..1e9).contains(&thousandths) || (thousandths - ratio * 1_000.0).abs() > 1e-6 {
                    return Err(wrong());
                }
                Ok(SettingValue::Ratio(thousandths as u32))
            }
            (SettingKind::Count { .. }, Self::Whole(whole)) => {
                Ok(SettingValue::Count(u32::try_from(*whole).map_err(|_| wrong())?))
            }
            (SettingKind::Word(_), Self::Text(text)) => Ok(SettingValue::Word(text)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truth(truth) => truth.fmt(f),
            Self::Whole(whole) => whole.fmt(f),
            Self::Fraction(fraction) => fraction.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl de::Visitor<'_> for Scalar {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a text such as `60 s`")
            }
            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Value, E> {
                Ok(Value::Truth(truth))
            }
            fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Value, E> {
                Ok(Value::Whole(whole))
            }
            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Value, E> {
                i64::try_from(whole).map(Value::Whole).map_err(|_| E::custom(format!("{whole} is too large")))
            }
            fn visit_f64<E: de::Error>(self, fraction: f64) -> Result<Value, E> {
                Ok(Value::Fraction(fraction))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Truth(truth) => serializer.serialize_bool(*truth),
            Self::Whole(whole) => serializer.serialize_i64(*whole),
            Self::Fraction(fraction) => serializer.serialize_f64(*fraction),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for ControllerChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;
        impl<'de> de::Visitor<'de> for Choice {
            type Value = ControllerChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a controller's name, or a table with the key `preset` (or `own`) and settings")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<ControllerChoice, E> {
                ControllerChoice::named(name, Settings::new()).map_err(E::custom)
            }
            fn visit_map<M: de::MapAccess<'de>>(self, mut map: M) -> Result<ControllerChoice, M::Error> {
                let mut settings = Settings::new();
                let mut named: Option<(String, String)> = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != PRESET && key != OWN {
                        settings.insert(key, map.next_value()?);
                        continue;
                    }
                    if let Some((before, _)) = &named {
                        return Err(de::Error::custom(format!("both `{before}` and `{key}`: name one controller")));
                    }
                    named = Some((key, map.next_value()?));
                }
                let (key, name) = named.ok_or_else(|| de::Error::missing_field(PRESET))?;
                let choice = if key == OWN {
                    OwnChoice::named(&name, settings).map(ControllerChoice::Own)
                } else {
                    ControllerChoice::named(&name, settings)
                };
                choice.map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

impl Serialize for ControllerChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, name, settings) = self.written();
        if settings.is_empty() {
            return serializer.serialize_str(name);
        }
        let mut map = serializer.serialize_map(Some(1 + settings.len()))?;
        map.serialize_entry(key, name)?;
        for (key, value) in settings {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
