//! The records that cross: their layout is that of C, and they hold numbers alone.

use millpond_control::{
    Admit, Chance, Class, Cx, End, Exchange, Fate, Feedback, Instant, Named, Naming, PlainMessage, Reason, ReplyKind,
    Sample, Span, Then, View, Wait, Wishes,
};

/// Which call a question is.
pub(crate) mod what {
    pub(crate) const ADMIT: u8 = 0;
    pub(crate) const ON_START: u8 = 1;
    pub(crate) const ON_TIMEOUT: u8 = 2;
    pub(crate) const ON_REPLY: u8 = 3;
    pub(crate) const ON_END: u8 = 4;
    pub(crate) const ON_PLAIN_SEND: u8 = 5;
    pub(crate) const ON_FEEDBACK: u8 = 6;
    pub(crate) const WISHES: u8 = 7;
    pub(crate) const VIEW: u8 = 8;
    pub(crate) const BASE_RTT: u8 = 9;
    pub(crate) const RECALL: u8 = 10;
    pub(crate) const SHORTEST_WAIT: u8 = 11;
    pub(crate) const LONGEST_WAIT: u8 = 12;

    /// The names in which failures are told, by number.
    pub(crate) const NAMES: [&str; 13] = [
        "admit",
        "on_start",
        "on_timeout",
        "on_reply",
        "on_end",
        "on_plain_send",
        "on_feedback",
        "wishes",
        "view",
        "base_rtt",
        "recall",
        "shortest_wait",
        "longest_wait",
    ];
}

// The numbers of words are their places here: words are added at the end.
pub(crate) const CLASSES: &[Class] = &[Class::Confirmable, Class::Plain];
pub(crate) const ENDS: &[End] = &[End::GaveUp, End::Reset, End::Cancelled];
const KINDS: &[ReplyKind] = &[ReplyKind::EmptyAck, ReplyKind::Piggybacked, ReplyKind::Separate];
const REASONS: &[Reason] = &[Reason::Initial, Reason::BackedOff, Reason::Slow, Reason::Carried, Reason::Blind];
const THENS: &[Then] = &[Then::Retransmit, Then::Abandon];
const NAMINGS: &[Naming] = &[Naming::None, Naming::Token, Naming::Count, Naming::Flag, Naming::Timestamp];
const MESSAGES: &[PlainMessage] = &[PlainMessage::Request, PlainMessage::Further, PlainMessage::Block];
const FATES: &[Fate] = &[Fate::Answered, Fate::Arrived, Fate::Lost];

/// The number of a word.
pub(crate) fn number<T: PartialEq>(words: &[T], word: T) -> u8 {
    words.iter().position(|one| *one == word).and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
}

/// The word of a number; the first one, if the other side has no such number.
pub(crate) fn word<T: Copy>(words: &[T], number: u8) -> T {
    words.get(usize::from(number)).copied().unwrap_or(words[0])
}

/// The record of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) started_us: u64,
    pub(crate) first_us: u32,
    pub(crate) current_us: u32,
    pub(crate) mark_us: u32,
    pub(crate) retransmissions: u8,
    pub(crate) series: u8,
    pub(crate) reserved: u16,
}

impl Record {
    pub(crate) fn of(exchange: &Exchange) -> Self {
        Self {
            started_us: exchange.started().as_micros(),
            first_us: exchange.first_wait().as_micros(),
            current_us: exchange.current().as_micros(),
            mark_us: exchange.mark().as_micros(),
            retransmissions: exchange.retransmissions(),
            series: exchange.series(),
            reserved: 0,
        }
    }

    /// Makes the exchange the one that this tells of.
    pub(crate) fn write(self, exchange: &mut Exchange) {
        exchange.begin(Instant::from_micros(self.started_us), Span::from_micros(self.first_us));
        for _ in 0..self.retransmissions {
            exchange.advance(Span::from_micros(self.current_us));
        }
        exchange.set_mark(Span::from_micros(self.mark_us));
        exchange.set_series(self.series);
    }
}

/// A sample; `names` 0: no copy, 1: the copy `named`, 2: one after the first; and [`MARKED`] with it, if a queue marked the reply.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct SampleRecord {
    since_first_us: u32,
    since_last_us: u32,
    since_named_us: u32,
    retransmissions: u8,
    kind: u8,
    names: u8,
    named: u8,
    len: u16,
    reply_len: u16,
}

/// See [`SampleRecord`].
const MARKED: u8 = 4;

impl SampleRecord {
    pub(crate) fn of(sample: Sample) -> Self {
        let (names, named) = match sample.named() {
            Named::Nothing => (0, 0),
            Named::Copy(copy) => (1, copy),
            Named::Further => (2, 0),
        };
        Self {
            since_first_us: sample.since_first().as_micros(),
            since_last_us: sample.since_last().as_micros(),
            since_named_us: sample.named_rtt().map_or(0, |rtt| rtt.span().as_micros()),
            retransmissions: sample.retransmissions(),
            kind: number(KINDS, sample.kind()),
            names: if sample.is_marked() { names | MARKED } else { names },
            named,
            len: sample.message_len(),
            reply_len: sample.reply_len(),
        }
    }

    pub(crate) fn sample(self) -> Sample {
        let (first, last) = (Span::from_micros(self.since_first_us), Span::from_micros(self.since_last_us));
        let sample = Sample::new(word(KINDS, self.kind), first, last, self.retransmissions);
        let sample = sample.of_bytes(self.len, self.reply_len);
        let sample = if self.names & MARKED != 0 { sample.marked() } else { sample };
        match self.names & !MARKED {
            1 => sample.naming(self.named, Span::from_micros(self.since_named_us)),
            2 => sample.naming_a_further_copy(),
            _ => sample,
        }
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct FeedbackRecord {
    since_us: u32,
    number: u32,
    len: u16,
    reply_len: u16,
    message: u8,
    fate: u8,
    reserved: u16,
}

impl FeedbackRecord {
    pub(crate) fn of(feedback: Feedback) -> Self {
        Self {
            since_us: feedback.since.as_micros(),
            number: feedback.number,
            len: feedback.len,
            reply_len: feedback.reply_len,
            message: number(MESSAGES, feedback.message),
            fate: number(FATES, feedback.fate),
            reserved: 0,
        }
    }

    pub(crate) fn feedback(self) -> Feedback {
        Feedback {
            message: word(MESSAGES, self.message),
            fate: word(FATES, self.fate),
            since: Span::from_micros(self.since_us),
            len: self.len,
            reply_len: self.reply_len,
            number: self.number,
        }
    }
}

/// One call. What a call does not have is zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Question {
    pub(crate) now_us: u64,
    pub(crate) chance: u32,
    pub(crate) open: u16,
    pub(crate) waiting: u16,
    /// A base round trip, or the longest wait of the copy before.
    pub(crate) span_us: u32,
    pub(crate) len: u16,
    pub(crate) what: u8,
    /// A class, a reason to end, the number of a copy.
    pub(crate) word: u8,
    pub(crate) exchange: Record,
    pub(crate) sample: SampleRecord,
    pub(crate) feedback: FeedbackRecord,
}

impl Question {
    pub(crate) fn of(what: u8) -> Self {
        Self { what, ..Self::default() }
    }

    pub(crate) fn at(what: u8, cx: Cx) -> Self {
        let (now_us, chance) = (cx.now.as_micros(), cx.chance.word());
        Self { what, now_us, chance, open: cx.open, waiting: cx.waiting, ..Self::default() }
    }

    pub(crate) fn cx(&self) -> Cx {
        let (now, chance) = (Instant::from_micros(self.now_us), Chance::from_word(self.chance));
        Cx { now, chance, open: self.open, waiting: self.waiting }
    }
}

/// Bytes of a failure that are told.
const TOLD: usize = 200;

/// What came back. What a call does not answer is zero.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Answer {
    at_us: u64,
    /// A wait, or one of the bounds of waits.
    pub(crate) span_us: u32,
    /// Of a view: timeout, then the estimators; the first one is a base round trip, too.
    numbers: [u32; 6],
    nstart: u16,
    /// Which of the numbers there are, the lowest bit for the first.
    kept: u8,
    /// Of a wait: what then; of `admit`: 0 now, 1 at a point in time, 2 when an exchange ends.
    choice: u8,
    reason: u8,
    naming: u8,
    confirmable_every: u8,
    governs_requests: u8,
    ecn: u8,
    pub(crate) exchange: Record,
    /// Bytes of the failure; 0: the call came back.
    failed: u8,
    failure: [u8; TOLD],
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            at_us: 0,
            span_us: 0,
            numbers: [0; 6],
            nstart: 0,
            kept: 0,
            choice: 0,
            reason: 0,
            naming: 0,
            confirmable_every: 0,
            governs_requests: 0,
            ecn: 0,
            exchange: Record::default(),
            failed: 0,
            failure: [0; TOLD],
        }
    }
}

impl Answer {
    pub(crate) fn fail(&mut self, told: &str) {
        let mut end = told.len().min(TOLD);
        while !told.is_char_boundary(end) {
            end -= 1;
        }
        self.failure[..end].copy_from_slice(&told.as_bytes()[..end]);
        self.failed = u8::try_from(end).unwrap_or(u8::MAX);
    }

    pub(crate) fn failure(&self) -> Option<String> {
        let told = self.failure.get(..usize::from(self.failed)).unwrap_or(&self.failure);
        (!told.is_empty()).then(|| String::from_utf8_lossy(told).into_owned())
    }

    pub(crate) fn set_wait(&mut self, wait: Wait, exchange: &Exchange) {
        self.span_us = wait.span.as_micros();
        (self.choice, self.reason) = (number(THENS, wait.then), number(REASONS, wait.reason));
        self.exchange = Record::of(exchange);
    }

    pub(crate) fn wait(&self) -> Wait {
        let (then, reason) = (word(THENS, self.choice), word(REASONS, self.reason));
        Wait { span: Span::from_micros(self.span_us), then, reason }
    }

    pub(crate) fn set_admit(&mut self, admit: Admit) {
        (self.choice, self.at_us) = match admit {
            Admit::Now => (0, 0),
            Admit::At(at) => (1, at.as_micros()),
            Admit::WhenOneEnds => (2, 0),
        };
    }

    pub(crate) fn admit(&self) -> Admit {
        match self.choice {
            1 => Admit::At(Instant::from_micros(self.at_us)),
            2 => Admit::WhenOneEnds,
            _ => Admit::Now,
        }
    }

    pub(crate) fn set_wishes(&mut self, wishes: Wishes) {
        self.naming = number(NAMINGS, wishes.naming);
        (self.confirmable_every, self.nstart) = (wishes.confirmable_every, wishes.nstart);
        (self.governs_requests, self.span_us) = (wishes.governs_requests.into(), wishes.last_wait.as_micros());
        self.ecn = wishes.ecn.into();
    }

    pub(crate) fn wishes(&self) -> Wishes {
        Wishes {
            naming: word(NAMINGS, self.naming),
            confirmable_every: self.confirmable_every,
            nstart: self.nstart,
            governs_requests: self.governs_requests != 0,
            last_wait: Span::from_micros(self.span_us),
            ecn: self.ecn != 0,
        }
    }

    pub(crate) fn set_numbers(&mut self, numbers: &[Option<Span>]) {
        for (place, (kept, number)) in self.numbers.iter_mut().zip(numbers).enumerate() {
            *kept = number.map_or(0, Span::as_micros);
            self.kept |= u8::from(number.is_some()) << place;
        }
    }

    pub(crate) fn number(&self, place: usize) -> Option<Span> {
        (self.kept >> place & 1 == 1).then(|| Span::from_micros(self.numbers[place]))
    }

    pub(crate) fn set_view(&mut self, view: View) {
        let View { rto, srtt, rttvar, weak_srtt, weak_rttvar, carried } = view;
        self.set_numbers(&[rto, srtt, rttvar, weak_srtt, weak_rttvar, carried]);
    }

    pub(crate) fn view(&self) -> View {
        View {
            rto: self.number(0),
            srtt: self.number(1),
            rttvar: self.number(2),
            weak_srtt: self.number(3),
            weak_rttvar: self.number(4),
            carried: self.number(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Modules that were built before have these places; other ones want another [`VERSION`](crate::VERSION).
    #[test]
    fn the_layout_is_that_of_version_1() {
        assert_eq!(crate::VERSION, 1);
        assert_eq!([size_of::<Record>(), size_of::<SampleRecord>(), size_of::<FeedbackRecord>()], [24, 20, 16]);
        assert_eq!([size_of::<Question>(), size_of::<Answer>()], [88, 280]);
        assert_eq!(
            [offset_of!(Question, exchange), offset_of!(Question, sample), offset_of!(Question, feedback)],
            [24, 48, 68]
        );
        assert_eq!(
            [
                offset_of!(Answer, nstart),
                offset_of!(Answer, ecn),
                offset_of!(Answer, exchange),
                offset_of!(Answer, failure)
            ],
            [36, 44, 48, 73]
        );
    }

    #[test]
    fn an_exchange_and_a_sample_come_back_as_they_were() {
        let mut exchange = Exchange::new();
        exchange.begin(Instant::from_micros(7), Span::from_secs(3));
        exchange.advance(Span::from_secs(5));
        exchange.advance(Span::from_secs(9));
        exchange.set_mark(Span::from_micros(11));
        exchange.set_series(2);
        let mut again = Exchange::new();
        Record::of(&exchange).write(&mut again);
        assert_eq!(again, exchange);
        let sample = Sample::new(ReplyKind::Piggybacked, Span::from_secs(9), Span::from_secs(1), 2).of_bytes(40, 1_100);
        for sample in [sample, sample.naming(1, Span::from_secs(4)), sample.naming_a_further_copy()] {
            for sample in [sample, sample.marked()] {
                assert_eq!(SampleRecord::of(sample).sample(), sample);
            }
        }
        let feedback = Feedback {
            message: PlainMessage::Block,
            fate: Fate::Lost,
            since: Span::from_secs(4),
            len: 40,
            reply_len: 3,
            number: 9,
        };
        assert_eq!(FeedbackRecord::of(feedback).feedback(), feedback);
    }

    #[test]
    fn a_long_failure_is_cut_between_letters() {
        let mut answer = Answer::default();
        answer.fail(&"ü".repeat(150));
        assert_eq!(answer.failure(), Some("ü".repeat(100)));
    }
}
