//! What protects messages, as far as a scenario says it: OSCORE, or bytes on each of them and handshakes before.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Clients, Scenario, ScenarioError, Size, unknown, word_or_table};

/// What OSCORE adds to a message at least, beside the marker of a payload that was there: the option, with flags, a Partial IV and an
/// ID of a byte each in a request, the code, and the 8 bytes that prove it authentic.
const OSCORE_REQUEST: Size = Size(4 + 1 + 8 + 1);
const OSCORE_RESPONSE: Size = Size(1 + 1 + 8 + 1);

/// What protects the messages of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// OSCORE (RFC 8613), by the code that ships: each client shares a security context with the server.
    Oscore,
    /// Something below CoAP, such as the records of DTLS, of which only the bytes count that it adds.
    Added {
        /// To a request.
        request: Size,
        /// To a response.
        response: Size,
    },
}

/// The table that a scenario has for what is added.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    request: Size,
    response: Size,
}

#[derive(Deserialize)]
#[serde(from = "Added")]
struct Written(Protection);

impl From<Added> for Written {
    fn from(Added { request, response }: Added) -> Self {
        Self(Protection::Added { request, response })
    }
}

impl<'de> Deserialize<'de> for Protection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = |word: &str| match word {
            "none" => Ok(Written(Self::None)),
            "oscore" => Ok(Written(Self::Oscore)),
            _ => Err(unknown("protection", word, &["none", "oscore"])),
        };
        let expected = "`none`, `oscore`, or a table with the keys `request` and `response`";
        word_or_table(deserializer, expected, word).map(|Written(protection)| protection)
    }
}

impl Serialize for Protection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::None => serializer.serialize_str("none"),
            Self::Oscore => serializer.serialize_str("oscore"),
            Self::Added { request, response } => Added { request, response }.serialize(serializer),
        }
    }
}

impl Protection {
    /// The most for a message: the longest record header, nonce and tag fit several times.
    const MOST: u64 = 1_000;

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }

    pub(crate) fn is_oscore(self) -> bool {
        self == Self::Oscore
    }

    /// The payload of a request that makes its message as long as one of so many bytes is with protection: of OSCORE the bytes
    /// that are there in any case.
    pub(crate) fn request(self, payload: u64) -> u64 {
        match self {
            Self::Oscore => longer(payload, OSCORE_REQUEST),
            _ => self.padded_request(payload),
        }
    }

    /// The same of a response.
    pub(crate) fn response(self, payload: u64) -> u64 {
        match self {
            Self::Oscore => longer(payload, OSCORE_RESPONSE),
            _ => self.padded_response(payload),
        }
    }

    /// The payload of a request before it is protected, longer by what nothing else adds.
    pub(crate) fn padded_request(self, payload: u64) -> u64 {
        if let Self::Added { request, .. } = self { longer(payload, request) } else { payload }
    }

    /// The same of a response.
    pub(crate) fn padded_response(self, payload: u64) -> u64 {
        if let Self::Added { response, .. } = self { longer(payload, response) } else { payload }
    }
}

/// A payload that makes its message longer by so many bytes: the marker of a first byte is one of them (RFC 7252 §3).
fn longer(payload: u64, by: Size) -> u64 {
    if payload == 0 { by.0.saturating_sub(1) } else { payload + by.0 }
}

impl Clients {
    /// Whether handshakes and what protection adds can be said of these clients.
    pub(super) fn check_security(&self, key: &str, origin: &str) -> Result<(), ScenarioError> {
        let refuse = |name: &str, problem: &str| Err(ScenarioError::at_key(origin, &format!("{key}.{name}"), problem));
        let is_plain = self.transport.is_udp() && self.transfer.is_whole() && self.via.is_none();
        if self.workload.flights().next().is_some() && !is_plain {
            let problem =
                "flights go over UDP and to the server itself, beside bodies that travel whole: leave them out";
            return refuse("workload", problem);
        }
        let Protection::Added { request, response } = self.protection else {
            let reaches = self.transport.is_udp() && !self.transfer.is_in_bursts() && self.via.is_none();
            if self.protection.is_oscore() && cfg!(not(feature = "oscore")) {
                return refuse("protection", "this program was built without OSCORE: leave this key out");
            }
            if self.protection.is_oscore() && !(reaches && self.commands.is_none()) {
                let problem = "`oscore` is known over UDP, without bursts, proxies and commands: leave this key out";
                return refuse("protection", problem);
            }
            return Ok(());
        };
        if !is_plain || self.notifications.is_some() {
            let problem = "bytes are added over UDP to bodies that travel whole, without proxies and notifications: leave this key out";
            return refuse("protection", problem);
        }
        for (name, size) in [("request", request), ("response", response)] {
            if !(1..=Protection::MOST).contains(&size.0) {
                return refuse(&format!("protection.{name}"), &format!("{size}: write 1 B to {} B", Protection::MOST));
            }
        }
        Ok(())
    }
}

impl Scenario {
    /// A server that has contexts takes bursts from nobody.
    pub(super) fn check_protection(&self, origin: &str) -> Result<(), ScenarioError> {
        let protected = self.clients.iter().position(|group| group.protection.is_oscore());
        match protected.filter(|_| self.clients.iter().any(|group| group.transfer.is_in_bursts())) {
            None => Ok(()),
            Some(group) => {
                let problem =
                    "a server with contexts takes no bursts, and other clients fetch in bursts: leave this key out";
                Err(ScenarioError::at_key(origin, &format!("clients[{group}].protection"), problem))
            }
        }
    }
}
