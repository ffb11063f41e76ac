//! The gateway: a server whose requests others answer.

use std::{
    fmt,
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::Arc,
    time::Duration,
};

use millpond_live::{
    AccessOutcome, AccessRecord, Code, Duplicates, Error, OscoreContexts, PeerIdentity, Request, Resource, Response,
    Server, Transport, number,
};
use tokio::time::Instant;

use crate::{
    asked::Asked,
    config::{Config, Rule},
    directory::{self, Directory},
    engine::{Engine, LONGEST_WHOLE, Source},
    http::{Front, Listening},
    metrics,
    paths::Paths,
    refusal::Refusal,
    upload::Payload,
};

/// What became of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Access {
    /// Who asked.
    pub peer: SocketAddr,
    /// Over what, by the scheme of its URI: `coap`, `coaps+tcp`, `http`.
    pub scheme: &'static str,
    /// Who that has proved to be.
    pub identity: Option<PeerIdentity>,
    /// Its method; `None` of what could not be read.
    pub method: Option<Code>,
    /// Its path as text: the client may have put anything into it.
    pub path: String,
    /// The rule under which it was forwarded, by its path, or `forward`.
    pub rule: Option<String>,
    /// The URI that was asked for.
    pub upstream: Option<String>,
    /// Where the answer is from.
    pub source: Source,
    /// The answer's code; `None` if there was no answer.
    pub code: Option<Code>,
    /// Bytes of the answer's body.
    pub bytes: usize,
    /// Why, where the gateway decided that.
    pub reason: Option<String>,
    /// From the request to its answer.
    pub took: Duration,
}

pub(crate) type OnAccess = Arc<dyn Fn(&Access) + Send + Sync>;

/// A gateway that runs.
#[derive(Debug)]
pub struct Gateway {
    server: Server,
    http: Listening,
    engine: Arc<Engine>,
}

/// Sets up a [`Gateway`].
pub struct Builder {
    config: Config,
    on_access: Option<OnAccess>,
    lingers: Duration,
    datagrams: Vec<UdpSocket>,
    listeners: Vec<TcpListener>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Handlers that wait for devices, over all and for one peer: a slow path holds them for minutes.
const MOST_RUNNING: usize = 16_384;
const MOST_RUNNING_PER_PEER: usize = 256;

/// Bytes of a body of CoAP.
const LONGEST_BODY: usize = 1 << 20;

/// See [`Builder::observe_on_for`].
const LINGERS: Duration = Duration::from_secs(30);

impl Gateway {
    /// One that does what this file says.
    #[must_use]
    pub fn builder(config: Config) -> Builder {
        Builder { config, on_access: None, lingers: LINGERS, datagrams: Vec::new(), listeners: Vec::new() }
    }

    /// The first address on which it listens for CoAP, one of UDP if there is any.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// The first address on which it listens by this transport.
    #[must_use]
    pub fn local_addr_of(&self, transport: Transport) -> Option<SocketAddr> {
        self.server.local_addr_of(transport)
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addrs(&self) -> &[(Transport, SocketAddr)] {
        self.server.local_addrs()
    }

    /// Where it listens for HTTP, and by which scheme.
    #[must_use]
    pub fn http_addrs(&self) -> &[(&'static str, SocketAddr)] {
        self.http.addresses()
    }

    /// Where its metrics are.
    #[must_use]
    pub const fn metrics_addr(&self) -> Option<SocketAddr> {
        self.server.metrics_addr()
    }

    /// Does what this file says from now on, as far as that concerns rules, rights and credentials; sessions and what is kept stay. What
    /// else differs takes effect when it is started again.
    ///
    /// # Errors
    /// Credentials that cannot be used, a rule that leads to the gateway itself; nothing has changed.
    pub async fn reload(&self, config: &Config) -> Result<(), Error> {
        check_loops(config, &self.engine.paths).await?;
        if let Some(security) = &config.security {
            self.server.set_security(security.clone()).await?;
            if self.http.has_tls() {
                self.http.set_security(security)?;
            }
        }
        self.engine.set_rules(config);
        // Whose rights were withdrawn is told so.
        self.engine.observable().notify();
        Ok(())
    }

    /// Waits for it to end by itself, which it does only if it cannot go on.
    ///
    /// # Errors
    /// Why it ended.
    pub async fn wait(&mut self) -> Result<(), Error> {
        self.server.wait().await
    }

    /// Answers what was asked, tells observers that it ends, and ends.
    pub async fn shutdown(self) {
        tokio::join!(self.server.shutdown(), self.http.shutdown());
        if let Some(directory) = &self.engine.directory {
            directory.flush().await;
        }
    }
}

impl Builder {
    /// Reports what became of each request, from the tasks that answer: do little there.
    #[must_use]
    pub fn on_access(mut self, hook: impl Fn(&Access) + Send + Sync + 'static) -> Self {
        self.on_access = Some(Arc::new(hook));
        self
    }

    /// How long a device is still observed when nobody observes it any more; 30 s, in which who was interrupted registers again.
    #[must_use]
    pub const fn observe_on_for(mut self, lingers: Duration) -> Self {
        self.lingers = lingers;
        self
    }

    /// By these contexts of OSCORE those who have one may ask, and servers are asked [that have one](OscoreContexts::add_for). What is protected
    /// for others, or not at all, passes as without.
    #[must_use]
    pub fn oscore(mut self, contexts: OscoreContexts) -> Self {
        self.config.contexts = Some(contexts.pass_others());
        self
    }

    /// Uses a socket that is bound already, as service managers pass them, where the file says to listen at its address. Repeatable.
    #[must_use]
    pub fn bound_udp(mut self, socket: UdpSocket) -> Self {
        self.datagrams.push(socket);
        self
    }

    /// The same of a listener for connections, those of HTTP among them. Repeatable.
    #[must_use]
    pub fn bound_tcp(mut self, listener: TcpListener) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Whether it could begin, as far as that can be told without listening.
    ///
    /// # Errors
    /// A rule that leads to the gateway itself.
    pub async fn check(&self) -> Result<(), Error> {
        check_loops(&self.config, &Paths::new(&self.config).await?).await
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// A socket that was passed for an address at which the file does not listen. An address that cannot be bound, credentials that cannot be used, a rule that leads to the gateway itself.
    pub async fn start(self) -> Result<Gateway, Error> {
        let Self { config, on_access, lingers, datagrams, listeners } = self;
        let directory = match config.directory.clone() {
            Some(settings) => Some(Directory::start(settings).await),
            None => None,
        };
        let engine = Arc::new(Engine::new(&config, directory.clone(), lingers).await?);
        check_loops(&config, &engine.paths).await?;
        let mut builder = Server::builder()
            .most_running(MOST_RUNNING)
            .most_running_per_peer(MOST_RUNNING_PER_PEER)
            .longest_body(LONGEST_BODY)
            // A cell may lie between it and those who ask.
            .duplicates(Duplicates::Calm)
            .proxy(proxy(&engine, on_access.clone()));
        let listen = &config.listen;
        builder = listen.trust.iter().fold(builder, |builder, network| builder.trust(*network));
        builder = listen.coap.iter().fold(builder, |builder, address| builder.bind(*address));
        builder = listen.coap_tcp.iter().fold(builder, |builder, address| builder.bind_tcp(*address));
        if let Some(security) = config.security.clone() {
            builder = listen.coaps.iter().fold(builder, |builder, address| builder.bind_dtls(*address));
            builder = listen.coaps_tcp.iter().fold(builder, |builder, address| builder.bind_tls(*address));
            builder = builder.security(security);
        }
        if let Some(contexts) = config.contexts.clone() {
            builder = builder.oscore(contexts);
        }
        let is_for_http = |bound: &TcpListener| {
            bound.local_addr().is_ok_and(|at| listen.http.contains(&at) || listen.https.contains(&at))
        };
        let (for_http, for_coap): (Vec<_>, Vec<_>) = listeners.into_iter().partition(is_for_http);
        builder = datagrams.into_iter().fold(builder, millpond_live::ServerBuilder::bound_udp);
        builder = for_coap.into_iter().fold(builder, millpond_live::ServerBuilder::bound_tcp);
        if let Some(file) = &listen.state {
            builder = builder.state_file(file);
        }
        if let Some(address) = listen.metrics {
            let engine = Arc::clone(&engine);
            builder = builder.metrics(address).metrics_beside(move || metrics::text(Arc::clone(&engine)));
        }
        if let Some(hook) = on_access.clone() {
            builder = builder.access_log(move |record| {
                // Of others a handler has told.
                if record.reason.is_some() {
                    hook(&Access::refused(record));
                }
            });
        }
        if let Some(directory) = &directory {
            builder = directory::routes(builder, directory);
        }
        let server = builder.start().await?;
        if let Some(directory) = &directory {
            directory.ask_by(&server);
        }
        let front = Front::new(&engine, config.http.clone(), on_access);
        let http = Listening::start(front, listen, for_http, config.security.as_ref()).await?;
        Ok(Gateway { server, http, engine })
    }
}

/// The resource that stands for all that others have.
fn proxy(engine: &Arc<Engine>, on_access: Option<OnAccess>) -> Resource {
    let observable = engine.observable();
    let engine = Arc::clone(engine);
    Resource::new().observable(&observable).streaming_uploads(LONGEST_WHOLE).any(move |request: Request| {
        let at_hand = at_hand(&engine, &request, on_access.as_ref());
        let rest = at_hand.map_err(|read| (Arc::clone(&engine), request, on_access.clone(), read));
        async move {
            match rest {
                Ok(response) => response,
                // It takes much room, which who is answered at once does without.
                Err((engine, request, on_access, read)) => {
                    Box::pin(answered(&engine, &request, on_access.as_ref(), read)).await
                }
            }
        }
    })
}

/// What is asked, if that has been read.
type Read = Option<Box<Result<Asked, Refusal>>>;

/// The answer that is kept, or else what is asked.
fn at_hand(engine: &Engine, request: &Request, on_access: Option<&OnAccess>) -> Result<Response, Read> {
    let began = Instant::now();
    if observes(request) || request.options().get(number::BLOCK1).is_some() {
        return Err(None);
    }
    match engine.rules().read(request, &Payload::Whole(request.payload().clone())) {
        Ok(asked) => match engine.fresh(&asked) {
            Some(response) => {
                tell((engine, on_access), request, Some(&asked), (&response, Source::Cache), began.elapsed());
                Ok(response)
            }
            None => Err(Some(Box::new(Ok(asked)))),
        },
        Err(refusal) => Err(Some(Box::new(Err(refusal)))),
    }
}

async fn answered(engine: &Arc<Engine>, request: &Request, on_access: Option<&OnAccess>, read: Read) -> Response {
    let began = Instant::now();
    let (asked, response, source) = match payload(request).await {
        Ok(payload) => {
            engine.respond(read.map(|read| *read), |rules| rules.read(request, &payload), observes(request)).await
        }
        Err(refusal) => {
            let response = refusal.response();
            (Err(refusal), response, Source::Gateway)
        }
    };
    tell((engine, on_access), request, asked.as_ref().ok(), (&response, source), began.elapsed());
    response
}

/// Tells what became of a request.
fn tell(
    (engine, on_access): (&Engine, Option<&OnAccess>),
    request: &Request,
    asked: Option<&Asked>,
    (response, source): (&Response, Source),
    took: Duration,
) {
    let rule = asked.map(|asked| asked.under.name());
    if let Some(answers) = &engine.answers {
        answers.count(rule, source, took);
    }
    if let Some(hook) = on_access {
        let reason = (source == Source::Gateway).then(|| response.text().unwrap_or_default().to_owned());
        hook(&Access {
            peer: request.peer(),
            scheme: scheme(request.transport()),
            identity: request.identity().cloned(),
            method: Some(request.method()),
            path: request.path_text(),
            rule: rule.map(ToString::to_string),
            upstream: asked.map(|asked| asked.target.to_string()),
            source,
            code: Some(response.code()),
            bytes: response.payload().len(),
            reason,
            took,
        });
    }
}

/// Its body, of which a long one comes while it is forwarded.
async fn payload(request: &Request) -> Result<Payload, Refusal> {
    if request.options().get(number::BLOCK1).is_none() || !request.payload().is_empty() {
        return Ok(Payload::Whole(request.payload().clone()));
    }
    let body = request.body();
    let size = body.total().map(|size| size as u64);
    // Who sends nothing more is given up by the server.
    Payload::read(body, size, (LONGEST_WHOLE, LONGEST_BODY), None).await
}

/// Whether a request begins to observe, or is asked again for those who do.
fn observes(request: &Request) -> bool {
    request.options().uint(number::OBSERVE) == Some(0) && matches!(request.method(), Code::GET | Code::FETCH)
}

impl Access {
    /// One that the server refused by itself.
    fn refused(record: &AccessRecord) -> Self {
        let (code, bytes) = match record.outcome {
            AccessOutcome::Answered { code, bytes } => (Some(code), bytes),
            _ => (None, 0),
        };
        Self {
            peer: record.peer,
            scheme: scheme(record.transport),
            identity: record.identity.as_deref().cloned(),
            method: record.method,
            path: record.path.clone(),
            rule: None,
            upstream: None,
            source: Source::Gateway,
            code,
            bytes,
            reason: record.reason.as_ref().map(ToString::to_string),
            took: record.took,
        }
    }
}

const fn scheme(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "coap",
        Transport::Tcp => "coap+tcp",
        Transport::Dtls => "coaps",
        Transport::Tls => "coaps+tcp",
    }
}

/// No rule leads to where the gateway listens.
async fn check_loops(config: &Config, paths: &Paths) -> Result<(), Error> {
    let listen = &config.listen;
    for rule in &config.rules {
        let Some(target) = rule.goal.fixed() else { continue };
        let here: &[SocketAddr] = match target.scheme() {
            "coap" => &listen.coap,
            "coap+tcp" => &listen.coap_tcp,
            "coaps" => &listen.coaps,
            "coaps+tcp" => &listen.coaps_tcp,
            "http" => &listen.http,
            _ => &listen.https,
        };
        // Who cannot be resolved now may be later, and is told of when it is asked.
        let addresses = paths.resolve(&target.uri).await.unwrap_or_default();
        let leads_here = |address: &SocketAddr| {
            here.iter().any(|own| own.port() == address.port() && own.port() != 0 && is_at(own.ip(), address.ip()))
        };
        if let Some(own) = addresses.iter().find(|address| leads_here(address)) {
            let Rule { place, path, .. } = rule;
            let reason = format!("{place}: the rule for {path} leads to {own}, where the gateway itself listens");
            return Err(Error::Setting { name: "rule", reason });
        }
    }
    Ok(())
}

/// Whether who listens there hears what is sent to this address.
fn is_at(listens: std::net::IpAddr, address: std::net::IpAddr) -> bool {
    let address = address.to_canonical();
    // An address can be bound if it is one of this machine.
    let is_of_this_machine = || std::net::UdpSocket::bind((address, 0)).is_ok();
    listens.to_canonical() == address || listens.is_unspecified() && is_of_this_machine()
}
