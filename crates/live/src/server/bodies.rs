//! Long bodies of answers, known by where they lie: each is hashed once, outside of the tasks that everybody waits for.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::task::spawn_blocking;

use crate::{
    FairSemaphore, Response,
    transfer::{SharedBody, WeakBody},
};

/// Bytes of a body that are hashed where it is answered: it takes some microseconds.
const AT_ONCE: usize = 16 << 10;
/// Bodies that are hashed at a time; others have the rest of the processors.
const HASHED_AT_A_TIME: usize = 2;
/// Bodies that are remembered until those that nobody holds any more are looked for.
const LEAST: usize = 64;

/// The bodies that somebody still holds.
#[derive(Debug)]
pub(super) struct Bodies {
    known: Mutex<Known>,
    turns: FairSemaphore,
}

#[derive(Debug, Default)]
struct Known {
    /// By where they are and how long: as long as one is held nothing else is there.
    places: HashMap<(usize, usize), WeakBody>,
    /// By tag and length.
    alike: HashMap<(u64, usize), WeakBody>,
    /// How many there may be until those that are gone are taken away.
    most: usize,
    /// How many were hashed.
    hashed: u64,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { known: Mutex::default(), turns: FairSemaphore::new(HASHED_AT_A_TIME) }
    }
}

impl Bodies {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A response with its body as others hold it, if that costs nothing by its length.
    ///
    /// # Errors
    /// The response, if it does.
    #[allow(clippy::result_large_err, reason = "it is passed on as it is")]
    pub(super) fn at_once(&self, response: Response) -> Result<Response, Response> {
        let bytes = response.payload();
        let known = self.known().places.get(&place(bytes)).and_then(WeakBody::upgrade);
        match known {
            Some(shared) => Ok(response.with_shared(shared)),
            None if bytes.len() <= AT_ONCE => {
                let shared = self.made(bytes.clone());
                Ok(response.with_shared(shared))
            }
            None => Err(response),
        }
    }

    /// The same, however long it takes, when it is the turn of this peer's network.
    pub(super) async fn shared(self: Arc<Self>, peer: SocketAddr, response: Response) -> Response {
        let response = match self.at_once(response) {
            Ok(response) => return response,
            Err(response) => response,
        };
        let turn = self.turns.acquire(peer, 1).await;
        let bytes = response.payload().clone();
        let made = spawn_blocking(move || {
            // Others that waited may have wanted the same one.
            let known = self.known().places.get(&place(&bytes)).and_then(WeakBody::upgrade);
            let shared = known.unwrap_or_else(|| self.made(bytes));
            drop(turn);
            shared
        });
        match made.await {
            Ok(shared) => response.with_shared(shared),
            // The runtime ends.
            Err(_) => response,
        }
    }

    /// Hashes a body and remembers it. One that is held already and has the same bytes takes its place.
    fn made(&self, bytes: Bytes) -> SharedBody {
        let at = place(&bytes);
        let made = SharedBody::new(bytes);
        let of = (made.tag(), made.len());
        let mut known = self.known();
        known.hashed += 1;
        if let Some(alike) = known.alike.get(&of).and_then(WeakBody::upgrade) {
            // Nobody is to wait until they are compared.
            drop(known);
            if *alike == *made {
                return alike;
            }
            known = self.known();
        }
        known.places.insert(at, made.downgrade());
        known.alike.insert(of, made.downgrade());
        if known.places.len() > known.most {
            let Known { places, alike, most, .. } = &mut *known;
            places.retain(|_, body| body.upgrade().is_some());
            alike.retain(|_, body| body.upgrade().is_some());
            *most = LEAST.max(places.len() * 2);
        }
        made
    }

    /// How many bodies were hashed.
    #[cfg(test)]
    pub(super) fn hashed(&self) -> u64 {
        self.known().hashed
    }
}

fn place(bytes: &Bytes) -> (usize, usize) {
    (bytes.as_ptr().addr(), bytes.len())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn peer() -> SocketAddr {
        ([192, 0, 2, 1], 5_683).into()
    }

    #[test]
    fn bodies_alike_that_are_hashed_at_a_time_are_one() {
        let rounds: Vec<_> = std::iter::repeat_with(Bodies::default).take(10_000).collect();
        let ready = AtomicUsize::new(0);
        let made = || -> Vec<SharedBody> {
            let make = |(round, bodies): (usize, &Bodies)| {
                let bytes = Bytes::from(vec![7; 64]);
                // A barrier of the standard library wakes one after the other.
                ready.fetch_add(1, Ordering::Relaxed);
                while ready.load(Ordering::Relaxed) < 2 * (round + 1) {
                    std::thread::yield_now();
                }
                bodies.made(bytes)
            };
            rounds.iter().enumerate().map(make).collect()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(made);
            let (ours, theirs) = (made(), other.join().expect("no panic"));
            assert!(ours.iter().zip(&theirs).all(|(one, other)| one.is(other)));
        });
    }

    #[tokio::test]
    async fn a_body_is_hashed_once_as_long_as_somebody_holds_it_and_one_alike_is_the_same() {
        let bodies = Arc::new(Bodies::default());
        let long = Bytes::from(vec![7; 3 << 20]);
        let answer = || Response::content(long.clone());
        assert!(bodies.at_once(answer()).is_err(), "three mebibytes take long");
        let first = Arc::clone(&bodies).shared(peer(), answer()).await;
        for _ in 0..1_000 {
            let again = bodies.at_once(answer()).expect("it is known");
            assert!(again.shared().zip(first.shared()).is_some_and(|(again, first)| again.is(first)));
        }
        assert_eq!(bodies.hashed(), 1);
        // A peer that makes it anew for each answer does not have it in memory as often.
        let alike = Arc::clone(&bodies).shared(peer(), Response::content(vec![7; 3 << 20])).await;
        assert!(alike.shared().zip(first.shared()).is_some_and(|(alike, first)| alike.is(first)));
        // A part of it is another body.
        let part = Arc::clone(&bodies).shared(peer(), Response::content(long.slice(1..))).await;
        assert!(part.shared().is_some_and(|part| part.len() == (3 << 20) - 1));
        assert_eq!(bodies.hashed(), 3);
        drop((first, alike, part));
        for number in 0..10 * LEAST {
            drop(bodies.at_once(Response::content(number.to_string())).expect("it is short"));
        }
        assert!(bodies.known().places.len() <= LEAST + 1, "what nobody holds is forgotten");
    }
}
