//! Whether messages are protected from end to end.

use std::{fmt::Debug, hash::Hash};

use millpond_coap::Endpoint;
#[cfg(feature = "tcp")]
use millpond_coap::stream::Connection;

/// By what all messages of a client, or of a server, are protected.
#[derive(Clone, Debug, Default)]
pub(crate) enum Protecting {
    /// By nothing, but what carries them.
    #[default]
    Nothing,
    /// OSCORE (RFC 8613).
    #[cfg(feature = "oscore")]
    By(super::OscoreContexts),
}

impl Protecting {
    /// An endpoint that has sent nothing yet.
    pub(crate) fn endpoint<A>(&self, endpoint: Endpoint<A>) -> Endpoint<A>
    where
        A: Copy + Eq + Hash + Debug + Send + Sync + 'static,
    {
        match self {
            Self::Nothing => endpoint,
            #[cfg(feature = "oscore")]
            Self::By(contexts) => endpoint.protected_by(contexts.clone()),
        }
    }

    /// A connection that has sent nothing yet.
    #[cfg(feature = "tcp")]
    pub(crate) fn connection(&self, connection: Connection) -> Connection {
        match self {
            Self::Nothing => connection,
            #[cfg(feature = "oscore")]
            Self::By(contexts) => connection.protected_by(contexts.clone()),
        }
    }
}
