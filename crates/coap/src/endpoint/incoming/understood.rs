//! Which options of responses are understood.

use core::{fmt::Debug, hash::Hash};

use crate::endpoint::Endpoint;
use crate::message::{Message, is_callers, is_for_responses, number};
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// Whether a response has a critical option that means nothing here, nor to a stack above (RFC 7252 §5.4.1).
    pub(in crate::endpoint) fn refuses(&self, response: &Message<'_>) -> bool {
        response.options().refused(|number| self.understands(number)).is_some()
    }

    fn understands(&self, number: u16) -> bool {
        is_for_responses(number) || (number == number::OSCORE && self.protection().is_some())
    }

    /// Whether all that is not understood in a response are options that its request had, and that nobody here makes use of:
    /// who put them there knows them. Some servers return what they refuse.
    #[cold]
    pub(in crate::endpoint) fn has_asked_with(&self, slot: u32, message: &Message<'_>) -> bool {
        let Some(exchange) = self.exchanges.get(slot) else { return false };
        let request = match parts::LONG_TOKENS {
            true => Message::parse_extended(exchange.message()).map(|(request, _)| request),
            false => Message::read(exchange.message()),
        };
        let Ok(request) = request else { return false };
        let is_asked = |number| is_callers(number) && request.option(number).is_some();
        message.options().refused(|number| is_for_responses(number) || is_asked(number)).is_none()
    }
}
