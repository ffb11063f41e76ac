//! Estimators of the path: rates from spacing, queues by replay, the time of the loop, losses.

pub(crate) mod far_rate;
pub(crate) mod loop_time;
pub(crate) mod losses;
pub(crate) mod mode;
pub(crate) mod near_rate;
pub(crate) mod queue;
pub(crate) mod stopping;
