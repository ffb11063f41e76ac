//! What a proxy decides (RFC 7252 §5.7): which answers it keeps, which requests share one, and whose turn it is.
//!
//! Nothing here asks or answers. A gateway on sockets and one in virtual time keep their requests by these, and so decide alike.

mod cache;
mod flights;
mod queue;

pub use cache::{Answer, Cache, CacheKey, Cached};
pub use flights::Flights;
pub use queue::{NoRoom, Queue};
