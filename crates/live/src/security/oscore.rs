//! Security contexts that protect messages from end to end (RFC 8613).

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use millpond_coap::oscore::{Context, Protector, Which};
#[cfg(feature = "edhoc")]
use millpond_coap::{message::Message, quota::Source};

use crate::Error;

/// Messages that a context protects without its storage being written.
const GAP: u32 = 1_000;

/// Security contexts of OSCORE (RFC 8613) by which a [client](crate::ClientBuilder::oscore) or a
/// [server](crate::ServerBuilder::oscore) protects all its messages. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OscoreContexts(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    kept: Vec<StoredContext>,
    /// Who agrees upon further ones.
    #[cfg(feature = "edhoc")]
    acceptor: Option<super::edhoc::Acceptor>,
}

/// Stores the bound of the sequence numbers of a context.
type Store = Box<dyn FnMut(u64) -> io::Result<()> + Send>;

struct StoredContext {
    context: Context,
    store: Store,
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

    /// One more. A client takes the first for all its requests, a server that which a request names.
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
        if all.kept.iter().any(|kept| kept.context.recipient_id() == context.recipient_id()) {
            let reason = "has two contexts with one recipient ID; give each client an ID of its own".into();
            return Err(Error::Setting { name: "oscore", reason });
        }
        all.kept.push(StoredContext {
            context,
            store: Box::new(store),
            #[cfg(feature = "edhoc")]
            with: None,
        });
        Ok(())
    }

    /// A server agrees upon further contexts, with those whose credentials these name (EDHOC, RFC 9528): it answers requests for
    /// `/.well-known/edhoc` that nothing protects. Each has one context, which another handshake replaces. 256 are begun within 16
    /// seconds, of a network 192, for addresses that are not validated 64, of a network 16. Then such an address is asked for Echo, and
    /// others are answered with 5.03 and Max-Age.
    #[cfg(feature = "edhoc")]
    pub fn accept(&self, ours: crate::EdhocCredentials) {
        self.all().acceptor = Some(super::edhoc::Acceptor::new(ours));
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Protector for OscoreContexts {
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context)) {
        if let Some(kept) = self.all().kept.iter_mut().find(|kept| which.may_be(&kept.context)) {
            act(if matches!(which, Which::Sent) { &mut kept.context } else { kept.ready() });
        }
    }

    #[cfg(feature = "edhoc")]
    fn establish(&mut self, request: &Message<'_>, from: Source, into: &mut Vec<u8>) -> Option<()> {
        let All { kept, acceptor } = &mut *self.all();
        let mut agreed = None;
        let is_taken = |id: &[u8]| kept.iter().any(|kept| kept.context.recipient_id() == id);
        acceptor.as_mut()?.answer((request, from), is_taken, |context, with| agreed = Some((context, with)), into)?;
        if let Some((context, with)) = agreed {
            kept.retain(|kept| kept.with != Some(with));
            kept.push(StoredContext { context, store: Box::new(|_| Ok(())), with: Some(with) });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use millpond_coap::message::Message;
    use millpond_coap::oscore::{Parameters, ProtectError, Start};

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
