//! CoAP over a reliable byte stream (RFC 8323): frames, signals and one connection, without clock and socket.
//!
//! There is no message layer: TCP delivers once and in order, so there are neither message IDs nor acknowledgements,
//! and any number of requests may be under way. What is left is a frame with a length in front ([`Frame`],
//! [`FrameReader`], [`write_frame`]), five signals of the connection itself ([`Signal`]) and the matching of responses
//! by token ([`Connection`]). A [`CoapStack`](crate::transfer::CoapStack) carries bodies of any length and observations over it, as over an endpoint.
//!
//! ```
//! use millpond_coap::message::{Code, number};
//! use millpond_coap::stream::{Connection, Options};
//! use millpond_coap::{Event, Outgoing, Output};
//! use millpond_control::Instant;
//!
//! let now = Instant::ORIGIN;
//! let (mut client, mut server) = (Connection::new(Options::default()), Connection::new(Options::default()));
//! client.request(now, &Outgoing::confirmable(Code::GET, &[(number::URI_PATH, b"hello")]))?;
//! let mut answer = Vec::new();
//! for _ in 0..3 {
//!     let mut asked = None;
//!     while let Some(bytes) = match client.poll(now) {
//!         Output::Transmit(transmit) => Some(transmit.bytes.to_vec()),
//!         Output::Event(Event::Response { message, .. }) => { answer = message.payload().to_vec(); Some(Vec::new()) }
//!         Output::Event(_) => Some(Vec::new()),
//!         _ => None,
//!     } {
//!         server.receive(now, &bytes);
//!         while let Some(bytes) = match server.poll(now) {
//!             Output::Transmit(transmit) => Some(transmit.bytes.to_vec()),
//!             Output::Event(Event::Request { id, .. }) => { asked = Some(id); Some(Vec::new()) }
//!             Output::Event(_) => Some(Vec::new()),
//!             _ => None,
//!         } {
//!             client.receive(now, &bytes);
//!         }
//!     }
//!     if let Some(id) = asked {
//!         server.respond(now, id, &Outgoing::confirmable(Code::CONTENT, &[]).with_payload(b"world"))?;
//!         if let Output::Transmit(transmit) = server.poll(now) { client.receive(now, transmit.bytes); }
//!     }
//! }
//! assert_eq!(answer, b"world");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connection;
mod frame;
mod output;
mod pending;
mod reader;
mod signal;
mod token_quarantine;
mod write;

pub use connection::{Connection, Options, Settings};
pub use frame::{Frame, FrameError, FrameFault};
pub use output::{Closing, ConnectionOutput, StreamRefused};
pub use reader::FrameReader;
pub use signal::{BadSignal, Signal};
pub use write::{write_extended, write_frame};
