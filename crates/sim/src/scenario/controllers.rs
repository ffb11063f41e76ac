//! A controller as a scenario names it: a preset, with settings of its own where wanted.

use std::{collections::BTreeMap, fmt};

use millpond_control::{AnyController, Preset, Setting, SettingKind, SettingValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

use super::{error::unknown, quantity::Duration};

/// A preset and the settings that differ from it.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerChoice {
    preset: Preset,
    settings: BTreeMap<String, Value>,
    controller: AnyController,
}

/// A setting's value as written.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Whole(i64),
    Fraction(f64),
    Text(String),
}

impl ControllerChoice {
    /// A preset as it is.
    #[must_use]
    pub fn preset(preset: Preset) -> Self {
        Self { preset, settings: BTreeMap::new(), controller: preset.build() }
    }

    /// The controller for a peer about which nothing is known.
    #[must_use]
    pub fn build(&self) -> AnyController {
        self.controller
    }

    fn with_settings(name: &str, settings: BTreeMap<String, Value>) -> Result<Self, String> {
        let Some(preset) = Preset::from_name(name) else {
            let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
            return Err(unknown("controller", name, &names));
        };
        let mut controller = preset.build();
        for (key, value) in &settings {
            let legal = controller.settings();
            let Some(setting) = legal.iter().copied().find(|setting| setting.name() == key) else {
                let names: Vec<_> = legal.iter().map(|setting| setting.name()).collect();
                return Err(unknown("setting", key, &names));
            };
            let value = value.read(setting)?;
            controller.set(key, value).map_err(|error| error.to_string())?;
        }
        Ok(Self { preset, settings, controller })
    }
}

impl fmt::Display for ControllerChoice {
    /// The preset's name, with its settings behind it: `rfc7252 (max-wait 60 s)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.preset.name())?;
        for (index, (key, value)) in self.settings.iter().enumerate() {
            write!(f, "{}{key} {value}", if index == 0 { " (" } else { ", " })?;
        }
        if self.settings.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl Value {
    /// The value as the setting takes it.
    fn read(&self, setting: Setting) -> Result<SettingValue<'_>, String> {
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
                f.write_str("a controller's name, or a table with the key `preset` and settings")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<ControllerChoice, E> {
                ControllerChoice::with_settings(name, BTreeMap::new()).map_err(E::custom)
            }
            fn visit_map<M: de::MapAccess<'de>>(self, mut map: M) -> Result<ControllerChoice, M::Error> {
                let mut settings = BTreeMap::new();
                let mut preset: Option<String> = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "preset" {
                        preset = Some(map.next_value()?);
                    } else {
                        settings.insert(key, map.next_value()?);
                    }
                }
                let preset = preset.ok_or_else(|| de::Error::missing_field("preset"))?;
                ControllerChoice::with_settings(&preset, settings).map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

impl Serialize for ControllerChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.settings.is_empty() {
            return serializer.serialize_str(self.preset.name());
        }
        let mut map = serializer.serialize_map(Some(1 + self.settings.len()))?;
        map.serialize_entry("preset", self.preset.name())?;
        for (key, value) in &self.settings {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
