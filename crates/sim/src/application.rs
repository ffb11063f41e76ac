//! What a client's application does: requests one after another, in batches, until all were made.

use millpond_control::{ChanceSeed, Instant, Purpose};

use crate::{
    outcome::FlowRow,
    scenario::{Clients, Workload},
};

/// The application of one client. A request that takes several exchanges counts once.
pub(crate) struct Application {
    /// Requests begun.
    begun: u32,
    /// Requests that ended, answered or not.
    ended: u32,
    /// Requests left in the running batch.
    batch_left: u32,
    batches: u32,
    /// Bytes of bodies that came.
    body_bytes: u64,
    first_send: Instant,
    /// When the last request ended, if it was answered.
    last_answer: Option<Instant>,
}

/// What an application does when a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It asks again.
    Ask,
    /// It drops all congestion-control state, then asks again.
    ForgetAndAsk,
    /// It is done.
    Done,
}

impl Application {
    pub(crate) const fn new() -> Self {
        Self {
            begun: 0,
            ended: 0,
            batch_left: 0,
            batches: 0,
            body_bytes: 0,
            first_send: Instant::NEVER,
            last_answer: None,
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

    /// A request begins.
    pub(crate) fn begin(&mut self) {
        self.begun += 1;
        self.batch_left -= 1;
    }

    /// The first byte of a request leaves.
    #[inline]
    pub(crate) fn leaves(&mut self, now: Instant) {
        self.first_send = self.first_send.min(now);
    }

    /// Part of a body came.
    #[inline]
    pub(crate) fn got(&mut self, bytes: usize) {
        self.body_bytes += bytes as u64;
    }

    /// A request ended, with an answer or without.
    #[inline]
    pub(crate) fn end(&mut self, answered: Option<Instant>) {
        self.ended += 1;
        self.last_answer = answered;
    }

    /// Requests begun.
    pub(crate) fn begun(&self) -> u32 {
        self.begun
    }

    /// Whether the first request was begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun > 0
    }

    /// Whether this is the client's first batch.
    pub(crate) fn in_first_batch(&self) -> bool {
        self.batches <= 1
    }

    /// The client's row, as far as its application knows it.
    pub(crate) fn row(&self, flow: u32, group: u32, clients: &Clients) -> FlowRow {
        let end = self.last_answer.filter(|_| self.ended == clients.exchanges);
        FlowRow {
            flow,
            group,
            transport: clients.transport.name(),
            fct_us: end.map(|end| end.as_micros() - self.first_send.as_micros()),
            first_send_us: self.first_send.as_micros(),
            body_bytes: self.body_bytes,
            batches: self.batches,
            ..FlowRow::default()
        }
    }
}
