//! What comes in over a connection, and what it means to the application.

use core::ops::Range;

use millpond_control::Instant;

use super::{
    super::{BadSignal, Closing, Frame, Settings, Signal, StreamRefused, write_extended},
    Connection, MOST_HELD_PONGS, Releasing,
};
use crate::{
    RequestId,
    invariant::Sure,
    long_tokens::unpadded,
    message::{Code, Token, number},
    output::OutputKind,
};

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

    /// Takes a frame in and says what it means, if anything.
    pub(super) fn take(&mut self, now: Instant, place: Range<usize>) -> Option<OutputKind> {
        let frame = self.reader.frame(place.clone()).sure("frame that was read")?;
        let code = frame.code;
        if !self.settled && code.to_byte() != 0xe1 {
            self.abort_for(Closing::NoSettings, None, "the first message must be a CSM");
            return None;
        }
        if code.is_empty() {
            return None;
        }
        let token = match frame.token {
            token if !token.is_long() => token,
            token if Signal::is(code) && code.to_byte() != 0xe2 => token,
            _ if code.is_response() => unpadded(frame.token_bytes(), self.options.token_length.into()),
            _ => {
                let long = frame.token_bytes();
                // At once, for its token is not kept: without Custody that says no more than that this side is there.
                let kept = match code.is_request() {
                    false => Err((Code::from_byte(0xe3), &[][..])),
                    true if long.len() > self.options.longest_token.into() => {
                        Err((Code::BAD_REQUEST, &b"token too long"[..]))
                    }
                    true => self.incoming.keep_token(long).ok_or((Code::SERVICE_UNAVAILABLE, &[][..])),
                };
                match kept {
                    Ok(token) => token,
                    Err((code, payload)) => {
                        // A token that the other side can send it can take.
                        let _length = write_extended(&mut self.outbox, code, long, &[], payload, u32::MAX);
                        return None;
                    }
                }
            }
        };
        if Signal::is(code) {
            return self.take_signal(place);
        }
        if code.is_request() {
            return self.take_request(token);
        }
        let notifies = frame.option(number::OBSERVE).is_some() && code.class() == 2;
        self.take_response(now, token, notifies)
    }

    fn refuse(&mut self, bad: BadSignal) -> Option<OutputKind> {
        use alloc::string::ToString;
        let option = (bad.code.to_byte() == 0xe1).then_some(bad.number);
        self.abort_for(Closing::BadSignal(bad), option, &bad.to_string());
        None
    }

    fn take_signal(&mut self, place: Range<usize>) -> Option<OutputKind> {
        let frame = self.reader.frame(place)?;
        let token = frame.token;
        let signal = match Signal::read(&frame) {
            Ok(signal) => signal,
            Err(bad) => return self.refuse(bad),
        };
        match signal {
            Signal::Csm { max_message_size, block_wise, longest_token } => {
                self.settled = true;
                if let Some(size) = max_message_size {
                    self.settings.max_message_size = size;
                }
                self.settings.block_wise |= block_wise;
                if let Some(length) = longest_token {
                    self.settings.longest_token = length.max(Settings::BASE.longest_token);
                }
                Some(OutputKind::Settings)
            }
            Signal::Ping { custody: true } if self.incoming.unanswered() > 0 => {
                if self.held_pongs.len() >= MOST_HELD_PONGS {
                    self.abort_for(Closing::TooManyPings, None, "too many pings wait for answers");
                    return None;
                }
                self.held_pongs.push_back((self.incoming.latest(), token));
                None
            }
            Signal::Ping { custody } => {
                self.signal(Signal::Pong { custody }, token);
                None
            }
            Signal::Pong { .. } => {
                if self.ping.is_some_and(|ping| ping.token == token) {
                    self.ping = None;
                    return Some(OutputKind::Signal);
                }
                None
            }
            Signal::Release { .. } => {
                self.releasing = Some(Releasing { theirs: true, due: self.releasing.and_then(|ours| ours.due) });
                self.after_answer();
                Some(OutputKind::Signal)
            }
            Signal::Abort { .. } => {
                self.end(Closing::AbortedByPeer);
                Some(OutputKind::Signal)
            }
            Signal::Unknown => None,
        }
    }

    fn take_request(&mut self, token: Token) -> Option<OutputKind> {
        if !self.options.serves {
            self.answer_by_code(Code::NOT_IMPLEMENTED, token);
            self.incoming.release_token(token);
            return None;
        }
        // Whatever it asks, what is observed with its token is so no longer (RFC 7641 §3.6, §4.1): a request that registers
        // again takes the place of the one before.
        if let Some(id) = self.incoming.observing(token) {
            self.incoming.answered(id, false);
            self.notices.push_back(OutputKind::Unobserved { request: id, token });
        }
        if self.incoming.len() as u64 >= u64::from(self.options.requests) {
            self.answer_by_code(Code::SERVICE_UNAVAILABLE, token);
            self.incoming.release_token(token);
            return None;
        }
        Some(OutputKind::Request { id: self.incoming.add(token) })
    }

    /// A request gets an answer without anything, whatever the other side takes: what it asked is over in any case.
    pub(super) fn answer_plainly(&mut self, id: RequestId, code: Code) -> Result<(), StreamRefused> {
        self.check_open()?;
        let request = self.incoming.get(id).ok_or(StreamRefused::UnknownRequest)?;
        self.answer_by_code(code, request.token);
        self.was_answered_protected(id, false);
        self.incoming.answered(id, false);
        self.after_answer();
        Ok(())
    }

    fn answer_by_code(&mut self, code: Code, token: Token) {
        let Some(token) = self.incoming.token_bytes(&token) else { return };
        // Two bytes and a token fit whatever the other side takes.
        let _length = write_extended(&mut self.outbox, code, token, &[], &[], u32::MAX);
    }

    /// A frame with the token by which its request is known here.
    pub(super) fn named<'f>(&self, frame: Frame<'f>, kind: &OutputKind) -> Frame<'f> {
        let token = match kind {
            _ if !frame.token.is_long() => return frame,
            OutputKind::Request { id } => self.incoming.get(*id).map_or(frame.token, |request| request.token),
            _ => unpadded(frame.token_bytes(), self.options.token_length.into()),
        };
        frame.named(token)
    }

    fn take_response(&mut self, now: Instant, token: Token, notifies: bool) -> Option<OutputKind> {
        let Some((id, observes, is_first)) = self.outgoing.answered(token) else {
            self.quarantine.answered(now, token);
            return Some(OutputKind::Unasked);
        };
        let last = !(observes && notifies);
        if last {
            self.outgoing.remove(id);
        }
        self.after_answer();
        Some(match is_first {
            true => OutputKind::Response { exchange: id, sample: None, copies: 1 },
            false => OutputKind::AdditionalResponse { exchange: id },
        })
    }

    /// Something was answered: pongs may be due, and a release may be complete.
    pub(super) fn after_answer(&mut self) {
        while let Some(&(latest, token)) = self.held_pongs.front() {
            if self.incoming.is_unanswered_up_to(latest) {
                break;
            }
            self.held_pongs.pop_front();
            self.signal(Signal::Pong { custody: true }, token);
        }
        if self.releasing.is_some_and(|releasing| releasing.theirs) && self.is_quiet() {
            self.end(Closing::Released);
        }
    }
}
