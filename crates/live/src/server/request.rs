//! Requests as handlers get them.

use std::{
    any::Any,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use millpond_coap::message::{Code, Opt, Uint, number};

use super::{HandlerError, RequestBody};
use crate::{ContentFormat, Options, PeerIdentity, Response, Transport};

/// A whole request: its blocks are put together, unless its resource [streams](crate::Resource::streaming). Cloning it copies no
/// bytes.
#[derive(Clone, Debug)]
pub struct Request {
    inner: Arc<Inner>,
    is_address_proved: bool,
    /// Its body, if that comes bit by bit and nobody has taken it.
    body: Option<Arc<Mutex<Option<RequestBody>>>>,
}

#[derive(Debug)]
struct Inner {
    method: Code,
    options: Options,
    payload: Bytes,
    peer: SocketAddr,
    transport: Transport,
    identity: Option<Arc<PeerIdentity>>,
    parameters: Vec<(Arc<str>, String)>,
    state: State,
}

/// What handlers of a server share.
#[derive(Clone, Default)]
pub(crate) struct State(Option<Arc<Vec<Shared>>>);

/// A value of whatever type.
pub(crate) type Shared = Box<dyn Any + Send + Sync>;

impl State {
    pub(crate) fn of(shared: Vec<Shared>) -> Self {
        Self((!shared.is_empty()).then(|| Arc::new(shared)))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("State")
    }
}

/// A request whose resource is still to be found.
#[derive(Debug)]
pub(crate) struct Unrouted {
    pub(crate) method: Code,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    pub(crate) peer: SocketAddr,
    pub(crate) transport: Transport,
    /// Who asks, if it was proved.
    pub(crate) identity: Option<Arc<PeerIdentity>>,
}

impl Unrouted {
    /// From the code and options of a request and its whole body. If they are many, options and body share their bytes;
    /// to share two would take as many allocations as to copy each.
    pub(crate) fn new<'o>(
        method: Code,
        options: impl Iterator<Item = Opt<'o>> + Clone,
        body: &[u8],
        peer: SocketAddr,
        transport: Transport,
    ) -> Self {
        let (count, length) =
            options.clone().fold((0, 0), |(count, sum), option| (count + 1, sum + option.value.len()));
        if count + usize::from(!body.is_empty()) <= 2 {
            let list = options.map(|option| (option.number, Bytes::copy_from_slice(option.value))).collect();
            let payload = Bytes::copy_from_slice(body);
            return Self { method, options: Options::sorted(list), payload, peer, transport, identity: None };
        }
        let mut bytes = Vec::with_capacity(length + body.len());
        for option in options.clone() {
            bytes.extend_from_slice(option.value);
        }
        bytes.extend_from_slice(body);
        let bytes = Bytes::from(bytes);
        let mut list = Vec::with_capacity(count);
        let mut at = 0;
        for option in options {
            let end = at + option.value.len();
            list.push((option.number, bytes.slice(at..end)));
            at = end;
        }
        Self { method, options: Options::sorted(list), payload: bytes.slice(at..), peer, transport, identity: None }
    }

    /// With what its route found in its path.
    pub(crate) fn routed(self, parameters: Vec<(Arc<str>, String)>, state: State) -> Request {
        let Self { method, options, payload, peer, transport, identity } = self;
        let inner = Inner { method, options, payload, peer, transport, identity, parameters, state };
        Request { inner: Arc::new(inner), is_address_proved: false, body: None }
    }
}

impl Request {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> Code {
        self.inner.method
    }

    /// The segments of its path, decoded. What is no UTF-8 was refused before.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.texts(number::URI_PATH)
    }

    /// Its path as text: `/a/b`.
    #[must_use]
    pub fn path_text(&self) -> String {
        let mut text = String::new();
        for segment in self.path() {
            text.push('/');
            text.push_str(segment);
        }
        if text.is_empty() { "/".into() } else { text }
    }

    /// What stands in its path for `{name}` of the route; for `{*name}` all the rest, with slashes.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.inner.parameters.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.as_str())
    }

    /// The parts of its query, decoded.
    pub fn query(&self) -> impl Iterator<Item = &str> {
        self.texts(number::URI_QUERY)
    }

    /// What stands behind `key=` in its query.
    #[must_use]
    pub fn query_value(&self, key: &str) -> Option<&str> {
        self.query().find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
    }

    /// Its options, those that led here included.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// Its Content-Format.
    #[must_use]
    pub fn content_format(&self) -> Option<ContentFormat> {
        self.options().content_format()
    }

    /// The Content-Format that is wanted.
    #[must_use]
    pub fn accept(&self) -> Option<ContentFormat> {
        self.options().format(number::ACCEPT)
    }

    /// What the server was given by [`state`](crate::ServerBuilder::state), by its type.
    ///
    /// # Errors
    /// It was given nothing of this type, which is 5.00.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, HandlerError> {
        let shared = self.inner.state.0.iter().flat_map(|all| all.iter());
        shared.rev().find_map(|value| value.downcast_ref()).ok_or_else(|| {
            let name = std::any::type_name::<T>();
            tracing::error!(target: "millpond_live", "the server has no state {name}; give it one with ServerBuilder::state");
            Response::new(Code::INTERNAL_SERVER_ERROR).into()
        })
    }

    /// Its body, to be read as it comes where its resource [streams](crate::Resource::streaming), else all at once. Only who asks
    /// first gets it; later ones get one that is over.
    #[must_use]
    pub fn body(&self) -> RequestBody {
        match &self.body {
            None => RequestBody::whole(self.payload().clone()),
            Some(body) => {
                let taken = body.lock().unwrap_or_else(PoisonError::into_inner).take();
                taken.unwrap_or_else(|| RequestBody::whole(Bytes::new()))
            }
        }
    }

    /// Its body comes bit by bit: what has come of it already is handed over.
    pub(super) fn take_payload(&mut self) -> Bytes {
        Arc::get_mut(&mut self.inner).map(|inner| std::mem::take(&mut inner.payload)).unwrap_or_default()
    }

    pub(super) fn give_body(&mut self, body: RequestBody) {
        self.body = Some(Arc::new(Mutex::new(Some(body))));
    }

    /// The whole body; empty if its resource [streams](crate::Resource::streaming) and it comes in blocks.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.inner.payload
    }

    /// Who asks; one of them, if a state is made for several observers that asked the same.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.inner.peer
    }

    /// Whether the server knows that the peer is where it says. If not, a handler that would do much for it may answer with
    /// [`Response::prove_address`](crate::Response::prove_address) instead.
    #[must_use]
    pub const fn is_address_proved(&self) -> bool {
        self.is_address_proved
    }

    pub(crate) const fn prove(&mut self) {
        self.is_address_proved = true;
    }

    /// What carried it.
    #[must_use]
    pub fn transport(&self) -> Transport {
        self.inner.transport
    }

    /// Who asks, if it has proved that: over a secure session, by a pre-shared key or a certificate.
    #[must_use]
    pub fn identity(&self) -> Option<&PeerIdentity> {
        self.inner.identity.as_deref()
    }

    pub(super) fn shared_identity(&self) -> Option<Arc<PeerIdentity>> {
        self.inner.identity.clone()
    }

    fn texts(&self, number: u16) -> impl Iterator<Item = &str> {
        self.inner.options.all(number).map(|value| std::str::from_utf8(value).unwrap_or_default())
    }

    /// Bytes of its options and its body, about.
    pub(crate) fn weight(&self) -> usize {
        self.options().weight() + self.payload().len()
    }

    /// Both ask for the same representation (RFC 7252 §5.4.6: options that are NoCacheKey do not matter, nor do those
    /// that say how it travels), and both may be told the same.
    pub(crate) fn asks_like(&self, other: &Self) -> bool {
        /// How it travels, and whether it is observed.
        const TRAVEL: [u16; 9] = [
            number::OBSERVE,
            number::ETAG,
            number::BLOCK1,
            number::BLOCK2,
            number::Q_BLOCK1,
            number::Q_BLOCK2,
            number::ECHO,
            number::REQUEST_TAG,
            number::SIZE2,
        ];
        let matters = |(number, _): &(u16, &Bytes)| number & 0x1e != 0x1c && !TRAVEL.contains(number);
        // What one may see another need not.
        let is_as_secure = self.transport().is_secure() == other.transport().is_secure();
        is_as_secure
            && self.identity() == other.identity()
            && self.method() == other.method()
            && self.payload() == other.payload()
            && self.options().iter().filter(matters).eq(other.options().iter().filter(matters))
    }

    /// The size of the blocks that it asks for, in bytes.
    pub(crate) fn block_asked(&self) -> Option<usize> {
        let exponent = Uint::read(self.options().get(number::BLOCK2)?)? & 7;
        Some(16 << exponent.min(6))
    }
}
