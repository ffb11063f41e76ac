//! The two ends of transfers in bursts: a client that asks for whole bodies, and the server's side of all of them.

use std::collections::VecDeque;

use millpond_coap::{
    Endpoint, Event,
    block::{
        Block,
        robust::{
            AnswerRefused, BurstAnswer, BurstLimits, BurstOptions, BurstParameters, BurstRequestId, BurstServer,
            ServerAct, ServerTold,
        },
    },
    message::{Code, Message, number},
};
use millpond_control::{ChanceSeed, Instant, Span};

use crate::{
    application::Application,
    outcome::FlowRow,
    scenario::{Bursts, Clients, Scenario, Transfer},
    workload::{Conduct, Due},
};

/// A client over UDP that fetches bodies in bursts, and what it has done so far.
pub(crate) struct BurstDevice {
    pub(crate) endpoint: Endpoint<u32>,
    pub(crate) bursts: millpond_coap::block::robust::BurstClient<u32>,
    pub(crate) application: Application,
    pub(crate) group: u32,
    /// The request under way.
    pub(crate) due: Option<Due>,
    /// When the first message of the request under way left.
    pub(crate) sent: Option<Instant>,
    /// Requests made.
    pub(crate) asked: u32,
    /// Messages that it sent.
    pub(crate) messages: u32,
    pub(crate) late: u32,
    /// Blocks of the body under way that the server sent, and that came.
    pub(crate) offered: Marks,
    pub(crate) arrived: Marks,
}

/// Which blocks of a body were seen.
#[derive(Default)]
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    /// Marks a block; false if it was marked before.
    pub(crate) fn mark(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let before = self.0[word];
        self.0[word] |= bit;
        before & bit == 0
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The number of the block that a response of a transfer in bursts carries.
pub(crate) fn block_of(bytes: &[u8]) -> Option<u32> {
    let message = Message::parse(bytes).ok()?;
    let value = message.option(number::Q_BLOCK2).filter(|_| !message.payload().is_empty())?;
    Block::read(value, false).ok().map(|block| block.number)
}

impl BurstDevice {
    pub(crate) fn new(
        endpoint: Endpoint<u32>,
        application: Application,
        options: BurstOptions,
        seed: ChanceSeed,
        flow: u32,
        group: u32,
    ) -> Self {
        Self {
            endpoint,
            bursts: millpond_coap::block::robust::BurstClient::new(options, seed, flow),
            application,
            group,
            due: None,
            sent: None,
            asked: 0,
            messages: 0,
            late: 0,
            offered: Marks::default(),
            arrived: Marks::default(),
        }
    }

    /// A request begins.
    pub(crate) fn begin(&mut self, due: Due) {
        self.due = Some(due);
        self.asked += 1;
        self.sent = None;
        self.offered.clear();
        self.arrived.clear();
    }

    /// This client's row, as far as it knows it itself.
    pub(crate) fn row(&self, flow: u32, conduct: &Conduct<'_>) -> FlowRow {
        FlowRow { late_replies: self.late, ..self.application.row(flow, self.group, conduct) }
    }
}

/// How both ends of a group's transfers behave; nothing if it has none.
pub(crate) fn options(scenario: &Scenario, clients: &Clients) -> Option<BurstOptions> {
    let Transfer::Bursts(bursts) = &clients.transfer else { return None };
    let Bursts { max_payloads, non_max_retransmit, paced, .. } = *bursts;
    let body = scenario.server.payload.0 as usize;
    Some(BurstOptions {
        parameters: BurstParameters {
            set: max_payloads,
            pause: bursts.non_timeout.span(),
            patience: bursts.non_receive_timeout.span(),
            repeats: non_max_retransmit,
            lifetime: bursts.non_partial_timeout.span(),
            paced,
        },
        size: clients.transfer.block_size()?,
        // The first request of a transfer has this and no count behind it: it takes a byte at least.
        token_length: clients.token_length.clamp(1, 4),
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
