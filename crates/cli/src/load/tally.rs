//! What a load measured.

use std::time::Duration;

use hdrhistogram::Histogram;
use millpond_live::{Client, Error, Response};

/// Longest time to an answer that is distinguished from longer ones.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Answers, failures and retransmissions of one load.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The controller's name.
    pub controller: &'static str,
    /// From the start of the first request to the end of the last.
    pub elapsed: Duration,
    /// Requests that were started.
    pub started: u64,
    /// Answers of class 2.
    pub good: u64,
    /// Answers of class 4 and 5.
    pub refused: u64,
    /// Requests that ended without an answer.
    pub failed: u64,
    /// What the first of those ended with.
    pub first_error: Option<String>,
    /// Requests without an answer when the load ended, and left so.
    pub unfinished: u64,
    /// Requests of an open loop that were due and not started: too many waited, or the load came too late for them.
    pub left_out: u64,
    /// Confirmable messages sent, every transmission counted.
    pub transmissions: u64,
    /// Transmissions after the first.
    pub retransmissions: u64,
    /// Of these, as far as answers have told: spurious ones, and such as were needed.
    pub told: Told,
    /// From the start of a request to its whole answer, µs. In an open loop from when it was due.
    pub times: Histogram<u64>,
    /// The same of requests that had no answer when the load ended, up to then: they take at least so long.
    pub open: Histogram<u64>,
    /// What the clients could not carry of an open loop, if they could not.
    pub capped: Option<Capped>,
}

/// Retransmissions of which it is known what they were good for; of others it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// An answer came for them after one had come already.
    pub spurious: u64,
    /// An answer names one as the first transmission that arrived.
    pub needed: u64,
}

/// An open loop whose clients had as many requests under way as they may when it ended, and more to start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capped {
    /// Requests that the clients may have under way together.
    pub slots: u64,
    /// Requests that were due by the last start.
    pub due: u64,
    /// Those of them that had ended by then.
    pub ended: u64,
    /// When that was.
    pub after: Duration,
}

/// A time below which a share of all requests had their answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantile {
    /// There were no requests.
    Nothing,
    /// So many milliseconds.
    Millis(f64),
    /// At least so many: it is among requests that had no answer when the load ended, or above one of them.
    AtLeast(f64),
    /// Requests that failed are too many for it.
    Never,
}

impl Tally {
    /// Nothing so far.
    #[must_use]
    pub fn new(controller: &'static str) -> Self {
        Self {
            controller,
            elapsed: Duration::ZERO,
            started: 0,
            good: 0,
            refused: 0,
            failed: 0,
            first_error: None,
            unfinished: 0,
            left_out: 0,
            transmissions: 0,
            retransmissions: 0,
            told: Told::default(),
            times: histogram(),
            open: histogram(),
            capped: None,
        }
    }

    /// Requests that were answered, well or not.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.good + self.refused
    }

    /// Answers a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "nobody counts 2^53 answers")]
        let answered = self.answered() as f64;
        if self.elapsed.is_zero() { 0.0 } else { answered / self.elapsed.as_secs_f64() }
    }

    /// Retransmissions of which nothing is known.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.retransmissions.saturating_sub(self.told.spurious).saturating_sub(self.told.needed)
    }

    /// The time below which this share of all requests had their answer. Those without one count as well: leaving them out
    /// would make a load look the better the more of it was never served.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Quantile {
        let requests = self.times.len() + self.open.len() + self.failed;
        #[allow(clippy::cast_precision_loss, reason = "nobody counts 2^53 requests")]
        let rank = share * requests as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count is one")]
        let rank = (rank.ceil() as u64).clamp(1, requests.max(1));
        if requests == 0 {
            return Quantile::Nothing;
        }
        if rank > self.times.len() + self.open.len() {
            return Quantile::Never;
        }
        let mut both = self.times.clone();
        // Both have the same bounds.
        let _ = both.add(&self.open);
        #[allow(clippy::cast_precision_loss, reason = "an hour has less than 2^53 microseconds, and ranks are counts")]
        let micros = both.value_at_quantile(rank as f64 / both.len() as f64);
        #[allow(clippy::cast_precision_loss, reason = "the same")]
        let millis = micros as f64 / 1e3;
        // A request that has waited for less than that may still take longer.
        if !self.open.is_empty() && self.open.min() <= micros {
            Quantile::AtLeast(millis)
        } else {
            Quantile::Millis(millis)
        }
    }

    /// The shortest time to an answer in milliseconds; `None` if there are none.
    #[must_use]
    pub fn shortest(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "an hour has less than 2^53 microseconds")]
        let micros = self.times.min() as f64;
        (!self.times.is_empty()).then_some(micros / 1e3)
    }

    /// The mean time to an answer in milliseconds, of requests that had one; `None` if there are none.
    #[must_use]
    pub fn mean_millis(&self) -> Option<f64> {
        (!self.times.is_empty()).then(|| self.times.mean() / 1e3)
    }

    /// Counts requests that were due for so long when the load ended, and never started.
    pub fn leave_out(&mut self, requests: u64, due_for: Duration) {
        self.left_out += requests;
        self.open.saturating_record_n(micros(due_for), requests);
    }

    /// Counts a request without an answer that was due for so long when the load ended.
    pub fn leave_open(&mut self, due_for: Duration) {
        self.open.saturating_record(micros(due_for));
    }

    /// Takes up how far an open loop was when its last request was due.
    pub fn close(&mut self, slots: u64, due: u64, after: Duration) {
        let ended = self.answered() + self.failed;
        // Requests take their time where clients carry the rate as well: then as many are under way as may be, at most.
        if due.saturating_sub(ended) > slots && ended < due - due / 20 {
            self.capped = Some(Capped { slots, due, ended, after });
        }
    }

    /// Takes up how a request ended.
    pub fn take(&mut self, ended: Result<Response, Error>, after: Duration) {
        match ended {
            Ok(answer) => {
                *(if answer.is_success() { &mut self.good } else { &mut self.refused }) += 1;
                self.times.saturating_record(micros(after));
            }
            Err(error) => {
                self.failed += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Takes up what a client counted.
    pub async fn take_counts(&mut self, client: &Client) {
        // A client that has ended counts nothing any more.
        let Ok(stats) = client.stats().await else { return };
        for peer in &stats.peers {
            self.transmissions += peer.transmissions;
            self.retransmissions += peer.retransmissions;
            let needed = peer.needed_retransmissions.min(peer.retransmissions);
            self.told.needed += needed;
            // A network that duplicates answers would make more of them than there are.
            self.told.spurious += peer.unnecessary_retransmissions.min(peer.retransmissions.saturating_sub(needed));
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn histogram() -> Histogram<u64> {
    let longest = u64::try_from(LONGEST.as_micros()).unwrap_or(u64::MAX);
    Histogram::new_with_bounds(1, longest, 3)
        .unwrap_or_else(|_| unreachable!("bounds 1 and an hour with three figures are legal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_live::Code;

    #[test]
    fn endings_are_told_apart() {
        let mut tally = Tally::new("rfc7252");
        tally.take(Ok(Response::content("x")), Duration::from_millis(2));
        tally.take(Ok(Response::new(Code::NOT_FOUND)), Duration::from_millis(4));
        tally.take(Err(Error::Closed), Duration::from_millis(6));
        assert_eq!((tally.good, tally.refused, tally.failed, tally.answered()), (1, 1, 1, 2));
        assert_eq!(tally.first_error, Some(Error::Closed.to_string()));
        let Quantile::Millis(longest) = tally.quantile(0.6) else { panic!("{:?}", tally.quantile(0.6)) };
        assert!((longest - 4.0).abs() < 0.01, "{longest}");
        assert_eq!(tally.quantile(1.0), Quantile::Never);
        assert_eq!((Tally::new("").quantile(0.5), Tally::new("").mean_millis()), (Quantile::Nothing, None));
    }

    #[test]
    fn requests_without_an_answer_count_in_percentiles() {
        let mut tally = Tally::new("rfc7252");
        for millis in [100, 200, 300, 400] {
            tally.take(Ok(Response::content("x")), Duration::from_millis(millis));
        }
        for millis in [350, 5_000, 6_000, 7_000] {
            tally.leave_open(Duration::from_millis(millis));
        }
        let near = |found: Quantile, at_least: bool, millis: f64| match found {
            Quantile::Millis(value) => !at_least && (value - millis).abs() < millis / 500.0,
            Quantile::AtLeast(value) => at_least && (value - millis).abs() < millis / 500.0,
            _ => false,
        };
        // Of eight requests four have an answer, and one of the others had waited for 350 ms.
        assert!(near(tally.quantile(0.25), false, 200.0), "{:?}", tally.quantile(0.25));
        assert!(near(tally.quantile(0.375), false, 300.0), "{:?}", tally.quantile(0.375));
        assert!(near(tally.quantile(0.5), true, 350.0), "{:?}", tally.quantile(0.5));
        assert!(near(tally.quantile(0.99), true, 7_000.0), "{:?}", tally.quantile(0.99));
        tally.take(Err(Error::Closed), Duration::from_millis(6));
        assert_eq!(tally.quantile(0.99), Quantile::Never);
        assert!(near(tally.quantile(0.5), true, 400.0), "{:?}", tally.quantile(0.5));
    }

    #[test]
    fn longer_than_an_hour_is_an_hour() {
        let mut tally = Tally::new("rfc7252");
        tally.take(Ok(Response::content("x")), Duration::from_secs(100_000));
        assert_eq!(tally.times.len(), 1);
    }
}
