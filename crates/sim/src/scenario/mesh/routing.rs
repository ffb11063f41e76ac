//! Which way packets take through a mesh.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    network::radio::{Objective, Parameters, Settings},
    scenario::{Duration, unknown, word_or_table},
};

/// Who finds the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Routing {
    /// Nobody: the tree of fewest hops is given, and stays.
    #[default]
    Static,
    /// The nodes themselves, by RPL.
    Rpl(Rpl),
}

/// RPL (RFC 6550) in storing mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rpl {
    /// Whether there are DIS, DIO and DAO on the air; without them neighbours know each other's ranks and routes at once.
    pub control_traffic: bool,
    /// By what nodes choose their parents.
    pub objective_function: ObjectiveFunction,
    /// The parent is changed for a rank that is lower by so much, in units of 1/128 of a transmission (RFC 6719).
    pub parent_switch_threshold: u32,
    /// How long before the run begins nodes are switched on; with control traffic only.
    pub idle_start: Duration,
    /// The shortest interval of Trickle.
    pub dio_interval_min: Duration,
    /// How often it doubles.
    pub dio_interval_doublings: u8,
    /// Consistent DIOs from which on a node is silent; 0: none are enough.
    pub dio_redundancy_constant: u16,
    /// From one DIS of a node that has not joined to the next.
    pub dis_interval: Duration,
    /// A DAO waits for half of this and a random time up to all of it.
    pub dao_delay: Duration,
}

/// By what nodes choose their parents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveFunction {
    /// Fewest expected transmissions (ETX), with hysteresis (RFC 6719).
    #[default]
    Mrhof,
    /// Fewest hops (RFC 6552).
    Of0,
}

/// Contiki 2.7, where these have names there.
impl Default for Rpl {
    fn default() -> Self {
        Self {
            control_traffic: true,
            objective_function: ObjectiveFunction::Mrhof,
            parent_switch_threshold: 64,
            idle_start: Duration(60_000_000),
            dio_interval_min: Duration(4_096_000),
            dio_interval_doublings: 8,
            dio_redundancy_constant: 10,
            dis_interval: Duration(60_000_000),
            dao_delay: Duration(4_000_000),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Written {
    Static {},
    Rpl(Rpl),
}

impl<'de> Deserialize<'de> for Routing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |text: &str| match text {
            "static" => Ok(Written::Static {}),
            "rpl" => Ok(Written::Rpl(Rpl::default())),
            _ => Err(unknown("routing", text, &["static", "rpl"])),
        };
        Ok(match word_or_table(deserializer, "`static`, `rpl`, or a table with the key `kind`", word)? {
            Written::Static {} => Self::Static,
            Written::Rpl(rpl) => Self::Rpl(rpl),
        })
    }
}

/// The longest of times: an hour, and for Trickle's longest interval a day.
const HOUR: Duration = Duration(3_600_000_000);
const DAY: Duration = Duration(24 * HOUR.0);

impl Routing {
    pub(super) fn is_static(&self) -> bool {
        *self == Self::Static
    }

    /// How long before the run begins nodes are switched on.
    pub(super) fn idle_start(&self) -> Duration {
        match self {
            Self::Rpl(rpl) if rpl.control_traffic => rpl.idle_start,
            Self::Rpl(_) | Self::Static => Duration(0),
        }
    }

    pub(super) fn settings(&self) -> Option<Settings> {
        let Self::Rpl(rpl) = self else { return None };
        Some(Settings {
            control_traffic: rpl.control_traffic,
            objective: match rpl.objective_function {
                ObjectiveFunction::Of0 => Objective::Of0,
                ObjectiveFunction::Mrhof => Objective::Mrhof { threshold: rpl.parent_switch_threshold },
            },
            trickle: Parameters {
                minimum: rpl.dio_interval_min.span(),
                doublings: rpl.dio_interval_doublings,
                redundancy: rpl.dio_redundancy_constant,
            },
            dis_interval: rpl.dis_interval.span(),
            dao_delay: rpl.dao_delay.span(),
        })
    }

    /// Checks it for a mesh that sends a frame again so often.
    pub(super) fn check(&self, retransmissions: u8) -> Result<(), (String, String)> {
        let Self::Rpl(rpl) = self else { return Ok(()) };
        let refuse = |key: &str, problem: String| Err((format!("routing.{key}"), problem));
        let by_etx = rpl.objective_function == ObjectiveFunction::Mrhof;
        if !rpl.control_traffic && !by_etx {
            let problem = "`of0` without control traffic never changes a tree: write routing = \"static\"";
            return refuse("objective_function", problem.to_owned());
        }
        if by_etx && retransmissions == 0 {
            let problem = "`mrhof` goes by acknowledgements, and with retransmissions = 0 there are none: write `of0`";
            return refuse("objective_function", problem.to_owned());
        }
        if rpl.parent_switch_threshold > 65_535 {
            let threshold = rpl.parent_switch_threshold;
            return refuse("parent_switch_threshold", format!("{threshold} is more than any rank (at most 65535)"));
        }
        for (key, time, least) in [
            ("dio_interval_min", rpl.dio_interval_min, 1_000),
            ("dis_interval", rpl.dis_interval, 1_000_000),
            ("dao_delay", rpl.dao_delay, 0),
            ("idle_start", rpl.idle_start, 0),
        ] {
            if time.0 < least || time > HOUR {
                return refuse(key, format!("{time}: write {} to {HOUR}", Duration(least)));
            }
        }
        let doublings = rpl.dio_interval_doublings;
        let longest = u128::from(rpl.dio_interval_min.0) << doublings.min(64);
        if longest > u128::from(DAY.0) {
            let problem = format!("{doublings} doublings of {} are more than {DAY}: write fewer", rpl.dio_interval_min);
            return refuse("dio_interval_doublings", problem);
        }
        Ok(())
    }
}
