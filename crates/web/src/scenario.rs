//! Scenarios in and out of a page.

use millpond_control::Preset;
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

/// A validated scenario.
#[wasm_bindgen]
#[derive(Clone, Debug)]
pub struct Scenario(pub(crate) millpond_sim::Scenario);

#[wasm_bindgen]
impl Scenario {
    /// Reads a scenario from TOML; `origin` names it in errors, as a rule the file's name.
    ///
    /// # Errors
    /// One line with the place and the fix.
    #[wasm_bindgen(js_name = fromToml)]
    pub fn from_toml(text: &str, origin: &str) -> Result<Self, String> {
        millpond_sim::Scenario::from_toml(text, origin).map(Self).map_err(|error| error.to_string())
    }

    /// Reads a scenario from JSON, as [`to_json`](Self::to_json) writes it.
    ///
    /// # Errors
    /// One line with the place and the fix.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &str, origin: &str) -> Result<Self, String> {
        millpond_sim::Scenario::from_json(text, origin).map(Self).map_err(|error| error.to_string())
    }

    /// The whole scenario with every default filled in; equal scenarios give equal text.
    #[wasm_bindgen(js_name = toJson)]
    #[must_use]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The same as a file for `millpond run`.
    ///
    /// # Errors
    /// Where a value has no place in TOML.
    #[wasm_bindgen(js_name = toToml)]
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(&self.0).map_err(|error| error.to_string())
    }

    /// Clients of all groups together.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn clients(&self) -> f64 {
        self.0.client_count() as f64
    }
}

/// Every controller that a scenario can name, as JSON: `name`, `summary`, `source`.
#[wasm_bindgen]
#[must_use]
pub fn controllers() -> String {
    let told =
        |preset: Preset| json!({ "name": preset.name(), "summary": preset.summary(), "source": preset.source() });
    serde_json::Value::from_iter(Preset::all().map(told)).to_string()
}

/// Every path that a scenario can name, as JSON: `name`, `title`.
#[wasm_bindgen]
#[must_use]
pub fn profiles() -> String {
    let told = |profile: millpond_path::Profile| json!({ "name": profile.name, "title": profile.title });
    serde_json::Value::from_iter(millpond_path::profiles().into_iter().map(told)).to_string()
}
