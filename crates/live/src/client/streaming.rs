//! Bodies that are never whole in memory: each block is a request of its own, and the next one waits until this one was
//! written, or the one after it read (RFC 7959 goes in step in any case). Over a stream a request holds, or gets, as many blocks as
//! fit a message (BERT, RFC 8323 §6).

use std::time::Duration;

use bytes::Bytes;
use millpond_coap::block::{Block, BlockSize, DownloadError, UploadError};
use millpond_coap::message::{Code, number};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::oneshot,
};

use super::{
    Command, RequestBuilder, Room, block_size,
    body::RestOfBody,
    deadline::within,
    peer::Peers,
    progress::{OnProgress, Progress},
};
use crate::{Error, NotSent, Response, Why, transfer::Piece};

/// Bytes of a body that one message of an upload holds at most, whatever the server takes.
const MOST_IN_MESSAGE: usize = 64 << 10;
/// The same of a body that has to be whole, because the server knows no blocks.
const MOST_WHOLE: usize = 1 << 20;

/// A body that comes.
struct Taking {
    /// The size of the blocks that were asked for, if any was.
    asked: Option<BlockSize>,
    /// Bytes of the longest that is taken.
    limit: usize,
    /// Request-Tag of the body that it answers.
    tag: Option<u32>,
    progress: Progress,
    /// In which each of its blocks has come, if that is not for all of it together.
    each_within: Option<Duration>,
}

impl RequestBuilder {
    /// Sends it and writes the body of the answer as it comes, block by block: of an image of any length one block is in
    /// memory; over TCP and TLS one message, of a mebibyte at most, which holds as many blocks as the server likes unless a
    /// [`block_size`](Self::block_size) is wished for. What is returned has code and options of the first block, and no body unless it
    /// is an error, of which nothing is written. [`progress`](Self::progress) is told after each block, or message;
    /// [`longest_body`](super::ClientBuilder::longest_body) does not matter. The deadline is that of all together; an end without all of
    /// the body is an error, and what was written stays.
    ///
    /// # Errors
    /// Those of [`send`](Self::send); [`Error::Transfer`] if the representation changed on the way, or what came are not the blocks
    /// of one body; [`Error::ConnectionLost`] if the connection ended in the middle, or the server released it;
    /// [`Error::Refused`] with what the writer said.
    pub async fn download(mut self, writer: &mut (impl AsyncWrite + Unpin + Send)) -> Result<Response, Error> {
        let wished = self.wished()?;
        within(self.deadline, async move {
            let mut peers = Peers::of(&self).await?;
            let piece = Piece {
                block1: None,
                block2: Some(Block { number: 0, more: false, size: wished }),
                tag: None,
                total: None,
            };
            let answer = self.answer(&mut peers, Some(piece)).await?;
            if !answer.is_success() {
                return Ok(answer);
            }
            let taking = Taking {
                asked: Some(wished),
                limit: usize::MAX,
                tag: None,
                progress: Progress::default(),
                each_within: None,
            };
            self.take(&mut peers, answer, taking, writer).await
        })
        .await
    }

    /// Sends it, and waits for the answer, and for as many bytes of its body as `whole` says of its first block. The rest of a longer body
    /// is asked for, block by block, as it is read from [`Response::take_body`], and what [`payload`](Response::payload) gives
    /// is empty then. Beside those bytes some blocks are in memory; over TCP and TLS a message. Unlike [`download`](Self::download)
    /// it begins like [`send`](Self::send), so that a server that knows no blocks answers it. The deadline is that of the answer
    /// with those bytes, and of each later block. The transfer ends when the body is dropped.
    ///
    /// # Errors
    /// Those of [`download`](Self::download); what comes later is an error of the body.
    pub async fn send_streaming(mut self, whole: impl FnOnce(&Response) -> usize) -> Result<Response, Error> {
        let (each_within, is_stream) = (self.deadline, self.is_stream()?);
        within(each_within, async move {
            let mut peers = Peers::of(&self).await?;
            let answer =
                self.answer(&mut peers, Some(Piece { block1: None, block2: None, tag: None, total: None })).await?;
            if !answer.is_success() || block_of(&answer, number::BLOCK2, is_stream)?.is_none() {
                return Ok(answer);
            }
            let (first, whole) = (answer.clone().with_payload(Bytes::new()), whole(&answer));
            let body = RestOfBody::new(|mut writer| async move {
                let progress = Progress::default();
                let taking = Taking { asked: None, limit: usize::MAX, tag: None, progress, each_within };
                self.take(&mut peers, answer, taking, &mut writer).await.map(drop)
            });
            body.behind(first, whole).await
        })
        .await
    }

    /// Writes the body that begins in this answer, of which the rest is asked for. Gives the answer without it.
    async fn take(
        &mut self,
        peers: &mut Peers,
        mut answer: Response,
        taking: Taking,
        writer: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<Response, Error> {
        let (hook, wished, is_stream) = (self.progress.clone(), self.wished()?, self.is_stream()?);
        let Taking { mut asked, limit, tag, mut progress, each_within } = taking;
        let first = answer.clone().with_payload(Bytes::new());
        loop {
            let came = block_of(&answer, number::BLOCK2, is_stream)?;
            let (got, length) = (came.map_or(0, Block::offset), answer.payload().len());
            if got != progress.received as u64 {
                let out_of_order = DownloadError::OutOfOrder { got, wanted: progress.received as u64 };
                return Err(lost(&answer, Why::said_by(out_of_order)));
            }
            // Without a number it is all of the body.
            let checked = came.map_or(Ok(()), |came| came.check_answer(asked, length));
            checked.map_err(|error| lost(&answer, Why::said_by(error)))?;
            if !is_of_one(&first, &answer) {
                return Err(lost(&answer, "it changed on the way; ask again"));
            }
            progress.received += length;
            if progress.received > limit {
                return Err(Error::BodyTooLarge { limit });
            }
            writer.write_all(answer.payload()).await.map_err(|error| unwritten(&error))?;
            let total = answer.options().uint(number::SIZE2).and_then(|total| usize::try_from(total).ok());
            progress.total = total.or(progress.total);
            tell(hook.as_ref(), &progress);
            let Some(came) = came.filter(|came| came.more) else {
                writer.flush().await.map_err(|error| unwritten(&error))?;
                return Ok(first);
            };
            if came.size < wished.min(BlockSize::B1024) {
                let checked = came.size.check_count(progress.received, 0);
                checked.map_err(|error| lost(&answer, Why::said_by(error)))?;
            }
            let block = after(progress.received, came.size)?;
            asked = Some(came.size);
            let piece = Piece { block1: None, block2: Some(block), tag, total: None };
            answer = within(each_within, self.answer(peers, Some(piece))).await?;
            if !answer.is_success() {
                return Err(lost(&answer, format!("it goes on with {}", answer.code())));
            }
        }
    }

    /// Sends what the reader gives as its payload, block by block, until its end: of an image of any length two blocks are in
    /// memory; over TCP and TLS two messages, of 64 KiB at most. [`progress`](Self::progress) is told after each block, or message. The
    /// deadline is that of all together. What a server that puts bodies together takes in all is its own limit (4.13), by which it can
    /// refuse at once if it is told [how long](Self::upload_size) the body is. The answer is
    /// whole, as that of [`send`](Self::send).
    ///
    /// # Errors
    /// Those of [`send`](Self::send); [`Error::Transfer`] and [`Error::ConnectionLost`] as with [`download`](Self::download);
    /// [`Error::Refused`] with what the reader said, if a [`payload`](Self::payload) was given, too, or if a server without blocks
    /// takes no message so long.
    pub async fn upload(mut self, reader: &mut (impl AsyncRead + Unpin + Send)) -> Result<Response, Error> {
        if self.payload.as_ref().is_ok_and(|payload| !payload.is_empty()) {
            return Err(Error::refused(
                NotSent::Combination,
                "a payload is given, and a reader of another; leave one out",
            ));
        }
        let (mut size, hook, is_stream) = (self.wished()?, self.progress.clone(), self.is_stream()?);
        let tag = u32::try_from(self.client.number() & 0xffff_ffff).ok();
        within(self.deadline, async move {
            let mut peers = Peers::of(&self).await?;
            let mut progress = Progress::default();
            let (mut held, mut is_end) = (Vec::new(), false);
            loop {
                let room = self.room(&mut peers, size).await?;
                size = room.size;
                // One byte more than a message holds reports whether another one follows.
                let wanted = room.most + 1;
                while held.len() < wanted && !is_end {
                    let mut room = (&mut *reader).take((wanted - held.len()) as u64);
                    is_end = room.read_to_end(&mut held).await.map_err(|error| unread(&error))? == 0;
                }
                let length = held.len().min(room.most);
                let more = held.len() > length;
                if more && !room.knows_blocks {
                    let reason =
                        format!("the server knows no blocks, and a message to it takes {length} bytes of a body");
                    return Err(Error::refused(NotSent::TooLong, reason));
                }
                let block = Block { more, ..after(progress.sent, size)? };
                self.payload = Ok(Bytes::copy_from_slice(held.get(..length).unwrap_or_default()));
                let piece = Piece { block1: Some(block), block2: None, tag, total: self.upload_size };
                let answer = self.answer(&mut peers, Some(piece)).await?;
                let told = block_of(&answer, number::BLOCK1, is_stream)?;
                let is_other = told.is_some_and(|told| told.number != block.number);
                let told = told.map(|told| told.size).filter(|told| *told < size);
                if answer.code() == Code::REQUEST_ENTITY_TOO_LARGE
                    && progress.sent == 0
                    && let Some(smaller) = told
                {
                    // Smaller blocks are wanted from the first one on (RFC 7959 §2.9.3).
                    size = smaller;
                    continue;
                }
                if !answer.is_success() {
                    return Ok(answer);
                }
                if more && is_other {
                    return Err(lost(&answer, Why::said_by(UploadError::WrongBlock)));
                }
                held.drain(..length);
                progress.sent += length;
                tell(hook.as_ref(), &progress);
                if !more {
                    if block_of(&answer, number::BLOCK2, is_stream)?.is_none_or(|block| !block.more) {
                        return Ok(answer);
                    }
                    // The answer is long, too.
                    self.payload = Ok(Bytes::new());
                    let (limit, mut body) = (self.client.settings.longest_body, Vec::new());
                    let taking = Taking { asked: None, limit, tag, progress, each_within: None };
                    let answer = self.take(&mut peers, answer, taking, &mut body).await?;
                    return Ok(answer.with_payload(body));
                }
                size = told.unwrap_or(size);
            }
        })
        .await
    }

    /// Blocks of which size are wished for: over a stream several in a message, unless a smaller size was said.
    fn wished(&self) -> Result<BlockSize, Error> {
        match (self.block_size, self.client.settings.block) {
            (Some(bytes), _) => block_size(bytes),
            (None, BlockSize::B1024) if self.is_stream()? => Ok(BlockSize::BERT),
            (None, size) => Ok(size),
        }
    }

    fn is_stream(&self) -> Result<bool, Error> {
        let uri = self.uri.as_ref().map_err(Clone::clone)?;
        Ok(!uri.transport().is_datagram())
    }

    /// How much of a body the next message may hold, in blocks of at most this size.
    async fn room(&self, peers: &mut Peers, size: BlockSize) -> Result<Room, Error> {
        if !self.is_stream()? {
            return Ok(Room { size, most: size.bytes() as usize, knows_blocks: true });
        }
        let uri = self.uri.as_ref().map_err(Clone::clone)?;
        let (reply, room) = oneshot::channel();
        peers.order(self, Command::Room(self.all_options(uri).weight(), reply), true).await?;
        let room = room.await.unwrap_or(Err(Error::Closed))?;
        let most = match size.min(room.size) {
            _ if !room.knows_blocks => room.most.min(MOST_WHOLE),
            BlockSize::BERT => room.most.min(MOST_IN_MESSAGE),
            one => one.bytes() as usize,
        };
        Ok(Room { size: size.min(room.size), most, ..room })
    }
}

fn tell(hook: Option<&OnProgress>, progress: &Progress) {
    if let Some(OnProgress(hook)) = hook {
        hook(progress);
    }
}

/// A block option of an answer, which may be about several blocks over a stream.
fn block_of(answer: &Response, option: u16, is_stream: bool) -> Result<Option<Block>, Error> {
    let read = answer.options().get(option).map(|value| Block::read(value, is_stream)).transpose();
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
    Ok(Block { number: number.ok_or_else(|| Error::refused(NotSent::TooLong, reason()))?, more: false, size })
}

fn lost(answer: &Response, why: impl Into<Why>) -> Error {
    let why = why.into();
    match answer.exchange() {
        Some(report) => Error::transfer(report.peer, why),
        None => Error::refused(NotSent::Message, why.reason),
    }
}

fn unwritten(error: &std::io::Error) -> Error {
    Error::refused(NotSent::Body, format!("what came cannot be written: {error}"))
}

fn unread(error: &std::io::Error) -> Error {
    Error::refused(NotSent::Body, format!("what is to be sent cannot be read: {error}"))
}
