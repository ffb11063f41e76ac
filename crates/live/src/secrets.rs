//! What must not be guessed, from the operating system.

use millpond_coap::IdGenerator;
use millpond_control::ChanceSeed;

use crate::{Cause, Error};

/// Bytes from the operating system's source of secrets.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        let reason = format!("the operating system gives no random bytes: {error}");
        Error::Socket { reason, source: Cause::of(error) }
    })?;
    Ok(bytes)
}

/// Where message IDs and tokens come from.
pub(crate) fn id_generator() -> Result<IdGenerator, Error> {
    Ok(IdGenerator::secret(bytes()?))
}

/// Where controllers get their chance from.
pub(crate) fn chance() -> Result<ChanceSeed, Error> {
    Ok(ChanceSeed::new(u64::from_le_bytes(bytes()?)))
}
