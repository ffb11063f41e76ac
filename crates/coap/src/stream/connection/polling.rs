//! What comes out.

use core::ops::Range;

use millpond_control::Instant;

use super::{
    super::{Closing, ConnectionOutput, Event, Frame, Signal},
    Connection, Due, What,
};
use crate::{
    Failure,
    invariant::Sure,
    output::{Output, SleepReason, Step},
};

/// Where an output of a connection stands.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub(super) what: What,
    /// The frame that it is about, in what was read.
    start: usize,
    end: usize,
}

impl Entry {
    pub(super) const fn frame(&self) -> Range<usize> {
        self.start..self.end
    }
}

impl Connection {
    /// The next output.
    pub fn poll(&mut self, now: Instant) -> ConnectionOutput<'_> {
        match self.next(now) {
            Output::Event(entry) => match self.event(&entry) {
                Some(event) => Output::Event(event),
                None => Output::Transmit(&self.lent),
            },
            Output::Close(why) => Output::Close(why),
            Output::Sleep(until, why) => Output::Sleep(until, why),
            Output::Idle => Output::Idle,
        }
    }

    /// The same without what it borrows.
    pub(super) fn next(&mut self, now: Instant) -> Step<Entry, Closing> {
        let said = |what| Output::Event(Entry { what, start: 0, end: 0 });
        loop {
            if !self.outbox.is_empty() {
                self.lent.clear();
                core::mem::swap(&mut self.lent, &mut self.outbox);
                return said(What::Bytes);
            }
            if let Some(notice) = self.notices.pop_front() {
                return said(notice);
            }
            if let Some(why) = self.ending {
                if let Some(id) = self.outgoing.pop() {
                    return said(What::Failed(id, Failure::ConnectionClosed));
                }
                if let Some((id, token)) = self.incoming.pop_observation() {
                    return said(What::Unobserved(id, token));
                }
                self.incoming.clear();
                self.reader.clear();
                return if core::mem::replace(&mut self.ended, true) { Output::Idle } else { Output::Close(why) };
            }
            match self.reader.advance() {
                Ok(Some(Range { start, end })) => {
                    if let Some(what) = self.take(now, start..end) {
                        return Output::Event(Entry { what, start, end });
                    }
                }
                Ok(None) => match self.next_due() {
                    Some((due, Due::Ping)) if due <= now => {
                        self.ping = None;
                        return said(What::PongMissing);
                    }
                    Some((due, Due::Release)) if due <= now => self.end(Closing::ReleaseTimedOut),
                    Some((due, Due::Token)) if due <= now => {
                        self.quarantine.reported();
                        return said(What::TokenFree);
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

    /// The frame that an output is about.
    pub(super) fn frame(&self, entry: &Entry) -> Option<Frame<'_>> {
        let frame = self.reader.frame(entry.frame()).sure("frame that was read");
        frame.map(|frame| self.named(frame, &entry.what))
    }

    /// An output as it is told; none if it is bytes.
    pub(super) fn event(&self, entry: &Entry) -> Option<Event<'_>> {
        Some(match entry.what {
            What::Bytes => return None,
            What::Failed(id, why) => Event::Failed { id, why },
            What::Unobserved(id, _) => Event::Unobserved { id },
            What::Left(id) => Event::Left { id },
            What::TokenFree => Event::TokenFree,
            What::PongMissing => Event::PongMissing,
            What::Request(id) => Event::Request { id, frame: self.frame(entry)? },
            What::Response { id, last, .. } => Event::Response { id, frame: self.frame(entry)?, last },
            What::Settings => Event::Settings(self.settings),
            What::Pong(custody) => Event::Pong { custody },
            What::Released => match Signal::read(&self.frame(entry)?) {
                Ok(Signal::Release { alternative, hold_off }) => Event::Released { alternative, hold_off },
                _ => Event::Released { alternative: None, hold_off: None },
            },
            What::Aborted => match Signal::read(&self.frame(entry)?) {
                Ok(Signal::Abort { diagnostic, .. }) => Event::Aborted { diagnostic },
                _ => Event::Aborted { diagnostic: &[] },
            },
            What::Unasked(code) => Event::Unasked { code },
        })
    }
}
