//! What cannot be. Debug builds, and with them all tests and fuzzers, stop where it has happened; a release goes on as the
//! code behind it says, because a service should rather run on than not.

/// What cannot be has happened.
macro_rules! broken {
    ($($words:tt)+) => {
        debug_assert!(false, $($words)+)
    };
}

/// What is there in any case.
pub(crate) trait Sure: Sized {
    /// The same, described as what it is.
    fn sure(self, what: &str) -> Self;
}

impl<T> Sure for Option<T> {
    #[inline]
    #[track_caller]
    fn sure(self, what: &str) -> Self {
        debug_assert!(self.is_some(), "there is no {what}");
        self
    }
}

impl<T, E> Sure for Result<T, E> {
    #[inline]
    #[track_caller]
    fn sure(self, what: &str) -> Self {
        debug_assert!(self.is_ok(), "there is no {what}");
        self
    }
}
