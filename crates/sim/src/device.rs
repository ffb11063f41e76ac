//! A client over UDP whose bodies travel whole: a real endpoint and the application that drives it.

use millpond_coap::Endpoint;
use millpond_control::Instant;

use crate::{application::Application, outcome::FlowRow, workload::Conduct};

/// A client and what it has done so far.
pub(crate) struct Device {
    pub(crate) endpoint: Endpoint<u32>,
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// Exchanges begun.
    exchanges: u32,
    pub(crate) late: u32,
}

impl Device {
    pub(crate) fn new(endpoint: Endpoint<u32>, application: Application, group: u32) -> Self {
        Self { endpoint, application, group, exchanges: 0, late: 0 }
    }

    /// An exchange begins: its number within the client.
    pub(crate) fn begin(&mut self, now: Instant) -> u32 {
        self.application.leaves(now);
        self.exchanges += 1;
        self.exchanges - 1
    }

    /// The endpoint and the count of late replies, apart from each other.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut Endpoint<u32>, &mut u32) {
        (&mut self.endpoint, &mut self.late)
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, conduct: &Conduct<'_>) -> FlowRow {
        FlowRow { late_replies: self.late, ..self.application.row(flow, self.group, conduct) }
    }
}
