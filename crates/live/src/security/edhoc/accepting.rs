//! A server that takes part in handshakes.

use std::collections::VecDeque;
use std::time::Duration;

use lakers::{CBORDecoder, ConnId};
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, WriteError, Writer, number};
use millpond_coap::oscore::Context;

use super::keys::{PrivateKey, identifier};
use super::steps::{self, Answered, Fault};
use super::{EdhocCredentials, MESSAGE, PATH, TRUE};
use crate::clock::{Clock, since_start};

/// Handshakes under way. Each was begun by a message_1 that anybody can send, and costs two or three multiplications on the curve: as many
/// are begun in [`LIFETIME`] and no more, so that this bounds both what is kept and what is computed.
const MOST: usize = 256;

/// How long message_3 is waited for.
const LIFETIME: Duration = Duration::from_secs(16);

/// What is to be sent.
enum Answer {
    Message(Vec<u8>),
    Fault(Fault),
    /// Too many are under way. Until one of them is over.
    Busy(Duration),
}

#[derive(Debug)]
pub(crate) struct Acceptor {
    ours: EdhocCredentials,
    clock: Clock,
    /// When it began; the oldest first. What is over stays as nothing, so that it goes on to count.
    begun: VecDeque<(Duration, Option<Answered>)>,
}

impl Acceptor {
    pub(crate) fn new(ours: EdhocCredentials) -> Self {
        Self { ours, clock: Clock::start(), begun: VecDeque::new() }
    }

    /// Answers a request of EDHOC: appends a message, of which kind, message ID and token do not count. Calls `establish` with a context
    /// that is agreed upon, and the place of its peer among the credentials. None if it is another request.
    pub(crate) fn answer(
        &mut self,
        request: &Message<'_>,
        is_taken: impl Fn(&[u8]) -> bool,
        establish: impl FnOnce(Context, usize),
        into: &mut Vec<u8>,
    ) -> Option<()> {
        let is_understood =
            |number| matches!(number, number::URI_HOST | number::URI_PORT | number::URI_PATH | number::ACCEPT);
        let mut critical = request.options().filter(|option| option.number % 2 == 1);
        let path = PATH.split('/').skip(1).map(str::as_bytes);
        if request.code != Code::POST
            || !request.uri_path().eq(path)
            || !critical.all(|option| is_understood(option.number))
        {
            return None;
        }
        let answer = match request.payload() {
            [TRUE, message_1 @ ..] => self.begin(message_1, is_taken),
            payload => self.finish(payload, establish).unwrap_or_else(Answer::Fault),
        };
        write(&answer, into).ok()
    }

    fn begin(&mut self, message_1: &[u8], is_taken: impl Fn(&[u8]) -> bool) -> Answer {
        let now = since_start(self.clock.now());
        while self.begun.front().is_some_and(|(since, _)| now >= *since + LIFETIME) {
            self.begun.pop_front();
        }
        if let Some((oldest, _)) = self.begun.front()
            && self.begun.len() >= MOST
        {
            return Answer::Busy((*oldest + LIFETIME).saturating_sub(now));
        }
        let begun = &self.begun;
        let name = |theirs: ConnId| {
            let is_free = |id: &ConnId| {
                let waits = |answered: &Answered| answered.ours == *id;
                *id != theirs
                    && !is_taken(id.as_slice())
                    && !begun.iter().any(|(_, one)| one.as_ref().is_some_and(waits))
            };
            loop {
                let id = identifier()?;
                if is_free(&id) {
                    return Ok(id);
                }
            }
        };
        let made = PrivateKey::random()
            .map_err(Fault::from)
            .and_then(|key| steps::message_2(&key, message_1, &self.ours, name));
        // What cannot be read costs little.
        match made {
            Ok((message_2, answered)) => {
                self.begun.push_back((now, Some(answered)));
                Answer::Message(message_2)
            }
            Err(fault) => Answer::Fault(fault),
        }
    }

    fn finish(&mut self, payload: &[u8], establish: impl FnOnce(Context, usize)) -> Result<Answer, Fault> {
        let mut decoder = CBORDecoder::new(payload);
        let ours = ConnId::from_decoder(&mut decoder).map_err(|_| Fault::Malformed)?;
        let message_3 = payload.get(decoder.position()..).unwrap_or_default();
        let now = since_start(self.clock.now());
        let waits = |(since, one): &&mut (Duration, Option<Answered>)| {
            now < *since + LIFETIME && one.as_ref().is_some_and(|answered| answered.ours == ours)
        };
        // A handshake that fails is over (RFC 9528 §5.4.3).
        let mut answered = self.begun.iter_mut().find(waits).and_then(|(_, one)| one.take()).ok_or(Fault::Unawaited)?;
        let (message_4, agreed, place) = steps::message_4(&mut answered, message_3, &self.ours)?;
        establish(agreed.context()?, place);
        Ok(Answer::Message(message_4))
    }
}

fn write(answer: &Answer, into: &mut Vec<u8>) -> Result<(), WriteError> {
    let code = match answer {
        Answer::Message(_) => Code::CHANGED,
        Answer::Fault(Fault::Own) => Code::INTERNAL_SERVER_ERROR,
        Answer::Fault(_) => Code::BAD_REQUEST,
        Answer::Busy(_) => Code::SERVICE_UNAVAILABLE,
    };
    let mut writer = Writer::start(into, Kind::NonConfirmable, code, MessageId(0), Token::EMPTY);
    match answer {
        Answer::Message(message) => {
            writer.uint_option(number::CONTENT_FORMAT, MESSAGE.into())?.payload(message)?;
        }
        Answer::Fault(fault) => {
            writer.uint_option(number::CONTENT_FORMAT, MESSAGE.into())?.payload(&fault.message())?;
        }
        Answer::Busy(wait) => {
            writer.uint_option(number::MAX_AGE, wait.as_secs() as u32 + 1)?;
        }
    }
    writer.finish().map(|_| ())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
