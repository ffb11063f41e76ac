//! A server's connections.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use millpond_coap::{
    message::{Code, Kind, Opt},
    stream::{
        Options as Settings,
        host::{Answer, Config, Event, Host, ObserverId, Refused, RequestId},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, watch},
    task::{JoinHandle, JoinSet},
};

use super::link::Link;
use crate::{
    Error, Response, Stats, Transport,
    clock::Clock,
    server::{Action, AddressRule, Arrived, Desk, DeskLimits, GRACE, Order, Reachability, Router, Unrouted},
};

/// Connections that may be open at a time; further ones wait.
const MOST_CONNECTIONS: usize = 16_384;

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) router: Arc<Router>,
    pub(crate) limits: DeskLimits,
    pub(crate) longest_body: usize,
}

/// Listens until the task is told to end.
pub(crate) async fn listen(
    address: SocketAddr,
    shared: Arc<Shared>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> Result<(SocketAddr, JoinHandle<()>), Error> {
    let listener = TcpListener::bind(address).await.map_err(|error| Error::bind(address, &error))?;
    let local = listener.local_addr().map_err(|error| Error::bind(address, &error))?;
    let task = tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let (ending, end) = watch::channel(false);
        let (counting, mut counted) = mpsc::unbounded_channel::<Count>();
        let mut connections = JoinSet::new();
        let mut stats = Stats::default();
        loop {
            let accept = async {
                let place = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, place)
            };
            tokio::select! {
                (accepted, place) = accept => match accepted {
                    Ok((stream, peer)) => {
                        let (shared, end, counting) = (Arc::clone(&shared), end.clone(), counting.clone());
                        connections.spawn(async move {
                            let _place = place;
                            serve(stream, peer, shared, end, counting).await;
                        });
                    }
                    // No descriptor is left, or the peer has gone already: others may come.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(count) = counted.recv() => count.add_to(&mut stats),
                _ = connections.join_next(), if !connections.is_empty() => {}
                order = orders.recv() => match order {
                    Some(Order::Stats(reply)) => {
                        let connections = MOST_CONNECTIONS.saturating_sub(room.available_permits());
                        let _ = reply.send(Stats { connections, ..stats.clone() });
                    }
                    Some(Order::Shutdown) => {
                        drop(listener);
                        let _ = ending.send(true);
                        let all = async { while connections.join_next().await.is_some() {} };
                        // Who has not answered by then is cut off.
                        let _ = tokio::time::timeout(GRACE, all).await;
                        return;
                    }
                    None => return,
                },
            }
        }
    });
    Ok((local, task))
}

/// Something to count.
#[derive(Clone, Copy, Debug)]
enum Count {
    Request,
    Answer,
    Observers(bool),
}

impl Count {
    fn add_to(self, stats: &mut Stats) {
        match self {
            Self::Request => (stats.received, stats.requests) = (stats.received + 1, stats.requests + 1),
            Self::Answer => stats.sent += 1,
            Self::Observers(true) => stats.observers += 1,
            Self::Observers(false) => stats.observers = stats.observers.saturating_sub(1),
        }
    }
}

/// One connection, from its settings to its end.
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared>,
    mut end: watch::Receiver<bool>,
    counting: mpsc::UnboundedSender<Count>,
) {
    let Ok(reachability) = Reachability::new(AddressRule::Never) else { return };
    let config = Config { body: shared.longest_body, ..Config::DEFAULT };
    let (telling, mut told) = mpsc::unbounded_channel();
    let mut serving = Serving {
        peer,
        clock: Clock::start(),
        link: Link::new(stream, Host::new(Settings::default(), config)),
        desk: Desk::new(Arc::clone(&shared.router), shared.limits, reachability, telling),
        arrivals: Vec::new(),
        counting,
    };
    let clock = serving.clock;
    serving.drain();
    while serving.link.closing.is_none() {
        let at = serving.link.next.map(|next| clock.at(next));
        let sleep = async {
            match at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = serving.link.turn(|| clock.now()) => {}
            Some(told) = told.recv() => serving.desk.told(clock.now(), told),
            () = sleep => {}
            _ = end.changed(), if !serving.desk.is_closing => {
                serving.desk.is_closing = true;
                // A connection that is ending anyway needs no release.
                let _ = serving.link.host.release(clock.now(), None, None);
            }
        }
        serving.drain();
    }
    for _ in 0..serving.desk.observers.len() {
        let _ = serving.counting.send(Count::Observers(false));
    }
    serving.link.close().await;
}

struct Serving {
    peer: SocketAddr,
    clock: Clock,
    link: Link,
    desk: Desk<RequestId, ObserverId>,
    arrivals: Vec<Arrived<RequestId>>,
    counting: mpsc::UnboundedSender<Count>,
}

impl Serving {
    /// Drains the host, and does what the desk wants done, until both have nothing to say.
    fn drain(&mut self) {
        let now = self.clock.now();
        loop {
            let Self { peer, link, desk, arrivals, counting, .. } = self;
            link.drain(now, |event| match event {
                Event::Request { id, code, options, body, wants_to_observe } => {
                    let options = options.iter().map(|(number, value)| Opt { number: *number, value });
                    let request = Unrouted::new(code, options, &body, *peer, Transport::Tcp);
                    let _ = counting.send(Count::Request);
                    let length = body.len();
                    arrivals.push(Arrived { id, kind: Kind::Confirmable, request, length, wants_to_observe });
                }
                Event::ObserverGone { observer } if desk.observers.remove(observer) => {
                    let _ = counting.send(Count::Observers(false));
                }
                _ => {}
            });
            for arrived in std::mem::take(&mut self.arrivals) {
                self.desk.arrived(now, arrived);
            }
            let mut has_acted = false;
            while let Some(action) = self.desk.action() {
                has_acted = true;
                self.act(action);
            }
            if !has_acted {
                return;
            }
        }
    }

    fn act(&mut self, action: Action<RequestId, ObserverId>) {
        let now = self.clock.now();
        match action {
            Action::Answer(id, response) => {
                let sent = self.link.host.answer(now, id, &answer(&response, &response.options().borrowed()));
                self.check(id, sent);
            }
            Action::Reject(id) => {
                let sent = self.link.host.answer(now, id, &Answer::new(Code::BAD_OPTION, &[]));
                self.check(id, sent);
            }
            Action::Observe { id, response, resource, request } => {
                let sent = self.link.host.accept_observer(now, id, &answer(&response, &response.options().borrowed()));
                let observer = sent.as_ref().ok().copied().flatten();
                self.check(id, sent.map(|_| ()));
                if let Some(observer) = observer {
                    self.desk.observers.add(observer, resource, request);
                    let _ = self.counting.send(Count::Observers(true));
                }
            }
            Action::Notify { observer, response, is_last, .. } => {
                let told = self.link.host.notify(now, observer, &answer(&response, &response.options().borrowed()));
                if let Err(error) = told {
                    tracing::debug!(target: "millpond_live", "{} was not notified: {error}", self.peer);
                }
                if is_last {
                    let _ = self.counting.send(Count::Observers(false));
                    if response.is_success() {
                        self.link.host.dismiss(now, observer);
                    }
                }
            }
        }
        let _ = self.counting.send(Count::Answer);
    }

    /// What cannot be sent is answered with 5.00.
    fn check(&mut self, id: RequestId, sent: Result<(), Refused>) {
        if let Err(error) = sent {
            tracing::warn!(target: "millpond_live", "an answer to {} could not be sent: {error}", self.peer);
            // The connection may have ended.
            let _ = self.link.host.answer(self.clock.now(), id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[]));
        }
    }
}

fn answer<'a>(response: &'a Response, options: &'a [(u16, &'a [u8])]) -> Answer<'a> {
    Answer::new(response.code(), options).with_body(response.payload())
}
