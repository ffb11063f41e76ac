//! From a capture of CoAP to the cause: which retransmissions were spurious, what the path is like, what its devices do.
//!
//! [`diagnose`] reads captures as a stream and keeps a bounded part of them. What it says of a retransmission has a
//! confidence, what it says of the path a grade: a figure that cannot be seen from the place of the capture is not guessed.
//!
//! ```
//! use millpond_diagnose::{Options, diagnose};
//!
//! let capture: &[u8] = b"no capture";
//! let refused = diagnose([capture], &Options::default(), &mut |_| {});
//! assert!(refused.unwrap_err().to_string().starts_with("neither pcap nor pcapng"));
//! ```
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | frame, datagram, message | what was captured of a packet, the UDP within, the CoAP within |
//! | exchange | a request with all its transmissions and answers |
//! | side | where packets were captured: at the server, at the devices, or both |
//! | loop | from an answer at the server to the request that follows from it there |
//! | chapter | as much of a capture as is judged together |
//! | figure | a value, its grade, and why |

#![forbid(unsafe_code)]

mod acceptance;
mod anonymise;
mod arrivals;
mod both_sides;
mod confidence;
mod device_side;
mod diagnosis;
mod doubts;
mod exchanges;
mod figure;
mod findings;
mod habits;
mod health;
mod judgement;
mod ordered;
mod path;
mod peers;
mod presets;
mod reading;
mod rhythm;
mod server_side;
mod sessions;
mod stops;
mod summary;
mod timers;
mod vantage;
mod windows;
mod words;

pub use anonymise::{Anonymised, anonymise};
pub use diagnosis::{DiagnoseError, Options, Row, diagnose};
pub use figure::{Figure, Grade};
pub use habits::Alignment;
pub use health::Health;
pub use judgement::{Judged, Verdict};
pub use presets::{Fitting, Presets};
pub use reading::{Census, Ending, ReadError};
pub use summary::{Device, Diagnosis, LinkOf, PathOf, Retransmissions, Sizes, Span, TimersOf};
pub use vantage::Side;
pub use words::counted;

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
