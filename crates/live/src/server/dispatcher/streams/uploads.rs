//! Requests whose bodies go to their handlers block by block.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use millpond_coap::{
    block::Block,
    message::{Code, Uint, number},
};
use millpond_control::Instant;
use tokio::sync::mpsc;

use super::{Dispatcher, Name, PendingRequest, Step, about};
use crate::{
    Response,
    server::{
        RequestBody,
        admission::{Pause, Place},
        body::Chunk,
        dispatcher::{
            ASK_AGAIN, TaskEvent,
            answering::{held, wants_none},
            start, within,
        },
        handler::Handling,
    },
};

/// A request whose body comes block by block.
#[derive(Debug)]
pub(super) struct Upload {
    pub(super) number: u64,
    /// Bytes that came.
    next: usize,
    /// To the handler, until the last block came.
    chunks: Option<mpsc::Sender<Chunk>>,
    /// Counts blocks.
    came: Arc<AtomicU64>,
    /// The block that the handler has not taken, or the last one, whose answer is pending.
    waiting: Option<(PendingRequest, Block)>,
    /// While its client is to send the next block.
    pause: Pause,
    /// What the last block was answered with.
    said: Option<Response>,
    /// What the handler has answered, before the end or without anybody who waits for it.
    outcome: Option<Response>,
}

impl Dispatcher {
    /// A body begins: its handler is asked, and gets the first block.
    pub(in super::super) fn begin_upload(
        &mut self,
        now: Instant,
        mut pending: PendingRequest,
        (block, place): (Block, Place),
        handling: &Handling,
    ) {
        let payload = pending.request.take_payload();
        if !block.fits(payload.len()) {
            return self.say(&pending, Response::bad_request("a block that is not as long as it says"));
        }
        let (name, number) = (Name::of(&pending.request, true), self.streams.number());
        // A peer that reads one that was begun before learns that its rest does not come.
        let before = self.streams.uploads.remove(&name);
        self.answer_waiting(before.and_then(|before| before.waiting));
        let (sender, chunks) = mpsc::channel(1);
        let total =
            pending.request.value(number::SIZE1).and_then(Uint::read).and_then(|total| usize::try_from(total).ok());
        let (events, of) = (self.events.clone(), name.clone());
        let body = RequestBody::coming(chunks, total, move || {
            let _ = events.send(TaskEvent::Step(of.clone(), number, Step::Taken, None));
        });
        pending.request.give_body(body);
        let (request, whose) = (pending.request.clone(), pending.whose());
        let is_unheard = wants_none(&request);
        let came = Arc::new(AtomicU64::new(0));
        let mut upload = Upload {
            number,
            next: 0,
            chunks: Some(sender),
            came: Arc::clone(&came),
            waiting: None,
            pause: place.pause(),
            said: None,
            outcome: None,
        };
        upload.give(pending, block, payload);
        self.streams.uploads.insert(name.clone(), upload);
        match start(|| handling.ask(request)) {
            Ok(response) => self.outcome(now, &name, number, response),
            Err(answering) => {
                handling.has_waited();
                self.running += 1;
                let (events, limit, giving_up) =
                    (self.events.clone(), self.limits.handling, self.giving_up.subscribe());
                let admission = Arc::clone(&self.admission);
                self.tasks_of(is_unheard).spawn(async move {
                    let response = tokio::select! {
                        response = within(limit, answering, giving_up, Some(came)) => response,
                        () = place.taken_away() => Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(ASK_AGAIN),
                    };
                    let (response, held) = held(&admission, whose, response);
                    drop(place);
                    let _ = events.send(TaskEvent::Step(name, number, Step::Answered(response), held));
                });
            }
        }
    }

    /// A block that does not begin a body came.
    pub(super) fn next_of_upload(&mut self, now: Instant, mut pending: PendingRequest, block: Block) {
        let payload = pending.request.take_payload();
        if !block.fits(payload.len()) {
            return self.say(&pending, Response::bad_request("a block that is not as long as it says"));
        }
        let incomplete = || about(Code::REQUEST_ENTITY_INCOMPLETE, None);
        let name = Name::of(&pending.request, true);
        let Some(upload) = self.streams.uploads.get_mut(&name) else { return self.say(&pending, incomplete()) };
        let (number, start) = (upload.number, usize::try_from(block.offset()).unwrap_or(usize::MAX));
        if start == upload.next && upload.chunks.is_some() && upload.waiting.is_none() {
            upload.give(pending, block, payload);
            if let Some(outcome) = upload.outcome.take() {
                self.outcome(now, &name, number, outcome);
            }
        } else if start.saturating_add(payload.len()) == upload.next {
            // The last one, once more, in a message of its own.
            match (&mut upload.waiting, upload.said.clone()) {
                (Some(waiting), _) => {
                    let before = std::mem::replace(waiting, (pending, block));
                    self.answer_waiting(Some(before));
                }
                (None, Some(said)) if pending.pieces.is_none() && said.code() != Code::CONTINUE => {
                    self.answered(now, pending, said);
                }
                (None, Some(said)) => self.say(&pending, said),
                (None, None) => self.say(&pending, incomplete()),
            }
        } else {
            self.say(&pending, incomplete());
        }
    }

    /// The handler has taken a block: the next one may come.
    pub(super) fn taken(&mut self, now: Instant, name: &Name, number: u64) {
        let longest = self.limits.block;
        let Some(upload) = self.streams.uploads.get_mut(name).filter(|upload| upload.number == number) else { return };
        if let Some((pending, block)) = upload.waiting.take_if(|(_, block)| block.more) {
            let said = about(Code::CONTINUE, Some(received(block, longest, &pending)));
            upload.said = Some(said.clone());
            upload.pause.begin(now);
            self.say(&pending, said);
        }
    }

    /// The handler has answered in a task.
    pub(super) fn upload_answered(&mut self, now: Instant, name: &Name, number: u64, response: Response) {
        self.join();
        self.running = self.running.saturating_sub(1);
        self.outcome(now, name, number, response);
    }

    /// The handler has answered: a peer that waits for that gets it, or the sender the next block.
    fn outcome(&mut self, now: Instant, name: &Name, number: u64, response: Response) {
        let longest = self.limits.block;
        let Some(upload) = self.streams.uploads.get_mut(name).filter(|upload| upload.number == number) else { return };
        upload.pause.end();
        let Some((mut pending, block)) = upload.waiting.take() else {
            upload.outcome = Some(response);
            return self.streams.may_go(name.clone(), number);
        };
        // With its last block, or without hearing it out.
        upload.chunks = None;
        let block1 = Some(received(block, longest, &pending));
        if let Some(pieces) = &mut pending.pieces {
            pieces.block1 = block1;
        } else {
            upload.said = Some(response.clone());
        }
        self.streams.is_over(name.clone(), number);
        self.answered(now, pending, response);
    }

    /// A body has this answer, all of it: it is known in case that its last block comes once more.
    pub(super) fn remember(&mut self, name: &Name, said: &Response) {
        if let Some(upload) = self.streams.uploads.get_mut(name) {
            upload.said = Some(said.clone());
        }
    }
}

impl Upload {
    pub(super) fn memory(&self) -> usize {
        let waiting = self.waiting.as_ref().map_or(0, |(pending, _)| pending.weight());
        let said = self.said.iter().chain(&self.outcome).map(Response::weight).sum::<usize>();
        size_of::<(Name, Self)>() + said + waiting
    }

    /// The next block goes to the handler.
    fn give(&mut self, pending: PendingRequest, block: Block, bytes: Bytes) {
        self.pause.end();
        self.next = self.next.saturating_add(bytes.len());
        self.came.fetch_add(1, Ordering::Relaxed);
        let chunk = Chunk { bytes, is_last: !block.more };
        // There is room: the one before was taken. Who reads no more has answered, or soon will.
        let _ = self.chunks.as_ref().map(|chunks| chunks.try_send(chunk));
        if !block.more {
            self.chunks = None;
        }
        self.waiting = Some((pending, block));
    }
}

/// What is said of a block: its size may become smaller (RFC 7959 §2.3).
fn received(block: Block, longest: usize, pending: &PendingRequest) -> Block {
    if pending.request.transport().is_datagram() {
        return Block { size: block.size.min(millpond_coap::block::BlockSize::at_most(longest)), ..block };
    }
    block
}
