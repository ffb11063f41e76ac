//! HTTP: a request becomes one of CoAP under the same rules, and its answer one of HTTP (RFC 7252 §10.2, RFC 8075).

mod asking;
mod codes;
mod connections;
mod events;
mod media;
mod request;
mod response;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::{
    Method, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderValue},
    http::request::Parts,
};
use millpond_live::{Bytes, Code, FairSemaphore, TlsListener};
use tokio::{sync::watch, time::Instant};
use tokio_util::io::StreamReader;

pub(crate) use asking::Asking;
pub(crate) use connections::Listening;
use request::Read;
use response::{Answer, Body, refused};

use crate::{
    asked::{Asked, Rules},
    config::Web,
    engine::{Engine, LONGEST_WHOLE, Source},
    gateway::{Access, OnAccess},
    refusal::Refusal,
    upload::Payload,
};

/// What answers by HTTP.
pub(crate) struct Front {
    engine: Arc<Engine>,
    on_access: Option<OnAccess>,
    settings: Web,
    /// Bytes of bodies that are being read or forwarded.
    bodies: FairSemaphore,
    tls: Mutex<Option<TlsListener>>,
    /// The gateway ends.
    ends: watch::Sender<bool>,
}

/// Bytes of bodies at a time.
const BODIES: usize = 64 << 20;
/// In which a body has come, and of one that is forwarded what is wanted next.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of one that is forwarded while it comes: its beginning, and what is on its way to who is asked.
const OF_UPLOAD: usize = 4 * LONGEST_WHOLE;

/// What became of a request, for logs.
struct Outcome {
    response: Response<Body>,
    method: Option<Code>,
    asked: Option<Asked>,
    code: Code,
    source: Source,
    bytes: usize,
    reason: Option<String>,
}

impl Front {
    pub(crate) fn new(engine: &Arc<Engine>, settings: Web, on_access: Option<OnAccess>) -> Self {
        Self {
            engine: Arc::clone(engine),
            on_access,
            settings,
            bodies: FairSemaphore::new(BODIES),
            tls: Mutex::default(),
            ends: watch::Sender::new(false),
        }
    }

    async fn serve(&self, scheme: &'static str, peer: SocketAddr, request: hyper::Request<Incoming>) -> Response<Body> {
        let began = Instant::now();
        let (head, body) = request.into_parts();
        let origin = head.headers.get(header::ORIGIN).filter(|origin| self.names(origin)).cloned();
        if let Some(origin) = origin.as_ref().filter(|_| head.method == Method::OPTIONS) {
            return allowing(preflight(), origin);
        }
        let Outcome { mut response, method, asked, code, source, bytes, reason } =
            self.outcome(&head, body, peer).await;
        // Nothing follows a body that did not come.
        if code == Code::REQUEST_ENTITY_INCOMPLETE {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let (took, rule) = (began.elapsed(), asked.as_ref().map(|asked| asked.under.name()));
        if let Some(answers) = &self.engine.answers {
            answers.count(rule, source, took);
        }
        if let Some(hook) = &self.on_access {
            hook(&Access {
                peer,
                scheme,
                identity: None,
                method,
                path: head.uri.path().to_owned(),
                rule: rule.map(ToString::to_string),
                upstream: asked.as_ref().map(|asked| asked.target.to_string()),
                source,
                code: Some(code),
                bytes,
                reason,
                took,
            });
        }
        match origin {
            Some(origin) => allowing(response, &origin),
            None => response,
        }
    }

    async fn outcome(&self, head: &Parts, body: Incoming, peer: SocketAddr) -> Outcome {
        let mut read = match Read::head(head) {
            Ok(read) => read,
            Err(refusal) => return Outcome::refused(&refusal, None),
        };
        let method = Some(read.method);
        // A page of somebody else asks in the name of who looks at it.
        if read.origin.as_ref().is_some_and(|origin| !self.settings.origins.contains(origin)) {
            let why = "pages of this origin are not to ask this gateway; [http] origins names those that are";
            return Outcome::refused(&Refusal::new(Code::FORBIDDEN, why), method);
        }
        let mut permit = None;
        if read.has_body {
            // Others wait for the answer to the same body.
            let is_whole = read.method == Code::FETCH;
            let (whole, most) = if is_whole { (self.settings.body, usize::MAX) } else { (LONGEST_WHOLE, OF_UPLOAD) };
            let size = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            let held = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
            permit = Some(self.bodies.acquire(peer, held.min(self.settings.body).min(most)).await);
            let body = StreamReader::new(body.map_err(io::Error::other).into_data_stream());
            match Payload::read(body, size, (whole, self.settings.body), Some(BODY_WITHIN)).await {
                Ok(payload) => read.payload = payload,
                Err(refusal) => return Outcome::refused(&refusal, method),
            }
        }
        let formats = read.accepts.formats();
        if formats.is_empty() {
            let why = "Accept names no Content-Format";
            return Outcome::refused(&Refusal::new(Code::NOT_ACCEPTABLE, why), method);
        }
        if read.method == Code::GET && head.method == Method::GET && read.accepts.has_events() {
            return self.events(read, formats.into_iter().next().flatten(), peer).await;
        }
        let mut outcome = None;
        for format in formats {
            let options = read.options(format);
            let asks = |rules: &Rules| rules.asked(&read.wanted(peer, &options));
            let (asked, response, source) = self.engine.respond(None, asks, false).await;
            let asked = match asked {
                Ok(asked) => asked,
                Err(refusal) => return Outcome::refused(&refusal, method),
            };
            let is_other = response.code() == Code::NOT_ACCEPTABLE && !asked.has_begun();
            outcome = Some(Outcome::answered(self, &read, asked, &response, source));
            if !is_other {
                break;
            }
        }
        drop(permit);
        outcome.unwrap_or_else(|| Outcome::refused(&Refusal::new(Code::NOT_ACCEPTABLE, ""), method))
    }

    async fn events(&self, read: Read, format: Option<u16>, peer: SocketAddr) -> Outcome {
        let (method, options) = (Some(read.method), read.options(format));
        let asked = match self.engine.rules().asked(&read.wanted(peer, &options)) {
            Ok(asked) => asked,
            Err(refusal) => return Outcome::refused(&refusal, method),
        };
        let mut watching = match self.engine.watch(&asked, None) {
            Ok(watching) => watching,
            Err(refusal) => return Outcome::refused(&refusal, method),
        };
        let first = watching.first(&asked).await;
        let source = Source::Observation;
        let mut outcome = Outcome::answered(self, &read, asked.clone(), &first, source);
        if first.is_success() {
            let ends = self.ends.subscribe();
            let told = events::Told { engine: Arc::clone(&self.engine), read, format, peer, asked, watching, ends };
            outcome.response = told.response(&first);
        }
        outcome
    }

    fn names(&self, origin: &HeaderValue) -> bool {
        self.settings.origins.iter().any(|named| named.as_bytes() == origin.as_bytes())
    }
}

impl Outcome {
    fn refused(refusal: &Refusal, method: Option<Code>) -> Self {
        Self {
            response: refused(refusal),
            method,
            asked: None,
            code: refusal.code,
            source: Source::Gateway,
            bytes: refusal.why.len(),
            reason: Some(refusal.why.clone()),
        }
    }

    fn answered(front: &Front, read: &Read, asked: Asked, response: &millpond_live::Response, source: Source) -> Self {
        let age = matches!(source, Source::Cache | Source::Stale).then(|| front.engine.age(&asked)).flatten();
        let reason = (source == Source::Gateway).then(|| response.text().unwrap_or_default().to_owned());
        let answer = Answer { read, asked: &asked, response, source, age };
        Self {
            response: answer.response(),
            method: Some(read.method),
            code: response.code(),
            source,
            bytes: response.payload().len(),
            reason,
            asked: Some(asked),
        }
    }
}

/// Waits until the gateway ends.
async fn ended(ends: &mut watch::Receiver<bool>) {
    // Who says so is there until then.
    let _ = ends.wait_for(|ends| *ends).await;
}

/// What a browser asks before it lets a page ask (the Fetch standard, CORS-preflight).
fn preflight() -> Response<Body> {
    let mut made = response::plain(StatusCode::NO_CONTENT, Bytes::new());
    let headers = made.headers_mut();
    let methods = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE, PATCH, QUERY");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let names = HeaderValue::from_static("Accept, Content-Type, If-Match, If-None-Match");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    made
}

fn allowing(mut response: Response<Body>, origin: &HeaderValue) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    let names = HeaderValue::from_static("Age, Cache-Status, ETag, Location, Retry-After");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, names);
    response
}
