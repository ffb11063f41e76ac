//! When the state of a resource changes.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use crate::Response;

/// Tells the observers of the resources that it was given to that their state has changed (RFC 7641). Clones are one.
///
/// Observers get the newest state only, at the pace that their controllers allow: however often it is told, at most one
/// notification is under way to each of them.
#[derive(Clone)]
pub struct Observable {
    shared: Arc<Shared>,
}

struct Shared {
    is_confirmable: bool,
    observers: AtomicUsize,
    /// How often the state has changed.
    version: AtomicU64,
    listeners: Mutex<Vec<Arc<Listener>>>,
}

/// A worker that has observers.
pub(crate) struct Listener {
    changed: Mutex<Changed>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// What has changed since the worker looked last.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) all: bool,
    pub(crate) paths: BTreeSet<String>,
    pub(crate) end: Option<Response>,
}

impl Default for Observable {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Observable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observable").field("observers", &self.observers()).finish_non_exhaustive()
    }
}

impl Observable {
    /// One whose notifications are non-confirmable, but for one now and then that finds out who is still there.
    #[must_use]
    pub fn new() -> Self {
        Self::with(false)
    }

    /// One whose notifications are all confirmable.
    #[must_use]
    pub fn confirmable() -> Self {
        Self::with(true)
    }

    fn with(is_confirmable: bool) -> Self {
        let shared = Shared {
            is_confirmable,
            observers: AtomicUsize::new(0),
            version: AtomicU64::new(0),
            listeners: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The state has changed: each observer gets what the handler answers now.
    pub fn notify(&self) {
        self.change(|changed| changed.all = true);
    }

    /// The state at this path has changed, and at no other of the route.
    pub fn notify_path(&self, path: &str) {
        self.change(|changed| {
            changed.paths.insert(path.into());
        });
    }

    /// Nothing can be observed here any more: each observer gets this response and is none afterwards. Say with an
    /// error code why: 4.04 when the resource is gone (RFC 7641 §3.2).
    pub fn end(&self, last: Response) {
        self.change(|changed| changed.end = Some(last.clone()));
    }

    /// How many observe.
    #[must_use]
    pub fn observers(&self) -> usize {
        self.shared.observers.load(Ordering::Relaxed)
    }

    pub(crate) fn is_confirmable(&self) -> bool {
        self.shared.is_confirmable
    }

    pub(crate) fn count(&self, more: bool) {
        let observers = &self.shared.observers;
        if more {
            observers.fetch_add(1, Ordering::Relaxed);
        } else {
            observers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// `wake` is called after the first change that [`Listener::take`] has not taken.
    pub(crate) fn listen(&self, wake: impl Fn() + Send + Sync + 'static) -> Arc<Listener> {
        let listener = Arc::new(Listener { changed: Mutex::default(), wake: Box::new(wake) });
        self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&listener));
        listener
    }

    /// The worker has ended.
    pub(crate) fn unlisten(&self, listener: &Arc<Listener>) {
        let mut listeners = self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|known| !Arc::ptr_eq(known, listener));
    }

    /// How often the state has changed.
    pub(crate) fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    fn change(&self, change: impl Fn(&mut Changed)) {
        // Before anybody is told: who begins to listen now sees that it has changed.
        self.shared.version.fetch_add(1, Ordering::AcqRel);
        for listener in self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let mut changed = listener.changed.lock().unwrap_or_else(PoisonError::into_inner);
            let was_told = changed.is_anything();
            change(&mut changed);
            drop(changed);
            if !was_told {
                (listener.wake)();
            }
        }
    }
}

impl Changed {
    fn is_anything(&self) -> bool {
        self.all || !self.paths.is_empty() || self.end.is_some()
    }

    /// The state at this path has changed.
    pub(crate) fn concerns(&self, path: &str) -> bool {
        self.all || self.paths.contains(path)
    }
}

impl Listener {
    /// What has changed.
    pub(crate) fn take(&self) -> Changed {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
