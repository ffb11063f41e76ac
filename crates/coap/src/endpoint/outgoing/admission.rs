//! Which messages of ours may leave, and when.

use core::{fmt::Debug, hash::Hash};

use millpond_control::{Admit, Class, Controller, Instant};

use crate::endpoint::{
    Endpoint, Setup, SleepReason,
    exchanges::{Exchange, Role},
    id_generator::Pair,
    paths::Path,
    peers::Peer,
    random::About,
    sharing::Held,
    slots::{List, NONE},
};
use crate::message::{Kind, Token};
use crate::parts;

/// Whether a message may leave.
pub(in crate::endpoint) enum Gate {
    Open,
    /// Until something happens to what is under way with this peer.
    Closed,
    /// Until something happens on its path.
    Full,
    /// Until then.
    Until(Instant, SleepReason),
}

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// May this message, which waits or is about to, leave now?
    pub(in crate::endpoint) fn gate(&self, slot: u32, now: Instant) -> Gate {
        let Some(exchange) = self.exchanges.get(slot) else { return Gate::Closed };
        let Some((peer, path, waiting)) = self.peers.with_path(exchange.peer) else { return Gate::Closed };
        let kind = self.kind_now(path, exchange);
        let is_counted = !exchange.role.is_forgotten() || kind == Kind::Confirmable;
        if is_counted {
            let open = peer.open.len().saturating_sub(self.exchanges.tokens_kept(&peer.open));
            if path.outstanding >= path.nstart(self.setup.config.transmission.nstart) {
                return Gate::Full;
            }
            if open >= u32::from(self.setup.config.limits.exchanges_per_peer) {
                return Gate::Closed;
            }
            // Without tokens of our own making, one request at a time keeps tokens apart.
            if !peer.open.is_empty() && self.has_to_wait_for_its_token(peer, exchange) {
                return Gate::Closed;
            }
            if let Some(until) = self.retired_until(peer, exchange) {
                return Gate::Until(until, SleepReason::Token);
            }
        }
        if parts::NON_MESSAGES && kind == Kind::NonConfirmable {
            let pauses = [self.probing(peer, exchange), self.pause(exchange)];
            if let Some(until) = pauses.into_iter().flatten().max().filter(|until| *until > now) {
                return Gate::Until(until, SleepReason::Probing);
            }
        }
        let free = peer.ids.next_free(now, self.exchange_lifetime());
        if free > now {
            return Gate::Until(free, SleepReason::MessageId);
        }
        let class = if !parts::NON_MESSAGES || kind == Kind::Confirmable { Class::Confirmable } else { Class::Plain };
        // PROBING_RATE (RFC 7252 §4.7) and the pace of RFC 8085 §3.1.3 are for what nothing comes back for. Here the request came.
        if class == Class::Plain && (exchange.role.is_drawn() || self.has_reports(exchange)) {
            return Gate::Open;
        }
        if class == Class::Plain && !exchange.role.is_request() && path.controller.wishes().governs_requests {
            return Gate::Open;
        }
        let open = path.outstanding.saturating_add(u16::from(is_counted));
        let cx = self.random().cx((peer.number, waiting), now, open, peer.ids.used() as u32, About::Admission);
        match path.controller.admit(class, exchange.length(), cx) {
            Admit::Now => Gate::Open,
            Admit::At(at) if at > now => Gate::Until(at, SleepReason::Admission),
            // Nothing could end: waiting for it would be for ever.
            Admit::At(_) => Gate::Open,
            Admit::WhenOneEnds if path.outstanding == 0 => Gate::Open,
            Admit::WhenOneEnds => Gate::Full,
        }
    }

    /// It is a request whose token is not for us to choose, and that of another one to the peer.
    #[cold]
    fn has_to_wait_for_its_token(&self, peer: &Peer<A>, exchange: &Exchange) -> bool {
        exchange.role.asks()
            && self.has_fixed_token(exchange)
            && self.is_taken(peer, exchange, exchange.token())
            && !self.renews(peer, exchange)
    }

    /// The kind as which a message would leave now: one asked for as non-confirmable may have to be confirmable.
    pub(in crate::endpoint) fn kind_now(&self, path: &Path, exchange: &Exchange) -> Kind {
        let is_plain = parts::NON_MESSAGES && exchange.kind == Kind::NonConfirmable;
        let may_confirm = self.setup.config.may_confirm
            && exchange.role != Role::Group
            && !exchange.role.is_drawn()
            && !self.has_reports(exchange);
        if is_plain && may_confirm && path.wishes_confirmable(exchange.role) {
            return Kind::Confirmable;
        }
        exchange.kind
    }

    /// It is a message of a body in bursts, whose sender follows the reports of that (RFC 9177 §7.2) in place of the controller.
    fn has_reports(&self, exchange: &Exchange) -> bool {
        parts::Q_BLOCK && exchange.role == Role::BodyBlock && !self.setup.config.admits_pieces
    }

    /// There is no choice of a token.
    pub(in crate::endpoint) fn has_fixed_token(&self, exchange: &Exchange) -> bool {
        exchange.own_token || self.setup.config.token_length == 0
    }

    /// Whether this token does not set a request apart from all that are under way to its peer.
    fn is_taken(&self, peer: &Peer<A>, exchange: &Exchange, token: Token) -> bool {
        let id_generator = &self.setup.id_generator;
        self.exchanges.is_taken(exchange.peer, &peer.open, (token, exchange.mark), exchange.most, id_generator)
    }

    /// A token for a request. One that is still under way, because it is short or somebody gave it, is passed over.
    pub(in crate::endpoint) fn make_token(&self, peer: &Peer<A>, exchange: &Exchange) -> Option<Token> {
        let Setup { config, id_generator, .. } = &*self.setup;
        let length = exchange.token().len() as u8;
        let whose = Pair { node: self.node(), peer: peer.number };
        let is_idle =
            |token: &Token| (peer.open.is_empty() || !self.is_taken(peer, exchange, *token)) && !self.is_groups(*token);
        let is_free = |token: &Token| is_idle(token) && !self.is_retired(peer, exchange, *token);
        let used = peer.ids.used();
        let next = id_generator.token(whose, used, length);
        if is_free(&next) {
            return Some(next);
        }
        // Each exchange that is under way takes as many as it may have copies, one more for a first token that is
        // longer than its neighbours', and one that a longer one given by somebody begins with.
        let each = u64::from(config.transmission.max_retransmit.max(exchange.most)).saturating_add(2);
        let most = each.saturating_mul(u64::from(config.limits.exchanges_per_peer));
        // They count down from the highest, so that the next messages have none of them.
        let instead = (0..=most.saturating_add(self.count_retired()))
            .map(|more| !used.wrapping_mul(most.wrapping_add(1)).wrapping_add(more));
        let mut instead = instead.map(|number| id_generator.token(whose, number, length));
        // Short ones may all be retired.
        instead.clone().find(is_free).or_else(|| instead.find(is_idle))
    }

    /// Lets messages leave that wait for this peer, as many as may, and not more than `most`. Those that NSTART is for keep
    /// their order, and so do the others; neither stands behind the other. Says how many left, and in `held` what may not
    /// leave because of the path.
    pub(in crate::endpoint) fn pump_peer(&mut self, number: u32, now: Instant, most: u32, held: &mut Held) -> u32 {
        let mut next = self.peers.get(number).map_or(NONE, |peer| peer.waiting.first());
        let Held { counted: mut is_counted_held, plain: mut is_plain_held } = *held;
        let mut launched = 0_u32;
        while let Some(exchange) = self.exchanges.get(next) {
            let (slot, is_counted) = (next, exchange.is_counted());
            next = List::after(&self.exchanges.slots, slot);
            let is_held = if is_counted { &mut is_counted_held } else { &mut is_plain_held };
            if *is_held {
                continue;
            }
            let gate = self.gate(slot, now);
            match gate {
                Gate::Open => {
                    self.timers.clear(slot);
                    self.peers.unhold(number, &mut self.exchanges, slot);
                    self.launch(slot, now);
                    launched = launched.saturating_add(1);
                    if launched >= most {
                        return launched;
                    }
                    continue;
                }
                Gate::Closed => self.timers.clear(slot),
                Gate::Full | Gate::Until(_, SleepReason::Admission) => {
                    *(if is_counted { &mut held.counted } else { &mut held.plain }) = true;
                    match gate {
                        Gate::Until(at, reason) => self.arm(slot, now, at, reason),
                        _ => self.timers.clear(slot),
                    }
                }
                Gate::Until(at, reason) => self.arm(slot, now, at, reason),
            }
            *is_held = true;
            if is_plain_held || !self.exchanges.holds_additional {
                return launched;
            }
        }
        launched
    }

    /// Nothing waits for this peer that NSTART is for.
    pub(in crate::endpoint) fn only_furthers_wait(&self, number: u32) -> bool {
        let Some(peer) = self.peers.get(number).filter(|_| self.exchanges.holds_additional) else { return false };
        !peer.waiting.iter(&self.exchanges.slots).any(|(_, exchange)| exchange.is_counted())
    }
}
