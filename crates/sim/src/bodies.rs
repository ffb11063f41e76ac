//! Clients whose bodies come in several messages, block by block (RFC 7959) or in bursts (RFC 9177): the stack that ships asks
//! for them and puts them together.

use millpond_coap::{
    Cause, Endpoint, ExchangeId, Output, Transmit,
    block::{Block, robust::Q_BLOCK2},
    message::{Code, Message},
    transfer::{ClientRequest, ClientRequestId, CoapStack, Config, Event},
};
use millpond_control::{ChanceSeed, Instant, Span};

use crate::{
    RunError,
    application::Application,
    datagrams::{Answered, label},
    ledger::{Ledger, Tag},
    network::{Arrival, SERVER},
    outcome::FlowRow,
    scenario::{Blocks, Negotiation, Transfer},
    trace::Recorder,
    workload::{ClientProfile, Due},
    world::{Client, World},
};

/// A client over UDP that fetches bodies, and what it has done so far.
pub(crate) struct BodyDevice {
    pub(crate) stack: CoapStack<Endpoint<u32>>,
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// The request under way.
    fetch: Option<Fetch>,
    /// Exchanges begun.
    exchanges: u32,
    late: u32,
    /// What is known of bodies that come in bursts, if they do.
    bursts: Option<Bursts>,
}

/// A request whose body is under way.
struct Fetch {
    ask: ClientRequestId,
    /// Its place in the ledger.
    request: u32,
    /// The exchange of the block under way, once it is on record.
    exchange: Option<ExchangeId>,
}

/// Of a body in bursts one exchange is on record, whose messages are counted here.
#[derive(Default)]
struct Bursts {
    /// Messages that its client sent.
    messages: u32,
    /// When the first message of the request under way left.
    sent: Option<Instant>,
    /// Blocks of the body under way that the server sent, and that came.
    offered: Marks,
    arrived: Marks,
}

/// Which blocks of a body were seen.
#[derive(Default)]
struct Marks(Vec<u64>);

impl Marks {
    /// Marks a block; false if it was marked before.
    fn mark(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let before = self.0[word];
        self.0[word] |= bit;
        before & bit == 0
    }
}

/// The number of the block that a response of a transfer in bursts carries.
fn block_of(bytes: &[u8]) -> Option<u32> {
    let message = Message::parse(bytes).ok()?;
    let value = message.option(Q_BLOCK2).filter(|_| !message.payload().is_empty())?;
    Block::read(value, false).ok().map(|block| block.number)
}

/// What the stack told of an exchange.
enum Heard {
    Block(Answered),
    Lost(ExchangeId),
}

/// A stack over this endpoint of a client whose bodies travel like this. It serves nobody, and asks for one body at a time.
pub(crate) fn stack(
    endpoint: Endpoint<u32>,
    transfer: &Transfer,
    seed: ChanceSeed,
) -> Result<CoapStack<Endpoint<u32>>, RunError> {
    let config = Config { q_block: transfer.burst_parameters(), ..Config::default() };
    CoapStack::new(endpoint, config, seed).map_err(|error| RunError::Endpoint("a client", error.to_string()))
}

impl BodyDevice {
    pub(crate) fn new(
        endpoint: Endpoint<u32>,
        application: Application,
        transfer: &Transfer,
        seed: ChanceSeed,
        group: u32,
    ) -> Result<Self, RunError> {
        let stack = stack(endpoint, transfer, seed)?;
        let bursts = transfer.is_in_bursts().then(Bursts::default);
        Ok(Self { stack, application, group, fetch: None, exchanges: 0, late: 0, bursts })
    }

    /// Its bodies come in bursts.
    pub(crate) fn is_burst(&self) -> bool {
        self.bursts.is_some()
    }

    /// Whether the server sends this block to it again.
    pub(crate) fn is_repeated(&mut self, bytes: &[u8]) -> bool {
        let bursts = self.bursts.as_mut();
        bursts.is_some_and(|bursts| block_of(bytes).is_some_and(|number| !bursts.offered.mark(number)))
    }

    /// What is under way is lost; whatever the stack still wants to say, it is off.
    pub(crate) fn goes_down(&mut self, now: Instant) {
        if let Some(fetch) = self.fetch.take() {
            self.stack.forget(now, fetch.ask);
            while !matches!(self.stack.poll(now), Output::Sleep(..) | Output::Idle) {}
        }
    }

    /// This client's row, as far as it knows it itself, and the messages that it sent if the ledger does not know them.
    pub(crate) fn row(&self, flow: u32, profile: &ClientProfile<'_>) -> (FlowRow, Option<u32>) {
        let row = FlowRow { late_replies: self.late, ..self.application.row(flow, self.group, profile) };
        (row, self.bursts.as_ref().map(|bursts| bursts.messages))
    }
}

impl Fetch {
    /// The stack asks for a block by this exchange: it goes on record, with a number within the client.
    fn is_under_way(&mut self, ledger: &mut Ledger, flow: u32, id: ExchangeId, exchanges: &mut u32, first_batch: bool) {
        if self.exchange == Some(id) {
            return;
        }
        ledger.begin(flow, *exchanges, self.request, Some(id), first_batch);
        self.exchange = Some(id);
        *exchanges += 1;
    }
}

impl Bursts {
    /// Completes the tag of a datagram that leaves. The first message of a transfer stands for it; the others belong to no
    /// exchange of their own.
    fn label(&mut self, ledger: &mut Ledger, rec: &mut Recorder, tag: &mut Tag, cause: &Cause, number: u32) {
        self.messages += 1;
        let (copy, wait) = match *cause {
            Cause::Exchange { copy, wait, .. } => (copy, Some(wait)),
            _ => (0, None),
        };
        if wait.is_some() || self.sent.is_none() {
            (tag.exchange, tag.copy) = (number, copy);
            ledger.sent(tag, wait.map_or(Span::ZERO, |wait| wait.span));
        }
        rec.left(tag, wait);
        self.sent.get_or_insert(tag.sent);
    }
}

impl World<'_> {
    /// A client that fetches bodies wakes.
    pub(crate) fn wake_fetching(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Bodies(device) = &self.nodes.clients[flow as usize] else { return Ok(()) };
        let wakes = device.application.wakes();
        if device.application.is_away() {
            self.calendar.set(flow, wakes);
            return Ok(());
        }
        if wakes <= now {
            self.fetch_on(flow, now)?;
        }
        self.drain_fetching(flow, now, None)
    }

    /// A datagram reaches such a client.
    pub(crate) fn body_to_client(&mut self, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let flow = arrival.client;
        let Client::Bodies(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let bytes = self.network.datagram();
        let is_first = |bursts: &mut Bursts| block_of(bytes).is_none_or(|number| bursts.arrived.mark(number));
        let is_first = device.bursts.as_mut().is_some_and(is_first);
        device.stack.receive(now, SERVER, bytes);
        if is_first {
            self.network.useful(SERVER, flow, arrival.length, &mut self.rec);
        }
        self.drain_fetching(flow, now, Some(arrival))
    }

    /// The client's application goes on: asks again, or is done.
    fn fetch_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Some(due) = self.next_request(flow, now)? else { return Ok(()) };
        let Due { request, .. } = due;
        let Client::Bodies(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let profile = &self.groups.profiles[device.group as usize];
        let transfer = &profile.clients.transfer;
        let is_late = matches!(transfer, Transfer::Blocks(Blocks { negotiation: Negotiation::Late, .. }));
        let ask = ClientRequest {
            early: transfer.block_size().filter(|_| !is_late),
            longest: self.scenario.body(profile.clients).0 as usize,
            q_block: device.is_burst(),
            ..ClientRequest::new(Code::GET, profile.options())
        };
        let ask = device.stack.request(now, SERVER, &ask).map_err(|why| RunError::Refused(flow, why.to_string()))?;
        device.fetch = Some(Fetch { ask, request, exchange: None });
        device.application.leaves(now);
        if let Some(bursts) = &mut device.bursts {
            *bursts = Bursts { messages: bursts.messages, ..Bursts::default() };
            self.ledger.begin(flow, device.exchanges, request, None, device.application.in_first_batch());
            device.exchanges += 1;
        }
        Ok(())
    }

    /// Drains a client's stack; `arrived` is what was just handed to it.
    fn drain_fetching(&mut self, flow: u32, now: Instant, arrived: Option<&Arrival>) -> Result<(), RunError> {
        // Bytes of the body under way, if it became whole, or none if it never will.
        let mut ended = None;
        loop {
            let Client::Bodies(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
            let BodyDevice { stack, application, fetch, exchanges, late, bursts, .. } = &mut **device;
            let first_batch = application.in_first_batch();
            let heard = match stack.poll(now) {
                Output::Transmit(Transmit { bytes, cause, .. }) => {
                    let mut tag = Tag::of(flow, self.network.length(bytes), now);
                    if let Some(bursts) = bursts {
                        bursts.label(&mut self.ledger, &mut self.rec, &mut tag, &cause, *exchanges - 1);
                    } else {
                        if let (Some(fetch), Cause::Exchange { id, .. }) = (fetch, cause) {
                            fetch.is_under_way(&mut self.ledger, flow, id, exchanges, first_batch);
                        }
                        label(&mut self.ledger, &mut self.rec, &mut tag, &cause);
                    }
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
                    ended = Some(match event {
                        Event::Answer { message, body, .. } => message.code.is_success().then_some(body.len()),
                        _ => None,
                    });
                    continue;
                }
                sleeps @ (Output::Sleep(..) | Output::Idle | Output::Close(_)) => {
                    let until = if let Output::Sleep(until, _) = sleeps { until } else { Instant::NEVER };
                    if let Some(whole) = ended.take() {
                        if let Some(bursts) = bursts {
                            let number = *exchanges - 1;
                            match (whole, bursts.sent) {
                                (Some(bytes), Some(sent)) => {
                                    application.got(bytes);
                                    let tag = Tag { exchange: number, ..Tag::of(flow, 0, sent) };
                                    self.ledger.accepted(&tag, now);
                                }
                                _ => _ = self.ledger.abandoned(flow, number),
                            }
                        }
                        if let Some(fetch) = fetch.take() {
                            self.end(flow, fetch.request, whole.is_some(), now);
                        }
                        self.fetch_on(flow, now)?;
                        continue;
                    }
                    // A block that may not leave yet is asked for all the same.
                    if let Some(fetch) = fetch.as_mut().filter(|_| bursts.is_none())
                        && let Some(id) = stack.exchange_of(fetch.ask)
                    {
                        fetch.is_under_way(&mut self.ledger, flow, id, exchanges, first_batch);
                    }
                    self.calendar.set(flow, until.min(application.wakes()));
                    return Ok(());
                }
            };
            match (heard, arrived) {
                (Heard::Block(answered), Some(arrival)) => {
                    if self.accept(flow, now, arrival.tag, arrival.length, &answered).is_some()
                        && let Client::Bodies(device) = &mut self.nodes.clients[flow as usize]
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
