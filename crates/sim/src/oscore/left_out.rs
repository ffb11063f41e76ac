use millpond_coap::Endpoint;

use crate::{RunError, scenario::Scenario};

/// Nobody has any: scenarios that want some are refused.
pub(crate) struct Contexts;

#[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "where there are some, they can fail")]
impl Contexts {
    pub(crate) const fn of(_: &Scenario, _: &[u32]) -> Result<Self, RunError> {
        Ok(Self)
    }

    pub(crate) fn protect_server(&self, endpoint: Endpoint<u32>) -> Endpoint<u32> {
        endpoint
    }

    pub(crate) fn protect(&self, _: u32, endpoint: Endpoint<u32>) -> Result<Endpoint<u32>, RunError> {
        Ok(endpoint)
    }
}
