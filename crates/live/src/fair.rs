//! Turns for what only so much of can be done at a time.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use millpond_coap::quota::FairQueue;
use tokio::sync::oneshot;

use crate::udp::network_of;

/// A semaphore whose queue has a place for each network: the networks of those who wait take turns, and in each its peers in the
/// order in which they came. Who asks for much waits for itself, and not everybody behind it.
///
/// A network is 24 bits of an IPv4 address or 48 of an IPv6 one.
#[derive(Clone, Debug)]
pub struct FairSemaphore(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    all: usize,
    queue: FairQueue<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    permits: usize,
    granted: oneshot::Sender<FairPermit>,
}

/// Permits of a [`FairSemaphore`], until this is dropped.
#[derive(Debug)]
pub struct FairPermit {
    of: FairSemaphore,
    permits: usize,
}

impl FairSemaphore {
    /// With so many permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self(Arc::new(Mutex::new(State { free: permits, all: permits, queue: FairQueue::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for so many permits, or for all if there are no more than that, on behalf of this peer. To stop waiting drop the
    /// future.
    pub async fn acquire(&self, peer: SocketAddr, permits: usize) -> FairPermit {
        let granted = {
            let mut state = self.state();
            let permits = permits.min(state.all);
            if state.queue.is_empty() && permits <= state.free {
                state.free -= permits;
                return FairPermit { of: self.clone(), permits };
            }
            let (granted, waits) = oneshot::channel();
            state.queue.push(network_of(peer), Waiting { permits, granted });
            waits
        };
        // Who waits keeps the semaphore, and this one its queue.
        granted.await.unwrap_or_else(|_| FairPermit { of: self.clone(), permits: 0 })
    }

    /// So many permits are free again.
    fn release(&self, permits: usize) {
        let mut state = self.state();
        state.free += permits;
        while state.queue.next().is_some_and(|next| next.permits <= state.free) {
            let Some(Waiting { permits, granted }) = state.queue.pop() else { return };
            match granted.send(FairPermit { of: self.clone(), permits }) {
                Ok(()) => state.free -= permits,
                // It stopped waiting, and takes nothing.
                Err(mut unwanted) => unwanted.permits = 0,
            }
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.of.release(self.permits);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        task::{Context, Waker},
    };

    use super::*;

    fn is_granted<F: Future<Output = FairPermit>>(waiting: Pin<&mut F>) -> Option<FairPermit> {
        match waiting.poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(permit) => Some(permit),
            std::task::Poll::Pending => None,
        }
    }

    fn at(network: u8, host: u8) -> SocketAddr {
        ([198, 51, network, host], 5_683).into()
    }

    #[test]
    fn networks_take_turns_however_many_of_one_wait() {
        let turns = FairSemaphore::new(1);
        let first = is_granted(pin!(turns.acquire(at(1, 1), 1)));
        let mut crowd: Vec<_> = (0..100).map(|host| Box::pin(turns.acquire(at(1, host), 1))).collect();
        assert!(crowd.iter_mut().all(|waiting| is_granted(waiting.as_mut()).is_none()));
        let mut other = pin!(turns.acquire(at(2, 1), 1));
        assert!(is_granted(other.as_mut()).is_none());
        drop(first);
        let mut granted = is_granted(crowd[0].as_mut());
        assert!(granted.is_some() && is_granted(other.as_mut()).is_none());
        drop(granted.take());
        // A hundred came before it, and it is the second.
        drop(is_granted(other.as_mut()).expect("its turn"));
        for waiting in crowd.iter_mut().skip(1) {
            drop(is_granted(waiting.as_mut()).expect("one after the other"));
        }
        let state = turns.state();
        assert_eq!((state.free, state.queue.is_empty()), (1, true));
    }

    #[test]
    fn who_stops_waiting_takes_nothing_and_who_wants_more_than_there_is_gets_all() {
        let turns = FairSemaphore::new(4);
        let held = is_granted(pin!(turns.acquire(at(1, 1), 9))).expect("all");
        let mut gone = Box::pin(turns.acquire(at(1, 2), 2));
        let mut gone_late = Box::pin(turns.acquire(at(2, 2), 2));
        let mut large = pin!(turns.acquire(at(3, 3), 3));
        for waiting in [gone.as_mut(), gone_late.as_mut()] {
            assert!(is_granted(waiting).is_none());
        }
        assert!(is_granted(large.as_mut()).is_none());
        drop(gone);
        drop(held);
        assert!(is_granted(large.as_mut()).is_none(), "two of four are another's");
        // It was granted what it no longer wants.
        drop(gone_late);
        assert_eq!(is_granted(large.as_mut()).map(|permit| permit.permits), Some(3));
        assert_eq!(turns.state().free, 4);
    }
}
