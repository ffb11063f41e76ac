//! A CoAP gateway: what stands between a fleet of devices and those that ask it.
//!
//! It is a user of the client and the server of `millpond-live`: a server whose requests others answer. Equal requests that are open
//! together are asked once, answers are kept as long as they are fresh, one observation serves all observers, and devices behind one
//! link share one path with its congestion controller and a bounded queue.
//!
//! ```no_run
//! use millpond_gateway::{Config, Gateway};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::builder(Config::from_file("gateway.toml".as_ref())?).start().await?;
//! # drop(gateway);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod asked;
mod config;
mod destination;
mod engine;
mod gateway;
mod http;
mod metrics;
mod paths;
mod ports;
mod refusal;
mod streams;
mod target;
mod template;
mod upload;
mod watched;

pub mod directory;

pub use config::Config;
pub use engine::Source;
pub use gateway::{Access, Builder, Gateway};

/// The first program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
