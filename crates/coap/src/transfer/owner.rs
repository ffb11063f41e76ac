//! Whose a message is.

/// Whose a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of the request in this slot.
    Request(u32),
    /// That of the observer in this slot.
    Observer(u32),
}
