//! What nobody asked for.

use std::{
    fmt,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use bytes::Bytes;
use millpond_coap::message::{Code, Message};

use crate::{Options, client::options};

/// A response that nothing was asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unasked {
    /// Who sent it.
    pub peer: SocketAddr,
    /// Its code.
    pub code: Code,
    /// Its options.
    pub options: Options,
    /// Its payload.
    pub payload: Bytes,
}

/// Who is told.
#[derive(Clone)]
pub(crate) struct UnaskedHook(Arc<dyn Fn(&Unasked) + Send + Sync>);

impl UnaskedHook {
    pub(super) fn new(hook: impl Fn(&Unasked) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }

    pub(crate) fn tell(&self, peer: SocketAddr, message: &Message<'_>) {
        let payload = Bytes::copy_from_slice(message.payload());
        let unasked = Unasked { peer, code: message.code, options: options(message), payload };
        if catch_unwind(AssertUnwindSafe(|| (self.0)(&unasked))).is_err() {
            // It is the application's, and nobody else is harmed by it.
            tracing::error!(target: "millpond_live", "the function that is told of unsolicited messages panicked");
        }
    }
}

impl fmt::Debug for UnaskedHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnaskedHook")
    }
}
