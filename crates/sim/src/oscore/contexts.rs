//! A security context for each client that has one, which it shares with the server.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use millpond_coap::{
    Endpoint,
    message::{Message, number},
    oscore::{Context, ContextError, OscoreOption, Parameters, Protector, Start, Which},
};

use crate::{RunError, scenario::Scenario};

/// The master secret of all of them, so that a capture can be decrypted. Their IDs set them apart: clients have their number, the
/// server the empty ID.
const SECRET: [u8; 16] = *b"laboratory's key";

/// The security contexts of a run.
#[derive(Clone)]
pub(crate) struct Contexts {
    /// The server's, by the client.
    of_server: Arc<Mutex<Vec<Option<Context>>>>,
    /// The bound of the sequence numbers that each client has stored (RFC 8613 Appendix B.1.1).
    bounds: Arc<[AtomicU64]>,
    /// Whether there are clients without.
    passes_others: bool,
}

impl Contexts {
    /// Those of the clients of these groups that have one.
    pub(crate) fn of(scenario: &Scenario, groups: &[u32]) -> Result<Self, RunError> {
        let is_protected = |group: &u32| scenario.clients[*group as usize].protection.is_oscore();
        let is_any = groups.iter().any(is_protected);
        let context = |(client, group): (u32, &u32)| {
            let id = id(client, groups.len());
            is_protected(group).then(|| Context::derive(&parameters(&id).mirrored(), Start::Fresh)).transpose()
        };
        let contexts: Result<Vec<_>, _> = (0..).zip(groups.iter().filter(|_| is_any)).map(context).collect();
        let of_server = contexts.map_err(refused)?;
        Ok(Self {
            passes_others: of_server.iter().any(Option::is_none),
            bounds: of_server.iter().map(|_| AtomicU64::new(0)).collect(),
            of_server: Arc::new(Mutex::new(of_server)),
        })
    }

    /// The endpoint of the server, which takes what they protect.
    pub(crate) fn protect_server(&self, endpoint: Endpoint<u32>) -> Endpoint<u32> {
        if self.bounds.is_empty() { endpoint } else { endpoint.protected_by(self.clone()) }
    }

    /// The endpoint of a client, protected by its context if it has one. That goes on behind the stored bound if the client was up
    /// before.
    pub(crate) fn protect(&self, client: u32, endpoint: Endpoint<u32>) -> Result<Endpoint<u32>, RunError> {
        let of_server = self.of_server.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(of_server.get(client as usize), Some(Some(_))) {
            return Ok(endpoint);
        }
        let bounds = Arc::clone(&self.bounds);
        let place = client as usize;
        let start = Start::Stored(bounds[place].load(Ordering::Relaxed));
        let context = Context::derive(&parameters(&id(client, bounds.len())), start).map_err(refused)?;
        Ok(endpoint.protected_with(context, move |bound| {
            bounds[place].store(bound, Ordering::Relaxed);
            true
        }))
    }
}

impl Protector for Contexts {
    fn with_context(&mut self, which: Which<'_>, act: &mut dyn FnMut(&mut Context)) {
        let id = match which {
            // The server asks nobody.
            Which::Sends | Which::Sent => return,
            Which::Named(option) => option.kid.unwrap_or_default(),
            Which::Of(recipient_id) => recipient_id,
        };
        let mut of_server = self.of_server.lock().unwrap_or_else(PoisonError::into_inner);
        let client = id.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        if let Some(Some(context)) = of_server.get_mut(client) {
            act(context);
        }
    }

    fn passes_others(&self) -> bool {
        self.passes_others
    }

    fn is_for(&self, request: &Message<'_>) -> bool {
        matches!(request.option(number::OSCORE).map(OscoreOption::decode), Some(Ok(_)))
    }
}

/// What a client and the server were given, as the client has it.
fn parameters(id: &[u8]) -> Parameters<'_> {
    Parameters { sender_id: id, ..Parameters::of(&SECRET) }
}

/// The ID of a client, of so many: as long as that of each other.
fn id(client: u32, clients: usize) -> Vec<u8> {
    let last = clients.saturating_sub(1).max(1);
    let zeros = last.leading_zeros() / 8;
    (client as usize).to_be_bytes()[zeros as usize..].to_vec()
}

fn refused(why: ContextError) -> RunError {
    RunError::Endpoint("a client", why.to_string())
}
