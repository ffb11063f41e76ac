//! What events of the timeline do to an application.

use millpond_control::Instant;

use super::{Application, Registration, later};
use crate::{
    ledger::Ledger,
    scenario::{Event, Memory, Queued},
    workload::{Conduct, Luck, Of},
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
    pub(super) fn event(&self, conduct: &Conduct<'_>, luck: Luck) -> Instant {
        let at = conduct.event_at(self.events);
        match conduct.events.get(usize::from(self.events)) {
            Some((number, Event::Restart { back, .. })) if self.is_away => {
                later(at, luck.arrival(0, u32::from(*number), Of::Return, back))
            }
            _ => at,
        }
    }

    /// What the next event that is due does.
    pub(crate) fn moment(&mut self, now: Instant, conduct: &Conduct<'_>, luck: Luck) -> Option<Moment> {
        if self.wakes > now || self.event(conduct, luck) > now {
            return None;
        }
        let &(number, event) = conduct.events.get(usize::from(self.events))?;
        match event {
            Event::Restart { .. } if !self.is_away => {
                self.is_away = true;
                Some(Moment::Down)
            }
            Event::Restart { memory, .. } => {
                self.is_away = false;
                self.go_on(now, number, true, conduct, luck);
                Some(Moment::Up { event: number, memory: *memory })
            }
            Event::Alarm { .. } => {
                self.go_on(now, number, false, conduct, luck);
                self.moment(now, conduct, luck)
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
    pub(crate) fn went_down(&mut self, now: Instant, conduct: &Conduct<'_>, luck: Luck, ledger: &mut Ledger) {
        let is_lost = conduct
            .events
            .get(usize::from(self.events))
            .is_some_and(|(_, event)| matches!(event, Event::Restart { queue: Queued::Lost, .. }));
        if is_lost {
            for due in self.waiting.take().into_iter().flat_map(|waiting| *waiting) {
                let source = ledger.ended(due.request, false, now, &conduct.since);
                self.over(source, now, false, conduct, luck, ledger);
            }
        }
        for source in &mut self.sources {
            source.pause();
        }
        self.look(conduct, luck);
    }

    /// An event calls its workloads; after a restart the others go on as well.
    fn go_on(&mut self, now: Instant, event: u16, others: bool, conduct: &Conduct<'_>, luck: Luck) {
        self.events += 1;
        let is_started = self.is_started();
        for (source, plan) in self.sources.iter_mut().zip(&conduct.plans) {
            if conduct.waits(plan) {
                source.begin(now, event, plan, luck);
            } else if others && is_started {
                source.go_on(now, plan, luck);
            }
        }
        self.look(conduct, luck);
    }

    /// What its client knew is lost, and with it what it observed.
    pub(crate) fn forgot(&mut self, conduct: &Conduct<'_>, luck: Luck) {
        if self.registration == Registration::Made {
            self.registration = Registration::Wanted;
            self.look(conduct, luck);
        }
    }

    /// Nobody is there to be told anything: nothing arrives until somebody [`attends`](Self::attends).
    pub(crate) fn unattended(&mut self, conduct: &Conduct<'_>, luck: Luck) {
        self.is_away = true;
        for source in &mut self.sources {
            source.pause();
        }
        self.look(conduct, luck);
    }

    /// Somebody is there from now on.
    pub(crate) fn attends(&mut self, now: Instant, conduct: &Conduct<'_>, luck: Luck) {
        if std::mem::take(&mut self.is_away) && self.is_started() {
            for (source, plan) in self.sources.iter_mut().zip(&conduct.plans) {
                source.go_on(now, plan, luck);
            }
        }
        self.look(conduct, luck);
    }
}
