//! Between stacks and handlers: what becomes of each request, whatever carried it.

mod acting;
mod answering;
mod finding;
mod observing;
mod parts;
mod streams;

use std::{borrow::Cow, collections::VecDeque, net::SocketAddr, sync::Arc, time::Duration};

use answering::{heeding, taken_over, wants_none};
use bytes::Bytes;
use finding::{Refusal, Which};
use millpond_coap::{
    RequestId,
    message::{Code, Kind, Message, number},
};
use millpond_control::Instant;
use parts::Downloaders;
pub(crate) use parts::Fit;
pub(crate) use streams::Room;
use streams::{Name, Pieces, Step, Streams};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    Request,
    access::{AccessHook, Accesses},
    admission::{AddressState, Admission, Busy, Held, Place},
    links,
    observers::Observers,
    policy::{Policing, Refused},
    reachability::Reachability,
    router::Router,
    running::{start, within},
};
use crate::{Response, Transport, transfer::ObserverId};

/// What a dispatcher may have under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatcherLimits {
    /// How long a handler may take.
    pub(crate) handling: Duration,
    pub(crate) block: usize,
    /// Requests that came to a group may change something.
    pub(crate) changes_by_group: bool,
}

/// Why somebody gets less than it asked for, as it is told.
const UNVALIDATED: &str = "the address is not validated: Echo asked";
/// Seconds after which to ask again, told with 5.03 and 4.29.
pub(crate) const ASK_AGAIN: u32 = 5;
/// States for groups of observers that are made at a time by handlers that wait.
const MOST_STATES: usize = 64;

/// A request as a stack hands it over.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) id: RequestId,
    pub(crate) kind: Kind,
    pub(crate) request: Request,
    /// Bytes of it, about as many as its datagram has.
    pub(crate) length: usize,
    pub(crate) wants_to_observe: bool,
    pub(crate) by_group: bool,
    /// The ID of the security context by which it was protected.
    pub(crate) context: Option<Bytes>,
    /// Over a connection: how much a message to the client may carry.
    pub(crate) room: Option<Room>,
}

impl IncomingRequest {
    /// A request as the stack told it: by its last message, and with its whole body.
    pub(crate) fn of(
        (id, message): (RequestId, &Message<'_>),
        body: Cow<'_, [u8]>,
        (peer, transport): (SocketAddr, Transport),
        (wants_to_observe, by_group): (bool, bool),
        context: Option<&[u8]>,
    ) -> Self {
        let request = Request::of(message, body, peer, transport);
        let length = 4 + message.token.len() + message.option_bytes().len() + message.payload().len();
        let context = context.map(Bytes::copy_from_slice);
        Self { id, kind: message.kind, request, length, wants_to_observe, by_group, context, room: None }
    }
}

/// What a stack is to do.
#[derive(Debug)]
pub(crate) enum Action {
    Answer {
        id: RequestId,
        response: Response,
        /// Who asked is known to be where it says.
        is_proved: bool,
    },
    /// The same as it is: one block of a longer body.
    Piece(RequestId, Response),
    /// Answer, and keep the client as an observer.
    Observe {
        id: RequestId,
        response: Response,
        observed: Observed,
    },
    /// No answer: the message is rejected.
    Reject(RequestId),
    /// No answer is wanted: the message is acknowledged at most.
    SuppressResponse(RequestId),
    /// Neither an answer nor an acknowledgement: it comes again.
    Leave(RequestId),
    /// What was to be the answer cannot be sent.
    Fail(RequestId),
    Notify {
        observer: ObserverId,
        response: Response,
        is_confirmable: bool,
        is_last: bool,
    },
    RemoveObserver(ObserverId),
}

/// What an observer asked for.
#[derive(Debug)]
pub(crate) struct Observed {
    resource: usize,
    request: Request,
    /// Of its state, when the handler was asked.
    version: u64,
}

impl Observed {
    /// Who asked is known to be where it says.
    const fn is_proved(&self) -> bool {
        self.request.is_address_proved()
    }
}

/// What handlers and others tell the task that owns the dispatcher.
#[derive(Debug)]
pub(crate) enum TaskEvent {
    /// A handler has answered a request. If there is no room for its answer, that is 5.03.
    Answered(Box<PendingRequest>, Response, Option<Held>),
    /// A handler has told the state for a group of observers; none if there is no room for it now.
    State(u64, Option<(Response, Held)>),
    /// The state of a resource has changed.
    Changed(usize),
    /// A task of a stream has done something.
    Step(Name, u64, Step, Option<Held>),
}

/// A request whose handler runs.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    id: RequestId,
    request: Request,
    length: usize,
    resource: Option<usize>,
    wants_to_observe: bool,
    by_group: bool,
    /// Of the resource's state, when the handler is asked.
    version: u64,
    /// Of a handler that waits.
    place: Option<Place>,
    /// Its resource streams, or its answer.
    pieces: Option<Pieces>,
    /// Bytes of the longest answer that leaves in one message.
    whole: usize,
    address_state: AddressState,
}

impl PendingRequest {
    /// Bytes that it holds as long as its handler waits.
    fn weight(&self) -> usize {
        self.length.max(self.request.weight())
    }

    /// For whom its answer is held.
    fn whose(&self) -> (SocketAddr, AddressState) {
        (self.request.peer(), self.address_state)
    }

    /// The answer leaves in several messages, and its body is not yet held as others may hold it.
    fn is_cut(&self, response: &Response) -> bool {
        let is_body = response.is_success() && !response.has_stream() && !response.is_part() && self.pieces.is_none();
        is_body && response.shared().is_none() && response.payload().len() > self.whole
    }
}

/// Finds handlers, runs them, keeps observers.
pub(crate) struct Dispatcher {
    router: Arc<Router>,
    limits: DispatcherLimits,
    /// Where handlers that take their time tell their answers.
    events: mpsc::UnboundedSender<TaskEvent>,
    admission: Arc<Admission>,
    policing: Arc<Policing>,
    /// Handlers that wait. They end with the dispatcher.
    tasks: JoinSet<()>,
    /// The same of requests that want no response (RFC 7967), which are carried out whether who asked is there or not.
    unheard: JoinSet<()>,
    running: usize,
    giving_up: watch::Sender<bool>,
    /// Groups of observers whose handlers are still to be asked for their state, and how many are being asked.
    stale: VecDeque<u64>,
    states: usize,
    streams: Streams,
    downloaders: Downloaders,
    pub(crate) observers: Observers<ObserverId>,
    pub(crate) reachability: Reachability,
    pub(crate) overloaded: u64,
    pub(crate) is_closing: bool,
    /// A server that is started next goes on with observers, and answers what comes from now on.
    pub(crate) is_followed: bool,
    actions: VecDeque<Action>,
    pub(crate) accesses: Accesses,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Dispatcher {
    pub(crate) fn new(
        router: Arc<Router>,
        limits: DispatcherLimits,
        reachability: Reachability,
        admission: Arc<Admission>,
        policing: Arc<Policing>,
        events: mpsc::UnboundedSender<TaskEvent>,
        accesses: AccessHook,
    ) -> Self {
        let wake = events.clone();
        let observers = Observers::new(
            &router,
            Box::new(move |resource| {
                let wake = wake.clone();
                // The task may have ended; then nobody observes through it.
                Box::new(move || drop(wake.send(TaskEvent::Changed(resource))))
            }),
        );
        Self {
            router,
            limits,
            events,
            admission,
            policing,
            tasks: JoinSet::new(),
            unheard: JoinSet::new(),
            running: 0,
            giving_up: watch::channel(false).0,
            stale: VecDeque::new(),
            states: 0,
            streams: Streams::default(),
            downloaders: Downloaders::default(),
            observers,
            reachability,
            overloaded: 0,
            is_closing: false,
            is_followed: false,
            actions: VecDeque::new(),
            accesses: Accesses::new(accesses),
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.reachability.memory() + self.observers.memory() + self.streams.memory() + self.downloaders.memory()
    }

    /// Handlers that have not answered yet.
    pub(crate) const fn running(&self) -> usize {
        self.running
    }

    /// Handlers that have not answered yet are waited for no longer: their requests are answered with 5.03.
    pub(crate) fn abort_handlers(&mut self) {
        self.giving_up.send_replace(true);
    }

    /// What goes on when the client has gone: handlers of requests that want no response.
    pub(crate) fn unheard(self) -> JoinSet<()> {
        self.unheard
    }

    /// Where the handler of a request runs.
    const fn tasks_of(&mut self, wants_none: bool) -> &mut JoinSet<()> {
        if wants_none { &mut self.unheard } else { &mut self.tasks }
    }

    /// Drops tasks that have ended.
    fn join(&mut self) {
        while self.tasks.try_join_next().is_some() || self.unheard.try_join_next().is_some() {}
    }

    /// The next thing that the stack is to do. States for observers are made one after the other, so that what waits to be
    /// done holds no more than one.
    pub(crate) fn action(&mut self) -> Option<Action> {
        while self.actions.is_empty() && self.states < MOST_STATES {
            let group = self.stale.pop_front()?;
            self.refresh(group);
        }
        self.actions.pop_front()
    }

    /// A request came in.
    pub(crate) fn dispatch(&mut self, now: Instant, incoming: IncomingRequest) {
        let IncomingRequest { id, kind, mut request, length, wants_to_observe, by_group, room, .. } = incoming;
        self.accesses.came(id, &request);
        if self.is_followed {
            self.accesses.because(id, "it is left to the next server");
            return self.actions.push_back(Action::Leave(id));
        }
        if by_group && !matches!(request.method(), Code::GET | Code::FETCH) && !self.limits.changes_by_group {
            self.accesses.because(id, "it came to a group and would change something");
            return self.actions.push_back(Action::Reject(id));
        }
        let address_state = self.reachability.state_of(now, &request);
        // Who may not ask learns nothing of what there is.
        if let Err(refused) = self.policing.allows(&request) {
            return self.refuse_by_policy(&request, id, by_group, refused);
        }
        let found = self.find(&request);
        if !self.goes_on(&found, &request)
            && let Err(refused) = self.policing.admits(now, &request, address_state)
        {
            return self.refuse_by_policy(&request, id, by_group, refused);
        }
        let (found, handler) = match found {
            Ok(found) => found,
            // Who does not understand a critical option of a non-confirmable message rejects it (RFC 7252 §5.4.1).
            Err(refusal @ Refusal::BadOption(_)) if kind == Kind::NonConfirmable => {
                self.accesses.because(id, refusal.reason());
                return self.actions.push_back(Action::Reject(id));
            }
            Err(refusal) => {
                self.accesses.because(id, refusal.reason());
                return self.actions.push_back(heeding(&request, id, refusal.response()));
            }
        };
        let resource = found.as_ref().map(|found| found.resource);
        request.route(found.map(|found| found.parameters).unwrap_or_default(), &self.router.state);
        if address_state == AddressState::Validated || self.reachability.trusts(request.peer()) {
            request.prove();
        }
        let fit = Fit { longest: self.limits.block, room };
        let whole = if request.value(number::BLOCK2).is_none() { fit.whole() } else { self.limits.block };
        let is_observed = wants_to_observe && resource.is_some_and(|resource| self.observers.has(resource));
        if !id.is_of_burst() && !is_observed {
            request.allow_part(fit);
        }
        let version = resource.filter(|_| wants_to_observe).map_or(0, |resource| self.observers.version(resource));
        let mut pending = PendingRequest {
            id,
            request,
            length,
            resource,
            wants_to_observe,
            by_group,
            version,
            place: None,
            pieces: None,
            whole,
            address_state,
        };
        let Some(handler) = handler else {
            let response = links::answer(&self.router, &pending.request);
            return self.answered(now, pending, response);
        };
        let router = Arc::clone(&self.router);
        let (method, comes_in_blocks) = (pending.request.method(), pending.request.value(number::BLOCK1).is_some());
        let (mut upload, mut weight) = (None, pending.weight());
        let handling = match handler {
            Which::Of(resource) => {
                let found = router.resources.get(resource).map(|(_, resource)| resource);
                if found.is_some_and(|resource| resource.is_after_proof) && !pending.request.is_address_proved() {
                    return self.ask_for_proof(now, pending);
                }
                if let Some(resource) = found.filter(|resource| resource.streams(method, comes_in_blocks)) {
                    match self.sort(now, pending, room, resource.is_streaming) {
                        Some(begins) => (pending, upload) = begins,
                        None => return,
                    }
                    weight = weight.max(resource.upload.filter(|_| upload.is_some()).unwrap_or(0));
                } else {
                    match self.go_on_streaming(pending) {
                        Some(other) => pending = other,
                        None => return,
                    }
                }
                found.and_then(|resource| resource.handling(method))
            }
            Which::Fallback => router.fallback.as_ref(),
        };
        let Some(handling) = handling else { return };
        if self.is_closing {
            return self.refuse(now, pending, Busy::Server);
        }
        // What a body of a resource that streams altogether takes is not counted.
        let is_unlimited = pending.pieces.is_some() && upload.is_some_and(|block| block.more);
        if is_unlimited && !pending.request.is_address_proved() {
            return self.ask_for_proof(now, pending);
        }
        // What answers at once needs no place, and is answered however much is under way.
        if (upload.is_some() || handling.waits())
            && let Err(busy) = self.admission.has_room(now, pending.request.peer(), address_state, weight)
        {
            return self.refuse(now, pending, busy);
        }
        if let Some(block) = upload {
            let place = self.admission.enter_anyway(pending.request.peer(), address_state, weight);
            return self.begin_upload(now, pending, (block, place), handling);
        }
        match start(|| handling.ask(pending.request.clone())) {
            Ok(response) => self.answered(now, pending, response),
            Err(answering) => {
                handling.has_waited();
                let (peer, weight) = (pending.request.peer(), pending.weight());
                pending.place = Some(self.admission.enter_anyway(peer, address_state, weight));
                self.running += 1;
                let (events, limit, giving_up) =
                    (self.events.clone(), self.limits.handling, self.giving_up.subscribe());
                let admission = Arc::clone(&self.admission);
                self.tasks_of(wants_none(&pending.request)).spawn(async move {
                    let response = within(limit, answering, giving_up, None).await;
                    let (response, held) = taken_over(&admission, &pending, response).await;
                    let _ = events.send(TaskEvent::Answered(Box::new(pending), response, held));
                });
            }
        }
    }

    /// A handler or somebody else told something.
    pub(crate) fn task_event(&mut self, now: Instant, event: TaskEvent) {
        match event {
            TaskEvent::Answered(pending, response, held) => {
                self.join();
                self.running = self.running.saturating_sub(1);
                if held.is_none() {
                    self.overloaded += 1;
                }
                self.answered(now, *pending, response);
            }
            TaskEvent::State(group, state) => {
                self.join();
                self.states = self.states.saturating_sub(1);
                match state {
                    Some((response, _held)) => self.state(group, response),
                    // What others hold is taken over meanwhile.
                    None => {
                        self.observers.finish(group);
                        self.queue(group);
                    }
                }
            }
            TaskEvent::Step(name, number, step, held) => {
                if held.is_none() && matches!(step, Step::Answered(_)) {
                    self.overloaded += 1;
                }
                self.step(now, name, number, step);
            }
            TaskEvent::Changed(resource) => {
                let Some(changed) = self.observers.changed(resource) else { return };
                if let Some(last) = changed.end {
                    return self.end_observers(Some(resource), &last);
                }
                for group in self.observers.concerned(resource, &changed) {
                    self.queue(group);
                }
            }
        }
    }
}
