//! What the server stands on: the stack that ships where there are bodies of several messages; its endpoint alone where there are
//! none: of no use to single messages, a stack would take 42 % more instructions for an event of the collapse run (747, not 526).

use millpond_coap::{
    Endpoint, Event, Output, RequestId, Transmit,
    message::Message,
    transfer::{self, CoapStack, Config, Limits},
};
use millpond_control::{ChanceSeed, Instant};

use crate::{RunError, population::interleave, scenario::Scenario};

#[expect(clippy::large_enum_variant, reason = "there is one, and an endpoint alone is at hand this way")]
pub(crate) enum Below {
    Endpoint(Endpoint<u32>),
    Stack(Box<CoapStack<Endpoint<u32>>>),
}

/// What it says.
pub(crate) enum Said<'s> {
    Transmit(Transmit<'s, u32>),
    /// A request for the application.
    Request {
        id: RequestId,
        from: u32,
        message: Message<'s>,
    },
    Told(Event<'s, u32>),
    /// Something that is of no use here.
    Nothing,
    /// Nothing until then.
    Sleep(Instant),
}

impl Below {
    /// What this scenario needs above an endpoint.
    pub(crate) fn new(endpoint: Endpoint<u32>, scenario: &Scenario, seed: ChanceSeed) -> Result<Self, RunError> {
        let groups = &scenario.clients;
        if groups.iter().all(|group| group.transfer.is_whole()) {
            return Ok(Self::Endpoint(endpoint));
        }
        let parameters = |group: u32| groups[group as usize].transfer.burst_parameters();
        let body = scenario.longest_body().0 as usize;
        let in_bursts = groups.iter().filter(|group| group.transfer.is_in_bursts());
        let in_bursts = in_bursts.map(|group| group.count).fold(1, u32::saturating_add).saturating_mul(4);
        let config = Config {
            q_block: groups.iter().find_map(|group| group.transfer.burst_parameters()),
            // Of the options of a response the scenario says all.
            etag_length: 0,
            // The laboratory's server turns nobody away, and whatever it is asked for its application answers: it keeps nothing
            // but what bursts may have lost.
            limits: Limits {
                bodies: (body + 4_096).saturating_mul(in_bursts as usize),
                bursts: in_bursts,
                cached: 0,
                ..Limits::DEFAULT
            },
            ..Config::DEFAULT
        };
        let refused = |why: transfer::ConfigError| RunError::Endpoint("the server", why.to_string());
        let mut stack = CoapStack::new(endpoint, config, seed).map_err(refused)?;
        for (client, parameters) in interleave(groups).into_iter().map(parameters).enumerate() {
            if let Some(parameters) = parameters {
                stack.set_q_block(client as u32, parameters).map_err(refused)?;
            }
        }
        Ok(Self::Stack(Box::new(stack)))
    }

    #[inline]
    pub(crate) fn endpoint(&self) -> &Endpoint<u32> {
        match self {
            Self::Endpoint(endpoint) => endpoint,
            Self::Stack(stack) => stack.endpoint(),
        }
    }

    #[inline]
    pub(crate) fn endpoint_mut(&mut self) -> &mut Endpoint<u32> {
        match self {
            Self::Endpoint(endpoint) => endpoint,
            Self::Stack(stack) => stack.endpoint_mut(),
        }
    }

    /// Input: a datagram came in.
    #[inline]
    pub(crate) fn receive(&mut self, now: Instant, from: u32, datagram: &[u8]) {
        match self {
            Self::Endpoint(endpoint) => endpoint.receive(now, from, datagram),
            Self::Stack(stack) => stack.receive(now, from, datagram),
        }
    }

    /// Until when nothing would come of polling, where that is known without doing so.
    #[inline]
    pub(crate) fn quiet_until(&mut self, now: Instant) -> Option<Instant> {
        match self {
            Self::Endpoint(endpoint) => endpoint.quiet_until(now),
            Self::Stack(_) => None,
        }
    }

    /// The next output.
    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Said<'_> {
        match self {
            Self::Endpoint(endpoint) => match endpoint.poll(now) {
                Output::Transmit(transmit) => Said::Transmit(transmit),
                Output::Event(Event::Request { id, from, message }) => Said::Request { id, from, message },
                Output::Event(event) => Said::Told(event),
                Output::Sleep(until, _) => Said::Sleep(until),
                Output::Idle => Said::Sleep(Instant::NEVER),
            },
            Self::Stack(stack) => Self::poll_stack(stack, now),
        }
    }

    #[inline(never)]
    fn poll_stack(stack: &mut CoapStack<Endpoint<u32>>, now: Instant) -> Said<'_> {
        match stack.poll(now) {
            Output::Transmit(transmit) => Said::Transmit(transmit),
            Output::Event(transfer::Event::Request { id, from, message, .. }) => Said::Request { id, from, message },
            Output::Event(_) => Said::Nothing,
            Output::Trace(event) => Said::Told(event),
            Output::Sleep(until, _) => Said::Sleep(until),
            Output::Idle => Said::Sleep(Instant::NEVER),
        }
    }
}
