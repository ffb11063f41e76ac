//! Handlers while they run: at once or in tasks, in time or not, well or with a panic.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use millpond_coap::message::Code;
use tokio::sync::watch;

use super::handler::Answering;
use crate::Response;

/// A future that may panic: then that is its output, and nobody else is harmed.
pub(crate) struct Caught<F>(pub(crate) Pin<Box<F>>);

/// It panicked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panicked;

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = &mut self.0;
        match catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    }
}

/// Asks a handler. One that has its answer at hand needs no task of its own.
pub(super) fn start(ask: impl FnOnce() -> Result<Response, Answering>) -> Result<Response, Answering> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| Ok(broken()))
}

/// A handler that never ends does not keep its place for ever, nor beyond the end of its server: then its answer is 5.03.
/// One whose request's body comes bit by bit is given as long for each of these, which `came` counts.
pub(super) async fn within(
    limit: Duration,
    answering: Answering,
    mut giving_up: watch::Receiver<bool>,
    came: Option<Arc<AtomicU64>>,
) -> Response {
    let unavailable = || Response::new(Code::SERVICE_UNAVAILABLE);
    let ended = async {
        // Who would say so is gone with the server, and this task with it.
        if giving_up.wait_for(|is| *is).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let of_body = came.is_some();
    let came = || came.as_ref().map_or(0, |came| came.load(Ordering::Relaxed));
    let mut answering = Caught(Box::pin(answering));
    let in_time = async {
        loop {
            let before = came();
            let answered = tokio::time::timeout(limit, &mut answering).await;
            if answered.is_ok() || came() == before {
                break answered;
            }
        }
    };
    tokio::select! {
        answered = in_time => match answered {
            Ok(answered) => answered.unwrap_or_else(|Panicked| broken()),
            Err(_) if of_body => {
                tracing::warn!(target: "millpond_live", "for {limit:?} a body did not go on, or its handler; its request is answered with 5.03");
                unavailable()
            }
            Err(_) => {
                tracing::error!(target: "millpond_live", "a handler took more than {limit:?}; its request is answered with 5.03");
                unavailable()
            }
        },
        () = ended => unavailable(),
    }
}

fn broken() -> Response {
    tracing::error!(target: "millpond_live", "a handler panicked; its request is answered with 5.00");
    Response::new(Code::INTERNAL_SERVER_ERROR)
}
