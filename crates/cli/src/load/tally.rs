//! What a load measured.

use std::time::Duration;

use hdrhistogram::Histogram;
use millpond_live::{Client, Error, Response};

/// Longest time to an answer that is told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Answers, failures and copies of one load.
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
    /// Requests of an open loop that were not started because too many waited.
    pub left_out: u64,
    /// Confirmable messages sent, every copy counted.
    pub transmissions: u64,
    /// Copies after the first.
    pub retransmissions: u64,
    /// Copies that were not needed: one before them had arrived.
    pub unnecessary: u64,
    /// From the start of a request to its whole answer, µs. In an open loop from when it ought to have started.
    pub times: Histogram<u64>,
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
            unnecessary: 0,
            times: histogram(),
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

    /// Copies that were needed, as far as answers have told.
    #[must_use]
    pub const fn necessary(&self) -> u64 {
        self.retransmissions.saturating_sub(self.unnecessary)
    }

    /// A time of the tally in milliseconds, below which this share of all answers lie; `None` if there are none.
    #[must_use]
    pub fn millis(&self, share: f64) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "an hour has less than 2^53 microseconds")]
        let micros = self.times.value_at_quantile(share) as f64;
        (!self.times.is_empty()).then_some(micros / 1e3)
    }

    /// The mean time to an answer in milliseconds; `None` if there are none.
    #[must_use]
    pub fn mean_millis(&self) -> Option<f64> {
        (!self.times.is_empty()).then(|| self.times.mean() / 1e3)
    }

    /// Takes up how a request ended.
    pub fn take(&mut self, ended: Result<Response, Error>, after: Duration) {
        match ended {
            Ok(answer) => {
                *(if answer.is_success() { &mut self.good } else { &mut self.refused }) += 1;
                self.times.saturating_record(u64::try_from(after.as_micros()).unwrap_or(u64::MAX).max(1));
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
            self.unnecessary += peer.unnecessary_retransmissions;
        }
    }
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
        assert!(tally.millis(1.0).is_some_and(|longest| (longest - 4.0).abs() < 0.01), "{:?}", tally.millis(1.0));
        assert_eq!((Tally::new("").millis(0.5), Tally::new("").mean_millis()), (None, None));
    }

    #[test]
    fn longer_than_an_hour_is_an_hour() {
        let mut tally = Tally::new("rfc7252");
        tally.take(Ok(Response::content("x")), Duration::from_secs(100_000));
        assert_eq!(tally.times.len(), 1);
    }
}
