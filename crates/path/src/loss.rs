//! How a radio loses packets.

use millpond_link::Probability;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{Duration, InputError, direction::LONGEST, probability, probability::share, unknown, word_or_table};

/// How the radio loses packets. Probabilities are fractions from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Loss {
    /// Never.
    #[default]
    None,
    /// Each packet by itself.
    Bernoulli {
        /// Probability of loss.
        rate: f64,
    },
    /// A good and a bad state that alternate in time.
    Markov {
        /// Probability of loss in the good state.
        good_loss: f64,
        /// Probability of loss in the bad state.
        bad_loss: f64,
        /// Mean time in the good state.
        good_dwell: Duration,
        /// Mean time in the bad state.
        bad_dwell: Duration,
    },
    /// A good and a bad state that alternate packet by packet, in netem's order of parameters.
    GilbertElliott {
        /// Probability of going from good to bad.
        p: f64,
        /// Probability of going from bad to good.
        r: f64,
        /// Probability of loss in the bad state.
        #[serde(rename = "1-h")]
        one_minus_h: f64,
        /// Probability of loss in the good state.
        #[serde(rename = "1-k")]
        one_minus_k: f64,
    },
}

/// Whose random numbers a loss is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossOf {
    /// The link's: packets of all clients meet one process, and fade together.
    #[default]
    Link,
    /// Each client's own: every client has a process of its own, addressed by its number.
    EachClient,
}

impl LossOf {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
    pub(crate) fn is_link(&self) -> bool {
        *self == Self::Link
    }
}

/// Where on the path the radio loses a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossAt {
    /// After the rate stage: a lost packet has used queue and link.
    #[default]
    AfterRate,
    /// Before the queue: a lost packet uses neither.
    BeforeRate,
}

impl Loss {
    /// The share of packets that is lost in the long run.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Bernoulli { rate } => rate,
            Self::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => {
                let (good, bad) = (good_dwell.0 as f64, bad_dwell.0 as f64);
                (good_loss * good + bad_loss * bad) / (good + bad)
            }
            // Nothing ever leaves the good state, in which the chain begins.
            Self::GilbertElliott { p: 0.0, one_minus_k, .. } => one_minus_k,
            Self::GilbertElliott { p, r, one_minus_h, one_minus_k } => (one_minus_h * p + one_minus_k * r) / (p + r),
        }
    }

    /// Whether a link can lose packets so. `key` is its place inside `origin`, as errors tell it.
    ///
    /// # Errors
    /// One line with the place and the fix: of what is no probability, of a dwell that cannot be expressed, and of a link that
    /// would lose every packet.
    pub fn check(&self, key: &str, origin: &str) -> Result<(), InputError> {
        let refuse = |name: &str, problem: String| Err(InputError::at_key(origin, &format!("{key}.{name}"), problem));
        let probabilities: &[(&str, f64)] = match self {
            Self::None => &[],
            Self::Bernoulli { rate } => &[("rate", *rate)],
            Self::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => {
                for (name, dwell) in [("good_dwell", good_dwell), ("bad_dwell", bad_dwell)] {
                    let shortest = Duration(u64::from(millpond_link::Loss::SHORTEST_DWELL.as_micros()));
                    if !(shortest..=LONGEST).contains(dwell) {
                        return refuse(name, format!("{dwell} is out of range ({shortest} to {LONGEST})"));
                    }
                }
                &[("good_loss", *good_loss), ("bad_loss", *bad_loss)]
            }
            Self::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                &[("p", *p), ("r", *r), ("1-h", *one_minus_h), ("1-k", *one_minus_k)]
            }
        };
        for (name, value) in probabilities {
            if !(0.0..=1.0).contains(value) {
                let share = if *value > 1.0 && *value <= 100.0 {
                    format!("\"{value} %\"")
                } else {
                    "a share from 0 % to 100 %".to_owned()
                };
                let problem = format!("{value} is not a probability: write a fraction from 0 to 1, or {share}");
                return refuse(name, problem);
            }
        }
        if Probability::from_f64(self.mean()) == Some(Probability::ONE) {
            let problem = "the link loses everything, because 1 is 100 %: for 1 % write 0.01 or \"1 %\"";
            return Err(InputError::at_key(origin, key, problem));
        }
        Ok(())
    }
}

/// As a table.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum LossKeys {
    None {},
    Bernoulli {
        #[serde(deserialize_with = "probability")]
        rate: f64,
    },
    Markov {
        #[serde(deserialize_with = "probability")]
        good_loss: f64,
        #[serde(deserialize_with = "probability")]
        bad_loss: f64,
        good_dwell: Duration,
        bad_dwell: Duration,
    },
    GilbertElliott {
        #[serde(deserialize_with = "probability")]
        p: f64,
        #[serde(default = "one", deserialize_with = "probability")]
        r: f64,
        #[serde(default = "one", rename = "1-h", deserialize_with = "probability")]
        one_minus_h: f64,
        #[serde(default, rename = "1-k", deserialize_with = "probability")]
        one_minus_k: f64,
    },
}

macro_rules! bernoulli {
    () => {
        "{ kind = \"bernoulli\", rate = \"1 %\" }"
    };
}
const BERNOULLI: &str = bernoulli!();
const MARKOV: &str =
    "{ kind = \"markov\", good_loss = 0, bad_loss = \"50 %\", good_dwell = \"10 s\", bad_dwell = \"1 s\" }";
const GILBERT_ELLIOTT: &str = "{ kind = \"gilbert-elliott\", p = \"1 %\", r = \"25 %\" }";
/// What each kind of loss may look like in a scenario.
const EXAMPLES: [&str; 3] = [BERNOULLI, MARKOV, GILBERT_ELLIOTT];

fn one() -> f64 {
    1.0
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| match word {
            "none" => Ok(LossKeys::None {}),
            "bernoulli" => Err(format!("`bernoulli` needs a rate: write {BERNOULLI}")),
            "markov" => Err(format!("`markov` needs two states: write {MARKOV}")),
            "gilbert-elliott" => Err(format!("`gilbert-elliott` needs its chances: write {GILBERT_ELLIOTT}")),
            _ if word.trim_end().ends_with('%') => match share(word) {
                Ok(_) => {
                    Err(format!("`{word}` says no kind of loss: write {{ kind = \"bernoulli\", rate = \"{word}\" }}"))
                }
                Err(problem) => Err(problem),
            },
            _ => Err(format!("{}: write \"none\", or a table such as {BERNOULLI}", unknown("loss", word, &["none"]))),
        };
        let expecting = concat!("\"none\", or a table: write ", bernoulli!());
        let table = word_or_table(deserializer, expecting, word).map_err(|error| {
            let told = error.to_string();
            let missing = told.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
            // A key belongs to one kind alone, and `kind` itself to what is lost most often.
            let example =
                missing.map(|key| EXAMPLES.into_iter().find(|example| example.contains(&format!(" {key} = "))));
            match (missing, example.flatten()) {
                (Some(key), Some(example)) => de::Error::custom(format!("missing key `{key}`: write {example}")),
                _ => error,
            }
        })?;
        Ok(match table {
            LossKeys::None {} => Self::None,
            LossKeys::Bernoulli { rate } => Self::Bernoulli { rate },
            LossKeys::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => {
                Self::Markov { good_loss, bad_loss, good_dwell, bad_dwell }
            }
            LossKeys::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                Self::GilbertElliott { p, r, one_minus_h, one_minus_k }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(loss: &Loss) -> String {
        loss.check("path.uplink.loss", "test").map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    fn chain(p: f64, r: f64, one_minus_h: f64, one_minus_k: f64) -> Loss {
        Loss::GilbertElliott { p, r, one_minus_h, one_minus_k }
    }

    fn markov(good_loss: f64, bad_loss: f64) -> Loss {
        Loss::Markov { good_loss, bad_loss, good_dwell: Duration(400_000), bad_dwell: Duration(100_000) }
    }

    #[test]
    fn means_are_those_of_theory() {
        assert_eq!(chain(0.2, 0.8, 0.8, 0.02).mean(), 0.2 * 0.8 + 0.8 * 0.02);
        assert_eq!(markov(0.0, 0.5).mean(), 0.1);
        assert_eq!(chain(0.0, 0.0, 1.0, 0.25).mean(), 0.25, "a chain that stands still stays good");
        assert_eq!(chain(0.5, 0.0, 0.75, 0.0).mean(), 0.75, "one that cannot leave the bad state ends there");
    }

    #[test]
    fn a_link_that_loses_everything_is_refused() {
        for loss in [
            Loss::Bernoulli { rate: 1.0 },
            Loss::Bernoulli { rate: 1.0 - 1e-12 },
            markov(1.0, 1.0),
            chain(0.1, 0.3, 1.0, 1.0),
            chain(0.1, 0.0, 1.0, 0.0),
            chain(0.0, 1.0, 0.0, 1.0),
        ] {
            let told = told(&loss);
            assert!(told.starts_with("test: path.uplink.loss: ") && told.contains("loses everything"), "{told}");
            assert!(told.contains("for 1 % write 0.01"), "{told}");
        }
        for loss in [Loss::None, Loss::Bernoulli { rate: 0.999 }, markov(0.0, 1.0), chain(0.1, 0.3, 1.0, 0.0)] {
            assert_eq!(told(&loss), "fine", "{loss:?}");
        }
    }

    #[test]
    fn what_is_no_kind_of_loss_is_answered_with_an_example() {
        let read = |value: &str| toml::from_str::<toml::Table>(&format!("loss = {value}")).unwrap()["loss"].clone();
        for (value, example) in [
            ("\"2 %\"", "{ kind = \"bernoulli\", rate = \"2 %\" }"),
            ("0.02", "{ kind = \"bernoulli\", rate = \"1 %\" }"),
            ("{ rate = 0.02 }", "{ kind = \"bernoulli\", rate = \"1 %\" }"),
            ("{ kind = \"bernoulli\" }", "{ kind = \"bernoulli\", rate = \"1 %\" }"),
            ("\"markov\"", "{ kind = \"markov\", good_loss = "),
            ("{ kind = \"markov\", bad_loss = 0.1 }", "{ kind = \"markov\", good_loss = "),
            ("{ kind = \"gilbert-elliott\", r = 0.1 }", "{ kind = \"gilbert-elliott\", p = "),
        ] {
            let told = Loss::deserialize(read(value)).unwrap_err().to_string();
            assert!(told.contains(&format!("write {example}")), "{value}: {told}");
        }
        for example in EXAMPLES {
            let loss = Loss::deserialize(read(example)).unwrap();
            assert_eq!(self::told(&loss), "fine", "{example}");
        }
    }

    #[test]
    fn what_is_no_probability_is_refused_with_the_fix() {
        let percent = told(&Loss::Bernoulli { rate: 2.0 });
        assert!(percent.contains("loss.rate: 2 is not a probability") && percent.contains("or \"2 %\""), "{percent}");
        let hundred = told(&Loss::Bernoulli { rate: 101.0 });
        assert!(hundred.contains("a fraction from 0 to 1, or a share from 0 % to 100 %"), "{hundred}");
        assert!(told(&chain(-0.1, 0.5, 1.0, 0.0)).contains("loss.p: -0.1 is not a probability"));
        assert!(told(&markov(0.0, f64::NAN)).contains("loss.bad_loss: NaN is not"));
    }
}
