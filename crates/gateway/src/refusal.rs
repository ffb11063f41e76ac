//! Why a request is not answered by whom it is for.

use std::time::Duration;

use millpond_live::{Code, Response, number};

/// An answer of the gateway itself: a code, and why, for a person (RFC 7252 §5.5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) why: String,
    /// Seconds after which to ask again.
    pub(crate) again_in: Option<u32>,
    /// It may be answered within this time, when who is to be asked has registered.
    pub(crate) may_wait: Option<Duration>,
    /// The methods that are, where this one is not.
    pub(crate) allowed: Vec<Code>,
    /// Bytes of the longest body that is taken, where this one is longer.
    pub(crate) longest: Option<usize>,
    /// Who asks is to show first that it is at its address (RFC 9175).
    pub(crate) asks_for_proof: bool,
}

/// Bytes of a reason, at most: it goes into one datagram beside options.
const LONGEST: usize = 300;

impl Refusal {
    pub(crate) fn new(code: Code, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
            again_in: None,
            may_wait: None,
            allowed: Vec::new(),
            longest: None,
            asks_for_proof: false,
        }
    }

    pub(crate) fn again_in(self, seconds: u32) -> Self {
        Self { again_in: Some(seconds), ..self }
    }

    /// It is about who asks, and another may be answered.
    pub(crate) const fn is_for_want_of_room(&self) -> bool {
        self.again_in.is_some() || self.asks_for_proof
    }

    pub(crate) fn response(&self) -> Response {
        if self.asks_for_proof {
            return Response::prove_address();
        }
        let end = self.why.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONGEST).last().unwrap_or(0);
        let why = if self.why.len() <= LONGEST { &self.why } else { self.why.get(..end).unwrap_or_default() };
        let mut response = Response::new(self.code).with_payload(why.as_bytes().to_vec());
        // RFC 7959 §2.9.3.
        if let Some(longest) = self.longest.and_then(|longest| u32::try_from(longest).ok()) {
            response = response.with_uint_option(number::SIZE1, longest);
        }
        match self.again_in {
            Some(seconds) => response.with_max_age(seconds),
            None => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_a_datagram() {
        let long = Refusal::new(Code::BAD_GATEWAY, "é".repeat(500)).response();
        assert!(long.payload().len() <= LONGEST && long.text().is_ok());
        let short = Refusal::new(Code::SERVICE_UNAVAILABLE, "full").again_in(7).response();
        assert!(Refusal::new(Code::SERVICE_UNAVAILABLE, "full").again_in(7).is_for_want_of_room());
        assert!(!Refusal::new(Code::GATEWAY_TIMEOUT, "silent").is_for_want_of_room());
        assert_eq!((short.text(), short.options().uint(number::MAX_AGE)), (Ok("full"), Some(7)));
    }
}
