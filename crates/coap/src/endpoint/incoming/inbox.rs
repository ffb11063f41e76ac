//! What an endpoint keeps of messages that came in, and how requests are answered.

use alloc::boxed::Box;
use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use crate::endpoint::{
    Duplicates as Policy, Endpoint, IdGenerator, Outgoing, Refused, RequestId, Setup,
    calm::Calm,
    counters::Count,
    duplicates::{Duplicates, Key, Reply},
    exchanges::Role,
    message_ids::later,
    requests::{Request, Requests, ResponseMode},
    send::{spelled, write},
};
use crate::message::Kind;
use crate::output::OutputKind;
use crate::parts;

/// Requests not answered yet, and messages that must be recognised when they come again. An endpoint that only asks and
/// gets piggybacked responses has none of this.
#[derive(Debug)]
pub(in crate::endpoint) struct Inbox<A> {
    pub(in crate::endpoint) requests: Requests<A>,
    pub(in crate::endpoint) duplicates: Duplicates<A>,
    /// Which copies are not answered, if that is a question.
    pub(in crate::endpoint) calm: Option<Calm<A>>,
}

impl<A: Copy + Eq + Hash> Inbox<A> {
    pub(in crate::endpoint) fn new(setup: &Setup<A>) -> Self {
        Self {
            requests: Requests::new(),
            duplicates: Duplicates::new(setup.config.limits.duplicate_bytes),
            calm: calm(setup),
        }
    }

    /// What says which copies are not answered.
    #[inline]
    pub(in crate::endpoint) fn calm(&mut self) -> Option<&mut Calm<A>> {
        self.calm.as_mut().filter(|_| parts::CALM_SERVER)
    }

    /// Bytes held.
    pub(in crate::endpoint) fn memory(&self) -> usize {
        if !parts::SERVER {
            return size_of::<Self>().saturating_add(self.duplicates.memory());
        }
        let calm = self
            .calm
            .as_ref()
            .filter(|_| parts::CALM_SERVER)
            .map_or(0, |calm| calm.memory().saturating_sub(size_of::<Calm<A>>()));
        size_of::<Self>()
            .saturating_add(self.requests.memory())
            .saturating_add(self.duplicates.memory())
            .saturating_add(calm)
    }

    /// Drops a request that nobody has answered.
    pub(in crate::endpoint) fn drop_request(&mut self, slot: u32, id_generator: &IdGenerator) {
        let Self { requests, duplicates, .. } = self;
        let Some(request) = requests.get(slot) else { return };
        if request.mode == ResponseMode::Piggybacked {
            duplicates.remove(&Key::new(request.from, request.id, id_generator), requests);
        }
        requests.remove(slot);
    }
}

/// What says which copies are not answered, if that is a question; it knows nobody yet.
pub(in crate::endpoint) fn calm<A: Copy + Eq + Hash>(setup: &Setup<A>) -> Option<Calm<A>> {
    match setup.config.duplicates {
        #[cfg(feature = "calm-server")]
        Policy::Calm => Some(Calm::new(setup.path_of.unwrap_or(|_| 0))),
        Policy::Stored | Policy::Afresh => None,
    }
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// The inbox, which is made when something comes that must be remembered.
    #[inline]
    pub(in crate::endpoint) fn inbox_or_new(&mut self) -> &mut Inbox<A> {
        #[cold]
        fn fresh<A: Copy + Eq + Hash>(setup: &Setup<A>) -> Box<Inbox<A>> {
            Box::new(Inbox::new(setup))
        }
        self.inbox.get_or_insert_with(|| fresh(&self.setup))
    }

    /// Input: the application answers a request. The response is piggybacked if the acknowledgement has not left yet,
    /// else it is a message of its own, confirmable or not as asked for. A confirmable one is reported as
    /// [`Event::Delivered`](crate::Event::Delivered) or [`Event::Undelivered`](crate::Event::Undelivered).
    ///
    /// Who merely asks may have forged its address, so it takes no place that others need: where none is free, a
    /// non-confirmable response leaves all the same, with a message ID that follows from the request's, and no controller
    /// is asked.
    ///
    /// # Errors
    /// A request answered before, a response that cannot be written (the request can still be answered then), and what
    /// exceeds a limit: the request is dropped then.
    pub fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), Refused> {
        match self.protection_mut().and_then(|protection| protection.answer(to, response)) {
            Some(protected) => self.respond_protected(now, to, response, protected),
            None => self.send_response(now, to, response),
        }
    }

    /// The same as it is written: in the acknowledgement if that has not left yet, else in a message of its own.
    pub(in crate::endpoint) fn send_response(
        &mut self,
        now: Instant,
        to: RequestId,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        let now = self.input(now);
        if !response.code.is_response() {
            return Err(Refused::Code(response.code));
        }
        if !matches!(response.kind, Kind::Confirmable | Kind::NonConfirmable) {
            return Err(Refused::Kind(response.kind));
        }
        self.check_protection(response)?;
        let (slot, request) = self.asked(to)?;
        let answered = match request.mode {
            ResponseMode::Piggybacked => self.piggyback(now, to, &request, response),
            ResponseMode::Delayed if parts::GROUPS => self.answer_delayed(now, to, &request, response),
            ResponseMode::Separate | ResponseMode::NonConfirmable | ResponseMode::Delayed => {
                self.answer_separately(now, to, &request, response)
            }
        };
        if answered.is_ok() && request.mode == ResponseMode::Separate && self.setup.config.duplicates.stores() {
            self.store_separate(now, to, &request, response);
        }
        // What is wrong with the response itself can be fixed; a request that lies for want of room keeps others out.
        if !answered.is_err_and(|why| why.is_of_message())
            && let Some(inbox) = self.inbox.as_deref_mut()
        {
            inbox.requests.remove(slot);
        }
        answered
    }

    /// The response leaves in a message of its own. If there is no place for its receiver among the peers, it leaves all the
    /// same, non-confirmably (RFC 7252 §5.2.2 leaves the choice), and nothing is kept of it: its sender was told by an
    /// acknowledgement to wait, and would for ever.
    #[cold]
    fn answer_separately(
        &mut self,
        now: Instant,
        to: RequestId,
        request: &Request<A>,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        let role = (Role::Response, Some(to));
        let refused = match self.submit(now, request.from, role, response, Some(request.token)) {
            Ok(_) => return Ok(()),
            Err(refused) => refused,
        };
        let is_for_want_of_room = matches!(refused, Refused::TooManyPeers { .. } | Refused::OutOfBytes { .. });
        let is_known = self.peers.find(request.from, &self.setup.id_generator).is_some();
        if !is_for_want_of_room || is_known {
            return Err(refused);
        }
        let start = self.queue.bytes.len();
        let limit = usize::from(self.setup.config.limits.datagram);
        let id = self.setup.id_generator.answer_id(&request.from, request.id);
        let token = spelled(self.inbox.as_deref(), request.from, request.token)?;
        write(&mut self.queue.bytes, Kind::NonConfirmable, id, token, response, limit)?;
        self.queue.push_written(request.from, OutputKind::Reply { request: to, repeated: false }, start);
        self.counts.one_more(Count::Sent(Kind::NonConfirmable));
        Ok(())
    }

    /// Keeps a response that leaves in a message of its own for duplicates of its request that come when it is not under way any more.
    /// An empty acknowledgement alone would have their sender wait for ever: a device that started anew, or a program that is run for
    /// each request, may use a message ID again with the same token.
    #[cold]
    fn store_separate(&mut self, now: Instant, to: RequestId, request: &Request<A>, response: &Outgoing<'_>) {
        let Ok(token) = spelled(self.inbox.as_deref(), request.from, request.token) else { return };
        let (start, limit) = (self.queue.bytes.len(), usize::from(self.setup.config.limits.datagram));
        if write(&mut self.queue.bytes, Kind::Acknowledgement, request.id, token, response, limit).is_ok() {
            let stored = self.queue.bytes.len().saturating_sub(start);
            let until = later(now, self.exchange_lifetime());
            let key = Key::new(request.from, request.id, &self.setup.id_generator);
            self.handled(now, &key, request.changes, (Reply::Separate(to), stored), until);
        }
        self.queue.bytes.truncate(start);
    }

    fn piggyback(
        &mut self,
        now: Instant,
        to: RequestId,
        request: &Request<A>,
        response: &Outgoing<'_>,
    ) -> Result<(), Refused> {
        let start = self.queue.bytes.len();
        let limit = usize::from(self.setup.config.limits.datagram);
        let token = spelled(self.inbox.as_deref(), request.from, request.token)?;
        write(&mut self.queue.bytes, Kind::Acknowledgement, request.id, token, response, limit)?;
        if let Some(echo) = self.inbox.as_deref().and_then(|inbox| inbox.requests.echo(to.slot)) {
            let limit = limit.saturating_add(token.beyond());
            echo.add(&mut self.queue.bytes, start, &self.setup.config.naming, limit);
        }
        self.queue.push_written(request.from, OutputKind::Reply { request: to, repeated: false }, start);
        self.counts.one_more(Count::Sent(Kind::Acknowledgement));
        if self.setup.config.duplicates.stores() {
            let stored = self.queue.bytes.len().saturating_sub(start);
            let until = later(now, self.exchange_lifetime());
            let key = Key::new(request.from, request.id, &self.setup.id_generator);
            self.handled(now, &key, request.changes, (Reply::Response(to), stored), until);
        }
        if let Some(calm) = self.inbox.as_deref_mut().and_then(Inbox::calm) {
            calm.answered((request.from, request.id), now, &self.setup.id_generator);
        }
        Ok(())
    }

    /// Input: the application cannot make sense of a request. A reset goes back if the request was not acknowledged
    /// yet (RFC 7252 §4.2), else nothing.
    ///
    /// # Errors
    /// A request answered before.
    pub fn reject(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        let now = self.input(now);
        self.was_answered_protected(request, false);
        let (slot, request) = self.asked(request)?;
        if request.mode == ResponseMode::Piggybacked {
            if self.setup.config.duplicates.stores() {
                let until = later(now, self.exchange_lifetime());
                let key = Key::new(request.from, request.id, &self.setup.id_generator);
                self.handled(now, &key, request.changes, (Reply::Reset, 0), until);
            }
            self.reset(request.from, request.id);
        }
        if let Some(inbox) = self.inbox.as_deref_mut() {
            inbox.requests.remove(slot);
        }
        Ok(())
    }

    /// Input: a request gets no response, as its sender wished (RFC 7967). A confirmable one is acknowledged, a retransmission
    /// of it as well; to another nothing is said.
    ///
    /// # Errors
    /// A request answered before.
    pub fn suppress_response(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        let now = self.input(now);
        self.was_answered_protected(request, false);
        let (slot, request) = self.asked(request)?;
        if request.mode == ResponseMode::Piggybacked {
            self.acknowledge_request(slot, now);
        }
        if let Some(inbox) = self.inbox.as_deref_mut() {
            inbox.requests.remove(slot);
        }
        Ok(())
    }

    /// Input: a request that nobody will answer is dropped without a word.
    pub(crate) fn drop_request(&mut self, now: Instant, request: RequestId) {
        self.input(now);
        self.give_up_request(request);
    }

    pub(in crate::endpoint) fn give_up_request(&mut self, request: RequestId) {
        self.was_answered_protected(request, false);
        let Some(inbox) = self.inbox.as_deref_mut() else { return };
        if let Some((slot, _)) = inbox.requests.find(request) {
            inbox.drop_request(slot, &self.setup.id_generator);
        }
    }

    /// The application has not answered in time: the request is acknowledged without a response.
    #[cold]
    pub(in crate::endpoint) fn acknowledge_request(&mut self, slot: u32, now: Instant) {
        let Some(inbox) = self.inbox.as_deref_mut() else { return };
        let Some(&Request { from, id, changes, .. }) = inbox.requests.get(slot) else { return };
        inbox.requests.acknowledged(slot);
        if self.setup.config.duplicates.stores() {
            let key = Key::new(from, id, &self.setup.id_generator);
            let until = later(now, self.exchange_lifetime());
            self.handled(now, &key, changes, (Reply::Acknowledgement, 0), until);
        }
        self.acknowledge_to(from, id);
    }

    pub(in crate::endpoint) fn asked(&self, to: RequestId) -> Result<(u32, Request<A>), Refused> {
        self.inbox.as_deref().and_then(|inbox| inbox.requests.find(to)).ok_or(Refused::UnknownRequest)
    }
}
