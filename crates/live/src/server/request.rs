//! Requests as handlers get them.

use std::{
    any::Any,
    borrow::Cow,
    fmt,
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;
use millpond_coap::message::{self, Code, Message, Opt, Uint, number};

use super::{HandlerError, RequestBody, dispatcher::Fit};
use crate::{ContentFormat, Options, PeerIdentity, Response, Transport};

/// A whole request: its blocks are put together, unless its resource [streams](crate::Resource::streaming). Cloning it copies no
/// bytes.
#[derive(Clone, Debug)]
pub struct Request {
    inner: Arc<Inner>,
    is_address_proved: bool,
    /// Its body, if that comes bit by bit and nobody has taken it.
    body: Option<Arc<Mutex<Option<RequestBody>>>>,
    /// What an answer to it may carry; none if only a whole one will do.
    fit: Option<Fit>,
}

#[derive(Debug)]
struct Inner {
    method: Code,
    written: Written,
    /// The same once a handler asks for them.
    options: OnceLock<Options>,
    payload: Bytes,
    peer: SocketAddr,
    transport: Transport,
    identity: Option<Arc<PeerIdentity>>,
    parameters: Vec<(Arc<str>, String)>,
    state: States,
}

/// Options as they stood in their message. A few take no memory of their own.
#[derive(Debug)]
enum Written {
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

/// Bytes of options that are a few.
const SHORT: usize = 46;

impl Written {
    fn of(bytes: &[u8]) -> Self {
        let mut room = [0; SHORT];
        match room.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Self::Short(bytes.len() as u8, room)
            }
            None => Self::Long(bytes.into()),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(length, room) => room.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }
}

/// What handlers of a server share.
#[derive(Clone, Default)]
pub(crate) struct States(Option<Arc<Vec<Shared>>>);

/// A value of whatever type.
pub(crate) type Shared = Box<dyn Any + Send + Sync>;

impl States {
    pub(crate) fn of(shared: Vec<Shared>) -> Self {
        Self((!shared.is_empty()).then(|| Arc::new(shared)))
    }

    /// The last of this type.
    pub(super) fn get<T: 'static>(&self) -> Option<&T> {
        self.0.iter().flat_map(|all| all.iter()).rev().find_map(|value| value.downcast_ref())
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("States")
    }
}

impl Request {
    /// From the last message of a request and its whole body, before its resource is found.
    pub(crate) fn of(message: &Message<'_>, body: Cow<'_, [u8]>, peer: SocketAddr, transport: Transport) -> Self {
        let inner = Inner {
            method: message.code,
            written: Written::of(message.option_bytes()),
            options: OnceLock::new(),
            // Without the room that a body which grew may have left over: nobody counts it.
            payload: Bytes::from(body.into_owned().into_boxed_slice()),
            peer,
            transport,
            identity: None,
            parameters: Vec::new(),
            state: States::default(),
        };
        Self { inner: Arc::new(inner), is_address_proved: false, body: None, fit: None }
    }

    /// With what its route found in its path. Nobody has it yet.
    pub(crate) fn route(&mut self, parameters: Vec<(Arc<str>, String)>, state: &States) {
        if let Some(inner) = Arc::get_mut(&mut self.inner).filter(|_| state.0.is_some() || !parameters.is_empty()) {
            (inner.parameters, inner.state) = (parameters, state.clone());
        }
    }

    /// With who asks, if that was proved, and over what. Nobody has it yet.
    pub(crate) fn identify(&mut self, transport: Transport, identity: Option<Arc<PeerIdentity>>) {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            (inner.transport, inner.identity) = (transport, identity);
        }
    }

    /// It may be answered with a part of a representation that fits.
    pub(super) const fn allow_part(&mut self, fit: Fit) {
        self.fit = Some(fit);
    }

    pub(super) const fn fit(&self) -> Option<Fit> {
        self.fit
    }

    /// It may be answered with a [stream](crate::Response::stream) by a resource that does not [stream](crate::Resource::streaming): it
    /// does not observe, takes no bursts (RFC 9177), and no body of it came in blocks.
    #[must_use]
    pub fn may_stream(&self) -> bool {
        self.fit.is_some() && self.value(number::BLOCK1).is_none()
    }

    /// Which part of a representation of so many bytes answers it, for handlers that need not make all of it: the block that is
    /// asked for, or the first if it does not fit one message; nothing if that lies behind the end. All of it where a part will not
    /// do: for observers, bursts (RFC 9177), resources that [stream](crate::Resource::streaming), and a body that came in blocks.
    /// See [`Response::with_part`](crate::Response::with_part).
    #[must_use]
    pub fn part_of(&self, total: u64) -> Range<u64> {
        self.fit.and_then(|fit| fit.part(self, total)).unwrap_or(0..total)
    }

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
        path_text(self.path())
    }

    /// What stands in its path for `{name}` of the route; for `{*name}` all the rest, with slashes.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.inner.parameters.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.as_str())
    }

    /// All that stands in its path for the parameters of the route, by their names.
    pub(super) fn parameters(&self) -> &[(Arc<str>, String)] {
        &self.inner.parameters
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
        self.inner.options.get_or_init(|| {
            let bytes = Bytes::copy_from_slice(self.inner.written.bytes());
            Options::sorted(
                message::Options::over(&bytes).map(|option| (option.number, bytes.slice_ref(option.value))).collect(),
            )
        })
    }

    /// The same as they stood in its message.
    pub(crate) fn written(&self) -> message::Options<'_> {
        message::Options::over(self.inner.written.bytes())
    }

    /// The values of an option.
    pub(crate) fn values(&self, number: u16) -> impl Iterator<Item = &[u8]> + Clone {
        let are_before = move |option: &Opt<'_>| option.number < number;
        let are_it = move |option: &Opt<'_>| option.number == number;
        self.written().skip_while(are_before).take_while(are_it).map(|option| option.value)
    }

    /// The first value of an option.
    pub(crate) fn value(&self, number: u16) -> Option<&[u8]> {
        self.values(number).next()
    }

    /// Its Content-Format.
    #[must_use]
    pub fn content_format(&self) -> Option<ContentFormat> {
        self.format(number::CONTENT_FORMAT)
    }

    /// The Content-Format that is wanted.
    #[must_use]
    pub fn accept(&self) -> Option<ContentFormat> {
        self.format(number::ACCEPT)
    }

    fn format(&self, number: u16) -> Option<ContentFormat> {
        self.value(number).and_then(ContentFormat::read)
    }

    /// What the server was given by [`state`](crate::ServerBuilder::state), by its type; handlers take it as
    /// [`State`](crate::State), too.
    ///
    /// # Errors
    /// It was given nothing of this type, which is 5.00.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, HandlerError> {
        self.inner.state.get().ok_or_else(|| {
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
        self.values(number).map(|value| std::str::from_utf8(value).unwrap_or_default())
    }

    /// Bytes of its options and its body, about.
    pub(crate) fn weight(&self) -> usize {
        const EACH: usize = size_of::<(u16, Bytes)>();
        self.written().map(|option| option.value.len() + EACH).sum::<usize>() + self.payload().len()
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
        let matters = |option: &Opt<'_>| option.number & 0x1e != 0x1c && !TRAVEL.contains(&option.number);
        // What one may see another need not.
        let is_as_secure = self.transport().is_secure() == other.transport().is_secure();
        is_as_secure
            && self.identity() == other.identity()
            && self.method() == other.method()
            && self.payload() == other.payload()
            && self.written().filter(matters).eq(other.written().filter(matters))
    }

    /// It asks for a block that is not the first of a representation.
    pub(super) fn asks_for_later_block(&self) -> bool {
        self.value(number::BLOCK2).and_then(Uint::read).is_some_and(|block| block >> 4 > 0)
    }
}

/// A path as text, as it stands in a URI but for what ought to be escaped there.
pub(super) fn path_text(segments: impl Iterator<Item = impl AsRef<str>>) -> String {
    let text = segments.fold(String::new(), |text, segment| text + "/" + segment.as_ref());
    if text.is_empty() { "/".into() } else { text }
}

/// A GET with these options and this body.
#[cfg(test)]
pub(super) fn of_options(options: &[(u16, &[u8])], body: &[u8], peer: SocketAddr) -> Request {
    use millpond_coap::message::{Kind, MessageId, Token, Writer};
    let mut bytes = Vec::new();
    let mut writer = Writer::start(&mut bytes, Kind::Confirmable, Code::GET, MessageId(0), Token::EMPTY);
    for (number, value) in options {
        writer.option(*number, value).unwrap();
    }
    writer.finish().unwrap();
    Request::of(&Message::parse(&bytes).unwrap(), body.into(), peer, Transport::Udp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_the_same_as_they_stood_and_as_they_are_asked_for() {
        let long = [b'x'; 300];
        let lists: [&[(u16, &[u8])]; 4] = [
            &[],
            &[(number::URI_PATH, b"a"), (number::URI_PATH, b""), (number::ACCEPT, &[0, 0, 60])],
            &[(number::URI_PATH, &long), (number::URI_QUERY, b"k=v"), (2_048, b"beyond")],
            &[(number::URI_PATH, &long[..SHORT - 2])],
        ];
        for list in lists {
            let request = of_options(list, b"body", "[::1]:1".parse().unwrap());
            assert!(request.written().map(|option| (option.number, option.value)).eq(list.iter().copied()));
            assert!(request.options().iter().map(|(number, value)| (number, &value[..])).eq(list.iter().copied()));
            let path = list.iter().filter(|(number, _)| *number == number::URI_PATH).map(|(_, value)| *value);
            assert!(request.path().map(str::as_bytes).eq(path));
            assert_eq!((request.accept(), request.value(number::ETAG)), (None, None), "an Accept that is too long");
            assert_eq!(&request.payload()[..], b"body");
        }
    }
}
