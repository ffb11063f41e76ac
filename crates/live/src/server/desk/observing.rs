//! What observers are told: one state for all of a group that asked the same.

use std::sync::Arc;

use super::{Action, Desk, Observed, Told, start, within};
use crate::{Response, transfer::ObserverId};

impl Desk {
    /// The host has made an observer of who asked for this.
    pub(crate) fn observe(&mut self, observer: ObserverId, observed: Observed) {
        let Observed { resource, request, version } = observed;
        if let Some(group) = self.observers.add(observer, resource, request, version) {
            self.queue(group);
        }
    }

    /// The handler of a group of observers is to be asked, once.
    pub(super) fn queue(&mut self, group: u64) {
        if self.observers.queue(group) {
            self.stale.push_back(group);
        }
    }

    /// Asks the handler for the state that a group of observers is to get.
    pub(super) fn refresh(&mut self, group: u64) {
        let Some((resource, request)) = self.observers.begin(group) else { return };
        let router = Arc::clone(&self.router);
        let Some(handling) = router.resources.get(resource).and_then(|(_, known)| known.handling(request.method()))
        else {
            return;
        };
        match start(|| handling.ask(request)) {
            Ok(response) => self.state(group, response),
            Err(answering) => {
                handling.has_waited();
                self.states += 1;
                let (told, limit, giving_up) = (self.told.clone(), self.limits.handling, self.giving_up.subscribe());
                let admission = Arc::clone(&self.admission);
                self.tasks.spawn(async move {
                    let response = within(limit, answering, giving_up, None).await;
                    let state = admission.hold(response.payload().len()).map(|held| (response, held));
                    let _ = told.send(Told::State(group, state));
                });
            }
        }
    }

    pub(super) fn state(&mut self, group: u64, response: Response) {
        let is_confirmable = self.observers.is_confirmable(group);
        let is_last = !response.is_success();
        for observer in self.observers.members(group) {
            let response = response.clone();
            self.actions.push_back(Action::Notify { observer, response, is_confirmable, is_last });
        }
        if is_last {
            self.observers.remove_group(group);
        } else if self.observers.finish(group) {
            self.queue(group);
        }
    }

    /// All observers, or those of one resource, get this and are none afterwards.
    pub(crate) fn end_observers(&mut self, resource: Option<usize>, last: &Response) {
        for group in self.observers.groups(resource) {
            let is_confirmable = self.observers.is_confirmable(group);
            for observer in self.observers.members(group) {
                let response = last.clone();
                self.actions.push_back(Action::Notify { observer, response, is_confirmable, is_last: true });
            }
            self.observers.remove_group(group);
        }
    }
}
