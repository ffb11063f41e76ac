//! The part of a run that travels over UDP.

use millpond_coap::{Cause, Event, ExchangeId, Outgoing, Output, Transmit, block::Block, message::number};
use millpond_control::{Instant, Sample, Span};

use crate::{
    RunError,
    burst_ends::Next,
    device::{Body, Device},
    ledger::{NO_EXCHANGE, Tag},
    network::SERVER,
    server::{Asked, Server},
    workload::Due,
    world::{Client, World},
};

/// How an exchange was answered.
struct Answered {
    exchange: ExchangeId,
    /// What the response said about the round-trip time.
    sample: Option<Sample>,
    /// Bytes of its payload.
    bytes: usize,
    /// What it leaves of the request.
    body: Body,
}

impl World<'_> {
    /// A client over UDP wakes.
    #[inline]
    pub(crate) fn wake_device(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Device(device) = &self.clients[flow as usize] else { return Ok(()) };
        if device.application.wakes() <= now {
            self.ask_on(flow, now)?;
        }
        self.drain_client(flow, now, None)
    }

    /// A datagram reaches its client.
    #[inline]
    pub(crate) fn datagram_to_client(&mut self, now: Instant, tag: Tag, bytes: Vec<u8>) -> Result<(), RunError> {
        let client = &mut self.clients[tag.flow as usize];
        if client.application().is_away() {
            self.ledger.gone(&tag);
            self.network.take_back(bytes);
            return Ok(());
        }
        if tag.exchange != NO_EXCHANGE {
            self.ledger.reached(&tag);
        }
        let Client::Device(device) = client else {
            return self.burst_to_client(now, tag, bytes);
        };
        device.endpoint.receive(now, SERVER, &bytes);
        let length = self.network.take_back(bytes);
        self.drain_client(tag.flow, now, Some((tag, length)))
    }

    /// Drains a client's endpoint; `arrived` is what was just handed to it, with its length.
    fn drain_client(&mut self, flow: u32, now: Instant, arrived: Option<(Tag, u32)>) -> Result<(), RunError> {
        let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let mut answered: Option<Answered> = None;
        let mut abandoned = Vec::new();
        let mut late = 0;
        let wakes = device.application.wakes();
        // The endpoint lends its buffers until the next call, so what else is needed of the device is apart from it.
        let (endpoint, fetch) = device.parts();
        loop {
            match endpoint.poll(now) {
                Output::Transmit(Transmit { bytes, cause, .. }) => {
                    let mut tag = Tag {
                        flow,
                        exchange: NO_EXCHANGE,
                        copy: 0,
                        request_bytes: self.network.length(bytes),
                        sent: now,
                    };
                    match cause {
                        Cause::Exchange { id, copy, wait } => {
                            if let Some((number, _)) = self.ledger.open(flow, id) {
                                (tag.exchange, tag.copy) = (number, copy);
                                self.ledger.sent(&tag, wait.span);
                                self.rec.armed(&tag, wait);
                            }
                        }
                        Cause::Plain => {
                            if let Some(number) = self.ledger.unsent(flow) {
                                tag.exchange = number;
                                self.ledger.sent(&tag, Span::ZERO);
                            }
                        }
                        _ => {}
                    }
                    self.transmissions += 1;
                    self.network.send(now, flow, SERVER, bytes, tag, &mut self.rec);
                }
                Output::Event(Event::Response { exchange, sample, message, .. }) => {
                    let body = Device::take(fetch, &message);
                    answered = Some(Answered { exchange, sample, bytes: message.payload().len(), body });
                }
                Output::Event(Event::Failed { exchange, .. }) => abandoned.push(exchange),
                Output::Event(Event::Late { .. }) => late += 1,
                Output::Event(_) => {}
                Output::Sleep(at, _) => {
                    self.agenda.set(flow, at.min(wakes));
                    break;
                }
                Output::Idle if wakes == Instant::NEVER => {
                    self.agenda.clear(flow);
                    break;
                }
                Output::Idle => {
                    self.agenda.set(flow, wakes);
                    break;
                }
            }
        }
        device.late += late;
        if answered.is_none() && abandoned.is_empty() {
            return Ok(());
        }
        for exchange in abandoned {
            self.abandon(flow, now, exchange);
        }
        if let (Some(answered), Some((tag, length))) = (answered, arrived)
            && let Some(request) = self.accept(now, tag, length, &answered)
        {
            let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
            device.application.got(answered.bytes);
            if answered.body == Body::More
                && let Some(due) = device.fetching()
            {
                return self.exchange(flow, now, due);
            }
            device.give_up();
            self.end(flow, request, answered.body == Body::Whole, now);
        }
        self.go_on(flow, now)
    }

    /// A client accepts a response: gives the request that it answers, or part of it.
    fn accept(&mut self, now: Instant, tag: Tag, length: u32, answered: &Answered) -> Option<u32> {
        let Client::Device(device) = &mut self.clients[tag.flow as usize] else { return None };
        let (number, request) = self.ledger.open(tag.flow, answered.exchange)?;
        // A response of which nobody knows what caused it answers all the same.
        let tag = if tag.exchange == number { tag } else { Tag { exchange: number, ..tag } };
        self.ledger.accepted(&tag, now);
        let judged = answered.sample.and_then(|sample| self.evidence.take(device.group, &sample, &tag, now));
        if let Some(judged) = judged.filter(|_| self.rec.exchanges) {
            self.rec.judged(&tag, judged, device.endpoint.view(SERVER).and_then(|view| view.rto));
        }
        self.network.useful_request(&tag, &mut self.rec);
        self.network.useful(SERVER, tag.flow, length, &mut self.rec);
        Some(request)
    }

    /// An exchange of a client ended without an answer, and with it its request.
    fn abandon(&mut self, flow: u32, now: Instant, exchange: ExchangeId) {
        let Some((number, request)) = self.ledger.open(flow, exchange) else { return };
        self.ledger.abandoned(flow, number);
        if let Client::Device(device) = &mut self.clients[flow as usize] {
            device.give_up();
        }
        self.end(flow, request, false, now);
    }

    /// The client's application goes on after something has ended.
    fn go_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        self.ask_on(flow, now)?;
        let Client::Device(device) = &self.clients[flow as usize] else { return Ok(()) };
        // Something may be born earlier than the endpoint wanted to wake.
        if device.application.wakes() == Instant::NEVER { Ok(()) } else { self.drain_client(flow, now, None) }
    }

    /// The client asks as long as it has something to ask for and may.
    fn ask_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        while let Some(due) = self.next_request(flow, now) {
            let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
            let clients = self.conducts[device.group as usize].clients;
            device.begin_request(due, clients, self.scenario.server.payload.0 as usize);
            self.exchange(flow, now, due)?;
        }
        Ok(())
    }

    /// The next exchange of the client's request: all of it, or a block of the body.
    fn exchange(&mut self, flow: u32, now: Instant, due: Due) -> Result<(), RunError> {
        let luck = self.luck(flow);
        let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let Some((ask, bytes)) = self.conducts[device.group as usize].ask(&due, luck) else { return Ok(()) };
        let id = match device.asks_for() {
            None => device.endpoint.request(now, SERVER, &ask.request(bytes)),
            Some(block) => {
                let value = block.value();
                let mut options = ask.options().to_vec();
                options.push((number::BLOCK2, value.as_bytes()));
                device.endpoint.request(now, SERVER, &Outgoing { options: &options, ..ask.request(bytes) })
            }
        };
        let id = id.map_err(|why| RunError::Refused(flow, why.to_string()))?;
        let number = device.begin(now);
        let first_batch = device.application.in_first_batch();
        self.ledger.begin(flow, number, due.request, Some(id), first_batch);
        self.drain_client(flow, now, None)
    }

    /// A datagram reaches the server.
    #[inline]
    pub(crate) fn datagram_to_server(&mut self, now: Instant, tag: Tag, bytes: Vec<u8>) -> Result<(), RunError> {
        self.server.endpoint.receive(now, tag.flow, &bytes);
        let length = self.network.take_back(bytes);
        if tag.copy == 0 && self.clients[tag.flow as usize].is_burst() {
            self.network.useful(tag.flow, SERVER, length, &mut self.rec);
        }
        if self.clients[tag.flow as usize].is_burst() && tag.exchange != NO_EXCHANGE {
            self.ledger.delivered(&tag, now);
        }
        self.drain_server(now, tag)
    }

    pub(crate) fn wake_server(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(tag) = self.server.finish(now)? {
            self.drain_server(now, tag)?;
        }
        // What the endpoint sends of its own accord answers nobody in particular.
        let nobody = Tag { flow: 0, exchange: NO_EXCHANGE, copy: 0, request_bytes: 0, sent: now };
        self.drain_server(now, nobody)
    }

    /// Drains the server's endpoint; what it sends answers the request copy with this tag.
    fn drain_server(&mut self, now: Instant, tag: Tag) -> Result<(), RunError> {
        // How many packets carry the tag on, if the application does not keep it to itself for a while.
        let mut answers = 0_u32;
        loop {
            let mut asked = None;
            let (endpoint, bursts) = self.server.parts();
            let sleep = loop {
                match endpoint.poll(now) {
                    Output::Transmit(Transmit { to, bytes, cause, .. }) => {
                        let mut tag = Tag { flow: to, ..tag };
                        if self.rec.packets && matches!(cause, Cause::Further { .. }) {
                            tag.copy = u8::from(Self::is_repeated(&mut self.clients, to, bytes));
                        }
                        self.transmissions += 1;
                        answers += 1;
                        self.network.send(now, SERVER, to, bytes, tag, &mut self.rec);
                    }
                    Output::Event(event)
                        if Server::takes(bursts, now, |from| self.clients[from as usize].group(), &event) => {}
                    Output::Event(Event::Request { id, from, message }) => {
                        let group = self.clients.get(from as usize).map_or(0, Client::group);
                        // The server has what the groups ask for, and nothing else.
                        if !self.conducts[group as usize].is_for(message.uri_path()) {
                            return Err(RunError::Refused(
                                tag.flow,
                                "it asks for a resource that nobody has".to_owned(),
                            ));
                        }
                        let block = message.option(number::BLOCK2).and_then(|value| Block::read(value, false).ok());
                        asked = Some(Asked { id, kind: message.kind, code: message.code, tag, group, block });
                    }
                    Output::Event(_) => {}
                    Output::Sleep(at, _) => break at,
                    Output::Idle => break Instant::NEVER,
                }
            };
            if let Some(asked) = asked {
                self.ledger.delivered(&asked.tag, now);
                // What is worked on is answered later.
                answers += u32::from(!self.server.take(now, asked)?);
            } else if let Next::Sleep(until) = self.server.act(now)? {
                self.server.wakes = sleep.min(self.server.next_done()).min(until);
                match answers {
                    _ if tag.exchange == NO_EXCHANGE => {}
                    0 => self.ledger.gone(&tag),
                    1 => {}
                    _ => self.ledger.branched(&tag, answers - 1),
                }
                return Ok(());
            }
        }
    }
}
