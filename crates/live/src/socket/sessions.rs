//! What is done about sessions of DTLS, in which peers are asked and ask.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::{SocketStack, SocketTask};
use crate::{
    Error, Happened,
    client::{Later, chance},
    dtls::{Link, SessionChange},
    security::{PeerIdentity, ServerName},
    udp::Address,
};

/// Why nothing is asked of a peer that is not the one that is meant.
pub(crate) const ANOTHER: &str =
    "its session is not of the identity that the request is for; ask that one at the address that it has now";

impl SocketTask {
    /// The peer in a session for requests to a server of this name, and to whom they are for. If there is none, one is begun, and
    /// nobody can be asked yet.
    pub(super) fn session(
        &mut self,
        now: Instant,
        at: usize,
        peer: SocketAddr,
        (name, whom): (&ServerName, Option<&PeerIdentity>),
    ) -> Result<Option<Address>, Error> {
        let Some(socket) = self.sockets.get_mut(at) else { return Ok(None) };
        match socket.link(now, peer, name) {
            Link::Established(inside)
                if whom.is_none_or(|whom| socket.identity(inside).is_some_and(|known| **known == *whom)) =>
            {
                Ok(Some(inside))
            }
            Link::Established(_) => Err(Error::insecure(peer, ANOTHER)),
            Link::Handshaking => Ok(None),
            Link::Unfit(why) => Err(Error::insecure(peer, why)),
            Link::None => {
                let at = tokio::time::Instant::now();
                let others = socket.sessions.as_ref().map_or(0, |sessions| sessions.handshakes());
                if let Err(later) = self.settings.attempts.may(at, peer, others) {
                    self.later.insert(peer, later);
                    return Ok(None);
                }
                socket.connect(now, peer, name.clone());
                socket.flush(now, &mut self.watch);
                Ok(None)
            }
        }
    }

    /// Sends what pings wait for a session with a peer, if it stands.
    pub(super) fn launch_pings(&mut self, peer: SocketAddr) {
        let now = self.clock.now();
        for ping in self.events.requests.take_early_pings(peer) {
            let ready = self.way_to(peer).and_then(|(at, _)| self.session(now, at, peer, (&ping.name, None)));
            match ready {
                Ok(Some(_)) => self.ping(now, peer, ping.reply),
                Ok(None) => self.events.requests.early_pings.push(ping),
                Err(error) => drop(ping.reply.send(Err(error))),
            }
        }
    }

    /// Takes in what happened to the sessions of a socket: of one that is over nothing is kept, or who begins one after the other
    /// would soon have all places of peers. What was asked in it is not asked in the next one, which may be another's.
    pub(super) fn hear(&mut self, at: usize) {
        let Some(socket) = self.sockets.get_mut(at).filter(|socket| socket.sessions.is_some()) else { return };
        let now = self.clock.now();
        let events = socket.session_events(now);
        let begins = socket.sessions.as_ref().is_some_and(|sessions| sessions.begins());
        // The controller of the session that ended last, for the one that takes its place; and who is asked next, not before
        // that is forwarded.
        let (mut carried, mut next) = (None, Vec::new());
        for event in events {
            let peer = event.peer.peer();
            match event.what {
                SessionChange::Established { before } => {
                    self.settings.attempts.stands(peer);
                    self.watch.tell(now, peer, || Happened::Secured);
                    if let Some((_, controller)) = carried.take().filter(|(known, _)| Some(*known) == before) {
                        // Without room for the peer its requests are refused next.
                        let _ = self.on_stack(at, now, |stack| stack.set_controller(now, event.inside, controller));
                    }
                    next.push(peer);
                }
                SessionChange::Resumed => next.push(peer),
                SessionChange::Failed { why, timed_out } => {
                    #[cfg(feature = "server")]
                    self.handshake_failed(peer, &why.reason);
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    if begins {
                        self.settings.attempts.failed(tokio::time::Instant::now(), peer, chance());
                        let error = match timed_out {
                            true => Error::handshake_timed_out(peer, why),
                            false => Error::insecure(peer, why),
                        };
                        self.end_held(peer, &error);
                    }
                }
                SessionChange::Ended { why, was_used, is_ours } => {
                    self.watch.tell(now, peer, || Happened::Insecure { reason: why.reason.clone() });
                    #[cfg(feature = "server")]
                    self.end_observers_at(now, at, event.inside);
                    let error = match was_used {
                        true => Error::connection_lost(peer, why),
                        false => Error::insecure(peer, why),
                    };
                    for id in self.events.requests.end_session(at, event.inside, &error) {
                        self.on_stack(at, now, |stack| stack.forget(now, id));
                    }
                    if begins {
                        if !is_ours {
                            self.settings.attempts.lost(tokio::time::Instant::now(), peer, chance());
                        }
                        let endpoint = self.sockets.get(at).map(|socket| socket.stack.endpoint());
                        let controller = endpoint.and_then(|endpoint| endpoint.controller(event.inside));
                        carried = controller.map(|controller| (event.inside, controller));
                        // What was to follow begins another one.
                        next.push(peer);
                    } else {
                        self.end_held(peer, &error);
                    }
                    self.on_stack(at, now, |stack| stack.forget_peer(now, event.inside));
                }
            }
        }
        for peer in next {
            self.begin(peer);
        }
    }

    /// Begins the sessions for which it is time now.
    pub(super) fn begin_later(&mut self) {
        if self.later.is_empty() {
            return;
        }
        let now = tokio::time::Instant::now();
        let handshakes = |socket: &SocketStack| socket.sessions.as_ref().map_or(0, |sessions| sessions.handshakes());
        let others = self.sockets.iter().map(handshakes).max().unwrap_or(0);
        let may = |peer: &SocketAddr| self.settings.attempts.may(now, *peer, others).is_ok();
        let ready: Vec<SocketAddr> = self.later.keys().copied().filter(may).collect();
        for peer in ready {
            self.later.remove(&peer);
            self.begin(peer);
        }
    }

    /// When the first of them is.
    pub(super) fn next_later(&self) -> Option<tokio::time::Instant> {
        let at = |later: &Later| if let Later::At(at) = later { Some(*at) } else { None };
        self.later.values().filter_map(at).min()
    }

    fn begin(&mut self, peer: SocketAddr) {
        self.launch_pings(peer);
        self.launch(peer);
    }

    /// What waits for a session with a peer gets none.
    pub(super) fn end_held(&mut self, peer: SocketAddr, error: &Error) {
        for spec in self.routes.take_held_for(&mut self.events.requests, peer) {
            spec.reply.end(Err(error.clone()));
        }
        for ping in self.events.requests.take_early_pings(peer) {
            let _ = ping.reply.send(Err(error.clone()));
        }
        self.settle_route(peer);
    }
}
#[cfg(all(test, feature = "dtls", feature = "server"))]
mod tests {
    use std::{
        sync::{Arc, OnceLock},
        task::Poll,
        time::Duration,
    };

    use millpond_coap::{Config, Endpoint, IdGenerator};
    use millpond_control::{ChanceSeed, Preset};
    use tokio::sync::{mpsc, oneshot};

    use super::*;
    use crate::{
        ClientSecurity, PreSharedKey, PreSharedKeys, ServerSecurity,
        client::{Client, Command, OnProgress, Progress, Reply, RequestSpec, Settings, request_for_test},
        clock::Clock,
        dtls::{Keys, ServerKeys, Sessions},
        server::{AccessHook, AddressRule, Admission, AdmissionLimits, Dispatcher, DispatcherLimits, Reachability},
        socket::{Serving, SocketStack},
        trace::Hook,
        transfer::CoapStack,
        udp::{BoundSocket, Role},
    };

    /// Requests that the stack is handed for one peer at a time.
    const WINDOW: usize = 64;

    fn worker(hook: Hook) -> SocketTask {
        let keys = PreSharedKeys::new([PreSharedKey::new("a", "secret").unwrap()]).unwrap();
        let keys = Keys::Server(ServerKeys::new(&ServerSecurity::new().pre_shared_keys(keys)).unwrap());
        let chance = ChanceSeed::new(1);
        let endpoint =
            Endpoint::new(Config::DEFAULT, Preset::RFC7252.build(), chance, 0, IdGenerator::counted()).unwrap();
        let stack = CoapStack::new(endpoint, Default::default(), chance).unwrap();
        let udp = BoundSocket::bind("127.0.0.1:0".parse().unwrap(), Role::Server).unwrap();
        let (task_events, received) = mpsc::unbounded_channel();
        let limits = DispatcherLimits { handling: Duration::from_secs(9), changes_by_group: false, block: 1_024 };
        let admission = Admission::new(AdmissionLimits { running: 9, running_per_peer: 9, held: 9_999 });
        let reachability = Reachability::new(AddressRule::Never).unwrap();
        let accesses = AccessHook::default();
        let dispatcher =
            Dispatcher::new(Arc::default(), limits, reachability, admission, Arc::default(), task_events, accesses);
        let clock = Clock::start();
        let socket = SocketStack::new(0, udp, stack, Some(Sessions::standard(keys, clock.origin())));
        let settings = Settings { hook: Some(hook), ..Settings::default() };
        SocketTask::of_server(Arc::new(settings), clock, socket, Serving::new(dispatcher, received), None)
    }

    async fn until(worker: &mut SocketTask, is: impl Fn(&SocketTask) -> bool) {
        while !is(worker) {
            tokio::time::sleep(Duration::from_millis(1)).await;
            // Whether something came.
            let _ = std::future::poll_fn(|cx| Poll::Ready(worker.sockets[0].poll_ready(cx))).await;
            worker.turn();
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
        let asked = tokio::spawn(device.get(format!("coaps://{}/", worker.sockets[0].local())).send());
        until(&mut worker, |_| asked.is_finished()).await;
        let peer = *peer.get().unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut told = Vec::new();
        // Some are at the stack, of which one is under way, others wait for a place there.
        for number in 0..WINDOW as u64 + 9 {
            let (reply, outcome) = oneshot::channel();
            told.push(outcome);
            let progress = Some(OnProgress(Arc::new(|_: &Progress| ())));
            let spec = request_for_test(peer, Reply::Once(reply));
            let spec = RequestSpec { number, name: Some(name.clone()), progress, ..spec };
            worker.command(Command::Request(Box::new(spec)));
        }
        let (reply, pinged) = oneshot::channel();
        worker.command(Command::Ping(peer, Some(name), reply));
        worker.turn();
        assert_eq!((worker.sockets[0].stack.requests(), worker.routes.held(peer)), (WINDOW as u32, 9));
        assert_eq!(worker.events.requests.pings.len(), 1);
        let closing = tokio::spawn(device.shutdown());
        until(&mut worker, |worker| worker.sockets[0].sessions.as_ref().unwrap().established() == 0).await;
        closing.await.unwrap();
        for told in told {
            assert!(matches!(told.await, Ok(Err(Error::ConnectionLost { .. }))));
        }
        assert!(matches!(pinged.await, Ok(Err(Error::ConnectionLost { .. }))));
        let SocketTask { events: super::super::Events { requests, .. }, routes, watched, sockets, .. } = &worker;
        assert!(requests.is_empty() && requests.pings.is_empty() && requests.early_pings.is_empty());
        assert!(routes.is_empty() && watched.is_empty());
        let socket = &sockets[0];
        let endpoint = socket.stack.endpoint();
        assert_eq!((socket.stack.requests(), endpoint.exchanges(), endpoint.peers()), (0, 0, 0));
    }
}
