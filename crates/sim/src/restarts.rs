//! Clients that go down and come back.

use millpond_coap::Output;
use millpond_control::Instant;

use crate::{
    RunError,
    application::Moment,
    burst_ends,
    population::{datagram, restarted_endpoint},
    world::{Client, World},
};

impl World<'_> {
    /// What the timeline does to a client that wakes.
    pub(crate) fn restarts(&mut self, flow: u32, now: Instant) -> Result<(), RunError> {
        loop {
            let luck = self.luck(flow);
            let client = &mut self.clients[flow as usize];
            let conduct = &self.conducts[client.group() as usize];
            match client.application().moment(now, conduct, luck) {
                None => return Ok(()),
                Some(Moment::Down) => self.goes_down(flow, now),
                Some(Moment::Up { forgot: None }) => {}
                Some(Moment::Up { forgot: Some(event) }) => self.forgets(flow, event)?,
            }
        }
    }

    /// A client goes down: what is open is lost.
    fn goes_down(&mut self, flow: u32, now: Instant) {
        let requests: Vec<u32> = match &mut self.clients[flow as usize] {
            Client::Device(device) => {
                for id in self.ledger.open_ids(flow) {
                    device.endpoint.cancel(now, id);
                    // Whatever it still wants to say, it is off.
                    while !matches!(device.endpoint.poll(now), Output::Sleep(..) | Output::Idle) {}
                }
                device.give_up();
                self.ledger.abandon_all(flow)
            }
            Client::Stream(client) => {
                client.hang_up();
                (client.open, client.ask_at) = (None, None);
                self.ledger.abandon_all(flow).into_iter().chain(client.due.take().map(|due| due.request)).collect()
            }
            Client::Burst(device) => {
                device.due = None;
                self.ledger.abandon_all(flow)
            }
        };
        for request in requests {
            self.end(flow, request, false, now);
        }
        let luck = self.luck(flow);
        let client = &mut self.clients[flow as usize];
        let conduct = &self.conducts[client.group() as usize];
        client.application().went_down(now, conduct, luck, &mut self.ledger);
    }

    /// A client has forgotten all it knew of its server.
    fn forgets(&mut self, flow: u32, event: u8) -> Result<(), RunError> {
        let client = &mut self.clients[flow as usize];
        let group = client.group() as usize;
        let described = &self.scenario.clients[group];
        if !described.transport.is_udp() {
            return Ok(());
        }
        let known = self.restarted.iter().find(|(whose, _)| *whose == (group, event)).map(|(_, one)| one.sibling(flow));
        let endpoint = match known {
            Some(endpoint) => endpoint,
            None => {
                let (controller, size) = (self.controllers[group].clone(), datagram(self.scenario));
                let one = restarted_endpoint(described, controller, size, self.seed, u32::from(event))?;
                let endpoint = one.sibling(flow);
                self.restarted.push(((group, event), one));
                endpoint
            }
        };
        match client {
            Client::Device(device) => device.endpoint = endpoint,
            Client::Burst(device) => {
                device.endpoint = endpoint;
                if let Some(options) = burst_ends::options(self.scenario, described) {
                    device.bursts = millpond_coap::block::robust::BurstClient::new(options, self.seed, flow);
                }
            }
            Client::Stream(_) => {}
        }
        Ok(())
    }
}
