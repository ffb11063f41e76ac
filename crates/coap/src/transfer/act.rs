//! What a host has to do once its endpoint is drained, and whose a message is.

use alloc::{boxed::Box, vec::Vec};
use core::num::NonZeroU32;

use super::{Refusal, asked::Asked};
use crate::block::Block;
use crate::endpoint::{ExchangeId, RequestId};
use crate::message::Token;

/// An input for the endpoint, which takes one at a time.
#[derive(Debug)]
pub(super) enum Act<A> {
    /// The ask in this slot has something to send.
    Send(u32),
    /// The ask in this slot registers again.
    Renew(u32),
    Deregister(Box<Asked<A>>, Token),
    Cancel(ExchangeId),
    Unsubscribe(ExchangeId),
    ForgetGroup(ExchangeId),
    /// A block of a body is answered with 2.31, and with this as Block1.
    Continue(RequestId, Block),
    /// A request is answered with an error, without the application.
    Refuse(RequestId, Refusal),
    /// A request is answered with a block of what is kept in this slot.
    Serve {
        request: RequestId,
        slot: u32,
        generation: NonZeroU32,
    },
    /// A request is answered by what its first copy is answered with.
    Drop(RequestId),
    /// The observer in this slot has something to be told.
    Notify(u32),
}

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of the ask in this slot.
    Ask(u32),
    /// That of the observer in this slot.
    Observer(u32),
}

/// The owners of messages that are not over, by the slots of their exchanges.
#[derive(Debug, Default)]
pub(super) struct Owners {
    places: Vec<Option<(NonZeroU32, Owner)>>,
}

impl Owners {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new() }
    }

    pub(super) fn set(&mut self, exchange: ExchangeId, owner: Owner) {
        let slot = exchange.slot as usize;
        if self.places.len() <= slot {
            self.places.resize(slot.saturating_add(1), None);
        }
        if let Some(place) = self.places.get_mut(slot) {
            *place = Some((exchange.generation, owner));
        }
    }

    pub(super) fn get(&self, exchange: ExchangeId) -> Option<Owner> {
        let (generation, owner) = (*self.places.get(exchange.slot as usize)?)?;
        (generation == exchange.generation).then_some(owner)
    }

    pub(super) fn take(&mut self, exchange: ExchangeId) -> Option<Owner> {
        let owner = self.get(exchange)?;
        if let Some(place) = self.places.get_mut(exchange.slot as usize) {
            *place = None;
        }
        Some(owner)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.places.capacity().saturating_mul(size_of::<Option<(NonZeroU32, Owner)>>())
    }
}
