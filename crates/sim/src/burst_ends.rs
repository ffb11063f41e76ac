//! The server's side of all transfers in bursts.

use std::collections::VecDeque;

use millpond_coap::{
    Endpoint, Event,
    block::robust::{
        AnswerRefused, BurstAnswer, BurstLimits, BurstOptions, BurstRequestId, BurstServer, ServerAct, ServerTold,
    },
    message::{Code, number},
};
use millpond_control::{ChanceSeed, Instant, Span};

use crate::scenario::{Clients, Scenario};

/// How the server's side of a group's transfers behaves; nothing if it has none.
fn options(scenario: &Scenario, clients: &Clients) -> Option<BurstOptions> {
    let parameters = clients.transfer.burst_parameters()?;
    let body = scenario.server.payload.0 as usize;
    Some(BurstOptions {
        parameters,
        size: clients.transfer.block_size()?,
        tag_length: 1,
        // The laboratory's server turns nobody away.
        limits: BurstLimits {
            body: body.max(1),
            bodies: clients.count as usize * 4,
            bodies_per_peer: 4,
            requests: clients.count as usize * 4,
            bytes: (body + 4_096) * (clients.count as usize + 1) * 4,
            peers: clients.count as usize + 1,
        },
        ..BurstOptions::default()
    })
}

/// The server's side of all transfers in bursts.
pub(crate) struct BurstSide {
    /// By group of clients.
    servers: Vec<Option<BurstServer<u32>>>,
    host_time: Span,
    /// Requests that the application is working on, and when it is done.
    working: VecDeque<(Instant, usize, BurstRequestId)>,
}

/// What the side wants next.
pub(crate) enum Next {
    /// It put something into the endpoint.
    Again,
    /// Nothing until then.
    Sleep(Instant),
}

impl BurstSide {
    /// Nothing if nobody fetches in bursts.
    pub(crate) fn new(scenario: &Scenario, seed: ChanceSeed, node: u32) -> Option<Self> {
        let server = |clients| options(scenario, clients).map(|options| BurstServer::new(options, seed, node));
        let servers: Vec<_> = scenario.clients.iter().map(server).collect();
        let host_time = scenario.server.host_time.span();
        servers.iter().any(Option::is_some).then_some(Self { servers, host_time, working: VecDeque::new() })
    }

    /// Something that the endpoint told about a client of this group; true if nobody else need look at it.
    #[inline(never)]
    pub(crate) fn take(&mut self, now: Instant, group: u32, event: &Event<'_, u32>) -> bool {
        self.servers.get_mut(group as usize).and_then(Option::as_mut).is_some_and(|server| server.take(now, event))
    }

    /// What comes next, once the endpoint is drained.
    #[inline(never)]
    pub(crate) fn act(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint<u32>,
        content_format: &[u8],
        body: &[u8],
    ) -> Result<Next, AnswerRefused> {
        while let Some(&(_, group, id)) = self.working.front().filter(|(due, ..)| *due <= now) {
            self.working.pop_front();
            if let Some(server) = &mut self.servers[group] {
                let options = [(number::CONTENT_FORMAT, content_format)];
                server.answer(now, id, &BurstAnswer { code: Code::CONTENT, options: &options, body })?;
            }
        }
        let mut sleep = Instant::NEVER;
        for (group, server) in self.servers.iter_mut().enumerate() {
            let Some(server) = server else { continue };
            match server.act(now, endpoint) {
                ServerAct::Again => return Ok(Next::Again),
                ServerAct::Told(ServerTold::Request { id, .. }) => {
                    self.working.push_back((now.after(self.host_time), group, id));
                    return Ok(Next::Again);
                }
                ServerAct::Sleep(until) => sleep = sleep.min(until),
                ServerAct::Idle => {}
            }
        }
        Ok(Next::Sleep(self.working.front().map_or(sleep, |(due, ..)| sleep.min(*due))))
    }
}
