//! A connection all of whose requests and responses are protected (RFC 8613). Its signals are not.

use millpond_control::Instant;

use super::Connection;
use crate::{
    ExchangeId, Outgoing, RequestId,
    message::{Code, Message, Token},
    output::{Entry, OutputKind},
    protection::{Observer, ProtectError, Protection, Taken, observes, with},
    stream::StreamRefused,
};

impl Connection {
    /// From now on what a [`CoapStack`](crate::transfer::CoapStack) above sends is protected, and nothing else is taken. To be said before
    /// anything is sent or comes in.
    #[cfg(feature = "oscore")]
    #[must_use]
    pub fn protected_by(self, protector: impl crate::oscore::Protector + Clone + 'static) -> Self {
        Self { protection: Some(alloc::boxed::Box::new(crate::oscore::Guard::new(protector))), ..self }
    }

    pub(super) fn protection_mut(&mut self) -> Option<&mut (dyn Protection<()> + 'static)> {
        self.protection.as_deref_mut()
    }

    pub(super) fn request_protected(
        &mut self,
        now: Instant,
        request: &Outgoing<'_>,
    ) -> Result<ExchangeId, StreamRefused> {
        let protected =
            self.protection_mut().and_then(|protection| protection.request(request).transpose()).transpose()?;
        let exchange = with(protected.as_deref(), request, |request| self.request(now, request))??;
        if let Some(protection) = self.protection_mut().filter(|_| protected.is_some()) {
            protection.sent(exchange, None);
        }
        Ok(exchange)
    }

    pub(super) fn respond_protected(
        &mut self,
        now: Instant,
        to: RequestId,
        response: &Outgoing<'_>,
    ) -> Result<(), StreamRefused> {
        let Some(protected) = self.protection_mut().and_then(|protection| protection.answer(to, response)) else {
            return self.respond(now, to, response);
        };
        let protected = protected.inspect_err(|why| {
            if *why == ProtectError::NotStored {
                let _gone = self.answer_plainly(to, Code::SERVICE_UNAVAILABLE);
            }
        })?;
        with(Some(&protected), response, |protected| self.respond(now, to, protected))??;
        self.was_answered_protected(to, observes(response));
        Ok(())
    }

    pub(super) fn was_answered_protected(&mut self, request: RequestId, observes: bool) {
        if let Some(protection) = self.protection_mut() {
            protection.answered(request, observes);
        }
    }

    pub(super) fn notify_protected(
        &mut self,
        now: Instant,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<(), StreamRefused> {
        let request = self.incoming.observing(token).ok_or(StreamRefused::UnknownRequest)?;
        let observer = self.observer(token);
        let protected = self.protection_mut().and_then(|protection| protection.notification(observer, message));
        with(protected.transpose()?.as_deref(), message, |message| self.respond(now, request, message))?
    }

    pub(super) fn observes_protected(&mut self, token: Token, begins: bool) {
        let observer = self.observer(token);
        if let Some(protection) = self.protection_mut() {
            protection.observes(observer, begins);
        }
    }

    pub(super) fn forget_protected(&mut self, exchange: ExchangeId) {
        if let Some(protection) = self.protection_mut() {
            protection.forget(exchange);
        }
    }

    fn observer(&self, token: Token) -> Observer<()> {
        Observer { peer: (), token, hash: self.id_generator.hash(&token) }
    }

    /// Takes the protection off a message that came in: off this one, if it came in blocks.
    pub(super) fn unprotect(&mut self, entry: &Entry<()>, whole: Option<&Message<'_>>) -> Taken {
        if let OutputKind::Failed { exchange, .. } = entry.kind {
            self.forget_protected(exchange);
        }
        let Some(mut protection) = self.protection.take() else { return Taken::Message };
        let message = whole.copied().or_else(|| self.frame_message(entry));
        let taken = message.map_or(Taken::Message, |message| {
            Taken::of(&mut *protection, &entry.kind, self.observer(message.token), &message)
        });
        self.protection = Some(protection);
        taken
    }
}
