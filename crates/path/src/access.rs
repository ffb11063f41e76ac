//! Access to a cell as a path says it: the section `[path.access]`.

use millpond_control::Span;
use millpond_link::{AccessError, AccessRules, Connection, DutyCycle, Levels, Probability, RandomAccess};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Direction, Duration, InputError, direction::LONGEST, probability, unknown, word_or_table};

/// How devices come to send over the uplink, and when they can be reached over the downlink. Every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// A connection ends so long after its last packet; left out: devices are connected all the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inactivity: Option<Duration>,
    /// From the answer to a preamble until packets go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_up: Option<Duration>,
    /// Preambles that devices choose from; left out: nobody competes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preambles: Option<u16>,
    /// The time between two opportunities to send one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Preambles that are answered at one opportunity; left out: all that did not collide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<u16>,
    /// Preambles before a device gives up and drops what it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u16>,
    /// The time after which a device knows whether its preamble was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Duration>,
    /// The longest wait after that before the next preamble; uniform from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Duration>,
    /// The wait of a packet of a connected device for its grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Duration>,
    /// A device that is not connected listens once in so long (DRX, eDRX).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paging: Option<Duration>,
    /// Not connected for so long, it cannot be reached until it sends by itself (PSM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleeps_after: Option<Duration>,
    /// Coverage levels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<CoverageLevel>,
    /// Share of the time that each device may send.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "share")]
    pub duty_cycle: Option<f64>,
}

/// One coverage level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageLevel {
    /// Its share of the devices; shares are made to add up to one.
    #[serde(deserialize_with = "probability")]
    pub share: f64,
    /// How often every packet of a device there is sent, either way.
    pub repetitions: u16,
}

/// Of 3GPP TS 36.331, `PreambleTransMax`.
const ATTEMPTS: u16 = 10;
/// A duty cycle is a share of an hour (ETSI EN 300 220-1 §5.4): what takes longer never goes.
const OBSERVED: Duration = Duration(3_600_000_000);

impl Access {
    /// What a cell with these directions does.
    ///
    /// # Errors
    /// What access cannot be made of.
    pub fn rules(&self, uplink: &Direction) -> Result<AccessRules, AccessError> {
        let span = |time: Option<Duration>| time.map_or(Span::ZERO, Duration::span);
        let random = self.preambles.map(|preambles| RandomAccess {
            preambles,
            every: span(self.every),
            grants: self.grants,
            attempts: self.attempts.unwrap_or(ATTEMPTS),
            response: span(self.response),
            backoff: span(self.backoff),
            ramping: false,
        });
        let connection = self.inactivity.map(|inactivity| Connection {
            random,
            set_up: span(self.set_up),
            inactivity: inactivity.span(),
            paging: self.paging.map_or(0, |time| time.0),
            sleeps_after: self.sleeps_after.map(|time| time.0),
        });
        let duty = self.duty_cycle.map(|share| DutyCycle {
            share: Probability::from_f64(share).unwrap_or(Probability::ZERO),
            rate: uplink.rate.0,
            overhead: u32::try_from(uplink.overhead.0).unwrap_or(u32::MAX),
        });
        let rules = AccessRules { connection, grant: span(self.grant), levels: self.repetitions()?, duty };
        rules.check()?;
        Ok(rules)
    }

    /// How often packets are repeated.
    ///
    /// # Errors
    /// [`AccessError::Levels`].
    pub fn repetitions(&self) -> Result<Levels, AccessError> {
        if self.levels.is_empty() {
            return Ok(Levels::ONE);
        }
        let all: f64 = self.levels.iter().map(|level| level.share).sum();
        let parts = |level: &CoverageLevel| ((level.share / all * 1e9).round() as u32, level.repetitions);
        Levels::new(&self.levels.iter().map(parts).collect::<Vec<_>>())
    }

    /// Why no packet of so many bytes ever goes, if that is so.
    #[must_use]
    pub fn holds_back(&self, uplink: &Direction, bytes: u64) -> Option<String> {
        let share = self.duty_cycle?;
        let times = self.levels.iter().map(|level| level.repetitions).max().unwrap_or(1);
        let bits = 8 * (bytes + uplink.overhead.0) * u64::from(times);
        let air = bits as f64 / uplink.rate.0.max(1) as f64;
        let most = share * OBSERVED.0 as f64 / 1e6;
        (air > most).then(|| {
            format!(
                "a packet of {bytes} B takes {:.1} ms at {}, and {:.4} % of an hour are {:.1} ms, so it never goes: \
                 write a larger share, a higher rate or shorter messages",
                1e3 * air,
                uplink.rate,
                100.0 * share,
                1e3 * most
            )
        })
    }

    /// Lays it over another: what is not written stays as it is there.
    pub(crate) fn over(self, other: Self) -> Self {
        let preambles = self.preambles.or(other.preambles);
        Self {
            inactivity: self.inactivity.or(other.inactivity),
            set_up: self.set_up.or(other.set_up),
            preambles,
            every: self.every.or(other.every),
            grants: self.grants.or(other.grants),
            attempts: self.attempts.or(other.attempts).or(preambles.map(|_| ATTEMPTS)),
            response: self.response.or(other.response),
            backoff: self.backoff.or(other.backoff),
            grant: self.grant.or(other.grant),
            paging: self.paging.or(other.paging),
            sleeps_after: self.sleeps_after.or(other.sleeps_after),
            levels: if self.levels.is_empty() { other.levels } else { self.levels },
            duty_cycle: self.duty_cycle.or(other.duty_cycle),
        }
    }

    /// Whether a cell can give access so. `key` is its place inside `origin`, as errors tell it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    pub(crate) fn check(&self, uplink: &Direction, key: &str, origin: &str) -> Result<(), InputError> {
        let refuse = |name: &str, problem: String| Err(InputError::at_key(origin, &format!("{key}.{name}"), problem));
        let short = [
            ("inactivity", self.inactivity),
            ("set_up", self.set_up),
            ("every", self.every),
            ("response", self.response),
            ("backoff", self.backoff),
            ("grant", self.grant),
        ];
        if let Some((name, Some(time))) = short.into_iter().find(|(_, time)| time.is_some_and(|time| time > LONGEST)) {
            return refuse(name, format!("{time} is longer than can be told (at most {LONGEST})"));
        }
        let of_connection = [
            ("set_up", self.set_up.is_some()),
            ("preambles", self.preambles.is_some()),
            ("paging", self.paging.is_some()),
            ("sleeps_after", self.sleeps_after.is_some()),
        ];
        if self.inactivity.is_none()
            && let Some((name, _)) = of_connection.into_iter().find(|(_, is_there)| *is_there)
        {
            let problem = "devices are connected all the time here: write `inactivity`, after which a connection ends";
            return refuse(name, problem.to_owned());
        }
        let of_preambles = [
            ("every", self.every.is_some()),
            ("grants", self.grants.is_some()),
            ("attempts", self.attempts.is_some()),
            ("response", self.response.is_some()),
            ("backoff", self.backoff.is_some()),
        ];
        if self.preambles.is_none()
            && let Some((name, _)) = of_preambles.into_iter().find(|(_, is_there)| *is_there)
        {
            return refuse(name, "nobody sends preambles here: write `preambles`, how many there are".to_owned());
        }
        if let Some(share) = self.duty_cycle.filter(|share| !(0.0..=1.0).contains(share)) {
            return refuse("duty_cycle", format!("{share} is no share of the time: write one such as \"1 %\""));
        }
        if self.duty_cycle.is_some() && uplink.trace.as_ref().is_some_and(crate::Trace::has_rates) {
            let problem = "how long a packet takes follows a trace here: write the uplink's `rate` instead of it";
            return refuse("duty_cycle", problem.to_owned());
        }
        match self.rules(uplink) {
            Ok(_) => Ok(()),
            Err(error) => refuse(error.field(), error.to_string()),
        }
    }
}

/// Reads a share.
fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    probability(deserializer).map(Some)
}

/// Reads access, or the word that takes a profile's away.
pub(crate) fn access_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Access>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(from = "Access")]
    struct Written(Option<Access>);
    impl From<Access> for Written {
        fn from(access: Access) -> Self {
            Self(Some(access))
        }
    }
    let word = |word: &str| match word {
        "none" => Ok(Written(None)),
        _ => Err(unknown("access", word, &["none"])),
    };
    word_or_table(deserializer, "`none`, or a table with keys such as `inactivity`", word)
        .map(|Written(access)| Some(access))
}
