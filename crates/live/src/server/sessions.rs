//! What a worker does about secure sessions, in which it is asked and asks.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::worker::Worker;
use crate::{
    Error, Happened,
    client::{Carried, EarlyPing, ended, failed, session},
    dtls::Turn,
};

impl Worker {
    /// Takes in what happened to sessions: of one that is over nothing is kept, or who begins one after the other would soon
    /// have all places of peers. What was asked in it is not asked in the next one, which may be another's.
    pub(super) fn hear(&mut self, now: Instant) {
        let news = self.lane.news(now);
        let (mut carried, mut next) = (Carried::default(), Vec::new());
        for news in news {
            let peer = news.peer.peer();
            match news.what {
                Turn::Stands { before } => {
                    self.watch.tell(now, peer, || Happened::Secured);
                    carried.hand_on(&mut self.lane, now, before, news.inside);
                    next.push(peer);
                }
                Turn::Resumed => next.push(peer),
                Turn::Failed { why, timed_out } => {
                    self.insecure += 1;
                    self.log_insecure(peer, &why.reason);
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    if self.begins_sessions() {
                        self.end_held(peer, &failed(peer, why, timed_out));
                    }
                }
                Turn::Ended { why, was_used } => {
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    self.end_observers_at(now, news.inside);
                    let error = ended(peer, why, was_used);
                    for ask in self.arrivals.asks.end_session(0, news.inside, &error) {
                        self.lane.host.forget(now, ask);
                        self.drain(now);
                    }
                    match self.begins_sessions() {
                        true => {
                            carried.keep(&self.lane, news.inside);
                            next.push(peer);
                        }
                        false => self.end_held(peer, &error),
                    }
                    self.lane.host.forget_peer(now, news.inside);
                    self.drain(now);
                }
            }
        }
        for peer in next {
            self.launch_pings(now, peer);
            self.launch(now, peer);
        }
    }

    fn begins_sessions(&self) -> bool {
        self.lane.sessions.as_ref().is_some_and(|sessions| sessions.begins())
    }

    /// Sends what pings wait for a session with a peer, if it stands.
    pub(super) fn launch_pings(&mut self, now: Instant, peer: SocketAddr) {
        for ping in self.arrivals.asks.take_early_pings(peer) {
            match session(&mut self.lane, &mut self.watch, now, peer, (&ping.name, None)) {
                Ok(Some(to)) => self.ping(now, (peer, to), ping.reply),
                Ok(None) => self.arrivals.asks.early_pings.push(ping),
                Err(error) => drop(ping.reply.send(Err(error))),
            }
        }
    }

    /// What waits for a session with a peer gets none.
    pub(super) fn end_held(&mut self, peer: SocketAddr, error: &Error) {
        for wanted in self.asking.routes.take_held_for(peer) {
            wanted.reply.end(Err(error.clone()));
        }
        for EarlyPing { reply, .. } in self.arrivals.asks.take_early_pings(peer) {
            let _ = reply.send(Err(error.clone()));
        }
        self.asking.routes.settle(peer, |_| true);
    }
}

#[cfg(all(test, feature = "dtls"))]
mod tests {
    use std::{
        sync::{Arc, OnceLock},
        task::Poll,
        time::Duration,
    };

    use millpond_coap::{Config, Endpoint, Identities};
    use millpond_control::{ChanceSeed, Preset};
    use tokio::sync::{mpsc, oneshot};

    use super::*;
    use crate::{
        ClientSecurity, PreSharedKey, PreSharedKeys, ServerSecurity,
        client::{Client, Command, OnProgress, Progress, Reply, Wanted, asked_for_trial},
        clock::Clock,
        dtls::{Keys, ServerKeys, Sessions},
        lane::Lane,
        security::ServerName,
        server::{
            AccessHook, AddressRule, Admission, Desk, DeskLimits, Reachability, admission::AdmissionLimits,
            asking::WINDOW,
        },
        trace::Hook,
        transfer::Host,
        udp::{Port, Role},
        watch::Watch,
    };

    fn worker(hook: Hook) -> Worker {
        let keys = PreSharedKeys::new([PreSharedKey::new("a", "secret").unwrap()]).unwrap();
        let keys = Keys::Server(ServerKeys::new(&ServerSecurity::new().pre_shared_keys(keys)).unwrap());
        let chance = ChanceSeed::new(1);
        let endpoint =
            Endpoint::new(Config::DEFAULT, Preset::RFC7252.build(), chance, 0, Identities::counted()).unwrap();
        let host = Host::new(endpoint, Default::default(), chance).unwrap();
        let port = Port::bind("127.0.0.1:0".parse().unwrap(), Role::Server).unwrap();
        let (telling, told) = mpsc::unbounded_channel();
        let limits = DeskLimits { handling: Duration::from_secs(9), changes_by_group: false, block: 1_024 };
        let admission = Admission::new(AdmissionLimits { running: 9, running_per_peer: 9, held: 9_999 });
        let reachability = Reachability::new(AddressRule::Never).unwrap();
        let accesses = AccessHook::default();
        let desk = Desk::new(Arc::default(), limits, reachability, admission, Arc::default(), telling, accesses);
        let clock = Clock::start();
        let lane = Lane::new(port, host, Some(Sessions::standard(keys, clock.origin())));
        Worker::new(clock, lane, desk, told, Arc::default(), Watch::new(Some(hook)))
    }

    async fn until(worker: &mut Worker, is: impl Fn(&Worker) -> bool) {
        while !is(worker) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            // Whether something came.
            let _ = std::future::poll_fn(|cx| Poll::Ready(worker.lane.poll_ready(cx))).await;
            worker.turn(&mut Vec::new());
        }
    }

    #[tokio::test]
    async fn of_a_session_that_is_over_nothing_is_left_that_was_asked_in_it() {
        let peer = Arc::<OnceLock<SocketAddr>>::default();
        let secured = Arc::clone(&peer);
        let mut worker = worker(Arc::new(move |event| {
            if event.what == Happened::Secured {
                secured.set(event.peer).unwrap();
            }
        }));
        let security = ClientSecurity::new().pre_shared_key(PreSharedKey::new("a", "secret").unwrap());
        let device = Client::builder().security(security).build().await.unwrap();
        let asked = tokio::spawn(device.get(format!("coaps://{}/", worker.lane.local())).send());
        until(&mut worker, |_| asked.is_finished()).await;
        let (peer, now) = (*peer.get().unwrap(), worker.clock.now());
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut told = Vec::new();
        // Some are at the host, of which one is under way, others wait for a place there.
        for number in 0..WINDOW as u64 + 9 {
            let (reply, outcome) = oneshot::channel();
            told.push(outcome);
            let progress = Some(OnProgress(Arc::new(|_: &Progress| ())));
            let wanted = asked_for_trial(peer, Reply::Once(reply));
            let wanted = Wanted { number, name: Some(name.clone()), progress, ..wanted };
            worker.command(now, Command::Ask(Box::new(wanted)));
        }
        let (reply, pinged) = oneshot::channel();
        worker.command(now, Command::Ping(peer, Some(name), reply));
        worker.turn(&mut Vec::new());
        assert_eq!((worker.lane.host.asks(), worker.asking.routes.held(peer)), (WINDOW as u32, 9));
        assert_eq!(worker.arrivals.asks.pings.len(), 1);
        let closing = tokio::spawn(device.shutdown());
        until(&mut worker, |worker| worker.lane.sessions.as_ref().unwrap().standing() == 0).await;
        closing.await.unwrap();
        for told in told {
            assert!(matches!(told.await, Ok(Err(Error::ConnectionLost { .. }))));
        }
        assert!(matches!(pinged.await, Ok(Err(Error::ConnectionLost { .. }))));
        let Worker { asking, arrivals, lane, .. } = &worker;
        assert!(arrivals.asks.is_empty() && arrivals.asks.pings.is_empty() && arrivals.asks.early_pings.is_empty());
        assert!(asking.routes.is_empty() && asking.watched.is_empty());
        let endpoint = lane.host.endpoint();
        assert_eq!((lane.host.asks(), endpoint.exchanges(), endpoint.peers()), (0, 0, 0));
    }
}
