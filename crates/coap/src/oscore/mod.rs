//! Protection of messages from end to end: OSCORE (RFC 8613).
//!
//! A [`Context`] is what two endpoints share: keys derived from a secret that both were given, the sequence numbers of what
//! was sent, and the window of what was received. It needs no handshake and no session, so it survives a new address, a sleep and
//! a restart. It protects requests and responses, not the message layer below: retransmissions are copies of
//! protected bytes.
//!
//! ```
//! use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
//! use millpond_coap::oscore::{Context, Parameters, Start};
//!
//! let secret = *b"sixteen bytes...";
//! let of_client = Parameters { sender_id: &[0], recipient_id: &[1], ..Parameters::of(&secret) };
//! let mut client = Context::derive(&of_client, Start::Fresh)?;
//! let mut server = Context::derive(&of_client.mirrored(), Start::Fresh)?;
//!
//! let mut plain = Vec::new();
//! let mut writer = Writer::start(&mut plain, Kind::Confirmable, Code::GET, MessageId(7), Token::EMPTY);
//! writer.option(number::URI_PATH, b"temperature")?;
//! writer.finish()?;
//!
//! // What leaves shows neither method nor path.
//! let mut leaves = Vec::new();
//! let mut sent = client.protect_request(&Message::parse(&plain)?, &mut leaves)?;
//! let mut came = Vec::new();
//! let mut received = server.unprotect_request(&Message::parse(&leaves)?, &mut came)?;
//! assert_eq!(came, plain);
//!
//! let (mut answer, mut back, mut shown) = (Vec::new(), Vec::new(), Vec::new());
//! let mut writer = Writer::start(&mut answer, Kind::Acknowledgement, Code::CONTENT, MessageId(7), Token::EMPTY);
//! writer.payload(b"21.5")?;
//! writer.finish()?;
//! server.protect_response(&mut received, &Message::parse(&answer)?, &mut back)?;
//! client.unprotect_response(&mut sent, &Message::parse(&back)?, &mut shown)?;
//! assert_eq!(shown, answer);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What must outlive a restart
//!
//! Keys that outlive a restart must never see a sequence number twice. A context that [starts](Start::Stored) from storage uses
//! only numbers below a bound that is stored already, and says when the next one is due (Appendix B.1.1):
//!
//! ```
//! # use millpond_coap::oscore::{Context, Parameters, Start};
//! # let secret = *b"sixteen bytes...";
//! # let parameters = Parameters { sender_id: &[0], recipient_id: &[1], ..Parameters::of(&secret) };
//! # let mut stored = 0;
//! let mut context = Context::derive(&parameters, Start::Stored(stored))?;
//! // Now, and after each message that was protected:
//! if let Some(bound) = context.bound_to_store(1_000) {
//!     stored = bound; // and safe on disk or in flash, before:
//!     context.bound_is_stored(bound);
//! }
//! # assert_eq!(stored, 1_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The window of received requests is not stored. After a restart the first request of a client is answered with a
//! [challenge](Context::challenge), an Echo option that the client repeats, and its repetition opens the window again (Appendix B.1.2).
//!
//! With the feature `oscore-anew`, [`Context::derive_anew`] stores nothing instead: keys are derived anew (Appendix B.2).
//!
//! # What is left out
//!
//! Groups and mapping to HTTP. A protected message that a proxy has cut into blocks is put together by a
//! [`CoapStack`](crate::transfer::CoapStack), and by nothing below it.

mod algorithm;
mod anew;
mod context;
mod fields;
mod guard;
mod numbers;
mod only;
mod option;
mod partial_iv;
mod protect;
mod protector;
mod refusal;
mod unprotect;
#[cfg(test)]
mod vectors;
mod window;

pub use crate::protection::{ProtectError, ResponseFault};
pub use algorithm::{Algorithm, Hash};
pub use context::{Context, ContextError, Parameters, Start};
pub use fields::{Protection, protection};
pub(crate) use guard::Guard;
pub use option::{OptionFault, OscoreOption};
pub use partial_iv::PartialIv;
pub use protect::{ReceivedRequest, SentRequest};
pub use protector::{Protector, Which};

pub use refusal::Refusal;
