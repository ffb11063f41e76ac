use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use crate::message::{Code, Opt, number};

/// Says of a request, by its method and the segments of its path, whether the application takes its body block by block.
pub type TakesPieces = Box<dyn Fn(Code, &[&[u8]]) -> bool + Send + Sync>;

/// Requests whose blocks go to the application as they come. A peer that is asked by them has to put them together, and
/// answers each with an [`Answer`](super::Answer) that [is a piece](super::Answer::is_piece).
#[derive(Default)]
pub(crate) struct InPieces(pub(crate) Option<TakesPieces>);

impl InPieces {
    /// Whether a request with these options is one.
    pub(crate) fn has<'o>(&self, code: Code, options: impl Iterator<Item = Opt<'o>>) -> bool {
        let Some(is_meant) = &self.0 else { return false };
        let path: Vec<&[u8]> =
            options.filter(|option| option.number == number::URI_PATH).map(|option| option.value).collect();
        is_meant(code, &path)
    }
}

impl fmt::Debug for InPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InPieces").field(&self.0.is_some()).finish()
    }
}
