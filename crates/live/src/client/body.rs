//! A body that is read while it comes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, DuplexStream, ReadBuf},
    sync::oneshot,
    task::AbortHandle,
};

use crate::{Error, Response};

/// Bytes that came and are not read.
const UNREAD: usize = 16 << 10;

/// What comes of a body. Nothing more is asked for when it is dropped.
pub(super) struct RestOfBody {
    reader: DuplexStream,
    /// How it ended; none once that was told.
    ended: Option<oneshot::Receiver<Result<(), Error>>>,
    task: AbortHandle,
}

impl RestOfBody {
    /// What this writes, as fast as it is read.
    pub(super) fn new<F>(take: impl FnOnce(DuplexStream) -> F) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let (writer, reader) = tokio::io::duplex(UNREAD);
        let (told, ended) = oneshot::channel();
        let taking = take(writer);
        let task = tokio::spawn(async move {
            // Who reads no more needs not know.
            let _ = told.send(taking.await);
        });
        Self { reader, ended: Some(ended), task: task.abort_handle() }
    }

    /// The answer with it: as its payload if it is not longer than this.
    pub(super) async fn behind(mut self, answer: Response, whole: usize) -> Result<Response, Error> {
        let mut begun = Vec::new();
        let failed = |error: io::Error| match error.downcast::<Error>() {
            Ok(error) => error,
            Err(_) => Error::Closed,
        };
        while begun.len() <= whole {
            if self.read_buf(&mut begun).await.map_err(failed)? == 0 {
                return Ok(answer.with_payload(begun));
            }
        }
        Ok(answer.with_stream(io::Cursor::new(begun).chain(self)))
    }
}

impl AsyncRead for RestOfBody {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let body = self.get_mut();
        let before = room.filled().len();
        ready!(Pin::new(&mut body.reader).poll_read(cx, room))?;
        if room.filled().len() > before || room.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // Its end, or the end of who wrote it.
        let Some(ended) = &mut body.ended else { return Poll::Ready(Ok(())) };
        let ended = ready!(Pin::new(ended).poll(cx));
        body.ended = None;
        Poll::Ready(ended.unwrap_or(Err(Error::Closed)).map_err(io::Error::other))
    }
}

impl Drop for RestOfBody {
    fn drop(&mut self) {
        self.task.abort();
    }
}
