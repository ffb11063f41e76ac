//! The path: one direction to the server and one back.

use serde::{Deserialize, Serialize};

use crate::{BitRate, Duration, InputError, QueueLimit, Size};

/// The path that all clients share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Bytes of IP and UDP header in front of every CoAP message.
    #[serde(default = "default_header")]
    pub header: Size,
    /// From the clients to the server.
    pub uplink: Direction,
    /// From the server to the clients.
    pub downlink: Direction,
}

/// One direction of the path: a queue, a rate, a delay, losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direction {
    /// The rate of the bottleneck.
    pub rate: BitRate,
    /// Propagation delay after the last bit has left.
    pub delay: Duration,
    /// The one queue of this direction; the packet in service counts.
    pub queue: QueueLimit,
    /// Whether packets that are merely being delayed count towards the queue's limit as well.
    #[serde(default)]
    pub queue_counts: QueueCounts,
    /// Extra delay, drawn for each packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Radio loss.
    #[serde(default)]
    pub loss: Loss,
    /// Whether a lost packet has used the queue and the link.
    #[serde(default)]
    pub loss_at: LossAt,
    /// Bytes that the link adds to each packet, such as an Ethernet header.
    #[serde(default)]
    pub overhead: Size,
}

/// Which packets the limit of a queue counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueCounts {
    /// Those that wait, and the one in service.
    #[default]
    Waiting,
    /// Those whose delay has not passed yet as well, as netem counts.
    All,
}

/// Extra delay of a packet, uniform between two lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// The least.
    pub from: Duration,
    /// The most.
    pub to: Duration,
    /// Whether packets may overtake each other.
    #[serde(default)]
    pub order: Order,
}

/// Whether jitter may reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// A packet never arrives before one that left earlier.
    #[default]
    Preserved,
    /// Packets may overtake.
    Free,
}

/// How the radio loses packets. Probabilities are fractions from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
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
        #[serde(default = "one")]
        r: f64,
        /// Probability of loss in the bad state.
        #[serde(default = "one", rename = "1-h")]
        one_minus_h: f64,
        /// Probability of loss in the good state.
        #[serde(default, rename = "1-k")]
        one_minus_k: f64,
    },
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

fn default_header() -> Size {
    Size(28)
}
fn one() -> f64 {
    1.0
}

impl Path {
    /// Whether links can be built from it. `key` is the path's own place inside `origin`, as errors tell it.
    ///
    /// # Errors
    /// One line with the place and the mend.
    pub fn check(&self, key: &str, origin: &str) -> Result<(), InputError> {
        self.uplink.check(&format!("{key}.uplink"), origin)?;
        self.downlink.check(&format!("{key}.downlink"), origin)?;
        if self.header.0 > 1_000 {
            let problem = format!("{} is more than any IP and UDP header (at most 1000 B)", self.header);
            return Err(InputError::at_key(origin, &format!("{key}.header"), problem));
        }
        Ok(())
    }
}

impl Direction {
    /// Whether a link can be built from it.
    ///
    /// # Errors
    /// One line with the place and the mend.
    pub fn check(&self, key: &str, origin: &str) -> Result<(), InputError> {
        let refuse = |name: &str, problem: String| Err(InputError::at_key(origin, &format!("{key}.{name}"), problem));
        let longest = Duration(u64::from(u32::MAX));
        if let Err(error) = self.config().check() {
            return refuse(error.field(), error.to_string());
        }
        if self.delay > longest {
            return refuse("delay", format!("{} is longer than can be told (at most {longest})", self.delay));
        }
        if let Some(jitter) = self.jitter.as_ref().filter(|jitter| jitter.to > longest) {
            return refuse("jitter.to", format!("{} is longer than can be told (at most {longest})", jitter.to));
        }
        if self.overhead.0 > 10_000 {
            return refuse("overhead", format!("{} a packet is too much (at most 10000 B)", self.overhead));
        }
        let fractions: &[(&str, f64)] = match &self.loss {
            Loss::None => &[],
            Loss::Bernoulli { rate } => &[("rate", *rate)],
            Loss::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => {
                for (name, dwell) in [("good_dwell", good_dwell), ("bad_dwell", bad_dwell)] {
                    let shortest = Duration(u64::from(millpond_link::Loss::SHORTEST_DWELL.as_micros()));
                    if !(shortest..=longest).contains(dwell) {
                        let problem = format!("{dwell} is out of range ({shortest} to {longest})");
                        return refuse(&format!("loss.{name}"), problem);
                    }
                }
                &[("good_loss", *good_loss), ("bad_loss", *bad_loss)]
            }
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                &[("p", *p), ("r", *r), ("1-h", *one_minus_h), ("1-k", *one_minus_k)]
            }
        };
        for (name, fraction) in fractions {
            if !(0.0..=1.0).contains(fraction) {
                let problem = format!("{fraction} is not a probability: write a fraction from 0 to 1");
                return refuse(&format!("loss.{name}"), problem);
            }
        }
        Ok(())
    }
}
