//! Answers that are read as they are asked for.

use std::time::Duration;

use bytes::{Buf, Bytes};
use millpond_coap::{
    block::Block,
    message::{Code, number},
};
use millpond_control::Instant;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::mpsc,
};

use super::{Dispatcher, Name, PendingRequest, Pieces, Step, Streams, about};
use crate::{
    Progress, Response,
    client::OnProgress,
    response::Reader,
    secrets,
    server::{
        admission::{AddressState, Pause},
        dispatcher::{TaskEvent, answering::is_unwanted},
        running::Caught,
    },
};

/// Bytes that are passed over before others have their turn.
const SKIPPED: usize = 8 << 10;

/// An answer of which not all was asked for.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) number: u64,
    /// How many bytes its task is to read; none once all were read.
    asks: Option<mpsc::Sender<usize>>,
    /// Code and options of each of its messages.
    head: Response,
    /// Bytes that were told.
    sent: usize,
    total: Option<usize>,
    /// What was told last: where it began, and whether more follows.
    said: Option<(usize, Bytes, bool)>,
    waiting: Option<(PendingRequest, Pieces)>,
    /// While its client is to ask for the next block.
    pause: Pause,
    progress: Option<OnProgress>,
}

impl Dispatcher {
    /// A response to a request of a resource that streams: in one message, or in blocks from now on.
    pub(in super::super) fn answered_in_pieces(
        &mut self,
        now: Instant,
        mut pending: PendingRequest,
        pieces: Pieces,
        mut response: Response,
    ) {
        let stream = response.take_stream();
        if is_unwanted(&pending.request, response.code()) {
            // Of what nobody wants nothing is read.
            if pieces.block1.is_some() {
                self.remember(&Name::of(&pending.request, true), &Response::new(response.code()));
            }
            return self.say(&pending, response);
        }
        let length = response.payload().len();
        let is_short = !response.is_success() || (length <= pieces.length && pieces.offset() == 0);
        let is_proved = pending.request.is_address_proved();
        if stream.is_none() && is_short {
            if let Some(block) = pieces.block1 {
                response = with_block(response, number::BLOCK1, block);
                self.remember(&Name::of(&pending.request, true), &response);
            }
            return self.say(&pending, response);
        }
        if !is_proved {
            return self.ask_for_proof(now, pending);
        }
        let payload = response.payload().clone();
        let (reader, total, progress): (Option<Reader>, _, _) = match stream {
            Some(stream) => (stream.reader(), None, stream.progress),
            None => (Some(Box::pin(std::io::Cursor::new(payload))), Some(length), None),
        };
        // What its handler had was for what is over: from now on its stream has it, however it came about.
        drop(pending.place.take());
        let place = match self.admission.enter(now, pending.request.peer(), AddressState::Validated, length) {
            Ok(place) => place,
            Err(busy) => return self.refuse(now, pending, busy),
        };
        let head = match (response.options().get(number::ETAG), secrets::bytes::<8>()) {
            (Some(_), _) => response.with_payload(Bytes::new()),
            (None, Ok(unique)) => response.with_payload(Bytes::new()).with_etag(unique.to_vec()),
            (None, Err(_)) => return self.say(&pending, about(Code::INTERNAL_SERVER_ERROR, None)),
        };
        let Some(reader) = reader else {
            tracing::error!(target: "millpond_live", "a stream was an answer before; its request is answered with 5.00");
            return self.say(&pending, about(Code::INTERNAL_SERVER_ERROR, None));
        };
        let (name, number) = (Name::of(&pending.request, false), self.streams.number());
        let (asks, wanted) = mpsc::channel(1);
        let (events, of, idle, skip) = (self.events.clone(), name.clone(), self.limits.handling, pieces.offset());
        let pause = place.pause();
        self.tasks.spawn(async move {
            let tell = |step| drop(events.send(TaskEvent::Step(of.clone(), number, step, None)));
            tokio::select! {
                read = Caught(Box::pin(read(reader, skip, wanted, idle, &tell))) => {
                    if read.is_err() {
                        tell(Step::Broken("it panicked".into()));
                    }
                }
                () = place.taken_away() => {}
            }
            tell(Step::Over);
            drop(place);
        });
        let mut download =
            Download { number, asks: Some(asks), head, sent: skip, total, said: None, waiting: None, pause, progress };
        download.ask(pending, pieces);
        let before = self.streams.downloads.insert(name, download);
        self.answer_waiting(before.and_then(|before| before.waiting));
    }

    /// A block that does not begin an answer is asked for. Whose answer is not known, the handler is asked anew.
    pub(super) fn next_of_download(&mut self, pending: PendingRequest, pieces: Pieces) -> Option<PendingRequest> {
        let Some(download) = self.streams.download(&Name::of(&pending.request, false)) else { return Some(pending) };
        let offset = pieces.offset();
        match &download.said {
            _ if offset == download.sent && download.asks.is_some() => {
                if let Some(progress) = &download.progress {
                    (progress.0)(&Progress { sent: offset, received: 0, total: download.total });
                }
                let before = download.ask(pending, pieces);
                self.answer_waiting(before);
                None
            }
            // Once more, in a message of its own.
            Some((start, bytes, more)) if offset == *start && bytes.len() <= pieces.length => {
                let again = cut(&download.head, (*start, bytes.clone(), *more), &pieces, download.total);
                self.say(&pending, again);
                None
            }
            _ => Some(pending),
        }
    }

    /// The task of an answer told something.
    pub(super) fn has_read(&mut self, now: Instant, name: &Name, number: u64, step: Step) {
        self.join();
        let Some(download) = self.streams.downloads.get_mut(name).filter(|it| it.number == number) else { return };
        let waiting = download.waiting.take();
        match step {
            Step::Read(bytes, more) => {
                let part = (download.sent, bytes, more);
                download.sent = download.sent.saturating_add(part.1.len());
                download.said = Some(part.clone());
                if more {
                    download.pause.begin(now);
                } else {
                    download.asks = None;
                    if let Some(progress) = &download.progress {
                        // It has left; whether it arrived nobody tells.
                        (progress.0)(&Progress { sent: download.sent, received: 0, total: Some(download.sent) });
                    }
                }
                let said = waiting.map(|(pending, pieces)| {
                    let is_whole = !more || pieces.may_cut;
                    let said = match is_whole {
                        true => cut(&download.head, part, &pieces, download.total),
                        false => about(Code::INTERNAL_SERVER_ERROR, None),
                    };
                    (pending, said)
                });
                if let Some((pending, said)) = said {
                    self.say(&pending, said);
                }
            }
            Step::Over if download.asks.is_none() => self.streams.is_over(name.clone(), number),
            Step::Broken(_) | Step::PastEnd | Step::Over => {
                self.streams.downloads.remove(name);
                let said = match step {
                    Step::PastEnd => Response::bad_request("a block behind the end"),
                    Step::Broken(why) => {
                        tracing::error!(target: "millpond_live", "a stream cannot be read, and its request is answered with 5.00: {why}");
                        about(Code::INTERNAL_SERVER_ERROR, None)
                    }
                    _ => about(Code::REQUEST_ENTITY_INCOMPLETE, None),
                };
                if let Some((pending, _)) = waiting {
                    self.say(&pending, said);
                }
            }
            Step::Taken | Step::Answered(_) => {}
        }
    }
}

impl Streams {
    /// The answer of which somebody wants more: of that name, or the newest to a FETCH whose body was told once.
    fn download(&mut self, name: &Name) -> Option<&mut Download> {
        if self.downloads.contains_key(name) {
            return self.downloads.get_mut(name);
        }
        let behind = self.downloads.range_mut(name..).take_while(|(it, _)| it.peer == name.peer);
        behind.filter(|(it, _)| name.goes_on_with(it)).map(|(_, it)| it).max_by_key(|it| it.number)
    }
}

impl Download {
    pub(super) fn memory(&self) -> usize {
        let said = self.said.as_ref().map_or(0, |(_, bytes, _)| bytes.len());
        let waiting = self.waiting.as_ref().map_or(0, |(pending, _)| pending.weight());
        size_of::<(Name, Self)>() + self.head.weight() + said + waiting
    }

    /// This is wanted next. Gives back who wanted it before.
    fn ask(&mut self, pending: PendingRequest, pieces: Pieces) -> Option<(PendingRequest, Pieces)> {
        self.pause.end();
        let before = self.waiting.replace((pending, pieces));
        if before.is_none() {
            // There is room: the one before was read.
            let _ = self.asks.as_ref().map(|asks| asks.try_send(pieces.length));
        }
        before
    }
}

/// One message of an answer.
pub(in super::super) fn cut(
    head: &Response,
    (start, bytes, more): (usize, Bytes, bool),
    pieces: &Pieces,
    total: Option<usize>,
) -> Response {
    let number = u32::try_from(start / pieces.size.bytes() as usize).unwrap_or(u32::MAX);
    let mut response = head.clone();
    if pieces.may_cut && (more || start > 0 || pieces.block2.is_some()) {
        response = with_block(response, number::BLOCK2, Block { number, more, size: pieces.size });
    }
    if let Some(block) = pieces.block1 {
        response = with_block(response, number::BLOCK1, block);
    }
    if let Some(total) = total.and_then(|total| u32::try_from(total).ok()).filter(|_| start == 0) {
        response = response.with_uint_option(number::SIZE2, total);
    }
    response.with_payload(bytes)
}

fn with_block(response: Response, option: u16, block: Block) -> Response {
    response.with_option(option, Bytes::copy_from_slice(block.value().as_bytes()))
}

/// Reads what is wanted, until nobody has wanted anything for so long. A byte ahead reports whether more follows.
async fn read(
    mut reader: Reader,
    skip: usize,
    mut wanted: mpsc::Receiver<usize>,
    idle: Duration,
    tell: &(impl Fn(Step) + Sync),
) {
    let mut held = bytes::BytesMut::new();
    let mut ahead = skip;
    while ahead > 0 {
        held.clear();
        held.reserve(SKIPPED);
        match fill(&mut reader, &mut held, ahead.min(SKIPPED)).await {
            Ok(0) => return tell(Step::PastEnd),
            Ok(count) => ahead = ahead.saturating_sub(count),
            Err(error) => return tell(Step::Broken(error.to_string())),
        }
        // Who asks for the end of a long stream holds nobody up.
        tokio::task::yield_now().await;
    }
    held.clear();
    let mut is_end = false;
    while let Ok(Some(length)) = tokio::time::timeout(idle, wanted.recv()).await {
        while held.len() <= length && !is_end {
            let room = length + 1 - held.len();
            match fill(&mut reader, &mut held, room).await {
                Ok(count) => is_end = count == 0,
                Err(error) => return tell(Step::Broken(error.to_string())),
            }
        }
        if held.is_empty() && skip > 0 {
            return tell(Step::PastEnd);
        }
        let part = Bytes::copy_from_slice(held.get(..length.min(held.len())).unwrap_or_default());
        held.advance(part.len());
        let more = !held.is_empty();
        tell(Step::Read(part, more));
        if !more {
            return;
        }
    }
}

async fn fill(
    reader: &mut (impl AsyncRead + Unpin),
    held: &mut bytes::BytesMut,
    room: usize,
) -> std::io::Result<usize> {
    reader.take(room as u64).read_buf(held).await
}
