//! An endpoint all of whose messages are protected (RFC 8613).

use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{Endpoint, ExchangeId, Outgoing, Refused, RequestId, queue::Entry, queue::What};
use crate::layer::RequestMessage;
use crate::message::{Message, Token};
use crate::parts;
use crate::protection::{Observer, ProtectError, Protection, Taken, check, observes, with};

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// From now on all requests and responses are protected, and requests that are not are refused. What this endpoint is asked to send
    /// by itself must be protected already: a [`CoapStack`](crate::transfer::CoapStack) above it does that. There are no groups and bursts then, and
    /// answers are stored where copies were to be taken [afresh](super::Duplicates::Afresh): as requests of their own they would be
    /// replays. To be said before anything is sent or comes in.
    #[cfg(feature = "oscore")]
    #[must_use]
    pub fn protected_by(mut self, protector: impl crate::oscore::Protector + Clone + 'static) -> Self
    where
        A: Send + Sync + 'static,
    {
        if !self.setup.config.duplicates.stores() {
            self.set_duplicates(super::Duplicates::Stored);
        }
        self.extra_mut().protection = Some(alloc::boxed::Box::new(crate::oscore::Guard::new(protector)));
        self
    }

    pub(super) fn protection(&self) -> Option<&dyn Protection<A>> {
        self.extra.as_deref().filter(|_| parts::OSCORE)?.protection.as_deref()
    }

    fn protection_mut(&mut self) -> Option<&mut (dyn Protection<A> + 'static)> {
        self.extra.as_deref_mut().filter(|_| parts::OSCORE)?.protection.as_deref_mut()
    }

    /// One that is made like this one protects its messages as this one does.
    pub(super) fn protected_like(mut self, other: &Self) -> Self {
        if let Some(protection) = other.protection() {
            if !self.setup.config.duplicates.stores() {
                self.set_duplicates(super::Duplicates::Stored);
            }
            self.extra_mut().protection = Some(protection.sibling());
        }
        self
    }

    pub(super) fn check_protection(&self, message: &Outgoing<'_>) -> Result<(), Refused> {
        if self.protection().is_some() { Ok(check(message)?) } else { Ok(()) }
    }

    pub(super) fn request_protected(
        &mut self,
        now: Instant,
        to: A,
        request: &Outgoing<'_>,
        place: RequestMessage,
    ) -> Result<ExchangeId, Refused> {
        let send = |endpoint: &mut Self, request: &Outgoing<'_>| match place {
            RequestMessage::First => Self::request(endpoint, now, to, request),
            RequestMessage::Next => endpoint.request_next(now, to, request),
            RequestMessage::Subscription => endpoint.subscribe(now, to, request),
        };
        let Some(protection) = self.protection_mut() else { return send(self, request) };
        let protected = protection.request(request)?;
        let renews =
            request.token.filter(|_| place == RequestMessage::Subscription).and_then(|token| self.renewed(to, token));
        let exchange = with(&protected, request, |protected| send(self, protected))??;
        if let Some(protection) = self.protection_mut() {
            protection.sent(exchange, renews);
        }
        Ok(exchange)
    }

    /// The subscription with this token.
    fn renewed(&self, to: A, token: Token) -> Option<ExchangeId> {
        let identities = &self.setup.identities;
        let number = self.peers.find(to, identities)?;
        let open = &self.peers.get(number)?.open;
        let slot = self.exchanges.subscription_with(number, open, token, identities)?;
        Some(self.exchanges.name(slot))
    }

    /// Answers a request, protected if that was.
    pub(super) fn respond_protected(
        &mut self,
        now: Instant,
        to: RequestId,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        let Some(protected) = self.protection_mut().and_then(|protection| protection.answer(to, response)) else {
            return self.respond(now, to, response);
        };
        let sent = match protected {
            Ok(protected) => with(&protected, response, |protected| self.respond(now, to, protected))?,
            Err(ProtectError::NotStored) => {
                Self::drop_request(self, now, to);
                Err(ProtectError::NotStored.into())
            }
            Err(why) => Err(why.into()),
        };
        if !sent.is_err_and(|why| why.is_of_message()) {
            self.was_answered_protected(to, sent.is_ok() && observes(response));
        }
        sent
    }

    /// A request is over.
    pub(super) fn was_answered_protected(&mut self, request: RequestId, observes: bool) {
        if let Some(protection) = self.protection_mut() {
            protection.answered(request, observes);
        }
    }

    pub(super) fn notify_protected(
        &mut self,
        now: Instant,
        to: A,
        token: Token,
        message: &Outgoing<'_>,
    ) -> Result<ExchangeId, Refused> {
        if self.protection().is_none() {
            return self.send_additional(now, to, token, message);
        }
        let observer = self.observer(to, token);
        let Some(protection) = self.protection_mut() else { return Err(ProtectError::Plain.into()) };
        let protected = protection.notification(observer, message)?;
        with(&protected, message, |protected| self.send_additional(now, to, token, protected))?
    }

    /// No answer to a request of ours is taken any more.
    pub(super) fn forget_protected(&mut self, exchange: ExchangeId) {
        if let Some(protection) = self.protection_mut() {
            protection.forget(exchange);
        }
    }

    pub(super) fn observes_protected(&mut self, peer: A, token: Token, begins: bool) {
        if self.protection().is_some() {
            let observer = self.observer(peer, token);
            if let Some(protection) = self.protection_mut() {
                protection.observes(observer, begins);
            }
        }
    }

    fn observer(&self, peer: A, token: Token) -> Observer<A> {
        Observer { peer, token, hash: self.hash(&(peer, token)) }
    }

    /// Nothing is shown any more.
    pub(super) fn hide_plain(&mut self) {
        if let Some(protection) = self.protection_mut() {
            protection.next();
        }
    }

    /// Takes the protection off a message that came in for a stack.
    pub(super) fn unprotect(&mut self, entry: &Entry<A>) -> Taken {
        if self.protection().is_none() {
            return Taken::Message;
        }
        if let What::Failed { exchange, .. } = entry.what {
            self.forget_protected(exchange);
        }
        let Some(message) = self.queue.message_of(entry) else { return Taken::Message };
        let from = self.observer(entry.peer, message.token);
        let Some(protection) = self.extra.as_deref_mut().and_then(|extra| extra.protection.as_deref_mut()) else {
            return Taken::Message;
        };
        match entry.what {
            What::Request { id } => match protection.take_request(id, from, &message) {
                Ok(()) => Taken::Message,
                Err(answer) => Taken::Refused(id, answer),
            },
            What::Response { exchange, copies, .. } => match protection.take_response(exchange, &message) {
                Ok(()) => Taken::Message,
                Err(fault) => Taken::bad_answer(exchange, fault, copies),
            },
            What::AdditionalResponse { exchange } => match protection.take_response(exchange, &message) {
                Ok(()) => Taken::Message,
                Err(_) => Taken::Nothing,
            },
            _ => Taken::Message,
        }
    }

    /// The message of an output, as its sender wrote it.
    pub(super) fn plain_message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        self.protection().and_then(Protection::plain).or_else(|| self.message(entry))
    }
}
