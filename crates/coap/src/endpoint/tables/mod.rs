//! What is kept in bounded room: peers, their paths and queues, numbered places, times at which something is due.

pub(crate) mod beside;
pub(in crate::endpoint) mod delayed_responses;
pub(in crate::endpoint) mod paths;
pub(in crate::endpoint) mod peers;
pub(crate) mod queue;
pub(in crate::endpoint) mod recent;
pub(in crate::endpoint) mod sharing;
pub(crate) mod slots;
pub(crate) mod timers;
