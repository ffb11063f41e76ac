//! One exchange.

use millpond_coap::ExchangeId;
use millpond_control::{Instant, Span};

use super::NONE;
use crate::outcome::ExchangeRow;

/// One exchange that has not ended, or of which packets are under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The next older one of the same client.
    pub(super) older: u32,
    /// The next newer one.
    pub(super) newer: u32,
    /// Its number within the client.
    pub(super) number: u32,
    /// The request that it is made for.
    pub(super) request: u32,
    /// Copies under way to the server, at it, or answered and under way back.
    pub(super) alive: u32,
    pub(super) id: Option<ExchangeId>,
    pub(super) first_send: Instant,
    pub(super) accepted: Instant,
    pub(super) first_wait: Span,
    pub(super) copies: u8,
    pub(super) winning: u8,
    /// The smallest copy number whose response ever reached the client, also after the exchange had ended.
    pub(super) first_useful: u8,
    pub(super) first_batch: bool,
    pub(super) is_open: bool,
    /// It is in the index, as are all of its client then.
    pub(super) is_indexed: bool,
}

impl Record {
    /// Its row among those of a flow.
    pub(super) fn row(&self, flow: u32) -> ExchangeRow {
        let known = |copy: u8| (copy != NONE).then_some(u32::from(copy));
        ExchangeRow {
            flow,
            exchange: self.number,
            first_send_us: self.first_send.as_micros(),
            first_wait_us: self.first_wait.as_micros(),
            accepted_us: (self.accepted != Instant::NEVER).then_some(self.accepted.as_micros()),
            copies: u32::from(self.copies),
            winning_copy: known(self.winning),
            first_useful_copy: known(self.first_useful),
            ..ExchangeRow::default()
        }
    }
}
