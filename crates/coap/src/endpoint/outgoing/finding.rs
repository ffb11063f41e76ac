//! Exchanges by message ID, and by token in all the ways in which one may be like another.

use hashbrown::HashTable;

use crate::endpoint::{
    IdGenerator,
    exchanges::{Exchange, Exchanges, Role, Stage},
    naming::CopyTag,
    slots::{List, Slots},
};
use crate::invariant::Sure;
use crate::message::{MessageId, Token};
use crate::parts;

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::endpoint) struct Key {
    slot: u32,
    by_token: bool,
}

impl Exchanges {
    /// What they are found through, if they are not looked through.
    #[inline]
    fn table(&self) -> Option<&HashTable<Key>> {
        self.table.as_deref().filter(|_| parts::MANY_PEERS)
    }

    /// The exchange that is under way with this peer and has this message ID.
    #[inline]
    pub(in crate::endpoint) fn with_id(
        &self,
        peer: u32,
        open: &List,
        id: MessageId,
        id_generator: &IdGenerator,
    ) -> Option<u32> {
        let fits = |exchange: &Exchange| exchange.peer == peer && exchange.id() == id;
        // A request acknowledged long ago may have an ID that was used again since: its successor comes first.
        let look = |(sent, acknowledged), (slot, exchange): (u32, &Exchange)| match exchange.stage {
            Stage::Acknowledged if fits(exchange) => (sent, Some(slot)),
            stage if stage != Stage::Subscribed && fits(exchange) => (Some(slot), acknowledged),
            _ => (sent, acknowledged),
        };
        let (sent, acknowledged) = match self.table() {
            None => open.iter(&self.slots).fold((None, None), look),
            Some(table) => {
                let keys = table.iter_hash(id_generator.hash(&(peer, id.0))).filter(|key| !key.by_token);
                keys.filter_map(|key| Some((key.slot, self.slots.get(key.slot)?))).fold((None, None), look)
            }
        };
        sent.or(acknowledged)
    }

    /// The request that is under way with this peer and has this token in one of the transmissions.
    #[inline]
    pub(in crate::endpoint) fn with_token(
        &self,
        peer: u32,
        open: &List,
        token: Token,
        id_generator: &IdGenerator,
    ) -> Option<u32> {
        let found = self.with_first_token(peer, open, token, id_generator, |_| true);
        if found.is_some() || !self.names_by_token {
            return found;
        }
        let (rest, _) = token.split_last()?;
        self.with_first_token(peer, open, rest, id_generator, |exchange| exchange.copy_with(token).is_some())
    }

    /// The request of this subscription's token that is to renew it, if nothing but its response is awaited any more.
    ///
    /// Until its acknowledgement a message with the token may as well be one that crossed it, and would be taken for
    /// the fastest of answers.
    pub(in crate::endpoint) fn renewal_of(&self, subscription: u32, open: &List) -> Option<u32> {
        let old = self.slots.get(subscription).filter(|old| old.stage == Stage::Subscribed)?;
        open.iter(&self.slots)
            .find(|(_, exchange)| {
                exchange.role == Role::Subscription
                    && matches!(exchange.stage, Stage::Acknowledged | Stage::NonConfirmable)
                    && exchange.token() == old.token()
            })
            .map(|(slot, _)| slot)
    }

    /// The subscription that has this token already.
    pub(in crate::endpoint) fn subscription_with(
        &self,
        peer: u32,
        open: &List,
        token: Token,
        id_generator: &IdGenerator,
    ) -> Option<u32> {
        self.with_first_token(peer, open, token, id_generator, |exchange| exchange.stage == Stage::Subscribed)
    }

    /// Whether this token is in use by subscriptions that were answered, and by nothing else.
    pub(in crate::endpoint) fn is_only_subscribed(
        &self,
        peer: u32,
        open: &List,
        token: Token,
        id_generator: &IdGenerator,
    ) -> bool {
        let is_open = |exchange: &Exchange| exchange.stage != Stage::Subscribed;
        self.subscription_with(peer, open, token, id_generator).is_some()
            && self.with_first_token(peer, open, token, id_generator, is_open).is_none()
            && !self.is_claimed(open, token)
    }

    /// The claim that this token begins like.
    pub(in crate::endpoint) fn claim_of(&self, open: &List, token: Token) -> Option<u32> {
        let is_it = |exchange: &Exchange| {
            exchange.role == Role::Claim
                && !token.is_long()
                && token.as_bytes().starts_with(exchange.token().as_bytes())
        };
        open.iter(&self.slots).find(|(_, exchange)| is_it(exchange)).map(|(slot, _)| slot)
    }

    /// Whether this token begins like one that is claimed.
    fn is_claimed(&self, open: &List, token: Token) -> bool {
        self.has_claims && self.claim_of(open, token).is_some()
    }

    /// Whether any exchange, with whomever, has a token like this one, or one of which this is a copy's.
    pub(in crate::endpoint) fn any_like(&self, token: Token) -> bool {
        let token = token.as_bytes();
        self.slots.iter().any(|(_, exchange)| {
            let other = exchange.token();
            token.starts_with(other.as_bytes()) && token.len() <= other.len().saturating_add(1)
        })
    }

    /// Whether a token begins like this one, or the other way round.
    pub(in crate::endpoint) fn is_beginning(&self, open: &List, token: Token) -> bool {
        let token = token.as_bytes();
        open.iter(&self.slots).any(|(_, exchange)| {
            let other = exchange.token();
            let is_with_token = exchange.role.asks() || exchange.role == Role::Claim;
            is_with_token && (other.as_bytes().starts_with(token) || token.starts_with(other.as_bytes()))
        })
    }

    /// Whether a token of a request with so many copies, the first of which has this token, is or will be that of
    /// another request under way with this peer.
    pub(in crate::endpoint) fn is_taken(
        &self,
        peer: u32,
        open: &List,
        (token, mark): (Token, CopyTag),
        copies: u8,
        id_generator: &IdGenerator,
    ) -> bool {
        let find = |first: Token, fits: fn(&Exchange) -> bool| {
            self.with_first_token(peer, open, first, id_generator, fits).is_some()
        };
        let is_theirs = || {
            let (rest, copy) = token.split_last()?;
            let is_one = |exchange: &Exchange| exchange.mark == CopyTag::Token && copy <= exchange.most;
            Some(copy > 0 && self.with_first_token(peer, open, rest, id_generator, is_one).is_some())
        };
        let is_later_ours = |copy| token.followed_by(copy).is_some_and(|token| find(token, |_| true));
        find(token, |_| true)
            || self.is_claimed(open, token)
            || (self.names_by_token && is_theirs() == Some(true))
            || (mark == CopyTag::Token && (1..=copies).any(is_later_ours))
    }

    /// The first request found that is under way with this peer, has this token in its first copy, and fits.
    #[inline]
    fn with_first_token(
        &self,
        peer: u32,
        open: &List,
        token: Token,
        id_generator: &IdGenerator,
        fits: impl Fn(&Exchange) -> bool,
    ) -> Option<u32> {
        let is_it = |exchange: &Exchange| {
            exchange.peer == peer && exchange.role.asks() && exchange.token() == token && fits(exchange)
        };
        match self.table() {
            None => open.iter(&self.slots).find(|(_, exchange)| is_it(exchange)).map(|(slot, _)| slot),
            Some(table) => table
                .find(id_generator.hash(&(peer, token)), |key| {
                    key.by_token && self.slots.get(key.slot).is_some_and(is_it)
                })
                .map(|key| key.slot),
        }
    }

    /// Makes an exchange that is under way findable.
    #[inline]
    pub(in crate::endpoint) fn enter(&mut self, slot: u32, id_generator: &IdGenerator) {
        let Self { slots, table: Some(table), .. } = self else { return };
        if !parts::MANY_PEERS {
            return;
        }
        let hash = |key: &Key| hash(slots, key, id_generator);
        for by_token in keys(slots, slot) {
            let key = Key { slot, by_token };
            table.insert_unique(hash(&key), key, hash);
        }
    }

    /// The opposite of [`enter`](Self::enter).
    #[inline]
    pub(in crate::endpoint) fn leave(&mut self, slot: u32, id_generator: &IdGenerator) {
        let Self { slots, table: Some(table), .. } = self else { return };
        if !parts::MANY_PEERS {
            return;
        }
        for by_token in keys(slots, slot) {
            let key = Key { slot, by_token };
            let found = table.find_entry(hash(slots, &key, id_generator), |other| *other == key);
            if let Ok(entry) = found.sure("entry of an exchange") {
                entry.remove();
            }
        }
    }
}

/// By what an exchange is found: its message ID (`false`) and its token.
fn keys(slots: &Slots<Exchange>, slot: u32) -> impl Iterator<Item = bool> {
    let has_id = slots.get(slot).is_some_and(|exchange| exchange.stage != Stage::Subscribed);
    [false, true].into_iter().filter(move |by_token| has_id || *by_token)
}

fn hash(slots: &Slots<Exchange>, key: &Key, id_generator: &IdGenerator) -> u64 {
    let Some(exchange) = slots.get(key.slot) else { return 0 };
    if key.by_token {
        id_generator.hash(&(exchange.peer, exchange.token()))
    } else {
        id_generator.hash(&(exchange.peer, exchange.id().0))
    }
}
