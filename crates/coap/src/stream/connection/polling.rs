//! What comes out.

use millpond_control::Instant;

use super::{
    super::{Closing, ConnectionOutput, Frame, Signal},
    Connection, Due,
};
use crate::{
    Event, Failure,
    invariant::Sure,
    message::{Message, Shape},
    output::{EndpointOutput, Entry, Output, OutputKind, SleepReason, Step},
};

impl Connection {
    /// The next output.
    pub fn poll(&mut self, now: Instant) -> ConnectionOutput<'_> {
        match self.next(now) {
            Output::Event(entry) => match self.show(&entry) {
                Output::Transmit(transmit) => Output::Transmit(transmit),
                Output::Event(event) => Output::Event(event),
                _ => Output::Idle,
            },
            Output::Close(why) => Output::Close(why),
            Output::Sleep(until, why) => Output::Sleep(until, why),
            Output::Idle => Output::Idle,
        }
    }

    /// The same without what it borrows.
    pub(super) fn next(&mut self, now: Instant) -> Step<Entry<()>, Closing> {
        let said = |kind| Output::Event(Entry { peer: (), kind, start: 0, len: 0, shape: Shape::default() });
        loop {
            if !self.outbox.is_empty() {
                self.lent.clear();
                core::mem::swap(&mut self.lent, &mut self.outbox);
                return said(OutputKind::Bytes);
            }
            if let Some(notice) = self.notices.pop_front() {
                return said(notice);
            }
            if let Some(why) = self.ending {
                if let Some(id) = self.outgoing.pop() {
                    return said(OutputKind::Failed { exchange: id, why: Failure::ConnectionClosed, copies: 1 });
                }
                if let Some((request, token)) = self.incoming.pop_observation() {
                    return said(OutputKind::Unobserved { request, token });
                }
                self.incoming.clear();
                self.reader.clear();
                return if core::mem::replace(&mut self.ended, true) { Output::Idle } else { Output::Close(why) };
            }
            match self.reader.advance() {
                Ok(Some(frame)) => {
                    if let Some(kind) = self.take(now, frame.clone()) {
                        self.frame = frame;
                        return said(kind);
                    }
                }
                Ok(None) => match self.next_due() {
                    Some((due, Due::Ping)) if due <= now => {
                        self.ping = None;
                        return said(OutputKind::PongMissing);
                    }
                    Some((due, Due::Release)) if due <= now => self.end(Closing::ReleaseTimedOut),
                    Some((due, Due::Token)) if due <= now => {
                        self.quarantine.reported();
                        return said(OutputKind::TokenFree);
                    }
                    Some((due, _)) => return Output::Sleep(due, SleepReason::Connection),
                    None => return Output::Idle,
                },
                Err(error) => {
                    use alloc::string::ToString;
                    self.abort_for(Closing::BadFrame(error), None, &error.to_string());
                }
            }
        }
    }

    /// The frame that the last output is about.
    pub(super) fn frame(&self, kind: &OutputKind) -> Option<Frame<'_>> {
        let frame = self.reader.frame(self.frame.clone()).sure("frame that was read");
        frame.map(|frame| self.named(frame, kind))
    }

    /// The message of an output, as it came in.
    pub(super) fn frame_message(&self, entry: &Entry<()>) -> Option<Message<'_>> {
        let has_one = matches!(
            entry.kind,
            OutputKind::Request { .. }
                | OutputKind::Response { .. }
                | OutputKind::AdditionalResponse { .. }
                | OutputKind::Unasked
        );
        if has_one { self.frame(&entry.kind).map(|frame| frame.message()) } else { None }
    }

    /// An output with its bytes.
    pub(super) fn show(&self, entry: &Entry<()>) -> EndpointOutput<'_, ()> {
        match entry.kind {
            OutputKind::Settings | OutputKind::Signal => {
                match self.frame(&entry.kind).map(|frame| Signal::read(&frame)) {
                    Some(Ok(signal)) => Output::Event(Event::Signal(signal)),
                    _ => Output::Idle,
                }
            }
            _ => entry.shown(&self.lent, || self.frame_message(entry)),
        }
    }
}
