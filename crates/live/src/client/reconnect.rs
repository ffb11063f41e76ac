//! How a client comes back to servers: one policy for sessions of DTLS and TLS, connections of TCP and registrations of observers.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use millpond_coap::{Backoff, PathCache, Pauses};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{
    deadline::Until,
    path_cache::{path, peer_of},
};
use crate::{Error, Response, secrets};

/// How a client comes back to a server after a session, a connection or a registration was lost or refused, over every
/// transport.
///
/// An attempt that failed is followed by a pause before the next one to the same address: a second at first, twice as long
/// each time, at most a minute, and up to half as much again by chance, so that clients which were interrupted together
/// come apart. Requests meanwhile wait for it, and for no longer than their deadline. Max-Age of 5.03 and 4.29 makes the
/// pause longer (RFC 7252 §5.9.3.4, RFC 8516): at most an hour is believed. A request that is answered so is the application's to
/// [repeat](Self::repeat_refused), unless the policy says otherwise.
///
/// ```
/// use millpond_live::{Client, Reconnect};
///
/// // One of 400 devices in a cell of 60 kbit/s, where a handshake and a report take 1,900 bytes: they begin within 203 s.
/// let policy = Reconnect::new().spread_by_load(400, 1_900, 60_000).at_start().repeat_refused().handshakes(1);
/// let builder = Client::builder().reconnect(policy);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    pub(super) pauses: Pauses,
    at_start: bool,
    repeats_refused: bool,
    handshakes: usize,
}

/// A longer spread is a mistake.
const LONGEST_SPREAD: Duration = Duration::from_secs(86_400);
/// Addresses of which something is remembered; of further ones the next attempt begins at once.
const MOST_PEERS: usize = 4_096;

impl Reconnect {
    /// [Pauses](Pauses::new) of 1 s to 60 s, no spread, 256 handshakes at a time.
    #[must_use]
    pub const fn new() -> Self {
        Self::of(Pauses::new())
    }

    /// The same with these pauses, which firmware may have as well.
    #[must_use]
    pub const fn of(pauses: Pauses) -> Self {
        Self { pauses, at_start: false, repeats_refused: false, handshakes: 256 }
    }

    /// The pause after a first failure, and the longest one.
    #[must_use]
    pub const fn pauses(self, first: Duration, longest: Duration) -> Self {
        Self { pauses: self.pauses.between(first, longest), ..self }
    }

    /// After a session, connection or registration that stood was lost, wait a time that is uniform up to this before the
    /// first attempt: what a fleet needs when its server restarts.
    #[must_use]
    pub const fn spread(self, spread: Duration) -> Self {
        Self { pauses: self.pauses.spread(spread), ..self }
    }

    /// The same, computed of what [many devices](Pauses::spread_by_load) have to send on a link that they share.
    #[must_use]
    pub const fn spread_by_load(self, devices: u32, bytes: u32, bits_per_second: u32) -> Self {
        Self { pauses: self.pauses.spread_by_load(devices, bytes, bits_per_second), ..self }
    }

    /// The first requests, observations and pings of a client wait a part of the [spread](Self::spread) as well, over every transport and
    /// before names are resolved: what devices need that a power cut has stopped together. A client waits once, whomever it asks, from
    /// when it was built.
    #[must_use]
    pub const fn at_start(self) -> Self {
        Self { at_start: true, ..self }
    }

    /// A request or registration that a server refuses for a while (5.03 or 4.29) is sent again by itself, over every transport, when
    /// Max-Age is over: in pauses as after failures, as often as its deadline allows. Nothing of it was carried out, so that POST is sent
    /// again, too. What has no deadline, or too little time left, ends with the refusal, and so do bodies that are streamed.
    #[must_use]
    pub const fn repeat_refused(self) -> Self {
        Self { repeats_refused: true, ..self }
    }

    /// Connections and sessions that may be on their way at a time, of each transport.
    #[must_use]
    pub const fn handshakes(self, most: usize) -> Self {
        Self { handshakes: most, ..self }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |reason: &str| Err(Error::Setting { name: "reconnect", reason: reason.into() });
        match (self.handshakes, self.pauses.first(), self.pauses.after_loss(u32::MAX)) {
            (0, ..) => wrong("0 handshakes at a time are none; use 1 or more"),
            (_, Duration::ZERO, _) => wrong("no pause after a failure; use 100 ms or more"),
            (_, first, _) if first > self.pauses.longest() => wrong("the first pause is longer than the longest"),
            (.., Duration::ZERO) if self.at_start => wrong("at_start spreads nothing without a spread; give one"),
            (.., spread) if spread > LONGEST_SPREAD => {
                wrong("a spread of more than a day; give the link's rate, in bit/s")
            }
            _ => Ok(()),
        }
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Self::new()
    }
}

/// For how long a server does not want to be asked, if its answer says so.
pub(super) fn refusal(answer: &Response) -> Option<Duration> {
    answer.code().refuses_for_a_while().then(|| answer.freshness())
}

/// A word of chance. Without random bytes clients come together.
pub(crate) fn chance() -> u32 {
    secrets::bytes().map_or(0, u32::from_le_bytes)
}

/// What a client knows of attempts to come back, shared by all who make some.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    pub(super) policy: Reconnect,
    /// Nothing is asked before this.
    begins: Option<Instant>,
    shared: Arc<Mutex<Known>>,
    /// What is known has changed.
    changed: Arc<Notify>,
    /// One over TCP or TLS has ended.
    #[cfg(feature = "tcp")]
    ended: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Known {
    peers: BTreeMap<SocketAddr, Peer>,
    /// Connections that are being made.
    #[cfg(feature = "tcp")]
    rising: usize,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    /// In a row.
    failures: u32,
    /// When the pause began.
    since: Instant,
    /// When the next attempt may begin.
    next: Instant,
}

/// Why an attempt may not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Later {
    /// Not before this.
    At(Instant),
    /// Not before another one has ended.
    AfterAnother,
}

impl Attempts {
    pub(super) fn new(policy: Reconnect) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Its client begins now.
    pub(super) fn begin(&mut self, now: Instant, chance: u32) {
        if self.policy.at_start {
            self.begins = now.checked_add(self.policy.pauses.after_loss(chance));
        }
    }

    /// Waits until the first may be asked.
    pub(super) async fn begun(&self) {
        if let Some(at) = self.begins {
            sleep_until(at).await;
        }
    }

    /// When a request is to be sent again that was refused so often, lastly by this.
    pub(super) fn again(
        &self,
        refusals: u32,
        answer: &Response,
        until: Until,
        chance: impl FnOnce() -> u32,
    ) -> Option<Instant> {
        let told = refusal(answer).filter(|_| self.policy.repeats_refused)?;
        let at = Instant::now().checked_add(self.policy.pauses.after_failures(refusals, Some(told), chance()))?;
        until.filter(|(until, _)| at < *until).map(|_| at)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an attempt may begin, beside so many others.
    pub(crate) fn may(&self, now: Instant, peer: SocketAddr, others: usize) -> Result<(), Later> {
        match self.lock().peers.get(&peer) {
            Some(peer) if peer.next > now => Err(Later::At(peer.next)),
            _ if others >= self.policy.handshakes => Err(Later::AfterAnother),
            _ => Ok(()),
        }
    }

    /// An attempt failed.
    pub(crate) fn failed(&self, now: Instant, peer: SocketAddr, chance: u32) {
        self.wait(now, peer, |known| {
            let failures = known.saturating_add(1);
            (failures, self.policy.pauses.after_failures(failures, None, chance))
        });
    }

    /// What stood was lost.
    pub(crate) fn lost(&self, now: Instant, peer: SocketAddr, chance: u32) {
        self.wait(now, peer, |failures| (failures, self.policy.pauses.after_loss(chance)));
    }

    /// A server refused for a while (5.03, 4.29).
    pub(super) fn refused(&self, now: Instant, peer: SocketAddr, told: Duration, chance: u32) {
        self.wait(now, peer, |failures| (failures, self.policy.pauses.after_refusal(told, chance)));
    }

    /// An attempt succeeded.
    pub(crate) fn stands(&self, peer: SocketAddr) {
        if self.lock().peers.remove(&peer).is_some() {
            self.changed.notify_one();
        }
    }

    /// Begins with what an earlier client knew.
    pub(super) fn recall(&self, memory: &PathCache, now: Instant, seconds: u64) {
        let mut known = self.lock();
        for (path, backoff) in memory.backoffs(seconds) {
            let Some(peer) = peer_of(path) else { continue };
            let next = now.checked_add(backoff.left(seconds)).unwrap_or(now);
            known.peers.insert(peer, Peer { failures: backoff.failures, since: now, next });
        }
    }

    /// Has all of this remembered.
    pub(super) fn remember(&self, memory: &mut PathCache, now: Instant, seconds: u64) {
        let known = self.lock();
        memory.set_backoffs(known.peers.iter().map(|(peer, Peer { failures, since, next })| {
            let (pause, passed) = (next.duration_since(*since), now.saturating_duration_since(*since));
            let since = seconds.saturating_sub(passed.as_secs());
            (path(*peer), Backoff { failures: *failures, pause, since })
        }));
    }

    /// Waits until there is something new to remember.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Sets when the next attempt may begin, which never comes sooner by that.
    fn wait(&self, now: Instant, peer: SocketAddr, told: impl FnOnce(u32) -> (u32, Duration)) {
        let mut known = self.lock();
        if known.peers.len() >= MOST_PEERS && !known.peers.contains_key(&peer) {
            known.peers.retain(|_, peer| peer.next > now);
        }
        if known.peers.len() >= MOST_PEERS && !known.peers.contains_key(&peer) {
            return;
        }
        let before = known.peers.get(&peer).copied().unwrap_or(Peer { failures: 0, since: now, next: now });
        let (failures, pause) = told(before.failures);
        let next = now.checked_add(pause).unwrap_or(now).max(before.next);
        if failures > 0 || next > now {
            known.peers.insert(peer, Peer { failures, since: now, next });
            self.changed.notify_one();
        }
    }

    /// Waits until a connection may be made.
    #[cfg(feature = "tcp")]
    pub(crate) async fn turn(&self, peer: SocketAddr) -> Attempt {
        loop {
            let ended = self.ended.notified();
            let (now, rising) = (Instant::now(), self.lock().rising);
            match self.may(now, peer, rising) {
                Ok(()) => {
                    self.lock().rising += 1;
                    return Attempt { all: self.clone(), peer };
                }
                Err(Later::At(next)) => sleep_until(next).await,
                Err(Later::AfterAnother) => ended.await,
            }
        }
    }
}

/// A connection that is being made.
#[cfg(feature = "tcp")]
#[derive(Debug)]
pub(crate) struct Attempt {
    all: Attempts,
    peer: SocketAddr,
}

#[cfg(feature = "tcp")]
impl Attempt {
    /// It stands, or failed.
    pub(crate) fn ended(self, stands: bool) {
        match stands {
            true => self.all.stands(self.peer),
            false => self.all.failed(Instant::now(), self.peer, chance()),
        }
    }
}

#[cfg(feature = "tcp")]
impl Drop for Attempt {
    fn drop(&mut self) {
        self.all.lock().rising -= 1;
        self.all.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    const SECOND: Duration = Duration::from_secs(1);

    fn peer(last: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, last], 5684))
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_built_to_spread_at_its_start_waits_once() {
        let began = Instant::now();
        let mut all = Attempts::new(Reconnect::new().spread(20 * SECOND));
        all.begin(began, u32::MAX);
        all.begun().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        let mut all = Attempts::new(Reconnect::new().spread(20 * SECOND).at_start());
        all.begin(began, u32::MAX / 2);
        all.begun().await;
        assert_eq!(began.elapsed().as_secs_f64().round(), 10.0);
        tokio::time::sleep(SECOND).await;
        all.begun().await;
        assert_eq!(began.elapsed().as_secs_f64().round(), 11.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_request_is_sent_again_as_long_as_there_is_time() {
        let now = Instant::now();
        let busy = Response::new(Code::SERVICE_UNAVAILABLE).with_max_age(30);
        let until = Some((now + 31 * SECOND, 31 * SECOND));
        let policy = Reconnect::new().repeat_refused();
        let again = |policy, answer: &Response, until, chance| Attempts::new(policy).again(1, answer, until, || chance);
        assert_eq!(again(policy, &busy, until, 0), Some(now + 30 * SECOND));
        // Too late, no end, another answer, not asked for.
        assert_eq!(again(policy, &busy, until, u32::MAX), None);
        assert_eq!(again(policy, &busy, None, 0), None);
        assert_eq!(again(policy, &Response::new(Code::NOT_FOUND), until, 0), None);
        assert_eq!(again(Reconnect::new(), &busy, until, 0), None);
    }

    /// A server that refuses twice and then wants a proof, over and over.
    #[cfg(feature = "server")]
    #[tokio::test]
    async fn what_was_refused_is_answered_by_its_deadline() {
        use std::sync::atomic::{AtomicU32, Ordering};

        use crate::{Client, Observable, Resource, Server};

        let asked = Arc::new(AtomicU32::new(0));
        let busy = |asked: &Arc<AtomicU32>| {
            let asked = Arc::clone(asked);
            move || {
                let answer = match asked.fetch_add(1, Ordering::Relaxed) % 4 {
                    0 | 1 => Response::new(Code::TOO_MANY_REQUESTS).with_max_age(0),
                    2 => Response::new(Code::UNAUTHORIZED)
                        .with_option(millpond_coap::message::number::ECHO, b"there?".to_vec()),
                    _ => Response::new(Code::CONTENT),
                };
                async move { answer }
            }
        };
        let resource = Resource::new().post(busy(&asked)).get(busy(&asked)).observable(&Observable::new());
        let server = Server::builder().bind("127.0.0.1:0").route("/", resource).start().await.unwrap();
        let uri = format!("coap://{}/", server.local_addr());
        let policy = Reconnect::new().pauses(Duration::from_millis(10), SECOND).repeat_refused();
        let client = Client::builder().reconnect(policy).build().await.unwrap();
        let answer = client.post(&uri).payload("21.5").deadline(60 * SECOND).await.unwrap();
        assert_eq!((answer.code(), asked.load(Ordering::Relaxed)), (Code::CONTENT, 4));
        let observation = client.get(&uri).deadline(60 * SECOND).observe().await;
        assert!(observation.is_ok(), "{observation:?}");
        assert_eq!(asked.load(Ordering::Relaxed), 8);
        // Without a deadline the application decides.
        let answer = client.post(&uri).payload("21.5").await.unwrap();
        assert_eq!((answer.code(), asked.load(Ordering::Relaxed)), (Code::TOO_MANY_REQUESTS, 9));
    }

    #[tokio::test]
    async fn a_policy_that_cannot_be_meant_is_refused() {
        let refused = |policy: Reconnect| policy.check().unwrap_err().to_string();
        assert!(refused(Reconnect::new().at_start()).contains("without a spread"));
        assert!(refused(Reconnect::new().spread_by_load(400, 134, 0)).contains("rate"));
        assert!(Reconnect::new().spread_by_load(10_000, 1_900, 60_000).at_start().check().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_wait_for_their_pause_and_for_one_another() {
        let all = Attempts::new(Reconnect::new().handshakes(2));
        let now = Instant::now();
        assert_eq!(all.may(now, peer(1), 0), Ok(()));
        assert_eq!(all.may(now, peer(1), 2), Err(Later::AfterAnother));
        all.failed(now, peer(1), 0);
        all.failed(now + SECOND, peer(1), 0);
        assert_eq!(all.may(now + SECOND, peer(1), 0), Err(Later::At(now + 3 * SECOND)));
        assert_eq!((all.may(now + 3 * SECOND, peer(1), 0), all.may(now + SECOND, peer(2), 0)), (Ok(()), Ok(())));
        // It stands: all is forgotten.
        all.stands(peer(1));
        all.failed(now, peer(1), 0);
        assert_eq!(all.may(now, peer(1), 0), Err(Later::At(now + SECOND)));
        // What a server says makes it later, never sooner.
        for (seconds, at) in [(30, 30), (10, 30)] {
            all.refused(now, peer(1), seconds * SECOND, 0);
            assert_eq!(all.may(now, peer(1), 0), Err(Later::At(now + at * SECOND)));
        }
    }

    /// A device loses its power in the middle of a pause, and its clock may be anything afterwards.
    #[tokio::test(start_paused = true)]
    async fn a_backoff_goes_on_after_a_restart() {
        let before = Attempts::new(Reconnect::new());
        let now = Instant::now();
        for _ in 0..5 {
            before.failed(now, peer(1), 0);
        }
        let mut memory = PathCache::new();
        // 16 s were to be waited, of which 3 are over.
        before.remember(&mut memory, now + 3 * SECOND, 1_000_003);
        let memory = PathCache::from_bytes(&memory.to_bytes()).unwrap();
        for (clock, left) in [(1_000_006, 10), (1_000_016, 0), (1_086_400, 0), (0, 16)] {
            let after = Attempts::new(Reconnect::new());
            after.recall(&memory, now, clock);
            let expected = if left == 0 { Ok(()) } else { Err(Later::At(now + left * SECOND)) };
            assert_eq!(after.may(now, peer(1), 0), expected, "{clock}");
            let then = now + left * SECOND;
            after.failed(then, peer(1), 0);
            assert_eq!(after.may(then, peer(1), 0), Err(Later::At(then + 32 * SECOND)), "and not after a second");
        }
        before.stands(peer(1));
        let mut memory = memory;
        before.remember(&mut memory, now, 1_000_010);
        assert!(memory.is_empty());
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for() {
        let all = Attempts::default();
        let now = Instant::now();
        let peer = |number: u32| SocketAddr::from((number.to_be_bytes(), 5684));
        (0..5_000).for_each(|number| all.failed(now, peer(number), 0));
        assert_eq!(all.lock().peers.len(), MOST_PEERS);
        all.failed(now + 2 * SECOND, peer(9_999), 0);
        assert_eq!(all.lock().peers.len(), 1);
    }

    #[cfg(feature = "tcp")]
    #[tokio::test(start_paused = true)]
    async fn connections_are_made_a_few_at_a_time() {
        let all = Attempts::new(Reconnect::new().handshakes(1));
        let began = Instant::now();
        let first = all.turn(peer(1)).await;
        let second = tokio::spawn({
            let all = all.clone();
            async move { all.turn(peer(2)).await }
        });
        tokio::time::sleep(5 * SECOND).await;
        assert!(!second.is_finished());
        first.ended(false);
        second.await.unwrap().ended(true);
        assert_eq!(began.elapsed(), 5 * SECOND);
        // The first one has failed, and waits for a second at least.
        all.turn(peer(1)).await.ended(true);
        assert!((6_000..6_501).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    }

    /// Nobody listens where it asks, which a host is told at once.
    #[cfg(all(feature = "tcp", feature = "dtls", target_os = "linux"))]
    #[tokio::test]
    async fn after_an_attempt_that_failed_the_next_one_waits_over_every_transport() {
        use crate::{Client, ClientSecurity, PreSharedKey};

        let security = ClientSecurity::new().pre_shared_key(PreSharedKey::new("a", "secret").unwrap());
        let hour = Duration::from_secs(3_600);
        let policy = Reconnect::new().pauses(hour, hour);
        let client = Client::builder().security(security).reconnect(policy).build().await.unwrap();
        for scheme in ["coap+tcp", "coaps"] {
            let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let uri = format!("{scheme}://{closed}/");
            assert!(!client.get(&uri).await.unwrap_err().is_timeout(), "{scheme}");
            // It waits, until its deadline.
            let waited = client.get(&uri).deadline(Duration::from_millis(50)).await;
            assert!(waited.unwrap_err().is_timeout(), "{scheme}");
        }
    }
}
