//! CoAP congestion controllers as pure state machines.
//!
//! CoAP over UDP has no transport below it to slow it down: the retransmission timer of RFC 7252 §4.2 *is* its
//! congestion control. Each controller here is a small `Copy` value that answers *may this leave now?* and *how
//! long until the next copy?*. It has no clock, no random source, no allocation, no floats and no failure: time and
//! chance are arguments ([`Cx`]).
//!
//! # Layers
//!
//! | layer | what it is |
//! |---|---|
//! | [`Instant`], [`Span`], [`Chance`] | time in microseconds and chance in 32-bit words, both handed in by the caller |
//! | [`Sample`], [`Evidence`] | what an answer says about the path; only the surest kind makes an [`ExactRtt`] |
//! | [`estimator`], [`backoff`], [`dither`], [`ageing`], [`carry`] | parts: plain data with a rule each |
//! | [`rfc7252`], [`cocoa`] | algorithms: parts put together behind the calls of [`Controller`] |
//! | [`Preset`] | published algorithms by name, each with its source; [`AnyController::set`] changes single parameters |
//! | [`AnyController`] | one type for all of them, without a type parameter and without a pointer |
//! | [`Checked`] | watches that caller and controller keep the contract; for debug builds and tests |
//!
//! State has three owners. A controller holds what is known about *one peer*. An [`Exchange`] is the scratch record
//! of one message; whoever keeps the message keeps it too. Everything else (ids, tokens, queues, how many copies
//! there may be) is the caller's.
//!
//! # The calls
//!
//! One message, from the first copy to its answer:
//!
#![cfg_attr(any(feature = "rfc7252", feature = "cocoa"), doc = "```")]
#![cfg_attr(not(any(feature = "rfc7252", feature = "cocoa")), doc = "```ignore")]
//! use millpond_control::{
//!     Admit, ChanceSeed, Checked, Class, Controller, Cx, End, Exchange, Instant, Preset, Purpose, ReplyKind, Sample,
//!     Span,
//! };
//!
//! # let preset = Preset::ALL.first().copied().ok_or("no algorithm is compiled in")?;
//! // The peer, and what stands in for a clock and a random source.
//! let mut controller = Checked::new(preset.build());
//! let mut now = Instant::ORIGIN;
//! let seed = ChanceSeed::new(1);
//! let chance = |copy| seed.at(Purpose::Dither, [0, 0, 0, copy]);
//! // This path answers 3.5 s after the first copy. Copies: the first and four more, as RFC 7252 allows.
//! let (answer, max_retransmit) = (now.after(Span::from_millis(3_500)), 4);
//!
//! assert_eq!(controller.admit(Class::Confirmable, 40, Cx::new(now, chance(0))), Admit::Now);
//! let mut exchange = Exchange::new();
//! let first = now;
//! let mut last = first;
//! let mut copies = 0;
//! // … the first copy leaves here …
//! let mut wait = controller.on_start(&mut exchange, 40, Cx::new(now, chance(0)));
//! loop {
//!     let deadline = last.after(wait.span);
//!     if answer <= deadline {
//!         now = answer;
//!         let sample = Sample::new(ReplyKind::Piggybacked, now.since(first), now.since(last), copies);
//!         controller.on_reply(&exchange, sample, Cx::new(now, chance(0)));
//!         break;
//!     }
//!     now = deadline;
//!     if copies == max_retransmit {
//!         controller.on_end(&exchange, End::GaveUp, Cx::new(now, chance(0)));
//!         break;
//!     }
//!     // … a further copy leaves here …
//!     copies += 1;
//!     last = now;
//!     wait = controller.on_timeout(&mut exchange, Cx::new(now, chance(copies.into())));
//! }
//! assert_eq!(copies, 1, "the first wait lies between 2 s and 3 s");
//! assert_eq!(controller.violation(), None);
//! # Ok::<(), &str>(())
//! ```
//!
//! # A controller of one's own
//!
//! [`Controller`] can be implemented outside and used as `dyn Controller`. It tells the exchange record its waits with
//! [`Exchange::begin`] and [`Exchange::advance`], keeps to its own [`shortest_wait`](Controller::shortest_wait) and
//! [`longest_wait`](Controller::longest_wait), and is tried out inside [`Checked`].
//!
//! # Features
//!
//! `rfc7252` and `cocoa` compile the algorithm of that name in; both are on by default. The types, the trait and the
//! parts are always there.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "rfc7252", feature = "cocoa")),
    allow(rustdoc::broken_intra_doc_links, reason = "the pages describe the crate with all its features")
)]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod ageing;
pub mod backoff;
pub mod carry;
pub mod dither;
pub mod estimator;

#[cfg(feature = "cocoa")]
pub mod cocoa;
#[cfg(feature = "rfc7252")]
pub mod rfc7252;

#[cfg(any(feature = "cocoa", feature = "rfc7252"))]
mod any;
mod chance;
mod checked;
mod controller;
mod evidence;
#[cfg(all(feature = "alloc", any(feature = "cocoa", feature = "rfc7252")))]
mod own;
#[cfg(any(feature = "cocoa", feature = "rfc7252"))]
mod preset;
#[cfg(any(feature = "cocoa", feature = "rfc7252"))]
mod setting;
mod time;

#[cfg(any(feature = "cocoa", feature = "rfc7252"))]
pub use any::AnyController;
pub use chance::{Chance, ChanceSeed, Purpose};
pub use checked::{Checked, Violation};
#[cfg(feature = "cocoa")]
pub use cocoa::Cocoa;
pub use controller::{Admit, Class, Controller, Cx, End, Exchange, Naming, Reason, Then, View, Wait, Wishes};
pub use evidence::{Evidence, ExactRtt, Named, ReplyKind, Sample};
#[cfg(all(feature = "alloc", any(feature = "cocoa", feature = "rfc7252")))]
pub use own::{OwnController, PeerController};
#[cfg(any(feature = "cocoa", feature = "rfc7252"))]
pub use preset::Preset;
#[cfg(feature = "rfc7252")]
pub use rfc7252::Rfc7252;
#[cfg(any(feature = "cocoa", feature = "rfc7252"))]
pub use setting::{Setting, SettingError, SettingKind, SettingValue};
pub use time::{Instant, Span};
