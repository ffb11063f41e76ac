//! What cannot be: debug builds, and with them all tests, stop where it has happened; a release goes on as the code behind it
//! says.

/// What is there in any case.
pub(crate) trait Sure: Sized {
    /// The same, described as what it is.
    fn sure(self, what: &str) -> Self;
}

impl<T> Sure for Option<T> {
    #[track_caller]
    fn sure(self, what: &str) -> Self {
        debug_assert!(self.is_some(), "there is no {what}");
        self
    }
}
