//! The part of a run that travels over TCP.

use millpond_coap::{
    message::{Code, Token},
    transfer::{ClientRequest, Event},
};
use millpond_control::{Instant, Purpose};

use crate::{
    RunError,
    ledger::{NO_EXCHANGE, Tag},
    network::{Carried, SERVER},
    scenario::SEGMENT_OVER_DATAGRAM,
    stream_end::{Asked, StreamAsked},
    tcp::{Config, Polled},
    world::{Client, World},
};

/// What a client hears.
enum Heard {
    /// The response, with so many bytes of payload; a success or not.
    Answer(usize),
    /// The request under way will not be answered.
    Lost,
}

impl World<'_> {
    /// The parameters of one end of one connection of a client. Each end has random numbers of its own.
    fn end_of(&self, flow: u32, group: u32, connection: u32, far: bool) -> Option<Config> {
        let tcp = self.scenario.clients[group as usize].transport.tcp()?;
        let word = self.seed.wide(Purpose::Start, [flow, connection, 1 + u32::from(far), 0]);
        Some(tcp.config(self.scenario.header(), word))
    }

    /// A client over TCP wakes.
    #[cold]
    pub(crate) fn wake_stream(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Stream(client) = &self.nodes.clients[flow as usize] else { return Ok(()) };
        if client.application.wakes() <= now {
            self.stream_goes_on(flow, now)?;
        }
        let Client::Stream(client) = &self.nodes.clients[flow as usize] else { return Ok(()) };
        if client.ask_at.is_some_and(|at| at <= now) {
            self.ask_over_stream(flow, now)?;
        }
        self.drain_stream(flow, now)
    }

    /// The client's application goes on: asks again, over another connection if a batch begins, or is done.
    fn stream_goes_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Some(due) = self.next_request(flow, now)? else { return Ok(()) };
        let Client::Stream(client) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let group = client.group;
        client.due = Some(due);
        if client.end.is_some() {
            client.ask_at = Some(now);
        } else {
            let connection = client.connections;
            let tcp = self.scenario.clients[group as usize].transport.tcp();
            let (Some(config), Some(tcp)) = (self.end_of(flow, group, connection, false), tcp) else {
                return Ok(());
            };
            let Client::Stream(client) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
            client.connect(now, config, tcp, self.scenario);
            // The settings of the client are a segment of their own.
            if let Some(end) = &mut client.end {
                end.hear(now, |_| None::<()>);
            }
        }
        let Client::Stream(client) = &self.nodes.clients[flow as usize] else { return Ok(()) };
        if client.ask_at.is_some_and(|at| at <= now) {
            self.ask_over_stream(flow, now)?;
        }
        Ok(())
    }

    /// The client's request goes into the stream.
    fn ask_over_stream(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let draws = self.draws(flow);
        let Client::Stream(client) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let (Some(end), Some(due)) = (&mut client.end, client.due.take()) else { return Ok(()) };
        let profile = &self.groups.profiles[client.group as usize];
        let length = usize::from(profile.clients.token_length);
        let Some((ask, payload)) = profile.ask(&due, draws) else { return Ok(()) };
        let number = client.asked;
        client.asked += 1;
        let bytes = u64::from(number).to_be_bytes();
        let token = Token::new(&bytes[bytes.len() - length.min(bytes.len())..]).unwrap_or_default();
        let request = ask.request(payload);
        let ask = ClientRequest {
            token: Some(token),
            longest: self.scenario.body(profile.clients).0 as usize,
            ..ClientRequest::new(request.code, request.options).with_body(request.payload)
        };
        let from = end.tcp.written();
        let id = end.coap.request(now, (), &ask).map_err(|why| RunError::Refused(flow, why.to_string()))?;
        end.hear(now, |_| None::<()>);
        client.open = Some(Asked { id, number, request: due.request, from, sent: None });
        client.ask_at = None;
        self.ledger.begin(flow, number, due.request, None, client.application.in_first_batch());
        Ok(())
    }

    /// Lets a client's end hear and send all it can.
    fn drain_stream(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        loop {
            let Client::Stream(client) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
            let Some(end) = &mut client.end else {
                self.calendar.set(flow, client.application.wakes());
                return Ok(());
            };
            let asked = client.open.map(|asked| asked.id);
            let heard = if end.has_failed() && asked.is_some() {
                Some(Heard::Lost)
            } else {
                end.hear(now, |event| match event {
                    Event::Answer { request: ask, message, body, .. } if Some(ask) == asked => {
                        Some(if message.code.class() == 2 { Heard::Answer(body.len()) } else { Heard::Lost })
                    }
                    Event::Failed { request: ask, .. } if Some(ask) == asked => Some(Heard::Lost),
                    _ => None,
                })
            };
            let Some(heard) = heard else { break };
            let Some(Asked { number, request, sent, .. }) = client.open.take() else { continue };
            let tag = Tag { exchange: number, ..Tag::of(flow, 0, sent.unwrap_or(now)) };
            match heard {
                Heard::Answer(bytes) => {
                    client.application.got(bytes);
                    self.ledger.reached(&tag);
                    self.ledger.accepted(&tag, now);
                }
                Heard::Lost => {
                    client.hang_up();
                    self.ledger.gone(&tag);
                    self.ledger.abandoned(flow, number);
                }
            }
            self.end(flow, request, matches!(heard, Heard::Answer(_)), now);
            self.stream_goes_on(flow, now)?;
        }
        self.send_from_client(flow, now);
        Ok(())
    }

    /// Sends what a client's end has to send, and puts its next wake-up on the event calendar.
    fn send_from_client(&mut self, flow: u32, now: Instant) {
        let Client::Stream(client) = &mut self.nodes.clients[flow as usize] else { return };
        let group = &self.scenario.clients[client.group as usize];
        let connection = client.connections;
        let header = u64::from(self.network.length(&[]));
        let Some(end) = &mut client.end else { return };
        let until = loop {
            match end.tcp.poll(now) {
                Polled::Send(segment) => {
                    let mut tag = Tag::of(flow, 0, now);
                    if let Some(asked) = &mut client.open {
                        tag.exchange = asked.number;
                        let end = segment.seq + segment.payload.len() as u64;
                        if asked.sent.is_none() && (segment.seq..end).contains(&asked.from) {
                            asked.sent = Some(now);
                            client.application.leaves(now);
                            self.ledger.sent(&tag, millpond_control::Span::ZERO);
                        }
                    }
                    let Some(length) = group.transport.tcp().map(|tcp| tcp.length(header, &segment)) else { continue };
                    self.transmissions += 1;
                    let carried = Carried { segment, connection };
                    self.network.send_segment(now, flow, SERVER, length, carried, tag, &mut self.rec);
                }
                Polled::Sleep(until) => break until,
                Polled::Idle => break Instant::NEVER,
            }
        };
        // An end that gave up has something to tell yet.
        let until = if end.has_failed() && client.open.is_some() {
            now.after(millpond_control::Span::from_micros(1))
        } else {
            until
        };
        self.calendar.set(flow, until.min(client.ask_at.unwrap_or(Instant::NEVER)).min(client.application.wakes()));
    }

    /// A segment reaches its client.
    #[cold]
    pub(crate) fn segment_to_client(&mut self, now: Instant, tag: Tag, carried: Carried) -> Result<(), RunError> {
        let Client::Stream(client) = &mut self.nodes.clients[tag.flow as usize] else { return Ok(()) };
        let Some(end) = client.end.as_mut().filter(|_| carried.connection == client.connections) else { return Ok(()) };
        if let Some(bytes) = end.take(now, carried.segment) {
            let header = self.network.length(&[]) + SEGMENT_OVER_DATAGRAM;
            self.network.useful(SERVER, tag.flow, header + bytes, &mut self.rec);
        }
        self.drain_stream(tag.flow, now)
    }

    /// A segment reaches the server.
    #[cold]
    pub(crate) fn segment_to_server(&mut self, now: Instant, tag: Tag, carried: Carried) -> Result<(), RunError> {
        let Client::Stream(client) = &self.nodes.clients[tag.flow as usize] else { return Ok(()) };
        let (group, place) = (client.group, client.far);
        if carried.segment.opens() && self.nodes.server.streams[place].connection < carried.connection {
            let Some(config) = self.end_of(tag.flow, group, carried.connection, true) else { return Ok(()) };
            self.nodes.server.streams[place].listen(carried.connection, config, self.scenario);
        }
        let server = &mut self.nodes.server.streams[place];
        let Some(end) = server.end.as_mut().filter(|_| carried.connection == server.connection) else { return Ok(()) };
        if let Some(bytes) = end.take(now, carried.segment) {
            let header = self.network.length(&[]) + SEGMENT_OVER_DATAGRAM;
            self.network.useful(tag.flow, SERVER, header + bytes, &mut self.rec);
        }
        self.drain_stream_server(place, now)
    }

    /// Lets the server's end of a connection hear, answer and send all it can.
    #[cold]
    pub(crate) fn drain_stream_server(&mut self, place: usize, now: Instant) -> Result<(), RunError> {
        let host_time = self.nodes.server.host_time;
        loop {
            let group = self.nodes.clients[self.nodes.server.streams[place].flow as usize].group();
            let (streams, bodies) = self.nodes.server.answering();
            let server = &mut streams[place];
            let Some(end) = &mut server.end else { return Ok(()) };
            let profiles = &self.groups.profiles;
            let heard = end.hear(now, |event| match event {
                Event::Request { id, message, .. } => {
                    debug_assert!(
                        profiles.iter().any(|profile| profile.is_for(message.uri_path())),
                        "somebody asks for a resource that nobody has"
                    );
                    let resource = bodies.resource(group, message.uri_path());
                    Some(StreamAsked { id, is_get: message.code == Code::GET, resource })
                }
                _ => None,
            });
            if let Some(asked) = heard {
                let tag = Tag { exchange: server.taken, ..Tag::of(server.flow, 0, now) };
                self.ledger.delivered(&tag, now);
                server.taken += 1;
                server.working.push_back((now.after(host_time), asked));
                continue;
            }
            let Some(&(_, asked)) = server.working.front().filter(|(due, ..)| *due <= now) else { break };
            server.working.pop_front();
            self.nodes.server.answer_stream(now, place, group, &asked)?;
        }
        self.send_from_server(place, now);
        Ok(())
    }

    /// Sends what the server's end has to send, and puts its next wake-up on the event calendar.
    fn send_from_server(&mut self, place: usize, now: Instant) {
        let server = &mut self.nodes.server.streams[place];
        let (flow, connection) = (server.flow, server.connection);
        let Client::Stream(client) = &self.nodes.clients[flow as usize] else { return };
        let Some(tcp) = self.scenario.clients[client.group as usize].transport.tcp() else { return };
        let header = u64::from(self.network.length(&[]));
        let Some(end) = &mut server.end else { return };
        let exchange = server.taken.checked_sub(1).unwrap_or(NO_EXCHANGE);
        let until = loop {
            match end.tcp.poll(now) {
                Polled::Send(segment) => {
                    let tag = Tag { exchange, ..Tag::of(flow, 0, now) };
                    let length = tcp.length(header, &segment);
                    self.transmissions += 1;
                    let carried = Carried { segment, connection };
                    self.network.send_segment(now, SERVER, flow, length, carried, tag, &mut self.rec);
                }
                Polled::Sleep(until) => break until,
                Polled::Idle => break Instant::NEVER,
            }
        };
        if self.rec.tcp {
            let progress = end.tcp.progress();
            if server.traced.as_ref() != Some(&progress) {
                self.rec.sender(now, flow, &progress, tcp.full_segment(header));
                server.traced = Some(progress);
            }
        }
        let until = until.min(server.next_done());
        self.nodes.server.stream_calendar.set(place as u32, until);
    }
}
