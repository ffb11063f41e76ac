use alloc::vec::Vec;
use core::ops::Range;

use super::frame::{Frame, FrameError, FrameFault, Header};

/// Cuts a stream into frames, however the network cut it into pieces.
///
/// Holds at most one frame of the allowed size and what came in behind it with the last piece. A frame that announces
/// too much is refused before any of it is kept.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// Bytes of the buffer that were handed out.
    taken: usize,
    limit: u32,
    /// Tokens may have more than 8 bytes.
    extended: bool,
    broken: Option<FrameError>,
}

/// A buffer larger than this is given back once it is empty.
const KEPT: usize = 4_096;

impl FrameReader {
    /// A reader of frames of at most `limit` bytes each.
    #[must_use]
    pub const fn new(limit: u32) -> Self {
        Self { buffer: Vec::new(), taken: 0, limit, extended: false, broken: None }
    }

    /// The same, and their tokens may have more than 8 bytes (RFC 8974).
    #[must_use]
    pub fn extended(self) -> Self {
        Self { extended: true, ..self }
    }

    /// Bytes came in.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; `None` until more came in.
    ///
    /// # Errors
    /// What is not a frame. The stream is out of step then: every later call gives the same error.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let place = self.advance()?;
        Ok(place.and_then(|place| self.frame(place)))
    }

    /// Steps over the next whole frame and says where it is, until more comes in.
    pub(super) fn advance(&mut self) -> Result<Option<Range<usize>>, FrameError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let next = self.next_length().map_err(|fault| FrameError { at: 0, fault });
        let whole = next.and_then(|length| {
            let Some(length) = length else { return Ok(None) };
            let place = self.taken..self.taken.saturating_add(length);
            Frame::read(self.buffer.get(place.clone()).unwrap_or_default(), self.extended).map(|_| Some(place))
        });
        match &whole {
            Ok(Some(place)) => self.taken = place.end,
            Ok(None) => {}
            Err(error) => self.broken = Some(*error),
        }
        whole
    }

    /// The frame at a place that [`advance`](Self::advance) gave, until more comes in.
    pub(super) fn frame(&self, place: Range<usize>) -> Option<Frame<'_>> {
        Frame::read(self.buffer.get(place)?, self.extended).ok()
    }

    /// Bytes of the next frame, if it is whole.
    fn next_length(&self) -> Result<Option<usize>, FrameFault> {
        let waiting = self.buffer.get(self.taken..).unwrap_or_default();
        let Some(header) = Header::read(waiting, self.extended)? else { return Ok(None) };
        if header.total > u64::from(self.limit) {
            return Err(FrameFault::OverLimit { announced: header.total, limit: self.limit });
        }
        let total = usize::try_from(header.total).unwrap_or(usize::MAX);
        Ok((total <= waiting.len()).then_some(total))
    }

    /// Forgets what it holds; nothing will come any more.
    pub(super) fn clear(&mut self) {
        self.buffer = Vec::new();
        self.taken = 0;
    }

    /// Bytes of memory held.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.buffer.capacity()
    }
}
