//! Which parts of the stack are in this build, as the features say. Code asks `if parts::SERVER`, and what nothing calls then is
//! not in the program; so it is read, checked and tested as one.

use crate::endpoint::Refused;

pub(crate) const CLIENT: bool = cfg!(feature = "client");
pub(crate) const SERVER: bool = cfg!(feature = "server");
pub(crate) const OBSERVE: bool = cfg!(feature = "observe");
pub(crate) const BLOCK: bool = cfg!(feature = "block");
pub(crate) const Q_BLOCK: bool = cfg!(feature = "q-block");
pub(crate) const GROUPS: bool = cfg!(feature = "groups");
pub(crate) const CALM_SERVER: bool = cfg!(feature = "calm-server");
pub(crate) const SHARED_PATHS: bool = cfg!(feature = "shared-paths");
pub(crate) const NO_RESPONSE: bool = cfg!(feature = "no-response");
/// Messages of which nothing is awaited on a token of their own: notifications, and parts of bodies in bursts.
pub(crate) const ADDITIONAL: bool = NOTIFY || Q_BLOCK;
/// More than one response comes on a token.
pub(crate) const ADDITIONAL_COME: bool = CLIENT && (OBSERVE || GROUPS) || Q_BLOCK;
/// Observers are notified.
pub(crate) const NOTIFY: bool = SERVER && OBSERVE;
/// Bodies of requests are put together, and answers kept for their later blocks.
pub(crate) const SERVE_BLOCKS: bool = SERVER && BLOCK;
/// Messages that answer, or go to whom was not asked for them.
pub(crate) const ANSWERS: bool = SERVER || ADDITIONAL || GROUPS;
/// Peers and exchanges are found through tables, and what each message runs through is inlined.
pub(crate) const MANY_PEERS: bool = cfg!(feature = "many-peers");
/// Non-confirmable requests are asked for.
pub(crate) const NON_CONFIRMABLE: bool = cfg!(feature = "non-confirmable");
/// Tokens of more than 8 bytes.
pub(crate) const LONG_TOKENS: bool = cfg!(feature = "long-tokens");
/// A refused request is told why in words.
pub(crate) const DIAGNOSTICS: bool = cfg!(feature = "diagnostics");
/// Options that distinguish the copies of a request.
pub(crate) const COPY_OPTIONS: bool = cfg!(feature = "copy-options");
/// Non-confirmable messages leave.
pub(crate) const NON_MESSAGES: bool = NON_CONFIRMABLE || ANSWERS || NO_RESPONSE;
/// What never answers is asked seldom (PROBING_RATE).
pub(crate) const PROBES: bool = NON_CONFIRMABLE || ADDITIONAL || GROUPS;
pub(crate) const OSCORE: bool = cfg!(feature = "oscore");
/// Keys of OSCORE are derived anew.
#[cfg(feature = "oscore")]
pub(crate) const OSCORE_ANEW: bool = cfg!(feature = "oscore-anew");

/// Refuses what the part is needed for, where the build is without it.
#[inline]
pub(crate) const fn needed(is_there: bool, feature: &'static str) -> Result<(), Refused> {
    if is_there { Ok(()) } else { Err(Refused::LeftOut { feature }) }
}

#[cfg(not(any(feature = "client", feature = "server")))]
compile_error!("millpond-coap without `client` and `server` does nothing; turn on one of the two features");
#[cfg(all(feature = "q-block", not(feature = "block")))]
compile_error!("`q-block` of millpond-coap needs `block`: who does not know bursts gets a body block by block");
#[cfg(all(feature = "calm-server", not(feature = "server")))]
compile_error!("`calm-server` of millpond-coap needs `server`: it is about answers to copies of requests");
#[cfg(all(feature = "no-response", not(feature = "client")))]
compile_error!("`no-response` of millpond-coap needs `client`: it is about requests whose responses are unwanted");
