//! The names of links.

use std::{fmt, ops::Deref, sync::Arc};

/// The name of a link as the scenario gives it, shared by all rows that report the link.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkName(Arc<str>);

impl LinkName {
    /// What the link's random stream is addressed by. It follows from the name alone, so that a further link changes the random stream of no
    /// other. Those of a plain path have the first two numbers.
    pub(crate) fn number(&self) -> u32 {
        match &*self.0 {
            "uplink" => 0,
            "downlink" => 1,
            // FNV-1a (draft-eastlake-fnv).
            name => {
                name.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
            }
        }
    }
}

impl From<&str> for LinkName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl Deref for LinkName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl PartialEq<str> for LinkName {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for LinkName {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}
