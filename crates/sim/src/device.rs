//! A client over UDP whose bodies travel whole: a real endpoint and the application that drives it.

use millpond_coap::Endpoint;
use millpond_control::Instant;

use crate::{application::Application, handshakes::Flight, outcome::FlowRow, workload::Conduct};

/// A client and what it has done so far.
pub(crate) struct Device {
    pub(crate) endpoint: Endpoint<u32>,
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// Exchanges begun.
    exchanges: u32,
    /// Late replies to the endpoints that it had before.
    late: u32,
    /// The flight of a handshake that is under way.
    pub(crate) flight: Option<Box<Flight>>,
}

impl Device {
    pub(crate) fn new(endpoint: Endpoint<u32>, application: Application, group: u32) -> Self {
        Self { endpoint, application, group, exchanges: 0, late: 0, flight: None }
    }

    /// When something happens here by itself, beside the endpoint.
    #[inline]
    pub(crate) fn wakes(&self) -> Instant {
        let flight = self.flight.as_ref().map_or(Instant::NEVER, |flight| flight.due);
        self.application.wakes().min(flight)
    }

    /// An exchange begins: its number within the client.
    pub(crate) fn begin(&mut self, now: Instant) -> u32 {
        self.application.leaves(now);
        self.exchanges += 1;
        self.exchanges - 1
    }

    /// It goes on with another endpoint.
    pub(crate) fn renew(&mut self, endpoint: Endpoint<u32>) {
        self.late = self.late_replies();
        self.endpoint = endpoint;
    }

    fn late_replies(&self) -> u32 {
        self.late + self.endpoint.counters().late as u32
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, conduct: &Conduct<'_>) -> FlowRow {
        FlowRow { late_replies: self.late_replies(), ..self.application.row(flow, self.group, conduct) }
    }
}
