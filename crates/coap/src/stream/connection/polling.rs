//! What comes out.

use core::ops::Range;

use millpond_control::Instant;

use super::{
    super::{Closing, Event, Lost, Output},
    Connection, Due, Notice,
    taking::Meaning,
};

/// What is to be told next.
pub(super) enum Next {
    /// What is lent.
    Bytes,
    Notice(Notice),
    PongMissing,
    Frame(Meaning, Range<usize>),
    Close(Closing),
    Sleep(Instant),
    Idle,
}

impl Connection {
    /// The next output.
    pub fn poll(&mut self, now: Instant) -> Output<'_> {
        match self.next(now) {
            Next::Bytes => Output::Transmit(&self.lent),
            Next::Notice(Notice::Failed(id, why)) => Output::Event(Event::Failed { id, why }),
            Next::Notice(Notice::Unobserved(id, _)) => Output::Event(Event::Unobserved { id }),
            Next::Notice(Notice::Left(id)) => Output::Event(Event::Left { id }),
            Next::Notice(Notice::TokenFree) => Output::Event(Event::TokenFree),
            Next::PongMissing => Output::Event(Event::PongMissing),
            Next::Frame(meaning, place) => self.tell(&meaning, place),
            Next::Close(why) => Output::Close(why),
            Next::Sleep(until) => Output::Sleep(until),
            Next::Idle => Output::Idle,
        }
    }

    /// The same without what it borrows.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        loop {
            if !self.outbox.is_empty() {
                self.lent.clear();
                core::mem::swap(&mut self.lent, &mut self.outbox);
                return Next::Bytes;
            }
            if let Some(notice) = self.notices.pop_front() {
                return Next::Notice(notice);
            }
            if let Some(why) = self.ending {
                if let Some(id) = self.asked.pop() {
                    return Next::Notice(Notice::Failed(id, Lost::ConnectionClosed));
                }
                if let Some((id, token)) = self.owed.pop_observation() {
                    return Next::Notice(Notice::Unobserved(id, token));
                }
                self.owed.clear();
                self.reader.clear();
                return if core::mem::replace(&mut self.ended, true) { Next::Idle } else { Next::Close(why) };
            }
            match self.reader.advance() {
                Ok(Some(place)) => match self.take(now, place.clone()) {
                    Meaning::Nothing => {}
                    meaning => return Next::Frame(meaning, place),
                },
                Ok(None) => match self.next_due() {
                    Some((due, Due::Ping)) if due <= now => {
                        self.ping = None;
                        return Next::PongMissing;
                    }
                    Some((due, Due::Release)) if due <= now => self.end(Closing::ReleaseTimedOut),
                    Some((due, Due::Token)) if due <= now => {
                        self.resting.told();
                        return Next::Notice(Notice::TokenFree);
                    }
                    Some((due, _)) => return Next::Sleep(due),
                    None => return Next::Idle,
                },
                Err(error) => {
                    use alloc::string::ToString;
                    self.abort_for(Closing::BadFrame(error), None, &error.to_string());
                }
            }
        }
    }
}
