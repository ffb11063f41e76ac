//! An endpoint all of whose messages are protected (RFC 8613).

use alloc::{boxed::Box, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{Endpoint, EndpointOutput, ExchangeId, Failure, Outgoing, Refused, RequestId, exchanges::Role};
use crate::layer::{MessageLayer, RequestMessage};
use crate::message::{Code, Message, Token};
use crate::output::{Entry, Output, OutputKind};
use crate::parts;
use crate::protection::{Observer, ProtectError, Protection, ResponseFault, Taken, check, observes, with};

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// From now on all requests and responses are protected, and requests that are not are refused, unless others
    /// [pass](crate::oscore::Protector::passes_others). There are no groups and bursts then, and
    /// answers are stored where copies were to be taken [afresh](super::Duplicates::Afresh): as requests of their own they would be
    /// replays. To be said before anything is sent or comes in.
    #[cfg(feature = "oscore")]
    #[must_use]
    pub fn protected_by(self, protector: impl crate::oscore::Protector + Clone + 'static) -> Self
    where
        A: Send + Sync + 'static,
    {
        self.with_protection(Box::new(crate::oscore::Guard::new(protector)))
    }

    /// The same by one context that no other endpoint has: a [sibling](Self::sibling) of this one sends nothing and refuses all requests.
    ///
    /// `store` is handed the [bound](crate::oscore::Context::bound_to_store) of the sequence numbers before more of them are used, every
    /// 500 messages. It returns once a restart would [find it](crate::oscore::Start::Stored), or false: what needs more of them is
    /// refused then.
    #[cfg(feature = "oscore")]
    #[must_use]
    pub fn protected_with(
        self,
        context: crate::oscore::Context,
        store: impl FnMut(u64) -> bool + Send + Sync + 'static,
    ) -> Self
    where
        A: Send + Sync + 'static,
    {
        self.with_protection(Box::new(crate::oscore::Guard::of_one(context, store)))
    }

    fn with_protection(mut self, protection: Box<dyn Protection<A>>) -> Self {
        self.extra_mut().protection = Some(protection);
        self.set_duplicates(self.setup.config.duplicates);
        self
    }

    /// All its messages are protected, so that of the responses on one token none comes that is older than one before.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.protection().is_some_and(Protection::is_for_all)
    }

    pub(super) fn protection(&self) -> Option<&(dyn Protection<A> + 'static)> {
        self.extra.as_deref().filter(|_| parts::OSCORE)?.protection.as_deref()
    }

    pub(super) fn protection_mut(&mut self) -> Option<&mut (dyn Protection<A> + 'static)> {
        self.extra.as_deref_mut().filter(|_| parts::OSCORE)?.protection.as_deref_mut()
    }

    /// One that is made like this one protects its messages as this one does.
    pub(super) fn protected_like(self, other: &Self) -> Self {
        match other.protection() {
            Some(protection) => self.with_protection(protection.sibling()),
            None => self,
        }
    }

    pub(super) fn check_protection(&self, message: &Outgoing<'_>) -> Result<(), Refused> {
        if self.is_protected() { Ok(check(message)?) } else { Ok(()) }
    }

    /// A request leaves, protected if it is to be.
    #[cold]
    pub(super) fn request_protected(
        &mut self,
        now: Instant,
        to: A,
        request: &Outgoing<'_>,
        place: RequestMessage,
    ) -> Result<ExchangeId, Refused> {
        let protected =
            self.protection_mut().and_then(|protection| protection.request(request).transpose()).transpose()?;
        let renews =
            request.token.filter(|_| place == RequestMessage::Subscription).and_then(|token| self.renewed(to, token));
        let exchange = with(protected.as_deref(), request, |request| self.send_request(now, to, request, place))??;
        if let Some(protection) = self.protection_mut().filter(|_| protected.is_some()) {
            protection.sent(exchange, renews);
        }
        Ok(exchange)
    }

    /// The subscription with this token.
    fn renewed(&self, to: A, token: Token) -> Option<ExchangeId> {
        let id_generator = &self.setup.id_generator;
        let number = self.peers.find(to, id_generator)?;
        let open = &self.peers.get(number)?.open;
        let slot = self.exchanges.subscription_with(number, open, token, id_generator)?;
        Some(self.exchanges.name(slot))
    }

    /// Answers a request that was protected.
    #[cold]
    pub(super) fn respond_protected(
        &mut self,
        now: Instant,
        to: RequestId,
        response: &Outgoing<'_>,
        protected: Result<Vec<u8>, ProtectError>,
    ) -> Result<(), Refused> {
        let sent = match protected {
            Ok(protected) => with(Some(&protected), response, |protected| self.send_response(now, to, protected))?,
            Err(ProtectError::NotStored) => {
                self.drop_request(now, to);
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
        let observer = self.protection().is_some().then(|| self.observer(to, token));
        let notification = observer.zip(self.protection_mut());
        let protected = notification.and_then(|(observer, protection)| protection.notification(observer, message));
        with(protected.transpose()?.as_deref(), message, |message| {
            self.submit_additional(now, to, Role::AdditionalResponse, token, message)
        })?
    }

    /// No answer to a request of ours is taken any more.
    pub(super) fn forget_protected(&mut self, exchange: ExchangeId) {
        if let Some(protection) = self.protection_mut() {
            protection.forget(exchange);
        }
    }

    pub(super) fn observes_protected(&mut self, peer: A, token: Token, begins: bool) {
        if parts::NOTIFY && self.protection().is_some() {
            let observer = self.observer(peer, token);
            if let Some(protection) = self.protection_mut() {
                protection.observes(observer, begins);
            }
        }
    }

    /// By what the notifications of an observer are protected: by nothing if they are not. `None` if that ends with this endpoint.
    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) fn protected_registration(&mut self, peer: A, token: Token) -> Option<Vec<u8>> {
        let observer = self.observer(peer, token);
        match self.protection_mut() {
            Some(protection) => protection.registration(observer),
            None => Some(Vec::new()),
        }
    }

    /// A peer observes by a registration with an endpoint before this one. False if its notifications cannot be protected as before.
    #[cfg(all(feature = "server", feature = "observe"))]
    pub(super) fn observes_protected_again(&mut self, peer: A, token: Token, registration: &[u8]) -> bool {
        let is_known = match self.protection_mut() {
            Some(protection) => protection.recall(registration),
            None => registration.is_empty(),
        };
        if is_known {
            self.hold_token(peer, token, true);
        }
        is_known
    }

    /// It has no place to be found by where nobody observes.
    fn observer(&self, peer: A, token: Token) -> Observer<A> {
        Observer { peer, token, hash: if parts::SERVER { self.hash(&(peer, token)) } else { 0 } }
    }

    /// Nothing is shown any more.
    pub(super) fn hide_plain(&mut self) {
        if let Some(protection) = self.protection_mut() {
            protection.next();
        }
    }

    /// Takes the protection off a message that came in for a stack: off this one, if it came in blocks.
    pub(super) fn unprotect(&mut self, entry: &Entry<A>, whole: Option<&Message<'_>>) -> Taken {
        if self.protection().is_none() {
            return Taken::Message;
        }
        if let OutputKind::Failed { exchange, .. } = entry.kind {
            self.forget_protected(exchange);
        }
        let Some(message) = whole.copied().or_else(|| self.queue.message_of(entry)) else { return Taken::Message };
        let from = self.observer(entry.peer, message.token);
        let Some(protection) = self.extra.as_deref_mut().and_then(|extra| extra.protection.as_deref_mut()) else {
            return Taken::Message;
        };
        Taken::of(protection, &entry.kind, from, &message)
    }

    /// What an application learns of what came in: `None` if a request was refused, or nothing is to be learned.
    pub(super) fn unprotected(&mut self, now: Instant, entry: &Entry<A>) -> Option<Entry<A>> {
        self.hide_plain();
        let failed = |exchange, fault, copies| {
            let mut failed = *entry;
            failed.kind = OutputKind::Failed { exchange, why: Failure::Protection(fault), copies };
            Some(failed)
        };
        match self.unprotect(entry, None) {
            Taken::Message => Some(*entry),
            Taken::Nothing => None,
            Taken::Refused(..) | Taken::NotProtected(_) if !parts::SERVER => None,
            Taken::Refused(id, answer) => self.refuse_unprotected(now, id, &answer),
            Taken::NotProtected(id) => {
                let answer = self.establish(entry, self.source_of(entry.peer));
                self.refuse_unprotected(now, id, &answer)
            }
            Taken::Overtaken(exchange) => failed(exchange, ResponseFault::NotNew, 0),
            Taken::Fault(exchange, fault, copies) => failed(exchange, fault, copies),
        }
    }

    /// Answers a request of which the application learns nothing.
    fn refuse_unprotected(&mut self, now: Instant, id: RequestId, answer: &[u8]) -> Option<Entry<A>> {
        let response = Outgoing { kind: self.kind_of_answer(id), ..Outgoing::confirmable(Code::UNAUTHORIZED, &[]) };
        if !matches!(with(Some(answer), &response, |response| self.send_response(now, id, response)), Ok(Ok(()))) {
            self.drop_request(now, id);
        }
        None
    }

    /// What was just taken, with the message as its sender wrote it.
    pub(super) fn event(&self, entry: Entry<A>) -> EndpointOutput<'_, A> {
        let output = self.queue.shown(&entry);
        match (output, self.protection().and_then(Protection::plain)) {
            (Output::Event(event), Some(message)) => Output::Event(event.with_message(message)),
            (output, _) => output,
        }
    }

    /// The message of an output, as its sender wrote it.
    pub(super) fn plain_message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        self.protection().and_then(Protection::plain).or_else(|| self.message(entry))
    }
}
