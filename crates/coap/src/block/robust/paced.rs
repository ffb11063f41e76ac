use alloc::collections::VecDeque;

use millpond_control::{BulkPace, BulkReport, Instant, Span};

/// What a paced sender keeps of what left, so that [`BulkPace`] learns what became of it.
#[derive(Clone, Debug)]
pub(super) struct Paced {
    pub(super) pace: BulkPace,
    /// Messages of a set.
    set: u32,
    /// Blocks before this one were reported, as there or as missing.
    reported: u32,
    /// When the report before came.
    before: Option<Instant>,
    /// The sets that left last: which, when its first and its last block left, and whether any of it left again.
    flights: VecDeque<Flight>,
    /// When blocks left last, in that order, each with the last time that it did.
    departures: VecDeque<Departure>,
    /// When a block left last.
    left: Option<Instant>,
    /// When the first block left in answer to the question, maybe more than once, until something was asked for.
    answered: Option<Instant>,
    /// The endpoint had no room: nothing leaves before.
    held: Option<Instant>,
    /// So many more blocks may leave before they are reported: silence allows a set (RFC 9177 §7.2).
    extra: u32,
    /// When nothing had come for a probe timeout last.
    fell_silent: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    set: u32,
    first: Instant,
    last: Instant,
    is_repaired: bool,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    number: u32,
    at: Instant,
    /// It had left before.
    again: bool,
}

/// Sets of which the times are kept.
const FLIGHTS: usize = 16;

impl Paced {
    pub(super) const fn new(pause: Span, set: u32) -> Self {
        let set = if set == 0 { 1 } else { set };
        Self {
            pace: BulkPace::new(pause),
            set,
            reported: 0,
            before: None,
            flights: VecDeque::new(),
            departures: VecDeque::new(),
            left: None,
            answered: None,
            held: None,
            extra: 0,
            fell_silent: None,
        }
    }

    /// From this block on all is sent as if it never had been.
    pub(super) fn begin_at(&mut self, number: u32) {
        (self.reported, self.before, self.extra) = (number, None, 0);
        self.flights.clear();
        self.departures.clear();
    }

    /// Nothing leaves before then.
    pub(super) const fn held_back(&mut self, until: Instant) {
        self.held = Some(until);
    }

    /// The first block leaves alone, in answer to the question.
    pub(super) const fn answers(&mut self, now: Instant) {
        (self.left, self.answered, self.reported) = (Some(now), Some(now), 1);
    }

    /// A block that was never sent leaves.
    pub(super) fn left(&mut self, now: Instant, number: u32) {
        self.departs(Departure { number, at: now, again: false });
        let set = number.checked_div(self.set).unwrap_or(number);
        match self.flights.back_mut().filter(|flight| flight.set == set) {
            // Those before it in its set were reported before it left.
            Some(flight) if number == self.reported => (flight.first, flight.last) = (now, now),
            Some(flight) => flight.last = now,
            None => {
                if self.flights.len() >= FLIGHTS {
                    self.flights.pop_front();
                }
                self.flights.push_back(Flight { set, first: now, last: now, is_repaired: false });
            }
        }
    }

    /// A block leaves again.
    pub(super) fn left_again(&mut self, now: Instant, number: u32) {
        self.departures.retain(|before| before.number != number);
        self.departs(Departure { number, at: now, again: true });
        let set = number.checked_div(self.set).unwrap_or(number);
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.set == set) {
            flight.is_repaired = true;
        }
    }

    fn departs(&mut self, departure: Departure) {
        if self.departures.len() >= FLIGHTS.saturating_mul(self.set as usize) {
            self.departures.pop_front();
        }
        self.left = Some(departure.at);
        self.departures.push_back(departure);
    }

    fn departure(&self, number: u32) -> Option<&Departure> {
        self.departures.iter().rev().find(|departure| departure.number == number)
    }

    /// Whether a block left so lately that a complaint about it cannot know. Round trips differ by an eighth, as in RFC 9002 §6.1.2.
    pub(super) fn is_on_its_way(&self, now: Instant, number: u32) -> bool {
        let least = self.pace.least().unwrap_or(Span::ZERO).scaled(8, 9);
        self.departure(number).is_some_and(|departure| now.since(departure.at) < least)
    }

    /// The other end waits for a set that was never sent, from this block on.
    pub(super) fn is_waited_for(&mut self, next: u32) {
        if next >= self.allowed() {
            self.extra = self.set;
        }
    }

    /// How long a round trip is at most, by a complaint about these: a block behind the last of them has come, or one between
    /// them; unless the other end, after silence, asks for all that is left of a set.
    fn longest(&self, now: Instant, missing: &[u32], next: u32) -> Option<Span> {
        let last = *missing.iter().filter(|number| **number < next).max()?;
        let behind = last.saturating_add(1);
        let is_all = missing.len() < self.set as usize;
        let came = if is_all && behind < next && behind.checked_rem(self.set) != Some(0) {
            behind
        } else {
            (self.reported..last).rev().find(|number| !missing.contains(number))?
        };
        let once = self.departure(came).filter(|departure| !departure.again && departure.number >= self.reported);
        once.map(|departure| now.since(departure.at))
    }

    /// Everything before this block is there.
    pub(super) fn go_on(&mut self, now: Instant, number: u32, next: u32) {
        self.pace.heard();
        if let Some(answered) = self.answered.take() {
            self.pace.at_most(now.since(answered));
        }
        // Had one been repaired since, also one of a set before, it may have been that for which the other end waited.
        let repaired = self.departures.iter().rev().find(|departure| departure.again).map(|departure| departure.at);
        let is_last_word = |flight: &&Flight| !flight.is_repaired && repaired.is_none_or(|at| at < flight.last);
        let round_trip =
            self.flight(number.saturating_sub(1)).filter(is_last_word).map(|flight| now.since(flight.last));
        self.report(now, number.min(next), 0, round_trip);
    }

    /// These are missing, of which none is past `next`.
    pub(super) fn missing(&mut self, now: Instant, numbers: &[u32], next: u32) {
        self.pace.heard();
        if let Some(longest) = self.longest(now, numbers, next) {
            self.pace.at_most(longest);
        }
        let known = |number: &&u32| **number < next && !self.is_on_its_way(now, **number);
        let Some(last) = numbers.iter().filter(known).copied().max() else { return };
        let end = last.checked_div(self.set).unwrap_or(last).saturating_add(1).saturating_mul(self.set);
        // What is under way is reported later.
        if end > next || self.is_on_its_way(now, end.saturating_sub(1)) {
            return;
        }
        // The last block of the set is there, and what is said about the others came after it: with it, unless the end of a later
        // set has called it forth, or the time that passed.
        let is_over = last < end.saturating_sub(1) && numbers.iter().all(|number| *number < next);
        let is_later = self.flights.iter().any(|flight| {
            let last = flight.set.saturating_add(1).saturating_mul(self.set).saturating_sub(1);
            last >= end && last < next && !self.is_on_its_way(now, last)
        });
        let flight = self.flight(last).filter(|flight| is_over && !flight.is_repaired && !is_later);
        let round_trip = flight.filter(|flight| self.fell_silent.is_none_or(|at| at < flight.last));
        let round_trip = round_trip.map(|flight| now.since(flight.last));
        let lost = numbers.iter().filter(|number| (self.reported..end).contains(*number)).count() as u32;
        self.report(now, end, lost, round_trip);
    }

    fn report(&mut self, now: Instant, end: u32, lost: u32, round_trip: Option<Span>) {
        let arrived = end.saturating_sub(self.reported).saturating_sub(lost);
        if let Some(first) = self.flight(self.reported).filter(|_| end > self.reported) {
            let report = BulkReport {
                arrived,
                lost,
                since_first: now.since(first.first),
                since_before: self.before.map(|before| now.since(before)),
                round_trip,
            };
            self.pace.reported(&report);
            self.before = Some(now);
        }
        self.reported = self.reported.max(end);
        self.extra = 0;
    }

    /// From when on the next block may leave; one that was `never_sent`, if so many had left.
    pub(super) fn due(&mut self, now: Instant, next: u32, never_sent: bool) -> Option<Instant> {
        self.held = self.held.filter(|held| *held > now);
        if self.held.is_some() {
            return self.held;
        }
        let after = |span: Span| self.left.map(|left| left.after(span));
        let gap = self.pace.gap().and_then(after);
        if never_sent && next >= self.allowed().saturating_add(self.extra) {
            let timeout = after(self.pace.timeout());
            if timeout.is_some_and(|timeout| timeout > now) {
                return timeout;
            }
            self.pace.silent(self.set);
            self.fell_silent = Some(now);
            self.extra = self.extra.saturating_add(self.set);
        }
        gap.filter(|gap| *gap > now)
    }

    /// Blocks before this one may leave without a further report.
    fn allowed(&self) -> u32 {
        let from = match self.pace.gap() {
            Some(_) => self.reported,
            // A burst stops where a set ends.
            None => self.reported.saturating_sub(self.reported.checked_rem(self.set).unwrap_or(0)),
        };
        from.saturating_add(self.pace.ahead(self.set))
    }

    fn flight(&self, number: u32) -> Option<&Flight> {
        let set = number.checked_div(self.set).unwrap_or(number);
        self.flights.iter().find(|flight| flight.set == set)
    }
}
