//! When the state of a resource changes.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use super::Request;
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
    on_interest: Option<Box<OnInterest>>,
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

/// A function that is told of each request that begins to be observed. What it returns is dropped once nobody observes that any more.
type OnInterest = dyn Fn(&Request, Interest) -> Interested + Send + Sync;

/// What is kept as long as somebody observes.
pub(crate) type Interested = Box<dyn Send + Sync>;

/// What has changed since the worker looked last.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) all: bool,
    pub(crate) paths: BTreeSet<String>,
    /// Groups of observers whose state alone has changed.
    pub(crate) groups: BTreeSet<u64>,
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
        Self::with(false, None)
    }

    /// One whose notifications are all confirmable.
    #[must_use]
    pub fn confirmable() -> Self {
        Self::with(true, None)
    }

    /// One for resources whose state is made only while somebody observes, such as that of a device behind a proxy: `begins` is told of
    /// each request that begins to be observed, with what [notifies](Interest::notify) those who observe just that. What it returns
    /// is dropped once nobody does.
    ///
    /// Observers that asked the same share one request; each worker and each connection has its own.
    #[must_use]
    pub fn on_interest<G>(begins: impl Fn(&Request, Interest) -> G + Send + Sync + 'static) -> Self
    where
        G: Send + Sync + 'static,
    {
        Self::with(false, Some(Box::new(move |request, interest| Box::new(begins(request, interest)))))
    }

    fn with(is_confirmable: bool, on_interest: Option<Box<OnInterest>>) -> Self {
        let shared = Shared {
            is_confirmable,
            on_interest,
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

    /// The state has changed, and those whom that concerns are notified by their [`Interest`]: who is being answered at this moment, and is
    /// no observer yet, is notified once it is one.
    pub fn outdate(&self) {
        self.shared.version.fetch_add(1, Ordering::AcqRel);
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

    /// A group of observers that `listener` is told of begins to observe this.
    pub(crate) fn begin(&self, request: &Request, listener: &Arc<Listener>, group: u64) -> Option<Interested> {
        let of = Interest { observable: self.clone(), listener: Arc::clone(listener), group };
        self.shared.on_interest.as_ref().map(|begins| begins(request, of))
    }

    fn change(&self, change: impl Fn(&mut Changed)) {
        // Before anybody is told: who begins to listen now sees that it has changed.
        self.shared.version.fetch_add(1, Ordering::AcqRel);
        for listener in self.shared.listeners.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            listener.change(&change);
        }
    }
}

/// Observers that asked the same: what notifies them and nobody else. See [`Observable::on_interest`].
#[derive(Clone)]
pub struct Interest {
    observable: Observable,
    listener: Arc<Listener>,
    group: u64,
}

impl Interest {
    /// The state that they observe has changed: each of them gets what the handler answers now.
    pub fn notify(&self) {
        self.observable.outdate();
        self.listener.change(|changed| {
            changed.groups.insert(self.group);
        });
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interest").field("group", &self.group).finish_non_exhaustive()
    }
}

impl Changed {
    fn is_anything(&self) -> bool {
        self.all || !self.paths.is_empty() || !self.groups.is_empty() || self.end.is_some()
    }

    /// The state at this path has changed.
    /// Whether only groups that are named have changed.
    pub(crate) fn is_of_groups(&self) -> bool {
        !self.all && self.paths.is_empty()
    }

    pub(crate) fn concerns(&self, group: u64, path: &str) -> bool {
        self.all || self.groups.contains(&group) || self.paths.contains(path)
    }
}

impl Listener {
    fn change(&self, change: impl Fn(&mut Changed)) {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let was_told = changed.is_anything();
        change(&mut changed);
        drop(changed);
        if !was_told {
            (self.wake)();
        }
    }

    /// What has changed.
    pub(crate) fn take(&self) -> Changed {
        std::mem::take(&mut *self.changed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
