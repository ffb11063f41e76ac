//! The message layer and the matching of requests and responses (RFC 7252 §4, §5.2, §5.3) as a state machine without
//! clock and socket.
//!
//! An [`Endpoint`] is client and server at once, for any number of peers. It is driven by *any number of inputs, then
//! drain*: call [`receive`](Endpoint::receive), [`request`](Endpoint::request), [`respond`](Endpoint::respond),
//! [`reject`](Endpoint::reject), [`cancel`](Endpoint::cancel), the others that say "input", then
//! [`poll`](Endpoint::poll) until it says [`Output::Sleep`](crate::Output::Sleep) or
//! [`Output::Idle`](crate::Output::Idle), before the next input and before sleeping. An input amid the outputs loses
//! nothing here; a [`CoapStack`](crate::transfer::CoapStack) over an endpoint does not take one. When a sleep is over, poll
//! again. Time is an argument and so is chance; how datagrams travel is the caller's business:
//!
//! ```
//! use millpond_coap::message::{Code, number};
//! use millpond_coap::{ChanceSeed, Config, Endpoint, Event, IdGenerator, Instant, Outgoing, Output, Preset, RequestId};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let make = |node| {
//!     let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
//!     Endpoint::new(Config::default(), controller, chance, node, IdGenerator::counted())
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
//! * **Paths**. A peer has one of its own, with controller, NSTART and queue; or peers share one, and take turns
//!   ([`Endpoint::sharing_paths`] by their addresses, [`Endpoint::share_path`] by what else is known of them). Unvalidated peers never do.
//! * **NSTART** (§4.7), or what the controller wishes in its place. Outstanding are confirmable messages not acknowledged and non-confirmable requests not answered.
//!   A request that was acknowledged no longer counts. What may not leave waits in the order of asking, and the
//!   controller is asked besides. A response is awaited for EXCHANGE_LIFETIME after the acknowledgement, for
//!   NON_LIFETIME after a non-confirmable request, and longer where PROBING_RATE asks for it.
//! * **The last wait** of a request may be longer than its controller's, if that wishes so and as long as nothing else is to
//!   leave for the peer ([`Event::Overdue`]).
//! * **RetransmitOptions** of single messages ([`RetransmitOptions`]): more copies or fewer, and longer waits, never shorter ones.
//! * **Message IDs** (§4.4) count up per peer. None is used again within EXCHANGE_LIFETIME: a message waits until one is
//!   free. That is why a peer is never forgotten within that time.
//! * **Lifetimes** (§4.8.2) are derived from the longest waits that the controllers can arm ([`Lifetimes`]), not from
//!   the defaults.
//! * **Wishes** of a peer's controller. Copies of confirmable requests are distinguished by their tokens or by an option of
//!   [`NamingOptions`], so that a piggybacked response names one and the sample says which; docs/naming-copies.md has the
//!   bytes. Of the non-confirmable messages to the peer n-th leaves as a confirmable one. One that governs
//!   non-confirmable requests by their answers is asked about those alone, and PROBING_RATE does not hold beside it.
//! * **Duplicates** (§4.5). See [`Duplicates`]. Copies of separate responses are acknowledged again and not delivered.
//! * **Unwanted responses** (RFC 7967). Who wants none ([`Endpoint::request`]) hears when the request was acknowledged or left.
//!   What nobody acknowledges has no feedback: such requests leave every 3 s at most, and confirmably where a controller wishes.
//! * **Groups** (§8). A request to a group leaves once and collects an answer of each member. A request that came to a
//!   group is answered after a while, non-confirmably, and only if there is something to say.
//! * **Hostile input** costs bounded memory ([`Limits`]) and no walk over peers. Who only asks and is answered in
//!   acknowledgements leaves nothing but a record within the budget for duplicates.

mod config;
mod counters;
mod gate;
mod groups;
mod id_generator;
mod incoming;
mod input;
mod known;
mod layer;
mod lifetimes;
mod outgoing;
mod polling;
mod protection;
mod random;
pub(crate) mod tables;

use alloc::boxed::Box;
// A processor without atomic swaps has no threads to share with.
#[cfg(not(target_has_atomic = "ptr"))]
use alloc::rc::Rc as Arc;
#[cfg(target_has_atomic = "ptr")]
use alloc::sync::Arc;
use core::{fmt::Debug, hash::Hash};

use millpond_control::{ChanceSeed, Instant, PeerController};

use crate::message::MessageId;

pub use config::{Config, ConfigError, Duplicates, Limits, NamingOption, NamingOptions, Transmission};
pub use counters::{Counters, Failures, Kinds, Reasons};
pub use gate::CalmGate;
pub use groups::{DEFAULT_LEISURE, leisure};
pub use id_generator::IdGenerator;
pub use incoming::calm::Repeats;
pub use input::{ExchangeId, Outgoing, Refused, RequestId, RetransmitOptions};
pub use lifetimes::Lifetimes;

pub use crate::output::{Cause, EndpointOutput, Event, Failure, Ignored, SleepReason, Transmit};

// Files below name these by what they are, wherever they lie.
use incoming::{calm, duplicates, inbox, ping, requests};
use outgoing::{additional, admission, exchanges, finding, message_ids, naming, overdue, send, unanswered};
pub(crate) use tables::{beside, queue, slots, timers};
use tables::{delayed_responses, paths, peers, recent, sharing};

use additional::ExtraState;
use counters::Counts;
use exchanges::{Exchanges, Stage};
use inbox::Inbox;
use peers::Peers;
use queue::Queue;
use random::Random;
use sharing::SharedBy;
use timers::Timers;

/// The message layer of RFC 7252 for one socket. See the [module](self) for how to drive it.
///
/// `A` is an address: a socket address live, a number in a simulation.
///
/// **Inputs and outputs.** Any number of inputs may come before a [`poll`](Self::poll), and between two: what each leads
/// to is queued, in that order, within [`Limits`]. Poll until [`Output::Sleep`](crate::Output::Sleep) or
/// [`Output::Idle`](crate::Output::Idle) before sleeping: what waits is told to nobody meanwhile. Time never goes back: an
/// earlier `now` counts as the latest before.
#[derive(Debug)]
pub struct Endpoint<A> {
    setup: Arc<Setup<A>>,
    /// The latest time of all calls so far.
    now: Instant,
    peers: Peers<A>,
    exchanges: Exchanges,
    timers: Timers,
    /// There once something came in that must be remembered.
    inbox: Option<Box<Inbox<A>>>,
    /// There once an additional response was sent, a group was asked, or somebody asked one that this endpoint is in.
    extra: Option<Box<ExtraState<A>>>,
    queue: Queue<A>,
    counts: Counts,
}

/// What never changes, shared by endpoints that are alike.
#[derive(Clone, Debug)]
struct Setup<A> {
    config: Config,
    /// What every new peer's controller starts as.
    prototype: PeerController,
    /// Those of the slowest controller used so far, the prototype among them.
    lifetimes: Lifetimes,
    chance: ChanceSeed,
    id_generator: IdGenerator,
    /// The path that a peer is on, if it was said.
    path_of: Option<fn(&A) -> u64>,
    /// Which peers share a controller.
    shared_by: Option<SharedBy<A>>,
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// An endpoint that knows nobody. Every new peer gets a copy of `controller`; `chance` and `node` address the words
    /// of chance that controllers are given; `id_generator` makes message IDs and tokens.
    ///
    /// # Errors
    /// What cannot work, with its place in `config` and its fix.
    pub fn new(
        config: Config,
        controller: impl Into<PeerController>,
        chance: ChanceSeed,
        node: u32,
        id_generator: IdGenerator,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let prototype = controller.into();
        if !naming::is_there(&prototype) {
            return Err(ConfigError::LeftOut { feature: "copy-options" });
        }
        let lifetimes = Lifetimes::of(&prototype, &config.transmission);
        let setup = Setup { config, prototype, lifetimes, chance, id_generator, path_of: None, shared_by: None };
        Ok(Self::with(Arc::new(setup), node))
    }

    /// Says which peers are in one network: those of which this gives the same. For [`Duplicates::Calm`], where all are on one
    /// path unless it is said, and for what unvalidated peers in one network may take of an endpoint. To be said before anything comes in.
    #[must_use]
    pub fn with_paths(mut self, path_of: fn(&A) -> u64) -> Self {
        self.setup = Arc::new(Setup { path_of: Some(path_of), ..(*self.setup).clone() });
        self
    }

    /// Peers of which this gives the same share a path: one controller, NSTART and queue, in which they take turns. Else every
    /// peer has a path of its own, but for those that [`share_path`](Self::share_path) is said to. To be said before anything
    /// comes in.
    ///
    /// Only those do that were asked for something or have answered something. A peer that else sends datagrams may have
    /// forged its address, and answers to it are timed by a controller of their own.
    #[cfg(feature = "shared-paths")]
    #[must_use]
    pub fn sharing_paths(mut self, path_of: impl Fn(&A) -> u64 + Send + Sync + 'static) -> Self {
        let shared_by = Some(SharedBy::new(path_of));
        self.setup = Arc::new(Setup { shared_by, ..(*self.setup).clone() });
        self
    }

    /// From now on copies of requests meet this. Responses that are stored stay so; a [`Duplicates::Calm`] that begins knows
    /// nothing of the time before. Under [protection](Self::protected_by) answers are stored in place of [`Duplicates::Afresh`].
    pub fn set_duplicates(&mut self, duplicates: Duplicates) {
        let is_replay = self.protection().is_some() && !duplicates.stores();
        let duplicates = if is_replay { Duplicates::Stored } else { duplicates };
        let Setup { config, .. } = &*self.setup;
        if config.duplicates == duplicates {
            return;
        }
        let config = Config { duplicates, ..*config };
        self.setup = Arc::new(Setup { config, ..(*self.setup).clone() });
        if let Some(inbox) = self.inbox.as_deref_mut() {
            inbox.calm = inbox::calm(&self.setup);
        }
    }

    /// An endpoint that was made like this one but for its number, and that knows nobody. The two share what never
    /// changes, so that many endpoints take less memory than if each were made by [`new`](Self::new).
    #[must_use]
    pub fn sibling(&self, node: u32) -> Self {
        Self::with(Arc::clone(&self.setup), node).protected_like(self)
    }

    /// What it was made with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.setup.config
    }

    fn with(setup: Arc<Setup<A>>, node: u32) -> Self {
        Self {
            now: Instant::ORIGIN,
            peers: Peers::new(),
            exchanges: Exchanges::new(setup.config.limits.exchanges_per_peer),
            timers: Timers::new(),
            inbox: None,
            extra: None,
            queue: Queue::new(),
            counts: Counts::of(node),
            setup,
        }
    }

    /// Input: the application no longer wants a response. Its request ends as [`Failure::Cancelled`]; a response that
    /// comes all the same is [`Event::Late`]. Of a subscription that was answered nothing more is told. False if the
    /// exchange was over before.
    pub fn cancel(&mut self, now: Instant, exchange: ExchangeId) -> bool {
        let now = self.input(now);
        self.forget_protected(exchange);
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

    /// What every input begins with.
    #[inline]
    fn input(&mut self, now: Instant) -> Instant {
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
        &self.setup.lifetimes
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
    fn random(&self) -> Random {
        Random { seed: self.setup.chance, node: self.node() }
    }
}
