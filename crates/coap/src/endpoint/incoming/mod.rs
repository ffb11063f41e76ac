//! What comes in: messages of peers, their requests and their copies, until they are answered.

pub(in crate::endpoint) mod calm;
mod changes;
pub(in crate::endpoint) mod duplicates;
pub(in crate::endpoint) mod inbox;
pub(in crate::endpoint) mod ping;
pub(in crate::endpoint) mod receive;
pub(in crate::endpoint) mod requests;
pub(in crate::endpoint) mod understood;
