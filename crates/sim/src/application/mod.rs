//! A client's application: requests arrive, wait until they may be made, and end.

mod events;

use std::collections::VecDeque;

use millpond_control::{Instant, Purpose};

use crate::{
    ledger::{Ledger, NO_EVENT},
    outcome::FlowRow,
    scenario::Clients,
    workload::{ClientProfile, Draws, Due, REGISTRATION, Source, start},
};

pub(crate) use events::Moment;

/// The application of one client. A request that takes several exchanges counts once.
pub(crate) struct Application {
    sources: Box<[Source]>,
    /// When the next request arrives by itself, or the next event concerns this client.
    wakes: Instant,
    first_send: Instant,
    last_end: Instant,
    /// Bytes of bodies that came.
    body_bytes: u64,
    /// Arrived, and not made yet.
    #[expect(clippy::box_collection, reason = "most applications never have any, and there may be very many")]
    waiting: Option<Box<VecDeque<Due>>>,
    /// Requests left in the running batch.
    batch_left: u32,
    batches: u32,
    /// Requests made and not ended.
    open: u16,
    /// Events that began.
    events: u16,
    registration: Registration,
    is_away: bool,
    stage: Stage,
    /// The last request that ended was answered.
    is_answered: bool,
}

/// How far an application is. One byte, because there may be very many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It has not started.
    New,
    Started,
    /// It has said that it is done.
    Done,
}

/// What an application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It asks.
    Ask(Due),
    /// It drops all congestion-control state, then asks.
    ForgetAndAsk(Due),
    /// Nothing for the time being.
    Wait,
    /// It has just done all that it had to do.
    Done,
}

/// Where a client stands that observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registration {
    /// It does not.
    Needless,
    /// It is to register.
    Wanted,
    /// It is registered, or on its way there.
    Made,
}

impl Application {
    fn is_started(&self) -> bool {
        self.stage != Stage::New
    }

    /// The application of a client, which starts when chance has it start.
    pub(crate) fn new(profile: &ClientProfile<'_>, draws: Draws) -> Self {
        Self {
            sources: vec![Source::idle(); profile.plans.len()].into_boxed_slice(),
            wakes: Self::start(profile, draws).min(profile.event_at(0)),
            first_send: Instant::NEVER,
            last_end: Instant::ORIGIN,
            body_bytes: 0,
            waiting: None,
            batch_left: 0,
            batches: 0,
            open: 0,
            events: 0,
            registration: if profile.registers() { Registration::Wanted } else { Registration::Needless },
            is_away: false,
            stage: Stage::New,
            is_answered: false,
        }
    }

    /// When something happens here by itself.
    #[inline]
    pub(crate) fn wakes(&self) -> Instant {
        self.wakes
    }

    /// When a client that has not started yet does.
    fn start(profile: &ClientProfile<'_>, draws: Draws) -> Instant {
        let chance = draws.seed.at(Purpose::Start, [draws.client, 0, 0, 0]);
        Instant::from_micros(start(chance, profile.clients.start_spread.0))
    }

    /// Whether nothing comes for the time being, whatever else there is: it is away, or may not ask and nothing arrives. Of the
    /// requests that are open, so many are overdue and make way for others.
    #[inline]
    pub(crate) fn has_to_wait(&self, now: Instant, profile: &ClientProfile<'_>, overdue: u32) -> bool {
        self.is_away || !self.may_ask(profile, overdue) && self.wakes > now
    }

    #[inline]
    fn may_ask(&self, profile: &ClientProfile<'_>, overdue: u32) -> bool {
        u32::from(self.open).saturating_sub(overdue) < profile.limit
    }

    /// What comes next. Draws the size of a batch when one begins.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        profile: &ClientProfile<'_>,
        draws: Draws,
        overdue: u32,
        ledger: &mut Ledger,
    ) -> Next {
        if self.has_to_wait(now, profile, overdue) {
            return Next::Wait;
        }
        let may_ask = self.may_ask(profile, overdue);
        loop {
            let waiting = self.waiting.as_mut().filter(|_| may_ask);
            if let Some(due) = waiting.and_then(|waiting| waiting.pop_front()) {
                return self.ask(due, profile, draws);
            }
            let Some(due) = self.arrival(now, profile, draws, ledger) else { break };
            if may_ask {
                return self.ask(due, profile, draws);
            }
            if let Some(refused) = self.hold(due, profile) {
                ledger.refused(refused.request, now);
                self.over(refused.source, now, false, profile, draws, ledger);
            }
        }
        if self.stage < Stage::Done && self.has_nothing_left(profile) {
            self.stage = Stage::Done;
            return Next::Done;
        }
        Next::Wait
    }

    /// A request that may not be made yet waits; gives one that is refused in its stead, or itself.
    #[cold]
    fn hold(&mut self, due: Due, profile: &ClientProfile<'_>) -> Option<Due> {
        let is_closed = profile.plans.get(usize::from(due.source)).is_none_or(|plan| plan.workload.is_closed());
        let waiting = self.waiting.get_or_insert_default();
        let is_full = profile
            .clients
            .application_queue
            .is_some_and(|most| usize::from(self.open) + waiting.len() >= most as usize);
        // A loop never hands over more than it may.
        if is_full && !is_closed {
            return Some(due);
        }
        waiting.push_back(due);
        if profile.supersedes() && waiting.len() > 1 { waiting.pop_front() } else { None }
    }

    /// The next request that arrives at or before `now`.
    fn arrival(&mut self, now: Instant, profile: &ClientProfile<'_>, draws: Draws, ledger: &mut Ledger) -> Option<Due> {
        if self.wakes > now {
            return None;
        }
        if !self.is_started() && !self.starts(now, profile, draws) {
            return None;
        }
        if self.registration == Registration::Wanted {
            return Some(self.registers(now, profile, draws, ledger));
        }
        let (index, source) = self.sources.iter_mut().enumerate().min_by_key(|(_, source)| source.next())?;
        let at = source.next();
        if at > now {
            return None;
        }
        let event = source.event();
        let (number, nth) = source.take(&profile.plans[index], draws);
        self.look(profile, draws);
        Some(Due { request: ledger.arrival(draws.flow, index as u8, event, at), number, nth, source: index as u8 })
    }

    /// Its client starts, if it is time.
    #[cold]
    fn starts(&mut self, now: Instant, profile: &ClientProfile<'_>, draws: Draws) -> bool {
        if Self::start(profile, draws) > now {
            return false;
        }
        self.stage = Stage::Started;
        for (source, plan) in self.sources.iter_mut().zip(&profile.plans) {
            if !profile.waits(plan) {
                source.begin(now, profile.event_at_start(plan), plan, draws);
            }
        }
        self.look(profile, draws);
        true
    }

    /// The request that registers it.
    #[cold]
    fn registers(&mut self, now: Instant, profile: &ClientProfile<'_>, draws: Draws, ledger: &mut Ledger) -> Due {
        self.registration = Registration::Made;
        self.look(profile, draws);
        // One that is made anew is for no event.
        let event = if self.first_send == Instant::NEVER { profile.first_event } else { NO_EVENT };
        let request = ledger.arrival(draws.flow, REGISTRATION, event, now);
        Due { request, number: 0, nth: 0, source: REGISTRATION }
    }

    /// Looks when something happens by itself.
    #[inline]
    fn look(&mut self, profile: &ClientProfile<'_>, draws: Draws) {
        self.wakes = if self.is_away {
            Instant::NEVER
        } else if self.is_started() && self.registration == Registration::Wanted {
            Instant::ORIGIN
        } else if self.is_started() {
            let arrival = self.sources.iter().map(Source::next).min().unwrap_or(Instant::NEVER);
            // A rhythm that meets the end of the run would leave a request there that nobody can answer.
            if arrival == profile.end { Instant::from_micros(arrival.as_micros().saturating_add(1)) } else { arrival }
        } else {
            Self::start(profile, draws)
        };
        if !profile.events.is_empty() {
            self.wakes = self.wakes.min(self.event(profile, draws));
        }
    }

    /// A request is made.
    fn ask(&mut self, due: Due, profile: &ClientProfile<'_>, draws: Draws) -> Next {
        self.open += 1;
        if due.source == REGISTRATION {
            return Next::Ask(due);
        }
        if self.batch_left > 0 || self.batches > 0 && !profile.in_batches() {
            self.batch_left = self.batch_left.saturating_sub(1);
            return Next::Ask(due);
        }
        self.begin_batch(due, profile, draws)
    }

    /// The first request of a batch, or of all, is made.
    #[cold]
    fn begin_batch(&mut self, due: Due, profile: &ClientProfile<'_>, draws: Draws) -> Next {
        self.batches += 1;
        if profile.in_batches() {
            // What is left, this request included.
            let requests = profile.plans[0].requests.unwrap_or(u32::MAX);
            let left = requests.saturating_sub(due.nth);
            let chance = draws.seed.at(Purpose::Workload, [draws.client, self.batches, 0, 0]);
            self.batch_left = profile.clients.batch.draw(chance, left).saturating_sub(1);
        }
        if self.batches == 1 { Next::Ask(due) } else { Next::ForgetAndAsk(due) }
    }

    /// The first byte of a request leaves.
    #[inline]
    pub(crate) fn leaves(&mut self, now: Instant) {
        self.first_send = self.first_send.min(now);
    }

    /// Part of a body came.
    #[inline]
    pub(crate) fn got(&mut self, bytes: usize) {
        self.body_bytes += bytes as u64;
    }

    /// A request that was made ended, with an answer or without.
    #[inline]
    pub(crate) fn end(
        &mut self,
        request: u32,
        answered: bool,
        now: Instant,
        profile: &ClientProfile<'_>,
        draws: Draws,
        ledger: &mut Ledger,
    ) {
        self.open -= 1;
        let source = ledger.ended(request, answered, now, &profile.since);
        self.over(source, now, answered, profile, draws, ledger);
    }

    /// A request of a workload is over.
    fn over(
        &mut self,
        source: u8,
        now: Instant,
        answered: bool,
        profile: &ClientProfile<'_>,
        draws: Draws,
        ledger: &mut Ledger,
    ) {
        (self.last_end, self.is_answered) = (now, answered);
        if source == REGISTRATION && !answered {
            self.registration = Registration::Wanted;
            self.look(profile, draws);
        }
        let Some(ended) = self.sources.get_mut(usize::from(source)) else { return };
        ended.ended(now, answered, &profile.plans[usize::from(source)], draws);
        let event = ended.event();
        let is_complete = answered && ended.is_complete(&profile.plans[usize::from(source)]);
        self.look(profile, draws);
        if is_complete && event != NO_EVENT {
            let mut others = self.sources.iter().zip(&profile.plans).filter(|(source, _)| source.event() == event);
            if others.all(|(source, plan)| source.is_complete(plan)) {
                ledger.completed(draws.flow, event, now, profile.since[usize::from(event)]);
            }
        }
    }

    /// Whether this is the client's first batch.
    #[inline]
    pub(crate) fn in_first_batch(&self) -> bool {
        self.batches <= 1
    }

    /// Whether its client is down.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Whether every request was made and has ended.
    fn has_nothing_left(&self, profile: &ClientProfile<'_>) -> bool {
        self.is_started()
            && self.open == 0
            && self.waiting.as_ref().is_none_or(|waiting| waiting.is_empty())
            && usize::from(self.events) >= profile.events.len()
            && self.sources.iter().zip(&profile.plans).all(|(source, plan)| source.is_exhausted(plan))
    }

    /// Whether nothing is missing in the end: all was done, or all that is missing has no end.
    fn is_finished(&self, profile: &ClientProfile<'_>) -> bool {
        let is_over =
            |(source, plan): (&Source, &crate::workload::Plan<'_>)| plan.is_endless() || source.is_exhausted(plan);
        self.stage == Stage::Done
            || self.is_started()
                && self.open == 0
                && self.waiting.as_ref().is_none_or(|waiting| waiting.is_empty())
                && self.sources.iter().zip(&profile.plans).all(is_over)
    }

    /// The client's row, as far as its application knows it.
    pub(crate) fn row(&self, flow: u32, group: u32, profile: &ClientProfile<'_>) -> FlowRow {
        let clients: &Clients = profile.clients;
        // Nobody asks whether something is left after an event that found nothing to do.
        let is_done = self.stage == Stage::Done || self.has_nothing_left(profile);
        let end = Some(self.last_end).filter(|_| is_done && self.is_answered);
        FlowRow {
            flow,
            group,
            transport: clients.transport.name(),
            fct_us: end.map(|end| end.as_micros() - self.first_send.as_micros()),
            first_send_us: self.first_send.as_micros(),
            body_bytes: self.body_bytes,
            batches: self.batches,
            done_us: Some(self.last_end.as_micros()).filter(|_| self.is_finished(profile)),
            ..FlowRow::default()
        }
    }
}

fn later(point: Instant, micros: u64) -> Instant {
    Instant::from_micros(point.as_micros().saturating_add(micros))
}
