//! The program against itself, over the loopback interface.

#![forbid(unsafe_code)]

mod bodies;
#[cfg(unix)]
mod captures;
mod failures;
mod files;
mod gateways;
mod in_c;
mod loads;
mod logs;
mod methods;
mod observations;
mod operations;
mod program;
mod protected;
mod relays;
#[cfg(target_os = "linux")]
mod restarts;
mod rights;
mod secure;
#[cfg(target_os = "linux")]
mod supervised;
mod unusual;
