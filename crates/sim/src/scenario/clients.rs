//! Groups of clients and what they do.

use millpond_control::Chance;
use serde::{Deserialize, Serialize};

use super::{
    Commands, ControllerChoice, Duration, MOST_BODY, MOST_PAYLOAD, Memory, Method, Notifications, Protection, Route,
    ScenarioError, Size, Sizes, Transfer, Transport, Workload, Workloads,
};

/// Clients that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// What the timeline calls them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many; left out in a mesh, one at each of its nodes.
    #[serde(default)]
    pub count: u32,
    /// Their congestion controller: there over UDP, none over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerChoice>,
    /// What they do.
    #[serde(default)]
    pub workload: Workloads,
    /// Requests of each client whose workload is a closed loop that says nothing of its own.
    #[serde(default = "fifty", alias = "requests")]
    pub exchanges: u32,
    /// Sizes of the batches of a workload in fresh batches.
    #[serde(default)]
    pub batch: Batch,
    /// Clients start at random, uniformly, within this long; zero: all at once.
    #[serde(default)]
    pub start_spread: Duration,
    /// Copies after the first before a client gives up (RFC 7252 §4.8, MAX_RETRANSMIT).
    #[serde(default = "four")]
    pub max_retransmit: u8,
    /// When it gives up.
    #[serde(default, skip_serializing_if = "GivesUp::is_after_wait")]
    pub gives_up: GivesUp,
    /// Exchanges that a client may have open at once (RFC 7252 §4.7, NSTART).
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub nstart: u16,
    /// Whether their answers may be marked in place of dropped, and their controllers are told of marks (ECN, RFC 3168).
    #[serde(default, skip_serializing_if = "is_no")]
    pub ecn: bool,
    /// Whether requests are confirmable.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub confirmable: bool,
    /// Requests that an application holds, those under way included; what arrives beyond that is refused and has
    /// failed. Left out: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_queue: Option<u32>,
    /// The resource they ask for: segments with slashes between.
    #[serde(default = "hello")]
    pub uri_path: String,
    /// Bytes of the tokens of their requests. With none the message id alone names an exchange.
    #[serde(default)]
    pub token_length: u8,
    /// Payload of a request. None makes it a GET, any other a PUT.
    #[serde(default)]
    pub request_payload: Sizes,
    /// What protection adds to their messages.
    #[serde(default, skip_serializing_if = "Protection::is_none")]
    pub protection: Protection,
    /// Payload of a response to them; left out, the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_payload: Option<Size>,
    /// How the copies of a request are distinguished; left out, as the controller asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<Naming>,
    /// Which links of a network they cross, if not those that all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
    /// The proxy that they ask in place of the server, by its name: their route leads to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The nodes of a mesh where they are, one at each; left out, all that have no other role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// The sinks of a mesh that they send to, by the name of their group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// What carries their requests.
    #[serde(default, skip_serializing_if = "Transport::is_udp")]
    pub transport: Transport,
    /// How a body reaches them.
    #[serde(default, skip_serializing_if = "Transfer::is_whole")]
    pub transfer: Transfer,
    /// What the server asks each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
    /// What they observe at the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

/// When a client gives a request up that nobody answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GivesUp {
    /// When the wait after the last copy is over (RFC 7252 §4.2).
    #[default]
    AfterWait,
    /// As soon as the last copy has left, without waiting for an answer to it (Erbium of Contiki 2.7).
    AtLastCopy,
}

impl GivesUp {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
    fn is_after_wait(&self) -> bool {
        *self == Self::AfterWait
    }
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
    /// What becomes of congestion-control state before each but the first.
    #[serde(default, skip_serializing_if = "Memory::is_lost")]
    pub memory: Memory,
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
        Self { from: 1, to: 10, near_end: NearEnd::Cut, memory: Memory::Lost }
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

/// How the copies of a request are distinguished, so that a reply can name the one it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Naming {
    /// Not at all.
    None,
    /// By the token, which every server echoes.
    Token,
    /// By the number of the copy in an option.
    Count,
    /// By one bit in an option: a retransmission or not.
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

pub(super) fn one() -> u16 {
    1
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
pub(super) fn is_one(nstart: &u16) -> bool {
    *nstart == 1
}
pub(super) fn yes() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_yes(confirmable: &bool) -> bool {
    *confirmable
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like this")]
fn is_no(ecn: &bool) -> bool {
    !*ecn
}
pub(super) fn four() -> u8 {
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
        Self { controller: Some(controller), ..Self::plain() }
    }

    /// One client with every default.
    pub(super) fn plain() -> Self {
        Self {
            name: None,
            count: 1,
            controller: None,
            workload: Workloads::default(),
            exchanges: fifty(),
            batch: Batch::default(),
            start_spread: Duration(0),
            max_retransmit: four(),
            gives_up: GivesUp::default(),
            nstart: one(),
            ecn: false,
            confirmable: yes(),
            application_queue: None,
            uri_path: hello(),
            token_length: 0,
            request_payload: Sizes::default(),
            protection: Protection::default(),
            response_payload: None,
            naming: None,
            route: None,
            via: None,
            at: Vec::new(),
            sink: None,
            transport: Transport::Udp,
            transfer: Transfer::Whole,
            commands: None,
            notifications: None,
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

    /// Exchanges of one client that fetches bodies of so many bytes, if that is known.
    pub(crate) fn exchanges_for(&self, body: Size) -> Option<u64> {
        Some(self.workload.requests(self.exchanges)?.saturating_mul(self.transfer.exchanges(body)))
    }

    /// The longest payload of a request.
    pub(crate) fn longest_payload(&self) -> u64 {
        self.request_payload.most().0.max(self.workload.largest_payload())
    }

    /// Bytes of the longest request, without header, token and what options take beside their values.
    pub(crate) fn longest_request(&self) -> u64 {
        let path = self.workload.paths().map(str::len).max().unwrap_or(0).max(self.uri_path.len());
        self.protection.request(self.longest_payload()) + path as u64
    }

    /// Bytes of CoAP of a request whose copies are not named.
    pub(super) fn request_bytes(&self) -> u64 {
        // An option takes a byte before its value, two from 13 bytes on (RFC 7252 §3.1); a payload one for its marker.
        let options = |path: &str| -> usize {
            let segments = path.split('/').filter(|segment| !segment.is_empty());
            segments.map(|segment| segment.len() + if segment.len() < 13 { 1 } else { 2 }).sum()
        };
        let longest = self.workload.paths().map(options).max().unwrap_or(0).max(options(&self.uri_path));
        let payload = self.protection.request(self.longest_payload());
        4 + u64::from(self.token_length) + longest as u64 + payload + u64::from(payload > 0)
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
        if let Some(problem) = copies_problem(self.max_retransmit) {
            return refuse("max_retransmit", problem);
        }
        if let Some(problem) = token_problem(self.token_length) {
            return refuse("token_length", problem);
        }
        self.workload.check(self, &format!("{key}.workload"), origin)?;
        if let Some(problem) = self.request_payload.problem() {
            return refuse("request_payload", problem);
        }
        let payload = Size(self.longest_payload());
        if self.transport.is_udp() && self.request_bytes() > MOST_PAYLOAD {
            return refuse("request_payload", format!("{payload} does not fit a datagram (at most {MOST_PAYLOAD} B)"));
        }
        if payload > MOST_BODY {
            return refuse("request_payload", format!("{payload} is too large a body (at most {MOST_BODY})"));
        }
        for (name, path) in
            [("uri_path", &self.uri_path[..])].into_iter().chain(self.workload.paths().map(|path| ("workload", path)))
        {
            if path.split('/').any(|segment| segment.len() > 255) || path.len() > 1_000 {
                return refuse(name, "a segment has at most 255 bytes, the path at most 1000".to_owned());
            }
        }
        self.check_security(key, origin)?;
        self.check_open(key, origin)
    }

    /// Whether as many exchanges can be open as are to be.
    fn check_open(&self, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse =
            |name: &str, problem: String| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        if let Some(problem) = queue_problem(self.application_queue, self.nstart) {
            return refuse("application_queue", problem);
        }
        if !self.confirmable && !self.transport.is_udp() {
            return refuse("confirmable", "over TCP no message is: leave this key out".to_owned());
        }
        if self.gives_up != GivesUp::AfterWait && (!self.confirmable || !self.transfer.is_whole()) {
            let problem = "only of a confirmable message that is a whole request one knows which copy is the last: leave this key out";
            return refuse("gives_up", problem.to_owned());
        }
        if !self.confirmable && !self.transfer.is_whole() {
            return refuse(
                "confirmable",
                "a transfer of blocks says itself which messages are: leave this key out".to_owned(),
            );
        }
        if self.nstart > 1 && (!self.has_exchanges() || !self.transfer.is_whole()) {
            let problem =
                "over TCP, in blocks and in bursts a client asks for one thing after another: leave this key out";
            return refuse("nstart", problem.to_owned());
        }
        nstart_problem(self.nstart, self.token_length).map_or(Ok(()), |problem| refuse("nstart", problem))
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
            Transport::Tcp(_) if self.gives_up != GivesUp::AfterWait => {
                return refuse("gives_up", "over TCP a message has no last copy: leave this key out".to_owned());
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
        let asks_otherwise =
            |workload: &Workload| workload.script.iter().any(|step| step.method != Method::Get || step.path.is_some());
        if !self.transfer.is_whole() && self.workload.all().iter().any(asks_otherwise) {
            let problem = "a body is fetched in blocks by GET from the group's path: leave `script` out";
            return refuse("workload", problem.to_owned());
        }
        if !self.transfer.is_whole() && self.longest_payload() > 0 {
            let problem = "a body is fetched in blocks by GET: leave this key out, or write transfer = \"whole\"";
            return refuse("request_payload", problem.to_owned());
        }
        let asks = !self.workload.all().is_empty();
        if asks && self.transport.is_udp() && self.transfer.is_whole() && body.0 > MOST_PAYLOAD {
            let problem = format!(
                "{body} does not fit a datagram (at most {MOST_PAYLOAD} B): let {key} fetch it by \
                 transfer = {{ kind = \"blocks\", size = \"256 B\" }} or transport = \"tcp\""
            );
            let own = format!("{key}.response_payload");
            let place = if self.response_payload.is_some() { &own } else { "server.payload" };
            return Err(ScenarioError::at_key(origin, place, problem));
        }
        Ok(())
    }
}

/// What is wrong with so many copies after the first.
pub(super) fn copies_problem(max_retransmit: u8) -> Option<String> {
    (max_retransmit > 60).then(|| format!("{max_retransmit} is too many (at most 60)"))
}

/// What is wrong with a queue of so many requests of which so many may be under way.
pub(super) fn queue_problem(application_queue: Option<u32>, nstart: u16) -> Option<String> {
    let is_short = application_queue.is_some_and(|most| most < u32::from(nstart));
    is_short.then(|| format!("those under way count: write at least nstart, which is {nstart}"))
}

/// What is wrong with tokens of so many bytes.
pub(super) fn token_problem(token_length: u8) -> Option<String> {
    (token_length > 8).then(|| format!("{token_length} bytes are too many for a token (0 to 8)"))
}

/// What is wrong with so many exchanges at once that tokens of this length are to keep apart.
pub(super) fn nstart_problem(nstart: u16, token_length: u8) -> Option<String> {
    // Tokens of one byte are distinct among requests under way; longer ones last longer than message IDs do.
    Some(match (token_length, nstart) {
        (_, 0) => "0 exchanges at once are none: write at least 1".to_owned(),
        (_, 1) => return None,
        (0, _) => format!("{nstart} requests at once need tokens: write token_length = 2"),
        (1, 257..) => format!("{nstart} requests at once need more than 256 tokens: write token_length = 2"),
        (_, 32_769..) => format!(
            "{nstart} requests at once would use up all message IDs, of which there are 65,536 for an EXCHANGE_LIFETIME \
             (at most 32768)"
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_batches_are_one_more_than_a_share_of_what_would_leave_one_over() {
        let batch = Batch { from: 1, to: 9, near_end: NearEnd::Scaled, ..Batch::default() };
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
            let batch = Batch { from: 4, to: 6, near_end, ..Batch::default() };
            for left in 1..20 {
                for chance in [Chance::LOWEST, Chance::MIDDLE, Chance::HIGHEST] {
                    assert!((1..=left).contains(&batch.draw(chance, left)));
                }
            }
        }
    }
}
