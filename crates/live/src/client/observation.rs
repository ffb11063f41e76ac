//! An observed resource, as a stream of its newest states.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;

use super::request::Guard;
use crate::{Error, Response};

/// Representations of an observed resource, the first included (RFC 7641). Who is slow to take them gets the newest
/// only. Dropping it tells the server that nobody observes any more.
///
/// When the server ends it, its last answer is the last there is.
#[derive(Debug)]
pub struct Observation {
    newest: Newest,
    guard: Guard,
}

impl Observation {
    pub(crate) const fn new(newest: Newest, guard: Guard) -> Self {
        Self { newest, guard }
    }

    /// The next representation; an error is the last there is, and then the end.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        std::future::poll_fn(|cx| self.newest.poll(cx)).await
    }

    /// Forgets it without a word to the server, as a client that was restarted would: later notifications are rejected
    /// with resets (RFC 7641 §3.6).
    pub fn forget(self) {
        self.guard.forget();
    }
}

impl Stream for Observation {
    type Item = Result<Response, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.newest.poll(cx)
    }
}

/// The place where the driver puts the newest state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Newest {
    shared: Arc<Mutex<Place>>,
}

#[derive(Debug, Default)]
struct Place {
    state: Option<Response>,
    /// The server has begun to tell of changes.
    has_begun: bool,
    error: Option<Error>,
    is_over: bool,
    waker: Option<Waker>,
}

impl Newest {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Place)) {
        let mut place = self.lock();
        change(&mut place);
        let waker = place.waker.take();
        drop(place);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A newer state, instead of one that was not taken yet. Others will follow.
    pub(crate) fn put(&self, state: Response) {
        self.change(|place| (place.state, place.has_begun) = (Some(state), true));
    }

    /// The last state, which may be the first one, too.
    pub(crate) fn put_last(&self, state: Response) {
        self.change(|place| (place.state, place.is_over) = (Some(state), true));
    }

    /// Something went wrong.
    pub(crate) fn fail(&self, error: Error) {
        self.change(|place| place.error = Some(error));
    }

    /// There will be no more.
    pub(crate) fn end(&self) {
        self.change(|place| place.is_over = true);
    }

    /// Waits until there is something, and leaves it there. Whether the server has begun to tell of changes.
    pub(crate) async fn ready(&self) -> Result<(Response, bool), Error> {
        std::future::poll_fn(|cx| {
            let mut place = self.lock();
            match (&place.state, &place.error) {
                (Some(state), _) => Poll::Ready(Ok((state.clone(), place.has_begun))),
                (None, Some(error)) => Poll::Ready(Err(error.clone())),
                (None, None) if place.is_over => Poll::Ready(Err(Error::Closed)),
                (None, None) => {
                    place.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Response, Error>>> {
        let mut place = self.lock();
        if let Some(state) = place.state.take() {
            return Poll::Ready(Some(Ok(state)));
        }
        if let Some(error) = place.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        if place.is_over {
            return Poll::Ready(None);
        }
        place.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_reader_gets_the_newest_state_and_then_the_end() {
        let newest = Newest::default();
        for state in ["old", "newer", "newest"] {
            newest.put(Response::content(state));
        }
        newest.fail(Error::Closed);
        newest.end();
        let next = async || std::future::poll_fn(|cx| newest.poll(cx)).await;
        assert_eq!(next().await.unwrap().unwrap().text(), Ok("newest"));
        assert_eq!(next().await.unwrap().unwrap_err(), Error::Closed);
        assert!(next().await.is_none());
    }
}
