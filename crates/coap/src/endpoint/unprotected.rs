//! An endpoint in a build without OSCORE: all is in the clear.

use alloc::boxed::Box;
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{Endpoint, ExchangeId, Outgoing, Refused, RequestId, Setup, further::Beyond, queue::Entry};
use crate::message::Message;
use crate::transfer::Host;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    pub(super) const fn beyond_at_first(_: &Setup<A>) -> Option<Box<Beyond<A>>> {
        None
    }

    pub(super) const fn is_protected(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "with OSCORE it has something to say")]
    pub(super) const fn check_protection(&self, _: &Outgoing<'_>) -> Result<(), Refused> {
        Ok(())
    }

    pub(super) fn send_protected(
        &mut self,
        request: &Outgoing<'_>,
        send: impl FnOnce(&mut Self, &Outgoing<'_>) -> Result<ExchangeId, Refused>,
    ) -> Result<ExchangeId, Refused> {
        send(self, request)
    }

    pub(super) fn answer_protected(
        &mut self,
        now: Instant,
        to: RequestId,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        self.respond(now, to, response)
    }

    pub(super) const fn forget_protected(&mut self, _: RequestId) {}

    pub(super) const fn hide_plain(&mut self) {}

    pub(super) fn plain_message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        self.message(entry)
    }

    pub(super) const fn is_for_host(_: &mut Host<Self>, _: &Entry<A>) -> bool {
        true
    }

    pub(super) const fn memory_of_protection(&self) -> usize {
        0
    }
}
