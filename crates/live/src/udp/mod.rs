//! UDP sockets: whole batches in, whole batches out, and nothing lost silently.

mod address;
mod inbox;
mod outbox;
mod port;

pub(crate) use address::Address;
use address::Locals;
pub(crate) use inbox::Inbox;
pub(crate) use outbox::Outbox;
pub(crate) use port::{Port, PortError, Role};
