//! Security contexts that protect messages from end to end (RFC 8613).

#[cfg(feature = "edhoc")]
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
#[cfg(feature = "edhoc")]
use millpond_coap::quota::Source;
use millpond_coap::{
    message::{Message, Uint, number},
    oscore::{Context, OscoreOption, ProtectError, Protector, ResponseFault, SentRequest, Which},
};

use crate::{Authority, Error, Host, NotSent, Options, PeerIdentity, Uri};

/// Messages that a context protects without its storage being written.
const GAP: u32 = 1_000;

/// Security contexts of OSCORE (RFC 8613) by which a [client](crate::ClientBuilder::oscore) or a
/// [server](crate::ServerBuilder::oscore) protects all its messages. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OscoreContexts(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    all: Mutex<All>,
    /// What none of them is for goes on as it is.
    passes_others: AtomicBool,
}

#[derive(Debug, Default)]
struct All {
    kept: Vec<StoredContext>,
    /// How many there were.
    added: u32,
    /// Who agrees upon further ones.
    #[cfg(feature = "edhoc")]
    acceptor: Option<super::edhoc::Acceptor>,
    /// IDs of contexts that were replaced, the latest first: requests that came under these may wait for their answers.
    #[cfg(feature = "edhoc")]
    replaced: VecDeque<Vec<u8>>,
}

/// How many of those are remembered, of 65,536 that there are.
#[cfg(feature = "edhoc")]
const MOST_REPLACED: usize = 4_096;

/// Stores the bound of the sequence numbers of a context.
type Store = Box<dyn FnMut(u64) -> io::Result<()> + Send>;

struct StoredContext {
    context: Context,
    store: Store,
    /// Which of these contexts it is, from 1 on.
    number: u32,
    /// Whom a client asks under it, and nobody else.
    server: Option<Authority>,
    /// That was agreed upon with the peer at this place among the credentials.
    #[cfg(feature = "edhoc")]
    with: Option<usize>,
}

impl fmt::Debug for StoredContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.context.fmt(f)
    }
}

impl StoredContext {
    /// The context, with sequence numbers that may be used. What cannot be stored is told by the context, which protects nothing then.
    fn ready(&mut self) -> &mut Context {
        if let Some(bound) = self.context.bound_to_store(GAP) {
            match (self.store)(bound) {
                Ok(()) => self.context.bound_is_stored(bound),
                Err(error) => tracing::warn!("the sequence numbers of a security context are not stored: {error}"),
            }
        }
        &mut self.context
    }
}

impl OscoreContexts {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more. A client takes the first for all requests but those to servers that have [one](Self::add_for), a server that which a
    /// request names.
    ///
    /// `store` is called with the [bound](Context::bound_to_store) of the sequence numbers before more of them are used: it returns
    /// once the bound would be found after a power cut. One that was [never stored](millpond_coap::oscore::Start::Fresh) calls it
    /// never.
    ///
    /// # Errors
    /// There is one with the same recipient ID.
    pub fn add(
        &self,
        context: Context,
        store: impl FnMut(u64) -> io::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let mut all = self.all();
        let id = context.recipient_id();
        if all.unnamed().any(|kept| kept.context.recipient_id() == id) {
            let reason = "has two contexts with one recipient ID; give each client an ID of its own".into();
            return Err(Error::Setting { name: "oscore", reason });
        }
        if all.accepts(id) {
            return Err(ambiguous());
        }
        all.keep(context, Box::new(store), None);
        Ok(())
    }

    /// One more, by which a client asks this server and nobody else. Without a [port](Authority::port) it is for the usual ones.
    /// Where none is for who is asked, and none for [any other server](Self::add), the request is refused before it is sent. A server
    /// takes no request by it.
    ///
    /// # Errors
    /// There is one for this server.
    pub fn add_for(
        &self,
        server: Authority,
        context: Context,
        store: impl FnMut(u64) -> io::Result<()> + Send + 'static,
    ) -> Result<(), Error> {
        let mut all = self.all();
        if all.kept.iter().any(|kept| kept.server.as_ref() == Some(&server)) {
            let reason = format!("has two contexts for {server}; leave one of them out");
            return Err(Error::Setting { name: "oscore", reason });
        }
        all.keep(context, Box::new(store), Some(server));
        Ok(())
    }

    /// What none of these contexts is for goes on as it is: a client sends it, and a server takes it, as a proxy does whose neighbours have
    /// contexts with others, or none. A client takes no context then but that [for the server](Self::add_for) that it asks, or that of
    /// the [identity](crate::RequestBuilder::identity) that it asks for, and a request that is protected already leaves as it is. A server
    /// tells by the [identity](crate::Request::identity) which requests were protected for it; an ID that it has for one of its clients is
    /// to be nobody else's.
    #[must_use]
    pub fn pass_others(self) -> Self {
        self.0.passes_others.store(true, Ordering::Relaxed);
        self
    }

    /// Writes into the options of a request by which context it is to be protected. That is not sent.
    pub(crate) fn choose(
        &self,
        uri: &Uri,
        identity: Option<&PeerIdentity>,
        options: &mut Options,
    ) -> Result<(), Error> {
        let refused = |reason: String| Err(Error::refused(NotSent::Message, reason));
        let (all, passes_others) = (self.all(), self.passes_others());
        match options.get(number::OSCORE).map(|value| OscoreOption::decode(value)) {
            None => {}
            Some(_) if !passes_others => return refused(ProtectError::Nested.to_string()),
            Some(Ok(_)) => return Ok(()),
            // It would be taken for a choice, or be nothing to anybody.
            Some(Err(fault)) => return refused(format!("its OSCORE option cannot be read: {fault}")),
        }
        if let Some(identity @ PeerIdentity::Oscore(_)) = identity {
            return match all.unnamed().find(|kept| all.identity(kept) == *identity) {
                Some(kept) => {
                    options.add(number::OSCORE, chosen(kept.number));
                    Ok(())
                }
                None => refused("no context of OSCORE is for this identity, or not any more".into()),
            };
        }
        let fitting = all.kept.iter().filter_map(|kept| Some((kept, kept.server.as_ref()?)));
        let fitting = fitting.filter(|(_, server)| server.is_of(uri));
        match fitting.max_by_key(|(_, server)| server.port().is_some()) {
            Some((kept, _)) => options.add(number::OSCORE, chosen(kept.number)),
            // Nothing leaves in the clear because a port was not written.
            None if passes_others && all.is_for_usual_ports_of(uri.host()) => {
                let (asked, host) = (Authority::of(uri), uri.host());
                return refused(format!(
                    "a context of OSCORE is for {host} at the usual ports, and none for {asked}; give it that port"
                ));
            }
            None if passes_others || all.unnamed().next().is_some() => {}
            None => {
                let server = Authority::of(uri);
                return refused(format!("no context of OSCORE is for {server}; add one for it, or one for any server"));
            }
        }
        Ok(())
    }

    /// Who has sent a request that names the context of this ID.
    #[cfg(feature = "server")]
    pub(crate) fn identity(&self, id: &[u8]) -> Option<PeerIdentity> {
        let all = self.all();
        all.unnamed().find(|kept| kept.context.recipient_id() == id).map(|kept| all.identity(kept))
    }

    /// A server agrees upon further contexts, with those whose credentials these name (EDHOC, RFC 9528): it answers requests for
    /// `/.well-known/edhoc` that nothing protects. Each has one context, which another handshake replaces. 256 are begun within 16
    /// seconds, of a network 192, for addresses that are not validated 64, of a network 16. Then such an address is asked for Echo, and
    /// others are answered with 5.03 and Max-Age.
    ///
    /// # Errors
    /// A credential has the recipient ID of a context as its kid.
    #[cfg(feature = "edhoc")]
    pub fn accept(&self, ours: crate::EdhocCredentials) -> Result<(), Error> {
        let mut all = self.all();
        let acceptor = super::edhoc::Acceptor::new(ours);
        let is_taken = all.unnamed().any(|kept| acceptor.accepts(kept.context.recipient_id()));
        if is_taken {
            return Err(ambiguous());
        }
        all.acceptor = Some(acceptor);
        Ok(())
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn keep(&mut self, context: Context, store: Store, server: Option<Authority>) -> &mut StoredContext {
        self.added += 1;
        self.kept.push(StoredContext {
            context,
            store,
            number: self.added,
            server,
            #[cfg(feature = "edhoc")]
            with: None,
        });
        let last = self.kept.len() - 1;
        &mut self.kept[last]
    }

    /// The context that was agreed upon with the peer at this place is used no more.
    #[cfg(feature = "edhoc")]
    fn replace(&mut self, with: usize) {
        let Some(place) = self.kept.iter().position(|kept| kept.with == Some(with)) else { return };
        let id = self.kept.remove(place).context.recipient_id().to_vec();
        self.replaced.truncate(MOST_REPLACED - 1);
        self.replaced.push_front(id);
    }

    /// Those that are for no server alone.
    fn unnamed(&self) -> impl Iterator<Item = &StoredContext> {
        self.kept.iter().filter(|kept| kept.server.is_none())
    }

    /// Whether one is for a server at this host that names no port.
    fn is_for_usual_ports_of(&self, host: &Host) -> bool {
        let mut servers = self.kept.iter().filter_map(|kept| kept.server.as_ref());
        servers.any(|server| server.host() == host && server.port().is_none())
    }

    /// By which a request is protected that has this option: that which was chosen, or the first for all servers.
    fn sending(&mut self, by: u32) -> Option<&mut StoredContext> {
        match by {
            0 => self.kept.iter_mut().find(|kept| kept.server.is_none()),
            number => self.kept.iter_mut().find(|kept| kept.number == number),
        }
    }

    /// Who the peer is that has a context.
    fn identity(&self, kept: &StoredContext) -> PeerIdentity {
        let id = kept.context.recipient_id();
        #[cfg(feature = "edhoc")]
        let id = kept.with.and_then(|place| self.acceptor.as_ref()?.kid(place)).unwrap_or(id);
        PeerIdentity::Oscore(Bytes::copy_from_slice(id))
    }

    /// Whether contexts are agreed upon with somebody of this kid.
    fn accepts(&self, id: &[u8]) -> bool {
        #[cfg(feature = "edhoc")]
        let accepts = self.acceptor.as_ref().is_some_and(|acceptor| acceptor.accepts(id));
        #[cfg(not(feature = "edhoc"))]
        let accepts = {
            let _ = id;
            false
        };
        accepts
    }
}

fn ambiguous() -> Error {
    let reason = "has a context and a credential of EDHOC with one ID; give each client an ID of its own".into();
    Error::Setting { name: "oscore", reason }
}

/// What no message can have as an OSCORE option: all flags (RFC 8613 §6.1).
const CHOICE: u8 = 0xff;

/// The OSCORE option by which a request names its context here.
fn chosen(number: u32) -> Vec<u8> {
    [&[CHOICE], Uint::new(number).as_bytes()].concat()
}

/// The number of the context, if the option is such a choice.
fn choice(option: &[u8]) -> Option<u32> {
    option.strip_prefix(&[CHOICE]).and_then(Uint::read)
}

impl Protector for OscoreContexts {
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context)) {
        let mut all = self.all();
        if let Some(kept) = all.kept.iter_mut().find(|kept| kept.server.is_none() && which.may_be(&kept.context)) {
            act(if matches!(which, Which::Sent) { &mut kept.context } else { kept.ready() });
        }
    }

    fn passes_others(&self) -> bool {
        self.0.passes_others.load(Ordering::Relaxed)
    }

    fn is_for(&self, request: &Message<'_>) -> bool {
        let all = self.all();
        match request.option(number::OSCORE).map(OscoreOption::decode) {
            Some(Ok(option)) => all.unnamed().any(|kept| Which::Named(&option).may_be(&kept.context)),
            Some(Err(_)) => true,
            #[cfg(feature = "edhoc")]
            None => all.acceptor.as_ref().is_some_and(|acceptor| acceptor.is_for(request)),
            #[cfg(not(feature = "edhoc"))]
            None => false,
        }
    }

    fn protect_request(&mut self, request: &Message<'_>, into: &mut Vec<u8>) -> Result<SentRequest, ProtectError> {
        let option = request.option(number::OSCORE);
        if option.is_none() && self.passes_others() {
            return Err(ProtectError::Plain);
        }
        let mut all = self.all();
        let Some(option) = option else {
            return all.sending(0).ok_or(ProtectError::Plain)?.ready().protect_request(request, into);
        };
        let by = choice(option).ok_or(ProtectError::Nested)?;
        let context = all.sending(by).ok_or(ProtectError::Gone)?.ready();
        let plain = request.rewritten(|number| number != number::OSCORE, request.payload())?;
        let mut sent = context.protect_request(&Message::parse(&plain).map_err(|_| ProtectError::Nested)?, into)?;
        sent.set_by(by);
        Ok(sent)
    }

    fn unprotect_response(
        &mut self,
        request: &mut SentRequest,
        response: &Message<'_>,
        into: &mut Vec<u8>,
    ) -> Result<(), ResponseFault> {
        let mut all = self.all();
        let kept = all.sending(request.by()).ok_or(ResponseFault::OtherContext)?;
        kept.context.unprotect_response(request, response, into)
    }

    #[cfg(feature = "edhoc")]
    fn establish(&mut self, request: &Message<'_>, from: Source, into: &mut Vec<u8>) -> Option<()> {
        let all = &mut *self.all();
        let All { kept, acceptor, replaced, .. } = all;
        let mut agreed = None;
        let is_known = |id: &[u8]| is_known(kept, replaced, id);
        acceptor.as_mut()?.answer((request, from), is_known, |context, with| agreed = Some((context, with)), into)?;
        if let Some((context, with)) = agreed {
            all.replace(with);
            all.keep(context, Box::new(|_| Ok(())), None).with = Some(with);
        }
        Some(())
    }
}

/// Whether a context has this ID for who asks, or had it until it was replaced.
#[cfg(feature = "edhoc")]
fn is_known(kept: &[StoredContext], replaced: &VecDeque<Vec<u8>>, id: &[u8]) -> bool {
    kept.iter().any(|kept| kept.context.recipient_id() == id) || replaced.iter().any(|replaced| replaced == id)
}

#[cfg(test)]
mod tests {
    use millpond_coap::message::{Code, Kind, MessageId, Token, Writer};
    use millpond_coap::oscore::{Parameters, Start};

    use super::*;

    fn context(sender_id: &[u8], recipient_id: &[u8]) -> Context {
        let parameters = Parameters { sender_id, recipient_id, ..Parameters::of(b"0123456789abcdef") };
        Context::derive(&parameters, Start::Stored(0)).unwrap()
    }

    #[test]
    fn contexts_that_a_request_could_not_tell_apart_are_refused() {
        let contexts = OscoreContexts::new();
        contexts.add(context(b"s", b"1"), |_| Ok(())).unwrap();
        contexts.add(context(b"s", b"2"), |_| Ok(())).unwrap();
        let refused = contexts.add(context(b"t", b"1"), |_| Ok(())).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "oscore: has two contexts with one recipient ID; give each client an ID of its own"
        );
    }

    /// Else an answer to what came under the one before could be taken for one of the next.
    #[cfg(feature = "edhoc")]
    #[test]
    fn an_id_is_not_given_again_soon_after_its_context_was_replaced() {
        let mut all = All::default();
        let mut agree = |number: usize| {
            all.replace(0);
            let id = u16::try_from(number).unwrap().to_be_bytes();
            all.keep(context(b"", &id), Box::new(|_| Ok(())), None).with = Some(0);
            (all.kept.len(), is_known(&all.kept, &all.replaced, &[0, 0]))
        };
        let known = (0..=MOST_REPLACED).map(&mut agree).all(|known| known == (1, true));
        assert!(known && agree(MOST_REPLACED + 1) == (1, false), "remembered as long as there are few others");
    }

    /// Else one server could answer in the place of another.
    #[test]
    fn a_response_is_taken_by_the_context_of_its_request_alone() {
        let derived = |parameters: &Parameters<'_>| Context::derive(parameters, Start::Fresh).unwrap();
        let secrets = [b"0123456789abcdef", b"fedcba9876543210"];
        let of = |secret| Parameters { sender_id: b"c", ..Parameters::of(secret) };
        let mut contexts = OscoreContexts::new();
        for (host, secret) in ["one.example", "two.example"].into_iter().zip(secrets) {
            contexts.add_for(host.parse().unwrap(), derived(&of(secret)), |_| Ok(())).unwrap();
        }
        let mut requests = ["coap://one.example", "coap://two.example/"].map(|uri| {
            let mut options = Options::new();
            contexts.choose(&uri.parse().unwrap(), None, &mut options).unwrap();
            let choice = options.get(number::OSCORE).unwrap();
            let (mut plain, mut protected) = (Vec::new(), Vec::new());
            let mut writer = Writer::start(&mut plain, Kind::Confirmable, Code::GET, MessageId(1), Token::EMPTY);
            writer.option(number::OSCORE, choice).unwrap();
            writer.finish().unwrap();
            let sent = contexts.protect_request(&Message::parse(&plain).unwrap(), &mut protected).unwrap();
            (sent, protected)
        });
        let answers = [0, 1].map(|index| {
            let (mut server, mut inner) = (derived(&of(secrets[index]).mirrored()), Vec::new());
            let request = Message::parse(&requests[index].1).unwrap();
            let mut received = server.unprotect_request(&request, &mut inner).unwrap();
            assert_eq!(Message::parse(&inner).unwrap().options().count(), 0);
            let (mut plain, mut protected) = (Vec::new(), Vec::new());
            let writer = Writer::start(&mut plain, Kind::Acknowledgement, Code::CONTENT, MessageId(1), Token::EMPTY);
            writer.finish().unwrap();
            server.protect_response(&mut received, &Message::parse(&plain).unwrap(), &mut protected).unwrap();
            protected
        });
        for (index, (sent, _)) in requests.iter_mut().enumerate() {
            let [own, other] = [index, 1 - index].map(|index| Message::parse(&answers[index]).unwrap());
            assert!(contexts.unprotect_response(sent, &other, &mut Vec::new()).is_err());
            assert_eq!(contexts.unprotect_response(sent, &own, &mut Vec::new()), Ok(()));
        }
    }

    /// Nor by another one, nor at all: it was chosen for one that an agreement has replaced since.
    #[test]
    fn a_request_does_not_leave_in_the_clear_once_its_context_is_gone() {
        let mut contexts = OscoreContexts::new().pass_others();
        contexts.add(context(b"s", b"1"), |_| Ok(())).unwrap();
        let mut options = Options::new();
        let of = PeerIdentity::Oscore(Bytes::from_static(b"1"));
        contexts.choose(&"coap://one.example".parse().unwrap(), Some(&of), &mut options).unwrap();
        let mut request = Vec::new();
        let mut writer = Writer::start(&mut request, Kind::Confirmable, Code::GET, MessageId(1), Token::EMPTY);
        writer.option(number::OSCORE, options.get(number::OSCORE).unwrap()).unwrap();
        writer.finish().unwrap();
        let request = Message::parse(&request).unwrap();
        assert!(contexts.protect_request(&request, &mut Vec::new()).is_ok());
        contexts.all().kept.clear();
        assert_eq!(contexts.protect_request(&request, &mut Vec::new()), Err(ProtectError::Gone));
        let refused = contexts.choose(&"coap://one.example".parse().unwrap(), Some(&of), &mut Options::new());
        assert!(refused.is_err());
    }

    #[test]
    fn nothing_is_protected_with_numbers_that_are_not_stored() {
        let get = [0x40, 1, 0, 0];
        let get = Message::parse(&get).unwrap();
        let mut contexts = OscoreContexts::new();
        contexts.add(context(b"s", b"1"), |_| Err(io::Error::other("full"))).unwrap();
        assert_eq!(contexts.protect_request(&get, &mut Vec::new()), Err(ProtectError::NotStored));
        assert_eq!(OscoreContexts::new().protect_request(&get, &mut Vec::new()), Err(ProtectError::Plain));
    }
}
