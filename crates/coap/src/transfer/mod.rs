//! Whole bodies and observations above a [`MessageLayer`](crate::layer::MessageLayer): block-wise transfer (RFC 7959) and
//! Observe (RFC 7641), both ways.
//!
//! A [`CoapStack`] owns an [`Endpoint`](crate::Endpoint), or a [`Connection`](crate::stream::Connection), and is driven as
//! they are, by *any number of inputs, then drain*: [`poll`](CoapStack::poll) until it says
//! [`Sleep`](crate::Output::Sleep) or [`Idle`](crate::Output::Idle), before the next input and before sleeping. Of its
//! outputs the datagrams are to be sent, the [`Event`]s are for the application, and what is merely traced can be passed
//! over:
//!
//! ```
//! use millpond_coap::message::{Code, number};
//! use millpond_coap::transfer::{Answer, ClientRequest, Config, Event, CoapStack};
//! use millpond_coap::{ChanceSeed, Endpoint, IdGenerator, Instant, Output, Preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let make = |node| -> Result<CoapStack<Endpoint<&str>>, Box<dyn std::error::Error>> {
//!     let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
//!     let endpoint = Endpoint::new(Default::default(), controller, chance, node, IdGenerator::counted())?;
//!     Ok(CoapStack::new(endpoint, Config::default(), chance)?)
//! };
//! let (mut client, mut server) = (make(0)?, make(1)?);
//! let (now, body) = (Instant::ORIGIN, vec![b'.'; 5_000]);
//!
//! client.request(now, "server", &ClientRequest::new(Code::GET, &[(number::URI_PATH, b"large")]))?;
//! let (mut up, mut down, mut got) = (Vec::new(), Vec::new(), None);
//! while got.is_none() {
//!     loop {
//!         match client.poll(now) {
//!             Output::Transmit(transmit) => up.push(transmit.bytes.to_vec()),
//!             Output::Event(Event::Answer { body, .. }) => got = Some(body.into_owned()),
//!             Output::Event(event) => return Err(format!("{event:?}").into()),
//!             Output::Trace(_) => {}
//!             Output::Sleep(..) | Output::Idle => break,
//!         }
//!     }
//!     for datagram in up.drain(..) {
//!         server.receive(now, "client", &datagram);
//!         let mut asked = None;
//!         loop {
//!             match server.poll(now) {
//!                 Output::Transmit(transmit) => down.push(transmit.bytes.to_vec()),
//!                 Output::Event(Event::Request { id, .. }) => asked = Some(id),
//!                 Output::Event(_) | Output::Trace(_) => {}
//!                 // Once for all five blocks.
//!                 Output::Sleep(..) | Output::Idle => match asked.take() {
//!                     Some(id) => server.answer(now, id, &Answer::new(Code::CONTENT, &[]).with_body(&body))?,
//!                     None => break,
//!                 },
//!             }
//!         }
//!     }
//!     if let Some(datagram) = down.pop() {
//!         client.receive(now, "server", &datagram);
//!     }
//! }
//! assert_eq!(got, Some(body));
//! # Ok(())
//! # }
//! ```
//!
//! # What it does, and how it reads the RFCs
//!
//! * **Bodies of requests** leave in one message if they fit [`ClientRequest::upload`], else in blocks, each an exchange of its own.
//!   A server that wants smaller ones, or lost what it had (4.08), is obeyed; a refusal (4.13 and others) is the answer.
//! * **Bodies of responses** are fetched block by block, with the size that the server chose or that was asked for
//!   ([`ClientRequest::early`]). A changed ETag means that the representation changed: it is fetched anew.
//! * **Unwanted responses** (RFC 7967): a request whose option No-Response wants none is over once its request was acknowledged or
//!   left; one that wants some, by its deadline at the latest ([`Event::Unanswered`]).
//! * **Observations** are answers that go on. Of notifications those older than what is known are dropped (RFC 7641 §3.4);
//!   what of a representation does not fit the notification is fetched by requests of their own (RFC 7959 §2.6), and a
//!   newer notification begins that anew. What is no longer fresh is registered again, with the same token.
//! * **A server** hands up whole requests and cuts whole answers. A representation of several blocks is kept for a while,
//!   so that all its blocks are of one state; if it is gone, the request is handed up again and the block is cut from the
//!   new answer. Any block can be asked for in any order; one behind the end is answered with 4.00.
//! * **Observers** get the newest state only: while a notification is under way, further ones replace each other. The
//!   first is confirmable, and one in [`Config::confirm_every`]; the others are paced by the round-trip time and by the
//!   controller. Who rejects one, or does not acknowledge a confirmable one, is forgotten.
//! * **Groups** are asked once; the answers of their members are gathered for a while, and what of one does not fit its
//!   message is fetched from that member.
//! * **Bodies in bursts** (RFC 9177) are a request's own wish ([`ClientRequest::q_block`]) and a server's setting ([`Config::q_block`]).
//!   A peer that is asked like this and does not know them is asked again block by block.
//! * **Protected messages** (RFC 8613) that a proxy has cut are put together before the protection is taken off, up to what a datagram can hold;
//!   answers leave in the blocks that it asks for.
//! * **Hostile input** costs bounded memory ([`Limits`]).
//!
//! # Over a stream
//!
//! [`CoapStack::over_stream`] does the same over a connection (RFC 8323); what else there is to a connection, its settings and
//! pongs, is told as a [trace](crate::Output::Trace), and its end as [`Output::Close`](crate::Output::Close):
//!
//! ```
//! use millpond_coap::message::{Code, number};
//! use millpond_coap::stream::{Connection, Options};
//! use millpond_coap::transfer::{Answer, ClientRequest, Config, Event, CoapStack};
//! use millpond_coap::{Instant, Output};
//!
//! let now = Instant::ORIGIN;
//! let of = |options| CoapStack::over_stream(Connection::new(options), Config::STREAM);
//! let mut client = of(Options { max_message_size: 1_152, ..Options::default() });
//! let mut server = of(Options::default());
//! client.request(now, (), &ClientRequest::new(Code::GET, &[(number::URI_PATH, b"firmware")]))?;
//! let (mut whole, mut quiet) = (Vec::new(), false);
//! while !core::mem::replace(&mut quiet, true) {
//!     // Drain the client; what it sends is handed to the server at once.
//!     loop {
//!         match client.poll(now) {
//!             Output::Transmit(transmit) => { server.receive(now, transmit.bytes); quiet = false; }
//!             Output::Event(Event::Answer { body, .. }) => whole = body.into_owned(),
//!             Output::Event(_) | Output::Trace(_) => {}
//!             Output::Close(_) | Output::Sleep(..) | Output::Idle => break,
//!         }
//!     }
//!     loop {
//!         match server.poll(now) {
//!             Output::Transmit(transmit) => { client.receive(now, transmit.bytes); quiet = false; }
//!             Output::Event(Event::Request { id, .. }) => {
//!                 server.answer(now, id, &Answer::new(Code::CONTENT, &[]).with_body(&[7; 100_000]))?;
//!             }
//!             Output::Event(_) | Output::Trace(_) => {}
//!             Output::Close(_) | Output::Sleep(..) | Output::Idle => break,
//!         }
//!     }
//! }
//! assert_eq!(whole.len(), 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * **A body** goes in one message if the other side takes messages so long (Max-Message-Size), else in blocks, several of
//!   them in a message where the settings allow it (BERT, RFC 8323 §6): [`ClientRequest::upload`] is not looked at. A request that does not
//!   fit the base values waits for the settings, which come with the other side's first message; later ones that take BERT back
//!   begin an upload anew in blocks of 1024 bytes.
//! * **Requests beyond those that the connection takes**, or with a token that is in use, wait for others to end.
//! * **Observe** (RFC 7641, RFC 8323 §7): the order is the stream's, so sequence numbers are not looked at, and registrations
//!   last. [`CoapStack::cancel`] deregisters, and an observer that is removed is told so.
//! * **Back pressure** is the driver's: while the stream takes no bytes, do not poll, and read nothing. Notifications wait
//!   inside, of each observer the newest; what came is answered before the next is looked at. Any input
//!   may come at any time, bytes once the events before them were taken.
//! * **Nothing is repeated** by a stream, so the last block of a body again, without those before it, is answered with 4.08. Of
//!   a request its kind, its own retransmission and its wish for bursts are not looked at, nor of an answer its kind.

mod answer;
mod block_cache;
mod bursts;
mod client;
mod config;
mod counters;
mod drive;
mod groups;
#[cfg(all(feature = "server", feature = "observe"))]
mod kept;
mod notifying;
mod observers;
mod options;
mod outer;
mod output;
mod owner;
mod pending_request;
mod pieces;
mod queued_event;
mod refusal;
mod representation;
mod request;
mod request_table;
mod server;
mod stack;
mod stream;
mod unanswered;
mod unvalidated;

pub use crate::body::{SharedBody, WeakBody};
pub use answer::{Answer, Gone, ObserverId};
pub use config::{Config, ConfigError, Limits};
pub use counters::Counters;
pub use groups::GroupId;
#[cfg(all(feature = "server", feature = "observe"))]
pub use kept::KeptObserver;
pub use options::Read;
pub use output::{Event, Refused, StackOutput};
pub(crate) use pieces::InPieces;
pub use pieces::TakesPieces;
pub use refusal::Refusal;
pub use request::{ClientRequest, ClientRequestId, Piece, Progress, RequestFailure};
pub use stack::CoapStack;
pub use unvalidated::{
    ALWAYS, AROUND_IPV4, AROUND_IPV6, AddressValidation, ECHO_LENGTH, FACTOR, Limit, NOTIFICATION, Sent, Validation,
};
