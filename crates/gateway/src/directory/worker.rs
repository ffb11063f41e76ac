//! What a directory does by itself: it lets registrations expire, notifies observers, and writes to disk.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use millpond_live::database::Store;

use super::{Shared, store};

/// The time between two notifications of observers, and between two writes: a judgement. All that changes meanwhile is one of each.
const PAUSE: Duration = Duration::from_secs(1);

/// When writing is tried again after it failed.
const RETRY: Duration = Duration::from_secs(60);

/// Bytes of registrations that are written at a time, about.
const BATCH: usize = 1 << 20;

/// Runs until nobody has the directory any more, and writes what is left then.
pub(super) async fn run(
    shared: Arc<Shared>,
    disk: Option<Store>,
    mut orders: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
) {
    let told = shared.registry().revision();
    let mut worker = Worker { told, shared, disk, write_again_at: None };
    loop {
        let next = worker.next();
        let order = tokio::select! {
            order = orders.recv() => match order {
                Some(done) => Some(done),
                None => break,
            },
            () = worker.shared.work.notified() => None,
            () = sleep_until(next) => None,
        };
        worker.expire_and_notify();
        worker.write(order.is_some()).await;
        if let Some(done) = order {
            // Who does not wait any more need not know.
            let _ = done.send(());
            continue;
        }
        let pause = tokio::time::sleep(PAUSE);
        tokio::pin!(pause);
        // Those who wait for what is written do not wait for the pause.
        loop {
            tokio::select! {
                () = &mut pause => break,
                order = orders.recv() => {
                    worker.write(true).await;
                    match order {
                        Some(done) => drop(done.send(())),
                        None => return,
                    }
                }
            }
        }
    }
    worker.write(true).await;
}

struct Worker {
    shared: Arc<Shared>,
    disk: Option<Store>,
    /// What observers know.
    told: u64,
    /// Writing failed, and is not tried before.
    write_again_at: Option<Instant>,
}

impl Worker {
    /// When there is something to do if nothing else happens.
    fn next(&self) -> Instant {
        let end = self.shared.registry().next_end().unwrap_or(Duration::MAX);
        let end = self.shared.clock.at(end);
        self.write_again_at.map_or(end, |at| at.min(end))
    }

    fn expire_and_notify(&mut self) {
        let revision = {
            let mut registry = self.shared.registry();
            registry.expire(self.shared.clock.now());
            registry.revision()
        };
        if revision != self.told {
            self.told = revision;
            self.shared.changed.notify();
        }
    }

    /// Writes what has changed. After a failure it waits a while, unless it is to be done now.
    async fn write(&mut self, now: bool) {
        if !now && self.write_again_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let Some(mut disk) = self.disk.take() else {
            self.shared.registry().forget_changed();
            return;
        };
        loop {
            let (changed, next) = {
                let mut registry = self.shared.registry();
                (registry.take_changed(BATCH), registry.next())
            };
            if changed.is_empty() {
                break;
            }
            let ids: Vec<u64> = changed.iter().map(|(id, _)| *id).collect();
            let written;
            let now = self.shared.clock.now();
            (disk, written) = disk.with(move |database| store::write(database, &changed, next, now)).await;
            if let Err(trouble) = written {
                self.shared.registry().put_back(ids.into_iter());
                self.write_again_at = Some(Instant::now() + RETRY);
                self.tell(Some(trouble));
                self.disk = Some(disk);
                return;
            }
            self.write_again_at = None;
            self.tell(None);
        }
        self.disk = Some(disk);
    }

    /// Logs what is new.
    fn tell(&self, trouble: Option<String>) {
        let mut known = self.shared.trouble();
        if *known == trouble {
            return;
        }
        match &trouble {
            Some(trouble) => tracing::error!(target: "millpond_gateway", "{trouble}; it is tried again each minute"),
            None => tracing::info!(target: "millpond_gateway", "registrations are written to disk again"),
        }
        *known = trouble;
    }
}
