//! One load from its first request to its last answer.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use millpond_live::{Client, RequestBuilder};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::{Pace, Plan, Tally, pace};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::trace;

/// How long the answer to a non-confirmable request is awaited by default. It is not sent again, so where it is lost
/// a closed loop would stand still for NON_LIFETIME (RFC 7252 §4.8.2). As long as after the last request.
const NON_TIMEOUT: Duration = AFTERWARDS;

/// How long answers are awaited when no request starts any more.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Requests of an open loop that may wait for their answers; beyond, none is started, and that is told.
const MOST_WAITING: u32 = 100_000;

/// Requests that were left out in a row are counted in so many parts at most.
const MOST_PARTS: u64 = 10_000;

/// How often the progress bar moves.
const PROGRESS: Duration = Duration::from_millis(100);

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Phase {
    /// Requests start.
    Starting,
    /// None starts any more; answers are awaited.
    Awaiting,
    /// What has no answer is left so.
    Over,
}

/// What the tasks of a load share.
#[derive(Debug)]
struct Shared {
    plan: Plan,
    start: Instant,
    tally: Mutex<Tally>,
    /// Requests started or about to be.
    begun: AtomicU64,
    phase: watch::Receiver<Phase>,
}

/// Runs a load. True beside its tally: Ctrl-C ended it.
///
/// # Errors
/// A client that cannot be made.
pub(super) async fn run(plan: Plan, silent: bool, interrupt: &mut Interrupt) -> Result<(Tally, bool), Failure> {
    let mut clients = Vec::with_capacity(plan.clients);
    for _ in 0..plan.clients {
        let builder = Client::builder().nstart(plan.nstart).security(plan.security.clone());
        let mut builder = plan.repeating.apply(builder, Some(&plan.controller), plan.uri.transport())?;
        if let Some(contexts) = &plan.contexts {
            builder = builder.oscore(contexts.clone());
        }
        if plan.trace {
            builder = builder.trace(|event| trace::print(event, false));
        }
        clients.push(builder.build().await?);
    }
    let (phases, phase) = watch::channel(Phase::Starting);
    let tally = Mutex::new(Tally::new(plan.controller.name()));
    let shared = Arc::new(Shared { plan, start: Instant::now(), tally, begun: AtomicU64::new(0), phase });
    let progress = show_progress(&shared, silent);
    let interrupted = match shared.plan.pace {
        Pace::Closed => closed(&shared, &clients, &phases, interrupt).await,
        Pace::Open { rate, ramp } => open(&shared, &clients, &phases, (rate, ramp), interrupt).await,
    };
    progress.abort();
    // The bar is gone once its task is.
    let _ = progress.await;
    let mut tally = shared.tally().clone();
    for client in &clients {
        tally.take_counts(client).await;
    }
    Ok((tally, interrupted))
}

/// Each client has as many requests under way as NSTART lets leave, and asks again once one is answered.
async fn closed(
    shared: &Arc<Shared>,
    clients: &[Client],
    phases: &watch::Sender<Phase>,
    interrupt: &mut Interrupt,
) -> bool {
    let mut tasks = JoinSet::new();
    for client in clients {
        let own = Arc::new(AtomicU64::new(0));
        for _ in 0..shared.plan.nstart {
            let (shared, client, own) = (Arc::clone(shared), client.clone(), Arc::clone(&own));
            tasks.spawn(async move {
                let left = || shared.plan.count_each.is_none_or(|each| own.fetch_add(1, Ordering::Relaxed) < each);
                while left() && shared.may_start() {
                    shared.ask(&client, Instant::now()).await;
                }
            });
        }
    }
    let all_ended = async { while tasks.join_next().await.is_some() {} };
    tokio::pin!(all_ended);
    let interrupted = tokio::select! {
        () = &mut all_ended => return false,
        () = shared.end_of_starts() => false,
        () = interrupt.heard() => true,
    };
    interrupted | end(interrupted, phases, &mut all_ended, interrupt).await
}

/// Requests start at their time, the next client's each.
async fn open(
    shared: &Arc<Shared>,
    clients: &[Client],
    phases: &watch::Sender<Phase>,
    (rate, ramp): (f64, Duration),
    interrupt: &mut Interrupt,
) -> bool {
    let room = Arc::new(Semaphore::new(MOST_WAITING as usize));
    let end_of_starts = shared.end_of_starts();
    tokio::pin!(end_of_starts);
    let mut interrupted = false;
    let mut left_out: Vec<Range<u64>> = Vec::new();
    let mut next = 0;
    for (index, client) in (0_u64..).zip(clients.iter().cycle()) {
        next = index;
        let at = shared.start + pace::start(index, rate, ramp);
        tokio::select! {
            biased;
            () = interrupt.heard() => interrupted = true,
            () = &mut end_of_starts => {}
            () = sleep_until(at) => {
                if shared.may_start() {
                    let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
                        match left_out.last_mut() {
                            Some(last) if last.end == index => last.end += 1,
                            _ => left_out.push(index..index + 1),
                        }
                        continue;
                    };
                    let (shared, client) = (Arc::clone(shared), client.clone());
                    tokio::spawn(async move {
                        shared.ask(&client, at).await;
                        drop(permit);
                    });
                    continue;
                }
            }
        }
        break;
    }
    let after = shared.start.elapsed().min(shared.plan.duration.unwrap_or(Duration::MAX));
    let due = pace::due(after, rate, ramp).min(shared.plan.count.unwrap_or(u64::MAX));
    // What the loop itself came too late for.
    left_out.push(next..due.max(next));
    shared.tally().close(shared.slots(), due, after);
    let all_ended = async { drop(room.acquire_many(MOST_WAITING).await) };
    tokio::pin!(all_ended);
    let interrupted = interrupted | end(interrupted, phases, &mut all_ended, interrupt).await;
    let ended = shared.start.elapsed();
    let mut tally = shared.tally();
    for part in left_out.into_iter().flat_map(parts) {
        // All of a part as the last of it, which was due for the shortest time.
        let waited = ended.saturating_sub(pace::start(part.end.saturating_sub(1), rate, ramp));
        tally.leave_out(part.end - part.start, waited);
    }
    interrupted
}

/// A range in parts that are few, however long it is: a rate that nothing can reach leaves out more requests than can be counted
/// one by one.
fn parts(whole: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let step = (whole.end - whole.start).div_ceil(MOST_PARTS).max(1);
    (0..MOST_PARTS)
        .map(move |part| {
            let start = whole.start.saturating_add(part * step).min(whole.end);
            start..start.saturating_add(step).min(whole.end)
        })
        .filter(|part| !part.is_empty())
}

/// Waits for answers under way, and then no more. True if Ctrl-C cut that short.
async fn end(
    at_once: bool,
    phases: &watch::Sender<Phase>,
    all_ended: &mut (impl Future<Output = ()> + Unpin),
    interrupt: &mut Interrupt,
) -> bool {
    phases.send_replace(Phase::Awaiting);
    let mut interrupted = false;
    if !at_once {
        tokio::select! {
            ended = timeout(AFTERWARDS, &mut *all_ended) => if ended.is_ok() { return false },
            () = interrupt.heard() => interrupted = true,
        }
    }
    phases.send_replace(Phase::Over);
    all_ended.await;
    interrupted
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one request more may start; if so it counts as begun.
    fn may_start(&self) -> bool {
        let in_time = self.plan.duration.is_none_or(|duration| self.start.elapsed() < duration);
        *self.phase.borrow() == Phase::Starting
            && in_time
            && self.plan.count.is_none_or(|count| self.begun.fetch_add(1, Ordering::Relaxed) < count)
    }

    /// Requests that the clients may have under way together.
    fn slots(&self) -> u64 {
        (self.plan.clients as u64).saturating_mul(u64::from(self.plan.nstart))
    }

    async fn end_of_starts(&self) {
        match self.plan.duration {
            Some(duration) => sleep_until(self.start + duration).await,
            None => std::future::pending().await,
        }
    }

    /// One request, counted from `since`.
    async fn ask(&self, client: &Client, since: Instant) {
        self.tally().started += 1;
        let mut phase = self.phase.clone();
        let ended = tokio::select! {
            ended = self.request(client).send() => Some(ended),
            _ = phase.wait_for(|phase| *phase == Phase::Over) => None,
        };
        // It takes time until one is free; asking again at once would be all that is done.
        let must_rest = matches!(ended, Some(Err(millpond_live::Error::NoMessageId { .. })));
        {
            let mut tally = self.tally();
            match ended {
                Some(ended) => tally.take(ended, since.elapsed()),
                None => {
                    tally.unfinished += 1;
                    tally.leave_open(since.elapsed());
                }
            }
            tally.elapsed = self.start.elapsed();
        }
        if must_rest {
            tokio::select! {
                () = sleep_until(Instant::now() + Duration::from_secs(1)) => {}
                _ = phase.wait_for(|phase| *phase != Phase::Starting) => {}
            }
        }
    }

    fn request(&self, client: &Client) -> RequestBuilder {
        let mut request = client.request(self.plan.method, &self.plan.uri);
        if let Some((number, value)) = self.plan.host_option() {
            request = request.option(number, value);
        }
        if !self.plan.payload.is_empty() {
            request = request.payload(self.plan.payload.clone());
        }
        if self.plan.non {
            request = request.non_confirmable();
        }
        if let Some(time) = self.plan.timeout.or(self.plan.non.then_some(NON_TIMEOUT)) {
            request = request.deadline(time);
        }
        request
    }
}

/// A bar on standard error while the load runs; none where that is no terminal.
fn show_progress(shared: &Arc<Shared>, silent: bool) -> JoinHandle<()> {
    let target = if silent { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let whole = shared.plan.whole().unwrap_or_else(|| millis(shared.plan.duration.unwrap_or_default()));
    let bar = ProgressBar::with_draw_target(Some(whole), target);
    if let Ok(style) = ProgressStyle::with_template("{prefix:>16} [{bar:40}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(shared.plan.controller.name());
    let cleared = Cleared(bar);
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let Cleared(bar) = &cleared;
        let mut ticks = interval(PROGRESS);
        loop {
            ticks.tick().await;
            let tally = shared.tally();
            let ended = tally.answered() + tally.failed;
            bar.set_message(format!("{} answers, {:.0}/s, {} failed", tally.answered(), tally.rate(), tally.failed));
            drop(tally);
            bar.set_position(if shared.plan.whole().is_some() { ended } else { millis(shared.start.elapsed()) });
        }
    })
}

/// Takes the bar away when the task that moves it ends.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
