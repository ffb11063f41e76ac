//! What the clients of a group do over time, as a scenario says it: a word, a table, or a list of tables that run side
//! by side.

mod frequency;
mod ramp;
mod written;

use serde::{Deserialize, Serialize};

pub use frequency::Frequency;
pub use ramp::{Ramp, Spacing};

use super::{Arrival, Clients, Duration, MOST_PAYLOAD, ScenarioError, Size, Sizes, Times};

/// Everything that one client does, side by side; nothing, if it only serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Workloads(Vec<Workload>);

/// One source of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// When requests arrive.
    pub arrivals: ArrivalProcess,
    /// Requests of each client, of arrivals after an event those of each event; left out, what the kind says.
    pub requests: Option<u32>,
    /// Requests arrive for so long, counted from its start.
    pub lasts: Option<Duration>,
    /// Payload of a request; left out, the group's.
    pub payload: Option<Sizes>,
    /// Requests one after another, beginning anew after the last; empty: all alike, for the group's resource.
    pub script: Vec<Step>,
}

/// When requests arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// One after another: the next when the one before has ended, and this time has passed.
    Continuous {
        /// The time between an end and the next arrival.
        think: Times,
    },
    /// The same in batches; all congestion-control state is dropped between two batches.
    FreshBatches,
    /// As many open as NSTART allows.
    Backlog,
    /// In a rhythm.
    Periodic {
        /// The time between two arrivals, or those of shares of the clients.
        period: Periods,
        /// The first; left out, uniform in the period.
        phase: Option<Duration>,
        /// Each arrival is later by a time that is uniform up to this.
        jitter: Duration,
        /// The rhythm is the clock's, not the client's: everybody on the hour.
        aligned: bool,
        /// So many at once.
        burst: u16,
    },
    /// Independent of each other.
    Poisson {
        /// Mean time between two arrivals.
        interval: Duration,
    },
    /// As often as a rate says that changes over time.
    Ramp(Ramp),
    /// After an event of the timeline that concerns the group; if there is none, after the start.
    AfterEvent {
        /// From the event to the first request.
        arrival: Arrival,
        /// Between the end of a request and the arrival of the next.
        think: Times,
        /// What follows a request that nobody answered; left out, the next one.
        retry: Option<Retry>,
    },
}

/// All requests for an event begin anew, some time after one of them got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The wait before the second attempt; before each further one of a row it is twice as long.
    pub timer: Duration,
    /// Attempts in a row.
    pub attempts: u8,
    /// The wait before another row; without it there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Duration>,
}

impl Retry {
    /// The longest wait that doubling comes to.
    const MOST_DOUBLINGS: u32 = 31;

    /// The wait after so many attempts that failed, from 1 on; none if nobody tries again.
    pub(crate) fn wait(&self, failed: u32) -> Option<u64> {
        let attempts = u32::from(self.attempts.max(1));
        match (failed % attempts, self.then) {
            (0, then) => then.map(|then| then.0),
            (in_row, _) => Some(self.timer.0.saturating_mul(1 << (in_row - 1).min(Self::MOST_DOUBLINGS))),
        }
    }
}

/// The time between two arrivals of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Periods {
    /// The same for everybody.
    One(Duration),
    /// Shares of the clients have their own.
    Mix(Vec<Share>),
    /// Between two arrivals of all clients of the group together.
    Together(Duration),
}

/// The clients of a share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The fraction of the clients, from 0 to 1.
    pub share: f64,
    /// Their period.
    pub period: Duration,
}

/// One request of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    #[serde(default)]
    pub method: Method,
    /// The resource; left out, the group's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Payload of the request.
    #[serde(default)]
    pub payload: Sizes,
    /// Payload of the response; left out, what the group gets, or the resource has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_payload: Option<Size>,
    /// In place of a request two flights of a handshake; method, path and payload are left out then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flights: Option<Flights>,
}

/// A flight of a handshake below CoAP and the flight that answers it, each a datagram: bytes above UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flights {
    /// The client's.
    pub up: Size,
    /// The server's.
    pub down: Size,
}

impl Flights {
    /// The header of a record of DTLS 1.2 (RFC 6347 §4.1).
    const LEAST: u64 = 13;

    fn problem(self) -> Option<String> {
        let range = Self::LEAST..=MOST_PAYLOAD;
        let bad = [self.up, self.down].into_iter().find(|size| !range.contains(&size.0))?;
        Some(format!("{bad} is no flight: write {} B to {} B", range.start(), range.end()))
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Asks.
    #[default]
    Get,
    /// Hands over.
    Post,
    /// Replaces.
    Put,
    /// Removes.
    Delete,
}

/// The shares of 3GPP TR 45.820 annex E, mobile autonomous reporting: 11.2 reports a device and day.
const REPORTING: [(f64, u64); 4] =
    [(0.40, 86_400_000_000), (0.40, 7_200_000_000), (0.15, 3_600_000_000), (0.05, 1_800_000_000)];

impl Workload {
    /// A workload with these arrivals, and every default.
    #[must_use]
    pub const fn of(arrivals: ArrivalProcess) -> Self {
        Self { arrivals, requests: None, lasts: None, payload: None, script: Vec::new() }
    }

    /// Mobile autonomous reporting of 3GPP TR 45.820 annex E: a mix of periods, the first report uniform in its period,
    /// payloads Pareto with α 2.5 from 20 to 200 B.
    #[must_use]
    pub fn reporting() -> Self {
        let share = |(share, period)| Share { share, period: Duration(period) };
        let period = Periods::Mix(REPORTING.into_iter().map(share).collect());
        let arrivals = ArrivalProcess::Periodic { period, phase: None, jitter: Duration(0), aligned: false, burst: 1 };
        let payload = Sizes::Pareto { alpha: 2.5, from: Size(20), to: Size(200) };
        Self { payload: Some(payload), ..Self::of(arrivals) }
    }

    /// How many requests a client of this group makes, if that is known.
    pub(crate) fn requests(&self, exchanges: u32) -> Option<u32> {
        let natural = match self.arrivals {
            ArrivalProcess::Continuous { .. } | ArrivalProcess::FreshBatches if self.lasts.is_none() => Some(exchanges),
            ArrivalProcess::AfterEvent { .. } => Some((self.script.len() as u32).max(1)),
            _ => None,
        };
        self.requests.or(natural)
    }

    /// Whether it never ends by itself.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.lasts.is_none() && self.requests(1).is_none()
    }

    /// Whether the next request waits for the end of the one before.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(
            self.arrivals,
            ArrivalProcess::Continuous { .. }
                | ArrivalProcess::FreshBatches
                | ArrivalProcess::Backlog
                | ArrivalProcess::AfterEvent { .. }
        )
    }

    fn check(&self, clients: u32, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        if self.requests == Some(0) {
            return refuse("requests", "0 requests measure nothing: write at least 1".to_owned());
        }
        if self.lasts == Some(Duration(0)) {
            return refuse("for", "0 s leaves no time for anything: write at least `1 s`".to_owned());
        }
        for (n, step) in self.script.iter().enumerate() {
            let plain = Step { flights: step.flights, ..Step::default() };
            let problem = step.flights.and_then(|flights| {
                let alone = "flights are no request: leave method, path and payload out";
                flights.problem().or_else(|| (*step != plain).then(|| alone.to_owned()))
            });
            if let Some(problem) = problem {
                return refuse(&format!("script[{n}].flights"), problem);
            }
        }
        let sizes = self.payload.iter().map(|sizes| ("payload".to_owned(), sizes));
        let steps = self.script.iter().enumerate().map(|(n, step)| (format!("script[{n}].payload"), &step.payload));
        for (name, sizes) in sizes.chain(steps) {
            if let Some(problem) = sizes.problem() {
                return refuse(&name, problem);
            }
        }
        match &self.arrivals {
            ArrivalProcess::Continuous { think } | ArrivalProcess::AfterEvent { think, .. }
                if think.problem().is_some() =>
            {
                refuse("think", think.problem().unwrap_or_default())
            }
            ArrivalProcess::AfterEvent { retry: Some(Retry { attempts: 0, .. }), .. } => {
                refuse("retry.attempts", "0 attempts are none: write at least 1".to_owned())
            }
            ArrivalProcess::AfterEvent { arrival, .. } => match arrival.problem() {
                Some(problem) => refuse("arrival", problem),
                None => Ok(()),
            },
            ArrivalProcess::Ramp(ramp) => match ramp.problem() {
                Some((name, problem)) => refuse(name, problem),
                None => Ok(()),
            },
            ArrivalProcess::Poisson { interval: Duration(0) } => {
                refuse("interval", "0 s between two arrivals is for ever: write at least `1 us`".to_owned())
            }
            ArrivalProcess::Periodic { period, jitter, burst, .. } => {
                let (shortest, sum) = match period {
                    Periods::One(period) => (*period, 1.0),
                    Periods::Together(period) => (Duration(period.0.saturating_mul(u64::from(clients))), 1.0),
                    Periods::Mix(shares) => {
                        let shortest = shares.iter().map(|share| share.period).min().unwrap_or_default();
                        (shortest, shares.iter().map(|share| share.share).sum())
                    }
                };
                if shortest == Duration(0) {
                    return refuse("period", "0 s between two arrivals is for ever: write at least `1 us`".to_owned());
                }
                // The sum of a few decimal fractions.
                if !(sum - 1.0_f64).abs().lt(&1e-9) {
                    return refuse("period", format!("the shares make {sum}, not 1"));
                }
                if *jitter > shortest {
                    return refuse("jitter", format!("{jitter} is longer than the period of {shortest}"));
                }
                if *burst == 0 {
                    return refuse("burst", "0 requests at once are none: write at least 1".to_owned());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Workloads {
    /// This one alone.
    #[must_use]
    pub fn one(workload: Workload) -> Self {
        Self(vec![workload])
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[Workload] {
        &self.0
    }

    /// How many requests each client makes, if that is known.
    pub(crate) fn requests(&self, exchanges: u32) -> Option<u64> {
        self.0.iter().map(|workload| workload.requests(exchanges).map(u64::from)).sum()
    }

    /// The largest payload of a request, if they say so.
    pub(crate) fn largest_payload(&self) -> u64 {
        let own = self.0.iter().filter_map(|workload| workload.payload);
        let steps = self.steps().map(|step| step.payload);
        own.chain(steps).map(|sizes| sizes.most().0).max().unwrap_or(0)
    }

    /// Whether anything is asked for that no script names.
    pub(crate) fn asks_plainly(&self) -> bool {
        self.0.iter().any(|workload| workload.script.is_empty())
    }

    /// The steps of all scripts.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.0.iter().flat_map(|workload| &workload.script)
    }

    /// The flights of scripts.
    pub(crate) fn flights(&self) -> impl Iterator<Item = Flights> {
        self.0.iter().flat_map(|workload| workload.script.iter().filter_map(|step| step.flights))
    }

    /// The paths that scripts name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.steps().filter_map(|step| step.path.as_deref())
    }

    pub(super) fn check(&self, clients: &Clients, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let place = |index: usize| if self.0.len() == 1 { key.to_owned() } else { format!("{key}[{index}]") };
        if self.0.is_empty() && clients.commands.is_none() && clients.notifications.is_none() {
            let problem = "nobody does anything: leave this key out for \"continuous\", or name a workload";
            return Err(ScenarioError::at_key(origin, key, problem));
        }
        if self.0.len() > 64 {
            return Err(ScenarioError::at_key(origin, key, format!("{} workloads; at most 64", self.0.len())));
        }
        for (index, workload) in self.0.iter().enumerate() {
            let (key, refuse) =
                (place(index), |problem: &str| Err(ScenarioError::at_key(origin, &place(index), problem)));
            workload.check(clients.count, &key, origin)?;
            if workload.arrivals == ArrivalProcess::FreshBatches && self.0.len() > 1 {
                return refuse(
                    "batches drop all congestion-control state, that of the others too: let them stand alone",
                );
            }
            if workload.arrivals == ArrivalProcess::FreshBatches && clients.nstart > 1 {
                return refuse("a batch is one request after another: leave `nstart` out");
            }
        }
        Ok(())
    }
}

impl Default for Workloads {
    fn default() -> Self {
        Self::one(Workload::of(ArrivalProcess::Continuous { think: Times::NONE }))
    }
}
