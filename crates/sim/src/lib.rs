//! The laboratory: real endpoints and controllers in virtual time.
//!
//! A [`Scenario`] says what is simulated, [`run`] turns it and a seed into an [`Outcome`]: rows of plain numbers. Clients
//! and server hold the same [`Endpoint`](millpond_coap::Endpoint)s that run live, in a [`CoapStack`](millpond_coap::transfer::CoapStack)
//! where bodies come in blocks, or over TCP. They exchange real bytes, and the links between them are the links of the emulator.
//! This crate reads no clock and no file, and knows of no paper.
//!
//! ```
//! use millpond_sim::{Options, Scenario, run};
//!
//! let scenario = Scenario::from_toml(
//!     r#"
//!     [path.uplink]
//!     rate = "60 kbit/s"
//!     delay = "215 ms"
//!     queue = "2500 B"
//!     [path.downlink]
//!     rate = "30 kbit/s"
//!     delay = "415 ms"
//!     queue = "2500 B"
//!     [[clients]]
//!     count = 1
//!     controller = "rfc7252"
//!     "#,
//!     "example",
//! )?;
//! let outcome = run(&scenario, 1, &Options::default(), || false)?;
//! // Fifty exchanges of 660.13 ms.
//! assert_eq!(outcome.flows[0].fct_us.map(|us| us / 1_000), Some(33_006));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | group, flow | clients that are alike, as a scenario writes them; one client, or what the server sends to one by itself |
//! | request, exchange, copy | what an application wants; a message that asks for all or a block of it; a transmission of that message |
//! | application, workload, arrival | what asks, when it does; a request arrives, may wait, is made, and ends |
//! | client profile | how all clients of a group behave |
//! | ledger, tag | what became of every copy; what the laboratory knows of a packet and nobody in the run can see |
//! | random numbers | chance, addressed by client and request, so that what happens to one does not depend on others |
//! | relay, proxy | who hands packets on; who takes requests and asks for them, as a client would |
//! | event calendar | everybody's wake-ups |
//! | site, away | a world of its own in a fleet; a link that sites share is away from each of them |

#![forbid(unsafe_code)]

mod application;
mod bodies;
mod calendar;
mod calls;
pub mod capture;
mod datagrams;
mod device;
mod evidence;
mod handshakes;
mod ledger;
mod naming;
mod network;
mod oscore;
mod outcome;
mod population;
mod proxy;
mod recording;
mod restarts;
mod server;
mod sight;
mod sites;
mod stream_end;
mod streams;
mod trace;
mod workload;
mod world;

pub mod scenario;
pub mod tables;
pub mod tcp;

pub use network::LinkName;
pub use outcome::{
    AccessRow, ArrivalRow, CrossRow, DelayRow, EvidenceRow, ExchangeRow, FlowRow, FrameEvent, HistogramRow, LinkRow,
    NodeRow, Outcome, PacketEvent, ProxyRow, QueueSample, RelayRow, ReportedRow, RplRow, SentSample, ShareSample,
    Summary, TcpCounts, TcpSample, TimerSample, WifiRow,
};
pub use scenario::{Controllers, Scenario, ScenarioError};
pub use sites::{Site, run_sites};
pub use trace::{Options, TraceKind};

/// A link has collapsed when more than this share of the bytes that it carries completes no exchange: on average more than two
/// needless retransmissions of every message. Two is also where the studied controllers lose sight: CoCoA takes no round-trip
/// sample from an exchange with more than two retransmissions, so beyond it nothing brings a sender back.
pub const COLLAPSE: f64 = 2.0 / 3.0;

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was told to stop.
    #[error("cancelled")]
    Cancelled,
    /// The scenario's link cannot be built.
    #[error("{0}: {1}")]
    Link(String, String),
    /// An endpoint of the scenario cannot be built or refused its application.
    #[error("{0}: {1}")]
    Endpoint(&'static str, String),
    /// A controller of the user's own is missing or cannot go on.
    #[error("{0}")]
    Controller(String),
    /// A client's request was refused.
    #[error("client {0}: {1}")]
    Refused(u32, String),
    /// What came into a link, or into the network, is not what left it and what is inside: a fault of the laboratory, not of the scenario.
    #[error("{0}: packets were lost from the books: {1}")]
    Conservation(String, String),
}

/// Runs a scenario. `is_cancelled` is asked every few thousand steps.
///
/// The result depends on the scenario, the seed and the options alone.
///
/// # Errors
/// [`RunError::Cancelled`] when told to stop; the others name what could not be built or broke its own books.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    is_cancelled: impl FnMut() -> bool,
) -> Result<Outcome, RunError> {
    run_with(scenario, seed, options, &scenario::BuiltIn, is_cancelled)
}

/// The same with controllers of the user's own, which `own` gives to the groups that name them.
///
/// # Errors
/// Those of [`run`], and [`RunError::Controller`] if one is missing or failed.
pub fn run_with(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    own: &dyn Controllers,
    mut is_cancelled: impl FnMut() -> bool,
) -> Result<Outcome, RunError> {
    let groups = scenario.flow_groups();
    let mut world = world::World::new(scenario, &groups, seed, options, own)?;
    let end = world.run(|| is_cancelled() || own.failure().is_some());
    if let Some(why) = own.failure() {
        return Err(RunError::Controller(why));
    }
    world.finish(end?)
}

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
