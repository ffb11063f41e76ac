//! What came in, with all that it holds.

use alloc::vec::Vec;

use super::{
    super::{Event as Told, Frame as Borrowed, Lost, RequestId, ResponseId},
    Event,
};
use crate::{
    block::{BadBlock, Block},
    message::{Code, Uint, is_for_responses, number},
};

/// A request or response.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) code: Code,
    /// The critical option because of which it must not be processed (RFC 7252 §5.4.1).
    pub(super) refused: Option<u16>,
    options: Vec<(u16, Vec<u8>)>,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    fn of(frame: &Borrowed<'_>) -> Self {
        // What else is critical in a request is for the application to know.
        let is_known = |number| {
            let is_burst = matches!(number, number::Q_BLOCK1 | number::Q_BLOCK2);
            !is_burst && (frame.code.is_request() || is_for_responses(number))
        };
        let refused = frame.options().refused(is_known);
        let options = frame.options().legal().map(|option| (option.number, option.value.to_vec())).collect();
        Self { code: frame.code, refused, options, payload: frame.payload().to_vec() }
    }

    pub(super) fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.options.iter().map(|(number, value)| (*number, value.as_slice()))
    }

    pub(super) fn option(&self, number: u16) -> Option<&[u8]> {
        self.options().find(|(other, _)| *other == number).map(|(_, value)| value)
    }

    pub(super) fn uint(&self, number: u16) -> Option<u32> {
        self.option(number).and_then(Uint::read)
    }

    /// A block option; `bert`: several blocks in a message are allowed.
    pub(super) fn block(&self, number: u16, bert: bool) -> Result<Option<Block>, BadBlock> {
        self.option(number).map(|value| Block::read(value, bert)).transpose()
    }
}

/// What the connection told.
#[derive(Debug)]
pub(super) enum Came {
    Request(RequestId, Frame),
    Response(ResponseId, Frame, bool),
    Failed(ResponseId, Lost),
    Unobserved(RequestId),
    Event(Event),
    Nothing,
}

impl Came {
    pub(super) fn of(event: &Told<'_>) -> Self {
        match *event {
            Told::Request { id, ref frame } => Self::Request(id, Frame::of(frame)),
            Told::Response { id, ref frame, last } => Self::Response(id, Frame::of(frame), last),
            Told::Failed { id, why } => Self::Failed(id, why),
            Told::Unobserved { id } => Self::Unobserved(id),
            Told::Settings(settings) => Self::Event(Event::Settings(settings)),
            Told::Pong { custody } => Self::Event(Event::Pong { custody }),
            Told::PongMissing => Self::Event(Event::PongMissing),
            Told::Released { alternative, hold_off } => {
                Self::Event(Event::Released { alternative: alternative.map(<[u8]>::to_vec), hold_off })
            }
            Told::Unasked { .. } => Self::Nothing,
        }
    }
}
