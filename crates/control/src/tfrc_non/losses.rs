//! What the receiver of RFC 5348 keeps, kept by the sender: which messages were lost, and in which loss events.

use super::equation::LONGEST;
use crate::{backoff::longer, division::quotient, layout::laid_out, time::Span};

/// Closed loss intervals that count (RFC 5348 §5.4: n = 8).
const INTERVALS: usize = 8;
/// Their weights, 1, 1, 1, 1, 0.8, 0.6, 0.4 and 0.2 (same section), in fifths.
const WEIGHTS: [u32; INTERVALS] = [5, 5, 5, 5, 4, 3, 2, 1];

/// The three newest messages that are known to have arrived, and the loss events before. A message is lost once three
/// that left after it have arrived (RFC 5348 §5.1), so all before the third newest are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Losses {
    /// The number of the newest that arrived.
    newest: u32,
    /// How long before the last message that left they left, and the first message of the running loss event.
    newest_age: Span,
    second_age: Span,
    third_age: Span,
    event_age: Span,
    /// By how much the numbers of the second and third newest lie below that of the newest.
    second: u16,
    third: u16,
    /// From the first message of the running loss event to the third newest.
    running: u16,
    /// Loss intervals, the newest first.
    intervals: [u16; INTERVALS],
    known: u8,
    has_begun: bool,
}

laid_out!(Losses {
    newest,
    newest_age,
    second_age,
    third_age,
    event_age,
    second,
    third,
    running,
    intervals,
    known,
    has_begun
});

impl Losses {
    /// Nothing has arrived.
    pub(super) const NONE: Self = Self {
        newest: 0,
        newest_age: Span::ZERO,
        second_age: Span::ZERO,
        third_age: Span::ZERO,
        event_age: Span::ZERO,
        second: 0,
        third: 0,
        running: 0,
        intervals: [0; INTERVALS],
        known: 0,
        has_begun: false,
    };

    /// Whether there was a loss event.
    pub(super) const fn any(&self) -> bool {
        self.known > 0
    }

    /// A further message left, so much later than the one before.
    pub(super) const fn slide(&mut self, by: Span) {
        self.newest_age = self.newest_age.plus(by);
        self.second_age = self.second_age.plus(by);
        self.third_age = self.third_age.plus(by);
        self.event_age = self.event_age.plus(by);
    }

    /// The message with this number, which left so long before the last one, has arrived. Says whether that shows a new
    /// loss event. `first` is asked for the loss interval before the very first one.
    pub(super) fn arrived(&mut self, number: u32, age: Span, rtt: Span, first: impl FnOnce() -> u16) -> bool {
        if !self.has_begun {
            // What left before the first that arrived is not known to have been there at all.
            *self = Self { newest: number, newest_age: age, has_begun: true, ..Self::NONE };
            (self.second_age, self.third_age) = (age, age);
            return false;
        }
        let (before, before_age) = (self.third, self.third_age);
        let ahead = number.wrapping_sub(self.newest);
        let behind = narrow(self.newest.wrapping_sub(number));
        if ahead == 0 {
            return false;
        }
        let decided = if ahead < 1 << 31 {
            let ahead = narrow(ahead);
            let decided = before.saturating_sub(self.second);
            (self.third, self.third_age) = (ahead.saturating_add(self.second), self.second_age);
            (self.second, self.second_age) = (ahead, self.newest_age);
            (self.newest, self.newest_age) = (number, age);
            decided
        } else if behind < self.second {
            (self.third, self.third_age) = (self.second, self.second_age);
            (self.second, self.second_age) = (behind, age);
            before.saturating_sub(self.third)
        } else if behind > self.second && behind < self.third {
            (self.third, self.third_age) = (behind, age);
            before.saturating_sub(self.third)
        } else {
            // Twice, or given up for lost before.
            return false;
        };
        self.decide(decided, before_age, rtt, first)
    }

    /// From one third newest to the next it is so many messages, all lost but the last. `from` is the age of the former.
    fn decide(&mut self, messages: u16, from: Span, rtt: Span, first: impl FnOnce() -> u16) -> bool {
        // The departures of those that were lost are taken to lie evenly between (RFC 5348 §5.2).
        let time = from.minus(self.third_age);
        let in_time = |span: Span| {
            let product = u64::from(span.as_micros()).saturating_mul(u64::from(messages));
            let steps = quotient(product, u64::from(time.as_micros()));
            u16::try_from(steps).ok().filter(|_| time > Span::ZERO)
        };
        // The first one that left more than a round-trip time after the running event began opens another.
        let since = self.event_age.minus(from);
        let opens = if !self.any() || since > rtt {
            Some(1)
        } else {
            in_time(rtt.minus(since)).map(|steps| steps.saturating_add(1))
        };
        let Some(opens) = opens.filter(|opens| *opens < messages) else {
            self.running = self.running.saturating_add(messages);
            return false;
        };
        let interval = if self.any() { self.running.saturating_add(opens) } else { first() };
        self.close(interval);
        // And so does each that left more than a round-trip time after that, if the loss went on.
        let each = in_time(rtt).map_or(LONGEST, |steps| steps.saturating_add(1));
        let lost = messages.saturating_sub(1).saturating_sub(opens);
        let further = quotient(lost.into(), each.into()) as u16;
        for _ in 0..usize::from(further).min(INTERVALS) {
            self.close(each);
        }
        let last = opens.saturating_add(further.saturating_mul(each));
        self.running = messages.saturating_sub(last);
        self.event_age = longer(from.minus(time.scaled(u32::from(last), u32::from(messages))), self.third_age);
        true
    }

    fn close(&mut self, interval: u16) {
        self.intervals.rotate_right(1);
        if let Some(newest) = self.intervals.first_mut() {
            *newest = interval.max(1);
        }
        self.known = self.known.saturating_add(1).min(INTERVALS as u8);
    }

    /// The loss event rate, as so many loss events in so many messages; nothing before the first (RFC 5348 §5.4).
    pub(super) fn rate(&self) -> Option<(u32, u32)> {
        let open = self.running.saturating_add(self.third).saturating_add(1);
        let times = |interval: u16, weight: u32| u32::from(interval).saturating_mul(weight);
        let (mut weights, mut with_open, mut without) = (0_u32, 0_u32, 0_u32);
        let mut newer = open;
        for (interval, weight) in self.intervals.iter().zip(&WEIGHTS).take(usize::from(self.known)) {
            weights = weights.saturating_add(*weight);
            with_open = with_open.saturating_add(times(newer, *weight));
            without = without.saturating_add(times(*interval, *weight));
            newer = *interval;
        }
        self.any().then(|| (weights, with_open.max(without)))
    }
}

fn narrow(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
