//! The message layer and the matching of requests and responses (RFC 7252 §4, §5.2, §5.3) as a state machine without
//! clock and socket.
//!
//! An [`Endpoint`] is client and server at once, for any number of peers. It is driven by *one input, then drain*: call
//! one of [`receive`](Endpoint::receive), [`request`](Endpoint::request), [`respond`](Endpoint::respond),
//! [`reject`](Endpoint::reject), [`cancel`](Endpoint::cancel), the others that say "input", then [`poll`](Endpoint::poll) until it says [`Output::Sleep`] or
//! [`Output::Idle`]. When a sleep is over, poll again. Time is an argument and so is chance; how datagrams travel is the
//! caller's business:
//!
//! ```
//! use millpond_coap::message::{Code, number};
//! use millpond_coap::{Config, Endpoint, Event, Identities, Outgoing, Output, RequestId};
//! use millpond_control::{ChanceSeed, Instant, Preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let make = |node| {
//!     let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
//!     Endpoint::new(Config::default(), controller, chance, node, Identities::counted())
//! };
//! let (mut client, mut server) = (make(0)?, make(1)?);
//! let mut now = Instant::ORIGIN;
//! let mut answer = None;
//!
//! client.request(now, "server", &Outgoing::confirmable(Code::GET, &[(number::URI_PATH, b"hello")]))?;
//! while answer.is_none() {
//!     // Drain the client. What it sends is handed to the server at once: a path without loss or delay.
//!     let mut sleep = Instant::NEVER;
//!     let mut sent: Vec<Vec<u8>> = Vec::new();
//!     loop {
//!         match client.poll(now) {
//!             Output::Transmit(transmit) => sent.push(transmit.bytes.to_vec()),
//!             Output::Event(Event::Response { message, .. }) => answer = Some(message.payload().to_vec()),
//!             Output::Event(Event::Failed { why, .. }) => return Err(format!("no answer: {why:?}").into()),
//!             Output::Event(_) => {}
//!             Output::Sleep(until, _) => break sleep = until,
//!             Output::Idle => break,
//!         }
//!     }
//!     let mut replies: Vec<Vec<u8>> = Vec::new();
//!     for datagram in &sent {
//!         server.receive(now, "client", datagram);
//!         let mut asked: Option<RequestId> = None;
//!         loop {
//!             match server.poll(now) {
//!                 Output::Transmit(transmit) => replies.push(transmit.bytes.to_vec()),
//!                 Output::Event(Event::Request { id, .. }) => asked = Some(id),
//!                 Output::Event(_) => {}
//!                 // Drained: the next input is the application's answer.
//!                 Output::Sleep(..) | Output::Idle => match asked.take() {
//!                     Some(id) => server.respond(now, id, &Outgoing::confirmable(Code::CONTENT, &[]).with_payload(b"world"))?,
//!                     None => break,
//!                 },
//!             }
//!         }
//!     }
//!     match replies.first() {
//!         Some(reply) => client.receive(now, "server", reply),
//!         None => now = sleep,
//!     }
//! }
//! assert_eq!(answer.as_deref(), Some(&b"world"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! # What it does, and how it reads the RFC
//!
//! * **Retransmission** (§4.2). Every wait is the controller's, the one after the last copy included. A message given up
//!   has no place among the outstanding ones any more; its application knows that nothing is expected.
//! * **NSTART** (§4.7). Outstanding are confirmable messages not acknowledged and non-confirmable requests not answered.
//!   A request that was acknowledged no longer counts. What may not leave waits in the order of asking, and the
//!   controller is asked besides. A response is awaited for EXCHANGE_LIFETIME after the acknowledgement, for
//!   NON_LIFETIME after a non-confirmable request, and longer where PROBING_RATE asks for it.
//! * **Patience** of single messages ([`Patience`]): more copies or fewer, and longer waits, never shorter ones.
//! * **Message IDs** (§4.4) count up per peer. None is used again within EXCHANGE_LIFETIME: a message waits until one is
//!   free. That is why a peer is never forgotten within that time.
//! * **Lifetimes** (§4.8.2) are derived from the longest waits that the controllers can arm ([`Lifetimes`]), not from
//!   the defaults.
//! * **Wishes** of a peer's controller. Copies of confirmable requests are told apart by their tokens or by an option of
//!   [`NamingOptions`], so that a piggybacked response names one and the sample says which; docs/naming-copies.md has the
//!   bytes. Of the non-confirmable messages to the peer every so manieth leaves as a confirmable one.
//! * **Duplicates** (§4.5). See [`Duplicates`]. Copies of separate responses are acknowledged again and not delivered.
//! * **Groups** (§8). A request to a group leaves once and collects an answer of each member. A request that came to a
//!   group is answered after a while, non-confirmably, and only if there is something to say.
//! * **Hostile input** costs bounded memory ([`Limits`]) and no walk over peers. Who only asks and is answered in
//!   acknowledgements leaves nothing but a record within the budget for duplicates.

mod calm;
mod config;
mod counters;
mod duplicates;
mod exchanges;
mod further;
mod gate;
mod groups;
mod identities;
mod inbox;
mod input;
mod lifetimes;
mod luck;
mod message_ids;
mod naming;
mod output;
mod peers;
mod progress;
pub(crate) mod queue;
mod receive;
mod recent;
mod requests;
mod send;
pub(crate) mod slots;
mod subscriptions;
pub(crate) mod timers;

use alloc::boxed::Box;
// A processor without atomic swaps has no threads to share with.
#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Arc;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::{fmt::Debug, hash::Hash};

use millpond_control::{ChanceSeed, Controller, Instant, PeerController, View};

use crate::message::{Kind, Message, MessageId};

pub use calm::Repeats;
pub use config::{Config, ConfigError, Duplicates, Limits, NamingOption, NamingOptions, Transmission};
pub use counters::{Counters, Failures, Kinds, Reasons};
pub use gate::CalmGate;
pub use groups::{DEFAULT_LEISURE, leisure};
pub use identities::Identities;
pub use input::{ExchangeId, Outgoing, Patience, Refused, RequestId};
pub use lifetimes::Lifetimes;
pub use output::{Cause, Event, Failure, Ignored, Output, SleepReason, Transmit};

use counters::Counts;
use exchanges::{Exchange, Exchanges, Role, Stage};
use further::Beyond;
use inbox::Inbox;
use luck::Luck;
use peers::Peers;
use queue::{Entry, Place, Queue};
use requests::Owed;
use timers::Timers;

/// The message layer of RFC 7252 for one socket. See the [module](self) for how to drive it.
///
/// `A` is an address: a socket address live, a number in a simulation.
#[derive(Debug)]
pub struct Endpoint<A> {
    setup: Arc<Setup<A>>,
    node: u32,
    /// Those of the slowest of all controllers used so far, if that is slower than the prototype.
    slower: Option<Box<Lifetimes>>,
    /// The latest time of all calls so far.
    now: Instant,
    peers: Peers<A>,
    exchanges: Exchanges,
    timers: Timers,
    /// There once something came in that must be remembered.
    inbox: Option<Box<Inbox<A>>>,
    /// There once a further response was sent, a group was asked, or somebody asked one that this endpoint is in.
    beyond: Option<Box<Beyond<A>>>,
    queue: Queue<A>,
    counts: Counts,
}

/// What comes next: an output by its place.
pub(crate) enum Step {
    Said(Place),
    Sleep(Instant, SleepReason),
    Idle,
}

/// What never changes, shared by endpoints that are alike.
#[derive(Clone, Debug)]
struct Setup<A> {
    config: Config,
    /// What every new peer's controller starts as.
    prototype: PeerController,
    /// Those of the prototype.
    lifetimes: Lifetimes,
    chance: ChanceSeed,
    identities: Identities,
    /// The path that a peer is on, if it was said.
    path_of: Option<fn(&A) -> u64>,
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// An endpoint that knows nobody. Every new peer gets a copy of `controller`; `chance` and `node` address the words
    /// of chance that controllers are given; `identities` makes message IDs and tokens.
    ///
    /// # Errors
    /// What cannot work, with its place in `config` and its mend.
    pub fn new(
        config: Config,
        controller: impl Into<PeerController>,
        chance: ChanceSeed,
        node: u32,
        identities: Identities,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let prototype = controller.into();
        let lifetimes = Lifetimes::of(&prototype, &config.transmission);
        let setup = Setup { config, prototype, lifetimes, chance, identities, path_of: None };
        Ok(Self::with(Arc::new(setup), node))
    }

    /// Says which peers share a path: those of which this gives the same. For [`Duplicates::Calm`], where all do unless it is
    /// said, and for what strangers in one network may take of a host. To be said before anything comes in.
    #[must_use]
    pub fn with_paths(mut self, path_of: fn(&A) -> u64) -> Self {
        self.setup = Arc::new(Setup { path_of: Some(path_of), ..(*self.setup).clone() });
        self
    }

    /// An endpoint that was made like this one but for its number, and that knows nobody. The two share what never
    /// changes, so that many endpoints take less memory than if each were made by [`new`](Self::new).
    #[must_use]
    pub fn sibling(&self, node: u32) -> Self {
        Self::with(Arc::clone(&self.setup), node)
    }

    fn with(setup: Arc<Setup<A>>, node: u32) -> Self {
        Self {
            node,
            slower: None,
            now: Instant::ORIGIN,
            peers: Peers::new(),
            exchanges: Exchanges::new(setup.config.limits.exchanges_per_peer),
            timers: Timers::new(),
            inbox: None,
            beyond: None,
            queue: Queue::new(),
            counts: Counts::default(),
            setup,
        }
    }

    /// Input: a datagram came in. Whatever its bytes, this ends in at most a few outputs.
    #[inline]
    pub fn receive(&mut self, now: Instant, from: A, datagram: &[u8]) {
        let now = self.input(now);
        self.take(now, from, datagram);
    }

    /// Input: a request is to be sent. It leaves at once, or waits until NSTART, the controller, the token or the
    /// message ID allows it to. If the peer's controller wishes that copies are told apart, room for that is kept free
    /// within [`Limits::datagram`].
    ///
    /// # Errors
    /// What cannot be sent or exceeds a limit. Nothing is sent then.
    #[inline]
    pub fn request(&mut self, now: Instant, to: A, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        let now = self.input(now);
        if !request.code.is_request() {
            return Err(Refused::Code(request.code));
        }
        self.submit(now, to, (Role::Request, None), request, request.token)
    }

    /// Input: the application answers a request. The response is piggybacked if the acknowledgement has not left yet,
    /// else it is a message of its own, confirmable or not as asked for. A confirmable one is reported as
    /// [`Event::Delivered`] or [`Event::Undelivered`].
    ///
    /// Who merely asks may have forged its address, so it takes no place that others need: where none is free, a
    /// non-confirmable response leaves all the same, with a message ID that follows from the request's, and no controller
    /// is asked.
    ///
    /// # Errors
    /// A request answered before, a response that cannot be written (the request can still be answered then), and what
    /// exceeds a limit: the request is dropped then.
    #[inline]
    pub fn respond(&mut self, now: Instant, to: RequestId, response: &Outgoing<'_>) -> Result<(), Refused> {
        let now = self.input(now);
        self.answer(now, to, response)
    }

    /// Input: the application cannot make sense of a request. A reset goes back if the request was not acknowledged
    /// yet (RFC 7252 §4.2), else nothing.
    ///
    /// # Errors
    /// A request answered before.
    pub fn reject(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        let now = self.input(now);
        self.decline(now, request)
    }

    /// Input: a request gets no response, as its sender wished (RFC 7967). A confirmable one is acknowledged, a further copy
    /// of it as well; to another nothing is said.
    ///
    /// # Errors
    /// A request answered before.
    pub fn hush(&mut self, now: Instant, request: RequestId) -> Result<(), Refused> {
        let now = self.input(now);
        self.leave_unanswered(now, request)
    }

    /// Input: the application no longer wants a response. Its request ends as [`Failure::Cancelled`]; a response that
    /// comes all the same is [`Event::Late`]. Of a subscription that was answered nothing more is told. False if the
    /// exchange was over before.
    pub fn cancel(&mut self, now: Instant, exchange: ExchangeId) -> bool {
        let now = self.input(now);
        let Some(slot) = self.exchanges.find(exchange) else { return false };
        if self.exchanges.get(slot).is_some_and(|exchange| exchange.stage == Stage::Subscribed) {
            self.leave(slot, now);
        } else {
            self.fail(slot, now, Failure::Cancelled);
        }
        true
    }

    /// Input: a message that nothing waited for ([`Event::Late`]) is answered with a reset (RFC 7252 §4.3). A confirmable
    /// one was already, and so was a notification.
    pub fn reject_late(&mut self, now: Instant, from: A, message: MessageId) {
        self.input(now);
        self.reset(from, message);
    }

    /// Input: the congestion-control state of a peer starts afresh from the prototype; message IDs and tokens go on.
    /// Nothing happens if the peer is not known.
    ///
    /// Exchanges under way keep their armed timers. They end as cancelled for the old controller, are unknown to the
    /// new one, and double their waits from now on.
    pub fn forget_controller(&mut self, now: Instant, peer: A) {
        let now = self.input(now);
        if let Some(number) = self.peers.find(peer, &self.setup.identities) {
            self.replace_controller(number, now, self.setup.prototype.clone());
        }
    }

    /// Input: a peer gets this controller instead of the one it has, or instead of a copy of the prototype. Exchanges
    /// under way fare as with [`forget_controller`](Self::forget_controller). Lifetimes become those of the slowest
    /// controller ever set. A peer that is forgotten to make room for others starts from the prototype again.
    ///
    /// # Errors
    /// The peer is not known and there is no room for another.
    pub fn set_controller(
        &mut self,
        now: Instant,
        peer: A,
        controller: impl Into<PeerController>,
    ) -> Result<(), Refused> {
        let (now, controller) = (self.input(now), controller.into());
        let number = self.peer_for(now, peer)?;
        let lifetimes = Lifetimes::of(&controller, &self.setup.config.transmission);
        let longest = self.lifetimes().longest(lifetimes);
        if longest != *self.lifetimes() {
            self.slower = Some(Box::new(longest));
        }
        self.replace_controller(number, now, controller);
        Ok(())
    }

    /// The next output. Also fires timers that are due.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Output<'_, A> {
        self.advance(now);
        if !self.queue.is_empty() {
            return self.queue.take();
        }
        self.queue.clear();
        // Most calls find nothing due.
        if self.beyond.is_none() {
            let owed = self.inbox.as_deref_mut().and_then(|inbox| inbox.requests.first_due());
            match (owed, self.timers.earliest()) {
                (None, None) => return Output::Idle,
                (Some((due, _)), timer) if due > self.now && timer.is_none_or(|(at, _)| due <= at) => {
                    return Output::Sleep(due, SleepReason::Acknowledgement);
                }
                (_, Some((at, slot))) if at > self.now && owed.is_none_or(|(due, _)| at < due) => {
                    return Output::Sleep(at, self.alarm(slot));
                }
                _ => {}
            }
        }
        self.say(now)
    }

    /// The same when there may be something to do.
    #[inline(never)]
    fn say(&mut self, now: Instant) -> Output<'_, A> {
        match self.step(now) {
            Step::Said(place) => self.queue.at(place).map_or(Output::Idle, |entry| self.queue.output(entry)),
            Step::Sleep(until, reason) => Output::Sleep(until, reason),
            Step::Idle => Output::Idle,
        }
    }

    /// What the timer of a message is for.
    #[inline]
    fn alarm(&self, slot: u32) -> SleepReason {
        self.exchanges.get(slot).map_or(SleepReason::Retransmission, |exchange| exchange.alarm)
    }

    /// The next output, to be looked at before anything else is done.
    #[inline]
    pub(crate) fn step(&mut self, now: Instant) -> Step {
        let now = self.advance(now);
        loop {
            if let Some(place) = self.queue.pop() {
                return Step::Said(place);
            }
            let timer = self.timers.earliest();
            let owed = self.inbox.as_deref_mut().and_then(|inbox| inbox.requests.first_due());
            if let Some(due) = self.beyond.as_deref().and_then(Beyond::first_due) {
                if due <= now {
                    self.leave_after_leisure(now);
                    continue;
                }
                let is_first = owed.is_none_or(|(other, _)| due < other) && timer.is_none_or(|(other, _)| due < other);
                if is_first {
                    return Step::Sleep(due, SleepReason::Leisure);
                }
            }
            match (owed, timer) {
                (Some((due, slot)), _) if due <= now => self.acknowledge_request(slot, now),
                (_, Some((at, slot))) if at <= now => self.fire(slot, now),
                (Some((due, _)), timer) if timer.is_none_or(|(at, _)| due <= at) => {
                    return Step::Sleep(due, SleepReason::Acknowledgement);
                }
                (_, Some((at, slot))) => return Step::Sleep(at, self.alarm(slot)),
                (_, None) => return Step::Idle,
            }
        }
    }

    /// An output that was just taken, without its bytes.
    pub(crate) fn entry(&self, place: Place) -> Option<Entry<A>> {
        self.queue.at(place).copied()
    }

    /// An output that was just taken, with its bytes.
    pub(crate) fn show(&self, entry: &Entry<A>) -> Output<'_, A> {
        self.queue.output(entry)
    }

    /// The message of an output that was just taken.
    pub(crate) fn message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        Message::parse(self.queue.bytes_of(entry)).ok()
    }

    /// Where something stands in a hash table of whoever owns this endpoint.
    pub(crate) fn hash(&self, key: &impl Hash) -> u64 {
        self.setup.identities.hash(key)
    }

    /// The path that a peer is on, if it was said which share one.
    pub(crate) fn path_of(&self, peer: &A) -> Option<u64> {
        self.setup.path_of.map(|path_of| path_of(peer))
    }

    pub(crate) const fn node(&self) -> u32 {
        self.node
    }

    /// Bytes of the longest datagram.
    pub(crate) fn longest_datagram(&self) -> usize {
        usize::from(self.setup.config.limits.datagram)
    }

    /// Input: a request that goes on with what was begun before. It waits behind any number of others: who calls this has
    /// a bound of its own for what it begins.
    pub(crate) fn request_next(&mut self, now: Instant, to: A, request: &Outgoing<'_>) -> Result<ExchangeId, Refused> {
        let now = self.input(now);
        if !request.code.is_request() {
            return Err(Refused::Code(request.code));
        }
        self.submit_behind(now, to, (Role::Request, None), request, request.token, u32::MAX)
    }

    /// As what a response to this request should leave that nothing else is wished for: as the request came.
    pub(crate) fn kind_of_answer(&self, request: RequestId) -> Kind {
        let found = self.inbox.as_deref().and_then(|inbox| inbox.requests.find(request));
        match found.map(|(_, request)| request.owed) {
            Some(Owed::Acknowledgement | Owed::Response) => Kind::Confirmable,
            Some(Owed::Nothing | Owed::Leisurely) | None => Kind::NonConfirmable,
        }
    }

    /// Whether a peer was asked for something, or has answered something: no forged address does the latter.
    pub(crate) fn is_acquainted(&self, peer: A) -> bool {
        let number = self.peers.find(peer, &self.setup.identities);
        number.and_then(|number| self.peers.get(number)).is_some_and(|peer| !peer.is_stranger())
    }

    /// Input: a request that nobody will answer is dropped without a word.
    pub(crate) fn drop_request(&mut self, now: Instant, request: RequestId) {
        self.input(now);
        let Some(inbox) = self.inbox.as_deref_mut() else { return };
        if let Some((slot, _)) = inbox.requests.find(request) {
            inbox.drop_request(slot, &self.setup.identities);
        }
    }

    /// What a peer's controller knows; `None` if the peer is not known.
    #[must_use]
    pub fn view(&self, peer: A) -> Option<View> {
        let number = self.peers.find(peer, &self.setup.identities)?;
        self.peers.get(number).map(|peer| peer.controller.view())
    }

    /// A copy of a peer's controller with all that it knows; `None` if the peer is not known. Given to another endpoint
    /// with [`set_controller`](Self::set_controller), it goes on there with what was learnt here. Of exchanges under way
    /// the copy is never told an end.
    #[must_use]
    pub fn controller(&self, peer: A) -> Option<PeerController> {
        let number = self.peers.find(peer, &self.setup.identities)?;
        self.peers.get(number).map(|peer| peers::unkept(&peer.controller))
    }

    /// How many messages could leave to a peer now before one had to wait for a message ID, as far as these are
    /// concerned: up to 65 536 (RFC 7252 §4.4).
    #[must_use]
    pub fn message_ids_left(&self, now: Instant, peer: A) -> u32 {
        let number = self.peers.find(peer, &self.setup.identities);
        let peer = number.and_then(|number| self.peers.get(number));
        peer.map_or(1 << 16, |peer| peer.ids.left(now.max(self.now), self.exchange_lifetime()))
    }

    /// The addresses of the peers that are known, in no particular order.
    pub fn known_peers(&self) -> impl Iterator<Item = A> {
        self.peers.addresses()
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let calm = self.inbox.as_deref().and_then(|inbox| inbox.calm.as_ref());
        Counters { repeats: calm.map_or_else(Repeats::default, |calm| calm.repeats), ..self.counts.all() }
    }

    /// Requests, pings, and confirmable separate and further responses that are not over, those that wait included.
    /// Subscriptions count until their first response.
    #[must_use]
    pub const fn exchanges(&self) -> u32 {
        self.exchanges.counted
    }

    /// Subscriptions that were answered, and claims.
    #[must_use]
    pub fn subscriptions(&self) -> u32 {
        let is_kept = |(_, exchange): &(u32, &Exchange)| exchange.stage == Stage::Subscribed;
        if self.exchanges.keeps_tokens { self.exchanges.slots.iter().filter(is_kept).count() as u32 } else { 0 }
    }

    /// Peers that are known.
    #[must_use]
    pub fn peers(&self) -> u32 {
        self.peers.len()
    }

    /// Requests that the application has been handed and has not answered.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.inbox.as_deref().map_or(0, |inbox| inbox.requests.len())
    }

    /// Bytes held, this value itself included, and of what is shared between [siblings](Self::sibling) its share.
    #[must_use]
    pub fn memory(&self) -> usize {
        let shared = size_of::<Setup<A>>().saturating_add(peers::beside(&self.setup.prototype));
        let shared = shared.checked_div(Arc::strong_count(&self.setup)).unwrap_or(0);
        size_of::<Self>()
            .saturating_add(shared)
            .saturating_add(self.slower.as_deref().map_or(0, size_of_val))
            .saturating_add(self.counts.memory())
            .saturating_add(self.peers.memory())
            .saturating_add(self.exchanges.memory())
            .saturating_add(self.timers.memory())
            .saturating_add(self.queue.memory())
            .saturating_add(self.inbox.as_deref().map_or(0, Inbox::memory))
            .saturating_add(self.beyond.as_deref().map_or(0, Beyond::memory))
    }

    /// What every input begins with.
    #[inline]
    fn input(&mut self, now: Instant) -> Instant {
        debug_assert!(self.queue.is_empty(), "input before all output was drained: poll until Sleep or Idle first");
        self.queue.clear();
        self.advance(now)
    }

    /// Time never goes back.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    #[inline]
    fn lifetimes(&self) -> &Lifetimes {
        self.slower.as_deref().unwrap_or(&self.setup.lifetimes)
    }

    /// EXCHANGE_LIFETIME, microseconds.
    #[inline]
    fn exchange_lifetime(&self) -> u64 {
        self.lifetimes().exchange
    }

    /// NON_LIFETIME, microseconds.
    #[inline]
    fn non_lifetime(&self) -> u64 {
        self.lifetimes().non
    }

    #[inline]
    fn luck(&self) -> Luck {
        Luck { seed: self.setup.chance, node: self.node }
    }

    fn replace_controller(&mut self, number: u32, now: Instant, controller: PeerController) {
        self.release_controller(number, now);
        self.peers.replace_controller(number, controller);
        self.pump(number, now);
        self.peers.settle(number, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Code;
    use alloc::vec::Vec;
    use millpond_control::Preset;

    fn endpoint() -> Endpoint<u8> {
        let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
        Endpoint::new(Config::default(), controller, chance, 0, Identities::counted()).unwrap()
    }

    /// What release builds do where debug builds would stop: the inputs are the functions behind the assertion.
    #[test]
    fn nothing_is_lost_if_nobody_drains() {
        let now = Instant::ORIGIN;
        let mut endpoint = endpoint();
        let request = Outgoing::confirmable(Code::GET, &[]);
        let mut slots = Vec::new();
        for to in 0..3 {
            slots.extend(endpoint.submit(now, to, (Role::Request, None), &request, None).map(|id| id.slot));
        }
        for id in 0..3_u8 {
            endpoint.take(now, 9, &[0x40, 1, 0, id, 0xff, b'a' + id]);
        }
        endpoint.take(now, 0, &[0x64, 0x45, 0, 0, 0, 0, 0, 0, 0xff, b'!']);
        assert_eq!(slots.len(), 3);
        endpoint.fail(slots[1], now, Failure::Cancelled);

        let mut said = Vec::new();
        loop {
            said.push(match endpoint.poll(now) {
                Output::Transmit(transmit) => (transmit.to, transmit.bytes.to_vec()),
                Output::Event(Event::Request { from, message, .. } | Event::Response { from, message, .. }) => {
                    (from, message.payload().to_vec())
                }
                Output::Event(Event::Failed { to, why: Failure::Cancelled, .. }) => (to, b"cancelled".to_vec()),
                Output::Event(event) => panic!("{event:?}"),
                Output::Sleep(..) | Output::Idle => break,
            });
        }
        let copy = b"\x44\x01\0\0\0\0\0\0";
        let expected: [(u8, &[u8]); 8] =
            [(0, copy), (1, copy), (2, copy), (9, b"a"), (9, b"b"), (9, b"c"), (0, b"!"), (1, b"cancelled")];
        assert!(said.iter().map(|(peer, bytes)| (*peer, &bytes[..])).eq(expected), "{said:?}");
    }

    /// Outputs pile up as far as memory may; then datagrams are dropped, and counted.
    #[test]
    fn memory_is_bounded_even_if_nobody_drains() {
        let mut endpoint = endpoint();
        let limit = endpoint.setup.config.limits.bytes;
        // An acknowledgement with a response that nobody waits for.
        let late = [&b"\x60\x45\0\0\xff"[..], &[b'.'; 1_000]].concat();
        for _ in 0..100_000 {
            endpoint.take(Instant::ORIGIN, 0, &late);
        }
        assert!((limit / 2..=limit).contains(&endpoint.memory()), "{} bytes", endpoint.memory());
        let counters = endpoint.counters();
        assert_eq!(counters.late + counters.ignored.no_room, 100_000);
        assert!(counters.ignored.no_room > 0);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "input before all output was drained")]
    fn debug_builds_insist_on_draining() {
        let mut endpoint = endpoint();
        endpoint.receive(Instant::ORIGIN, 0, &[0x40, 1, 0, 1]);
        endpoint.receive(Instant::ORIGIN, 0, &[0x40, 1, 0, 2]);
    }
}
