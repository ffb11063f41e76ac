//! An observation that outlives the registrations that it stands on.
//!
//! The stack below renews a registration when the newest state is out of date (Max-Age). What ends one for good is met here:
//! the server's last answer, a session or connection that is lost, a peer that does not answer.

use std::{sync::PoisonError, time::Duration};

use tokio::time::{Instant, sleep, timeout_at};

use super::{
    RequestBuilder,
    observation::{Current, Interruption, Newest, Observed},
    reconnect::{chance, refusal},
    request::Guard,
};
use crate::{Error, Response};

/// A registration that stands.
pub(super) struct Registration {
    pub(super) newest: Newest,
    pub(super) guard: Guard,
}

/// What keeps an observation up.
pub(super) struct Lasting {
    pub(super) request: RequestBuilder,
    pub(super) told: Newest,
    pub(super) current: Current,
}

/// Why a registration does not stand.
enum End {
    /// The server's last answer.
    Answered(Response),
    Failed(Error),
}

/// After how long something ought to have come when a state is out of date: the client registers again 5 to 15 s behind
/// that (RFC 7641 §3.3.1), and then one answer is on its way.
const RENEWED_WITHIN: Duration = Duration::from_secs(20);

impl Lasting {
    /// Keeps the observation up until that is given up.
    pub(super) async fn keep(mut self, first: Newest) {
        let mut newest = first;
        loop {
            let end = self.follow(&newest).await;
            self.stands_on(None);
            let Some(next) = self.register_again(end).await else { return };
            self.stands_on(Some(next.guard));
            newest = next.newest;
        }
    }

    fn stands_on(&self, guard: Option<Guard>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = guard;
    }

    /// Hands states on as long as the registration stands.
    async fn follow(&self, newest: &Newest) -> End {
        let (mut last, mut heard, mut is_silent) = (None::<Response>, Instant::now(), false);
        loop {
            let next = std::future::poll_fn(|cx| newest.poll(cx));
            let fresh = last.as_ref().map_or(Duration::ZERO, Response::freshness);
            let due = heard.checked_add(fresh + RENEWED_WITHIN);
            // A connection that stands keeps its observations, and is asked whether it does by its own task.
            let due = due.filter(|_| last.is_some() && !is_silent && self.request.is_over_datagrams());
            let came = match due {
                Some(due) => timeout_at(due, next).await,
                None => Ok(next.await),
            };
            match came {
                Ok(Some(Ok(Observed::State(state)))) if state.is_success() => {
                    (heard, is_silent, last) = (Instant::now(), false, Some(state.clone()));
                    self.told.put(state);
                }
                Ok(Some(Ok(Observed::State(answer)))) => return End::Answered(answer),
                // Registrations have none of their own.
                Ok(Some(Ok(Observed::Interrupted(_)))) => {}
                Ok(Some(Err(error))) => return End::Failed(error),
                Ok(None) => return last.map_or(End::Failed(Error::Closed), End::Answered),
                Err(_) => {
                    is_silent = true;
                    self.told.interrupt(Interruption::Silent { since: heard.elapsed() });
                }
            }
        }
    }

    /// Registers again, until it stands. None if that was given up, which is told.
    async fn register_again(&mut self, mut end: End) -> Option<Registration> {
        let began = Instant::now();
        let pauses = self.request.reconnect().pauses;
        let mut failures = 1;
        // A server that begins anew wants a proof first, which waits for nothing.
        if let End::Answered(answer) = &end
            && self.request.proves(answer, &mut (0..1))
        {
            end = match self.register().await {
                Ok(registration) => return Some(registration),
                Err(end) => end,
            };
        }
        loop {
            // The first time what stood was lost, which a whole fleet may have noticed.
            let lost = if failures == 1 { pauses.after_loss(chance()) } else { Duration::ZERO };
            let again_in = pauses.after_failures(failures, end.refusal(), chance()).max(lost);
            let is_hopeless = matches!(end, End::Failed(Error::Closed));
            if is_hopeless || began.elapsed().saturating_add(again_in) >= self.request.lasts_for() {
                match end {
                    // It has been told.
                    End::Answered(answer) if answer.is_success() => self.told.end(),
                    End::Answered(answer) => self.told.put_last(answer),
                    End::Failed(error) => {
                        self.told.fail(error);
                        self.told.end();
                    }
                }
                return None;
            }
            self.told.interrupt(match &end {
                End::Answered(answer) => Interruption::Ended { answer: answer.clone(), again_in },
                End::Failed(why) => Interruption::Lost { why: why.clone(), again_in },
            });
            sleep(again_in).await;
            end = match self.register().await {
                Ok(registration) => return Some(registration),
                Err(end) => end,
            };
            failures += 1;
        }
    }

    async fn register(&mut self) -> Result<Registration, End> {
        match self.request.register().await {
            Ok(registration) => Ok(registration),
            Err(Error::NotObserved { answer }) => {
                if answer.is_success() {
                    self.told.put((*answer).clone());
                }
                Err(End::Answered(*answer))
            }
            Err(error) => Err(End::Failed(error)),
        }
    }
}

impl End {
    /// For how long the server does not want to be asked, if it says so.
    fn refusal(&self) -> Option<Duration> {
        match self {
            Self::Answered(answer) => refusal(answer),
            Self::Failed(_) => None,
        }
    }
}
