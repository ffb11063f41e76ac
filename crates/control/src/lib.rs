//! CoAP congestion controllers as pure state machines.
//!
//! CoAP over UDP has no transport below it to slow it down: the retransmission timer of RFC 7252 §4.2 *is* its
//! congestion control. Each controller here is a small `Copy` value that answers *may this leave now?* and *how
//! long until the next copy?*. It has no clock, no random source, no allocation, no floats and no failure: time and
//! chance are arguments ([`Cx`]).
//!
//! # Words
//!
//! Those of RFC 7252 §4 mean what they mean there: exchange, confirmable, retransmission, ACK_TIMEOUT, NSTART; RTO, SRTT and RTTVAR are
//! RFC 6298's. Beside them:
//!
//! | word | is |
//! |---|---|
//! | wait | how long until the next copy, or until the message is given up; with its [`Reason`] |
//! | copy | a transmission of one message; the first is copy 0. To name a copy is to distinguish it from the others, which its reply repeats |
//! | blind | about a peer of which nothing was measured yet |
//! | dither | what spreads first waits, so that peers do not keep step (ACK_RANDOM_FACTOR) |
//! | to carry | to let a backed-off wait outlive its exchange, as Full Backoff does |
//! | ageing | what silence does to an estimate |
//! | non-confirmable message | one that nobody acknowledges |
//! | to wish | to ask of the message layer, not to order: how copies are named, NSTART |
//!
//! # Layers
//!
//! | layer | what it is |
//! |---|---|
//! | [`Instant`], [`Span`], [`Chance`] | time in microseconds and chance in 32-bit words, both handed in by the caller |
//! | [`Sample`], [`Evidence`] | what an answer says about the path; only the surest kind makes an [`ExactRtt`] |
//! | [`estimator`], [`backoff`], [`blind`], [`dither`], [`ageing`], [`carry`], [`pacing`], [`rate`] | parts: plain data with a rule each |
//! | [`rfc7252`], [`cocoa`], [`fasor`] | algorithms: parts put together behind the calls of [`Controller`] |
//! | [`coap_plus_rate`], [`bbr_con`] | a rate instead of a timer: messages leave when [`rate`] lets them |
//! | [`tfrc_non`] | the same for messages that nobody acknowledges |
//! | [`calm`] | ours: graded evidence, and a backoff that only proven congestion keeps |
//! | [`frame`] with [`linux_rto`], [`peak_hopper`], [`basic_rto`] | timers of TCP, and the frame that brings them to CoAP |
//! | [`Preset`] | published algorithms by name or number, each with its source and the choices made where it is silent |
//! | [`Setting`] | single parameters of a controller, with legal ranges: [`AnyController::set`], [`AnyController::get`] |
//! | [`AnyController`] | one type for all of them, without a type parameter and without a pointer |
//! | [`bulk_pace`] | the pace of bodies in bursts (RFC 9177), from what was delivered and the queue that it made |
//! | [`CalmPath`] | the other side: which copies of a request a server answers once more |
//! | [`layout`] | which bytes of a state are padding, for the C library |
//! | [`Checked`] | watches that caller and controller keep the contract; for debug builds and tests |
//!
//! State has three owners. A controller holds what is known about *one peer*. An [`Exchange`] is the scratch record
//! of one message; code that keeps the message keeps it too. Everything else (ids, tokens, queues, how many copies
//! there may be) is the caller's.
//!
//! # The calls
//!
//! One message, from the first copy to its answer:
//!
#![cfg_attr(feature = "rfc7252", doc = "```")]
#![cfg_attr(not(feature = "rfc7252"), doc = "```ignore")]
//! use millpond_control::{
//!     Admit, ChanceSeed, Checked, Class, Controller, Cx, End, Exchange, Instant, Preset, Purpose, ReplyKind, Sample,
//!     Span,
//! };
//!
//! // The peer, and what stands in for a clock and a random source.
//! let mut controller = Checked::new(Preset::RFC7252.build());
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
//!     // … a retransmission leaves here …
//!     copies += 1;
//!     last = now;
//!     wait = controller.on_timeout(&mut exchange, Cx::new(now, chance(copies.into())));
//! }
//! assert_eq!(copies, 1, "the first wait lies between 2 s and 3 s");
//! assert_eq!(controller.violation(), None);
//! ```
//!
//! # A custom controller
//!
//! [`Controller`] can be implemented outside and used as `dyn Controller`. It tells the exchange record its waits with
//! [`Exchange::begin`] and [`Exchange::advance`], keeps to its own [`shortest_wait`](Controller::shortest_wait) and
//! [`longest_wait`](Controller::longest_wait), and is tried out inside [`Checked`].
//!
//! # Features
//!
//! `rfc7252`, `cocoa`, `fasor`, `linux-rto`, `peak-hopper`, `basic-rto`, `coap-plus-rate`, `bbr-con`, `tfrc-non` and `calm` compile the algorithm of that
//! name in; `all`, the default, compiles every one. `alloc` adds controllers behind a pointer ([`PeerController`]). The types, the trait and the parts are
//! always there.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "alloc", feature = "all")),
    allow(rustdoc::broken_intra_doc_links, reason = "the pages describe the crate with all its features")
)]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod ageing;
pub mod backoff;
pub mod blind;
pub mod bulk_pace;
pub mod carry;
pub mod dither;
pub mod estimator;
pub mod frame;
pub mod layout;
pub mod least_wait;
pub mod pacing;
pub mod rate;

// The algorithms. Their one list is in `any`.
#[cfg(feature = "basic-rto")]
pub mod basic_rto;
#[cfg(feature = "bbr-con")]
pub mod bbr_con;
#[cfg(feature = "calm")]
pub mod calm;
#[cfg(feature = "coap-plus-rate")]
pub mod coap_plus_rate;
#[cfg(feature = "cocoa")]
pub mod cocoa;
#[cfg(feature = "fasor")]
pub mod fasor;
#[cfg(feature = "linux-rto")]
pub mod linux_rto;
#[cfg(feature = "peak-hopper")]
pub mod peak_hopper;
#[cfg(feature = "rfc7252")]
pub mod rfc7252;
#[cfg(feature = "tfrc-non")]
pub mod tfrc_non;

mod any;
mod calm_server;
mod chance;
mod checked;
mod controller;
mod division;
mod evidence;
mod feedback;
#[cfg(feature = "alloc")]
mod own;
mod preset;
mod setting;
mod time;

pub use any::AnyController;
#[cfg(feature = "basic-rto")]
pub use basic_rto::BasicRto;
#[cfg(feature = "bbr-con")]
pub use bbr_con::BbrCon;
pub use bulk_pace::{BulkPace, BulkReport};
#[cfg(feature = "calm")]
pub use calm::Calm;
pub use calm_server::{Again, CalmPath, CalmPeer, Voter};
pub use chance::{Chance, ChanceSeed, Purpose};
pub use checked::{Checked, Violation};
#[cfg(feature = "coap-plus-rate")]
pub use coap_plus_rate::CoapPlusRate;
#[cfg(feature = "cocoa")]
pub use cocoa::Cocoa;
pub use controller::{Admit, Class, Controller, Cx, End, Exchange, Naming, Reason, Then, View, Wait, Wishes};
pub use evidence::{Evidence, ExactRtt, Named, NamedRtt, ReplyKind, Sample};
#[cfg(feature = "fasor")]
pub use fasor::Fasor;
pub use feedback::{Fate, Feedback, PlainMessage};
#[cfg(feature = "linux-rto")]
pub use linux_rto::LinuxRto;
#[cfg(feature = "alloc")]
pub use own::{OwnController, PeerController};
#[cfg(feature = "peak-hopper")]
pub use peak_hopper::PeakHopper;
pub use preset::Preset;
#[cfg(feature = "rfc7252")]
pub use rfc7252::Rfc7252;
pub use setting::{Setting, SettingConflict, SettingError, SettingKind, SettingValue};
#[cfg(feature = "tfrc-non")]
pub use tfrc_non::TfrcNon;
pub use time::{Instant, Span};

/// The first program of the README compiles.
#[cfg(all(doctest, feature = "calm"))]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
