//! An observed resource, as a stream of its newest states.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_core::Stream;
use tokio::task::AbortHandle;

use super::{lasting::Registration, request::Guard};
use crate::{Error, PeerIdentity, Response};

/// Representations of an observed resource, the first included (RFC 7641). Who is slow to take them gets the newest
/// only. Dropping it tells the server that nobody observes any more.
///
/// It lasts: where the server ends it, or is silent, or a session or connection is lost, the client registers again, until
/// that is [given up](super::RequestBuilder::give_up_after). [`event`](Self::event) reports each such gap,
/// [`next`](Self::next) of representations alone. Its last answer, or an error, is the last there is.
#[derive(Debug)]
pub struct Observation {
    newest: Newest,
    guard: Current,
    task: AbortHandle,
}

/// What is to be reported of an observation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed {
    /// A newer representation.
    State(Response),
    /// None will come for a while.
    Interrupted(Interruption),
}

/// Why no representations come. They follow once the observation stands again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// The server ended it with this answer, or did not take it up again. The client registers again after so long.
    Ended {
        /// What the server answered.
        answer: Response,
        /// The time until it is tried.
        again_in: Duration,
    },
    /// Its session or connection ended, or nobody answers. The client registers again after so long.
    Lost {
        /// What went wrong.
        why: Error,
        /// The time until it is tried.
        again_in: Duration,
    },
    /// Nothing came for so long, although the last representation is out of date (Max-Age) and the client has registered again.
    Silent {
        /// The time since the last one.
        since: Duration,
    },
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { answer, again_in } => {
                let how = if answer.is_success() { "does not tell of changes any more" } else { "ended it" };
                write!(f, "the server {how} ({}); registering again in {}", answer.code(), seconds(*again_in))
            }
            Self::Lost { why, again_in } => write!(f, "{why}; registering again in {}", seconds(*again_in)),
            Self::Silent { since } => {
                write!(f, "nothing came for {}, and the state is out of date; registering again", seconds(*since))
            }
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// What cancels the registration that stands, if any does.
pub(super) type Current = Arc<Mutex<Option<Guard>>>;

impl Observation {
    /// One whose registrations a task keeps up.
    pub(super) fn kept(first: Registration, keep: impl FnOnce(Newest, Newest, Current) -> AbortHandle) -> Self {
        let (newest, guard) = (Newest::default(), Arc::new(Mutex::new(Some(first.guard))));
        let task = keep(first.newest, newest.clone(), Arc::clone(&guard));
        Self { newest, guard, task }
    }

    /// The next representation; an error is the last there is, and then the end.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        std::future::poll_fn(|cx| self.newest.poll_state(cx)).await
    }

    /// The next representation, or why none comes for a while; an error is the last there is, and then the end.
    ///
    /// ```no_run
    /// use millpond_live::{Client, Observed};
    ///
    /// # async fn run() -> Result<(), millpond_live::Error> {
    /// let client = Client::new().await?;
    /// let mut level = client.get("coap://192.0.2.1/level").observe().await?;
    /// while let Some(event) = level.event().await {
    ///     match event? {
    ///         Observed::State(state) => println!("{}", state.text().unwrap_or("?")),
    ///         Observed::Interrupted(why) => eprintln!("{why}"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn event(&mut self) -> Option<Result<Observed, Error>> {
        std::future::poll_fn(|cx| self.newest.poll(cx)).await
    }

    /// Forgets it without a word to the server, as a client that was restarted would: later notifications are rejected
    /// with resets (RFC 7641 §3.6).
    pub fn forget(self) {
        self.task.abort();
        if let Some(guard) = self.guard.lock().unwrap_or_else(PoisonError::into_inner).take() {
            guard.forget();
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.task.abort();
        // Which tells the server.
        drop(self.guard.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Stream for Observation {
    type Item = Result<Response, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.newest.poll_state(cx)
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
    /// What lies before the newest state, or behind it.
    interrupted: Option<Interruption>,
    is_interrupted_first: bool,
    /// The server has begun to report changes.
    has_begun: bool,
    /// Who the other side of its session has proved to be.
    identity: Option<Arc<PeerIdentity>>,
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

    /// It is asked for in a session in which the other side has proved to be this.
    pub(crate) fn asked_of(&self, identity: Option<&Arc<PeerIdentity>>) {
        self.lock().identity = identity.cloned();
    }

    /// Who that was.
    pub(super) fn identity(&self) -> Option<Arc<PeerIdentity>> {
        self.lock().identity.clone()
    }

    /// A newer state, instead of one that was not taken yet. Others will follow.
    pub(crate) fn put(&self, state: Response) {
        self.change(|place| {
            (place.state, place.has_begun) = (Some(state), true);
            place.is_interrupted_first = place.interrupted.is_some();
        });
    }

    /// For a while there will be none. Of several interruptions the last one is told.
    pub(super) fn interrupt(&self, why: Interruption) {
        self.change(|place| {
            place.is_interrupted_first &= place.interrupted.is_some();
            place.interrupted = Some(why);
        });
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

    /// Waits until there is something, and leaves it there. Whether the server has begun to report changes.
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

    fn poll_state(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Response, Error>>> {
        loop {
            match std::task::ready!(self.poll(cx)) {
                Some(Ok(Observed::State(state))) => return Poll::Ready(Some(Ok(state))),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Observed, Error>>> {
        let mut place = self.lock();
        if place.is_interrupted_first || place.state.is_none() {
            place.is_interrupted_first = false;
            if let Some(why) = place.interrupted.take() {
                return Poll::Ready(Some(Ok(Observed::Interrupted(why))));
            }
        }
        if let Some(state) = place.state.take() {
            return Poll::Ready(Some(Ok(Observed::State(state))));
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
        let next = async || std::future::poll_fn(|cx| newest.poll_state(cx)).await;
        assert_eq!(next().await.unwrap().unwrap().text(), Ok("newest"));
        assert_eq!(next().await.unwrap().unwrap_err(), Error::Closed);
        assert!(next().await.is_none());
    }

    #[tokio::test]
    async fn an_interruption_is_told_in_its_place_before_the_state_that_follows() {
        let silent = |seconds| Interruption::Silent { since: Duration::from_secs(seconds) };
        let told = async |newest: &Newest| match std::future::poll_fn(|cx| newest.poll(cx)).await.unwrap().unwrap() {
            Observed::State(state) => state.text().unwrap().to_owned(),
            Observed::Interrupted(why) => why.to_string()[17..19].to_owned(),
        };
        let newest = Newest::default();
        newest.put(Response::content("old"));
        newest.interrupt(silent(10));
        newest.interrupt(silent(20));
        assert_eq!((told(&newest).await, told(&newest).await), ("old".into(), "20".into()));
        newest.put(Response::content("older"));
        newest.interrupt(silent(30));
        newest.put(Response::content("new"));
        assert_eq!((told(&newest).await, told(&newest).await), ("30".into(), "new".into()));
        newest.interrupt(silent(40));
        newest.put(Response::content("newer"));
        newest.put(Response::content("newest"));
        assert_eq!((told(&newest).await, told(&newest).await), ("40".into(), "newest".into()));
    }
}
