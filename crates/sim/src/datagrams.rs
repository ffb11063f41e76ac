//! The part of a run that travels over UDP.

use millpond_coap::{
    Cause, Event, ExchangeId, Outgoing, Output, RequestId, Transmit,
    message::{Code, Kind, number},
    transfer,
};
use millpond_control::{Instant, Sample, Span};

use crate::{
    RunError, handshakes,
    ledger::{Ledger, NO_EXCHANGE, Tag},
    network::{Arrival, SERVER},
    server::Asked,
    trace::Recorder,
    workload::{Due, REGISTRATION},
    world::{Client, World},
};

/// How an exchange was answered.
pub(crate) struct Answered {
    pub(crate) exchange: ExchangeId,
    /// What the response said about the round-trip time.
    pub(crate) sample: Option<Sample>,
    /// Bytes of its payload.
    pub(crate) bytes: usize,
}

/// What came of a packet that the server sent by itself.
#[derive(Default)]
struct Served {
    /// Packets that answer it.
    packets: u32,
    what: Option<What>,
}

/// What a packet that the server sent by itself told a client.
enum What {
    Request { id: RequestId, kind: Kind, code: Code },
    Notification { bytes: usize },
}

impl Served {
    /// What the endpoint reports to it.
    fn take(&mut self, event: &Event<'_, u32>) {
        match *event {
            Event::Request { id, message, .. } => {
                self.what = Some(What::Request { id, kind: message.kind, code: message.code });
            }
            Event::AdditionalResponse { message, .. } => {
                self.what = Some(What::Notification { bytes: message.payload().len() })
            }
            _ => {}
        }
    }
}

impl World<'_> {
    /// A client over UDP wakes.
    #[inline]
    pub(crate) fn wake_device(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Client::Device(device) = &self.nodes.clients[flow as usize] else { return Ok(()) };
        if device.wakes() <= now {
            self.resend_flight(flow, now);
            self.ask_on(flow, now)?;
        }
        self.drain_client(flow, now, None)
    }

    /// A datagram reaches its client.
    #[inline]
    pub(crate) fn datagram_to_client(&mut self, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let (flow, tag) = (arrival.client, &arrival.tag);
        let is_away = match &mut self.nodes.clients[flow as usize] {
            Client::Device(device) => device.application.is_away(),
            client => client.application().is_away(),
        };
        if is_away {
            self.gone(tag, now);
            return Ok(());
        }
        if tag.exchange != NO_EXCHANGE && tag.flow == flow {
            self.ledger.reached(tag);
        }
        if handshakes::is_flight(self.network.datagram()) {
            return self.flight_to_client(flow, now, arrival);
        }
        match &mut self.nodes.clients[flow as usize] {
            Client::Device(device) => {
                if arrival.marked {
                    device.endpoint.receive_marked(now, SERVER, self.network.datagram());
                } else {
                    device.endpoint.receive(now, SERVER, self.network.datagram());
                }
                // Most answers to copies come when nobody waits for them any more.
                if tag.flow == flow
                    && let Some(at) = device.endpoint.quiet_until(now)
                {
                    self.calendar.set(flow, at.min(device.wakes()));
                    return Ok(());
                }
            }
            Client::Bodies(_) | Client::Stream(_) => return self.body_to_client(now, arrival),
        }
        self.drain_client(flow, now, Some(arrival))
    }

    /// Drains a client's endpoint; `arrived` is what was just handed to it.
    pub(crate) fn drain_client(&mut self, flow: u32, now: Instant, arrived: Option<&Arrival>) -> Result<(), RunError> {
        let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let mut answered: Option<Answered> = None;
        let mut abandoned = Vec::new();
        let mut makes_way = false;
        let mut served = Served::default();
        let wakes = device.wakes();
        // What answers the server has the tag of what it answers.
        let of_server = arrived.filter(|arrival| arrival.tag.flow != flow);
        let sleeps = loop {
            // Nearly always after one output, and after most without a poll.
            if let Some(until) = device.endpoint.quiet_until(now) {
                break until;
            }
            match device.endpoint.poll(now) {
                Output::Transmit(Transmit { bytes, cause, .. }) => {
                    let mut tag = Tag::of(flow, self.network.length(bytes), now);
                    if !label(&mut self.ledger, &mut self.rec, &mut tag, &cause) {
                        served.packets += 1;
                        tag = of_server.map_or(tag, |arrival| arrival.tag);
                    }
                    self.transmissions += 1;
                    self.network.send(now, flow, SERVER, bytes, &tag, &mut self.rec);
                    if let Cause::Exchange { id, copy, .. } = cause
                        && self.groups.profiles[device.group as usize].is_last(copy)
                    {
                        device.endpoint.cancel(now, id);
                    }
                }
                // A proxy that got no answer, or has no room.
                Output::Event(Event::Response { exchange, message, .. }) if !message.code.is_success() => {
                    abandoned.push(exchange);
                }
                Output::Event(Event::Response { exchange, sample, message, .. }) => {
                    answered = Some(Answered { exchange, sample, bytes: message.payload().len() });
                }
                Output::Event(Event::Failed { exchange, .. }) => abandoned.push(exchange),
                Output::Event(Event::Overdue { .. }) => makes_way = true,
                Output::Event(event) => served.take(&event),
                Output::Sleep(at, _) => break at,
                Output::Idle => break Instant::NEVER,
            }
        };
        let sleeps = sleeps.min(wakes);
        let has_ended = answered.is_some() || !abandoned.is_empty() || makes_way;
        // Who asks anew sets it then.
        let may_be_set_anew = has_ended && of_server.is_none();
        if !may_be_set_anew {
            self.calendar.set(flow, sleeps);
        }
        if let Some(arrival) = of_server {
            if answered.is_some() {
                // A notification that comes before the response to its registration, or in its stead (RFC 7641 §3.2).
                served.what = Some(What::Notification { bytes: 0 });
            }
            self.serve(flow, now, arrival.tag, &served)?;
        }
        if has_ended && !self.exchanges_ended(flow, now, arrived, answered, abandoned)? && may_be_set_anew {
            self.calendar.set(flow, sleeps);
        }
        Ok(())
    }

    /// Exchanges of a client have ended, or make way: some without an answer, and perhaps one with what has just arrived. Whether its
    /// endpoint was drained once more, because it asks anew.
    fn exchanges_ended(
        &mut self,
        flow: u32,
        now: Instant,
        arrived: Option<&Arrival>,
        answered: Option<Answered>,
        abandoned: Vec<ExchangeId>,
    ) -> Result<bool, RunError> {
        for exchange in abandoned {
            self.abandon(flow, now, exchange);
        }
        if let (Some(answered), Some(arrival)) = (answered, arrived)
            && let Some(request) = self.accept(flow, now, arrival.tag, arrival.length, &answered)
        {
            let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return Ok(false) };
            device.application.got(answered.bytes);
            self.end(flow, request, true, now);
        }
        self.go_on(flow, now)
    }

    /// What the server sent by itself, a copy with this tag, was handed to a client's endpoint, which made this of it.
    #[cold]
    fn serve(&mut self, flow: u32, now: Instant, tag: Tag, served: &Served) -> Result<(), RunError> {
        let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let mut packets = served.packets;
        match served.what {
            Some(What::Notification { bytes }) => {
                device.application.got(bytes);
                if tag.is_one_way {
                    self.told(&tag, flow, now);
                    return Ok(());
                }
                self.ledger.delivered(&tag, now);
            }
            Some(What::Request { id, kind, code }) => {
                let code = if code == Code::GET { Code::CONTENT } else { Code::CHANGED };
                let payload = &self.groups.profiles[device.group as usize].serves;
                let response = Outgoing { kind, ..Outgoing::confirmable(code, &[]) }.with_payload(payload);
                let told = device.endpoint.respond(now, id, &response);
                told.map_err(|why| RunError::Refused(flow, why.to_string()))?;
                self.ledger.delivered(&tag, now);
                while let Output::Transmit(Transmit { bytes, .. }) = device.endpoint.poll(now) {
                    packets += 1;
                    self.transmissions += 1;
                    self.network.send(now, flow, SERVER, bytes, &tag, &mut self.rec);
                }
            }
            None => {}
        }
        match packets {
            0 => self.gone(&tag, now),
            1 => {}
            _ => self.ledger.branched(&tag, packets - 1),
        }
        // What was answered may let the endpoint sleep longer.
        if matches!(served.what, Some(What::Request { .. })) { self.drain_client(flow, now, None) } else { Ok(()) }
    }

    /// A client accepts a response: gives the request that it answers, or part of it.
    pub(crate) fn accept(
        &mut self,
        flow: u32,
        now: Instant,
        tag: Tag,
        length: u32,
        answered: &Answered,
    ) -> Option<u32> {
        let client = &self.nodes.clients[flow as usize];
        let (number, request) = self.ledger.open(flow, answered.exchange)?;
        // A response of which nobody knows what caused it answers all the same.
        let is_caused = tag.flow == flow;
        let tag = match tag.exchange == number {
            _ if !is_caused => Tag { exchange: number, ..Tag::of(flow, 0, self.ledger.first_send(flow, number)) },
            true => tag,
            false => Tag { exchange: number, ..tag },
        };
        let counts = self.ledger.counts(&tag);
        self.ledger.accepted(&tag, now);
        if answered.sample.is_some_and(|sample| sample.retransmissions() > 0)
            && let Some(variation) = client.view().and_then(|view| view.weak_rttvar)
        {
            self.ledger.varied(flow, tag.sent, variation);
        }
        let judged = answered.sample.and_then(|sample| self.evidence.take(client.group(), &sample, &tag, now, counts));
        if let Some(judged) = judged.filter(|_| self.rec.exchanges) {
            self.rec.judged(&tag, judged, client.view().and_then(|view| view.rto));
        }
        if is_caused {
            self.network.useful_request(flow, SERVER, &tag, &mut self.rec);
            self.network.useful(SERVER, flow, length, &mut self.rec);
        }
        Some(request)
    }

    /// An exchange of a client ended without an answer, and with it its request.
    fn abandon(&mut self, flow: u32, now: Instant, exchange: ExchangeId) {
        let Some((number, request)) = self.ledger.open(flow, exchange) else { return };
        self.ledger.abandoned(flow, number);
        self.end(flow, request, false, now);
    }

    /// The client's application goes on after something has ended; whether its endpoint was drained.
    pub(crate) fn go_on(&mut self, flow: u32, now: Instant) -> Result<bool, RunError> {
        let has_asked = self.ask_on(flow, now)?;
        let Client::Device(device) = &self.nodes.clients[flow as usize] else { return Ok(has_asked) };
        if device.application.wakes() == Instant::NEVER {
            return Ok(has_asked);
        }
        // Something may be arrived earlier than the endpoint wanted to wake.
        self.drain_client(flow, now, None)?;
        Ok(true)
    }

    /// The client asks as long as it has something to ask for and may; whether it has asked.
    fn ask_on(&mut self, flow: u32, now: Instant) -> Result<bool, RunError> {
        let mut has_asked = false;
        loop {
            let Client::Device(device) = &self.nodes.clients[flow as usize] else { return Ok(has_asked) };
            let overdue = device.endpoint.overdue(SERVER);
            if device.application.has_to_wait(now, &self.groups.profiles[device.group as usize], overdue) {
                return Ok(has_asked);
            }
            let Some(due) = self.next_request(flow, now)? else { return Ok(has_asked) };
            self.exchange(flow, now, due)?;
            has_asked = true;
        }
    }

    /// The exchange of a client's request.
    fn exchange(&mut self, flow: u32, now: Instant, due: Due) -> Result<(), RunError> {
        let draws = self.draws(flow);
        let Client::Device(device) = &mut self.nodes.clients[flow as usize] else { return Ok(()) };
        let Some((ask, bytes)) = self.groups.profiles[device.group as usize].ask(&due, draws) else { return Ok(()) };
        if let Some(flights) = ask.flights {
            return self.begin_flight(flow, now, due, flights);
        }
        let id = match due.source {
            REGISTRATION => device.endpoint.subscribe(now, SERVER, &ask.request(bytes)),
            _ => device.endpoint.request(now, SERVER, &ask.request(bytes)),
        };
        let id = id.map_err(|why| RunError::Refused(flow, why.to_string()))?;
        let number = device.begin(now);
        let first_batch = device.application.in_first_batch();
        self.ledger.begin(flow, number, due.request, Some(id), first_batch);
        self.drain_client(flow, now, None)
    }

    /// A datagram reaches the server.
    #[inline]
    pub(crate) fn datagram_to_server(&mut self, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let Arrival { client, ref tag, length, .. } = *arrival;
        if handshakes::is_flight(self.network.datagram()) {
            self.flight_to_server(now, arrival);
            return Ok(());
        }
        let is_own = tag.flow != client;
        if is_own && tag.exchange != NO_EXCHANGE {
            self.ledger.reached(tag);
        }
        self.nodes.server.change(now);
        self.nodes.server.stack.receive(now, client, self.network.datagram());
        if !is_own && self.nodes.clients.get(client as usize).is_some_and(Client::is_burst) {
            if tag.copy == 0 {
                self.network.useful(client, SERVER, length, &mut self.rec);
            }
            if tag.exchange != NO_EXCHANGE {
                self.ledger.delivered(tag, now);
            }
        }
        self.drain_server(now, tag, length)
    }

    pub(crate) fn wake_server(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(tag) = self.nodes.server.finish(now)? {
            self.drain_server(now, &tag, 0)?;
        }
        // What the endpoint sends of its own accord answers nobody in particular.
        self.drain_server(now, &Tag::of(0, 0, now), 0)
    }

    /// Drains the server; what it sends answers the request copy with this tag, or it was just handed an answer with it, of so
    /// many bytes.
    pub(crate) fn drain_server(&mut self, now: Instant, tag: &Tag, length: u32) -> Result<(), RunError> {
        // How many packets carry the tag on, if the application does not keep it to itself for a while.
        let mut answers = 0_u32;
        // Nothing of what follows is to be asked for each packet where the server sends nothing by itself.
        let calls = !self.nodes.server.callers.is_empty();
        let is_own = calls && tag.flow as usize >= self.nodes.clients.len() && self.proxy(tag.flow).is_none();
        loop {
            let mut asked = None;
            let (stack, callers, bodies) = self.nodes.server.parts();
            let sleep = loop {
                if let Some(until) = stack.quiet_until(now) {
                    break until;
                }
                match stack.poll(now) {
                    Output::Transmit(Transmit { to, bytes, cause, .. }) => {
                        let own = if calls {
                            let sent = (to, self.network.length(bytes));
                            callers.sent(&mut self.ledger, &mut self.rec, sent, &cause, now)
                        } else {
                            None
                        };
                        let tag = own.unwrap_or_else(|| {
                            answers += 1;
                            let mut tag = if is_own { Tag::of(to, 0, now) } else { Tag { flow: to, ..*tag } };
                            if self.rec.packets && matches!(cause, Cause::NonConfirmable { .. }) {
                                let client = self.nodes.clients.get_mut(to as usize);
                                tag.copy = u8::from(client.is_some_and(|client| client.is_repeated(bytes)));
                            }
                            tag
                        });
                        self.transmissions += 1;
                        self.network.send(now, SERVER, to, bytes, &tag, &mut self.rec);
                    }
                    Output::Event(transfer::Event::Request { id, from, message, .. }) => {
                        // A proxy is of no group, and gets every body whole.
                        let group = self.nodes.clients.get(from as usize).map_or(u32::MAX, Client::group);
                        debug_assert!(
                            self.groups
                                .profiles
                                .get(group as usize)
                                .is_none_or(|profile| profile.is_for(message.uri_path())),
                            "flow {} asks for a resource that nobody has",
                            tag.flow
                        );
                        let observes = calls && message.option(number::OBSERVE).is_some();
                        let observes = observes.then_some((from, message.token));
                        let resource = bodies.resource(group, message.uri_path());
                        asked = Some(Asked { id, kind: message.kind, code: message.code, group, resource, observes });
                    }
                    // Of what it does not send by itself nothing ends.
                    Output::Trace(event) if calls => callers.note(&event),
                    Output::Trace(_) | Output::Event(_) => {}
                    Output::Sleep(until, _) => break until,
                    Output::Idle => break Instant::NEVER,
                }
            };
            if calls && !self.nodes.server.callers.ended.is_empty() {
                self.calls_ended(tag, length, now)?;
                continue;
            }
            if let Some(asked) = &asked {
                if self.nodes.clients.get(tag.flow as usize).is_some_and(Client::is_burst) {
                    // What is worked on is answered in packets that carry no tag on.
                    let later = Tag::of(0, 0, now.after(self.nodes.server.host_time));
                    self.nodes.server.take(now, asked, &later)?;
                    continue;
                }
                match self.proxy(tag.flow) {
                    None => self.ledger.delivered(tag, now),
                    Some(place) => self.brought_by(place, tag, now),
                }
                if asked.observes.is_some() {
                    self.registered(tag.flow, now);
                }
                // What is worked on is answered later.
                answers += u32::from(!self.nodes.server.take(now, asked, tag)?);
                continue;
            }
            self.nodes.server.wakes = sleep.min(self.nodes.server.next_done());
            match answers {
                _ if tag.exchange == NO_EXCHANGE || is_own => {}
                0 => self.ledger.gone(tag),
                1 => {}
                _ => self.ledger.branched(tag, answers - 1),
            }
            return Ok(());
        }
    }
}

/// Completes the tag of a datagram of a client if a request of its own leaves with it; whether one does.
#[inline]
pub(crate) fn label(ledger: &mut Ledger, rec: &mut Recorder, tag: &mut Tag, cause: &Cause) -> bool {
    match *cause {
        Cause::Exchange { id, copy, wait } => {
            let Some(place) = ledger.open_place(tag.flow, id) else { return false };
            tag.copy = copy;
            ledger.sent_of(place, tag, wait.span);
            rec.left(tag, Some(wait));
            true
        }
        Cause::NonConfirmableRequest => {
            let Some(exchange) = ledger.unsent(tag.flow) else { return false };
            tag.exchange = exchange;
            ledger.sent(tag, Span::ZERO);
            rec.left(tag, None);
            true
        }
        _ => false,
    }
}
