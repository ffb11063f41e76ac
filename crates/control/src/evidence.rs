//! What a reply says about the round-trip time, in three grades.
//!
//! A reply to a message that was sent once, or that names the last copy, gives an *exact* sample. A reply
//! that names an earlier copy gives an upper bound (*echoed*): a server that answers duplicates with its
//! stored reply (RFC 7252 §4.5) names the copy it processed, not the copy whose reply got through. A reply to
//! a message sent several times that names nothing is *ambiguous*. Estimators that must not sample ambiguous
//! exchanges (Karn's rule; RFC 8961 §4 (2d)) take only [`ExactRtt`], which has no other constructor.
//!
//! One case remains in which a named last copy is too long a sample: a later copy overtook an earlier one on the way to a
//! server with stored replies, and the reply to the later one was lost (`docs/naming-copies.md`).

use crate::time::Span;

/// What kind of message ended the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplyKind {
    /// An empty acknowledgement; it has no token and so never names a copy.
    EmptyAck,
    /// A response inside the acknowledgement; the time includes the server's own.
    Piggybacked,
    /// A separate response that came before, or instead of, the acknowledgement. No RTT sample.
    Separate,
}

/// A round-trip time that belongs to one copy: that of a message sent once, or of the last copy, named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExactRtt(Span);

impl ExactRtt {
    /// The round-trip time.
    #[must_use]
    pub const fn span(self) -> Span {
        self.0
    }

    /// That of a message sent once, from when it left to its answer.
    pub(crate) const fn of_a_single_copy(span: Span) -> Self {
        Self(span)
    }
}

/// A round-trip time on the word of a reply that names a copy: of that copy, or longer where the server answered a
/// duplicate with its stored reply. For estimators that believe such replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedRtt(Span);

impl NamedRtt {
    /// The round-trip time.
    #[must_use]
    pub const fn span(self) -> Span {
        self.0
    }
}

/// A sample and how far it may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// One copy was sent, or the reply names the last one.
    Exact(ExactRtt),
    /// The reply names an earlier copy: at most this long, usually just this long.
    Echoed {
        /// From the copy that the reply names.
        at_most: Span,
    },
    /// Several copies were sent and the reply does not say which one it answers.
    Ambiguous {
        /// From the first copy: the longest it can have been.
        at_most: Span,
        /// From the last copy: the shortest it can have been.
        at_least: Span,
        /// Retransmissions.
        retransmissions: u8,
    },
    /// The reply says nothing about the path (a separate response).
    None,
}

/// The evidence that ends an exchange, as the endpoint saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    since_first: Span,
    since_last: Span,
    since_named: Span,
    retransmissions: u8,
    named: u8,
    kind: ReplyKind,
    is_marked: bool,
    len: u16,
    reply_len: u16,
}

/// Marks a sample whose reply names no copy.
const NAMES_NONE: u8 = u8::MAX;
/// Marks a sample whose reply names some copy after the first.
const NAMES_FURTHER: u8 = u8::MAX - 1;

/// Which copy of a message a reply names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// None.
    Nothing,
    /// The copy with this number, 0 being the first.
    Copy(u8),
    /// One after the first, not said which.
    Further,
}

impl Sample {
    /// A reply that names no copy. `since_first` and `since_last` count from the first and the last copy,
    /// `retransmissions` is how many copies followed the first.
    #[must_use]
    pub const fn new(kind: ReplyKind, since_first: Span, since_last: Span, retransmissions: u8) -> Self {
        Self {
            since_first,
            since_last,
            since_named: Span::ZERO,
            retransmissions,
            named: NAMES_NONE,
            kind,
            is_marked: false,
            len: 0,
            reply_len: 0,
        }
    }

    /// The same, of a message of `len` bytes of CoAP, answered by one of `reply_len` bytes.
    #[must_use]
    pub const fn of_bytes(self, len: u16, reply_len: u16) -> Self {
        Self { len, reply_len, ..self }
    }

    /// The same, but the reply names copy number `copy` (0 is the first), sent `since_named` ago.
    /// A copy number that was never sent names nothing.
    #[must_use]
    pub const fn naming(self, copy: u8, since_named: Span) -> Self {
        if copy > self.retransmissions || copy >= NAMES_FURTHER {
            return self;
        }
        Self { since_named, named: copy, ..self }
    }

    /// The same, but the reply says that it answers a copy after the first, and not which. Of a message with one
    /// retransmission that is the last copy; of one with none it names nothing.
    #[must_use]
    pub const fn naming_a_further_copy(self) -> Self {
        match self.retransmissions {
            0 => self,
            1 => self.naming(1, self.since_last),
            _ => Self { named: NAMES_FURTHER, ..self },
        }
    }

    /// The same, but a queue marked the reply in place of dropping it (ECN, RFC 3168).
    #[must_use]
    pub const fn marked(self) -> Self {
        Self { is_marked: true, ..self }
    }

    /// Whether a queue marked the reply in place of dropping it. Only a controller that [asks for it](crate::Wishes::ecn) is told.
    #[must_use]
    pub const fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Time from the first copy to the reply.
    #[must_use]
    pub const fn since_first(&self) -> Span {
        self.since_first
    }

    /// Retransmissions before the reply came.
    #[must_use]
    pub const fn retransmissions(&self) -> u8 {
        self.retransmissions
    }

    /// What kind of message the reply was.
    #[must_use]
    pub const fn kind(&self) -> ReplyKind {
        self.kind
    }

    /// Time from the last copy to the reply.
    #[must_use]
    pub const fn since_last(&self) -> Span {
        self.since_last
    }

    /// The length of one copy of the message, bytes of CoAP; zero if the caller does not know.
    #[must_use]
    pub const fn message_len(&self) -> u16 {
        self.len
    }

    /// The length of the reply, bytes of CoAP; zero if the caller does not know.
    #[must_use]
    pub const fn reply_len(&self) -> u16 {
        self.reply_len
    }

    /// The copy that the reply names.
    #[must_use]
    pub const fn named(&self) -> Named {
        match self.named {
            NAMES_NONE => Named::Nothing,
            NAMES_FURTHER => Named::Further,
            copy => Named::Copy(copy),
        }
    }

    /// The grade of this sample.
    #[must_use]
    pub const fn evidence(&self) -> Evidence {
        if matches!(self.kind, ReplyKind::Separate) {
            return Evidence::None;
        }
        if self.retransmissions == 0 {
            return Evidence::Exact(ExactRtt(self.since_first));
        }
        if self.named >= NAMES_FURTHER {
            return Evidence::Ambiguous {
                at_most: self.since_first,
                at_least: self.since_last,
                retransmissions: self.retransmissions,
            };
        }
        if self.named == self.retransmissions {
            return Evidence::Exact(ExactRtt(self.since_named));
        }
        Evidence::Echoed { at_most: self.since_named }
    }

    /// The round-trip time on the word of the reply, if it names a copy.
    #[must_use]
    pub const fn named_rtt(&self) -> Option<NamedRtt> {
        match (self.kind, self.named()) {
            (ReplyKind::Separate, _) | (_, Named::Nothing | Named::Further) => None,
            (_, Named::Copy(_)) => Some(NamedRtt(self.since_named)),
        }
    }

    /// The round-trip time, if it is certain.
    #[must_use]
    pub const fn exact(&self) -> Option<ExactRtt> {
        match self.evidence() {
            Evidence::Exact(rtt) => Some(rtt),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Span = Span::from_secs(7);
    const LAST: Span = Span::from_secs(1);

    #[test]
    fn a_message_sent_once_gives_an_exact_sample() {
        let sample = Sample::new(ReplyKind::Piggybacked, FIRST, FIRST, 0);
        assert_eq!(sample.exact().map(ExactRtt::span), Some(FIRST));
    }

    #[test]
    fn several_copies_and_no_name_is_ambiguous() {
        let sample = Sample::new(ReplyKind::EmptyAck, FIRST, LAST, 2);
        assert_eq!(sample.evidence(), Evidence::Ambiguous { at_most: FIRST, at_least: LAST, retransmissions: 2 });
        assert_eq!(sample.exact(), None);
    }

    #[test]
    fn only_the_last_copy_named_is_exact() {
        let sample = Sample::new(ReplyKind::Piggybacked, FIRST, LAST, 2);
        assert_eq!(sample.naming(2, LAST).exact().map(ExactRtt::span), Some(LAST));
        let middle = Span::from_secs(3);
        assert_eq!(sample.naming(1, middle).evidence(), Evidence::Echoed { at_most: middle });
        assert_eq!(sample.naming(3, middle), sample, "a copy that was never sent names nothing");
    }

    #[test]
    fn a_further_copy_is_exact_only_if_there_was_one() {
        let twice = Sample::new(ReplyKind::Piggybacked, FIRST, LAST, 1).naming_a_further_copy();
        assert_eq!((twice.named(), twice.exact().map(ExactRtt::span)), (Named::Copy(1), Some(LAST)));
        let thrice = Sample::new(ReplyKind::Piggybacked, FIRST, LAST, 2).naming_a_further_copy();
        assert_eq!((thrice.named(), thrice.exact()), (Named::Further, None));
        let once = Sample::new(ReplyKind::Piggybacked, FIRST, FIRST, 0);
        assert_eq!(once.naming_a_further_copy(), once);
    }

    #[test]
    fn only_a_reply_that_names_a_copy_is_believed() {
        let sample = Sample::new(ReplyKind::Piggybacked, FIRST, LAST, 2);
        assert_eq!(sample.named_rtt(), None);
        assert_eq!(sample.naming_a_further_copy().named_rtt(), None);
        for (copy, rtt) in [(0, FIRST), (1, Span::from_secs(3)), (2, LAST)] {
            assert_eq!(sample.naming(copy, rtt).named_rtt().map(NamedRtt::span), Some(rtt));
        }
        let separate = Sample::new(ReplyKind::Separate, FIRST, LAST, 2);
        assert_eq!(separate.naming(2, LAST).named_rtt(), None);
    }

    #[test]
    fn a_separate_response_gives_no_sample() {
        assert_eq!(Sample::new(ReplyKind::Separate, FIRST, FIRST, 0).evidence(), Evidence::None);
    }

    #[test]
    fn bytes_change_nothing_else() {
        let sample = Sample::new(ReplyKind::Piggybacked, FIRST, LAST, 2).naming(2, LAST);
        assert_eq!((sample.message_len(), sample.reply_len()), (0, 0));
        let told = sample.of_bytes(40, 1_100);
        assert_eq!((told.message_len(), told.reply_len(), told.evidence()), (40, 1_100, sample.evidence()));
    }

    #[test]
    fn a_mark_changes_nothing_else() {
        let sample = Sample::new(ReplyKind::Piggybacked, FIRST, LAST, 2).naming(2, LAST);
        assert!(!sample.is_marked() && sample.marked().is_marked());
        assert_eq!(sample.marked().evidence(), sample.evidence());
    }

    #[test]
    fn a_sample_fits_twenty_bytes() {
        assert_eq!(size_of::<Sample>(), 20);
    }
}
