//! Clients whose bodies come block by block (RFC 7959): the host that ships asks for the blocks and puts them together.

use millpond_coap::{
    Cause, Endpoint, ExchangeId, Transmit,
    message::Code,
    transfer::{Ask, AskId, Config, Event, Host, Output},
};
use millpond_control::{ChanceSeed, Instant};

use crate::{
    RunError,
    application::Application,
    datagrams::{Answered, label},
    ledger::{Ledger, Tag},
    network::{Arrival, SERVER},
    outcome::FlowRow,
    scenario::{Blocks, Negotiation, Transfer},
    workload::{Conduct, Due},
    world::{Client, World},
};

/// A client over UDP that fetches bodies in blocks, and what it has done so far.
pub(crate) struct BlockDevice {
    pub(crate) host: Host<Endpoint<u32>>,
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// The request under way.
    fetch: Option<Fetch>,
    /// Exchanges begun.
    exchanges: u32,
    late: u32,
}

/// A request whose body is under way.
struct Fetch {
    ask: AskId,
    /// Its place in the ledger.
    request: u32,
    /// The exchange of the block under way, once it is on record.
    exchange: Option<ExchangeId>,
}

/// What the host told of an exchange.
enum Heard {
    Block(Answered),
    Lost(ExchangeId),
}

/// A host over this endpoint. It serves nobody, and asks for one body at a time.
pub(crate) fn host(endpoint: Endpoint<u32>, seed: ChanceSeed) -> Result<Host<Endpoint<u32>>, RunError> {
    Host::new(endpoint, Config::default(), seed).map_err(|error| RunError::Endpoint("a client", error.to_string()))
}

impl BlockDevice {
    pub(crate) fn new(
        endpoint: Endpoint<u32>,
        application: Application,
        seed: ChanceSeed,
        group: u32,
    ) -> Result<Self, RunError> {
        Ok(Self { host: host(endpoint, seed)?, application, group, fetch: None, exchanges: 0, late: 0 })
    }

    /// What is under way is lost; whatever the host still wants to say, it is off.
    pub(crate) fn goes_down(&mut self, now: Instant) {
        if let Some(fetch) = self.fetch.take() {
            self.host.forget(now, fetch.ask);
            while !matches!(self.host.poll(now), Output::Sleep(..) | Output::Idle) {}
        }
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, conduct: &Conduct<'_>) -> FlowRow {
        FlowRow { late_replies: self.late, ..self.application.row(flow, self.group, conduct) }
    }
}

impl Fetch {
    /// The host asks for a block by this exchange: it goes on record, with a number within the client.
    fn is_under_way(&mut self, ledger: &mut Ledger, flow: u32, id: ExchangeId, exchanges: &mut u32, first_batch: bool) {
        if self.exchange == Some(id) {
            return;
        }
        ledger.begin(flow, *exchanges, self.request, Some(id), first_batch);
        self.exchange = Some(id);
        *exchanges += 1;
    }
}

impl World<'_> {
    /// A client that fetches in blocks wakes.
    #[cold]
    pub(crate) fn wake_blocks(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Blocks(device) = &self.clients[flow as usize] else { return Ok(()) };
        if device.application.wakes() <= now {
            self.blocks_go_on(flow, now)?;
        }
        self.drain_blocks(flow, now, None)
    }

    /// A datagram reaches such a client.
    #[cold]
    pub(crate) fn block_to_client(&mut self, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let flow = arrival.client;
        let Client::Blocks(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        device.host.receive(now, SERVER, self.network.datagram());
        self.drain_blocks(flow, now, Some(arrival))
    }

    /// The client's application goes on: asks again, or is done.
    fn blocks_go_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Some(due) = self.next_request(flow, now)? else { return Ok(()) };
        let Due { request, .. } = due;
        let Client::Blocks(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let conduct = &self.conducts[device.group as usize];
        let Transfer::Blocks(Blocks { negotiation, .. }) = &conduct.clients.transfer else { return Ok(()) };
        let ask = Ask {
            early: conduct.clients.transfer.block_size().filter(|_| *negotiation == Negotiation::Early),
            longest: self.scenario.server.payload.0 as usize,
            ..Ask::new(Code::GET, conduct.options())
        };
        let ask = device.host.ask(now, SERVER, &ask).map_err(|why| RunError::Refused(flow, why.to_string()))?;
        device.fetch = Some(Fetch { ask, request, exchange: None });
        device.application.leaves(now);
        Ok(())
    }

    /// Drains a client's host; `arrived` is what was just handed to it.
    fn drain_blocks(&mut self, flow: u32, now: Instant, arrived: Option<&Arrival>) -> Result<(), RunError> {
        // Whether the body under way became whole, or never will.
        let mut ended = None;
        loop {
            let Client::Blocks(device) = &mut self.clients[flow as usize] else { return Ok(()) };
            let BlockDevice { host, application, fetch, exchanges, late, .. } = &mut **device;
            let first_batch = application.in_first_batch();
            let heard = match host.poll(now) {
                Output::Transmit(Transmit { bytes, cause, .. }) => {
                    if let (Some(fetch), Cause::Exchange { id, .. }) = (fetch, cause) {
                        fetch.is_under_way(&mut self.ledger, flow, id, exchanges, first_batch);
                    }
                    let mut tag = Tag::of(flow, self.network.length(bytes), now);
                    label(&mut self.ledger, &mut self.rec, &mut tag, &cause);
                    self.transmissions += 1;
                    self.network.send(now, flow, SERVER, bytes, &tag, &mut self.rec);
                    continue;
                }
                Output::Trace(millpond_coap::Event::Response { exchange, sample, message, .. }) => {
                    Heard::Block(Answered { exchange, sample, bytes: message.payload().len() })
                }
                Output::Trace(millpond_coap::Event::Failed { exchange, .. }) => Heard::Lost(exchange),
                Output::Trace(event) => {
                    *late += u32::from(matches!(event, millpond_coap::Event::Late { .. }));
                    continue;
                }
                Output::Event(event) => {
                    ended = Some(matches!(event, Event::Answer { .. }));
                    continue;
                }
                sleeps @ (Output::Sleep(..) | Output::Idle | Output::Close(_)) => {
                    let until = if let Output::Sleep(until, _) = sleeps { until } else { Instant::NEVER };
                    if let Some(is_whole) = ended.take() {
                        if let Some(fetch) = fetch.take() {
                            self.end(flow, fetch.request, is_whole, now);
                        }
                        self.blocks_go_on(flow, now)?;
                        continue;
                    }
                    // A block that may not leave yet is asked for all the same.
                    if let Some(fetch) = fetch
                        && let Some(id) = host.exchange_of(fetch.ask)
                    {
                        fetch.is_under_way(&mut self.ledger, flow, id, exchanges, first_batch);
                    }
                    self.agenda.set(flow, until.min(application.wakes()));
                    return Ok(());
                }
            };
            match (heard, arrived) {
                (Heard::Block(answered), Some(arrival)) => {
                    if self.accept(flow, now, arrival.tag, arrival.length, &answered).is_some()
                        && let Client::Blocks(device) = &mut self.clients[flow as usize]
                    {
                        device.application.got(answered.bytes);
                    }
                }
                (Heard::Lost(exchange), _) => {
                    if let Some((number, _)) = self.ledger.open(flow, exchange) {
                        self.ledger.abandoned(flow, number);
                    }
                }
                (Heard::Block(_), None) => {}
            }
        }
    }
}
