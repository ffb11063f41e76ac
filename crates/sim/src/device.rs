//! A client: a real endpoint and the application that drives it.

use millpond_coap::{Endpoint, ExchangeId};
use millpond_control::{ChanceSeed, Instant, Purpose};

use crate::{
    ledger::{Tag, mean},
    outcome::FlowRow,
    scenario::{Clients, Workload},
};

/// The address of the server; clients have their numbers as addresses.
pub(crate) const SERVER: u32 = u32::MAX;

/// A client and what it has done so far.
pub(crate) struct Device {
    pub(crate) endpoint: Endpoint<u32>,
    /// The exchange that is open, and its number within the client.
    open: Option<(ExchangeId, u32)>,
    pub(crate) group: u32,
    /// Exchanges begun.
    begun: u32,
    /// Exchanges left in the running batch.
    batch_left: u32,
    batches: u32,
    completed: u32,
    failed: u32,
    pub(crate) late: u32,
    first_send: Instant,
    /// When the last exchange ended, if it was answered.
    last_answer: Option<Instant>,
    rtt_true_sum: u64,
}

/// What an application does when an exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It asks again.
    Ask,
    /// It drops all congestion-control state, then asks again.
    ForgetAndAsk,
    /// It is done.
    Done,
}

impl Device {
    pub(crate) fn new(endpoint: Endpoint<u32>, group: u32) -> Self {
        Self {
            endpoint,
            open: None,
            group,
            begun: 0,
            batch_left: 0,
            batches: 0,
            completed: 0,
            failed: 0,
            late: 0,
            first_send: Instant::NEVER,
            last_answer: None,
            rtt_true_sum: 0,
        }
    }

    /// What comes next. Draws the size of a batch when one begins.
    pub(crate) fn next(&mut self, flow: u32, clients: &Clients, seed: ChanceSeed) -> Next {
        let left = clients.exchanges - self.begun;
        if left == 0 {
            return Next::Done;
        }
        if self.batch_left > 0 {
            return Next::Ask;
        }
        self.batches += 1;
        self.batch_left = match clients.workload {
            Workload::Continuous => left,
            Workload::Random => {
                let chance = seed.at(Purpose::Workload, [flow, self.batches, 0, 0]);
                clients.batch.draw(chance, left)
            }
        };
        if self.batches == 1 { Next::Ask } else { Next::ForgetAndAsk }
    }

    /// An exchange begins.
    pub(crate) fn begin(&mut self, id: ExchangeId, now: Instant) {
        if self.begun == 0 {
            self.first_send = now;
        }
        self.open = Some((id, self.begun));
        self.begun += 1;
        self.batch_left -= 1;
    }

    /// The open exchange and its number within this client.
    pub(crate) fn open(&self) -> Option<(ExchangeId, u32)> {
        self.open
    }

    /// Whether the first request has left.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// Whether this is the client's first batch.
    pub(crate) fn in_first_batch(&self) -> bool {
        self.batches <= 1
    }

    /// Whether all exchanges have ended.
    pub(crate) fn is_done(&self, clients: &Clients) -> bool {
        self.completed + self.failed == clients.exchanges
    }

    /// The open exchange was answered.
    pub(crate) fn answered(&mut self, tag: &Tag, now: Instant) {
        self.open = None;
        self.completed += 1;
        self.last_answer = Some(now);
        self.rtt_true_sum += now.as_micros() - tag.sent.as_micros();
    }

    /// The open exchange ended without an answer.
    pub(crate) fn abandoned(&mut self) {
        self.open = None;
        self.failed += 1;
        self.last_answer = None;
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, clients: &Clients) -> FlowRow {
        let end = self.last_answer.filter(|_| self.is_done(clients));
        FlowRow {
            flow,
            group: self.group,
            fct_us: end.map(|end| end.as_micros() - self.first_send.as_micros()),
            first_send_us: self.first_send.as_micros(),
            completed: self.completed,
            failed: self.failed,
            late_replies: self.late,
            rtt_true_mean_us: mean(self.rtt_true_sum, self.completed),
            batches: self.batches,
            ..FlowRow::default()
        }
    }
}
