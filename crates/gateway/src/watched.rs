//! One observation for all who observe the same.
//!
//! It begins with the first of them and ends some time after the last. Who cannot be observed is asked again and again instead. While
//! nothing is heard and the state is out of date, observers are told by an error, after which they ask anew.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use millpond_live::{Code, Error, Interest, Observation, RequestBuilder, Response, number};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

use crate::{
    asked::{Alike, Asked},
    engine::{Engine, failed, locked},
    ports,
    refusal::Refusal,
};

/// What is observed.
#[derive(Debug)]
pub(crate) struct Watched {
    state: watch::Sender<Option<State>>,
    interests: Mutex<BTreeMap<u64, Option<Interest>>>,
    made: AtomicU64,
    /// Somebody's interest has ended.
    ended: Notify,
}

/// The newest state, and since when.
#[derive(Clone, Debug)]
struct State {
    response: Response,
    at: Instant,
}

/// Somebody observes, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    watched: Arc<Watched>,
    number: u64,
    states: watch::Receiver<Option<State>>,
}

/// A client registers again 5 to 15 s behind Max-Age (RFC 7641 §3.3.1), and then one answer is on its way.
const RENEWED_WITHIN: Duration = Duration::from_secs(30);
/// Who cannot be observed is asked again when its answer is not fresh any more, and not more often than this.
const POLLED_EVERY: Duration = Duration::from_secs(5);
/// Different things that are observed at a time.
const MOST_WATCHED: usize = 65_536;

impl Engine {
    /// What is observed by requests like this one, from now on. `all` is what is.
    fn watched(
        self: &Arc<Self>,
        all: &mut BTreeMap<Alike, Arc<Watched>>,
        asked: &Asked,
    ) -> Result<Arc<Watched>, Refusal> {
        let key = asked.alike();
        if let Some(watched) = all.get(&key) {
            return Ok(Arc::clone(watched));
        }
        if all.len() >= MOST_WATCHED {
            return Err(Refusal::new(Code::SERVICE_UNAVAILABLE, "too much is observed").again_in(60));
        }
        let watched = Arc::new(Watched {
            state: watch::Sender::new(None),
            interests: Mutex::default(),
            made: AtomicU64::new(0),
            ended: Notify::new(),
        });
        all.insert(key.clone(), Arc::clone(&watched));
        // A state is for many.
        let asked = Asked { may_stream: false, ..asked.clone() };
        let (engine, of) = (Arc::downgrade(self), Arc::clone(&watched));
        tokio::spawn(async move {
            loop {
                let is_left = keep(&engine, &asked, &of).await;
                let Some(engine) = engine.upgrade() else { return };
                let mut all = locked(&engine.watched);
                // Somebody may have come just now.
                if !is_left || locked(&of.interests).is_empty() {
                    // Who asks from now on begins another one.
                    all.remove(&key);
                    return;
                }
            }
        });
        Ok(watched)
    }

    /// Begins to watch, or goes on to.
    pub(crate) fn watch(self: &Arc<Self>, asked: &Asked, interest: Option<Interest>) -> Result<Watching, Refusal> {
        let mut all = locked(&self.watched);
        let watched = self.watched(&mut all, asked)?;
        let number = watched.made.fetch_add(1, Ordering::Relaxed);
        locked(&watched.interests).insert(number, interest);
        drop(all);
        let mut states = watched.state.subscribe();
        states.mark_changed();
        Ok(Watching { watched, number, states })
    }

    /// The newest state, as soon as there is one.
    pub(crate) async fn state(self: &Arc<Self>, asked: &Asked) -> Response {
        match self.watch(asked, None) {
            Ok(mut watching) => watching.first(asked).await,
            Err(refusal) => refusal.response(),
        }
    }
}

impl Watching {
    /// The newest state, as soon as there is one.
    pub(crate) async fn first(&mut self, asked: &Asked) -> Response {
        match timeout(asked.timeout, self.next()).await {
            Ok(state) => state,
            Err(_) => failed(asked, &Error::Deadline { after: asked.timeout }).response(),
        }
    }

    /// The newest state, once that is another than was told before. One that is no success is the last.
    pub(crate) async fn next(&mut self) -> Response {
        loop {
            if self.states.changed().await.is_err() {
                // Its sender is what this one holds.
                return std::future::pending().await;
            }
            if let Some(state) = self.states.borrow_and_update().as_ref() {
                return state.aged();
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        locked(&self.watched.interests).remove(&self.number);
        self.watched.ended.notify_waiters();
    }
}

impl State {
    /// With the Max-Age that is left.
    fn aged(&self) -> Response {
        if !self.response.is_success() {
            return self.response.clone();
        }
        let age = u32::try_from(self.at.elapsed().as_secs()).unwrap_or(u32::MAX);
        self.response.clone().with_max_age(max_age(&self.response).saturating_sub(age))
    }
}

fn max_age(response: &Response) -> u32 {
    response.options().uint(number::MAX_AGE).unwrap_or(60)
}

impl Watched {
    fn tell(&self, engine: &Weak<Engine>, response: Response) {
        let before = self.state.send_replace(Some(State { response, at: Instant::now() }));
        // Who waits for the first state is answered with it.
        if let Some(engine) = engine.upgrade().filter(|_| before.is_some()) {
            engine.outdate();
        }
        let interests: Vec<Interest> = locked(&self.interests).values().flatten().cloned().collect();
        for interest in interests {
            interest.notify();
        }
    }

    /// When the newest state came, and from when on nothing more is believed of it.
    fn is_out_of_date(&self, engine: &Weak<Engine>) -> Option<(Instant, Instant)> {
        let state = self.state.borrow();
        let state = state.as_ref()?;
        let stale = engine.upgrade().map_or(Duration::ZERO, |engine| engine.stale_if_error);
        let fresh = Duration::from_secs(max_age(&state.response).into());
        Some((state.at, state.at + fresh + RENEWED_WITHIN + stale))
    }

    /// Returns once nobody has observed for a while.
    async fn is_left(&self, lingers: Duration) {
        loop {
            let ended = self.ended.notified();
            if locked(&self.interests).is_empty() {
                // Who comes meanwhile shows at the end of it.
                tokio::time::sleep(lingers).await;
                if locked(&self.interests).is_empty() {
                    return;
                }
            }
            ended.await;
        }
    }
}

/// Keeps the newest state, until nobody observes any more or there is none: whether it was the former.
async fn keep(engine: &Weak<Engine>, asked: &Asked, watched: &Watched) -> bool {
    let Some(lingers) = engine.upgrade().map(|engine| engine.lingers) else { return true };
    tokio::select! {
        () = watched.is_left(lingers) => true,
        () = follow(engine, asked, watched) => false,
    }
}

async fn follow(engine: &Weak<Engine>, asked: &Asked, watched: &Watched) {
    let Some(registering) = engine.upgrade() else { return };
    if asked.target.web.is_some() {
        // HTTP has no observations.
        let first = registering.answer(asked).await.0;
        drop(registering);
        let last = poll(engine, asked, watched, first).await;
        return watched.tell(engine, last);
    }
    let until = Instant::now() + asked.timeout;
    let registered = match registering.turn(asked, until).await {
        Ok((_turn, requests)) => {
            let observe =
                |request: RequestBuilder| request.deadline(until.saturating_duration_since(Instant::now())).observe();
            ports::by_one(requests, Error::Closed, observe).await
        }
        Err(refusal) => return watched.tell(engine, refusal.response()),
    };
    drop(registering);
    let last = match registered {
        Ok(observation) => follow_observation(engine, asked, watched, observation).await,
        Err(Error::NotObserved { answer }) => poll(engine, asked, watched, asked.answer(&answer)).await,
        Err(error) => failed(asked, &error).response(),
    };
    watched.tell(engine, last);
}

/// Tells states until there is one that is the last.
async fn follow_observation(
    engine: &Weak<Engine>,
    asked: &Asked,
    watched: &Watched,
    mut observation: Observation,
) -> Response {
    loop {
        let out_of_date = watched.is_out_of_date(engine);
        let next = tokio::select! {
            next = observation.next() => next,
            since = until(out_of_date) => {
                let since = since.elapsed().as_secs();
                let why = format!("{}: nothing was heard for {since} s, and the state is out of date", asked.authority());
                return Refusal::new(Code::GATEWAY_TIMEOUT, why).response();
            }
        };
        let state = match next {
            Some(Ok(state)) => asked.answer(&state),
            Some(Err(error)) => return failed(asked, &error).response(),
            None => return failed(asked, &Error::Closed).response(),
        };
        if !state.is_success() {
            return state;
        }
        if let Some(engine) = engine.upgrade() {
            engine.keep(asked, &state);
        }
        watched.tell(engine, state);
    }
}

/// Waits until nothing more is believed of a state, and says since when it is there.
async fn until(out_of_date: Option<(Instant, Instant)>) -> Instant {
    match out_of_date {
        Some((since, at)) => {
            sleep_until(at).await;
            since
        }
        None => std::future::pending().await,
    }
}

/// Tells states of who cannot be observed until there is one that is the last.
async fn poll(engine: &Weak<Engine>, asked: &Asked, watched: &Watched, mut state: Response) -> Response {
    while state.is_success() {
        state = poll_after(engine, asked, watched, state).await;
    }
    state
}

/// Tells a state of who cannot be observed, and asks for the next one when it is not fresh any more.
async fn poll_after(engine: &Weak<Engine>, asked: &Asked, watched: &Watched, state: Response) -> Response {
    let fresh = Duration::from_secs(max_age(&state).into()).max(POLLED_EVERY);
    watched.tell(engine, state);
    tokio::time::sleep(fresh).await;
    match engine.upgrade() {
        Some(engine) => engine.answer(asked).await.0,
        None => Refusal::new(Code::SERVICE_UNAVAILABLE, "the gateway ends").response(),
    }
}
