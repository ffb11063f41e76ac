//! How times, sizes and arrivals are spread: one value, or a table that says between what.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Duration, Size, unknown, word_or_table};

/// Lengths of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times {
    /// Always this.
    Fixed(Duration),
    /// Uniform, both ends included.
    Uniform {
        /// The least.
        from: Duration,
        /// The most.
        to: Duration,
    },
    /// Exponential.
    Exponential {
        /// With this mean.
        mean: Duration,
    },
    /// Pareto; what would exceed the most is the most.
    Pareto {
        /// The shape.
        alpha: f64,
        /// The least.
        from: Duration,
        /// The most.
        to: Duration,
    },
}

/// Sizes of payloads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Always this.
    Fixed(Size),
    /// Uniform over whole bytes, both ends included.
    Uniform {
        /// The least.
        from: Size,
        /// The most.
        to: Size,
    },
    /// Pareto; what would exceed the most is the most, as in 3GPP TR 45.820 annex E.
    Pareto {
        /// The shape.
        alpha: f64,
        /// The least.
        from: Size,
        /// The most.
        to: Size,
    },
}

/// When those who are woken by one event arrive, counted from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrival {
    /// At once.
    #[default]
    AtOnce,
    /// Uniform over this long (3GPP TR 37.868 §6.1.1, traffic model 1: 60 s).
    Uniform {
        /// The time.
        over: Duration,
    },
    /// Beta over this long (3GPP TR 37.868 §6.1.1, traffic model 2: α = 3, β = 4 over 10 s).
    Beta {
        /// The time.
        over: Duration,
        /// α, a whole number.
        alpha: u8,
        /// β, a whole number.
        beta: u8,
    },
    /// Exponential.
    Exponential {
        /// With this mean.
        mean: Duration,
    },
}

impl Times {
    /// No time at all.
    pub const NONE: Self = Self::Fixed(Duration(0));

    /// What cannot be drawn, told without its place.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Uniform { from, to } | Self::Pareto { from, to, .. } if from > to => {
                Some(format!("from {from} to {to}: write from ≤ to"))
            }
            Self::Pareto { from: Duration(0), .. } => Some("a Pareto time is at least 1 us".to_owned()),
            Self::Pareto { alpha, .. } => shape_problem(*alpha),
            _ => None,
        }
    }

    /// How long they are: the mean, or the most of those that have one.
    pub(super) const fn scale(&self) -> Duration {
        match *self {
            Self::Fixed(time) | Self::Exponential { mean: time } => time,
            Self::Uniform { to, .. } | Self::Pareto { to, .. } => to,
        }
    }
}

/// What is wrong with the shape of a Pareto distribution, if anything is.
fn shape_problem(alpha: f64) -> Option<String> {
    (!(0.01..=1_000.0).contains(&alpha)).then(|| format!("alpha = {alpha} is out of range (0.01 to 1000)"))
}

impl Sizes {
    /// The largest that is drawn.
    pub(crate) const fn most(&self) -> Size {
        match *self {
            Self::Fixed(size) => size,
            Self::Uniform { to, .. } | Self::Pareto { to, .. } => to,
        }
    }

    /// What cannot be drawn, told without its place.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Uniform { from, to } | Self::Pareto { from, to, .. } if from > to => {
                Some(format!("from {from} to {to}: write from ≤ to"))
            }
            Self::Pareto { from: Size(0), .. } => Some("a Pareto size is at least 1 B".to_owned()),
            Self::Pareto { alpha, .. } => shape_problem(*alpha),
            _ => None,
        }
    }
}

impl Arrival {
    /// The words for them.
    const WORDS: [&'static str; 4] = ["at-once", "uniform", "beta", "exponential"];

    /// What cannot be drawn, told without its place.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Beta { alpha, beta, .. } if !(1..=32).contains(alpha) || !(1..=32).contains(beta) => {
                Some(format!("alpha = {alpha}, beta = {beta}: whole numbers from 1 to 32 can be drawn"))
            }
            _ => None,
        }
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::NONE
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::Fixed(Size(0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum WrittenTimes {
    Fixed { time: Duration },
    Uniform { from: Duration, to: Duration },
    Exponential { mean: Duration },
    Pareto { alpha: f64, from: Duration, to: Duration },
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| word.parse().map(|time| WrittenTimes::Fixed { time });
        Ok(match word_or_table(deserializer, "a time, or a table with the key `kind`", word)? {
            WrittenTimes::Fixed { time } => Self::Fixed(time),
            WrittenTimes::Uniform { from, to } => Self::Uniform { from, to },
            WrittenTimes::Exponential { mean } => Self::Exponential { mean },
            WrittenTimes::Pareto { alpha, from, to } => Self::Pareto { alpha, from, to },
        })
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Fixed(time) => time.serialize(serializer),
            Self::Uniform { from, to } => WrittenTimes::Uniform { from, to }.serialize(serializer),
            Self::Exponential { mean } => WrittenTimes::Exponential { mean }.serialize(serializer),
            Self::Pareto { alpha, from, to } => WrittenTimes::Pareto { alpha, from, to }.serialize(serializer),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum WrittenSizes {
    Fixed { size: Size },
    Uniform { from: Size, to: Size },
    Pareto { alpha: f64, from: Size, to: Size },
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| word.parse().map(|size| WrittenSizes::Fixed { size });
        Ok(match word_or_table(deserializer, "a size, or a table with the key `kind`", word)? {
            WrittenSizes::Fixed { size } => Self::Fixed(size),
            WrittenSizes::Uniform { from, to } => Self::Uniform { from, to },
            WrittenSizes::Pareto { alpha, from, to } => Self::Pareto { alpha, from, to },
        })
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Fixed(size) => size.serialize(serializer),
            Self::Uniform { from, to } => WrittenSizes::Uniform { from, to }.serialize(serializer),
            Self::Pareto { alpha, from, to } => WrittenSizes::Pareto { alpha, from, to }.serialize(serializer),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum WrittenArrival {
    AtOnce {},
    Uniform { over: Duration },
    Beta { over: Duration, alpha: u8, beta: u8 },
    Exponential { mean: Duration },
}

impl<'de> Deserialize<'de> for Arrival {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| match word {
            "at-once" => Ok(WrittenArrival::AtOnce {}),
            "uniform" => Err("`uniform` needs a time: write { kind = \"uniform\", over = \"60 s\" }".to_owned()),
            "beta" => Err("`beta` needs a time and a shape: write { kind = \"beta\", over = \"10 s\", alpha = 3, \
                           beta = 4 }"
                .to_owned()),
            "exponential" => {
                Err("`exponential` needs a mean: write { kind = \"exponential\", mean = \"20 s\" }".to_owned())
            }
            // A time alone is what people say: 30 s of jitter.
            _ => match word.parse() {
                Ok(over) => Ok(WrittenArrival::Uniform { over }),
                Err(_) if word.starts_with(|c: char| c.is_ascii_digit()) => {
                    Err(word.parse::<Duration>().err().unwrap_or_default())
                }
                Err(_) => Err(unknown("arrival", word, &Self::WORDS)),
            },
        };
        Ok(match word_or_table(deserializer, "`at-once`, a time, or a table with the key `kind`", word)? {
            WrittenArrival::AtOnce {} => Self::AtOnce,
            WrittenArrival::Uniform { over } => Self::Uniform { over },
            WrittenArrival::Beta { over, alpha, beta } => Self::Beta { over, alpha, beta },
            WrittenArrival::Exponential { mean } => Self::Exponential { mean },
        })
    }
}

impl Serialize for Arrival {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::AtOnce => serializer.serialize_str("at-once"),
            Self::Uniform { over } => WrittenArrival::Uniform { over }.serialize(serializer),
            Self::Beta { over, alpha, beta } => WrittenArrival::Beta { over, alpha, beta }.serialize(serializer),
            Self::Exponential { mean } => WrittenArrival::Exponential { mean }.serialize(serializer),
        }
    }
}
