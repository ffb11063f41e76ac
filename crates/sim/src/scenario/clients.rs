//! Groups of clients and what they do.

use millpond_control::Chance;
use serde::{Deserialize, Serialize};

use super::{ControllerChoice, Duration, MOST_PAYLOAD, Route, ScenarioError, Size, Transfer, Transport};

/// Clients that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// How many.
    pub count: u32,
    /// Their congestion controller: there over UDP, none over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerChoice>,
    /// What they do.
    #[serde(default)]
    pub workload: Workload,
    /// Exchanges of each client.
    #[serde(default = "fifty")]
    pub exchanges: u32,
    /// Sizes of the batches of the random workload.
    #[serde(default)]
    pub batch: Batch,
    /// Clients start evenly spread over this long; zero: all at once.
    #[serde(default)]
    pub start_spread: Duration,
    /// Copies after the first before a client gives up (RFC 7252 §4.8, MAX_RETRANSMIT).
    #[serde(default = "four")]
    pub max_retransmit: u8,
    /// The resource they ask for: segments with slashes between.
    #[serde(default = "hello")]
    pub uri_path: String,
    /// Bytes of the tokens of their requests. With none the message id alone names an exchange.
    #[serde(default)]
    pub token_length: u8,
    /// Payload of a request. None makes it a GET, any other a PUT.
    #[serde(default)]
    pub request_payload: Size,
    /// How the copies of a request are told apart; left out, as the controller asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<Naming>,
    /// Which links of a network they cross, if not those that all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// What carries their requests.
    #[serde(default, skip_serializing_if = "Transport::is_udp")]
    pub transport: Transport,
    /// How a body reaches them.
    #[serde(default, skip_serializing_if = "Transfer::is_whole")]
    pub transfer: Transfer,
}

/// What a client does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// The next request leaves in the instant the response is accepted.
    #[default]
    Continuous,
    /// The same in batches; all congestion-control state is dropped between two batches.
    Random,
}

/// Sizes of batches: uniform, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The smallest.
    pub from: u32,
    /// The largest.
    pub to: u32,
    /// What becomes of a size that is more than is left.
    #[serde(default)]
    pub near_end: NearEnd,
}

impl Batch {
    /// The size of a batch when `left` exchanges are left, which is at least 1 and at most `left`.
    #[must_use]
    pub fn draw(&self, chance: Chance, left: u32) -> u32 {
        let to = match self.near_end {
            NearEnd::Cut => self.to,
            NearEnd::Scaled => self.to.min(left.saturating_sub(1)).max(self.from),
        };
        chance.pick(self.from, to).min(left)
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self { from: 1, to: 10, near_end: NearEnd::Cut }
    }
}

/// How the sizes of the last batches are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NearEnd {
    /// As always, then cut to what is left.
    #[default]
    Cut,
    /// From the sizes that leave at least one exchange over, as long as there are any.
    Scaled,
}

/// How the copies of a request are told apart, so that a reply can name the one it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// Not at all.
    None,
    /// By the token, which every server echoes.
    Token,
    /// By the number of the copy in an option.
    Count,
    /// By one bit in an option: a further copy or not.
    Flag,
    /// By the time each copy left.
    Timestamp,
}

impl From<Naming> for millpond_control::Naming {
    fn from(naming: Naming) -> Self {
        match naming {
            Naming::None => Self::None,
            Naming::Token => Self::Token,
            Naming::Count => Self::Count,
            Naming::Flag => Self::Flag,
            Naming::Timestamp => Self::Timestamp,
        }
    }
}

fn four() -> u8 {
    4
}
fn fifty() -> u32 {
    50
}
fn hello() -> String {
    "hello".to_owned()
}

impl Clients {
    /// One client with this controller, and every default.
    #[must_use]
    pub fn of(controller: ControllerChoice) -> Self {
        Self {
            count: 1,
            controller: Some(controller),
            workload: Workload::default(),
            exchanges: fifty(),
            batch: Batch::default(),
            start_spread: Duration(0),
            max_retransmit: four(),
            uri_path: hello(),
            token_length: 0,
            request_payload: Size(0),
            naming: None,
            route: None,
            transport: Transport::Udp,
            transfer: Transfer::Whole,
        }
    }

    /// What controls congestion, for tables: the controller, or TCP's own.
    #[must_use]
    pub fn algorithm(&self) -> String {
        match (&self.transport, &self.controller) {
            (Transport::Tcp(tcp), _) => tcp.to_string(),
            (Transport::Udp, Some(controller)) => controller.to_string(),
            (Transport::Udp, None) => String::new(),
        }
    }

    /// Whether each message to the server is an exchange of its own, whose copies can be counted.
    pub(crate) fn has_exchanges(&self) -> bool {
        self.transport.is_udp() && !matches!(self.transfer, Transfer::Bursts(_))
    }

    /// Exchanges of one client that fetches bodies of so many bytes.
    pub(crate) fn exchanges_for(&self, body: Size) -> u64 {
        u64::from(self.exchanges).saturating_mul(self.transfer.exchanges(body))
    }

    /// Bytes of CoAP of a request whose copies are not named.
    pub(super) fn request_bytes(&self) -> u64 {
        let segments = self.uri_path.split('/').filter(|segment| !segment.is_empty());
        // An option takes a byte before its value, two from 13 bytes on (RFC 7252 §3.1); a payload one for its marker.
        let options: usize = segments.map(|segment| segment.len() + if segment.len() < 13 { 1 } else { 2 }).sum();
        let payload = self.request_payload.0;
        4 + u64::from(self.token_length) + options as u64 + payload + u64::from(payload > 0)
    }

    pub(super) fn check(&self, key: &str, origin: &str, body: Size) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        self.check_transport(key, origin, body)?;
        if self.count == 0 {
            return refuse("count", "0 clients send nothing: write at least 1".to_owned());
        }
        if self.exchanges == 0 {
            return refuse("exchanges", "0 exchanges measure nothing: write at least 1".to_owned());
        }
        if self.batch.from == 0 || self.batch.from > self.batch.to {
            return refuse("batch", format!("from {} to {}: write 1 ≤ from ≤ to", self.batch.from, self.batch.to));
        }
        if self.max_retransmit > 60 {
            return refuse("max_retransmit", format!("{} is too many (at most 60)", self.max_retransmit));
        }
        if self.start_spread.0 > u64::from(u32::MAX) {
            return refuse("start_spread", format!("{} is too long (at most 71 min)", self.start_spread));
        }
        if self.token_length > 8 {
            return refuse("token_length", format!("{} bytes are too many for a token (0 to 8)", self.token_length));
        }
        if self.request_bytes() > MOST_PAYLOAD {
            let payload = self.request_payload;
            return refuse("request_payload", format!("{payload} does not fit a datagram (at most {MOST_PAYLOAD} B)"));
        }
        if self.uri_path.split('/').any(|segment| segment.len() > 255) || self.uri_path.len() > 1_000 {
            return refuse("uri_path", "a segment has at most 255 bytes, the path at most 1000".to_owned());
        }
        Ok(())
    }

    /// Whether transport, controller and transfer go together.
    fn check_transport(&self, key: &str, origin: &str, body: Size) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        match &self.transport {
            Transport::Udp if self.controller.is_none() => {
                let problem = "missing key `controller`: name one, such as `rfc7252`, or write transport = \"tcp\"";
                return Err(ScenarioError::at_key(origin, key, problem));
            }
            Transport::Udp => {}
            Transport::Tcp(_) if self.controller.is_some() => {
                let problem = "TCP brings its own congestion control: leave this key out, or write transport = \"udp\"";
                return refuse("controller", problem.to_owned());
            }
            Transport::Tcp(_) if self.naming.is_some() => {
                return refuse("naming", "over TCP a message has no copies to be named: leave this key out".to_owned());
            }
            Transport::Tcp(_) if !self.transfer.is_whole() => {
                let problem = "over TCP a body is one message: leave this key out, or write transport = \"udp\"";
                return refuse("transfer", problem.to_owned());
            }
            Transport::Tcp(tcp) => tcp.check(&format!("{key}.transport"), origin)?,
        }
        self.transfer.check(&format!("{key}.transfer"), origin, body)?;
        if !self.transfer.is_whole() && self.request_payload.0 > 0 {
            let problem = "a body is fetched in blocks by GET: leave this key out, or write transfer = \"whole\"";
            return refuse("request_payload", problem.to_owned());
        }
        if self.transport.is_udp() && self.transfer.is_whole() && body.0 > MOST_PAYLOAD {
            let problem = format!(
                "{body} does not fit a datagram (at most {MOST_PAYLOAD} B): let {key} fetch it by \
                 transfer = {{ kind = \"blocks\", size = \"256 B\" }} or transport = \"tcp\""
            );
            return Err(ScenarioError::at_key(origin, "server.payload", problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_batches_are_one_more_than_a_share_of_what_would_leave_one_over() {
        let batch = Batch { from: 1, to: 9, near_end: NearEnd::Scaled };
        for left in 1..=50 {
            let most = (left - 1).min(9);
            for word in [0, 1 << 28, 1 << 30, 1 << 31, u32::MAX] {
                // 1 + (int)(U · min(9, 49 - done)) of 50 exchanges.
                let drawn = 1 + (f64::from(word) / 4_294_967_296.0 * f64::from(most)) as u32;
                assert_eq!(batch.draw(Chance::from_word(word), left), drawn, "{left} left");
            }
        }
        assert_eq!(batch.draw(Chance::HIGHEST, 2), 1);
    }

    #[test]
    fn cut_batches_are_drawn_as_always() {
        let batch = Batch::default();
        assert_eq!(batch.draw(Chance::HIGHEST, 50), 10);
        assert_eq!(batch.draw(Chance::HIGHEST, 3), 3);
        assert_eq!(batch.draw(Chance::LOWEST, 3), 1);
    }

    #[test]
    fn no_batch_is_empty_or_more_than_is_left() {
        for near_end in [NearEnd::Cut, NearEnd::Scaled] {
            let batch = Batch { from: 4, to: 6, near_end };
            for left in 1..20 {
                for chance in [Chance::LOWEST, Chance::MIDDLE, Chance::HIGHEST] {
                    assert!((1..=left).contains(&batch.draw(chance, left)));
                }
            }
        }
    }
}
