//! Requests to groups and their whole answers: what of one does not fit its message is fetched from the member that
//! sent it, by unicast (RFC 7959 §2.8).

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, fmt::Debug, hash::Hash};

use millpond_control::{Instant, Span};

use super::{
    ClientRequest, CoapStack, Refused, RequestFailure,
    options::{self, Read},
    pending_request::{PendingRequest, Then},
    queued_event::QueuedEvent,
};
use crate::block::Block;
use crate::endpoint::{Endpoint, ExchangeId, Outgoing};
use crate::invariant::Sure;
use crate::layer::MessageLayer;
use crate::message::{Code, OptionList, number};
use crate::output::Entry;

/// For how long after its period the rest of answers is fetched: two copies of a request may get lost. Who forges the first
/// block of an answer does not send a second one.
const REST: Span = Span::from_secs(20);
/// Answers of one group whose rest is fetched at a time.
const MOST_FETCHED: u32 = 1_024;
/// What the answers of groups that are being fetched may take of the bytes that a stack holds: a peer that hears the group sends as
/// many as it has ports.
const SHARE: usize = 4;

/// Names one request to a group until its end has been told. Never names another one of the same stack within 2³² such
/// requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u32);

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupId({})", self.0)
    }
}

/// A request to a group whose answers are being gathered.
#[derive(Debug)]
struct Gathering {
    id: GroupId,
    exchange: ExchangeId,
    code: Code,
    /// As they stand in a message.
    options: OptionList,
    body: Vec<u8>,
    longest: usize,
    period: Span,
    /// When its period is over; not known before it has left.
    until: Option<Instant>,
    /// The period is over.
    is_over: bool,
    /// Answers whose rest is being fetched.
    fetching: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Gatherings {
    all: Vec<Gathering>,
    begun: u32,
}

impl Gatherings {
    pub(super) const fn new() -> Self {
        Self { all: Vec::new(), begun: 0 }
    }

    /// When the first period is over.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.all.iter().filter(|gathering| !gathering.is_over).filter_map(|gathering| gathering.until).min()
    }

    fn get_mut(&mut self, id: GroupId) -> Option<&mut Gathering> {
        self.all.iter_mut().find(|gathering| gathering.id == id)
    }

    /// The one whose request this message is.
    fn of(&mut self, exchange: ExchangeId) -> Option<&mut Gathering> {
        self.all.iter_mut().find(|gathering| gathering.exchange == exchange)
    }

    /// Whether this message is the request of one of them.
    pub(super) fn is_one(&self, exchange: ExchangeId) -> bool {
        self.all.iter().any(|gathering| gathering.exchange == exchange)
    }

    /// A message left that might be the request of one of them.
    pub(super) fn left(&mut self, now: Instant, exchange: ExchangeId) {
        if let Some(gathering) = self.of(exchange) {
            gathering.until = Some(now.after(gathering.period));
        }
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let each = |sum: usize, gathering: &Gathering| {
            sum.saturating_add(gathering.options.memory()).saturating_add(gathering.body.capacity())
        };
        let all = self.all.capacity().saturating_mul(size_of::<Gathering>());
        self.all.iter().fold(all, each)
    }
}

impl<A: Copy + Eq + Hash + Debug> CoapStack<Endpoint<A>> {
    /// Input: a request is to be sent to a group, as [`Endpoint::request_group`](crate::Endpoint::request_group) does,
    /// and the whole answers of its members are wanted that begin to come within `period` after it left:
    /// [`Event::GroupAnswer`](super::Event::GroupAnswer), then [`Event::GroupOver`](super::Event::GroupOver), 20 s after that period
    /// at the latest: what was not fetched by then is lost. Of `request` the code, the options, the body, `early` and `longest` are looked at.
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit, and a body that does not fit a block. Nothing is sent then.
    pub fn request_group(
        &mut self,
        now: Instant,
        group: A,
        request: &ClientRequest<'_>,
        period: Span,
    ) -> Result<GroupId, Refused> {
        self.input(now);
        let length = request.body.len();
        if length > self.config.block.bytes() as usize {
            return Err(Refused::LongGroupRequest { length });
        }
        let kept = options::keep(request.options)?;
        let block2 = request.early.map(|size| Block { number: 0, more: false, size }.value());
        let merged =
            options::merge(request.options.iter().copied(), &[(number::BLOCK2, options::value(block2.as_ref()))]);
        let message = Outgoing { payload: request.body, ..Outgoing::non_confirmable(request.code, &merged) };
        let exchange = self.layer.request_group(now, group, &message)?;
        self.groups.begun = self.groups.begun.wrapping_add(1);
        let id = GroupId(self.groups.begun);
        self.groups.all.push(Gathering {
            id,
            exchange,
            code: request.code,
            options: kept,
            body: request.body.to_vec(),
            longest: request.longest,
            period,
            until: None,
            is_over: false,
            fetching: 0,
        });
        Ok(id)
    }
}

impl<L: MessageLayer> CoapStack<L> {
    /// Input: the answers of a group are no longer wanted. Nothing more is reported of them. False if all was over before.
    pub fn cancel_group(&mut self, now: Instant, group: GroupId) -> bool {
        self.input(now);
        let Some(place) = self.groups.all.iter().position(|gathering| gathering.id == group) else { return false };
        let Gathering { exchange, .. } = self.groups.all.swap_remove(place);
        self.stop_gathering(now, exchange);
        let of_it = |pending: &PendingRequest<L::Peer>| pending.gathers == Some(group);
        let slots = self.requests.slots.iter().filter(|(_, pending)| pending.as_deref().is_some_and(of_it));
        for slot in slots.map(|(slot, _)| slot).collect::<Vec<_>>() {
            if let Some(pending) = self.requests.take(slot) {
                self.cancel_exchanges(now, *pending, false);
                self.requests.remove(slot);
            }
        }
        true
    }

    /// An answer to this request to a group came.
    pub(super) fn group_answer_came(&mut self, now: Instant, entry: Entry<L::Peer>, exchange: ExchangeId) {
        let Some(gathering) = self.groups.of(exchange) else { return };
        let (group, from) = (gathering.id, entry.peer);
        let lost = |why| QueuedEvent::GroupAnswerLost { group, from, why };
        // What was asked of the group need not be what is asked of one member.
        let options = gathering.options.iter().filter(|(number, _)| *number != number::NO_RESPONSE);
        let options: Vec<_> = options.collect();
        let request = ClientRequest {
            body: &gathering.body,
            longest: gathering.longest,
            ..ClientRequest::new(gathering.code, &options)
        };
        let Ok(mut pending) = PendingRequest::new(from, &request, None, false) else {
            return self.events.push_back(lost(RequestFailure::OutOfBytes));
        };
        pending.gathers = Some(group);
        let Some(message) = self.layer.message(&entry) else { return };
        let then = pending.take(&message, &Read::of(&message, None));
        let event = match then {
            Then::Done(body) => QueuedEvent::GroupAnswer { entry, group, body },
            Then::Fail(why) => lost(why),
            Then::Send if self.fetches_rest(now, group, pending) => return,
            Then::Send => lost(RequestFailure::OutOfBytes),
        };
        self.events.push_back(event);
    }

    /// The rest of an answer of a group is fetched, if there is room for that.
    fn fetches_rest(&mut self, now: Instant, group: GroupId, mut pending: PendingRequest<L::Peer>) -> bool {
        let has_room =
            self.has_room_for_rest(now, &pending) && self.requests.len() < self.config.limits.client_requests;
        let gathering = self.groups.get_mut(group).sure("group that an answer came of");
        let Some(gathering) = gathering.filter(|gathering| has_room && gathering.fetching < MOST_FETCHED) else {
            return false;
        };
        gathering.fetching = gathering.fetching.saturating_add(1);
        pending.deadline = gathering.until.map(|until| until.after(REST));
        pending.has_next = true;
        let slot = self.requests.slots.put(None);
        self.requests.put_back(slot, Box::new(pending));
        self.go_on(now, slot);
        true
    }

    /// Whether an answer of a group, which is in no slot, may be fetched on. If need be those end that hold more than it does.
    pub(super) fn has_room_for_rest(&mut self, now: Instant, pending: &PendingRequest<L::Peer>) -> bool {
        let most = self.config.limits.bytes / SHARE;
        while self.requests.gathered.saturating_add(pending.memory()) > most {
            let of_groups = self.requests.slots.iter().filter_map(|(slot, other)| Some((slot, other.as_deref()?)));
            let gathered = of_groups.filter(|(_, other)| other.gathers.is_some());
            let heaviest = gathered.map(|(slot, other)| (other.memory(), slot)).max();
            let Some((_, slot)) = heaviest.filter(|(held, _)| *held > pending.memory()) else { return false };
            self.exchange_failed(now, slot, RequestFailure::OutOfBytes, 0);
        }
        self.waiting_bytes().saturating_add(pending.memory()) <= self.config.limits.bytes
    }

    /// The rest of an answer was fetched, or could not be.
    pub(super) fn group_answer_ended(&mut self, group: GroupId, event: QueuedEvent<L::Peer>) {
        self.events.push_back(event);
        if let Some(gathering) = self.groups.get_mut(group) {
            gathering.fetching = gathering.fetching.saturating_sub(1);
        }
        self.settle_group(group);
    }

    /// No further answer to this request to a group is taken.
    fn stop_gathering(&mut self, now: Instant, exchange: ExchangeId) {
        if let Some(endpoint) = self.layer.datagrams() {
            endpoint.cancel_group(now, exchange);
        }
    }

    /// The period of a group request is over: no further answer is taken.
    pub(super) fn group_is_due(&mut self, now: Instant) {
        let is_due =
            |gathering: &&mut Gathering| !gathering.is_over && gathering.until.is_some_and(|until| until <= now);
        let Some(gathering) = self.groups.all.iter_mut().find(is_due) else { return };
        gathering.is_over = true;
        let (id, exchange) = (gathering.id, gathering.exchange);
        self.stop_gathering(now, exchange);
        self.settle_group(id);
    }

    fn settle_group(&mut self, group: GroupId) {
        let is_done = |gathering: &Gathering| gathering.id == group && gathering.is_over && gathering.fetching == 0;
        if let Some(place) = self.groups.all.iter().position(is_done) {
            self.groups.all.swap_remove(place);
            self.events.push_back(QueuedEvent::GroupOver { group });
        }
    }
}
