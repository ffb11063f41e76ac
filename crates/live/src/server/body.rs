//! Bodies of requests as handlers read them.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::mpsc,
};

/// The body of a request, as [`Request::body`](super::Request::body) gives it: chunk by chunk, or as an [`AsyncRead`].
///
/// Of a resource that [streams](super::Resource::streaming) a chunk is what came in one message, and the client sends the next
/// one when this one was taken: so a peer that reads slowly slows it down, and two chunks are in memory at most. Of other resources
/// the whole body is one chunk.
pub struct RequestBody {
    chunks: Option<mpsc::Receiver<Chunk>>,
    /// Reports that a chunk was taken.
    taken: Option<Box<dyn Fn() + Send + Sync>>,
    /// What was taken and not read.
    rest: Bytes,
    received: usize,
    total: Option<usize>,
}

/// What came in one message.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) bytes: Bytes,
    pub(super) is_last: bool,
}

impl RequestBody {
    /// One that is there already.
    pub(super) fn whole(bytes: Bytes) -> Self {
        let total = Some(bytes.len());
        Self { chunks: None, taken: None, received: bytes.len(), rest: bytes, total }
    }

    /// One that comes through a channel. `taken` is called for each chunk that is taken.
    pub(super) fn coming(
        chunks: mpsc::Receiver<Chunk>,
        total: Option<usize>,
        taken: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { chunks: Some(chunks), taken: Some(Box::new(taken)), rest: Bytes::new(), received: 0, total }
    }

    /// The next chunk; `None` when the body is whole.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the rest does not come: the client began anew, or another request
    /// took its place. Nobody waits for the answer then. Who is silent for longer than
    /// [`handling_time`](super::ServerBuilder::handling_time) ends the handler itself.
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Bytes that have come so far.
    #[must_use]
    pub const fn received(&self) -> usize {
        self.received
    }

    /// Bytes of the whole body, if it came in one message or the client said so (Size1).
    #[must_use]
    pub const fn total(&self) -> Option<usize> {
        self.total
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        loop {
            if !self.rest.is_empty() {
                return Poll::Ready(Ok(Some(std::mem::take(&mut self.rest))));
            }
            let Some(chunks) = &mut self.chunks else { return Poll::Ready(Ok(None)) };
            let Some(Chunk { bytes, is_last }) = ready!(chunks.poll_recv(cx)) else {
                let lost = io::Error::new(io::ErrorKind::UnexpectedEof, "the rest of the request's body did not come");
                return Poll::Ready(Err(lost));
            };
            if let Some(taken) = &self.taken {
                taken();
            }
            self.received += bytes.len();
            self.rest = bytes;
            if is_last {
                self.chunks = None;
            }
        }
    }
}

impl AsyncRead for RequestBody {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let body = self.get_mut();
        if let Some(mut chunk) = ready!(body.poll_chunk(cx))? {
            let length = chunk.len().min(room.remaining());
            room.put_slice(chunk.get(..length).unwrap_or_default());
            chunk.advance(length);
            body.rest = chunk;
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("received", &self.received).field("total", &self.total).finish()
    }
}
