//! Clients that go down and come back.

use millpond_coap::{Endpoint, Output};
use millpond_control::Instant;

use crate::{
    RunError,
    application::Moment,
    bodies::stack,
    network::SERVER,
    population::{datagram, restarted_endpoint},
    scenario::Memory,
    world::{Client, World},
};

/// So many endpoints that forgot everything are kept as patterns.
const MOST_RESTARTED: usize = 64;

impl World<'_> {
    /// What the timeline does to a client that wakes.
    #[cold]
    pub(crate) fn restarts(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        loop {
            let draws = self.draws(flow);
            let client = &mut self.nodes.clients[flow as usize];
            let profile = &self.groups.profiles[client.group() as usize];
            match client.application().moment(now, profile, draws) {
                None => return Ok(()),
                Some(Moment::Down) => self.goes_down(flow, now),
                Some(Moment::Up { event, memory }) => self.comes_up(flow, now, event, memory)?,
            }
        }
    }

    /// A client goes down: what is open is lost.
    fn goes_down(&mut self, flow: u32, now: Instant) {
        let requests: Vec<u32> = match &mut self.nodes.clients[flow as usize] {
            Client::Device(device) => {
                device.end_flight(|_| true);
                for id in self.ledger.open_ids(flow) {
                    device.endpoint.cancel(now, id);
                    // Whatever it still wants to say, it is off.
                    while !matches!(device.endpoint.poll(now), Output::Sleep(..) | Output::Idle) {}
                }
                self.ledger.abandon_all(flow)
            }
            Client::Bodies(device) => {
                device.goes_down(now);
                self.ledger.abandon_all(flow)
            }
            Client::Stream(client) => {
                client.hang_up();
                (client.open, client.ask_at) = (None, None);
                self.ledger.abandon_all(flow).into_iter().chain(client.due.take().map(|due| due.request)).collect()
            }
        };
        for request in requests {
            self.end(flow, request, false, now);
        }
        let draws = self.draws(flow);
        let client = &mut self.nodes.clients[flow as usize];
        let profile = &self.groups.profiles[client.group() as usize];
        client.application().went_down(now, profile, draws, &mut self.ledger);
    }

    /// A client is up again. One that fetches in bursts begins with another endpoint in any case: some of its messages may be
    /// confirmable, of which copies would leave still. What its controller has learnt goes on there if it is kept.
    fn comes_up(&mut self, flow: u32, now: Instant, event: u16, memory: Memory) -> Result<(), RunError> {
        let forgets = memory != Memory::Kept;
        let draws = self.draws(flow);
        let client = &mut self.nodes.clients[flow as usize];
        let profile = &self.groups.profiles[client.group() as usize];
        if forgets {
            client.application().forgot(profile, draws);
        }
        if matches!(client, Client::Stream(_)) || !(forgets || client.is_burst()) {
            return Ok(());
        }
        self.remember(flow, memory);
        let mut endpoint = self.restarted(flow, event)?;
        match &mut self.nodes.clients[flow as usize] {
            Client::Device(device) => device.renew(endpoint),
            Client::Bodies(device) => {
                if let Some(controller) = device.stack.endpoint().controller(SERVER).filter(|_| !forgets) {
                    let set = endpoint.set_controller(now, SERVER, controller);
                    set.map_err(|why| RunError::Refused(flow, why.to_string()))?;
                }
                let transfer = &self.scenario.clients[device.group as usize].transfer;
                // Tokens begin elsewhere as well.
                device.stack = stack(endpoint, transfer, self.seed.part(u64::from(event)))?;
            }
            Client::Stream(_) => {}
        }
        self.recall(flow, now, memory)
    }

    /// A client begins a batch after another.
    pub(crate) fn begins_batch(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        let Some(client) = self.nodes.clients.get(flow as usize) else { return Ok(()) };
        let memory = self.groups.profiles[client.group() as usize].clients.batch.memory;
        if memory == Memory::Kept {
            return Ok(());
        }
        self.remember(flow, memory);
        self.nodes.clients[flow as usize].forget(now);
        self.recall(flow, now, memory)
    }

    /// What a client has measured outlives what comes now, if so much is remembered. An older figure stays as long as there is
    /// no other.
    fn remember(&mut self, flow: u32, memory: Memory) {
        if let Some(base_rtt) = self.nodes.clients[flow as usize].base_rtt().filter(|_| memory == Memory::BaseRtt) {
            self.nodes.remembered.insert(flow, base_rtt);
        }
    }

    fn recall(&mut self, flow: u32, now: Instant, memory: Memory) -> Result<(), RunError> {
        match self.nodes.remembered.get(&flow).filter(|_| memory == Memory::BaseRtt) {
            None => Ok(()),
            Some(base_rtt) => {
                self.nodes.clients[flow as usize].recall(now, *base_rtt).map_err(|why| RunError::Refused(flow, why))
            }
        }
    }

    /// The endpoint of a client that has forgotten everything at an event.
    fn restarted(&mut self, flow: u32, event: u16) -> Result<Endpoint<u32>, RunError> {
        let group = self.nodes.clients[flow as usize].group() as usize;
        if let Some((_, one)) = self.groups.restarted.iter().rev().find(|(whose, _)| *whose == (group, event)) {
            return self.nodes.contexts.protect(flow, one.sibling(flow));
        }
        let (controller, size) = (self.groups.controllers[group].clone(), datagram(self.scenario));
        let described = &self.scenario.clients[group];
        let one = restarted_endpoint(described, controller, size, self.seed, u32::from(event))?;
        let endpoint = self.nodes.contexts.protect(flow, one.sibling(flow))?;
        // Who comes back later than this many others have gone is made an endpoint of its own.
        if self.groups.restarted.len() > MOST_RESTARTED {
            self.groups.restarted.remove(0);
        }
        self.groups.restarted.push(((group, event), one));
        Ok(endpoint)
    }
}
