//! What becomes of a request: an answer that is kept, one that somebody else waits for already, or one that is asked for.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use millpond_live::{
    Cache, CacheKey, Cached, Client, Clock, Code, Error, Interest, Observable, Request, RequestBuilder, Response,
    number,
    proxy::{Flights, NoRoom},
};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, timeout_at},
};

use crate::{
    asked::{Alike, Asked, Rules},
    config::Config,
    directory::Directory,
    http::Asking,
    metrics::Answers,
    paths::{Paths, Turn, Way},
    ports,
    refusal::Refusal,
    streams::Streams,
    upload::{Payload, Upload},
    watched::Watched,
};

/// The gateway between its two sides.
#[derive(Debug)]
pub(crate) struct Engine {
    rules: watch::Sender<Arc<Rules>>,
    pub(crate) paths: Paths,
    /// How it asks by HTTP.
    asking: Asking,
    pub(crate) directory: Option<Directory>,
    cache: Mutex<Cache>,
    /// For how long an answer that is not fresh stands in for one that does not come.
    pub(crate) stale_if_error: Duration,
    /// How long an observation goes on without observers: who registers again after a gap, or was asked for its first state and is an
    /// observer in a moment, finds it.
    pub(crate) lingers: Duration,
    /// What is being asked for, and who waits for it.
    flights: Arc<Mutex<Waiting>>,
    clock: Clock,
    /// If anybody may fetch that.
    pub(crate) answers: Option<Answers>,
    /// What has been asked and is not answered, and how many proxies each may still pass.
    open: Mutex<BTreeMap<CacheKey, Vec<u8>>>,
    pub(crate) streams: Streams,
    /// Bytes of the longest answer that is kept.
    longest_kept: usize,
    pub(crate) watched: Mutex<BTreeMap<Alike, Arc<Watched>>>,
    /// What the server's observers observe.
    observable: OnceLock<Observable>,
}

/// Where an answer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The gateway itself.
    Gateway,
    /// It was kept, and is fresh.
    Cache,
    /// Somebody else asked for the same at the time.
    Shared,
    /// An observation of the gateway.
    Observation,
    /// It was kept and is not fresh any more, and who is asked for another one does not answer.
    Stale,
    /// Who is asked.
    Upstream,
}

impl Source {
    /// As it is written in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Cache => "cache",
            Self::Shared => "shared",
            Self::Observation => "observation",
            Self::Stale => "stale",
            Self::Upstream => "upstream",
        }
    }
}

/// How often it is looked whether a device that sleeps has come.
const LOOKED_AGAIN: Duration = Duration::from_millis(500);
/// Bytes of the longest body that is whole before it is forwarded: an answer, so that others who ask for the same get it, too. Of a longer
/// one the gateway has about twice as much at most while it is forwarded.
pub(crate) const LONGEST_WHOLE: usize = 64 << 10;
/// The same of one that is kept: a share of the cache.
const SHARE_OF_CACHE: usize = 4;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    pub(crate) async fn new(config: &Config, directory: Option<Directory>, lingers: Duration) -> Result<Self, Error> {
        Ok(Self {
            rules: watch::Sender::new(Arc::new(Rules::of(config, directory.clone()))),
            directory,
            paths: Paths::new(config).await?,
            asking: Asking::new(config)?,
            cache: Mutex::new(Cache::new(config.cache.bytes)),
            lingers,
            stale_if_error: config.cache.stale_if_error,
            flights: Arc::default(),
            clock: Clock::start(),
            open: Mutex::default(),
            streams: Streams::default(),
            longest_kept: config.cache.bytes / SHARE_OF_CACHE,
            answers: config.listen.metrics.map(|_| Answers::new()),
            watched: Mutex::default(),
            observable: OnceLock::new(),
        })
    }

    /// By which the server notifies its observers.
    pub(crate) fn observable(self: &Arc<Self>) -> Observable {
        let engine = Arc::downgrade(self);
        let begins = move |request: &Request, interest: Interest| {
            let engine = engine.upgrade()?;
            let asked = engine.rules().read(request, &Payload::Whole(request.payload().clone())).ok()?;
            engine.watch(&asked, Some(interest)).ok()
        };
        self.observable.get_or_init(|| Observable::on_interest(begins)).clone()
    }

    /// What is observed has changed: who is being answered at this moment may have been told what was before.
    pub(crate) fn outdate(&self) {
        if let Some(observable) = self.observable.get() {
            observable.outdate();
        }
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.borrow())
    }

    pub(crate) fn set_rules(&self, config: &Config) {
        self.rules.send_replace(Arc::new(Rules::of(config, self.directory.clone())));
    }

    /// Who is told when there are other rules.
    pub(crate) fn rules_changed(&self) -> watch::Receiver<Arc<Rules>> {
        self.rules.subscribe()
    }

    /// Bytes of answers that are kept.
    pub(crate) fn kept(&self) -> usize {
        locked(&self.cache).bytes()
    }

    /// Different requests that are not answered.
    pub(crate) fn open(&self) -> usize {
        locked(&self.open).len().max(locked(&self.flights).len())
    }

    /// For how long the answer to a request has been kept.
    pub(crate) fn age(&self, asked: &Asked) -> Option<Duration> {
        locked(&self.cache).age(self.clock.now(), &asked.key)
    }

    /// Keeps a state that somebody told.
    pub(crate) fn keep(&self, asked: &Asked, state: &Response) {
        if asked.is_shared {
            locked(&self.cache).take(self.clock.now(), &asked.key, None, state.clone());
        }
    }

    /// What is asked, as it was read already or by the rules as they are, and the answer: the state that is observed, or one for this
    /// request. Where a rule lets a request wait for its device, it does.
    pub(crate) async fn respond(
        self: &Arc<Self>,
        mut read: Option<Result<Asked, Refusal>>,
        asks: impl Fn(&Rules) -> Result<Asked, Refusal>,
        observes: bool,
    ) -> (Result<Asked, Refusal>, Response, Source) {
        let began = Instant::now();
        loop {
            let asked = read.take().unwrap_or_else(|| asks(&self.rules()));
            let (response, source) = match &asked {
                Ok(asked) if observes => (Box::pin(self.state(asked)).await, Source::Observation),
                Ok(asked) => self.answer(asked).await,
                Err(refusal) => (refusal.response(), Source::Gateway),
            };
            let may_wait = match &asked {
                Ok(asked) if source == Source::Gateway => asked.may_wait(&response),
                Ok(_) => None,
                Err(refusal) => refusal.may_wait,
            };
            if may_wait.is_none_or(|longest| began.elapsed() + LOOKED_AGAIN >= longest) {
                return (asked, response, source);
            }
            tokio::time::sleep(LOOKED_AGAIN).await;
        }
    }

    /// The answer to a request that is kept and fresh.
    pub(crate) fn fresh(&self, asked: &Asked) -> Option<Response> {
        let kept = asked.is_shared.then(|| locked(&self.cache).get(self.clock.now(), &asked.key));
        match kept.flatten()? {
            Cached::Fresh(response) => Some(response),
            Cached::Stale(..) => None,
        }
    }

    /// The answer to a request.
    pub(crate) async fn answer(&self, asked: &Asked) -> (Response, Source) {
        // What an upstream is asked by takes much room, which who is answered at once does without.
        if !asked.is_shared {
            return Box::pin(self.answer_alone(asked)).await;
        }
        let kept = locked(&self.cache).get(self.clock.now(), &asked.key);
        let stale = match kept {
            Some(Cached::Fresh(response)) => return (response, Source::Cache),
            Some(Cached::Stale(response, since)) => Some((response, since)),
            None => None,
        };
        Box::pin(self.answer_together(asked, stale)).await
    }

    async fn answer_alone(&self, asked: &Asked) -> (Response, Source) {
        let answer = self.ask(asked, None).await;
        // It may have been carried out although nobody answered.
        locked(&self.cache).changed(&asked.key);
        match answer {
            Ok(answer) => (answer, Source::Upstream),
            Err(refusal) => (refusal.response(), Source::Gateway),
        }
    }

    /// The same for all who ask for it now; with what was kept, and for how long it is not fresh any more.
    async fn answer_together(&self, asked: &Asked, kept: Option<(Response, Duration)>) -> (Response, Source) {
        let alike = asked.alike();
        let (asks, waits) = oneshot::channel();
        let leads = locked(&self.flights).join(alike.clone(), asks, oneshot::Sender::is_closed).is_some();
        let flight = match leads {
            true => Flight { of: Arc::clone(&self.flights), alike: Some(alike) },
            false => match waits.await {
                Ok(Landed::With(answer)) => return (answer, Source::Shared),
                Ok(Landed::Empty(flight)) => flight,
                // The engine ends, and with it what waits.
                Err(_) => return (Response::new(Code::SERVICE_UNAVAILABLE), Source::Gateway),
            },
        };
        let etag = kept.as_ref().and_then(|(kept, _)| kept.options().get(number::ETAG)).cloned();
        let (answer, source) = match self.ask(asked, etag.as_deref()).await {
            // It is for one alone: the next who waits asks anew.
            Ok(answer) if answer.has_body_to_come() => return (answer, Source::Upstream),
            Ok(answer) => {
                let kept = kept.as_ref().map(|(kept, _)| kept);
                (locked(&self.cache).take(self.clock.now(), &asked.key, kept, answer), Source::Upstream)
            }
            Err(refusal) => match kept.filter(|(_, since)| *since < self.stale_if_error) {
                // By this it says that it is not fresh.
                Some((stale, _)) => (stale.with_max_age(0), Source::Stale),
                // Others that wait for the same may have room where this one has none: the next of them asks.
                None if refusal.is_for_want_of_room() => return (refusal.response(), Source::Gateway),
                None => (refusal.response(), Source::Gateway),
            },
        };
        flight.land(&answer);
        (answer, source)
    }

    /// Asks who has it, once it is its turn.
    async fn ask(&self, asked: &Asked, etag: Option<&[u8]>) -> Result<Response, Refusal> {
        let until = Instant::now() + asked.timeout;
        if let Some(web) = &asked.target.web {
            let address = self.address(asked).await?;
            let _turn = self.turn_at(asked, &self.paths.way(&asked.target.uri, address), until).await?;
            let _open = Open::new(self, asked);
            return self.asking.ask(asked, web, etag, address, until).await;
        }
        let (turn, requests) = self.turn(asked, until).await?;
        let _open = Open::new(self, asked);
        if let Some(upload) = asked.payload.coming() {
            // It takes much room, which a request without a body that comes does without.
            return Box::pin(self.uploaded(asked, upload, turn, requests)).await;
        }
        let _turn = turn;
        let answer = ports::by_one(requests, Error::Closed, |request| {
            let request = match etag {
                Some(etag) => request.option(number::ETAG, etag.to_vec()),
                None => request,
            };
            let request = request.deadline(until.saturating_duration_since(Instant::now()));
            async move {
                match asked.may_stream {
                    true => request.send_streaming(|first| self.whole(asked, first)).await,
                    false => request.send().await,
                }
            }
        });
        match answer.await {
            Ok(response) => self.forwarded(asked, response),
            Err(error) => Err(failed(asked, &error)),
        }
    }

    /// The answer to a request whose body is forwarded while it comes. Its timeout is that of each message of it.
    async fn uploaded(
        &self,
        asked: &Asked,
        upload: &Upload,
        turn: Option<Turn>,
        requests: Vec<RequestBuilder>,
    ) -> Result<Response, Refusal> {
        upload.hold(turn);
        let requests = requests.into_iter().take_while(|_| !upload.has_begun());
        let answer = ports::by_one(requests, Error::Closed, |request| {
            let of = upload.clone();
            let request = request.progress(move |_| of.begin());
            let request = match upload.size {
                Some(size) => request.upload_size(size),
                None => request,
            };
            async move { request.upload(&mut upload.reader()).await }
        });
        let answer = upload.forwarding(asked.timeout, answer).await;
        upload.hold(None);
        match answer.unwrap_or(Err(Error::Deadline { after: asked.timeout })) {
            Ok(response) => Ok(asked.answer(&response)),
            Err(error) => Err(upload.refusal().unwrap_or_else(|| failed(asked, &error))),
        }
    }

    /// Bytes of an answer that begins so for which the rest waits.
    fn whole(&self, asked: &Asked, first: &Response) -> usize {
        if !asked.is_validated {
            // It gets none of a long answer, and asks once more.
            return 0;
        }
        let is_kept = first.options().uint(number::MAX_AGE) != Some(0) || first.options().get(number::ETAG).is_some();
        if is_kept { self.longest_kept.max(LONGEST_WHOLE) } else { LONGEST_WHOLE }
    }

    /// Somebody's answer, as it is handed back; a long one while it comes.
    fn forwarded(&self, asked: &Asked, response: Response) -> Result<Response, Refusal> {
        let Some(body) = response.take_body() else { return Ok(asked.answer(&response)) };
        if !asked.is_validated {
            let why = format!("{}: a long answer, for an address that is not validated", asked.authority());
            return Err(Refusal { asks_for_proof: true, ..Refusal::new(Code::UNAUTHORIZED, why) });
        }
        let answer = asked.answer(&response);
        if !answer.is_success() {
            return Ok(answer);
        }
        let stream = self.streams.begin(asked.peer, body).ok_or_else(|| {
            let why = format!("{}: too many long answers are forwarded at this time", asked.authority());
            Refusal::new(Code::SERVICE_UNAVAILABLE, why).again_in(30)
        })?;
        Ok(answer.with_stream(stream))
    }

    /// A turn on the path to who is asked, and the requests of which one is to be sent in it: one for each port by which it may be reached.
    pub(crate) async fn turn(
        &self,
        asked: &Asked,
        until: Instant,
    ) -> Result<(Option<Turn>, Vec<RequestBuilder>), Refusal> {
        let address = self.address(asked).await?;
        let way = self.paths.way(&asked.target.uri, address);
        let clients = match (&asked.registrant, &self.directory) {
            (Some(registrant), Some(directory)) => directory.clients(registrant),
            _ => vec![way.client.clone()],
        };
        let requests = clients.iter().map(|client| request(client, asked, address)).collect();
        Ok((self.turn_at(asked, &way, until).await?, requests))
    }

    /// A turn on a path.
    async fn turn_at(&self, asked: &Asked, way: &Way, until: Instant) -> Result<Option<Turn>, Refusal> {
        if self.is_round(asked) {
            return Ok(None);
        }
        let turn = timeout_at(until, way.turns.take(asked.peer, asked.is_validated)).await;
        let turn = turn.map_err(|_| {
            let why = format!("{}: {} s passed before its turn came", asked.authority(), asked.timeout.as_secs());
            Refusal::new(Code::GATEWAY_TIMEOUT, why)
        })?;
        let turn = turn.map_err(|no_room| {
            let why = format!("{}: too many requests wait for this path", asked.authority());
            match no_room {
                NoRoom::Full { again_in } => Refusal::new(Code::SERVICE_UNAVAILABLE, why).again_in(again_in),
                NoRoom::Unvalidated => Refusal { asks_for_proof: true, ..Refusal::new(Code::UNAUTHORIZED, why) },
            }
        })?;
        Ok(Some(turn))
    }

    /// Whether this may be a request that is open already and has come back round other gateways. It would wait for its own turn; without
    /// one it goes on until Hop-Limit ends it.
    fn is_round(&self, asked: &Asked) -> bool {
        locked(&self.open).get(&asked.key).is_some_and(|limits| limits.iter().any(|limit| *limit > asked.hop_limit))
    }

    /// Where who is asked is.
    async fn address(&self, asked: &Asked) -> Result<SocketAddr, Refusal> {
        let found = self.paths.resolve(&asked.target.uri).await;
        let found = found.map_err(|error| Refusal::new(Code::BAD_GATEWAY, error.to_string()))?;
        let may = |address: &SocketAddr| asked.may_go_to(*address, |ip| self.paths.has(ip));
        found.into_iter().find(may).ok_or_else(|| {
            Refusal::new(
                Code::FORBIDDEN,
                format!("{} is not to be asked through this gateway", asked.target.uri.host()),
            )
        })
    }
}

/// What is being asked for, and who waits for it.
type Waiting = Flights<Alike, oneshot::Sender<Landed>>;

/// How it ended for those that waited for somebody else's answer.
#[derive(Debug)]
enum Landed {
    With(Response),
    /// There is none: who hears this asks.
    Empty(Flight),
}

/// An answer that one asks for and others wait for. If it is dropped without one, the next of them asks.
#[derive(Debug)]
struct Flight {
    of: Arc<Mutex<Waiting>>,
    /// There until it has ended.
    alike: Option<Alike>,
}

impl Flight {
    /// Gives all that wait the answer.
    fn land(mut self, answer: &Response) {
        let waiting = self.alike.take().map(|alike| locked(&self.of).end(&alike));
        for waits in waiting.into_iter().flatten() {
            // Who is gone needs none.
            let _ = waits.send(Landed::With(answer.clone()));
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(mut alike) = self.alike.take() else { return };
        loop {
            let Some(next) = locked(&self.of).pass(&alike) else { return };
            let flight = Self { of: Arc::clone(&self.of), alike: Some(alike) };
            // Who is gone gives it back.
            let Err(Landed::Empty(mut flight)) = next.send(Landed::Empty(flight)) else { return };
            let Some(given_back) = flight.alike.take() else { return };
            alike = given_back;
        }
    }
}

/// A request that is not answered yet.
struct Open<'e> {
    of: &'e Engine,
    key: CacheKey,
    hop_limit: u8,
}

impl<'e> Open<'e> {
    fn new(of: &'e Engine, asked: &Asked) -> Self {
        locked(&of.open).entry(asked.key.clone()).or_default().push(asked.hop_limit);
        Self { of, key: asked.key.clone(), hop_limit: asked.hop_limit }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut open = locked(&self.of.open);
        let Some(limits) = open.get_mut(&self.key) else { return };
        if let Some(place) = limits.iter().position(|limit| *limit == self.hop_limit) {
            limits.swap_remove(place);
        }
        if limits.is_empty() {
            open.remove(&self.key);
        }
    }
}

fn request(client: &Client, asked: &Asked, address: SocketAddr) -> RequestBuilder {
    let request = client.request(asked.method, &asked.target.uri).address(address).payload(asked.payload.whole());
    let request = asked.options.iter().fold(request, |request, (number, value)| request.option(number, value.clone()));
    let request = match asked.registrant.as_ref().and_then(|registrant| registrant.identity.clone()) {
        Some(identity) => request.identity(identity),
        None => request,
    };
    request.hop_limit(asked.hop_limit)
}

/// Who was asked has not answered.
pub(crate) fn failed(asked: &Asked, error: &Error) -> Refusal {
    let code = if error.is_timeout() { Code::GATEWAY_TIMEOUT } else { Code::BAD_GATEWAY };
    Refusal::new(code, format!("{}: {error}", asked.authority()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use millpond_live::{Bytes, Options, Resource, Server};

    use super::*;
    use crate::{asked::Wanted, target::Target};

    /// The owner of a name that is allowed says another address each time: the one that was judged is the one that is asked, and one near
    /// the gateway that no network of the rule names is not.
    #[tokio::test]
    async fn a_name_is_resolved_once_and_asked_where_that_was_allowed() {
        let server = Server::builder()
            .bind("127.0.0.1:0")
            .route("/a", Resource::new().get(|| async { "a" }))
            .start()
            .await
            .unwrap();
        let port = server.local_addr().port();
        let lines = "[[forward]]\nto = [\"device.invalid\", \"127.0.0.1/32\"]\n";
        let config = Config::from_toml(lines, "gateway.toml", Path::new("")).unwrap();
        let engine = Engine::new(&config, None, Duration::ZERO).await.unwrap();
        let at = |host: [u8; 4]| vec![SocketAddr::from((host, port))];
        locked(&engine.paths.told).extend([at([127, 0, 0, 1]), at([127, 0, 0, 2]), at([10, 0, 0, 1])]);
        let mut codes = Vec::new();
        for path in ["a", "b", "c"] {
            let target = Target::read(&format!("coap://device.invalid:{port}/{path}")).unwrap();
            let asked = engine.rules().asked(&Wanted {
                method: Code::GET,
                peer: ([127, 0, 0, 1], 1).into(),
                is_validated: true,
                identity: None,
                host: None,
                path: &[],
                query: &[],
                named: Some(&target),
                hop_limit: 16,
                options: &Options::new(),
                payload: &Payload::Whole(Bytes::new()),
                takes_streams: true,
            });
            let (response, source) = engine.answer(&asked.unwrap()).await;
            codes.push((response.code(), source));
        }
        let refused = (Code::FORBIDDEN, Source::Gateway);
        assert_eq!(codes, [(Code::CONTENT, Source::Upstream), refused, refused]);
        assert!(locked(&engine.paths.told).is_empty());
    }
}
