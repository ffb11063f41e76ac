//! Sessions of DTLS: what messages their records may be, by sizes and times alone.
//!
//! A device that has one request open sends it again as a record of the same size, with the next number, when its timer runs out
//! before an answer came. Timers are not seen, and taken for RFC 7252's defaults. So retransmissions are guessed, and with them
//! all that follows; what records' numbers say of losses is not.

use std::collections::{BTreeMap, VecDeque};

use millpond_coap::message::{Kind, MessageId, Token};

use crate::peers::Pair;
use crate::reading::{Message, Record, Sort};

/// The first wait with the defaults of RFC 7252 §4.8, seconds.
const FIRST: (f64, f64) = (2.0, 3.0);
/// A wait may be off by this share: packets wait in queues.
const OFF: f64 = 0.04;
/// Each wait is so many times the one before.
const BACKOFF: f64 = 2.0;
/// More transmissions are not expected of one request (MAX_RETRANSMIT 4).
const MOST: u32 = 5;
/// An answer that takes longer, seconds, is lost; and so many transmissions are followed.
const LONGEST: f64 = 10.0;
const MOST_UNANSWERED: usize = 16;
/// A server answers within so many seconds.
const AT_ONCE: f64 = 0.005;

/// Everything that is known of sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    of: BTreeMap<Pair, Session>,
    /// Numbers of records in each direction: to the server, to devices.
    pub up: Numbers,
    pub down: Numbers,
    /// How many answers more came at once than later: at a server most do.
    at_once: i64,
}

/// How many records there were, by their numbers, and how many of them were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub sent: u64,
    pub seen: u64,
}

#[derive(Clone, Debug, Default)]
struct Session {
    open: Option<Open>,
    /// When transmissions left that are not answered yet, and of which requests.
    unanswered: VecDeque<(f64, u16)>,
    requests: u16,
    /// Of each direction, the latest.
    last: [Option<(u16, u64)>; 2],
}

/// The request that is open.
#[derive(Clone, Copy, Debug)]
struct Open {
    size: usize,
    at: f64,
    /// The wait before the last transmission.
    wait: Option<f64>,
    transmissions: u32,
    is_answered: bool,
}

impl Sessions {
    /// What message a record may be that an endpoint sent `up` to a server, or down to a device, at a time in seconds; `None` of
    /// what answers nothing.
    pub(crate) fn message(&mut self, pair: Pair, up: bool, at: f64, size: usize, record: Record) -> Option<Message> {
        let session = self.of.entry(pair).or_default();
        let numbers = if up { &mut self.up } else { &mut self.down };
        let step = numbers.count(&mut session.last[usize::from(up)], record);
        if up {
            session.request(at, size, step, self.at_once < 0);
        } else {
            self.at_once += if at - session.open?.at < AT_ONCE { 1 } else { -1 };
            session.answer(at);
        }
        Some(Message {
            kind: if up { Kind::Confirmable } else { Kind::Acknowledgement },
            sort: if up { Sort::Request } else { Sort::Response },
            id: MessageId(session.requests),
            token: Token::EMPTY,
            payload: 0,
            observes: false,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    pub(crate) fn knows(&self, pair: &Pair) -> bool {
        self.of.contains_key(pair)
    }
}

impl Session {
    /// Answers come in the order of what they answer.
    fn answer(&mut self, at: f64) {
        self.unanswered.retain(|(sent, _)| at - sent < LONGEST);
        let answered = self.unanswered.pop_front();
        if let Some(open) = &mut self.open {
            open.is_answered |= answered.is_some_and(|(_, request)| request == self.requests);
        }
    }

    /// `step` is how much its number is above that of the record before. At a device none is sent again that was answered.
    fn request(&mut self, at: f64, size: usize, step: Option<u64>, at_device: bool) {
        let is_copy = self
            .open
            .is_some_and(|open| !(at_device && open.is_answered) && size == open.size && open.is_due(at, step));
        if is_copy && let Some(open) = &mut self.open {
            (open.wait, open.at, open.transmissions) = (Some(at - open.at), at, open.transmissions + 1);
        } else {
            self.requests = self.requests.wrapping_add(1);
            self.open = Some(Open { size, at, wait: None, transmissions: 1, is_answered: false });
        }
        if self.unanswered.len() == MOST_UNANSWERED {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back((at, self.requests));
    }
}

impl Open {
    /// Whether it may be sent again now.
    fn is_due(&self, at: f64, step: Option<u64>) -> bool {
        let gap = at - self.at;
        let (shortest, longest) = self.wait.map_or(FIRST, |wait| (BACKOFF * wait, BACKOFF * wait));
        let is_so = |times: f64| ((1.0 - OFF) * times * shortest..=(1.0 + OFF) * times * longest).contains(&gap);
        // The next transmission, or the one behind it if that was lost: then a number is missing. If it is missing and the time
        // is that of the next, the first of another request was lost.
        let is_next = step.is_none_or(|step| step == 1) && is_so(1.0);
        self.transmissions < MOST && (is_next || step.is_none_or(|step| step == 2) && is_so(1.0 + BACKOFF))
    }
}

impl Numbers {
    /// Numbers go up by one with each record; after a new epoch they begin anew. Gives how far above the one before it is.
    fn count(&mut self, last: &mut Option<(u16, u64)>, record: Record) -> Option<u64> {
        /// A number that is so far ahead is not believed.
        const FAR: u64 = 1 << 16;
        let (epoch, number) = record.number?;
        self.seen += 1;
        let step = match *last {
            Some((known, before)) if known == epoch && (before.saturating_add(1)..before + FAR).contains(&number) => {
                number - before
            }
            // One that was overtaken, and counted when a later one came.
            Some((known, before)) if known == epoch && number <= before => return None,
            _ => 1,
        };
        self.sent += step;
        *last = Some((epoch, number));
        Some(step)
    }

    pub(crate) fn missing(&self) -> u64 {
        self.sent.saturating_sub(self.seen)
    }
}
