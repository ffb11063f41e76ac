//! UDP sockets: whole batches in, whole batches out, and nothing lost silently.

mod address;
mod bound_socket;
mod choices;
mod inbox;
mod interface;
mod into_address;
mod multicast;
mod outbox;
mod watched;

use address::Locals;
pub use address::network_of;
pub(crate) use address::{Address, canonical};
pub(crate) use bound_socket::{BoundSocket, Role, SocketError};
pub(crate) use inbox::Inbox;
pub use interface::Interface;
pub use into_address::IntoAddress;
pub(crate) use multicast::{ALL_COAP_NODES, is_group};
pub(crate) use outbox::Outbox;
