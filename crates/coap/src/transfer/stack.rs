use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{fmt::Debug, hash::Hash};

use millpond_control::{ChanceSeed, Instant, PeerController, Span};

use super::{
    ClientRequestId, Config, ConfigError, Counters, InPieces, Progress, Refused,
    block_cache::BlockCache,
    bursts::Bursts,
    groups::Gatherings,
    observers::Observers,
    owner::Owner,
    queued_event::QueuedEvent,
    request_table::RequestTable,
    server::Pending,
    unvalidated::{Sent, Validation},
};
use crate::block::{Assemblies, AssemblyLimits, robust::BurstParameters};
use crate::endpoint::{Endpoint, ExchangeId, beside::Beside};
use crate::layer::MessageLayer;
use crate::parts;

/// Bodies being collected at a time, however short they are.
const MOST_BODIES: usize = 1_024;

/// Client and server of whole bodies and observations over one [`MessageLayer`]. See the [module](super) for how to drive it.
///
/// **Inputs and outputs.** Any number of inputs, then drain: [`poll`](Self::poll) until [`Sleep`](crate::Output::Sleep) or
/// [`Idle`](crate::Output::Idle), before the next input and before sleeping. Amid the outputs an event may stand ready whose
/// message lies in the layer: a debug build panics at an input then. Over a stream only bytes, and its end, must wait until
/// all is drained, the event of a [`cancel`](Self::cancel) too; other inputs may come amid the outputs.
#[derive(Debug)]
pub struct CoapStack<L: MessageLayer> {
    pub(crate) layer: L,
    pub(super) config: Config,
    pub(super) chance: ChanceSeed,
    /// Whose each message of ours is that is not over.
    pub(super) owners: Beside<Owner>,
    pub(super) requests: RequestTable<L::Peer>,
    pub(super) groups: Gatherings,
    /// Requests that the application has not answered.
    pub(super) pending: Beside<Pending<L::Peer>>,
    /// Bodies of requests that are not whole.
    pub(super) bodies: Assemblies<(L::Peer, u64)>,
    pub(super) in_pieces: InPieces,
    pub(super) cache: BlockCache<L::Peer>,
    pub(super) observers: Observers<L::Peer>,
    pub(super) bursts: Bursts<L::Peer>,
    pub(super) events: VecDeque<QueuedEvent<L::Peer>>,
    /// What was given last, if no datagram holds it.
    pub(super) shown: Vec<u8>,
    pub(super) counts: Counters,
    /// Who may be sent how much; without it everybody everything.
    pub(super) validation: Option<Box<dyn Validation<L::Peer>>>,
    /// What was sent as the last answer.
    pub(super) sent: Sent,
    /// Why the layer has ended, until that is told.
    pub(super) closing: Option<L::Closing>,
}

impl<A: Copy + Eq + Hash + Debug> CoapStack<Endpoint<A>> {
    /// A stack that owns this endpoint. `chance` spreads when registrations are renewed.
    ///
    /// # Errors
    /// What cannot work, with its fix.
    pub fn new(endpoint: Endpoint<A>, config: Config, chance: ChanceSeed) -> Result<Self, ConfigError> {
        let datagram = endpoint.longest_datagram();
        if config.block.is_bert() {
            return Err(ConfigError::Bert);
        }
        if config.block.bytes() as usize >= datagram {
            return Err(ConfigError::Block { block: config.block.bytes(), datagram });
        }
        if config.renew_after.0 > config.renew_after.1 {
            return Err(ConfigError::RenewAfter);
        }
        if config.etag_length > 8 {
            return Err(ConfigError::EtagLength { asked: config.etag_length });
        }
        if let Some(parameters) = config.q_block {
            if !parts::Q_BLOCK {
                return Err(ConfigError::LeftOut { feature: "q-block" });
            }
            parameters.check()?;
        }
        Ok(Self::with(endpoint, config, chance))
    }

    /// A stack that was made like this one but for the number of its endpoint, and that knows nobody.
    #[must_use]
    pub fn sibling(&self, node: u32) -> Self {
        Self::with(self.layer.sibling(node), self.config, self.chance)
    }

    /// Input: a datagram came in. Whatever its bytes, this ends in at most a few outputs.
    pub fn receive(&mut self, now: Instant, from: A, datagram: &[u8]) {
        self.input(now);
        self.layer.receive(now, from, datagram);
    }

    /// Input: a datagram came in that was sent to a group, as
    /// [`Endpoint::receive_by_group`](crate::Endpoint::receive_by_group). Such a request cannot observe, and its body is one
    /// message.
    #[cfg(all(feature = "server", feature = "groups"))]
    pub fn receive_by_group(&mut self, now: Instant, from: A, datagram: &[u8]) {
        self.input(now);
        self.layer.receive_by_group(now, from, datagram);
    }

    /// Input: as [`Endpoint::ping`].
    ///
    /// # Errors
    /// What exceeds a limit.
    pub fn ping(&mut self, now: Instant, to: A) -> Result<ExchangeId, Refused> {
        self.input(now);
        Ok(self.layer.ping(now, to)?)
    }

    /// Input: as [`Endpoint::forget_controller`].
    pub fn forget_controller(&mut self, now: Instant, peer: A) {
        self.input(now);
        self.layer.forget_controller(now, peer);
    }

    /// Input: as [`Endpoint::forget_peer`]; what came of its bodies goes, and what was kept to be asked for by it. Its observers
    /// are [removed](Self::remove_observer) first.
    pub fn forget_peer(&mut self, now: Instant, peer: A) {
        self.input(now);
        if parts::SERVE_BLOCKS {
            self.bodies.drop_of(|(whose, _)| *whose == peer);
        }
        if parts::SERVE_BLOCKS {
            let layer = &self.layer;
            self.cache.drop_of(peer, |key| layer.hash(&key));
        }
        if parts::Q_BLOCK {
            self.bursts.forget_peer(peer);
        }
        self.layer.forget_peer(now, peer);
    }

    /// Input: as [`Endpoint::set_controller`].
    ///
    /// # Errors
    /// The peer is not known and there is no room for another.
    pub fn set_controller(
        &mut self,
        now: Instant,
        peer: A,
        controller: impl Into<PeerController>,
    ) -> Result<(), Refused> {
        self.input(now);
        Ok(self.layer.set_controller(now, peer, controller)?)
    }

    /// Input: as [`Endpoint::recall`].
    ///
    /// # Errors
    /// The peer is not known and there is no room for another.
    pub fn recall(&mut self, now: Instant, peer: A, base_rtt: Span) -> Result<(), Refused> {
        self.input(now);
        Ok(self.layer.recall(now, peer, base_rtt)?)
    }

    /// Setting: bodies of this peer's requests and those that answer them have these parameters when they travel in bursts,
    /// whatever [`Config::q_block`] says; this peer must have the same. Nothing if no bursts are taken.
    ///
    /// # Errors
    /// What RFC 9177 forbids.
    pub fn set_q_block(&mut self, peer: A, parameters: BurstParameters) -> Result<(), ConfigError> {
        if !parts::Q_BLOCK {
            return Err(ConfigError::LeftOut { feature: "q-block" });
        }
        parameters.check()?;
        self.bursts.set_parameters(peer, parameters);
        Ok(())
    }

    /// The endpoint below.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint<A> {
        &self.layer
    }

    /// The endpoint below, to set what is the endpoint's and to send what a stack has no word for. What becomes of that is told as
    /// a [trace](crate::Output::Trace). To poll it, to hand it what came and to answer requests is the stack's.
    pub const fn endpoint_mut(&mut self) -> &mut Endpoint<A> {
        &mut self.layer
    }
}

impl<L: MessageLayer> CoapStack<L> {
    pub(super) fn with(layer: L, config: Config, chance: ChanceSeed) -> Self {
        let limits = AssemblyLimits {
            body: config.limits.body,
            bodies: MOST_BODIES,
            lifetime: config.lifetime,
            size: config.block,
        };
        let bursts = Bursts::new(&config, chance, layer.node());
        Self {
            layer,
            config,
            chance,
            owners: Beside::new(),
            requests: RequestTable::new(),
            groups: Gatherings::new(),
            pending: Beside::new(),
            bodies: Assemblies::new(limits),
            in_pieces: InPieces::default(),
            cache: BlockCache::new(config.limits.cached, config.lifetime),
            observers: Observers::new(),
            bursts,
            events: VecDeque::new(),
            shown: Vec::new(),
            counts: Counters::default(),
            validation: None,
            sent: Sent::NOTHING,
            closing: None,
        }
    }

    /// From now on the requests of which `is_meant` says so come in pieces: the body of each [event](super::Event::Request) is
    /// the payload of one message, whatever its Block1, and nothing is kept for later blocks. The application answers every
    /// one [as a piece](super::Answer::as_piece). Such requests do not travel in bursts. A [sibling](Self::sibling) does not have this
    /// by itself.
    #[cfg(all(feature = "server", feature = "block"))]
    pub fn take_pieces(&mut self, is_meant: super::TakesPieces) {
        self.in_pieces = InPieces(Some(is_meant));
    }

    /// The request that a message exchange belongs to, as long as that is not over.
    #[must_use]
    pub fn request_of(&self, exchange: ExchangeId) -> Option<ClientRequestId> {
        match self.owners.get(exchange)? {
            Owner::Request(slot) => Some(self.name_of(slot)),
            Owner::Observer(_) => None,
        }
    }

    /// The message exchange that a request has under way, or has waiting.
    #[must_use]
    pub fn exchange_of(&self, request: ClientRequestId) -> Option<ExchangeId> {
        self.requests.find(request)?.exchange
    }

    /// How far a request has come; `None` if it is over.
    #[must_use]
    pub fn progress(&self, request: ClientRequestId) -> Option<Progress> {
        self.progress_of(request)
    }

    /// Requests that are not over.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.requests.len()
    }

    /// Observers that are kept.
    #[must_use]
    pub fn observers(&self) -> u32 {
        self.observers.len()
    }

    /// Representations that are kept for later blocks.
    #[must_use]
    pub fn cached(&self) -> u32 {
        self.cache.len()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counts
    }

    /// Bytes held, this value itself and the endpoint included.
    #[must_use]
    pub fn memory(&self) -> usize {
        let events = self.events.capacity().saturating_mul(size_of::<QueuedEvent<L::Peer>>());
        size_of::<Self>()
            .saturating_sub(size_of::<L>())
            .saturating_add(self.layer.memory())
            .saturating_add(self.owners.memory())
            .saturating_add(self.requests.memory())
            .saturating_add(self.groups.memory())
            .saturating_add(self.pending.memory())
            .saturating_add(self.bodies.memory())
            .saturating_add(self.cache.memory())
            .saturating_add(self.observers.memory())
            .saturating_add(self.bursts.memory())
            .saturating_add(self.shown.capacity())
            .saturating_add(events)
    }

    /// What every input begins with.
    pub(super) fn input(&mut self, now: Instant) {
        self.layer.advance(now);
        // What an endpoint holds of a message goes once it is drained; a stream loses nothing that was not taken yet.
        debug_assert!(
            L::IS_RELIABLE || !self.events.iter().any(QueuedEvent::is_held_below),
            "input between two polls: poll until Sleep or Idle first"
        );
    }

    /// Bytes of bodies of requests and of notifications that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        let notifications = if parts::NOTIFY { self.observers.waiting_bytes() } else { 0 };
        self.request_bytes().saturating_add(notifications)
    }

    /// Bytes of bodies of requests.
    pub(super) fn request_bytes(&self) -> usize {
        let bursts = if parts::Q_BLOCK { self.bursts.request_bytes() } else { 0 };
        self.requests.bytes.saturating_add(bursts)
    }
}
