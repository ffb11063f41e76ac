//! What names resolved to lately, and in which order their addresses are tried.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Cause, Error};

/// How long addresses are believed. The system's resolver does not tell their time to live, and has a cache of its own.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Names that are remembered.
const MOST: usize = 1_024;
/// Addresses of a name that are tried.
const MOST_ADDRESSES: usize = 16;

/// Names, each with a port; until when their addresses are believed, and these.
type Known = BTreeMap<(String, u16), (Instant, Vec<SocketAddr>)>;

/// Names that were resolved lately.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: Mutex<Known>,
}

impl Names {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses of a name, in the order in which they are tried; at least one.
    ///
    /// # Errors
    /// It has none, or the resolver does not say.
    pub(crate) async fn resolve(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        let now = Instant::now();
        if let Some((until, addresses)) = self.lock().get(&(name.to_owned(), port))
            && *until > now
        {
            return Ok(addresses.clone());
        }
        let failed = |reason, source| Error::NameNotResolved { host: name.to_owned(), reason, source };
        let found = tokio::net::lookup_host((name, port)).await;
        let found = found.map_err(|error| failed(error.to_string(), Cause::of(error)))?;
        let addresses = in_turn(found);
        if addresses.is_empty() {
            return Err(failed("it has no address".into(), None));
        }
        let mut known = self.lock();
        known.retain(|_, (until, _)| *until > now);
        if known.len() < MOST {
            known.insert((name.to_owned(), port), (now + GOOD_FOR, addresses.clone()));
        }
        Ok(addresses)
    }

    /// A name has these addresses.
    #[cfg(test)]
    pub(super) fn know(&self, name: &str, addresses: &[SocketAddr]) {
        let port = addresses.first().map_or(0, SocketAddr::port);
        self.lock().insert((name.to_owned(), port), (Instant::now() + GOOD_FOR, addresses.to_vec()));
    }

    /// This address of a name served better than those before it: it is tried first from now on.
    pub(crate) fn prefer(&self, name: &str, address: SocketAddr) {
        if let Some((_, addresses)) = self.lock().get_mut(&(name.to_owned(), address.port()))
            && let Some(place) = addresses.iter().position(|other| *other == address)
        {
            addresses[..=place].rotate_right(1);
        }
    }
}

/// Addresses in the resolver's order, but of the two families in turn (RFC 8305 §4), so that one that leads nowhere costs
/// one attempt.
fn in_turn(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    found.for_each(|address| {
        if !all.contains(&address) {
            all.push(address)
        }
    });
    let is_first_v4 = all.first().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = all.into_iter().partition(|address| address.is_ipv4() == is_first_v4);
    let longest = first.len().max(second.len());
    let pairs = (0..longest).flat_map(|place| [first.get(place), second.get(place)]);
    pairs.flatten().take(MOST_ADDRESSES).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_beginning_with_the_resolvers_choice() {
        let all = ["[2001:db8::1]:5", "[2001:db8::2]:5", "[2001:db8::1]:5", "192.0.2.1:5"];
        let all = all.map(|text| text.parse::<SocketAddr>().unwrap());
        assert_eq!(in_turn(all.into_iter()), [all[0], all[3], all[1]]);
        assert_eq!(in_turn(all.into_iter().rev()), [all[3], all[2], all[1]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_known_for_a_minute_and_its_best_address_comes_first() {
        let names = Names::default();
        let here = names.resolve("localhost", 5683).await.unwrap();
        assert!(here.iter().all(|address| address.ip().is_loopback()));
        // What stands in the cache is given, whatever the resolver would say.
        let others: Vec<SocketAddr> = vec!["192.0.2.1:5683".parse().unwrap(), "192.0.2.2:5683".parse().unwrap()];
        names.lock().get_mut(&("localhost".into(), 5683)).unwrap().1.clone_from(&others);
        assert_eq!(names.resolve("localhost", 5683).await.unwrap(), others);
        names.prefer("localhost", others[1]);
        assert_eq!(names.resolve("localhost", 5683).await.unwrap(), [others[1], others[0]]);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(names.resolve("localhost", 5683).await.unwrap(), [others[1], others[0]]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(names.resolve("localhost", 5683).await.unwrap(), here);
        assert!(matches!(names.resolve("no-such-name.invalid", 1).await, Err(Error::NameNotResolved { .. })));
    }
}
