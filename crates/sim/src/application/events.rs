//! What events of the timeline do to an application.

use millpond_control::Instant;

use super::{Application, Registration, later};
use crate::{
    ledger::Ledger,
    scenario::{Event, Memory, Queued},
    workload::{ClientProfile, Draws, Of},
};

/// What an event does to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It goes down.
    Down,
    /// It is up again.
    Up {
        /// N-th event of the timeline it was.
        event: u16,
        /// What becomes of congestion-control state and message IDs.
        memory: Memory,
    },
}

impl Application {
    /// When the next event concerns this client: it begins, or its client is back from it.
    pub(super) fn event(&self, profile: &ClientProfile<'_>, draws: Draws) -> Instant {
        let at = profile.event_at(self.events);
        match profile.events.get(usize::from(self.events)) {
            Some((number, Event::Restart { back, .. })) if self.is_away => {
                later(at, draws.arrival(0, u32::from(*number), Of::Return, back))
            }
            _ => at,
        }
    }

    /// What the next event that is due does.
    pub(crate) fn moment(&mut self, now: Instant, profile: &ClientProfile<'_>, draws: Draws) -> Option<Moment> {
        if self.wakes > now || self.event(profile, draws) > now {
            return None;
        }
        let &(number, event) = profile.events.get(usize::from(self.events))?;
        match event {
            Event::Restart { .. } if !self.is_away => {
                self.is_away = true;
                Some(Moment::Down)
            }
            Event::Restart { memory, .. } => {
                self.is_away = false;
                self.go_on(now, number, true, profile, draws);
                Some(Moment::Up { event: number, memory: *memory })
            }
            Event::Alarm { .. } => {
                self.go_on(now, number, false, profile, draws);
                self.moment(now, profile, draws)
            }
            // Those of links and of the server concern no client.
            Event::Rate { .. }
            | Event::Loss { .. }
            | Event::Delivery { .. }
            | Event::Outage { .. }
            | Event::Server { .. } => None,
        }
    }

    /// Its client went down: what was open has ended before.
    pub(crate) fn went_down(&mut self, now: Instant, profile: &ClientProfile<'_>, draws: Draws, ledger: &mut Ledger) {
        let is_lost = profile
            .events
            .get(usize::from(self.events))
            .is_some_and(|(_, event)| matches!(event, Event::Restart { queue: Queued::Lost, .. }));
        if is_lost {
            for due in self.waiting.take().into_iter().flat_map(|waiting| *waiting) {
                let source = ledger.ended(due.request, false, now, &profile.since);
                self.over(source, now, false, profile, draws, ledger);
            }
        }
        for source in &mut self.sources {
            source.pause();
        }
        self.look(profile, draws);
    }

    /// An event calls its workloads; after a restart the others go on as well.
    fn go_on(&mut self, now: Instant, event: u16, others: bool, profile: &ClientProfile<'_>, draws: Draws) {
        self.events += 1;
        let is_started = self.is_started();
        for (source, plan) in self.sources.iter_mut().zip(&profile.plans) {
            if profile.waits(plan) {
                source.begin(now, event, plan, draws);
            } else if others && is_started {
                source.go_on(now, plan, draws);
            }
        }
        self.look(profile, draws);
    }

    /// What its client knew is lost, and with it what it observed.
    pub(crate) fn forgot(&mut self, profile: &ClientProfile<'_>, draws: Draws) {
        if self.registration == Registration::Made {
            self.registration = Registration::Wanted;
            self.look(profile, draws);
        }
    }

    /// Nobody is there to be told anything: nothing arrives until somebody [`attends`](Self::attends).
    pub(crate) fn unattended(&mut self, profile: &ClientProfile<'_>, draws: Draws) {
        self.is_away = true;
        for source in &mut self.sources {
            source.pause();
        }
        self.look(profile, draws);
    }

    /// Somebody is there from now on.
    pub(crate) fn attends(&mut self, now: Instant, profile: &ClientProfile<'_>, draws: Draws) {
        if std::mem::take(&mut self.is_away) && self.is_started() {
            for (source, plan) in self.sources.iter_mut().zip(&profile.plans) {
                source.go_on(now, plan, draws);
            }
        }
        self.look(profile, draws);
    }
}
