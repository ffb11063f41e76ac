//! Messages of RFC 7252 §3 as bytes.
//!
//! [`Message::parse`] checks a whole datagram once and borrows from it; everything read afterwards (options, payload)
//! is infallible. [`Writer`] appends one message to a buffer of the caller's. Neither allocates in its steady state,
//! neither panics, whatever the bytes.
//!
//! Reading is strict: what the RFC calls a message format error is an error here, with its place and with what the
//! endpoint needs to answer it ([`ParseError`]). What parses can be written again and yields the same bytes, because
//! the encoding of options leaves no choice: 13 and 14 as a nibble only ever mean values that fit no shorter form.
//!
//! ```
//! use millpond_coap::message::{Code, Kind, Message, MessageId, Token, Writer, number};
//!
//! let mut bytes = Vec::new();
//! let mut writer = Writer::start(&mut bytes, Kind::Confirmable, Code::GET, MessageId(0x7d34), Token::EMPTY);
//! writer.option(number::URI_PATH, b"hello")?;
//! assert_eq!(writer.finish()?, 10);
//!
//! let message = Message::parse(&bytes)?;
//! assert_eq!(message.code, Code::GET);
//! assert!(message.uri_path().eq([b"hello"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod code;
mod edit;
mod extended;
mod fault;
mod id;
mod kind;
mod no_response;
mod option_list;
mod options;
mod parse;
mod properties;
mod token;
mod uint;
mod write;

/// Option numbers of the IANA registry, by their names ([`number::URI_PATH`] is 11).
pub use coap_numbers::option as number;

pub use code::Code;
pub use extended::LONGEST_TOKEN;
pub use fault::{Fault, ParseError};
pub use id::MessageId;
pub use kind::Kind;
pub use no_response::NoResponse;
pub use options::{Opt, Options};
pub use parse::{HEADER, Message, copies_share};
pub use properties::{Legal, Properties, is_cache_key, is_critical, is_of_transfer, is_unsafe_to_forward};
pub use token::Token;
pub use uint::Uint;
pub use write::{MAX_DATAGRAM, WriteError, Writer};

pub(crate) use edit::{insert_option, replace_value};
pub(crate) use extended::{TokenLength, behind_token, put_token, split_token};
pub(crate) use option_list::{OptionList, sort};
pub(crate) use options::MARKER;
pub(crate) use parse::{Shape, split_body};
pub(crate) use properties::{is_callers, is_for_responses};
pub(crate) use write::OptionHeader;
