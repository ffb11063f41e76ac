//! From a file to messages of CoAP: frames of pcap and pcapng, datagrams within them, and what else there was.

mod census;
mod datagram;
mod dtls;
mod frames;
mod message;

pub use census::Census;
pub use frames::{Ending, ReadError};

pub(crate) use datagram::{Contents, Datagram, datagram};
pub(crate) use dtls::{Record, record};
pub(crate) use frames::{Frame, Site, for_each_frame};
pub(crate) use message::{Message, Sort, message};
