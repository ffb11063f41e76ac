//! The laboratory for a browser: the same scenarios, the same runs, the same tables.
//!
//! A scenario comes in as text, [`run`] computes it whole, and what comes back is kept here and handed out as packed arrays: what a
//! page draws while time is moved to and fro. Nothing here knows what a page looks like.
//!
//! # Words
//!
//! | word | is |
//! |---|---|
//! | recording | one run: its tables, and what a page draws |
//! | frame | one link at a moment, or in the step that begins there |

mod frames;
mod packets;
mod recording;
mod scenario;
mod text;

pub use recording::{Recording, run};
pub use scenario::{Scenario, controllers, profiles};

/// Of what a link carries, the share of no use above which it has collapsed.
#[wasm_bindgen::prelude::wasm_bindgen]
#[must_use]
pub fn collapse() -> f64 {
    millpond_sim::COLLAPSE
}

/// The version of the engine, which is that of the package.
#[wasm_bindgen::prelude::wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
