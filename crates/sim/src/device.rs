//! A client over UDP whose bodies travel whole: a real endpoint and the application that drives it.

use millpond_coap::Endpoint;
use millpond_control::Instant;

use crate::{application::Application, handshakes::Flight, outcome::FlowRow, workload::ClientProfile};

/// A client and what it has done so far.
pub(crate) struct Device {
    pub(crate) endpoint: Endpoint<u32>,
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// Exchanges begun.
    exchanges: u32,
    /// What few clients have.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    /// Late replies to the endpoints that it had before.
    late: u32,
    /// The flight of a handshake that is under way.
    flight: Option<Flight>,
}

impl Device {
    pub(crate) fn new(endpoint: Endpoint<u32>, application: Application, group: u32) -> Self {
        Self { endpoint, application, group, exchanges: 0, rare: None }
    }

    /// When something happens here by itself, beside the endpoint.
    #[inline]
    pub(crate) fn wakes(&self) -> Instant {
        let flight = self.rare.as_ref().and_then(|rare| rare.flight.as_ref());
        self.application.wakes().min(flight.map_or(Instant::NEVER, |flight| flight.due))
    }

    pub(crate) fn begin_flight(&mut self, flight: Flight) {
        self.rare.get_or_insert_default().flight = Some(flight);
    }

    pub(crate) fn flight(&mut self) -> Option<&mut Flight> {
        self.rare.as_mut()?.flight.as_mut()
    }

    /// Ends the flight of which this holds, and says whether there was one.
    pub(crate) fn end_flight(&mut self, is_it: impl FnOnce(&mut Flight) -> bool) -> bool {
        self.rare.as_mut().is_some_and(|rare| rare.flight.take_if(is_it).is_some())
    }

    /// An exchange begins: its number within the client.
    pub(crate) fn begin(&mut self, now: Instant) -> u32 {
        self.application.leaves(now);
        self.exchanges += 1;
        self.exchanges - 1
    }

    /// It goes on with another endpoint.
    pub(crate) fn renew(&mut self, endpoint: Endpoint<u32>) {
        let late = self.late_replies();
        if late > 0 {
            self.rare.get_or_insert_default().late = late;
        }
        self.endpoint = endpoint;
    }

    fn late_replies(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.late) + self.endpoint.counters().late as u32
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, profile: &ClientProfile<'_>) -> FlowRow {
        FlowRow { late_replies: self.late_replies(), ..self.application.row(flow, self.group, profile) }
    }
}
