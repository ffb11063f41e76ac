//! A pace for bodies in bursts (RFC 9177): the rate at which the other end gets them, corrected by the queue that they make.
//!
//! Ours. The first set leaves as RFC 9177 §7.2 has it, MAX_PAYLOADS at once. With the first report, or the first silence where the
//! round trip is known, that ends: from then on messages leave one by one, without waiting for "go on", at a rate that follows what
//! was delivered.
//!
//! ```text
//! busy  = since the first left - least round trip
//! drain = shorter of busy and (since the report before), per message
//! queue = round trip - least round trip - drain         # of a message that was sent once and is the last of its set
//!
//! first report: the gap before is a set in a round trip; with a queue drain is the gap, with a queue and losses, or more than
//! a fifth lost of a set of which the last one is not there, busy per message that arrived
//!
//! all arrived:
//!   queue > TARGET:   link = drain; gap = drain + (queue - TARGET) / messages, 4/5 to 4/3 of the gap before
//!   else, no queue and not more than a fifth lost so far: half the gap before, at least drain / 2.77
//!   else, gap > link: 4/5 of the gap before, at least link
//!   else:             gap - (TARGET - queue) / messages, at least 4/5 of the gap before
//! some are lost:
//!   queue > TARGET:   sent / arrived times the gap before, 4/3 to 2
//!   queue unknown and more lost than arrived: 4/3 of the gap before; twice if there was no queue before
//!   no queue, a fifth or less: as if all had arrived; else the gap stays
//! silence for a probe timeout: another set may leave; from the second in a row on twice the gap before
//! first gap by silence: a set in the timeout; a burst, if no round trip was measured yet
//! always:             a message in a round trip, and in NON_TIMEOUT, at least
//! unreported:         as many as a set and the least round trip hold; a set more until a queue was seen: a report may be lost
//! ```
//!
//! | number | from |
//! |---|---|
//! | TARGET, 60 ms | LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus); RFC 6817 §2.5 allows 100 ms at most |
//! | 4/5 and 4/3 | the gains 5/4 and 3/4 of BBR's cycle, as times between messages |
//! | a fifth | what a gain of 5/4 alone may lose |
//! | half, twice | slow start (RFC 5681 §3.1), and what undoes its last step |
//! | 2.77 | BBR's gain at the start (draft-ietf-ccwg-bbr, BBRStartupPacingGain): what one sends of what is delivered |
//! | 2 SRTT + 25 ms, if that is shorter, for the first | the probe timeout of RFC 8985 §7.2 |
//! | SRTT + 4 RTTVAR + 25 ms, doubled | the probe timeout of RFC 9002 §6.2.1 with its default max_ack_delay |
//! | the second silence | persistent congestion takes more than one probe timeout (RFC 9002 §7.6) |
//!
//! Losses without delay are taken for those of a radio. Behind a buffer of less than TARGET they are not, and up to a fifth of what leaves is
//! lost there, as with the first version of BBR.

use crate::{
    estimator::{Gains, Weak},
    time::Span,
};

/// The pace of one body. See [the module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkPace {
    estimator: Weak,
    /// What stands for a timeout before a round trip was measured, and what it is at most.
    unknown: Span,
    longest: Span,
    least: Option<Span>,
    /// From one message to the next; none as long as they leave in bursts.
    gap: Option<Span>,
    samples: u8,
    /// A report has come since there is a gap.
    is_told: bool,
    /// Neither delay nor much loss has been seen.
    starts: bool,
    /// From one message to the next behind the bottleneck, when it had a queue last.
    link: Option<Span>,
    /// Probe timeouts that passed since something came.
    silences: u8,
}

/// What the other end said about messages that had not been reported before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkReport {
    /// How many of them arrived.
    pub arrived: u32,
    /// How many did not.
    pub lost: u32,
    /// Since the first of them left.
    pub since_first: Span,
    /// Since the report before, if there was one.
    pub since_before: Option<Span>,
    /// Since the last of them left, if it is what is answered: it is there, and none was sent twice.
    pub round_trip: Option<Span>,
}

impl BulkPace {
    /// The queue that may stand.
    pub const TARGET: Span = Span::from_millis(60);
    /// How much later than it came something may be answered.
    pub const DELAY: Span = Span::from_millis(25);
    /// A timeout is doubled so often at most, and up to here (RFC 6298 §2.5).
    const MOST_SILENCES: u8 = 16;
    const LONGEST_TIMEOUT: Span = Span::from_secs(60);

    /// A burst over a path that nothing is known of; `unknown` stands for its round trip (NON_TIMEOUT).
    #[must_use]
    pub const fn new(unknown: Span) -> Self {
        Self {
            estimator: Weak::UNKNOWN,
            unknown,
            longest: unknown,
            least: None,
            gap: None,
            samples: 0,
            is_told: false,
            starts: true,
            link: None,
            silences: 0,
        }
    }

    /// The round trip of a message with nothing before it.
    pub fn probed(&mut self, round_trip: Span) {
        // The first one may be of a message of which a copy was lost, and any that is twice as long or more was.
        let is_first = self.samples <= 1 && round_trip < self.round_trip();
        if is_first || self.least.is_some_and(|least| round_trip < least.halved()) {
            self.gap = self.gap.map(|gap| gap.scaled(round_trip.as_micros(), self.round_trip().as_micros()));
            self.estimator = Weak::UNKNOWN;
        }
        self.samples = self.samples.saturating_add(1);
        self.estimator.take(round_trip, Gains::RFC6298);
        self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// A round trip is no longer than this: a message that left once so long ago has come by now.
    pub fn at_most(&mut self, round_trip: Span) {
        match self.least {
            Some(least) if round_trip >= least.halved() => self.least = Some(least.min(round_trip)),
            Some(_) => self.probed(round_trip),
            None if round_trip < self.longest => {
                self.gap = self.gap.map(|gap| gap.scaled(round_trip.as_micros(), self.longest.as_micros()));
                self.longest = round_trip;
            }
            None => {}
        }
    }

    /// Something came, whatever it says.
    pub const fn heard(&mut self) {
        self.silences = 0;
    }

    /// A report came.
    pub fn reported(&mut self, report: &BulkReport) {
        self.heard();
        let BulkReport { arrived, lost, .. } = *report;
        let sent = arrived.saturating_add(lost);
        let is_much = lost.saturating_mul(5) > sent;
        if let Some(round_trip) = report.round_trip {
            self.probed(round_trip);
        }
        // A burst was a set in a round trip; what silence has made of that ends with the first report.
        let before = self.gap.filter(|_| self.is_told);
        let gap = before.unwrap_or(self.round_trip().scaled(1, sent));
        // What was dropped took the path no time.
        let busy = report.since_first.minus(self.least.unwrap_or(self.longest)).scaled(1, arrived.max(1)).max(gap);
        let wanted = match report.round_trip {
            None if lost == 0 => self.gap.map(|_| gap),
            None if before.is_none() => Some(if is_much { busy } else { gap }),
            None if lost > arrived && core::mem::take(&mut self.starts) => Some(gap.doubled()),
            None if lost > arrived => Some(gap.scaled(4, 3)),
            None => Some(gap),
            Some(round_trip) if lost > 0 && self.waits(round_trip).minus(gap) > Self::TARGET => {
                self.starts = false;
                Some(match before {
                    None => busy,
                    Some(gap) => gap.scaled(sent, arrived).min(gap.doubled()).max(gap.scaled(4, 3)),
                })
            }
            Some(_) if is_much => Some(gap),
            Some(round_trip) => Some(self.wanted(gap, report, round_trip)),
        };
        self.set(wanted);
        self.is_told |= self.gap.is_some();
    }

    /// How much longer than the shortest it took.
    fn waits(&self, round_trip: Span) -> Span {
        round_trip.minus(self.least.unwrap_or(round_trip))
    }

    /// The gap that messages ask for of which the last one took so long.
    fn wanted(&mut self, gap: Span, report: &BulkReport, round_trip: Span) -> Span {
        let messages = report.arrived.saturating_add(report.lost).max(1);
        let busy = report.since_first.minus(self.least.unwrap_or(round_trip));
        let drain = report.since_before.map_or(busy, |before| before.min(busy)).scaled(1, messages);
        let queue = self.waits(round_trip).minus(drain);
        let (above, below) = (queue.minus(Self::TARGET), Self::TARGET.minus(queue));
        if above > Span::ZERO {
            // Only where messages wait it is the path that reports how far they are apart.
            (self.starts, self.link) = (false, Some(drain));
        }
        let (shortest, longest) = (gap.scaled(4, 5), gap.scaled(4, 3));
        match self.link {
            Some(link) if !self.is_told => link,
            _ if self.starts => gap.halved().max(drain.scaled(100, 277)),
            _ if above > Span::ZERO => drain.plus(above.scaled(1, messages)).max(shortest).min(longest),
            Some(link) if gap <= link => gap.minus(below.scaled(1, messages)).max(shortest),
            link => shortest.max(link.unwrap_or(Span::ZERO)),
        }
    }

    /// Nothing came for a [`timeout`](Self::timeout), with a set of so many messages sent.
    pub fn silent(&mut self, set: u32) {
        let waited = self.timeout();
        self.silences = self.silences.saturating_add(1).min(Self::MOST_SILENCES);
        self.set(match self.gap {
            // Then sets are bursts a timeout apart.
            None if self.silences == 1 && !self.estimator.is_known() => None,
            // The set took that long at least.
            None => Some(waited.scaled(1, set)),
            Some(gap) if self.silences > 1 => Some(gap.doubled()),
            gap => gap,
        });
    }

    /// From one message to the next; none as long as they leave in bursts.
    #[must_use]
    pub const fn gap(&self) -> Option<Span> {
        self.gap
    }

    /// How many messages may be unreported where the other end reports every `set` of them: such a set, and what fits into
    /// the least round trip.
    #[must_use]
    pub fn ahead(&self, set: u32) -> u32 {
        let Some(gap) = self.gap else { return set };
        let least = self.least.unwrap_or(self.longest);
        let sets = if self.is_told && self.link.is_none() { set.saturating_mul(2) } else { set };
        sets.saturating_add(least.as_micros().div_ceil(gap.as_micros().max(1)))
    }

    /// How long nothing may come before that says something.
    #[must_use]
    pub fn timeout(&self) -> Span {
        let twice = self.round_trip().doubled().plus(Self::DELAY);
        if !self.estimator.is_known() {
            return Self::doubled(self.unknown.min(twice), self.silences);
        }
        let once = self.estimator.timeout(4).plus(Self::DELAY);
        match self.silences.checked_sub(1) {
            None => once.min(twice),
            Some(before) => Self::doubled(once, before),
        }
    }

    /// A timeout after so many.
    fn doubled(once: Span, times: u8) -> Span {
        once.times(1_u32.checked_shl(times.into()).unwrap_or(u32::MAX)).min(Self::LONGEST_TIMEOUT.max(once))
    }

    /// The shortest round trip that was measured.
    #[must_use]
    pub const fn least(&self) -> Option<Span> {
        self.least
    }

    /// The smoothed round trip, or what stands for it.
    #[must_use]
    pub fn round_trip(&self) -> Span {
        self.estimator.srtt().unwrap_or(self.longest)
    }

    /// At least a message in a round trip, and in what stands for one.
    fn set(&mut self, gap: Option<Span>) {
        self.gap = gap.map(|gap| gap.min(self.round_trip()).min(self.unknown).max(Span::from_micros(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u32) -> Span {
        Span::from_millis(millis)
    }

    /// Of a path of 100 ms.
    fn known() -> BulkPace {
        let mut pace = BulkPace::new(ms(2_000));
        pace.probed(ms(100));
        pace
    }

    fn report(arrived: u32, lost: u32, since_first: u32, round_trip: Option<u32>) -> BulkReport {
        BulkReport { arrived, lost, since_first: ms(since_first), since_before: None, round_trip: round_trip.map(ms) }
    }

    #[test]
    fn a_burst_shows_the_queue_or_that_there_is_none() {
        let mut pace = known();
        assert_eq!((pace.gap(), pace.ahead(10)), (None, 10));
        // Ten in 100 ms, and twice as many next. Two sets, and what 100 ms hold.
        pace.reported(&report(10, 0, 100, Some(100)));
        assert_eq!((pace.gap(), pace.ahead(10)), (Some(ms(5)), 40));
        let mut pace = known();
        // Ten left at once and took 900 ms more than one: 90 ms each. The queue of the last, 810 ms, is 750 too many.
        pace.reported(&report(10, 0, 1_000, Some(1_000)));
        assert_eq!(pace.gap(), Some(ms(90)));
        // 100 ms hold one and a bit more.
        assert_eq!(pace.ahead(10), 12);
    }

    /// Of ten the queue held five, which took 320 ms: that is what the path takes, and not ten in 100 ms.
    #[test]
    fn a_burst_of_which_much_was_dropped_is_followed_at_what_arrived() {
        for round_trip in [None, Some(420)] {
            let mut pace = known();
            pace.reported(&report(5, 5, 420, round_trip));
            assert_eq!(pace.gap(), Some(ms(64)), "{round_trip:?}");
            let mut pace = known();
            pace.silent(10);
            pace.reported(&report(5, 5, 420, round_trip));
            assert_eq!(pace.gap(), Some(ms(64)), "{round_trip:?} after silence");
        }
    }

    /// Sets are halved in time as they are reported, but no faster than 2.77 times what was delivered.
    #[test]
    fn the_start_follows_what_is_delivered() {
        let mut pace = known();
        pace.reported(&report(10, 0, 100, Some(100)));
        pace.reported(&BulkReport { since_before: Some(ms(50)), ..report(10, 0, 150, Some(100)) });
        assert_eq!(pace.gap().map(Span::as_micros), Some(2_500));
        pace.reported(&BulkReport { since_before: Some(ms(50)), ..report(10, 0, 150, Some(100)) });
        assert_eq!(pace.gap().map(Span::as_micros), Some(1_805), "5 ms by 2.77");
    }

    #[test]
    fn a_queue_is_made_good_within_as_many_messages_again() {
        let mut pace = known();
        pace.reported(&report(10, 0, 1_000, Some(1_000)));
        // The report before was 900 ms ago: 90 ms each. 280 ms waited, 130 too many: 13 ms more for each of ten.
        let later = BulkReport { since_before: Some(ms(900)), ..report(10, 0, 1_200, Some(380)) };
        pace.reported(&later);
        assert_eq!(pace.gap(), Some(ms(103)));
        // No queue at all: the path was seen to take one in 90 ms, four fifths would be less than that.
        pace.reported(&BulkReport { since_before: Some(ms(1_030)), ..report(10, 0, 1_127, Some(100)) });
        assert_eq!(pace.gap(), Some(ms(90)));
        // Still none: 60 ms less over the next ten.
        pace.reported(&BulkReport { since_before: Some(ms(900)), ..report(10, 0, 1_000, Some(100)) });
        assert_eq!(pace.gap(), Some(ms(84)));
    }

    #[test]
    fn losses_without_delay_do_not_slow_it_down() {
        let mut pace = known();
        pace.reported(&report(9, 1, 100, None));
        assert_eq!(pace.gap(), Some(ms(10)), "ten in a round trip");
        // Three of ten are more than a fifth, but there is no queue.
        pace.reported(&report(7, 3, 190, Some(100)));
        assert_eq!(pace.gap(), Some(ms(10)));
        // A fifth, and no queue: it goes on as after none.
        pace.reported(&report(8, 2, 190, Some(100)));
        assert_eq!(pace.gap(), Some(ms(5)));
    }

    #[test]
    fn losses_with_delay_slow_it_down_to_what_arrives() {
        let mut pace = known();
        pace.reported(&report(9, 1, 100, None));
        pace.reported(&report(6, 4, 390, Some(300)));
        assert_eq!(pace.gap().map(Span::as_micros), Some(16_667), "ten sixths");
        pace.reported(&report(2, 8, 390, Some(400)));
        assert_eq!(pace.gap().map(Span::as_micros), Some(33_334), "twice at most");
        // Nothing is known of the last one, and most are lost.
        pace.reported(&report(2, 8, 390, None));
        assert_eq!(pace.gap().map(Span::as_micros), Some(44_445));
    }

    #[test]
    fn silence_ends_bursts_and_halves_the_rate_when_it_lasts() {
        let mut pace = known();
        // Twice SRTT + 25, then SRTT + 4 · 50 + 25, and twice that.
        assert_eq!(pace.timeout(), ms(225));
        pace.silent(10);
        assert_eq!((pace.gap(), pace.timeout()), (Some(Span::from_micros(22_500)), ms(325)));
        pace.silent(10);
        assert_eq!((pace.gap(), pace.timeout()), (Some(ms(45)), ms(650)));
        pace.silent(10);
        pace.silent(10);
        assert_eq!(pace.gap(), Some(ms(100)), "one in a round trip");
        // A complaint after all: it was not the path, and nine of ten in a round trip is what it was before.
        pace.reported(&report(9, 1, 1_000, None));
        assert_eq!((pace.gap(), pace.timeout()), (Some(ms(10)), ms(225)));
    }

    #[test]
    fn as_long_as_no_round_trip_is_known_sets_are_bursts_a_timeout_apart() {
        let mut pace = BulkPace::new(ms(2_000));
        assert_eq!((pace.round_trip(), pace.timeout(), pace.least()), (ms(2_000), ms(2_000), None));
        pace.silent(10);
        assert_eq!((pace.gap(), pace.ahead(10), pace.timeout()), (None, 10, ms(4_000)));
        pace.silent(10);
        assert_eq!(pace.gap(), Some(ms(400)));
    }

    #[test]
    fn a_first_round_trip_of_a_lost_copy_is_replaced() {
        let mut pace = BulkPace::new(ms(2_000));
        pace.probed(ms(1_600));
        pace.silent(10);
        assert_eq!(pace.gap().map(Span::as_micros), Some(322_500), "a tenth of 2 · 1.6 s + 25 ms");
        pace.at_most(ms(100));
        assert_eq!((pace.round_trip(), pace.least()), (ms(100), Some(ms(100))));
        assert_eq!(pace.gap().map(Span::as_micros), Some(20_156), "a sixteenth");
        pace.probed(ms(180));
        assert_eq!(pace.round_trip(), ms(110));
    }

    /// An estimate from answers to messages of which copies were lost has a least round trip that is too long, and finds out.
    #[test]
    fn what_arrived_sooner_corrects_the_least_round_trip() {
        let mut pace = known();
        pace.at_most(ms(80));
        assert_eq!((pace.least(), pace.round_trip()), (Some(ms(80)), ms(100)), "a little less may be chance");
        pace.at_most(ms(39));
        assert_eq!((pace.least(), pace.round_trip()), (Some(ms(39)), ms(39)), "less than half is not");
        pace.at_most(ms(1_000));
        assert_eq!(pace.least(), Some(ms(39)));
        let mut unknown = BulkPace::new(ms(2_000));
        unknown.at_most(ms(700));
        assert_eq!((unknown.least(), unknown.round_trip()), (None, ms(700)), "it may be much less");
        assert_eq!(unknown.timeout(), ms(1_425));
    }

    #[test]
    fn timeouts_grow_to_a_minute_and_whatever_comes_ends_that() {
        let mut pace = known();
        for _ in 0..20 {
            pace.silent(10);
        }
        assert_eq!(pace.timeout(), Span::from_secs(60));
        pace.heard();
        assert_eq!(pace.timeout(), ms(225));
    }

    #[test]
    fn any_report_leaves_a_gap_between_nothing_and_a_round_trip() {
        let values = [0, 1, 9, 10, u32::MAX];
        let spans = [Span::ZERO, Span::from_micros(1), ms(100), ms(5_000), Span::MAX];
        let mut pace = BulkPace::new(ms(2_000));
        for arrived in values {
            for lost in values {
                for span in spans {
                    for other in spans {
                        for round_trip in [None, Some(other)] {
                            let since_before = round_trip.map(|_| span);
                            let report = BulkReport { arrived, lost, since_first: span, since_before, round_trip };
                            pace.reported(&report);
                            pace.silent(arrived);
                            assert!(pace.gap().is_none_or(|gap| gap > Span::ZERO && gap <= ms(2_000)));
                            assert!(pace.ahead(10) >= 10);
                        }
                    }
                }
            }
        }
    }
}
