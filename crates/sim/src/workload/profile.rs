//! How all clients of a group behave.

use millpond_control::Instant;

use super::{Draws, Of, Plan, size};
use crate::{
    ledger::NO_EVENT,
    population::Ask,
    scenario::{ArrivalProcess, Clients, Event, FlowGroup, GivesUp, Scenario, Sizes, Traffic, Workload},
};

/// In place of a workload, of a request that registers for notifications.
pub(crate) const REGISTRATION: u8 = u8::MAX;

/// A request that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Its place in the ledger.
    pub(crate) request: u32,
    /// Its number for chance, and the one since its workload began.
    pub(crate) number: u32,
    pub(crate) nth: u32,
    /// The workload that it is of.
    pub(crate) source: u8,
}

/// What all who ask alike share.
pub(crate) struct ClientProfile<'s> {
    pub(crate) clients: &'s Clients,
    /// The group of the clients, and who asks.
    pub(crate) group: usize,
    pub(crate) traffic: Traffic,
    pub(crate) plans: Vec<Plan<'s>>,
    /// Requests that may be open at once.
    pub(crate) limit: u32,
    /// What each workload asks for, one after another.
    asks: Vec<Vec<(Ask<'s>, Sizes)>>,
    /// How it registers for notifications, if it does.
    registration: Option<Ask<'s>>,
    /// The segments of each path that anything of this asks for.
    paths: Vec<Vec<&'s [u8]>>,
    /// The payload of its responses, if it serves.
    pub(crate) serves: Vec<u8>,
    /// The events that concern the group, with their numbers.
    pub(crate) events: Vec<(u16, &'s Event)>,
    /// When the run is over: nothing arrives then any more.
    pub(crate) end: Instant,
    /// When each event of the timeline is; the first is the start of the run.
    pub(crate) since: Vec<Instant>,
    /// The event that the workloads belong to which begin with their client.
    pub(crate) first_event: u16,
}

impl<'s> ClientProfile<'s> {
    pub(crate) fn of(scenario: &'s Scenario, flows: &'s FlowGroup<'s>) -> Self {
        let clients = &*flows.clients;
        let limit = match flows.traffic {
            // Nothing answers them that could be waited for.
            Traffic::Notifications if !clients.confirmable => u32::from(u16::MAX),
            _ if clients.has_exchanges() => u32::from(clients.nstart),
            _ => 1,
        };
        let plan = |(index, workload): (usize, &'s Workload)| Plan {
            workload,
            index: index as u32,
            requests: workload.requests(clients.exchanges),
            nstart: limit,
            clients: clients.count,
        };
        let asks = |workload: &'s Workload| match &workload.script[..] {
            [] => {
                let sizes = workload.payload.unwrap_or(clients.request_payload);
                vec![(Ask::of(clients, sizes), sizes)]
            }
            steps => steps.iter().map(|step| (Ask::step(clients, step), step.payload)).collect(),
        };
        let workloads = clients.workload.all();
        let timeline = &scenario.timeline;
        // Of their clients' restarts a server knows nothing.
        let reaches = |event: &Event| flows.traffic == Traffic::Requests || matches!(event, Event::Alarm { .. });
        let concerned = timeline.iter().enumerate().filter(|(_, event)| event.concerns(clients) && reaches(event));
        let events: Vec<_> = concerned.map(|(index, event)| (index as u16 + 1, event)).collect();
        let waits = |workload: &Workload| matches!(workload.arrivals, ArrivalProcess::AfterEvent { .. });
        // Where some are called by the start itself, what the others do is no answer to it.
        let is_called = events.is_empty() && workloads.iter().any(waits) && !workloads.iter().all(waits);
        let asks: Vec<Vec<_>> = workloads.iter().map(asks).collect();
        let registration = clients.notifications.as_ref().map(Ask::registration);
        let mut paths: Vec<Vec<_>> = Vec::new();
        for ask in asks.iter().flatten().map(|(ask, _)| ask).chain(&registration) {
            let path = ask.path().collect();
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let serves = clients.commands.as_ref().map_or(0, |commands| commands.response_payload.0);
        let serves = clients.protection.padded_response(serves);
        Self {
            clients,
            group: flows.group,
            traffic: flows.traffic,
            registration,
            paths,
            serves: vec![b'.'; serves as usize],
            plans: workloads.iter().enumerate().map(plan).collect(),
            limit,
            asks,
            events,
            end: at(scenario.run.end().0),
            since: [Instant::ORIGIN].into_iter().chain(timeline.iter().map(|event| at(event.at().0))).collect(),
            first_event: if is_called { NO_EVENT } else { 0 },
        }
    }

    /// Whether a client gives its request up when this copy has left.
    #[inline]
    pub(crate) fn is_last(&self, copy: u8) -> bool {
        self.clients.gives_up == GivesUp::AtLastCopy && copy >= self.clients.max_retransmit
    }

    /// Whether it is one closed loop in batches.
    #[inline]
    pub(crate) fn in_batches(&self) -> bool {
        matches!(self.plans[..], [Plan { workload: Workload { arrivals: ArrivalProcess::FreshBatches, .. }, .. }])
    }

    /// When the event at this place among the group's begins; never if there is none.
    pub(crate) fn event_at(&self, place: u16) -> Instant {
        self.events.get(usize::from(place)).map_or(Instant::NEVER, |(_, event)| at(event.at().0))
    }

    /// Whether a workload waits for events of the timeline.
    #[inline]
    pub(crate) fn waits(&self, plan: &Plan<'_>) -> bool {
        matches!(plan.workload.arrivals, ArrivalProcess::AfterEvent { .. }) && !self.events.is_empty()
    }

    /// The event that the requests belong to which a workload makes from its client's start on.
    pub(crate) fn event_at_start(&self, plan: &Plan<'_>) -> u16 {
        if matches!(plan.workload.arrivals, ArrivalProcess::AfterEvent { .. }) { 0 } else { self.first_event }
    }

    /// What a request asks for, and the size of its payload.
    #[inline]
    pub(crate) fn ask(&self, due: &Due, draws: Draws) -> Option<(&Ask<'s>, usize)> {
        if due.source == REGISTRATION {
            return Some((self.registration.as_ref()?, 0));
        }
        let asks = self.asks.get(usize::from(due.source))?;
        let (ask, sizes) = asks.get(due.nth as usize % asks.len().max(1))?;
        let bytes = match *sizes {
            Sizes::Fixed(size) => size.0,
            _ => size(draws.word(u32::from(due.source), due.number, Of::Size), sizes),
        };
        Some((ask, bytes as usize))
    }

    /// Whether this is the path of anything that is asked for.
    #[inline]
    pub(crate) fn is_for<'p>(&self, path: impl Iterator<Item = &'p [u8]> + Clone) -> bool {
        self.paths.iter().any(|known| path.clone().eq(known.iter().copied()))
    }

    /// Whether it is to register for notifications.
    pub(crate) fn registers(&self) -> bool {
        self.registration.is_some()
    }

    /// Whether of what waits only the newest is worth sending (RFC 7641 §4.5.2).
    pub(crate) fn supersedes(&self) -> bool {
        self.traffic == Traffic::Notifications
    }

    /// The options of the resource that every client of the group fetches.
    pub(crate) fn options(&self) -> &[(u16, &'s [u8])] {
        self.asks.first().and_then(|asks| asks.first()).map_or(&[], |(ask, _)| ask.options())
    }
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}
