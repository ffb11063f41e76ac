//! The server: the stack that ships and an application that answers every request alike.

use std::collections::VecDeque;

use millpond_coap::{
    Config, Duplicates, Endpoint, IdGenerator, Lifetimes, Limits, NamingOption, NamingOptions, Refused, RequestId,
    Transmission,
    block::BlockSize,
    message::{Code, Kind, Token, number},
    transfer::{self, Answer, CoapStack, SharedBody},
};
use millpond_control::{ChanceSeed, Instant, PeerController, Preset, Span};

use crate::{
    RunError,
    calendar::Calendar,
    calls::Callers,
    ledger::Tag,
    oscore::Contexts,
    population::{datagram, interleave, transmission},
    scenario::{self, Clients, Echo, Scenario, Size},
    stream_end::{StreamAsked, StreamServer},
};

/// A request that the application has been handed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) id: RequestId,
    pub(crate) kind: Kind,
    pub(crate) code: Code,
    /// The group of its client.
    pub(crate) group: u32,
    /// The place of its resource among those that answer this group otherwise than as usual.
    pub(crate) resource: Option<u16>,
    /// Who registers for notifications by it, and the token of these.
    pub(crate) observes: Option<(u32, Token)>,
}

/// What it answers.
pub(crate) struct Bodies {
    /// What each group gets as usual.
    of_groups: Vec<SharedBody>,
    /// What others do: they are behind proxies.
    of_others: SharedBody,
    /// Of each group the resources that answer otherwise, by the segments of their paths.
    own: Vec<Vec<(Vec<String>, SharedBody)>>,
    has_own: bool,
}

impl Bodies {
    fn of(scenario: &Scenario) -> Self {
        let body = |size: Size| SharedBody::new(vec![b'.'; size.0 as usize]);
        // Groups without a body of their own share one.
        let whole = body(scenario.server.payload);
        let body_for = |group: &Clients, size: Size| body(Size(group.protection.padded_response(size.0)));
        let own = |group: &Clients| {
            scenario.own_bodies(group).into_iter().map(|(path, size)| (path, body_for(group, size))).collect()
        };
        let own: Vec<Vec<_>> = scenario.clients.iter().map(own).collect();
        let usual = |group: &Clients| match group.response_payload {
            None if group.protection.is_none() => whole.clone(),
            own => body_for(group, own.unwrap_or(scenario.server.payload)),
        };
        Self {
            of_groups: scenario.clients.iter().map(usual).collect(),
            has_own: own.iter().any(|own| !own.is_empty()),
            own,
            of_others: whole,
        }
    }

    /// The place of a resource among those that answer this group otherwise than as usual.
    #[inline]
    pub(crate) fn resource<'p>(&self, group: u32, path: impl Iterator<Item = &'p [u8]> + Clone) -> Option<u16> {
        if !self.has_own {
            return None;
        }
        let own = self.own.get(group as usize)?;
        let is = |(known, _): &(Vec<String>, _)| known.iter().map(String::as_bytes).eq(path.clone());
        own.iter().position(is).map(|place| place as u16)
    }

    fn body(&self, group: u32, resource: Option<u16>) -> &SharedBody {
        let own = resource.and_then(|place| self.own.get(group as usize)?.get(usize::from(place)));
        own.map_or_else(|| self.of_groups.get(group as usize).unwrap_or(&self.of_others), |(_, body)| body)
    }
}

/// The server and what it is working on.
pub(crate) struct Server {
    pub(crate) stack: CoapStack<Endpoint<u32>>,
    pub(crate) host_time: Span,
    pub(crate) content_format: Vec<u8>,
    bodies: Bodies,
    /// The size in which each group gets the body, if not whole.
    sizes: Vec<Option<BlockSize>>,
    /// Requests that the application is working on, and when it is done.
    /// With the copies that brought them.
    working: VecDeque<(Instant, Asked, Tag)>,
    /// What becomes of copies later on, and when.
    changes: VecDeque<(Instant, Duplicates)>,
    /// When the stack, or the application, wants to go on.
    pub(crate) wakes: Instant,
    /// The ends of connections, one for each client over TCP, and their wake-ups.
    pub(crate) streams: Vec<StreamServer>,
    pub(crate) stream_calendar: Calendar,
    /// What it does by itself.
    pub(crate) callers: Callers,
}

impl Server {
    pub(crate) fn new(
        scenario: &Scenario,
        seed: ChanceSeed,
        controllers: &[PeerController],
        contexts: &Contexts,
        streams: Vec<StreamServer>,
        callers: Callers,
        proxies: Vec<(Transmission, PeerController)>,
    ) -> Result<Self, RunError> {
        let clients = scenario.client_count() as u32;
        let peers = clients + proxies.len() as u32;
        let described = &scenario.server;
        let clients_of = scenario.clients.iter().map(transmission).zip(controllers.iter().cloned());
        let (transmission, controller) = slowest(clients_of.chain(proxies));
        let holds_back = !callers.is_empty() || scenario.clients.iter().any(|group| !group.confirmable);
        let config = Config {
            transmission: Transmission { nstart: described.nstart, ..transmission },
            duplicates: policy(described.duplicates),
            token_length: described.token_length.into(),
            naming: echoes(&described.echoes),
            // Above the longest time that a scenario lets a server think: every response is piggybacked.
            ack_delay: Span::from_secs(2),
            // The laboratory's server forgets nobody: eviction would be a result of the bound, not of the scenario.
            limits: Limits {
                datagram: datagram(scenario),
                exchanges_per_peer: Limits::default().exchanges_per_peer.max(described.nstart),
                // What its controller holds back waits in the endpoint.
                waiting_per_peer: if holds_back { u16::MAX } else { Limits::default().waiting_per_peer },
                ..Limits::default().for_peers(peers)
            },
            ..Config::default()
        };
        let endpoint = Endpoint::new(config, controller, seed, clients, IdGenerator::counted()).map_err(refused)?;
        let stack = stack(contexts.protect_server(endpoint), scenario, seed)?;
        let format = described.content_format.to_be_bytes();
        let zeros = format.iter().take_while(|byte| **byte == 0).count();
        Ok(Self {
            stack,
            host_time: described.host_time.span(),
            content_format: format[zeros..].to_vec(),
            bodies: Bodies::of(scenario),
            sizes: scenario.clients.iter().map(|group| group.transfer.block_size()).collect(),
            working: VecDeque::new(),
            changes: scenario.timeline.iter().filter_map(change).collect(),
            wakes: Instant::NEVER,
            stream_calendar: Calendar::new(streams.len()),
            streams,
            callers,
        })
    }

    /// Does what the timeline says by `now`.
    #[inline]
    pub(crate) fn change(&mut self, now: Instant) {
        while let Some(&(_, duplicates)) = self.changes.front().filter(|(at, _)| *at <= now) {
            self.stack.endpoint_mut().set_duplicates(duplicates);
            self.changes.pop_front();
        }
    }

    /// It has this controller for what it sends to a client by itself.
    pub(crate) fn controlled_by(&mut self, client: u32, controller: &PeerController) -> Result<(), RunError> {
        let set = self.stack.endpoint_mut().set_controller(Instant::ORIGIN, client, controller.clone());
        set.map_err(refused)
    }

    /// The stack, what it sends by itself and what it answers, apart from each other.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&mut CoapStack<Endpoint<u32>>, &mut Callers, &Bodies) {
        (&mut self.stack, &mut self.callers, &self.bodies)
    }

    /// The ends of connections and what it answers, apart from each other.
    pub(crate) fn answering(&mut self) -> (&mut [StreamServer], &Bodies) {
        (&mut self.streams, &self.bodies)
    }

    /// The application takes a request that the copy with this tag brought: answers at once, or begins to work on it; whether
    /// it did the former.
    pub(crate) fn take(&mut self, now: Instant, asked: &Asked, tag: &Tag) -> Result<bool, RunError> {
        if self.host_time == Span::ZERO {
            return self.answer(now, asked).map(|()| true);
        }
        self.working.push_back((now.after(self.host_time), *asked, *tag));
        Ok(false)
    }

    /// Answers the first request that is done at or before `now`; returns the copy that brought it.
    pub(crate) fn finish(&mut self, now: Instant) -> Result<Option<Tag>, RunError> {
        let Some(&(_, asked, tag)) = self.working.front().filter(|(due, ..)| *due <= now) else { return Ok(None) };
        self.working.pop_front();
        self.answer(now, &asked)?;
        Ok(Some(tag))
    }

    /// When the application is done with a request next.
    pub(crate) fn next_done(&self) -> Instant {
        self.working.front().map_or(Instant::NEVER, |(due, ..)| *due)
    }

    /// Answers a request that came over a connection.
    pub(crate) fn answer_stream(
        &mut self,
        now: Instant,
        place: usize,
        group: u32,
        asked: &StreamAsked,
    ) -> Result<(), RunError> {
        let Some(end) = &mut self.streams[place].end else { return Ok(()) };
        let options = [(number::CONTENT_FORMAT, &self.content_format[..])];
        let code = if asked.is_get { Code::CONTENT } else { Code::CHANGED };
        let body = self.bodies.body(group, asked.resource);
        let answer = Answer::new(code, &options).with_shared_body(body);
        end.coap.answer(now, asked.id, &answer).map_err(refused)
    }

    fn answer(&mut self, now: Instant, asked: &Asked) -> Result<(), RunError> {
        let options = [(number::OBSERVE, &[][..]), (number::CONTENT_FORMAT, &self.content_format[..])];
        let code = if asked.code == Code::GET { Code::CONTENT } else { Code::CHANGED };
        let options = &options[usize::from(asked.observes.is_none())..];
        let body = self.bodies.body(asked.group, asked.resource);
        let size = self.sizes.get(asked.group as usize).copied().flatten();
        let answer = Answer { block: size, is_piece: size.is_none(), ..Answer::new(code, options) };
        match self.stack.answer(now, asked.id, &answer.with_shared_body(body)) {
            // It cannot leave at once, so it is lost.
            Err(transfer::Refused::Endpoint(Refused::NoMessageId { .. })) if asked.kind == Kind::NonConfirmable => {
                Ok(())
            }
            answered => answered.map_err(refused),
        }?;
        if let Some((client, token)) = asked.observes {
            self.stack.endpoint_mut().hold_token(client, token, true);
            if let Some(before) = self.callers.observes(client, token) {
                self.stack.endpoint_mut().hold_token(client, before, false);
            }
        }
        Ok(())
    }
}

/// The stack that ships, with what this scenario needs of it.
fn stack(endpoint: Endpoint<u32>, scenario: &Scenario, seed: ChanceSeed) -> Result<CoapStack<Endpoint<u32>>, RunError> {
    let groups = &scenario.clients;
    let parameters = |group: u32| groups[group as usize].transfer.burst_parameters();
    let body = scenario.longest_body().0 as usize;
    let in_bursts = groups.iter().filter(|group| group.transfer.is_in_bursts());
    let in_bursts = in_bursts.map(|group| group.count).fold(1, u32::saturating_add).saturating_mul(4);
    let config = transfer::Config {
        q_block: groups.iter().find_map(|group| group.transfer.burst_parameters()),
        // Of the options of a response the scenario says all.
        etag_length: 0,
        // The laboratory's server turns nobody away, and whatever it is asked for its application answers: it keeps nothing
        // but what bursts may have lost.
        limits: transfer::Limits {
            bodies: (body + 4_096).saturating_mul(in_bursts as usize),
            bursts: in_bursts,
            cached: 0,
            ..transfer::Limits::DEFAULT
        },
        ..transfer::Config::DEFAULT
    };
    let mut stack = CoapStack::new(endpoint, config, seed).map_err(refused)?;
    if config.q_block.is_some() {
        for (client, parameters) in interleave(groups).into_iter().map(parameters).enumerate() {
            if let Some(parameters) = parameters {
                stack.set_q_block(client as u32, parameters).map_err(refused)?;
            }
        }
    }
    Ok(stack)
}

/// What the server was to do is no way to go on.
#[cold]
fn refused(why: impl ToString) -> RunError {
    RunError::Endpoint("the server", why.to_string())
}

/// What the endpoint calls it.
const fn policy(described: scenario::Duplicates) -> Duplicates {
    match described {
        scenario::Duplicates::Stored => Duplicates::Stored,
        scenario::Duplicates::Afresh => Duplicates::Afresh,
        scenario::Duplicates::Calm => Duplicates::Calm,
    }
}

/// What an event changes about copies, and when.
fn change(event: &scenario::Event) -> Option<(Instant, Duplicates)> {
    match event {
        scenario::Event::Server { at, duplicates, .. } => Some((Instant::from_micros(at.0), policy(*duplicates))),
        _ => None,
    }
}

/// The options that name copies, with the ones that the server knows.
pub(crate) fn echoes(known: &[Echo]) -> NamingOptions {
    let told = |option, echo| NamingOption { echoed: known.contains(&echo), ..option };
    let NamingOptions { count, flag, timestamp } = NamingOptions::default();
    NamingOptions {
        count: told(count, Echo::Count),
        flag: told(flag, Echo::Flag),
        timestamp: told(timestamp, Echo::Timestamp),
    }
}

/// Parameters and controller of those whose exchanges can last longest: a server must know a copy for as long as one
/// may come.
pub(crate) fn slowest(who: impl Iterator<Item = (Transmission, PeerController)>) -> (Transmission, PeerController) {
    who.max_by_key(|(transmission, controller)| Lifetimes::of(controller, transmission).exchange)
        .unwrap_or((Transmission::default(), Preset::RFC7252.build().into()))
}
