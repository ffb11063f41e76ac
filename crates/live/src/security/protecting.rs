//! Whether messages are protected from end to end.

#[cfg(feature = "server")]
use std::sync::Arc;
use std::{fmt::Debug, hash::Hash};

use millpond_coap::Endpoint;
#[cfg(feature = "tcp")]
use millpond_coap::stream::Connection;

use crate::{Error, NotSent, Options, PeerIdentity, Uri};

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

    /// Writes into the options of a request by what it is to be protected.
    pub(crate) fn choose(
        &self,
        uri: &Uri,
        identity: Option<&PeerIdentity>,
        options: &mut Options,
    ) -> Result<(), Error> {
        match self {
            Self::Nothing => {
                let _ = (uri, options);
                match identity {
                    Some(PeerIdentity::Oscore(_)) => {
                        let reason =
                            "there are no contexts of OSCORE, and the identity is of one; give the client contexts";
                        Err(Error::refused(NotSent::Combination, reason))
                    }
                    _ => Ok(()),
                }
            }
            #[cfg(feature = "oscore")]
            Self::By(contexts) => contexts.choose(uri, identity, options),
        }
    }

    /// Who has sent a request that names the context of this ID.
    #[cfg(feature = "server")]
    pub(crate) fn identity(&self, id: &[u8]) -> Option<Arc<PeerIdentity>> {
        match self {
            Self::Nothing => {
                let _ = id;
                None
            }
            #[cfg(feature = "oscore")]
            Self::By(contexts) => contexts.identity(id).map(Arc::new),
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
