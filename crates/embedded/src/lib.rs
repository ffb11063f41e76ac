#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
#[cfg(feature = "embassy-net")]
mod embassy;
mod error;
mod node;
mod observation;
mod observers;
#[cfg(feature = "oscore")]
mod protection;
mod request;
mod resource;
mod setup;
mod transfer;

pub use clock::Clock;
#[cfg(feature = "embassy-time")]
pub use clock::EmbassyClock;
#[cfg(feature = "embassy-net")]
pub use embassy::EmbassyUdp;
/// What a node's socket is.
pub use embedded_nal_async::UnconnectedUdp;
pub use error::{Error, SetupError};
/// The messages, and the message layer.
pub use millpond_coap as coap;
/// The controllers.
pub use millpond_control as control;
pub use node::Node;
pub use observation::Observation;
pub use request::{Request, Response};
pub use resource::{Asked, Reply, Resource};
pub use setup::Setup;
