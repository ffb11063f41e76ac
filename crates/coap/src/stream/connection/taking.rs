//! What comes in over a connection, and what it means to the application.

use core::ops::Range;

use millpond_control::Instant;

use super::{
    super::{BadSignal, Closing, Event, Frame, Output, Signal, StreamRefused, write_frame},
    Connection, MOST_HELD_PONGS, Notice, Releasing,
};
use crate::{
    ExchangeId, RequestId,
    invariant::Sure,
    message::{Code, Token, number},
};

/// What a frame means to the application.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    Request(RequestId),
    Response { id: ExchangeId, is_first: bool, last: bool },
    Settings,
    Pong(bool),
    Released,
    Aborted,
    Unasked(Code),
    Nothing,
}

impl Connection {
    pub(super) fn end(&mut self, why: Closing) {
        if self.ending.is_none() {
            self.ending = Some(why);
            self.held_pongs.clear();
        }
    }

    pub(super) fn abort_for(&mut self, why: Closing, bad_csm_option: Option<u16>, diagnostic: &str) {
        self.signal(Signal::Abort { bad_csm_option, diagnostic: diagnostic.as_bytes() }, Token::EMPTY);
        self.end(why);
    }

    /// Takes a frame in and says what it means.
    pub(super) fn take(&mut self, now: Instant, place: Range<usize>) -> Meaning {
        let Some(frame) = self.reader.frame(place).sure("frame that was read") else { return Meaning::Nothing };
        let (code, token) = (frame.code, frame.token);
        if !self.settled && code.to_byte() != 0xe1 {
            self.abort_for(Closing::NoSettings, None, "the first message must be a CSM");
            return Meaning::Nothing;
        }
        if code.is_empty() {
            return Meaning::Nothing;
        }
        if Signal::is(code) {
            return match Signal::read(&frame) {
                Ok(signal) => {
                    let signal = OwnedSignal::of(&signal);
                    self.take_signal(signal, token)
                }
                Err(bad) => self.refuse(bad),
            };
        }
        if code.is_request() {
            return self.take_request(token);
        }
        let notifies = frame.option(number::OBSERVE).is_some() && code.class() == 2;
        self.take_response(now, code, token, notifies)
    }

    fn refuse(&mut self, bad: BadSignal) -> Meaning {
        use alloc::string::ToString;
        let option = (bad.code.to_byte() == 0xe1).then_some(bad.number);
        self.abort_for(Closing::BadSignal(bad), option, &bad.to_string());
        Meaning::Nothing
    }

    fn take_signal(&mut self, signal: OwnedSignal, token: Token) -> Meaning {
        match signal {
            OwnedSignal::Csm { max_message_size, block_wise } => {
                self.settled = true;
                if let Some(size) = max_message_size {
                    self.settings.max_message_size = size;
                }
                self.settings.block_wise |= block_wise;
                Meaning::Settings
            }
            OwnedSignal::Ping { custody: true } if self.owed.unanswered() > 0 => {
                if self.held_pongs.len() >= MOST_HELD_PONGS {
                    self.abort_for(Closing::TooManyPings, None, "too many pings wait for answers");
                    return Meaning::Nothing;
                }
                self.held_pongs.push_back((self.owed.latest(), token));
                Meaning::Nothing
            }
            OwnedSignal::Ping { custody } => {
                self.signal(Signal::Pong { custody }, token);
                Meaning::Nothing
            }
            OwnedSignal::Pong { custody } => {
                if self.ping.is_some_and(|ping| ping.token == token) {
                    self.ping = None;
                    return Meaning::Pong(custody);
                }
                Meaning::Nothing
            }
            OwnedSignal::Release => {
                self.releasing = Some(Releasing { theirs: true, due: self.releasing.and_then(|ours| ours.due) });
                self.after_answer();
                Meaning::Released
            }
            OwnedSignal::Abort => {
                self.end(Closing::AbortedByPeer);
                Meaning::Aborted
            }
            OwnedSignal::Unknown => Meaning::Nothing,
        }
    }

    fn take_request(&mut self, token: Token) -> Meaning {
        if !self.options.serves {
            self.answer_by_code(Code::NOT_IMPLEMENTED, token);
            return Meaning::Nothing;
        }
        // Whatever it asks, what is observed with its token is so no longer (RFC 7641 §3.6, §4.1): a request that registers
        // again takes the place of the one before.
        if let Some(id) = self.owed.observing(token) {
            self.owed.answered(id, false);
            self.notices.push_back(Notice::Unobserved(id, token));
        }
        if self.owed.len() as u64 >= u64::from(self.options.requests) {
            self.answer_by_code(Code::SERVICE_UNAVAILABLE, token);
            return Meaning::Nothing;
        }
        Meaning::Request(self.owed.add(token))
    }

    /// A request gets an answer without anything, whatever the other side takes: what it asked is over in any case.
    pub(super) fn answer_plainly(&mut self, id: RequestId, code: Code) -> Result<(), StreamRefused> {
        self.check_open()?;
        let debt = self.owed.get(id).ok_or(StreamRefused::UnknownRequest)?;
        self.answer_by_code(code, debt.token);
        self.owed.answered(id, false);
        self.after_answer();
        Ok(())
    }

    fn answer_by_code(&mut self, code: Code, token: Token) {
        // Two bytes and a token fit whatever the other side takes.
        let _length = write_frame(&mut self.outbox, code, token, &[], &[], u32::MAX);
    }

    fn take_response(&mut self, now: Instant, code: Code, token: Token, notifies: bool) -> Meaning {
        let Some((id, observes, is_first)) = self.asked.answered(token) else {
            self.resting.answered(now, token);
            return Meaning::Unasked(code);
        };
        let last = !(observes && notifies);
        if last {
            self.asked.remove(id);
        }
        self.after_answer();
        Meaning::Response { id, is_first, last }
    }

    /// Something was answered: pongs may be due, and a release may be complete.
    pub(super) fn after_answer(&mut self) {
        while let Some(&(latest, token)) = self.held_pongs.front() {
            if self.owed.is_unanswered_up_to(latest) {
                break;
            }
            self.held_pongs.pop_front();
            self.signal(Signal::Pong { custody: true }, token);
        }
        if self.releasing.is_some_and(|releasing| releasing.theirs) && self.is_quiet() {
            self.end(Closing::Released);
        }
    }

    /// The output that tells the application.
    pub(super) fn tell(&self, meaning: &Meaning, place: Range<usize>) -> Output<'_> {
        let Some(frame) = self.reader.frame(place).sure("frame that was read") else { return Output::Idle };
        Output::Event(match *meaning {
            Meaning::Request(id) => Event::Request { id, frame },
            Meaning::Response { id, last, .. } => Event::Response { id, frame, last },
            Meaning::Pong(custody) => Event::Pong { custody },
            Meaning::Released => Self::released(&frame),
            Meaning::Aborted => Self::aborted(&frame),
            Meaning::Unasked(code) => Event::Unasked { code },
            Meaning::Settings | Meaning::Nothing => Event::Settings(self.settings),
        })
    }

    fn released<'f>(frame: &Frame<'f>) -> Event<'f> {
        match Signal::read(frame) {
            Ok(Signal::Release { alternative, hold_off }) => Event::Released { alternative, hold_off },
            _ => Event::Released { alternative: None, hold_off: None },
        }
    }

    fn aborted<'f>(frame: &Frame<'f>) -> Event<'f> {
        match Signal::read(frame) {
            Ok(Signal::Abort { diagnostic, .. }) => Event::Aborted { diagnostic },
            _ => Event::Aborted { diagnostic: &[] },
        }
    }
}

/// A signal without what it borrows.
#[derive(Clone, Copy)]
enum OwnedSignal {
    Csm { max_message_size: Option<u32>, block_wise: bool },
    Ping { custody: bool },
    Pong { custody: bool },
    Release,
    Abort,
    Unknown,
}

impl OwnedSignal {
    const fn of(signal: &Signal<'_>) -> Self {
        match *signal {
            Signal::Csm { max_message_size, block_wise } => Self::Csm { max_message_size, block_wise },
            Signal::Ping { custody } => Self::Ping { custody },
            Signal::Pong { custody } => Self::Pong { custody },
            Signal::Release { .. } => Self::Release,
            Signal::Abort { .. } => Self::Abort,
            Signal::Unknown => Self::Unknown,
        }
    }
}
