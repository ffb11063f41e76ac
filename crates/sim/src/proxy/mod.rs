//! Proxies: nodes that take requests from the clients behind them and ask the server for them (RFC 7252 §5.7).
//!
//! A proxy has one endpoint with two roles. What it takes it acknowledges, by itself once half a second has passed without an
//! answer, and asks for in a message of its own; what it gets it hands back under the token of the client. Which answers it keeps, which
//! requests share one, and whose turn it is, is decided by what decides it in the gateway ([`millpond_coap::proxy`]).

mod answer;
mod requests;

use std::collections::{BTreeMap, VecDeque};

use millpond_coap::{
    Cause, Config, Duplicates, Endpoint, Event, ExchangeId, IdGenerator, Limits, Output, Refused, RetransmitOptions,
    Transmission, Transmit,
    message::{Code, Kind, Message, Token},
    proxy::{Cache, CacheKey, Flights, Queue},
};
use millpond_control::{ChanceSeed, Instant, PeerController};

use answer::Answer;
use requests::{Due, Ended, Fate, Held, Taken};

use crate::{
    RunError,
    ledger::{NO_EXCHANGE, Tag},
    network::{Arrival, LinkName, SERVER},
    outcome::ProxyRow,
    population::{datagram, transmission},
    scenario::{self, Controllers, Scenario},
    server::{echoes, slowest},
    world::World,
};

/// What becomes of the requests of some clients.
pub(crate) struct Proxy {
    endpoint: Endpoint<u32>,
    /// Its address.
    number: u32,
    most: usize,
    retransmit: RetransmitOptions,
    /// Requests that it has taken and not answered, by the numbers of the exchanges that it began for them.
    held: BTreeMap<u32, Held>,
    /// The numbers of exchanges that are open.
    open: BTreeMap<ExchangeId, u32>,
    begun: u32,
    /// What it keeps of answers, if anything.
    cache: Option<Cache<Answer>>,
    /// Which of those that it holds wait for the answer to another, if equal requests share one.
    flights: Option<Flights<CacheKey, u32>>,
    /// Which of them wait for their turn, if they are in a queue of their own and not in the endpoint's.
    queue: Option<Queue<u32>>,
    /// Answers that are messages of their own and have not left yet: for whom, their tokens, what they answer.
    answers: Vec<(u32, Token, Tag)>,
    /// The same once they have, until they are acknowledged.
    separate: BTreeMap<ExchangeId, Tag>,
    row: ProxyRow,
    /// The row as it was when the warm-up ended.
    before: ProxyRow,
}

/// What an endpoint told when it was drained.
#[derive(Default)]
struct Drained {
    taken: Option<Taken>,
    /// Packets that carry on the tag of what arrived.
    carried: u32,
}

impl Proxy {
    /// The proxy in this place of a scenario, with an address of its own.
    pub(crate) fn new(
        scenario: &Scenario,
        place: usize,
        number: u32,
        seed: ChanceSeed,
        (own, controller): (Transmission, PeerController),
        controllers: &[PeerController],
        groups: &[u32],
    ) -> Result<Self, RunError> {
        let described = &scenario.proxies[place];
        let behind = |group: &u32| scenario.proxy_of(&scenario.clients[*group as usize]) == Some(place);
        let theirs = scenario.clients.iter().zip(controllers).enumerate();
        let theirs = theirs.filter(|(group, _)| behind(&(*group as u32)));
        let theirs = theirs.map(|(_, (group, controller))| (transmission(group), controller.clone()));
        let (longest, prototype) = slowest(theirs.chain([(own, controller.clone())]));
        let clients: Vec<u32> =
            groups.iter().zip(0..).filter(|(group, _)| behind(group)).map(|(_, client)| client).collect();
        let open = scenario.clients.iter().filter(|group| scenario.proxy_of(group) == Some(place));
        let open = open.map(|group| group.count.saturating_mul(group.nstart.into())).fold(0, u32::saturating_add);
        let limits = Limits::default();
        let config = Config {
            transmission: Transmission { nstart: described.nstart, ..longest },
            duplicates: Duplicates::Stored,
            token_length: described.token_length.into(),
            naming: echoes(&scenario.server.echoes),
            limits: Limits {
                datagram: datagram(scenario),
                exchanges_per_peer: limits.exchanges_per_peer.max(described.nstart),
                waiting_per_peer: u16::MAX,
                ..limits.for_peers(open.saturating_add(1))
            },
            ..Config::default()
        };
        // The server has the random numbers behind the clients'.
        let node = number.wrapping_add(1);
        let mut endpoint = Endpoint::new(config, prototype, seed, node, IdGenerator::counted()).map_err(refused)?;
        for peer in clients.into_iter().chain([SERVER]) {
            let set = endpoint.set_controller(Instant::ORIGIN, peer, controller.clone());
            set.map_err(refused)?;
        }
        Ok(Self {
            endpoint,
            number,
            most: described.application_queue.map_or(usize::MAX, |most| most as usize),
            retransmit: RetransmitOptions {
                max_retransmit: Some(described.max_retransmit),
                ..RetransmitOptions::DEFAULT
            },
            held: BTreeMap::new(),
            open: BTreeMap::new(),
            begun: 0,
            cache: described.cache.map(|bytes| Cache::new(usize::try_from(bytes.0).unwrap_or(usize::MAX))),
            flights: described.coalesce.then(Flights::default),
            queue: described.queue.map(|most| Queue::new(described.nstart.into(), most as usize)),
            answers: Vec::new(),
            separate: BTreeMap::new(),
            row: ProxyRow { proxy: LinkName::from(described.name.as_str()), ..ProxyRow::default() },
            before: ProxyRow::default(),
        })
    }

    /// From now on its counts are those since now.
    pub(crate) fn warmed_up(&mut self) {
        self.before = self.row.clone();
        self.row.held_max = self.held.len() as u64;
    }

    pub(crate) fn into_row(mut self) -> ProxyRow {
        self.row.since(&self.before);
        self.row
    }

    /// The copy that brought the request which it began this exchange for.
    fn brought(&self, exchange: u32) -> Option<Tag> {
        Some(self.held.get(&exchange)?.tag)
    }

    /// Takes note of a packet to the server; gives its tag.
    fn asks(&mut self, cause: &Cause, length: u32, now: Instant) -> Tag {
        let tag = Tag::of(self.number, length, now);
        let (exchange, copy) = match *cause {
            Cause::Exchange { id, copy, .. } => (self.open.get(&id).copied(), copy),
            Cause::NonConfirmableRequest => {
                let unsent =
                    |held: &Held| held.taken.kind == Kind::NonConfirmable && held.copies == 0 && held.asked.is_some();
                (self.held.iter().find(|(_, held)| unsent(held)).map(|(number, _)| *number), 0)
            }
            _ => return tag,
        };
        let Some(exchange) = exchange else { return tag };
        self.row.transmissions += 1;
        self.row.retransmissions += u64::from(copy > 0);
        if let Some(held) = self.held.get_mut(&exchange) {
            held.copies = copy.saturating_add(1);
        }
        Tag { exchange, copy, ..tag }
    }

    /// The tag of a packet to a client, if it is not that of what is being handled, and whether it is one more of that tag.
    fn tells(&mut self, client: u32, bytes: &[u8], cause: &Cause) -> Option<(Tag, bool)> {
        match *cause {
            Cause::Exchange { id, copy, .. } => {
                if let Some(tag) = self.separate.get(&id) {
                    return Some((*tag, copy > 0));
                }
                let token = Message::parse(bytes).ok()?.token;
                let place = self.answers.iter().position(|(to, known, _)| *to == client && *known == token)?;
                let (_, _, tag) = self.answers.remove(place);
                self.separate.insert(id, tag);
                Some((tag, copy > 0))
            }
            // With the acknowledgement, or as a message that nobody acknowledges.
            Cause::Reply { repeated: false, .. } if !self.answers.is_empty() => {
                let token = Message::parse(bytes).ok()?.token;
                self.answers.retain(|(to, known, _)| (*to, *known) != (client, token));
                None
            }
            // It had half a second's time.
            Cause::Ack => {
                let id = Message::parse(bytes).ok()?.id;
                let held =
                    self.held.values().find(|Held { taken, .. }| (taken.client, taken.message_id) == (client, id))?;
                Some((held.tag, true))
            }
            _ => None,
        }
    }
}

/// What decides for how long copies of what a proxy asks may come.
pub(crate) fn parameters(
    described: &scenario::Proxy,
    place: usize,
    own: &dyn Controllers,
) -> Result<(Transmission, PeerController), RunError> {
    let built = described.controller.build(own);
    let controller = built.map_err(|why| RunError::Controller(format!("proxies[{place}].controller: {why}")))?;
    let (max_retransmit, nstart) = (described.max_retransmit, described.nstart);
    Ok((Transmission { max_retransmit, nstart, ..Transmission::default() }, controller))
}

impl World<'_> {
    /// What a proxy asked for with a copy of this tag came to the server.
    #[cold]
    pub(crate) fn brought_by(&mut self, place: usize, tag: &Tag, now: Instant) {
        let brought = self.nodes.proxies[place].brought(tag.exchange);
        self.ledger.delivered(brought.as_ref().unwrap_or(tag), now);
    }

    /// The place of the proxy that has this number, if it is one's.
    #[inline]
    pub(crate) fn proxy(&self, number: u32) -> Option<usize> {
        let place = number.checked_sub(self.nodes.first_proxy)? as usize;
        (place < self.nodes.proxies.len()).then_some(place)
    }

    /// The place of the proxy that something has arrived at, if it was not at a client or at the server.
    #[inline]
    pub(crate) fn proxy_at(&self, arrival: &Arrival) -> Option<usize> {
        if self.nodes.proxies.is_empty() {
            return None;
        }
        if arrival.to_client {
            return self.proxy(arrival.client);
        }
        let group = self.nodes.clients.get(arrival.client as usize)?.group();
        self.nodes.proxy_of_group[group as usize]
    }

    /// A datagram reaches a proxy.
    #[cold]
    pub(crate) fn datagram_to_proxy(&mut self, place: usize, now: Instant, arrival: &Arrival) -> Result<(), RunError> {
        let from = if arrival.to_client { SERVER } else { arrival.client };
        self.nodes.proxies[place].endpoint.receive(now, from, self.network.datagram());
        self.drain_proxy(place, now, Some(arrival))
    }

    /// Drains a proxy's endpoint; `arrival` is what was just handed to it.
    #[cold]
    pub(crate) fn drain_proxy(
        &mut self,
        place: usize,
        now: Instant,
        arrival: Option<&Arrival>,
    ) -> Result<(), RunError> {
        let brought = arrival.filter(|arrival| !arrival.to_client).map(|arrival| arrival.tag);
        let mut carried = 0;
        let mut ended = VecDeque::new();
        let mut due = VecDeque::new();
        // What it is answering, if not what has just arrived.
        let mut answering = None;
        let sleep = loop {
            let (drained, sleep) = self.poll_proxy(place, now, answering.or(brought), arrival, &mut ended);
            if answering.is_none() {
                carried += drained.carried;
            }
            if let Some(taken) = drained.taken {
                carried += u32::from(self.take_at_proxy(place, now, taken, brought.unwrap_or(Tag::of(0, 0, now)))?);
                continue;
            }
            if due.is_empty() {
                let Some(end) = ended.pop_front() else { break sleep };
                due = self.nodes.proxies[place].ended(now, end);
            }
            answering = match due.pop_front() {
                Some(Due::Answer(number, answer)) => self.answer_at_proxy(place, now, number, answer)?,
                Some(Due::Ask(number)) => self.nodes.proxies[place].ask(now, number).map(|_| None)?,
                None => None,
            };
        };
        self.calendar.set(self.nodes.proxies[place].number, sleep);
        if let Some(tag) = brought.filter(|tag| tag.exchange != NO_EXCHANGE) {
            match carried {
                0 => self.gone(&tag, now),
                1 => {}
                _ => self.ledger.branched(&tag, carried - 1),
            }
        }
        Ok(())
    }

    /// Sends what an endpoint has to send. What answers has the tag `of` what is being handled.
    fn poll_proxy(
        &mut self,
        place: usize,
        now: Instant,
        of: Option<Tag>,
        arrival: Option<&Arrival>,
        ended: &mut VecDeque<Ended>,
    ) -> (Drained, Instant) {
        let proxy = &mut self.nodes.proxies[place];
        let mut drained = Drained::default();
        loop {
            match proxy.endpoint.poll(now) {
                Output::Transmit(Transmit { to, bytes, cause }) => {
                    // The endpoint lends its buffers until the next call, and the books beside it are asked first.
                    let bytes = bytes.to_vec();
                    let length = self.network.length(&bytes);
                    self.transmissions += 1;
                    if to == SERVER {
                        let tag = proxy.asks(&cause, length, now);
                        self.network.send(now, proxy.number, SERVER, &bytes, &tag, &mut self.rec);
                        continue;
                    }
                    let tag = match proxy.tells(to, &bytes, &cause) {
                        Some((tag, is_more)) => {
                            if is_more {
                                self.ledger.branched(&tag, 1);
                            }
                            tag
                        }
                        None => {
                            drained.carried += 1;
                            of.unwrap_or(Tag::of(to, 0, now))
                        }
                    };
                    self.network.send(now, SERVER, to, &bytes, &Tag { flow: to, ..tag }, &mut self.rec);
                }
                Output::Event(Event::Request { from, id, message }) => {
                    drained.taken = Some(Taken::of(from, id, &message));
                }
                Output::Event(Event::Response { exchange, message, .. }) => {
                    ended.push_back(Ended { exchange, answer: Some(Answer::of(&message)) });
                    let Some(arrival) = arrival else { continue };
                    let (number, tag) = (proxy.number, arrival.tag);
                    if tag.flow == number
                        && let Some(held) = proxy.held.get(&tag.exchange)
                    {
                        proxy.row.unnecessary += u64::from(held.copies.saturating_sub(tag.copy.saturating_add(1)));
                        self.network.useful_request(number, SERVER, &tag, &mut self.rec);
                        self.network.useful(SERVER, number, arrival.length, &mut self.rec);
                    }
                }
                Output::Event(Event::Failed { exchange, .. }) => ended.push_back(Ended { exchange, answer: None }),
                Output::Event(Event::Delivered { exchange, .. } | Event::Undelivered { exchange, .. }) => {
                    proxy.separate.remove(&exchange);
                }
                Output::Event(_) => {}
                Output::Sleep(at, _) => return (drained, at),
                Output::Idle => return (drained, Instant::NEVER),
            }
        }
    }

    /// A proxy takes a request that the copy with this tag brought; false if it has answered it at once.
    fn take_at_proxy(&mut self, place: usize, now: Instant, taken: Taken, tag: Tag) -> Result<bool, RunError> {
        let (id, kind) = (taken.id, taken.kind);
        let fate = self.nodes.proxies[place].take(now, taken, tag)?;
        if matches!(fate, Fate::Shared | Fate::Cached(_)) {
            // It goes no further.
            self.ledger.delivered(&tag, now);
        }
        let (Fate::Cached(answer) | Fate::Refused(answer)) = fate else { return Ok(true) };
        self.nodes.proxies[place].respond(now, id, kind, &answer).map(|()| false).map_err(refused)
    }

    /// A proxy answers the request of a client, by 5.04 where there is no answer in time; gives the tag of what it answers.
    fn answer_at_proxy(
        &mut self,
        place: usize,
        now: Instant,
        number: u32,
        answer: Option<Answer>,
    ) -> Result<Option<Tag>, RunError> {
        let proxy = &mut self.nodes.proxies[place];
        let Some(Held { taken, tag, .. }) = proxy.held.remove(&number) else { return Ok(None) };
        *(if answer.is_some() { &mut proxy.row.answered } else { &mut proxy.row.failed }) += 1;
        // RFC 7252 §5.7.1.
        let answer = answer.unwrap_or_else(|| Answer::own(Code::GATEWAY_TIMEOUT));
        let Taken { client, id, kind, token, .. } = taken;
        proxy.answers.retain(|(to, known, _)| (*to, *known) != (client, token));
        match proxy.respond(now, id, kind, &answer) {
            Ok(()) => proxy.answers.push((client, token, tag)),
            // So late that nobody waits for it any more.
            Err(Refused::UnknownRequest) => self.gone(&tag, now),
            Err(why) => return Err(refused(why)),
        }
        Ok(Some(tag))
    }
}

/// What a proxy was to do is no way to go on.
#[cold]
fn refused(why: impl ToString) -> RunError {
    RunError::Endpoint("a proxy", why.to_string())
}
