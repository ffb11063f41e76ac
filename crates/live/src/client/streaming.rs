//! Bodies that are never whole in memory: each block is a request of its own, and the next one waits until this one was
//! written, or the one after it read (RFC 7959 goes in step in any case).

use bytes::Bytes;
use millpond_coap::block::{Block, BlockSize};
use millpond_coap::message::{Code, number};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    RequestBuilder, block_size,
    deadline::within,
    peer::Peers,
    progress::{OnProgress, Progress},
};
use crate::{Error, Response, Why, transfer::Piece};

impl RequestBuilder {
    /// Sends it and writes the body of the answer as it comes, block by block: of an image of any length one block is in
    /// memory. What is returned has code and options of the first block, and no body unless it is an error, of which nothing is
    /// written. [`progress`](Self::progress) is told after each block; [`longest_body`](super::ClientBuilder::longest_body) does
    /// not matter. The deadline is that of all together; an end without all of the body is an error, and what was written
    /// stays.
    ///
    /// For UDP and DTLS: over TCP the answer may come in one message, and is got by [`send`](Self::send).
    ///
    /// # Errors
    /// Those of [`send`](Self::send); [`Error::Transfer`] if the representation changed on the way;
    /// [`Error::Refused`] with what the writer said.
    pub async fn download(mut self, writer: &mut (impl AsyncWrite + Unpin + Send)) -> Result<Response, Error> {
        self.check_datagrams()?;
        let (wished, hook) = (self.wished()?, self.progress.clone());
        within(self.deadline, async move {
            let mut peers = Peers::of(&self).await?;
            let mut first: Option<Response> = None;
            let mut progress = Progress::default();
            let mut block = Block { number: 0, more: false, size: wished };
            loop {
                let piece = Piece { block1: None, block2: Some(block), tag: None };
                let answer = self.answer(&mut peers, Some(piece)).await?;
                if !answer.is_success() {
                    return match first {
                        None => Ok(answer),
                        Some(_) => Err(lost(&answer, format!("it goes on with {}", answer.code()))),
                    };
                }
                let came =
                    block_of(&answer, number::BLOCK2)?.unwrap_or(Block { number: 0, more: false, size: block.size });
                let offset = usize::try_from(came.offset()).unwrap_or(usize::MAX);
                let length = answer.payload().len();
                let is_whole = !came.more || length == came.size.bytes() as usize;
                if offset != progress.received || !is_whole {
                    return Err(lost(&answer, format!("{length} bytes came for those from {} on", progress.received)));
                }
                if first.as_ref().is_some_and(|first| !is_of_one(first, &answer)) {
                    return Err(lost(&answer, "it changed on the way; ask again"));
                }
                writer.write_all(answer.payload()).await.map_err(|error| unwritten(&error))?;
                progress.received += length;
                let total = answer.options().uint(number::SIZE2).and_then(|total| usize::try_from(total).ok());
                progress.total = total.or(progress.total);
                tell(hook.as_ref(), &progress);
                let first = &*first.get_or_insert_with(|| answer.with_payload(Bytes::new()));
                if !came.more {
                    writer.flush().await.map_err(|error| unwritten(&error))?;
                    return Ok(first.clone());
                }
                block = after(progress.received, came.size)?;
            }
        })
        .await
    }

    /// Sends what the reader gives as its payload, block by block, until its end: of an image of any length two blocks are in
    /// memory. [`progress`](Self::progress) is told after each block. The deadline is that of all together. What a server that
    /// puts bodies together takes in all is its own limit (4.13).
    ///
    /// For UDP and DTLS: over TCP a body of any length may be one message, and is sent by [`send`](Self::send).
    ///
    /// # Errors
    /// Those of [`send`](Self::send); [`Error::Refused`] with what the reader said, or if a [`payload`](Self::payload) was given,
    /// too.
    pub async fn upload(mut self, reader: &mut (impl AsyncRead + Unpin + Send)) -> Result<Response, Error> {
        self.check_datagrams()?;
        if self.payload.as_ref().is_ok_and(|payload| !payload.is_empty()) {
            return Err(Error::Refused { reason: "a payload is given, and a reader of another; leave one out".into() });
        }
        let (mut size, hook) = (self.wished()?, self.progress.take());
        let tag = u32::try_from(self.client.number() & 0xffff_ffff).ok();
        within(self.deadline, async move {
            let mut peers = Peers::of(&self).await?;
            let mut progress = Progress::default();
            let (mut held, mut is_end) = (Vec::new(), false);
            loop {
                // One byte more than a block tells whether another one follows.
                let wanted = size.bytes() as usize + 1;
                while held.len() < wanted && !is_end {
                    let mut room = (&mut *reader).take((wanted - held.len()) as u64);
                    is_end = room.read_to_end(&mut held).await.map_err(|error| unread(&error))? == 0;
                }
                let length = held.len().min(size.bytes() as usize);
                let more = held.len() > length;
                let block = Block { more, ..after(progress.sent, size)? };
                self.payload = Ok(Bytes::copy_from_slice(held.get(..length).unwrap_or_default()));
                let piece = Piece { block1: Some(block), block2: None, tag };
                let answer = self.answer(&mut peers, Some(piece)).await?;
                let told = block_of(&answer, number::BLOCK1)?.map(|block| block.size);
                if answer.code() == Code::REQUEST_ENTITY_TOO_LARGE
                    && progress.sent == 0
                    && let Some(smaller) = told.filter(|told| told.bytes() < size.bytes())
                {
                    // Smaller blocks are wanted from the first one on (RFC 7959 §2.9.3).
                    size = smaller;
                    continue;
                }
                if !answer.is_success() {
                    return Ok(answer);
                }
                held.drain(..length);
                progress.sent += length;
                tell(hook.as_ref(), &progress);
                if !more {
                    return Ok(answer);
                }
                size = told.filter(|told| told.bytes() < size.bytes()).unwrap_or(size);
            }
        })
        .await
    }

    fn check_datagrams(&self) -> Result<(), Error> {
        let uri = self.uri.as_ref().map_err(Clone::clone)?;
        if uri.transport().is_datagram() {
            return Ok(());
        }
        let reason = "block by block a body goes over UDP and DTLS; over TCP and TLS ask with send".into();
        Err(Error::Refused { reason })
    }

    fn wished(&self) -> Result<BlockSize, Error> {
        self.block_size.map_or(Ok(self.client.settings.block), block_size)
    }
}

fn tell(hook: Option<&OnProgress>, progress: &Progress) {
    if let Some(OnProgress(hook)) = hook {
        hook(progress);
    }
}

/// A block option of an answer.
fn block_of(answer: &Response, option: u16) -> Result<Option<Block>, Error> {
    let read = answer.options().get(option).map(|value| Block::read(value, false)).transpose();
    read.map_err(|error| lost(answer, Why::said_by(error)))
}

/// Both are of one representation. Some servers tell the format with the first block alone.
fn is_of_one(first: &Response, next: &Response) -> bool {
    let is_of_another_format =
        first.content_format().zip(next.content_format()).is_some_and(|(one, other)| one != other);
    let etag = |response: &Response| response.options().get(number::ETAG).cloned();
    (first.code(), etag(first)) == (next.code(), etag(next)) && !is_of_another_format
}

/// The block that begins behind so many bytes.
fn after(bytes: usize, size: BlockSize) -> Result<Block, Error> {
    let number = u32::try_from(bytes / size.bytes() as usize).ok().filter(|number| *number <= Block::MOST);
    let reason = || format!("a body in blocks of {} bytes ends before {bytes}; use larger blocks", size.bytes());
    Ok(Block { number: number.ok_or_else(|| Error::Refused { reason: reason() })?, more: false, size })
}

fn lost(answer: &Response, why: impl Into<Why>) -> Error {
    let why = why.into();
    match answer.exchange() {
        Some(report) => Error::transfer(report.peer, why),
        None => Error::Refused { reason: why.reason },
    }
}

fn unwritten(error: &std::io::Error) -> Error {
    Error::Refused { reason: format!("what came cannot be written: {error}") }
}

fn unread(error: &std::io::Error) -> Error {
    Error::Refused { reason: format!("what is to be sent cannot be read: {error}") }
}
