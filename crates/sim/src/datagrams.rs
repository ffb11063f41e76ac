//! The part of a run that travels over UDP.

use millpond_coap::{Cause, Event, Outgoing, Output, Transmit, block::Block, message::number};
use millpond_control::{Instant, Sample};

use crate::{
    RunError,
    burst_ends::Next,
    device::{Body, Device},
    ledger::{NO_EXCHANGE, Tag},
    network::SERVER,
    server::{Asked, Server},
    world::{Client, World},
};

/// How an exchange ended.
enum Ended {
    /// With a response: what it said about the round-trip time, bytes of its payload, and what it leaves of the request.
    Answered(Option<Sample>, usize, Body),
    Abandoned,
}

impl World<'_> {
    /// A client over UDP wakes.
    #[inline]
    pub(crate) fn wake_device(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Device(device) = &self.clients[flow as usize] else { return Ok(()) };
        if device.application.has_begun() { self.drain_client(flow, now, None) } else { self.go_on(flow, now) }
    }

    /// A datagram reaches its client.
    #[inline]
    pub(crate) fn datagram_to_client(&mut self, now: Instant, tag: Tag, bytes: Vec<u8>) -> Result<(), RunError> {
        if tag.exchange != NO_EXCHANGE {
            self.ledger.reached(&tag);
        }
        let Client::Device(device) = &mut self.clients[tag.flow as usize] else {
            return self.burst_to_client(now, tag, bytes);
        };
        device.endpoint.receive(now, SERVER, &bytes);
        let length = self.network.take_back(bytes);
        self.drain_client(tag.flow, now, Some((tag, length)))
    }

    /// Drains a client's endpoint; `arrived` is what was just handed to it, with its length.
    fn drain_client(&mut self, flow: u32, now: Instant, arrived: Option<(Tag, u32)>) -> Result<(), RunError> {
        let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let first_batch = device.application.in_first_batch();
        let mut ended: Option<Ended> = None;
        // The endpoint lends its buffers until the next call, so what else is needed of the device is read before.
        let open = device.open();
        let mut late = 0;
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
                    if let Cause::Exchange { id, copy, wait } = cause
                        && let Some((_, number)) = open.filter(|(open, _)| *open == id)
                    {
                        tag.exchange = number;
                        tag.copy = copy;
                        self.ledger.sent(&tag, wait.span, first_batch);
                        self.rec.armed(&tag, wait);
                    }
                    self.transmissions += 1;
                    self.network.send(now, flow, SERVER, bytes, tag, &mut self.rec);
                }
                Output::Event(Event::Response { sample, message, .. }) => {
                    let body = Device::take(fetch, &message);
                    ended = Some(Ended::Answered(sample, message.payload().len(), body));
                }
                Output::Event(Event::Failed { .. }) => ended = Some(Ended::Abandoned),
                Output::Event(Event::Late { .. }) => late += 1,
                Output::Event(_) => {}
                Output::Sleep(at, _) => {
                    self.agenda.set(flow, at);
                    break;
                }
                Output::Idle => {
                    self.agenda.clear(flow);
                    break;
                }
            }
        }
        device.late += late;
        match (ended, arrived) {
            (Some(Ended::Answered(sample, bytes, body)), Some((tag, length))) => {
                self.ledger.accepted(&tag, now);
                let judged = sample.and_then(|sample| self.evidence.take(device.group, &sample, &tag, now));
                if let Some(judged) = judged.filter(|_| self.rec.exchanges) {
                    self.rec.judged(&tag, judged, device.endpoint.view(SERVER).and_then(|view| view.rto));
                }
                self.network.useful_request(&tag, &mut self.rec);
                self.network.useful(SERVER, flow, length, &mut self.rec);
                device.answered(&tag, now, bytes, body);
                if body == Body::More {
                    return self.exchange(flow, now);
                }
            }
            (None, _) => return Ok(()),
            _ => device.abandoned(),
        }
        self.go_on(flow, now)
    }

    /// The client's application goes on: asks again, or is done.
    fn go_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Some(clients) = self.next_request(flow, now) else { return Ok(()) };
        let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        device.begin_request(clients, self.scenario.server.payload.0 as usize);
        self.exchange(flow, now)
    }

    /// The next exchange of the client's request: all of it, or a block of the body.
    fn exchange(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Device(device) = &mut self.clients[flow as usize] else { return Ok(()) };
        let ask = &self.asks[device.group as usize];
        let id = match device.asks_for() {
            None => device.endpoint.request(now, SERVER, &ask.request()),
            Some(block) => {
                let value = block.value();
                let mut options = ask.options().to_vec();
                options.push((number::BLOCK2, value.as_bytes()));
                device.endpoint.request(now, SERVER, &Outgoing { options: &options, ..ask.request() })
            }
        };
        let id = id.map_err(|why| RunError::Refused(flow, why.to_string()))?;
        device.begin(id, now);
        self.drain_client(flow, now, None)
    }

    /// A datagram reaches the server.
    #[inline]
    pub(crate) fn datagram_to_server(&mut self, now: Instant, tag: Tag, bytes: Vec<u8>) -> Result<(), RunError> {
        self.server.endpoint.receive(now, tag.flow, &bytes);
        let length = self.network.take_back(bytes);
        if tag.copy == 0 && matches!(self.clients[tag.flow as usize], Client::Burst(_)) {
            self.network.useful(tag.flow, SERVER, length, &mut self.rec);
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
                        self.network.send(now, SERVER, to, bytes, tag, &mut self.rec);
                    }
                    Output::Event(event)
                        if Server::takes(bursts, now, |from| self.clients[from as usize].group(), &event) => {}
                    Output::Event(Event::Request { id, from, message }) => {
                        // The server has what the groups ask for, and nothing else.
                        if !self.asks.iter().any(|ask| ask.is_for(message.uri_path())) {
                            return Err(RunError::Refused(
                                tag.flow,
                                "it asks for a resource that nobody has".to_owned(),
                            ));
                        }
                        let group = self.clients.get(from as usize).map_or(0, Client::group);
                        let block = message.option(number::BLOCK2).and_then(|value| Block::read(value, false).ok());
                        asked = Some(Asked { id, code: message.code, tag, group, block });
                    }
                    Output::Event(_) => {}
                    Output::Sleep(at, _) => break at,
                    Output::Idle => break Instant::NEVER,
                }
            };
            if let Some(asked) = asked {
                self.server.take(now, asked)?;
            } else if let Next::Sleep(until) = self.server.act(now)? {
                self.server.wakes = sleep.min(self.server.next_done()).min(until);
                return Ok(());
            }
        }
    }
}
