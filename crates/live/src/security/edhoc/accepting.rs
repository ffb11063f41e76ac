//! A server that takes part in handshakes.

use std::collections::VecDeque;
use std::time::Duration;

use lakers::{CBORDecoder, ConnId};
use millpond_coap::message::{Code, Kind, Message, MessageId, Token, WriteError, Writer, number};
use millpond_coap::oscore::Context;
use millpond_coap::quota::{Full, Shares, Source, Usage};

use super::keys::{PrivateKey, identifier};
use super::steps::{self, Answered, Fault};
use super::{EdhocCredentials, MESSAGE, PATH, TRUE};
use crate::clock::{Clock, since_start};

/// Handshakes under way. Each was begun by a message_1 that anybody can send, and costs two or three multiplications on the curve: as many
/// are begun in [`LIFETIME`] and no more, so that this bounds both what is kept and what is computed.
const SHARES: Shares = Shares::of_places(256);

/// How long message_3 is waited for.
const LIFETIME: Duration = Duration::from_secs(16);

/// What is to be sent.
enum Answer {
    Message(Vec<u8>),
    Fault(Fault),
    /// Too many are under way, or of one source. Until one of them is over.
    Busy(Duration),
}

#[derive(Debug)]
pub(crate) struct Acceptor {
    ours: EdhocCredentials,
    clock: Clock,
    /// When it began; the oldest first. What is over stays as nothing, so that it goes on to count.
    begun: VecDeque<Begun>,
    usage: Usage,
}

#[derive(Debug)]
struct Begun {
    at: Duration,
    from: Source,
    /// Until message_3 has come.
    answered: Option<Answered>,
}

impl Acceptor {
    pub(crate) fn new(ours: EdhocCredentials) -> Self {
        Self { ours, clock: Clock::start(), begun: VecDeque::new(), usage: Usage::new() }
    }

    /// By which the credential at this place names its key.
    pub(crate) fn kid(&self, place: usize) -> Option<&[u8]> {
        self.ours.peers.get(place)?.kid.as_ref().map(|kid| kid.as_slice())
    }

    /// Whether a credential has this kid.
    pub(crate) fn accepts(&self, kid: &[u8]) -> bool {
        (0..self.ours.peers.len()).any(|place| self.kid(place) == Some(kid))
    }

    /// Whether it is a request of EDHOC.
    pub(crate) fn is_for(&self, request: &Message<'_>) -> bool {
        let is_understood =
            |number| matches!(number, number::URI_HOST | number::URI_PORT | number::URI_PATH | number::ACCEPT);
        let mut critical = request.options().filter(|option| option.number % 2 == 1);
        let path = PATH.split('/').skip(1).map(str::as_bytes);
        request.code == Code::POST && request.uri_path().eq(path) && critical.all(|option| is_understood(option.number))
    }

    /// Answers a request of EDHOC: appends a message, of which kind, message ID and token do not count. Calls `establish` with a context
    /// that is agreed upon, and the place of its peer among the credentials. None if it is another request.
    pub(crate) fn answer(
        &mut self,
        (request, from): (&Message<'_>, Source),
        is_taken: impl Fn(&[u8]) -> bool,
        establish: impl FnOnce(Context, usize),
        into: &mut Vec<u8>,
    ) -> Option<()> {
        if !self.is_for(request) {
            return None;
        }
        let answer = match request.payload() {
            [TRUE, message_1 @ ..] => self.begin(message_1, from, is_taken),
            payload => self.finish(payload, establish).unwrap_or_else(Answer::Fault),
        };
        write(&answer, into).ok()
    }

    fn begin(&mut self, message_1: &[u8], from: Source, is_taken: impl Fn(&[u8]) -> bool) -> Answer {
        let now = since_start(self.clock.now());
        while let Some(oldest) = self.begun.front().filter(|begun| now >= begun.at + LIFETIME) {
            self.usage.remove(oldest.from, 1);
            self.begun.pop_front();
        }
        let full = self.usage.full(&SHARES, from, 1);
        if full != Full::default() {
            let gives_way = |begun: &&Begun| match full {
                Full { all: true, .. } => true,
                Full { network: true, .. } => begun.from.network == from.network,
                Full { unvalidated: true, .. } => !begun.from.is_validated,
                _ => begun.from == from,
            };
            let oldest = self.begun.iter().find(gives_way).map_or(now, |begun| begun.at);
            return Answer::Busy((oldest + LIFETIME).saturating_sub(now));
        }
        let begun = &self.begun;
        let name = |theirs: ConnId| {
            let is_free = |id: &ConnId| {
                let waits = |answered: &Answered| answered.ours == *id;
                *id != theirs
                    && !is_taken(id.as_slice())
                    && !begun.iter().any(|begun| begun.answered.as_ref().is_some_and(waits))
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
                self.usage.add(from, 1);
                self.begun.push_back(Begun { at: now, from, answered: Some(answered) });
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
        let waits = |begun: &&mut Begun| {
            now < begun.at + LIFETIME && begun.answered.as_ref().is_some_and(|answered| answered.ours == ours)
        };
        // A handshake that fails is over (RFC 9528 §5.4.3).
        let mut answered =
            self.begun.iter_mut().find(waits).and_then(|begun| begun.answered.take()).ok_or(Fault::Unawaited)?;
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
