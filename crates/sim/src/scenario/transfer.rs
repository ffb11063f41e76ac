//! How a body reaches the client: in one message or in blocks.

use millpond_coap::block::{BlockSize, robust::BurstParameters};
use millpond_path::word_or_table;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Duration, ScenarioError, Size};

/// How a body reaches the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// In one response.
    #[default]
    Whole,
    /// Block by block, each an exchange of its own (RFC 7959).
    Blocks(Blocks),
    /// In bursts of non-confirmable blocks (RFC 9177).
    Bursts(Bursts),
}

/// A transfer of RFC 7959 (Block2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// Bytes of a block.
    pub size: Size,
    /// Who says so first.
    #[serde(default)]
    pub negotiation: Negotiation,
}

/// Who names the size of the blocks first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Negotiation {
    /// The server, in its first response.
    #[default]
    Late,
    /// The client, in its first request.
    Early,
}

/// A transfer of RFC 9177 (Q-Block2); the parameters are those of its §7.2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Bytes of a block.
    pub size: Size,
    /// MAX_PAYLOADS: blocks in a burst.
    #[serde(default = "ten")]
    pub max_payloads: u32,
    /// NON_TIMEOUT: the pause between two bursts, at least.
    #[serde(default = "two_seconds")]
    pub non_timeout: Duration,
    /// NON_RECEIVE_TIMEOUT: how long a client waits for what is missing before it asks; doubles.
    #[serde(default = "four_seconds")]
    pub non_receive_timeout: Duration,
    /// NON_MAX_RETRANSMIT: requests for missing blocks without any answer before a client gives up.
    #[serde(default = "four")]
    pub non_max_retransmit: u8,
    /// NON_PARTIAL_TIMEOUT: how long part of a body is kept.
    #[serde(default = "partial")]
    pub non_partial_timeout: Duration,
    /// Whether bursts become a paced flow where there is a reason, which is not in RFC 9177.
    #[serde(default)]
    pub paced: bool,
}

fn ten() -> u32 {
    10
}
fn two_seconds() -> Duration {
    Duration(2_000_000)
}
fn four_seconds() -> Duration {
    Duration(4_000_000)
}
fn four() -> u8 {
    4
}
fn partial() -> Duration {
    Duration(247_000_000)
}

/// The largest body that blocks of this size can number (RFC 7959 §2.2: 20 bits).
const MOST_BLOCKS: u64 = 1 << 20;

impl Transfer {
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::Whole
    }

    /// The size of the blocks, if there are any.
    pub(crate) fn block_size(&self) -> Option<BlockSize> {
        let (Self::Blocks(Blocks { size, .. }) | Self::Bursts(Bursts { size, .. })) = self else { return None };
        exponent(*size).and_then(BlockSize::from_exponent)
    }

    /// Whether bodies come in bursts.
    pub(crate) fn is_in_bursts(&self) -> bool {
        matches!(self, Self::Bursts(_))
    }

    /// How both ends of bursts behave, if there are any.
    pub(crate) fn burst_parameters(&self) -> Option<BurstParameters> {
        let Self::Bursts(bursts) = self else { return None };
        Some(BurstParameters {
            set: bursts.max_payloads,
            pause: bursts.non_timeout.span(),
            patience: bursts.non_receive_timeout.span(),
            repeats: bursts.non_max_retransmit,
            lifetime: bursts.non_partial_timeout.span(),
            paced: bursts.paced,
        })
    }

    /// Exchanges that one request of the application takes for a body of so many bytes.
    pub(crate) fn exchanges(&self, body: Size) -> u64 {
        match self {
            Self::Blocks(Blocks { size, .. }) => body.0.div_ceil(size.0.max(1)).max(1),
            Self::Whole | Self::Bursts(_) => 1,
        }
    }

    pub(super) fn check(&self, key: &str, origin: &str, body: Size) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        let (Self::Blocks(Blocks { size, .. }) | Self::Bursts(Bursts { size, .. })) = self else { return Ok(()) };
        if exponent(*size).is_none() {
            return refuse("size", format!("{size} is no size of a block: write 16, 32, 64, 128, 256, 512 or 1024 B"));
        }
        if body.0 > size.0 * MOST_BLOCKS {
            let most = Size(size.0 * MOST_BLOCKS);
            return refuse("size", format!("blocks of {size} cannot number a body of {body} (at most {most})"));
        }
        let Self::Bursts(bursts) = self else { return Ok(()) };
        if !(1..=1_000).contains(&bursts.max_payloads) {
            return refuse("max_payloads", format!("{} is out of range (1 to 1000)", bursts.max_payloads));
        }
        let longest = Duration(u64::from(u32::MAX));
        for (name, time) in [
            ("non_timeout", bursts.non_timeout),
            ("non_receive_timeout", bursts.non_receive_timeout),
            ("non_partial_timeout", bursts.non_partial_timeout),
        ] {
            if !(Duration(1_000)..=longest).contains(&time) {
                return refuse(name, format!("{time} is out of range (1 ms to {longest})"));
            }
        }
        // RFC 9177 §7.2: a client must not complain while the server may still be pausing.
        if bursts.non_receive_timeout.0 < bursts.non_timeout.0 * 3 / 2 + 1_000_000 {
            let least = Duration(bursts.non_timeout.0 * 3 / 2 + 1_000_000);
            let problem = format!("{} is shorter than 1.5 non_timeout + 1 s ({least})", bursts.non_receive_timeout);
            return refuse("non_receive_timeout", problem);
        }
        Ok(())
    }
}

/// The exponent (SZX) of a size, if it is a legal one.
fn exponent(size: Size) -> Option<u8> {
    (0..=6).find(|exponent| size.0 == 16 << exponent)
}

/// As a table.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum Written {
    Whole {},
    Blocks(Blocks),
    Bursts(Bursts),
}

impl<'de> Deserialize<'de> for Transfer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| match word {
            "whole" => Ok(Written::Whole {}),
            "blocks" | "bursts" => {
                Err(format!("`{word}` needs a size: write {{ kind = \"{word}\", size = \"256 B\" }}"))
            }
            _ => Err(super::unknown("transfer", word, &["whole", "blocks", "bursts"])),
        };
        let written = word_or_table(deserializer, "`whole`, or a table with the key `kind`", word)?;
        Ok(match written {
            Written::Whole {} => Self::Whole,
            Written::Blocks(blocks) => Self::Blocks(blocks),
            Written::Bursts(bursts) => Self::Bursts(bursts),
        })
    }
}

impl Serialize for Transfer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole => serializer.serialize_str("whole"),
            Self::Blocks(blocks) => Written::Blocks(blocks.clone()).serialize(serializer),
            Self::Bursts(bursts) => Written::Bursts(bursts.clone()).serialize(serializer),
        }
    }
}
