//! What became of each request, whichever layer decided it.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use millpond_coap::{
    RequestId,
    message::{Code, Message, number},
};
use tokio::time::Instant;

use super::{Request, request::path_text};
use crate::{PeerIdentity, Transport, transfer::Refusal};

/// What became of one request. A body that travels in blocks is told once: when it is answered, or as soon as a block of it is
/// refused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessRecord {
    /// Who asked.
    pub peer: SocketAddr,
    /// Over what.
    pub transport: Transport,
    /// Who that has proved to be.
    pub identity: Option<Arc<PeerIdentity>>,
    /// Its method; `None` of a datagram that could not be read as a request.
    pub method: Option<Code>,
    /// Its path as text, as far as it could be read: the client may have put anything into it.
    pub path: String,
    /// Bytes of its body, all blocks together.
    pub received: usize,
    /// How it was answered.
    pub outcome: AccessOutcome,
    /// Why, where the server decided that and no handler.
    pub reason: Option<Cow<'static, str>>,
    /// From its last message to its answer.
    pub took: Duration,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessOutcome {
    /// By a response.
    Answered {
        /// Its code.
        code: Code,
        /// Bytes of its body, all blocks together.
        bytes: usize,
    },
    /// By a reset.
    Reset,
    /// Not at all: no secure session came about in which it could have been asked.
    Insecure,
    /// By nothing, as its sender wished (No-Response), because it came to a group, or for want of room.
    Unanswered,
}

/// A function that is notified of every request.
type Hear = dyn Fn(&AccessRecord) + Send + Sync;

/// Who is told, if anybody.
#[derive(Clone, Default)]
pub(crate) struct AccessHook(Option<Arc<Hear>>);

impl AccessHook {
    pub(super) fn new(hook: impl Fn(&AccessRecord) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// The same, and before it this one.
    pub(super) fn behind(self, first: impl Fn(&AccessRecord) + Send + Sync + 'static) -> Self {
        Self::new(move |record| {
            first(record);
            if let Some(hook) = &self.0 {
                hook(record);
            }
        })
    }

    /// Somebody is told.
    pub(crate) const fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn tell(&self, record: impl FnOnce() -> AccessRecord) {
        if let Some(hook) = &self.0
            && catch_unwind(AssertUnwindSafe(|| hook(&record()))).is_err()
        {
            // It is the application's, and nobody else is harmed by it.
            tracing::error!(target: "millpond_live", "the function that is told of every request panicked");
        }
    }
}

impl fmt::Debug for AccessHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AccessHook").field(&self.is_set()).finish()
    }
}

impl AccessRecord {
    /// Of a request that the stack has refused by itself.
    pub(crate) fn refused(
        (peer, transport): (SocketAddr, Transport),
        message: &Message<'_>,
        why: Refusal,
        by_group: bool,
    ) -> Self {
        let reason = why.to_string();
        let bytes = if why.is_explained() { reason.len() } else { 0 };
        let answered = AccessOutcome::Answered { code: why.code(), bytes };
        Self {
            method: Some(message.code),
            path: path_text(message.values(number::URI_PATH).map(String::from_utf8_lossy)),
            received: message.payload().len(),
            outcome: if by_group { AccessOutcome::Unanswered } else { answered },
            ..Self::unread((peer, transport), AccessOutcome::Unanswered, reason)
        }
    }

    /// Of a datagram that could not be read as a request, or not be taken.
    pub(crate) fn unread(
        (peer, transport): (SocketAddr, Transport),
        outcome: AccessOutcome,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        let reason = Some(reason.into());
        let (path, received, took) = (String::new(), 0, Duration::ZERO);
        Self { peer, transport, identity: None, method: None, path, received, outcome, reason, took }
    }
}

/// Requests that a dispatcher has not answered yet, if anything logs them.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    pub(crate) hook: AccessHook,
    requests: HashMap<RequestId, Access>,
}

/// A request, without anything that its handler is to have alone.
#[derive(Debug)]
struct Access {
    record: AccessRecord,
    is_for_later_block: bool,
    since: Instant,
}

impl Accesses {
    pub(super) fn new(hook: AccessHook) -> Self {
        Self { hook, requests: HashMap::new() }
    }

    /// A request came.
    pub(super) fn came(&mut self, id: RequestId, request: &Request) {
        if self.hook.is_set() {
            let record = AccessRecord {
                peer: request.peer(),
                transport: request.transport(),
                identity: request.shared_identity(),
                method: Some(request.method()),
                path: request.path_text(),
                received: request.payload().len(),
                outcome: AccessOutcome::Unanswered,
                reason: None,
                took: Duration::ZERO,
            };
            let is_for_later_block = request.asks_for_later_block();
            self.requests.insert(id, Access { record, is_for_later_block, since: Instant::now() });
        }
    }

    /// Why no handler decides what becomes of it.
    pub(super) fn because(&mut self, id: RequestId, reason: impl Into<Cow<'static, str>>) {
        if let Some(access) = self.requests.get_mut(&id) {
            access.record.reason = Some(reason.into());
        }
    }

    /// It was answered, or never will be. A message that merely goes on with a body is not told.
    pub(super) fn ended(&mut self, id: RequestId, outcome: AccessOutcome) {
        if self.requests.is_empty() {
            return;
        }
        let Some(Access { record, is_for_later_block, since }) = self.requests.remove(&id) else { return };
        if let AccessOutcome::Answered { code, .. } = outcome
            && (code == Code::CONTINUE || code.class() == 2 && is_for_later_block)
        {
            return;
        }
        self.hook.tell(|| AccessRecord { outcome, took: since.elapsed(), ..record });
    }
}

/// A connection may end before its requests are answered.
impl Drop for Accesses {
    fn drop(&mut self) {
        let mut left: Vec<_> = self.requests.keys().copied().collect();
        left.sort_unstable();
        for id in left {
            self.because(id, "its connection, or the server, ended first");
            self.ended(id, AccessOutcome::Unanswered);
        }
    }
}
