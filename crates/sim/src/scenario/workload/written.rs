//! Workloads as they are written.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{ArrivalProcess, Frequency, Periods, Ramp, Retry, Share, Spacing, Step, Workload, Workloads};
use crate::scenario::{Arrival, Duration, Sizes, Times, unknown, word_or_table};

/// The kinds that need nothing more, and the preset.
const WORDS: [&str; 5] = ["continuous", "fresh-batches", "random", "backlog", "tr45820-reporting"];
/// No workload at all.
const NONE: &str = "none";
const KINDS: [&str; 7] = ["continuous", "fresh-batches", "backlog", "periodic", "poisson", "ramp", "after-event"];

/// A workload as a table: every key that any kind has.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<Periods>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aligned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Duration>,
    /// Another way to write `interval`.
    #[serde(skip_serializing)]
    rate: Option<Frequency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<Arrival>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Frequency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Frequency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spacing: Option<Spacing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<Retry>,
    #[serde(alias = "exchanges", skip_serializing_if = "Option::is_none")]
    requests: Option<u32>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    lasts: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Sizes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    script: Vec<Step>,
}

impl Written {
    /// The keys that are there, apart from those that every kind has.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("think", self.think.is_some()),
            ("period", self.period.is_some()),
            ("phase", self.phase.is_some()),
            ("jitter", self.jitter.is_some()),
            ("aligned", self.aligned.is_some()),
            ("burst", self.burst.is_some()),
            ("interval", self.interval.is_some()),
            ("rate", self.rate.is_some()),
            ("arrival", self.arrival.is_some()),
            ("from", self.from.is_some()),
            ("to", self.to.is_some()),
            ("over", self.over.is_some()),
            ("hold", self.hold.is_some()),
            ("back", self.back.is_some()),
            ("spacing", self.spacing.is_some()),
            ("retry", self.retry.is_some()),
        ];
        keys.into_iter().filter_map(|(key, given)| given.then_some(key))
    }

    fn read(self) -> Result<Workload, String> {
        let takes: &[&str] = match self.kind.as_str() {
            "continuous" => &["think"],
            "fresh-batches" | "random" | "backlog" => &[],
            "periodic" => &["period", "phase", "jitter", "aligned", "burst"],
            "poisson" => &["interval", "rate"],
            "ramp" => &["from", "to", "over", "hold", "back", "spacing"],
            "after-event" => &["arrival", "think", "retry"],
            "" => return Err(format!("missing key `kind` (one of {})", KINDS.join(", "))),
            other => return Err(unknown("kind", other, &KINDS)),
        };
        if let Some(key) = self.given().find(|key| !takes.contains(key)) {
            let known = takes.iter().chain(&["requests", "for", "payload", "script"]).copied();
            return Err(format!(
                "a workload of kind `{}` has no `{key}` (known here: {})",
                self.kind,
                known.collect::<Vec<_>>().join(", ")
            ));
        }
        let needs = |key: &str, example: &str| {
            format!("missing key `{key}`: write {{ kind = \"{}\", {key} = \"{example}\" }}", self.kind)
        };
        let think = self.think.unwrap_or_default();
        let arrivals = match self.kind.as_str() {
            "continuous" => ArrivalProcess::Continuous { think },
            "backlog" => ArrivalProcess::Backlog,
            "periodic" => ArrivalProcess::Periodic {
                period: self.period.ok_or_else(|| needs("period", "1 h"))?,
                phase: self.phase,
                jitter: self.jitter.unwrap_or_default(),
                aligned: self.aligned.unwrap_or_default(),
                burst: self.burst.unwrap_or(1),
            },
            "poisson" => ArrivalProcess::Poisson {
                interval: match (self.interval, self.rate) {
                    (Some(_), Some(_)) => {
                        return Err("`interval` and `rate` say the same: write one of the two".to_owned());
                    }
                    (interval, rate) => match rate {
                        Some(rate) => rate.interval()?,
                        None => interval.ok_or_else(|| needs("interval", "1 h"))?,
                    },
                },
            },
            "ramp" => ArrivalProcess::Ramp(Ramp {
                from: self.from.ok_or_else(|| needs("from", "1 /min"))?,
                to: self.to.ok_or_else(|| needs("to", "2 /s"))?,
                over: self.over.ok_or_else(|| needs("over", "10 min"))?,
                hold: self.hold,
                back: self.back,
                spacing: self.spacing.unwrap_or_default(),
            }),
            "after-event" => {
                ArrivalProcess::AfterEvent { arrival: self.arrival.unwrap_or_default(), think, retry: self.retry }
            }
            _ => ArrivalProcess::FreshBatches,
        };
        let Self { requests, lasts, payload, script, .. } = self;
        Ok(Workload { arrivals, requests, lasts, payload, script })
    }

    fn of(workload: &Workload) -> Self {
        let Workload { arrivals, requests, lasts, payload, script } = workload.clone();
        let common = Self { requests, lasts, payload, script, ..Self::default() };
        let kind = |kind: &str| kind.to_owned();
        match arrivals {
            ArrivalProcess::Continuous { think } => Self { kind: kind("continuous"), think: Some(think), ..common },
            ArrivalProcess::FreshBatches => Self { kind: kind("fresh-batches"), ..common },
            ArrivalProcess::Backlog => Self { kind: kind("backlog"), ..common },
            ArrivalProcess::Periodic { period, phase, jitter, aligned, burst } => Self {
                kind: kind("periodic"),
                period: Some(period),
                phase,
                jitter: Some(jitter),
                aligned: Some(aligned),
                burst: Some(burst),
                ..common
            },
            ArrivalProcess::Poisson { interval } => Self { kind: kind("poisson"), interval: Some(interval), ..common },
            ArrivalProcess::Ramp(Ramp { from, to, over, hold, back, spacing }) => Self {
                kind: kind("ramp"),
                from: Some(from),
                to: Some(to),
                over: Some(over),
                hold,
                back,
                spacing: Some(spacing),
                ..common
            },
            ArrivalProcess::AfterEvent { arrival, think, retry } => {
                Self { kind: kind("after-event"), arrival: Some(arrival), think: Some(think), retry, ..common }
            }
        }
    }
}

/// A workload that is one word.
fn word(word: &str) -> Result<Workload, String> {
    Ok(match word {
        "continuous" => Workload::of(ArrivalProcess::Continuous { think: Times::NONE }),
        "random" | "fresh-batches" => Workload::of(ArrivalProcess::FreshBatches),
        "backlog" => Workload::of(ArrivalProcess::Backlog),
        "tr45820-reporting" => Workload::reporting(),
        "periodic" => {
            return Err("`periodic` needs a period: write { kind = \"periodic\", period = \"1 h\" }".to_owned());
        }
        "poisson" => {
            return Err("`poisson` needs an interval: write { kind = \"poisson\", interval = \"1 h\" }".to_owned());
        }
        "ramp" => {
            return Err(
                "`ramp` needs rates and a time: write { kind = \"ramp\", from = \"1 /min\", to = \"2 /s\", over = \"10 min\" }"
                    .to_owned(),
            );
        }
        "after-event" => {
            return Err(
                "`after-event` needs an arrival: write { kind = \"after-event\", arrival = \"30 s\" }".to_owned()
            );
        }
        other => return Err(unknown("workload", other, &WORDS)),
    })
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word_or_table(deserializer, "a workload's name, or a table with the key `kind`", |text| {
            word(text).map(|workload| Written::of(&workload))
        })
        .and_then(|written: Written| written.read().map_err(de::Error::custom))
    }
}

impl<'de> Deserialize<'de> for Workloads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> de::Visitor<'de> for OneOrMany {
            type Value = Workloads;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a workload's name, a table with the key `kind`, or a list of them")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Workloads, E> {
                if text == NONE {
                    return Ok(Workloads(Vec::new()));
                }
                word(text).map(Workloads::one).map_err(E::custom)
            }
            fn visit_map<M: de::MapAccess<'de>>(self, map: M) -> Result<Workloads, M::Error> {
                let written = Written::deserialize(de::value::MapAccessDeserializer::new(map))?;
                written.read().map(Workloads::one).map_err(de::Error::custom)
            }
            fn visit_seq<S: de::SeqAccess<'de>>(self, mut list: S) -> Result<Workloads, S::Error> {
                let mut all = Vec::new();
                while let Some(workload) = list.next_element()? {
                    all.push(workload);
                }
                Ok(Workloads(all))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // What a word says in full is written as that word; "random" is what batches have always been written as.
        for name in ["continuous", "random", "backlog"] {
            if word(name).is_ok_and(|workload| workload == *self) {
                return serializer.serialize_str(name);
            }
        }
        Written::of(self).serialize(serializer)
    }
}

impl Serialize for Workloads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [] => serializer.serialize_str(NONE),
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

/// The period of all clients of a group together.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Together {
    together: Duration,
}

impl<'de> Deserialize<'de> for Periods {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMix;
        impl<'de> de::Visitor<'de> for OneOrMix {
            type Value = Periods;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time such as `1 h`, { together = \"1 s\" }, or a list of { share = 0.4, period = \"1 d\" }",
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Periods, E> {
                text.parse().map(Periods::One).map_err(E::custom)
            }
            fn visit_map<M: de::MapAccess<'de>>(self, map: M) -> Result<Periods, M::Error> {
                let written = Together::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Periods::Together(written.together))
            }
            fn visit_seq<S: de::SeqAccess<'de>>(self, mut list: S) -> Result<Periods, S::Error> {
                let mut shares: Vec<Share> = Vec::new();
                while let Some(share) = list.next_element()? {
                    shares.push(share);
                }
                Ok(Periods::Mix(shares))
            }
        }
        deserializer.deserialize_any(OneOrMix)
    }
}

impl Serialize for Periods {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(period) => period.serialize(serializer),
            Self::Mix(shares) => shares.serialize(serializer),
            Self::Together(together) => Together { together: *together }.serialize(serializer),
        }
    }
}
