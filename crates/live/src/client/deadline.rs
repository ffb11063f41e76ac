//! Deadlines of requests.

use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

/// When a request is to end, and how long after it began.
pub(super) type Until = Option<(Instant, Duration)>;

/// That of one which begins now.
pub(super) fn until(deadline: Option<Duration>) -> Until {
    // One that is too far away to be told is none.
    deadline.and_then(|after| Some((Instant::now().checked_add(after)?, after)))
}

/// What is done by then. It lies in memory of its own: in each future that awaits it, it would lie once for each place that does.
pub(super) fn by<T>(
    until: Until,
    work: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    let work = Box::pin(work);
    async move {
        match until {
            Some((at, after)) => tokio::time::timeout_at(at, work).await.unwrap_or(Err(Error::Deadline { after })),
            None => work.await,
        }
    }
}

/// What is done within this time.
pub(super) fn within<T>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    by(until(deadline), work)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request in a request in a request took 70 kB, which were copied at each step.
    #[test]
    fn a_deadline_adds_no_copies_of_what_is_done_by_then() {
        let work = async {
            let room = [0_u8; 4_096];
            tokio::task::yield_now().await;
            Ok(room)
        };
        assert!(size_of_val(&work) >= 4_096);
        assert!(size_of_val(&within(None, work)) < 512);
    }
}
