//! What protects messages, as far as a scenario says it: bytes on each of them, and handshakes before.

use serde::{Deserialize, Serialize};

use super::{Clients, ScenarioError, Size};

/// Bytes that a security layer adds to each message: records of DTLS, or what OSCORE adds (RFC 8613).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protection {
    /// To a request.
    pub request: Size,
    /// To a response.
    pub response: Size,
}

impl Protection {
    /// The most for a message: the longest record header, nonce and tag fit several times.
    const MOST: u64 = 1_000;

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The payload of a request that makes its message as long as one of so many bytes is with protection.
    pub(crate) fn request(self, payload: u64) -> u64 {
        longer(payload, self.request)
    }

    /// The same of a response.
    pub(crate) fn response(self, payload: u64) -> u64 {
        longer(payload, self.response)
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
        if self.protection.is_none() {
            return Ok(());
        }
        if !is_plain || self.notifications.is_some() {
            let problem =
                "known over UDP, of bodies that travel whole, without proxies and notifications: leave this key out";
            return refuse("protection", problem);
        }
        for (name, size) in [("request", self.protection.request), ("response", self.protection.response)] {
            if !(1..=Protection::MOST).contains(&size.0) {
                return refuse(&format!("protection.{name}"), &format!("{size}: write 1 B to {} B", Protection::MOST));
            }
        }
        Ok(())
    }
}
