//! A node all of whose messages are protected (RFC 8613).

use embedded_nal_async::UnconnectedUdp;
use millpond_coap::{block::BlockSize, oscore::Context};

use crate::{Clock, Node, node::longest_payload};

/// Bytes that a protected message has more, at most: the option, the code that it hides, and what proves it authentic.
const LONGER_BY: usize = 32;

impl<U: UnconnectedUdp, C: Clock> Node<'_, U, C> {
    /// The same node, all of whose messages this context protects (OSCORE, RFC 8613): requests to any server, and answers to requests that
    /// were protected with it; others are refused. `store` stores the bound of its sequence numbers, as in
    /// [`Endpoint::protected_with`](millpond_coap::Endpoint::protected_with).
    #[must_use]
    pub fn protected_with(mut self, context: Context, store: impl FnMut(u64) -> bool + Send + Sync + 'static) -> Self {
        let fits = longest_payload(&self.endpoint.config().limits).saturating_sub(LONGER_BY);
        self.block = self.block.min(BlockSize::at_most(fits));
        self.endpoint = self.endpoint.protected_with(context, store);
        self
    }
}
