use alloc::boxed::Box;

use super::{Failure, Ignored, Repeats};
use crate::message::{Fault, Kind, ParseError};

/// What an endpoint has counted since it was made.
///
/// `begun` = `answered` + `delivered` + all of `failed` + [`Endpoint::exchanges`](super::Endpoint::exchanges), always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams that left.
    pub sent: Kinds,
    /// Well-formed messages that came in, duplicates and unexpected ones included.
    pub received: Kinds,
    /// Copies of confirmable messages after the first.
    pub retransmissions: u64,
    /// Requests handed to the application.
    pub requests: u64,
    /// Additional responses handed to the application.
    pub additional_responses: u64,
    /// Non-confirmable messages of ours that were answered with a reset.
    pub rejected: u64,
    /// Messages that came in once more and were recognised.
    pub duplicates: u64,
    /// Responses, acknowledgements and resets that nothing waited for.
    pub late: u64,
    /// Requests, pings, and confirmable separate and additional responses accepted for sending; of requests that want no response
    /// (RFC 7967) the confirmable ones.
    pub begun: u64,
    /// Requests that got their response, and pings that were answered.
    pub answered: u64,
    /// Confirmable separate and additional responses, and requests that want no response, that were acknowledged.
    pub delivered: u64,
    /// Requests and confirmable separate responses that ended otherwise.
    pub failed: Failures,
    /// Datagrams that were not processed.
    pub ignored: Reasons,
    /// Peers forgotten to make room.
    pub forgotten_peers: u64,
    /// Handled messages forgotten before their time to make room.
    pub forgotten_duplicates: u64,
    /// What became of copies of requests under [`Duplicates::Calm`](super::Duplicates::Calm).
    pub repeats: Repeats,
}

/// A count for each kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Kinds {
    /// CON.
    pub confirmable: u64,
    /// NON.
    pub non_confirmable: u64,
    /// ACK, empty or not.
    pub acknowledgement: u64,
    /// RST.
    pub reset: u64,
}

/// A count for each [`Failure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Failures {
    /// [`Failure::GaveUp`].
    pub gave_up: u64,
    /// [`Failure::Reset`].
    pub reset: u64,
    /// [`Failure::Cancelled`].
    pub cancelled: u64,
    /// [`Failure::NoResponse`].
    pub no_response: u64,
    /// [`Failure::BadOption`], [`Failure::LongResponse`] and [`Failure::WrongToken`]: answers that could not be taken.
    pub bad_option: u64,
}

/// A count for each reason in [`Ignored`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reasons {
    /// [`Ignored::Malformed`].
    pub malformed: u64,
    /// [`Ignored::TooLong`] and [`Ignored::LongToken`].
    pub too_long: u64,
    /// [`Ignored::Unmatched`], [`Ignored::NotForGroups`] and [`Ignored::BadOption`].
    pub unmatched: u64,
    /// [`Ignored::Ping`].
    pub pings: u64,
    /// [`Ignored::NoRoom`].
    pub no_room: u64,
}

impl Kinds {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { confirmable, non_confirmable, acknowledgement, reset } = *self;
        confirmable.saturating_add(non_confirmable).saturating_add(acknowledgement).saturating_add(reset)
    }
}

impl Failures {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { gave_up, reset, cancelled, no_response, bad_option } = *self;
        let ends = [gave_up, reset, cancelled, no_response, bad_option];
        ends.into_iter().fold(0, u64::saturating_add)
    }
}

impl Reasons {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { malformed, too_long, unmatched, pings, no_room } = *self;
        malformed.saturating_add(too_long).saturating_add(unmatched).saturating_add(pings).saturating_add(no_room)
    }
}

/// What there is to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Sent(Kind),
    Received(Kind),
    Failed(Failure),
    Ignored(Ignored),
    Retransmission,
    Request,
    Duplicate,
    Late,
    Begun,
    Answered,
    Delivered,
    ForgottenPeer,
    ForgottenDuplicate,
    AdditionalResponse,
    Rejected,
}

/// Places for all of [`Count`].
const PLACES: usize = 29;

impl Count {
    #[inline]
    const fn place(self) -> usize {
        match self {
            Self::Sent(kind) => kind as usize,
            Self::Received(Kind::Confirmable) => 4,
            Self::Received(Kind::NonConfirmable) => 5,
            Self::Received(Kind::Acknowledgement) => 6,
            Self::Received(Kind::Reset) => 7,
            Self::Failed(Failure::GaveUp) => 8,
            Self::Failed(Failure::Reset) => 9,
            Self::Failed(Failure::Cancelled | Failure::ConnectionClosed) => 10,
            Self::Failed(Failure::NoResponse) => 11,
            Self::Ignored(Ignored::Malformed(_)) => 12,
            Self::Ignored(Ignored::TooLong { .. } | Ignored::LongToken { .. }) => 13,
            Self::Ignored(Ignored::Unmatched | Ignored::NotForGroups | Ignored::NotServed | Ignored::BadOption) => 14,
            Self::Ignored(Ignored::Ping) => 15,
            Self::Ignored(Ignored::NoRoom) => 16,
            Self::Retransmission => 17,
            Self::Request => 18,
            Self::Duplicate => 19,
            Self::Late => 20,
            Self::Begun => 21,
            Self::Answered => 22,
            Self::Delivered => 23,
            Self::ForgottenPeer => 24,
            Self::ForgottenDuplicate => 25,
            Self::AdditionalResponse => 26,
            Self::Rejected => 27,
            // Not counted is one whose protection is wrong: its message was answered.
            Self::Failed(Failure::BadOption | Failure::LongResponse | Failure::WrongToken | Failure::Protection(_)) => {
                28
            }
        }
    }
}

/// The counters as an endpoint keeps them. What goes beyond 16 bits takes no room until one of them does: most endpoints
/// are clients that never count so far.
#[derive(Debug)]
pub(super) struct Counts {
    /// The number of the endpoint that counts. Here there is room for it.
    pub(super) node: u32,
    low: [u16; PLACES],
    /// How often each of `low` has overflowed.
    high: Option<Box<[u64; PLACES]>>,
}

impl Counts {
    /// An endpoint has this number, and has done nothing yet.
    pub(super) const fn of(node: u32) -> Self {
        Self { node, low: [0; PLACES], high: None }
    }

    #[inline]
    pub(super) fn one_more(&mut self, count: Count) {
        if let Some(low) = self.low.get_mut(count.place()) {
            *low = low.wrapping_add(1);
            if *low == 0 {
                self.carry(count);
            }
        }
    }

    #[cold]
    fn carry(&mut self, count: Count) {
        let high = self.high.get_or_insert_default();
        if let Some(high) = high.get_mut(count.place()) {
            *high = high.saturating_add(1);
        }
    }

    /// Bytes held on the heap.
    pub(super) fn memory(&self) -> usize {
        self.high.as_deref().map_or(0, size_of_val)
    }

    pub(super) fn get(&self, count: Count) -> u64 {
        let low = self.low.get(count.place()).copied().map_or(0, u64::from);
        let high = self.high.as_deref().and_then(|high| high.get(count.place())).copied().unwrap_or(0);
        high.saturating_mul(1 << 16).saturating_add(low)
    }

    /// All of them.
    pub(super) fn all(&self) -> Counters {
        let kinds = |count: fn(Kind) -> Count| Kinds {
            confirmable: self.get(count(Kind::Confirmable)),
            non_confirmable: self.get(count(Kind::NonConfirmable)),
            acknowledgement: self.get(count(Kind::Acknowledgement)),
            reset: self.get(count(Kind::Reset)),
        };
        let failed = |why| self.get(Count::Failed(why));
        let ignored = |why| self.get(Count::Ignored(why));
        Counters {
            sent: kinds(Count::Sent),
            received: kinds(Count::Received),
            retransmissions: self.get(Count::Retransmission),
            requests: self.get(Count::Request),
            additional_responses: self.get(Count::AdditionalResponse),
            rejected: self.get(Count::Rejected),
            duplicates: self.get(Count::Duplicate),
            late: self.get(Count::Late),
            begun: self.get(Count::Begun),
            answered: self.get(Count::Answered),
            delivered: self.get(Count::Delivered),
            failed: Failures {
                gave_up: failed(Failure::GaveUp),
                reset: failed(Failure::Reset),
                cancelled: failed(Failure::Cancelled),
                no_response: failed(Failure::NoResponse),
                bad_option: failed(Failure::BadOption),
            },
            ignored: Reasons {
                malformed: ignored(Ignored::Malformed(ANY_FAULT)),
                too_long: ignored(Ignored::TooLong { is_answered: false }),
                unmatched: ignored(Ignored::Unmatched),
                pings: ignored(Ignored::Ping),
                no_room: ignored(Ignored::NoRoom),
            },
            forgotten_peers: self.get(Count::ForgottenPeer),
            forgotten_duplicates: self.get(Count::ForgottenDuplicate),
            repeats: Repeats::default(),
        }
    }
}

/// Malformed messages share one counter.
const ANY_FAULT: ParseError = ParseError { at: 0, fault: Fault::ShortHeader, header: None };

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_count_has_a_place_of_its_own() {
        use Count::*;
        let kinds = [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset];
        let failures = [Failure::GaveUp, Failure::Reset, Failure::Cancelled, Failure::NoResponse, Failure::BadOption];
        let reasons = [
            self::Ignored::Malformed(ANY_FAULT),
            self::Ignored::TooLong { is_answered: false },
            self::Ignored::Unmatched,
        ]
        .into_iter()
        .chain([self::Ignored::Ping, self::Ignored::NoRoom]);
        let mut places: Vec<usize> = kinds
            .into_iter()
            .flat_map(|kind| [Sent(kind), Received(kind)])
            .chain(failures.map(Failed))
            .chain(reasons.map(Count::Ignored))
            .chain([Retransmission, Request, Duplicate, Late, Begun, Answered, Delivered, ForgottenPeer])
            .chain([ForgottenDuplicate, AdditionalResponse, Rejected])
            .map(Count::place)
            .collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..PLACES));
    }

    #[test]
    fn counting_goes_on_beyond_16_bits() {
        let mut counts = Counts::of(0);
        for _ in 0..65_535 {
            counts.one_more(Count::Late);
        }
        assert_eq!((counts.all().late, counts.memory()), (65_535, 0));
        counts.one_more(Count::Begun);
        for _ in 0..200_000 {
            counts.one_more(Count::Late);
        }
        assert_eq!((counts.all().late, counts.all().begun), (265_535, 1));
        assert_eq!(counts.memory(), 8 * PLACES);
    }
}
