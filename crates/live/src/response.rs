//! Responses, as a client gets them and as a server makes them.

use std::{
    fmt,
    net::SocketAddr,
    pin::Pin,
    str::Utf8Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use millpond_coap::message::{Code, number};
use millpond_control::{Evidence, Sample};
use tokio::io::AsyncRead;

use crate::{ContentFormat, Options, Progress, client::OnProgress, transfer::SharedBody};

/// A response with its body, which is whole unless it was asked for as it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    code: Code,
    options: Options,
    payload: Bytes,
    exchange: Option<ExchangeReport>,
    stream: Option<Box<ResponseStream>>,
    /// The payload as a server's stacks hold it.
    shared: Option<SharedBody>,
    /// Its payload is a part of a representation: where it begins, and the bytes of all of it.
    part: Option<(u64, u64)>,
}

/// A body that is read as it is asked for, and who is told how far it has come. Clones share it: a peer that takes it first has it.
#[derive(Clone)]
pub(crate) struct ResponseStream {
    reader: Arc<Mutex<Option<Reader>>>,
    pub(crate) progress: Option<OnProgress>,
}

/// What a body is read from.
pub(crate) type Reader = Pin<Box<dyn AsyncRead + Send>>;

impl ResponseStream {
    /// Its reader, unless somebody has it.
    pub(crate) fn reader(&self) -> Option<Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for ResponseStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResponseStream")
    }
}

impl PartialEq for ResponseStream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reader, &other.reader)
    }
}

impl Eq for ResponseStream {}

impl Response {
    /// One with this code and nothing else.
    #[must_use]
    pub const fn new(code: Code) -> Self {
        Self {
            code,
            options: Options::new(),
            payload: Bytes::new(),
            exchange: None,
            stream: None,
            shared: None,
            part: None,
        }
    }

    /// 2.05 with this payload.
    #[must_use]
    pub fn content(payload: impl Into<Bytes>) -> Self {
        Self::new(Code::CONTENT).with_payload(payload)
    }

    /// 2.05 with a body that is read from this as the client asks for its blocks: one block and a byte of it are in memory. For
    /// resources that [stream](crate::Resource::streaming), and requests that [may](crate::Request::may_stream) be answered so. Without an ETag it gets one that no other answer has: who loses
    /// his place in it begins anew.
    #[must_use]
    pub fn stream(reader: impl AsyncRead + Send + 'static) -> Self {
        Self::new(Code::CONTENT).with_stream(reader)
    }

    /// The same with a body that is read from this.
    #[must_use]
    pub fn with_stream(mut self, reader: impl AsyncRead + Send + 'static) -> Self {
        let reader: Reader = Box::pin(reader);
        self.stream = Some(Box::new(ResponseStream { reader: Arc::new(Mutex::new(Some(reader))), progress: None }));
        self
    }

    /// Calls this each time that the client has shown, by asking for what follows, that so much of the stream has arrived, and
    /// once more when the last of it leaves. It is called by the server's task, and must not block.
    #[must_use]
    pub fn with_progress(mut self, hook: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        if let Some(stream) = &mut self.stream {
            stream.progress = Some(OnProgress(Arc::new(hook)));
        }
        self
    }

    /// Its payload is the part of a representation of `total` bytes that begins at `offset`:
    /// [`Request::part_of`](crate::Request::part_of) says which part is to be answered. It leaves as one block, of which the server
    /// keeps nothing. With an ETag of the representation the client begins anew when that has changed.
    #[must_use]
    pub const fn with_part(mut self, offset: u64, total: u64) -> Self {
        self.part = Some((offset, total));
        self
    }

    #[cfg(feature = "server")]
    pub(crate) const fn take_part(&mut self) -> Option<(u64, u64)> {
        self.part.take()
    }

    /// Bytes of the whole representation, as far as is known.
    #[cfg(feature = "server")]
    pub(crate) fn total(&self) -> u64 {
        self.part.map_or(self.payload.len() as u64, |(_, total)| total)
    }

    #[cfg(feature = "server")]
    pub(crate) const fn is_part(&self) -> bool {
        self.part.is_some()
    }

    /// Bytes of its options and what it has of its body, about.
    pub(crate) fn weight(&self) -> usize {
        self.options.weight() + self.payload.len()
    }

    /// The same with its payload as stacks hold it.
    #[cfg(feature = "server")]
    pub(crate) fn with_shared(mut self, shared: SharedBody) -> Self {
        if shared.as_ptr() != self.payload.as_ptr() {
            // One with the same bytes, which is in memory anyway.
            self.payload = Bytes::from_owner(shared.clone());
        }
        self.shared = Some(shared);
        self
    }

    #[cfg(feature = "server")]
    pub(crate) const fn shared(&self) -> Option<&SharedBody> {
        self.shared.as_ref()
    }

    /// The body that is read as it comes, if that of its server was long ([`send_streaming`](crate::RequestBuilder::send_streaming)), or
    /// as it is made ([`stream`](Self::stream)). An error of it is an end without all of the body.
    /// Clones share it: who takes it first has it.
    #[must_use]
    pub fn take_body(&self) -> Option<Pin<Box<dyn AsyncRead + Send>>> {
        self.stream.as_ref()?.reader()
    }

    /// Whether there is such a body.
    #[must_use]
    pub const fn has_body_to_come(&self) -> bool {
        self.has_stream()
    }

    pub(crate) fn take_stream(&mut self) -> Option<ResponseStream> {
        self.stream.take().map(|stream| *stream)
    }

    pub(crate) const fn has_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// 2.04.
    #[must_use]
    pub const fn changed() -> Self {
        Self::new(Code::CHANGED)
    }

    /// 2.01.
    #[must_use]
    pub const fn created() -> Self {
        Self::new(Code::CREATED)
    }

    /// 2.02.
    #[must_use]
    pub const fn deleted() -> Self {
        Self::new(Code::DELETED)
    }

    /// 4.04.
    #[must_use]
    pub const fn not_found() -> Self {
        Self::new(Code::NOT_FOUND)
    }

    /// 4.00 with a diagnostic payload (RFC 7252 §5.5.2).
    #[must_use]
    pub fn bad_request(diagnostic: &str) -> Self {
        Self::new(Code::BAD_REQUEST).with_payload(Bytes::copy_from_slice(diagnostic.as_bytes()))
    }

    /// A server's handler wants the client to prove its address before it does what it was asked for: the server makes
    /// 4.01 with Echo of it (RFC 9175), and the client asks again. See
    /// [`Request::is_address_proved`](crate::Request::is_address_proved).
    #[must_use]
    pub fn prove_address() -> Self {
        // No client's value is empty: an Echo has at least a byte.
        Self::new(Code::UNAUTHORIZED).with_option(number::ECHO, Bytes::new())
    }

    pub(crate) fn asks_for_proof(&self) -> bool {
        self.code == Code::UNAUTHORIZED && self.options.get(number::ECHO).is_some_and(Bytes::is_empty)
    }

    /// The same with this code.
    #[must_use]
    pub const fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The same with this payload.
    #[must_use]
    pub fn with_payload(mut self, payload: impl Into<Bytes>) -> Self {
        (self.payload, self.shared) = (payload.into(), None);
        self
    }

    /// The same with this Content-Format.
    #[must_use]
    pub fn with_content_format(mut self, format: impl Into<ContentFormat>) -> Self {
        self.options.set_format(number::CONTENT_FORMAT, format.into());
        self
    }

    /// The same with one option more.
    #[must_use]
    pub fn with_option(mut self, number: u16, value: impl Into<Bytes>) -> Self {
        self.options.add(number, value);
        self
    }

    /// The same with one option more whose value is a number.
    #[must_use]
    pub fn with_uint_option(mut self, number: u16, value: u32) -> Self {
        self.options.add_uint(number, value);
        self
    }

    /// The same with this ETag, 1 to 8 bytes (RFC 7252 §5.10.6).
    #[must_use]
    pub fn with_etag(mut self, etag: impl Into<Bytes>) -> Self {
        self.options.set(number::ETAG, etag);
        self
    }

    /// The same with this Max-Age in seconds.
    #[must_use]
    pub fn with_max_age(mut self, seconds: u32) -> Self {
        self.options.set_uint(number::MAX_AGE, seconds);
        self
    }

    pub(crate) const fn with_exchange(mut self, exchange: Option<ExchangeReport>) -> Self {
        self.exchange = exchange;
        self
    }

    pub(crate) fn received(code: Code, options: Options, payload: Bytes, exchange: ExchangeReport) -> Self {
        Self { code, options, payload, exchange: Some(exchange), stream: None, shared: None, part: None }
    }

    /// Its code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// For how many seconds it is fresh: 60 where it does not say (RFC 7252 §5.10.5).
    pub(crate) fn max_age(&self) -> u32 {
        self.options.uint(number::MAX_AGE).unwrap_or(60)
    }

    /// The same as a time.
    pub(crate) fn freshness(&self) -> Duration {
        Duration::from_secs(self.max_age().into())
    }

    /// Its code is of class 2.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.code.is_success()
    }

    /// The whole body.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The whole body as text.
    ///
    /// # Errors
    /// It is no UTF-8.
    pub fn text(&self) -> Result<&str, Utf8Error> {
        std::str::from_utf8(&self.payload)
    }

    /// Its Content-Format.
    #[must_use]
    pub fn content_format(&self) -> Option<ContentFormat> {
        self.options.content_format()
    }

    /// Its options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// How it came. `None` for one that was not received, or that was in the client's cache.
    #[must_use]
    pub const fn exchange(&self) -> Option<&ExchangeReport> {
        self.exchange.as_ref()
    }
}

/// How an answer came: of the last message of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExchangeReport {
    /// Who answered.
    pub peer: SocketAddr,
    /// Copies of the request that had been sent: 1 without retransmission, 0 for what was not asked for again.
    pub copies: u8,
    /// From the first copy to the first sign that it had arrived; not known for notifications and over TCP.
    pub round_trip: Option<Duration>,
    /// How sure that is.
    pub grade: Option<Grade>,
}

/// How sure a round-trip time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grade {
    /// One copy was sent, or the answer names the copy that it answers.
    Exact,
    /// The answer names a copy before the last: an upper bound.
    Echoed,
    /// Several copies were sent, and the answer names none.
    Ambiguous,
}

impl Grade {
    /// One lower-case word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Echoed => "echoed",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// Of a sample.
    pub(crate) fn of(sample: &Sample) -> Self {
        match sample.evidence() {
            Evidence::Exact(_) => Self::Exact,
            Evidence::Echoed { .. } => Self::Echoed,
            _ => Self::Ambiguous,
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
