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

/// What is done by then.
pub(super) async fn by<T>(until: Until, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match until {
        Some((at, after)) => tokio::time::timeout_at(at, work).await.unwrap_or(Err(Error::Deadline { after })),
        None => work.await,
    }
}

/// What is done within this time.
pub(super) async fn within<T>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    by(until(deadline), work).await
}
