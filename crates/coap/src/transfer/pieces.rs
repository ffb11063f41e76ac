use alloc::boxed::Box;
use core::fmt;

use crate::message::Message;

/// Says of a request whether the application takes its body block by block.
pub type TakesPieces = Box<dyn Fn(&Message<'_>) -> bool + Send + Sync>;

/// Requests whose blocks go to the application as they come. A peer that is asked by them has to put them together, and
/// answers each with an [`Answer`](super::Answer) that [is a piece](super::Answer::is_piece).
#[derive(Default)]
pub(crate) struct InPieces(pub(crate) Option<TakesPieces>);

impl InPieces {
    pub(crate) fn has(&self, message: &Message<'_>) -> bool {
        self.0.as_ref().is_some_and(|is_meant| is_meant(message))
    }
}

impl fmt::Debug for InPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InPieces").field(&self.0.is_some()).finish()
    }
}
