//! Between hosts and handlers: what becomes of each request, whatever carried it.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hash},
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use millpond_coap::message::{Code, Kind, number};
use millpond_control::Instant;
use rustc_hash::FxHasher;
use tokio::sync::mpsc;

use super::{
    Request, links,
    observers::Observers,
    reachability::Reachability,
    request::Unrouted,
    resource::Answering,
    router::{Found, Router},
};
use crate::Response;

/// What a desk may have under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeskLimits {
    pub(crate) running: usize,
    pub(crate) running_per_peer: usize,
    /// How long each may take.
    pub(crate) handling: Duration,
    pub(crate) block: usize,
    /// Requests that came to a group may change something.
    pub(crate) changes_by_group: bool,
}

/// Seconds after which to ask again, told with 5.03 and 4.29.
const ASK_AGAIN: u32 = 5;

/// A request as a host hands it over.
#[derive(Debug)]
pub(crate) struct Arrived<R> {
    pub(crate) id: R,
    pub(crate) kind: Kind,
    pub(crate) request: Unrouted,
    /// Bytes of it, about as many as its datagram has.
    pub(crate) length: usize,
    pub(crate) wants_to_observe: bool,
    pub(crate) by_group: bool,
}

/// What a host is to do.
#[derive(Debug)]
pub(crate) enum Action<R, O> {
    Answer(R, Response),
    /// The same in blocks that are small enough for an address that is not proved.
    AnswerBriefly(R, Response),
    /// Answer, and keep the client as an observer of this resource.
    Observe {
        id: R,
        response: Response,
        resource: usize,
        request: Request,
    },
    /// No answer: the message is rejected.
    Reject(R),
    Notify {
        observer: O,
        response: Response,
        is_confirmable: bool,
        is_last: bool,
    },
}

/// What handlers and others tell the task that owns the desk.
#[derive(Debug)]
pub(crate) enum Told<R> {
    /// A handler has answered a request.
    Answered(Box<Asked<R>>, Response),
    /// A handler has told the state for a group of observers.
    State(u64, Response),
    /// The state of a resource has changed.
    Changed(usize),
}

/// A request whose handler runs.
#[derive(Debug)]
pub(crate) struct Asked<R> {
    id: R,
    request: Request,
    length: usize,
    resource: Option<usize>,
    wants_to_observe: bool,
    by_group: bool,
}

/// Finds handlers, runs them, keeps observers.
pub(crate) struct Desk<R, O> {
    router: Arc<Router>,
    limits: DeskLimits,
    /// Where handlers that take their time tell their answers.
    told: mpsc::UnboundedSender<Told<R>>,
    running: HashMap<SocketAddr, usize, BuildHasherDefault<FxHasher>>,
    running_in_all: usize,
    pub(crate) observers: Observers<O>,
    pub(crate) reachability: Reachability,
    pub(crate) overloaded: u64,
    pub(crate) is_closing: bool,
    actions: VecDeque<Action<R, O>>,
}

impl<R: std::fmt::Debug, O> std::fmt::Debug for Desk<R, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("running", &self.running_in_all).finish_non_exhaustive()
    }
}

impl<R: Send + 'static, O: Copy + Eq + Hash> Desk<R, O> {
    pub(crate) fn new(
        router: Arc<Router>,
        limits: DeskLimits,
        reachability: Reachability,
        told: mpsc::UnboundedSender<Told<R>>,
    ) -> Self {
        let wake = told.clone();
        let observers = Observers::new(&router, move |resource| {
            let wake = wake.clone();
            // The task may have ended; then nobody observes through it.
            move || drop(wake.send(Told::Changed(resource)))
        });
        Self {
            router,
            limits,
            told,
            running: HashMap::default(),
            running_in_all: 0,
            observers,
            reachability,
            overloaded: 0,
            is_closing: false,
            actions: VecDeque::new(),
        }
    }

    /// Handlers that have not answered yet.
    pub(crate) const fn running(&self) -> usize {
        self.running_in_all
    }

    /// The next thing that the host is to do.
    pub(crate) fn action(&mut self) -> Option<Action<R, O>> {
        self.actions.pop_front()
    }

    /// A request came in.
    pub(crate) fn arrived(&mut self, now: Instant, arrived: Arrived<R>) {
        let Arrived { id, kind, request, length, wants_to_observe, by_group } = arrived;
        let peer = request.peer;
        if by_group && !matches!(request.method, Code::GET | Code::FETCH) && !self.limits.changes_by_group {
            return self.actions.push_back(Action::Reject(id));
        }
        let (found, handler) = match self.find(&request) {
            Ok(found) => found,
            // Who does not understand a critical option of a non-confirmable message rejects it (RFC 7252 §5.4.1).
            Err(Refusal::BadOption) if kind == Kind::NonConfirmable => {
                return self.actions.push_back(Action::Reject(id));
            }
            Err(refusal) => return self.actions.push_back(Action::Answer(id, refusal.response())),
        };
        let resource = found.as_ref().map(|found| found.resource);
        let request = request.routed(found.map(|found| found.parameters).unwrap_or_default());
        let asked = Asked { id, request, length, resource, wants_to_observe, by_group };
        let Some(handler) = handler else {
            let response = links::answer(&self.router, &asked.request);
            return self.answered(now, asked, response);
        };
        if let Some(busy) = self.is_busy(peer) {
            self.overloaded += 1;
            return self.actions.push_back(Action::Answer(asked.id, busy));
        }
        let router = Arc::clone(&self.router);
        let answering = match handler {
            Which::Of(resource) => {
                let method = asked.request.method();
                router.resources.get(resource).and_then(|(_, resource)| resource.handler(method))
            }
            Which::Fallback => router.fallback.as_ref(),
        };
        let Some(handler) = answering else { return };
        match start(|| handler(asked.request.clone())) {
            Ok(response) => self.answered(now, asked, response),
            Err(answering) => {
                *self.running.entry(peer).or_default() += 1;
                self.running_in_all += 1;
                let (told, limit) = (self.told.clone(), self.limits.handling);
                tokio::spawn(async move {
                    let response = within(limit, answering).await;
                    let _ = told.send(Told::Answered(Box::new(asked), response));
                });
            }
        }
    }

    /// A handler or somebody else told something.
    pub(crate) fn told(&mut self, now: Instant, told: Told<R>) {
        match told {
            Told::Answered(asked, response) => {
                let peer = asked.request.peer();
                self.running_in_all = self.running_in_all.saturating_sub(1);
                if let Some(running) = self.running.get_mut(&peer) {
                    *running = running.saturating_sub(1);
                    if *running == 0 {
                        self.running.remove(&peer);
                    }
                }
                self.answered(now, *asked, response);
            }
            Told::State(group, response) => self.state(group, response),
            Told::Changed(resource) => {
                let Some(changed) = self.observers.changed(resource) else { return };
                if let Some(last) = changed.end {
                    return self.end_observers(Some(resource), &last);
                }
                for group in self.observers.concerned(resource, &changed) {
                    self.refresh(group);
                }
            }
        }
    }

    /// Asks the handler for the state that a group of observers is to get.
    fn refresh(&mut self, group: u64) {
        let Some((resource, request)) = self.observers.begin(group) else { return };
        let router = Arc::clone(&self.router);
        let Some(handler) = router.resources.get(resource).and_then(|(_, known)| known.handler(request.method()))
        else {
            return;
        };
        match start(|| handler(request)) {
            Ok(response) => self.state(group, response),
            Err(answering) => {
                let (told, limit) = (self.told.clone(), self.limits.handling);
                tokio::spawn(async move {
                    let response = within(limit, answering).await;
                    let _ = told.send(Told::State(group, response));
                });
            }
        }
    }

    fn state(&mut self, group: u64, response: Response) {
        let is_confirmable = self.observers.is_confirmable(group);
        let is_last = !response.is_success();
        for observer in self.observers.members(group) {
            let response = response.clone();
            self.actions.push_back(Action::Notify { observer, response, is_confirmable, is_last });
        }
        if is_last {
            self.observers.remove_group(group);
        } else if self.observers.finish(group) {
            self.refresh(group);
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

    /// A response is there: it goes out unless it is too large for an address that is not proved.
    fn answered(&mut self, now: Instant, asked: Asked<R>, response: Response) {
        let Asked { id, request, length, resource, wants_to_observe, by_group } = asked;
        let response = validated(&request, response);
        let block = request.block_asked().unwrap_or(self.limits.block).min(self.limits.block);
        let size = response.payload().len().min(block) + 16;
        let echoed = request.options().get(number::ECHO).map(|value| &value[..]);
        // A secure session stands only with who is where it says.
        let is_unproved = request.transport() == crate::Transport::Udp;
        if is_unproved && let Err(value) = self.reachability.check(now, request.peer(), echoed, length, size) {
            // Nobody is told to prove anything by an answer to a group: the rest is asked for by unicast.
            if by_group {
                return self.actions.push_back(Action::AnswerBriefly(id, response));
            }
            let prove = Response::new(Code::UNAUTHORIZED).with_option(number::ECHO, value.to_vec());
            return self.actions.push_back(Action::Answer(id, prove));
        }
        let observed = resource.filter(|resource| wants_to_observe && self.observers.has(*resource));
        self.actions.push_back(match observed {
            Some(resource) if response.is_success() && !self.is_closing => {
                Action::Observe { id, response, resource, request }
            }
            _ => Action::Answer(id, response),
        });
    }

    fn is_busy(&self, peer: SocketAddr) -> Option<Response> {
        let busy = |code| Some(Response::new(code).with_max_age(ASK_AGAIN));
        if self.is_closing || self.running_in_all >= self.limits.running {
            return busy(Code::SERVICE_UNAVAILABLE);
        }
        let has_many = self.running.get(&peer).is_some_and(|running| *running >= self.limits.running_per_peer);
        if has_many { busy(Code::TOO_MANY_REQUESTS) } else { None }
    }

    /// Who answers a request: `None` as a handler is the list of links.
    fn find(&self, request: &Unrouted) -> Result<(Option<Found>, Option<Which>), Refusal> {
        /// Critical options that are understood here or by the host below, or left to handlers.
        const UNDERSTOOD: [u16; 11] = [
            number::IF_MATCH,
            number::URI_HOST,
            number::IF_NONE_MATCH,
            number::URI_PORT,
            number::URI_PATH,
            number::URI_QUERY,
            number::ACCEPT,
            number::Q_BLOCK1,
            number::BLOCK2,
            number::BLOCK1,
            number::Q_BLOCK2,
        ];
        for (number, value) in request.options.iter() {
            match number {
                number::PROXY_URI | number::PROXY_SCHEME => return Err(Refusal::Proxy),
                _ if number & 1 == 1 && !UNDERSTOOD.contains(&number) => return Err(Refusal::BadOption),
                number::URI_PATH | number::URI_QUERY if std::str::from_utf8(value).is_err() => {
                    return Err(Refusal::BadText);
                }
                _ => {}
            }
        }
        let path = || request.options.all(number::URI_PATH);
        match self.router.find(path()) {
            Some(found) => {
                let resource = self.router.resources.get(found.resource).map(|(_, resource)| resource);
                match resource.and_then(|resource| resource.handler(request.method)) {
                    Some(_) => {
                        let which = Which::Of(found.resource);
                        Ok((Some(found), Some(which)))
                    }
                    None => Err(Refusal::Method),
                }
            }
            None if links::is_path(path()) => match request.method {
                Code::GET => Ok((None, None)),
                _ => Err(Refusal::Method),
            },
            None if self.router.fallback.is_some() => Ok((None, Some(Which::Fallback))),
            None => Err(Refusal::NotFound),
        }
    }
}

/// Whose handler.
#[derive(Clone, Copy, Debug)]
enum Which {
    Of(usize),
    Fallback,
}

/// Why no handler is asked.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NotFound,
    Method,
    BadOption,
    BadText,
    Proxy,
}

impl Refusal {
    fn response(self) -> Response {
        match self {
            Self::NotFound => Response::not_found(),
            Self::Method => Response::new(Code::METHOD_NOT_ALLOWED),
            Self::BadOption => Response::new(Code::BAD_OPTION),
            Self::BadText => Response::bad_request("path or query is no UTF-8"),
            Self::Proxy => Response::new(Code::PROXYING_NOT_SUPPORTED),
        }
    }
}

/// A representation that the client has already is not sent again (RFC 7252 §5.10.6.2).
fn validated(request: &Request, response: Response) -> Response {
    let Some(etag) = response.options().get(number::ETAG).filter(|_| response.code() == Code::CONTENT) else {
        return response;
    };
    if request.method() != Code::GET || !request.options().all(number::ETAG).any(|known| known == etag) {
        return response;
    }
    let mut valid = Response::new(Code::VALID).with_etag(etag.clone());
    if let Some(seconds) = response.options().uint(number::MAX_AGE) {
        valid = valid.with_max_age(seconds);
    }
    valid
}

/// Asks a handler. One that has its answer at hand needs no task of its own.
fn start(ask: impl FnOnce() -> Answering) -> Result<Response, Answering> {
    let asked = catch_unwind(AssertUnwindSafe(|| {
        let mut answering = ask();
        match answering.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => Ok(response),
            Poll::Pending => Err(answering),
        }
    }));
    asked.unwrap_or_else(|_| Ok(broken()))
}

/// A handler that may panic: then its answer is 5.00, and nobody else is harmed.
struct Caught(Answering);

impl Future for Caught {
    type Output = Response;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let answering = &mut self.0;
        catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(cx))).unwrap_or_else(|_| Poll::Ready(broken()))
    }
}

/// A handler that never ends does not keep its place for ever: then its answer is 5.03.
async fn within(limit: Duration, answering: Answering) -> Response {
    tokio::time::timeout(limit, Caught(answering)).await.unwrap_or_else(|_| {
        tracing::error!(target: "millpond_live", "a handler took more than {limit:?}; its request is answered with 5.03");
        Response::new(Code::SERVICE_UNAVAILABLE)
    })
}

fn broken() -> Response {
    tracing::error!(target: "millpond_live", "a handler panicked; its request is answered with 5.00");
    Response::new(Code::INTERNAL_SERVER_ERROR)
}
