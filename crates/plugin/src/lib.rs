//! A congestion controller of a crate outside of this tree, run by the laboratory.
//!
//! The crate is a Python module. Its class has a method `__millpond__`, which returns a capsule named [`CAPSULE`] around
//! [`Plugin::of`] the controller; the laboratory makes a [`Guest`] of it for every peer. Between the two are three functions
//! of the C ABI and records of fixed layout: module and laboratory may come from different compilers, and Python is not
//! asked while a run goes on. [`VERSION`] is raised when anything of that changes.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | plugin | what a module hands over: a controller that serves as a pattern, and its functions |
//! | guest | a controller of a plugin as the laboratory calls it |
//! | question, answer | one call of the trait `Controller`, in records of fixed layout |

mod guest;
mod plugin;
mod records;

pub use guest::{Guest, Refused, Tell};
pub use plugin::{CAPSULE, Plugin, VERSION};
