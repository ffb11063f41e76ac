//! A CoAP gateway: what stands between a fleet of devices and those that ask it.
#![forbid(unsafe_code)]

pub mod directory;
