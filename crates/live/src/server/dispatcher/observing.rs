//! What observers are told: one state for all of a group that asked the same.

use std::{future::Future, net::Ipv4Addr, sync::Arc};

use millpond_coap::message::Code;

use super::{Action, Dispatcher, Observed, TaskEvent, answering::forbidden, start, within};
#[cfg(feature = "state")]
use crate::server::{Request, router::Found};
use crate::{Response, transfer::ObserverId};

impl Dispatcher {
    /// The stack has made an observer of who asked for this.
    pub(crate) fn observe(&mut self, observer: ObserverId, observed: Observed) {
        let Observed { resource, request, version } = observed;
        if let Some(group) = self.observers.add(observer, resource, request, version) {
            self.queue(group);
        }
    }

    /// Who asked this observed before a restart. Its state is told anew, for it may have changed meanwhile. None if that may not go on.
    #[cfg(feature = "state")]
    pub(crate) fn observes_again(&self, mut request: Request) -> Option<Observed> {
        let (found, _) = self.find(&request).ok()?;
        let Found { resource, parameters } = found.filter(|found| self.observers.has(found.resource))?;
        request.route(parameters, &self.router.state);
        let may =
            self.policing.permits(&request, request.peer()) && self.observers.room_for(resource, &request).is_ok();
        let version = self.observers.version(resource).wrapping_sub(1);
        may.then_some(Observed { resource, request, version })
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
            Ok(response) => match self.with_shared_body(response) {
                Ok(response) => self.state(group, response),
                Err(response) => self.later(group, std::future::ready(response)),
            },
            Err(answering) => {
                handling.has_waited();
                let (limit, giving_up) = (self.limits.handling, self.giving_up.subscribe());
                self.later(group, within(limit, answering, giving_up, None));
            }
        }
    }

    /// A state whose body all observers are told without it being copied; itself if that takes longer than others are to wait.
    #[allow(clippy::result_large_err, reason = "it is passed on as it is")]
    fn with_shared_body(&self, state: Response) -> Result<Response, Response> {
        if !state.is_success() || state.has_stream() || state.payload().len() <= self.limits.block {
            return Ok(state);
        }
        self.admission.bodies.at_once(state)
    }

    /// The state for a group of observers comes later.
    fn later(&mut self, group: u64, state: impl Future<Output = Response> + Send + 'static) {
        self.states += 1;
        let (events, admission, longest) = (self.events.clone(), Arc::clone(&self.admission), self.limits.block);
        self.tasks.spawn(async move {
            let state = state.await;
            let told_as = match admission.hold(None, state.payload().len()) {
                Some(held) if state.is_success() && state.payload().len() > longest => {
                    let nobody = (Ipv4Addr::UNSPECIFIED, 0).into();
                    Some((Arc::clone(&admission.bodies).shared(nobody, state).await, held))
                }
                held => held.map(|held| (state, held)),
            };
            let _ = events.send(TaskEvent::State(group, told_as));
        });
    }

    pub(super) fn state(&mut self, group: u64, mut response: Response) {
        if response.take_part().is_some_and(|(_, total)| total != response.payload().len() as u64) {
            tracing::error!(target: "millpond_live", "a handler answered observers with a part of its state");
            response = Response::new(Code::INTERNAL_SERVER_ERROR);
        }
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

    /// Rights have changed: who may not observe any more is told so, and is no observer afterwards.
    pub(crate) fn end_forbidden(&mut self) {
        let policing = &self.policing;
        for (request, is_confirmable, gone) in
            self.observers.remove_forbidden(|request, peer| policing.permits(request, peer))
        {
            for observer in gone {
                let response = forbidden(&request);
                self.actions.push_back(Action::Notify { observer, response, is_confirmable, is_last: true });
            }
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
