//! Controllers as Python objects: built-in ones to be driven from Python, and Python's own to be driven by a run.

mod built;
mod class;
mod failure;
mod feedback;
mod numbers;
mod own;
mod running;
mod values;

pub(crate) use built::{Controller, presets};
pub(crate) use class::OwnClasses;
pub(crate) use feedback::Feedback;
pub(crate) use running::{Running, interrupt, stop_all};
pub(crate) use values::{Cx, Exchange, Sample, View, Wait, Wishes};
