//! A request on its way to whom it is for: which rule it is under, and what of it is forwarded (RFC 7252 §5.7).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use millpond_live::{
    Bytes, CacheKey, Code, Options, PeerIdentity, Request, Response, Transport, Uri, is_unsafe_to_forward, number,
};

use crate::{
    config::{Config, Destination, Forward, Rights, Rule},
    destination,
    directory::{Directory, Registrant},
    refusal::Refusal,
    target::{Target, web_transport},
    template::uri,
    upload::{Payload, Upload},
};

/// What is asked of somebody else.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Code,
    pub(crate) target: Target,
    /// Those that are forwarded, without Hop-Limit.
    pub(crate) options: Options,
    pub(crate) hop_limit: u8,
    pub(crate) payload: Payload,
    /// Who asks.
    pub(crate) peer: SocketAddr,
    /// It has shown that it is at its address.
    pub(crate) is_validated: bool,
    pub(crate) timeout: Duration,
    /// Requests with the same ask for the same.
    pub(crate) key: CacheKey,
    /// An answer may be kept, and be given to others who ask for the same.
    pub(crate) is_shared: bool,
    /// A long one may come while it is forwarded.
    pub(crate) may_stream: bool,
    /// Who has registered and is asked where it did so: by the gateway's own port, in its session or connection.
    pub(crate) registrant: Option<Registrant>,
    pub(crate) under: Under,
}

/// What lets it be asked.
#[derive(Clone, Debug)]
pub(crate) enum Under {
    /// A rule, and the path that was asked for under it.
    Rule(Arc<Rule>, Vec<String>),
    Forward(Arc<Forward>),
}

impl Under {
    /// Its name in logs and metrics.
    pub(crate) fn name(&self) -> &Arc<str> {
        match self {
            Self::Rule(rule, _) => rule.path.text(),
            Self::Forward(forward) => &forward.name,
        }
    }
}

/// Whom clients may ask for what.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    rules: Vec<Arc<Rule>>,
    forward: Vec<Arc<Forward>>,
    directory: Option<Directory>,
}

/// Where a request leads.
pub(crate) struct Led {
    target: Target,
    /// Whose answers are kept there, if not who is at its address.
    owner: Option<String>,
    registrant: Option<Registrant>,
    timeout: Duration,
    under: Under,
}

/// A request of a client, whatever protocol it came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'r> {
    pub(crate) method: Code,
    pub(crate) peer: SocketAddr,
    /// It has shown that it is at its address.
    pub(crate) is_validated: bool,
    pub(crate) identity: Option<&'r PeerIdentity>,
    /// The name by which the gateway is asked.
    pub(crate) host: Option<&'r str>,
    pub(crate) path: &'r [String],
    pub(crate) query: &'r [String],
    /// The URI that the client names; none if it asks for a path of the gateway.
    pub(crate) named: Option<&'r Target>,
    /// Proxies that it may still pass, this one included.
    pub(crate) hop_limit: u8,
    pub(crate) options: &'r Options,
    pub(crate) payload: &'r Payload,
    /// It takes a long answer while that comes.
    pub(crate) takes_streams: bool,
}

/// Proxies that a request may still pass where it does not say so (RFC 8768 §3).
pub(crate) const HOP_LIMIT: u8 = 16;

impl Rules {
    pub(crate) fn of(config: &Config, directory: Option<Directory>) -> Self {
        Self {
            directory,
            rules: config.rules.iter().cloned().map(Arc::new).collect(),
            forward: config.forward.iter().cloned().map(Arc::new).collect(),
        }
    }

    /// What a request of CoAP asks, and of whom.
    ///
    /// # Errors
    /// Nobody is asked, and why.
    pub(crate) fn read(&self, request: &Request, payload: &Payload) -> Result<Asked, Refusal> {
        let options = request.options();
        let hop_limit = match options.get(number::HOP_LIMIT).map(|value| &value[..]) {
            Some([hops]) => *hops,
            _ => HOP_LIMIT,
        };
        let (path, query) = (texts(options, number::URI_PATH)?, texts(options, number::URI_QUERY)?);
        // Outside of what a context protects anybody may write whom a request is for (RFC 8613 §4.1.3.2).
        let is_protected = matches!(request.identity(), Some(PeerIdentity::Oscore(_)));
        let host = options.get(number::URI_HOST).filter(|_| !is_protected);
        let host = host.and_then(|host| std::str::from_utf8(host).ok());
        if is_protected && [number::PROXY_URI, number::PROXY_SCHEME].into_iter().any(|it| options.get(it).is_some()) {
            let why = "a request that is protected for the gateway names whom it is for, which is not protected";
            return Err(Refusal::new(Code::BAD_OPTION, why));
        }
        let mut wanted = Wanted {
            method: request.method(),
            peer: request.peer(),
            is_validated: request.is_address_proved(),
            identity: request.identity(),
            host,
            path: &path,
            query: &query,
            named: None,
            hop_limit,
            options,
            payload,
            takes_streams: request.may_stream(),
        };
        let named = named(options, &wanted)?;
        wanted.named = named.as_ref();
        self.asked(&wanted)
    }

    /// What a request asks, and of whom.
    ///
    /// # Errors
    /// Nobody is asked, and why.
    pub(crate) fn asked(&self, wanted: &Wanted<'_>) -> Result<Asked, Refusal> {
        let Led { target, owner, registrant, timeout, under } = match wanted.named {
            Some(target) => self.forwarded(wanted, target)?,
            None => self.led(wanted)?,
        };
        let Some(hop_limit) = wanted.hop_limit.checked_sub(1).filter(|left| *left > 0) else {
            return Err(Refusal::new(Code::HOP_LIMIT_REACHED, "millpond"));
        };
        let is_safe = matches!(wanted.method, Code::GET | Code::FETCH);
        let mut forwarded = Options::new();
        for (number, value) in wanted.options.iter() {
            match class(number) {
                // It may be asked about what is kept here.
                Class::Forwarded if number == number::ETAG && is_safe => {}
                Class::Forwarded => forwarded.add(number, value.clone()),
                Class::EndsHere => {}
                Class::Unknown => {
                    return Err(Refusal::new(
                        Code::BAD_OPTION,
                        format!("option {number} is not known, and is not safe to forward"),
                    ));
                }
            }
        }
        let is_shared = is_safe && forwarded.get(number::OSCORE).is_none();
        let key = target.key(owner.as_deref(), (wanted.method, &forwarded, &wanted.payload.whole()));
        Ok(Asked {
            method: wanted.method,
            target,
            options: forwarded,
            hop_limit,
            payload: wanted.payload.clone(),
            peer: wanted.peer,
            is_validated: wanted.is_validated,
            timeout,
            key,
            is_shared,
            may_stream: is_shared && wanted.method == Code::GET && wanted.takes_streams,
            registrant,
            under,
        })
    }

    /// Where the first rule for a path leads.
    fn led(&self, wanted: &Wanted<'_>) -> Result<Led, Refusal> {
        let is_for_host = |rule: &Rule| match (&rule.host, wanted.host) {
            (None, _) => true,
            (Some(host), Some(asked)) => host.eq_ignore_ascii_case(asked),
            (Some(_), None) => false,
        };
        let found = self.rules.iter().filter(|rule| is_for_host(rule));
        let found = found.filter_map(|rule| Some((rule, rule.path.values(wanted.path)?))).next();
        let (rule, values) =
            found.ok_or_else(|| Refusal::new(Code::NOT_FOUND, "no rule of the gateway is for this path"))?;
        permitted(&rule.rights, wanted)?;
        let nowhere = || Refusal::new(Code::BAD_REQUEST, "this path leads to no host or path");
        let (target, owner, registrant) = match rule.goal.endpoint(&values) {
            None => (rule.goal.target(&values, wanted.query).ok_or_else(nowhere)?, None, None),
            Some(name) => {
                let endpoint = self.directory.as_ref().and_then(|directory| directory.endpoint(&name));
                let endpoint = endpoint.ok_or_else(|| Refusal {
                    may_wait: rule.waits.then_some(rule.timeout),
                    ..Refusal::new(Code::NOT_FOUND, format!("no endpoint {name:?} is registered"))
                })?;
                let (path, query) = rule.goal.path_and_query(&values, wanted.query).ok_or_else(nowhere)?;
                let base = endpoint.registrant.as_ref().map_or(endpoint.base, Registrant::uri);
                let base: Uri = base.parse().map_err(|error: millpond_live::UriError| {
                    Refusal::new(Code::BAD_GATEWAY, format!("endpoint {name:?} cannot be asked: {error}"))
                })?;
                let uri = base.at([base.path(), &path].concat(), query).ok_or_else(nowhere)?;
                // Its address may be another's later, and its name, and then the answer is none of that one.
                let whose = endpoint.registrant.as_ref().map(Registrant::owner).unwrap_or_default();
                (Target::coap(uri), Some(format!("endpoint://{name} {whose}")), endpoint.registrant)
            }
        };
        let under = Under::Rule(Arc::clone(rule), wanted.path.to_vec());
        Ok(Led { target, owner, registrant, timeout: rule.timeout, under })
    }

    /// What lets a client name whom it asks.
    fn forwarded(&self, wanted: &Wanted<'_>, target: &Target) -> Result<Led, Refusal> {
        let (uri, scheme) = (&target.uri, target.scheme());
        let asks_so = |forward: &&Arc<Forward>| forward.schemes.contains(&scheme);
        if self.forward.iter().find(asks_so).is_none() {
            let why = format!("this gateway asks nobody by {scheme} whom its rules do not name");
            return Err(Refusal::new(Code::PROXYING_NOT_SUPPORTED, why));
        }
        let may = |forward: &&Arc<Forward>| asks_so(forward) && permits(&forward.rights, wanted);
        let mut of_them = self.forward.iter().filter(may);
        let is_named = |forward: &&Arc<Forward>| match uri.host() {
            millpond_live::Host::Name(name) => destination::names(&forward.to, name),
            millpond_live::Host::V4(ip) => destination::addresses(&forward.to, (*ip).into(), false),
            millpond_live::Host::V6(ip, None) => destination::addresses(&forward.to, (*ip).into(), false),
            millpond_live::Host::V6(_, Some(_)) => false,
        };
        let found = of_them.find(is_named);
        let forward = found.ok_or_else(|| {
            Refusal::new(Code::FORBIDDEN, format!("{} is not to be asked through this gateway", uri.host()))
        })?;
        let under = Under::Forward(Arc::clone(forward));
        Ok(Led { target: target.clone(), owner: None, registrant: None, timeout: forward.timeout, under })
    }
}

/// Requests that may share an exchange: they ask for the same, and have come through as many proxies. One that has been handed round
/// would wait for itself.
pub(crate) type Alike = (CacheKey, u8);

impl Asked {
    pub(crate) fn alike(&self) -> Alike {
        (self.key.clone(), self.hop_limit)
    }

    /// Whether this address may be asked for it.
    pub(crate) fn may_go_to(&self, address: SocketAddr, is_device: impl Fn(std::net::IpAddr) -> bool) -> bool {
        let ip = address.ip();
        if self.registrant.is_some() {
            // It has shown that it is there.
            return true;
        }
        match &self.under {
            // The operator named the host, or a part of it; the latter only among devices.
            Under::Rule(rule, _) => !rule.goal.has_open_host() || is_device(ip),
            Under::Forward(forward) => {
                let by_name = matches!(self.target.uri.host(), millpond_live::Host::Name(_));
                let to: &[Destination] = &forward.to;
                destination::addresses(to, ip, by_name)
            }
        }
    }

    /// Somebody's answer, as it is handed back.
    pub(crate) fn answer(&self, from: &Response) -> Response {
        let mut response = Response::new(from.code()).with_payload(from.payload().clone());
        for (number, value) in from.options().iter() {
            match class(number) {
                Class::Forwarded if matches!(number, number::LOCATION_PATH) => {}
                Class::Forwarded => response = response.with_option(number, value.clone()),
                Class::EndsHere if number == number::MAX_AGE => response = response.with_option(number, value.clone()),
                // Bytes of the longest body that it takes (RFC 7959 §2.9.3).
                Class::EndsHere if number == number::SIZE1 && from.code() == Code::REQUEST_ENTITY_TOO_LARGE => {
                    response = response.with_option(number, value.clone());
                }
                Class::EndsHere => {}
                Class::Unknown => {
                    let why =
                        format!("{} answered with option {number}, which is not safe to forward", self.authority());
                    return Refusal::new(Code::BAD_GATEWAY, why).response();
                }
            }
        }
        for segment in self.location(from) {
            response = response.with_option(number::LOCATION_PATH, segment.into_bytes());
        }
        if from.code() == Code::HOP_LIMIT_REACHED {
            // Those passed, the nearest first (RFC 8768 §4).
            let mut passed = b"millpond ".to_vec();
            passed.extend(from.payload().iter().take(256));
            response = response.with_payload(passed);
        }
        response
    }

    /// Location-Path as it leads there through the gateway.
    fn location(&self, from: &Response) -> Vec<String> {
        let Ok(there) = texts(from.options(), number::LOCATION_PATH) else { return Vec::new() };
        match &self.under {
            Under::Forward(_) => there,
            Under::Rule(_, _) if there.is_empty() => there,
            Under::Rule(rule, asked) => rule.goal.path_here(&rule.path, asked, &there).unwrap_or_default(),
        }
    }

    /// Some of its body has been forwarded, and it cannot be asked again.
    pub(crate) fn has_begun(&self) -> bool {
        self.payload.coming().is_some_and(Upload::has_begun)
    }

    /// For how long it may be asked again, where its device has registered and is in no session: nothing was sent.
    pub(crate) fn may_wait(&self, answer: &Response) -> Option<Duration> {
        let is_absent = self.registrant.is_some() && answer.code() == Code::BAD_GATEWAY && !self.has_begun();
        match &self.under {
            Under::Rule(rule, _) if rule.waits && is_absent => Some(rule.timeout),
            _ => None,
        }
    }

    /// Scheme, host and port of whom it is for.
    pub(crate) fn authority(&self) -> String {
        self.target.authority()
    }
}

fn permits(rights: &Rights, wanted: &Wanted<'_>) -> bool {
    let is_meant = rights.who.is_empty() || rights.who.iter().any(|who| who.includes(wanted.peer, wanted.identity));
    is_meant && (rights.methods.is_empty() || rights.methods.contains(&wanted.method))
}

fn permitted(rights: &Rights, wanted: &Wanted<'_>) -> Result<(), Refusal> {
    if permits(rights, wanted) {
        return Ok(());
    }
    let is_meant = rights.who.is_empty() || rights.who.iter().any(|who| who.includes(wanted.peer, wanted.identity));
    Err(match (is_meant, wanted.identity) {
        (true, _) => Refusal {
            allowed: rights.methods.clone(),
            ..Refusal::new(Code::METHOD_NOT_ALLOWED, "the rule does not allow this method")
        },
        // Who has shown who it is need not show it again (RFC 7252 §5.9.2.2, §5.9.2.4).
        (false, Some(_)) => Refusal::new(Code::FORBIDDEN, "the rule is for others"),
        (false, None) => Refusal::new(Code::UNAUTHORIZED, "the rule is for others"),
    })
}

/// The URI that a client names (RFC 7252 §5.10.2); none if it asks for a path of the gateway.
fn named(options: &Options, wanted: &Wanted<'_>) -> Result<Option<Target>, Refusal> {
    let text = |number| options.get(number).map(|value| std::str::from_utf8(value));
    let not_text = |_| Refusal::new(Code::BAD_OPTION, "Proxy-Uri or Proxy-Scheme is no text");
    if let Some(given) = text(number::PROXY_URI) {
        return Target::read(given.map_err(not_text)?).map(Some);
    }
    let Some(scheme) = text(number::PROXY_SCHEME) else { return Ok(None) };
    let scheme = scheme.map_err(not_text)?;
    let transport = [Transport::Udp, Transport::Dtls, Transport::Tcp, Transport::Tls];
    let transport = transport.into_iter().find(|known| known.to_string().eq_ignore_ascii_case(scheme));
    let web = web_transport(scheme);
    let (transport, port) = transport
        .map(|transport| (transport, transport.default_port()))
        .or(web)
        .ok_or_else(|| Refusal::new(Code::PROXYING_NOT_SUPPORTED, format!("unknown scheme {scheme:?}")))?;
    let host = wanted.host.ok_or_else(|| Refusal::new(Code::BAD_REQUEST, "Proxy-Scheme without Uri-Host"))?;
    let port = options.uint(number::URI_PORT).map_or(Ok(port), u16::try_from);
    let port = port.map_err(|_| Refusal::new(Code::BAD_REQUEST, "Uri-Port is no port"))?;
    // Of the letters that end a host none may be in it.
    let is_host =
        !host.is_empty() && !host.contains(['/', '?', '#', '@', '\\', '%']) && !host.contains(char::is_whitespace);
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    let made = if is_host { uri(transport, &host, port, wanted.path.to_vec(), wanted.query.to_vec()) } else { None };
    let made = made.map(if web.is_some() { Target::web } else { Target::coap });
    made.map(Some).ok_or_else(|| Refusal::new(Code::BAD_REQUEST, "Uri-Host and Uri-Path make no URI"))
}

/// What becomes of an option.
enum Class {
    Forwarded,
    /// It is between two neighbours.
    EndsHere,
    Unknown,
}

fn class(number: u16) -> Class {
    match number {
        number::URI_HOST
        | number::URI_PORT
        | number::URI_PATH
        | number::URI_QUERY
        | number::PROXY_URI
        | number::PROXY_SCHEME
        | number::OBSERVE
        | number::MAX_AGE
        | number::BLOCK1
        | number::BLOCK2
        | number::Q_BLOCK1
        | number::Q_BLOCK2
        | number::SIZE1
        | number::SIZE2
        | number::NO_RESPONSE
        | number::HOP_LIMIT
        | number::ECHO
        | number::REQUEST_TAG => Class::EndsHere,
        number if is_unsafe_to_forward(number) => Class::Unknown,
        _ => Class::Forwarded,
    }
}

fn texts(options: &Options, number: u16) -> Result<Vec<String>, Refusal> {
    let text = |value: &Bytes| String::from_utf8(value.to_vec());
    let texts: Result<Vec<String>, _> = options.all(number).map(text).collect();
    texts.map_err(|_| Refusal::new(Code::BAD_REQUEST, "path or query is no UTF-8"))
}
