//! Handshakes below CoAP: pairs of flights that no endpoint and no controller sees, each a datagram, and its answer.
//!
//! A client sends a flight again when the timer of RFC 6347 §4.2.4.1 runs out: after 1 s, then after twice as long each
//! time, at most 60 s, and it never gives up. The server answers every copy at once and keeps nothing, whatever becomes of
//! copies of requests; the timer that a real one has for its own flights is left out.

use millpond_control::{Instant, Span};

use crate::{
    RunError,
    ledger::Tag,
    network::{Arrival, SERVER},
    scenario::Flights,
    workload::Due,
    world::{Client, World},
};

/// The first byte of a record of a handshake (RFC 6347 §4.1). Messages of CoAP begin with 64 to 127.
const HANDSHAKE: u8 = 22;
/// How long a client waits for an answer to the first copy, and at most.
const FIRST_WAIT: Span = Span::from_secs(1);
const LONGEST_WAIT: Span = Span::from_secs(60);

/// A flight that waits for its answer.
pub(crate) struct Flight {
    flights: Flights,
    /// The number of its exchange.
    exchange: u32,
    /// Copies that have left.
    copies: u8,
    wait: Span,
    /// When the next copy leaves.
    pub(crate) due: Instant,
}

/// Whether a datagram is one.
#[inline]
pub(crate) fn is_flight(datagram: &[u8]) -> bool {
    datagram.first() == Some(&HANDSHAKE)
}

/// A datagram of so many bytes that says how long its answer is to be.
fn flight(bytes: u64, answer: u64) -> Vec<u8> {
    let mut datagram = vec![0; bytes as usize];
    let [high, low] = (answer as u16).to_be_bytes();
    datagram[..3].copy_from_slice(&[HANDSHAKE, high, low]);
    datagram
}

impl World<'_> {
    /// A client begins a pair of flights in place of a request.
    #[cold]
    pub(crate) fn begin_flight(&mut self, flow: u32, now: Instant, due: Due, flights: Flights) -> Result<(), RunError> {
        let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let exchange = device.begin(now);
        let first_batch = device.application.in_first_batch();
        self.ledger.begin(flow, exchange, due.request, None, first_batch);
        device.begin_flight(Flight { flights, exchange, copies: 0, wait: FIRST_WAIT, due: now });
        self.resend_flight(flow, now);
        self.drain_client(flow, now, None)
    }

    /// A copy of a client's flight leaves if it is time.
    #[inline]
    pub(crate) fn resend_flight(&mut self, flow: u32, now: Instant) {
        let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return };
        if let Some(flight) = device.flight().filter(|flight| flight.due <= now) {
            let (flights, exchange, copy, wait) = (flight.flights, flight.exchange, flight.copies, flight.wait);
            flight.copies = copy.saturating_add(1);
            flight.due = now.after(wait);
            flight.wait = wait.doubled().min(LONGEST_WAIT);
            self.send_flight(flow, now, flights, (exchange, copy), wait);
        }
    }

    #[cold]
    fn send_flight(&mut self, flow: u32, now: Instant, flights: Flights, (exchange, copy): (u32, u8), wait: Span) {
        let bytes = flight(flights.up.0, flights.down.0);
        let tag = Tag { exchange, copy, ..Tag::of(flow, self.network.length(&bytes), now) };
        self.ledger.sent(&tag, wait);
        self.rec.left(&tag, None);
        self.transmissions += 1;
        self.network.send(now, flow, SERVER, &bytes, &tag, &mut self.rec);
    }

    /// The server answers a flight.
    #[cold]
    pub(crate) fn flight_to_server(&mut self, now: Instant, arrival: &Arrival) {
        let [_, high, low, ..] = *self.network.datagram() else { return };
        let bytes = flight(u16::from_be_bytes([high, low]).into(), 0);
        self.ledger.delivered(&arrival.tag, now);
        self.transmissions += 1;
        self.network.send(now, SERVER, arrival.client, &bytes, &arrival.tag, &mut self.rec);
    }

    /// An answer to a flight reaches its client, which goes on with the next if it waits for this one.
    #[cold]
    pub(crate) fn flight_to_client(&mut self, flow: u32, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let (tag, length) = (&arrival.tag, arrival.length);
        let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        if !device.end_flight(|flight| flight.exchange == tag.exchange) {
            return Ok(());
        }
        let Some(request) = self.ledger.accepted(tag, now) else { return Ok(()) };
        self.network.useful_request(flow, SERVER, tag, &mut self.rec);
        self.network.useful(SERVER, flow, length, &mut self.rec);
        self.end(flow, request, true, now);
        self.go_on(flow, now)?;
        self.drain_client(flow, now, None)
    }
}
