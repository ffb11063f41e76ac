//! Requests from when they come until they are answered.

use std::{collections::VecDeque, time::Duration};

use millpond_coap::{
    ExchangeId, Outgoing, Refused, RequestId,
    message::{Code, Kind, Message, MessageId, Token, number},
    proxy::{CacheKey, Cached, NoRoom},
    quota::Source,
};
use millpond_control::Instant;

use super::{Answer, Proxy, refused};
use crate::{RunError, ledger::Tag, network::SERVER};

/// A request that was taken.
pub(super) struct Held {
    pub(super) taken: Taken,
    /// The copy that brought it.
    pub(super) tag: Tag,
    /// What it asks for, where that matters to others.
    pub(super) key: Option<CacheKey>,
    /// Since when the server is asked for it; not while it waits, for its turn or for the answer to another.
    pub(super) asked: Option<Instant>,
    /// Copies of what it was asked for with.
    pub(super) copies: u8,
}

/// A request as it came.
pub(super) struct Taken {
    pub(super) client: u32,
    pub(super) id: RequestId,
    pub(super) kind: Kind,
    pub(super) code: Code,
    pub(super) message_id: MessageId,
    pub(super) token: Token,
    pub(super) options: Vec<(u16, Vec<u8>)>,
    pub(super) payload: Vec<u8>,
}

/// The end of an exchange with the server.
pub(super) struct Ended {
    pub(super) exchange: ExchangeId,
    pub(super) answer: Option<Answer>,
}

/// What there is to do now that an exchange with the server has ended.
pub(super) enum Due {
    /// This one that it holds is answered, by what came if anything did.
    Answer(u32, Option<Answer>),
    /// It is the turn of this one.
    Ask(u32),
}

/// What becomes of a request that has come.
pub(super) enum Fate {
    /// It is asked for, now or when it is its turn.
    Held,
    /// It gets the answer to another that asks for the same.
    Shared,
    /// This was kept.
    Cached(Answer),
    /// There is no room.
    Refused(Answer),
}

impl Taken {
    pub(super) fn of(client: u32, id: RequestId, message: &Message<'_>) -> Self {
        // What names copies counts between two neighbours only, and clients send nothing else.
        let path = message.values(number::URI_PATH).map(|segment| (number::URI_PATH, segment.to_vec()));
        Self {
            client,
            id,
            kind: message.kind,
            code: message.code,
            message_id: message.id,
            token: message.token,
            options: path.collect(),
            payload: message.payload().to_vec(),
        }
    }

    /// What it asks for. There is one server.
    fn key(&self) -> CacheKey {
        let path = self.options.iter().flat_map(|(_, segment)| [b"/", &segment[..]].concat());
        CacheKey::new(self.code, path.collect(), 0, std::iter::empty(), &self.payload)
    }
}

impl Proxy {
    /// Takes a request that the copy with this tag brought.
    pub(super) fn take(&mut self, now: Instant, taken: Taken, tag: Tag) -> Result<Fate, RunError> {
        self.row.requests += 1;
        let key = (self.cache.is_some() || self.flights.is_some()).then(|| taken.key());
        let kept = self.cache.as_mut().zip(key.as_ref()).and_then(|(cache, key)| cache.get(now, key));
        if let Some(Cached::Fresh(answer)) = kept {
            self.row.answered += 1;
            return Ok(Fate::Cached(answer));
        }
        if self.held.len() >= self.most {
            return Ok(self.refuse(None));
        }
        let (number, client) = (self.begun, taken.client);
        let shared = key.clone().filter(CacheKey::is_safe);
        let shares = self.flights.as_mut().zip(shared).is_some_and(|(flights, key)| {
            // Who waits here stays until it is answered.
            flights.join(key, number, |_| false).is_none()
        });
        let turn = match &mut self.queue {
            Some(queue) if !shares => queue.take(Source::validated(client.into()), number),
            _ => Ok((!shares).then_some(number)),
        };
        self.held.insert(number, Held { taken, tag, key, asked: None, copies: 0 });
        let no_room = match turn {
            Ok(None) => None,
            Ok(Some(_)) if self.ask(now, number)? => None,
            Ok(Some(_)) => Some(None),
            Err(no_room) => Some(Some(no_room)),
        };
        if let Some(no_room) = no_room {
            let key = self.held.remove(&number).and_then(|held| held.key);
            if let (Some(flights), Some(key)) = (&mut self.flights, key) {
                flights.pass(&key);
            }
            return Ok(self.refuse(no_room));
        }
        self.begun = self.begun.wrapping_add(1);
        self.row.held_max = self.row.held_max.max(self.held.len() as u64);
        Ok(if shares { Fate::Shared } else { Fate::Held })
    }

    fn refuse(&mut self, why: Option<NoRoom>) -> Fate {
        self.row.refused += 1;
        let answer = Answer::own(Code::SERVICE_UNAVAILABLE);
        Fate::Refused(match why {
            Some(NoRoom::Full { again_in }) => answer.with_max_age(again_in),
            _ => answer,
        })
    }

    /// Asks the server for one that it holds; false if the endpoint has no room for it.
    pub(super) fn ask(&mut self, now: Instant, number: u32) -> Result<bool, RunError> {
        let Some(held) = self.held.get_mut(&number) else { return Ok(true) };
        let Taken { kind, code, options, payload, .. } = &held.taken;
        let options: Vec<(u16, &[u8])> = options.iter().map(|(number, value)| (*number, &value[..])).collect();
        let request = Outgoing { kind: *kind, ..Outgoing::confirmable(*code, &options) }
            .with_payload(payload)
            .with_retransmit(self.retransmit);
        match self.endpoint.request(now, SERVER, &request) {
            Ok(exchange) => {
                held.asked = Some(now);
                self.open.insert(exchange, number);
                Ok(true)
            }
            Err(Refused::TooManyWaiting { .. }) => Ok(false),
            Err(why) => Err(refused(why)),
        }
    }

    /// An exchange with the server has ended.
    pub(super) fn ended(&mut self, now: Instant, end: Ended) -> VecDeque<Due> {
        let Some(number) = self.open.remove(&end.exchange) else { return VecDeque::new() };
        let Some(held) = self.held.get(&number) else { return VecDeque::new() };
        let (key, asked) = (held.key.clone(), held.asked);
        let took = asked.map(|asked| Duration::from_micros(now.as_micros() - asked.as_micros()));
        let next = self.queue.as_mut().and_then(|queue| queue.done(took));
        let mut answer = end.answer;
        if let (Some(cache), Some(key)) = (&mut self.cache, &key) {
            // What may change something may have been carried out although nobody answered.
            cache.changed(key);
            answer = answer.map(|answer| cache.take(now, key, None, answer));
        }
        let waiting = self.flights.as_mut().zip(key.filter(CacheKey::is_safe)).map(|(flights, key)| flights.end(&key));
        let all = [number].into_iter().chain(waiting.into_iter().flatten());
        all.map(|number| Due::Answer(number, answer.clone())).chain(next.map(Due::Ask)).collect()
    }

    pub(super) fn respond(&mut self, now: Instant, id: RequestId, kind: Kind, answer: &Answer) -> Result<(), Refused> {
        let options = answer.options();
        let response = Outgoing { kind, ..Outgoing::confirmable(answer.code, &options) };
        self.endpoint.respond(now, id, &response.with_payload(&answer.payload).with_retransmit(self.retransmit))
    }
}
