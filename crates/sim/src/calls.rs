//! What the server sends to clients by itself: commands, and notifications of what they observe. Each is a flow of its own,
//! with an application that says when something arrives, as a client's does.

use millpond_coap::{
    Cause, Event, ExchangeId, Failure, Outgoing, RetransmitOptions,
    message::{Code, Kind, Token, Uint, number},
};
use millpond_control::{Instant, Sample, Span};

use crate::{
    RunError,
    application::Application,
    ledger::{Ledger, Tag},
    network::SERVER,
    outcome::FlowRow,
    scenario::Traffic,
    trace::Recorder,
    workload::{ClientProfile, Due},
    world::World,
};

/// Sequence numbers of notifications have 24 bits (RFC 7641 §2).
const SEQUENCE: u32 = (1 << 24) - 1;

/// One purpose for which the server sends to one client.
pub(crate) struct Caller {
    pub(crate) application: Application,
    /// The group of flows that it belongs to.
    pub(crate) group: u32,
    pub(crate) client: u32,
    /// Exchanges begun.
    exchanges: u32,
    notifies: bool,
    /// Who observes, and the number of the first exchange for them.
    observer: Option<(Token, u32)>,
    sequence: u32,
}

impl Caller {
    pub(crate) fn row(&self, flow: u32, profile: &ClientProfile<'_>) -> FlowRow {
        self.application.row(flow, self.group, profile)
    }
}

/// All that the server does by itself, in the order of the clients.
#[derive(Default)]
pub(crate) struct Callers {
    /// The number of the first flow.
    base: u32,
    all: Vec<Caller>,
    /// Where those of each client begin; empty if there are none at all.
    first: Vec<u32>,
    /// What has ended and was not seen to.
    pub(crate) ended: Vec<CallEnd>,
}

impl Callers {
    /// None of so many clients.
    pub(crate) fn new(clients: usize) -> Self {
        Self { base: clients as u32, ..Self::default() }
    }

    /// Adds one for the newest client or the one after it; gives the number of its flow.
    pub(crate) fn add(&mut self, client: u32, group: u32, notifies: bool, application: Application) -> u32 {
        let number = self.all.len() as u32;
        while self.first.len() <= client as usize {
            self.first.push(number);
        }
        self.all.push(Caller { application, group, client, exchanges: 0, notifies, observer: None, sequence: 0 });
        self.base + number
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The group of each flow.
    pub(crate) fn groups(&self) -> impl Iterator<Item = u32> {
        self.all.iter().map(|caller| caller.group)
    }

    /// The client of each flow, and its group.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (u32, u32)> {
        self.all.iter().map(|caller| (caller.client, caller.group))
    }

    #[inline]
    pub(crate) fn get(&self, flow: u32) -> Option<&Caller> {
        self.all.get(flow.checked_sub(self.base)? as usize)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, flow: u32) -> Option<&mut Caller> {
        self.all.get_mut(flow.checked_sub(self.base)? as usize)
    }

    /// The flows to a client.
    fn of(&self, client: u32) -> impl Iterator<Item = u32> + use<> {
        let end = self.all.len() as u32;
        let from = |client: u32| self.first.get(client as usize).copied().unwrap_or(end);
        (from(client)..from(client + 1)).map({
            let base = self.base;
            move |number| base + number
        })
    }

    /// The flow of the notifications to a client, if it has any.
    fn notifications_to(&self, client: u32) -> Option<u32> {
        self.of(client).find(|flow| self.get(*flow).is_some_and(|caller| caller.notifies))
    }

    /// A client observes from now on, by this token; gives that by which it did before.
    pub(crate) fn observes(&mut self, client: u32, token: Token) -> Option<Token> {
        let caller = self.get_mut(self.notifications_to(client)?)?;
        let before = caller.observer.replace((token, caller.exchanges));
        before.map(|(token, _)| token).filter(|before| *before != token)
    }

    /// The open exchange of this name with a client: its flow, its number there, and its request.
    pub(crate) fn whose(&self, ledger: &Ledger, client: u32, id: ExchangeId) -> Option<(u32, u32, u32)> {
        self.of(client).find_map(|flow| ledger.open(flow, id).map(|(number, request)| (flow, number, request)))
    }

    /// Notes what this reports of an end.
    #[cold]
    pub(crate) fn note(&mut self, event: &Event<'_, u32>) {
        self.ended.extend(CallEnd::of(event));
    }

    /// The tag of a datagram of so many bytes that leaves now, if one of these sent it.
    #[cold]
    pub(crate) fn sent(
        &self,
        ledger: &mut Ledger,
        rec: &mut Recorder,
        (to, bytes): (u32, u32),
        cause: &Cause,
        now: Instant,
    ) -> Option<Tag> {
        let (flow, number, copy, wait, is_one_way) = match *cause {
            Cause::Exchange { id, copy, wait } => {
                let (flow, number, _) = self.whose(ledger, to, id)?;
                (flow, number, copy, Some(wait), false)
            }
            Cause::NonConfirmable { id } => {
                let (flow, number, _) = self.whose(ledger, to, id)?;
                (flow, number, 0, None, true)
            }
            Cause::NonConfirmableRequest => {
                let (flow, number) = self.of(to).find_map(|flow| Some((flow, ledger.unsent(flow)?)))?;
                (flow, number, 0, None, false)
            }
            _ => return None,
        };
        let tag = Tag { exchange: number, copy, is_one_way, ..Tag::of(flow, bytes, now) };
        ledger.sent(&tag, wait.map_or(Span::ZERO, |wait| wait.span));
        rec.left(&tag, wait);
        Some(tag)
    }

    /// The rows of all flows.
    pub(crate) fn rows(&self, profiles: &[ClientProfile<'_>]) -> impl Iterator<Item = FlowRow> {
        let row = |(caller, flow): (&Caller, u32)| caller.row(flow, &profiles[caller.group as usize]);
        self.all.iter().zip(self.base..).map(row)
    }
}

/// How an exchange of the server with a client ended, or that it makes way for others.
pub(crate) struct CallEnd {
    client: u32,
    exchange: ExchangeId,
    /// What the answer said about the round-trip time, if there was one.
    answer: Option<Option<Sample>>,
    is_rejected: bool,
    makes_way: bool,
}

impl CallEnd {
    /// What this reports of an end.
    fn of(event: &Event<'_, u32>) -> Option<Self> {
        let end = |client, exchange, answer| Self { client, exchange, answer, is_rejected: false, makes_way: false };
        Some(match *event {
            Event::Response { exchange, from, sample, .. } => end(from, exchange, Some(sample)),
            Event::Delivered { exchange, to, sample, .. } => end(to, exchange, Some(Some(sample))),
            Event::Failed { exchange, to, .. } => end(to, exchange, None),
            Event::Overdue { exchange, to } => Self { makes_way: true, ..end(to, exchange, None) },
            Event::Undelivered { exchange, to, why, .. } => {
                Self { is_rejected: why == Failure::Reset, ..end(to, exchange, None) }
            }
            Event::Rejected { exchange, from } => Self { is_rejected: true, ..end(from, exchange, None) },
            _ => return None,
        })
    }
}

impl World<'_> {
    /// Exchanges of the server ended; `tag` and `length` are those of what was just handed to it.
    #[cold]
    pub(crate) fn calls_ended(&mut self, tag: &Tag, length: u32, now: Instant) -> Result<(), RunError> {
        std::mem::take(&mut self.nodes.server.callers.ended)
            .into_iter()
            .try_for_each(|end| self.call_ended(end, *tag, length, now))
    }

    fn call_ended(&mut self, end: CallEnd, tag: Tag, length: u32, now: Instant) -> Result<(), RunError> {
        let CallEnd { client, exchange, answer, is_rejected, makes_way } = end;
        let Some((flow, number, request)) = self.nodes.server.callers.whose(&self.ledger, client, exchange) else {
            return Ok(());
        };
        if makes_way {
            return self.call_on(flow, now);
        }
        if let Some(sample) = answer {
            let tag = Tag { flow, exchange: number, ..tag };
            let counts = self.ledger.counts(&tag);
            self.ledger.accepted(&tag, now);
            let group = self.nodes.server.callers.get(flow).map_or(0, |caller| caller.group);
            let judged = sample.and_then(|sample| self.evidence.take(group, &sample, &tag, now, counts));
            if let Some(judged) = judged.filter(|_| self.rec.exchanges) {
                self.rec.judged(
                    &tag,
                    judged,
                    self.nodes.server.stack.endpoint().view(client).and_then(|view| view.rto),
                );
            }
            self.network.useful_request(SERVER, client, &tag, &mut self.rec);
            self.network.useful(client, SERVER, length, &mut self.rec);
        } else {
            self.ledger.abandoned(flow, number);
        }
        if is_rejected {
            self.is_rejected(flow, number);
        }
        self.end(flow, request, answer.is_some(), now);
        self.call_on(flow, now)
    }

    /// The server goes on with what it sends by itself to one client for one purpose.
    #[inline(never)]
    pub(crate) fn wake_caller(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let draws = self.draws(flow);
        if let Some(caller) = self.nodes.server.callers.get_mut(flow) {
            // An event calls workloads that wait for it, and does nothing else to a server.
            _ = caller.application.moment(now, &self.groups.profiles[caller.group as usize], draws);
        }
        self.call_on(flow, now)
    }

    /// The server asks as long as it has something to ask for and may.
    pub(crate) fn call_on(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        while let Some(due) = self.next_request(flow, now)? {
            self.call(flow, now, due)?;
            self.drain_server(now, &Tag::of(0, 0, now), 0)?;
        }
        if let Some(caller) = self.nodes.server.callers.get(flow) {
            self.calendar.set(flow, caller.application.wakes());
        }
        Ok(())
    }

    /// One message of the server by itself.
    fn call(&mut self, flow: u32, now: Instant, due: Due) -> Result<(), RunError> {
        let draws = self.draws(flow);
        let Some(caller) = self.nodes.server.callers.get_mut(flow) else { return Ok(()) };
        let profile = &self.groups.profiles[caller.group as usize];
        let Some((ask, bytes)) = profile.ask(&due, draws) else { return Ok(()) };
        let retransmit =
            RetransmitOptions { max_retransmit: Some(profile.clients.max_retransmit), ..RetransmitOptions::DEFAULT };
        let message = ask.request(bytes).with_retransmit(retransmit);
        let endpoint = self.nodes.server.stack.endpoint_mut();
        let id = match (profile.traffic, caller.observer) {
            (Traffic::Notifications, Some((token, first))) => {
                caller.sequence = caller.sequence.wrapping_add(1) & SEQUENCE;
                let sequence = Uint::new(caller.sequence);
                let options = [
                    (number::OBSERVE, sequence.as_bytes()),
                    (number::CONTENT_FORMAT, &self.nodes.server.content_format[..]),
                ];
                // The first one shows that the client is there: until it has answered, PROBING_RATE holds (RFC 7252 §4.7).
                let kind = if caller.exchanges == first { Kind::Confirmable } else { message.kind };
                let message = Outgoing { kind, code: Code::CONTENT, options: &options, ..message };
                endpoint.send_additional(now, caller.client, token, &message)
            }
            _ => endpoint.request(now, caller.client, &message),
        };
        let id = id.map_err(|why| RunError::Endpoint("the server", why.to_string()))?;
        caller.application.leaves(now);
        caller.exchanges += 1;
        let (number, first_batch) = (caller.exchanges - 1, caller.application.in_first_batch());
        self.ledger.begin(flow, number, due.request, Some(id), first_batch);
        Ok(())
    }

    /// A client has registered for notifications, or anew. It [observes](Callers::observes) once it has its response.
    #[cold]
    pub(crate) fn registered(&mut self, client: u32, now: Instant) {
        let Some(flow) = self.nodes.server.callers.notifications_to(client) else { return };
        let draws = self.draws(flow);
        let Some(caller) = self.nodes.server.callers.get_mut(flow) else { return };
        caller.application.attends(now, &self.groups.profiles[caller.group as usize], draws);
        // Not before it has its response.
        self.calendar.set(flow, now.after(self.nodes.server.host_time));
    }

    /// A client does not want to be notified: with a reset it ended this exchange (RFC 7641 §3.6).
    pub(crate) fn is_rejected(&mut self, flow: u32, number: u32) {
        let draws = self.draws(flow);
        let Some(caller) = self.nodes.server.callers.get_mut(flow) else { return };
        // It may have registered anew meanwhile.
        if caller.observer.is_some_and(|(_, first)| number >= first) {
            caller.observer = None;
            caller.application.unattended(&self.groups.profiles[caller.group as usize], draws);
        }
    }

    /// The one copy of an exchange that nobody answers has arrived, with so many bytes.
    pub(crate) fn told(&mut self, tag: &Tag, client: u32, now: Instant) {
        let Some(request) = self.ledger.told(tag, now) else { return };
        self.network.useful_request(SERVER, client, tag, &mut self.rec);
        self.end(tag.flow, request, true, now);
        // The server may go on.
        self.calendar.set(tag.flow, now);
    }

    /// A packet with this tag is no more.
    #[cold]
    pub(crate) fn gone(&mut self, tag: &Tag, now: Instant) {
        self.ledger.gone(tag);
        if tag.is_one_way
            && let Some(request) = self.ledger.abandoned(tag.flow, tag.exchange)
        {
            self.end(tag.flow, request, false, now);
            self.calendar.set(tag.flow, now);
        }
    }
}
