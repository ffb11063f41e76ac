//! How a run that goes on in another thread is ended.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use mio::{Registry, Token, Waker};

/// Ends a run from anywhere, as often as one likes.
#[derive(Clone, Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Stop {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        Ok(Self { asked: Arc::default(), waker: Arc::new(Waker::new(registry, token)?) })
    }

    /// The run ends at once; what is inside the links is not forwarded.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes a waiting caller, and ends nothing.
    pub(crate) fn wake(&self) {
        // A run that is over cannot be woken.
        let _ = self.waker.wake();
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
