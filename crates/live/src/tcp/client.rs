//! A client's connection.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::Duration,
};

use bytes::Bytes;
use millpond_coap::{
    block::DownloadError,
    message::number,
    stream::{
        Options as Settings,
        host::{Ask, AskFailure, AskId, Config, Event, Host},
    },
};
use tokio::sync::{mpsc, oneshot};

use super::link::{self, Link, Stream};
use crate::{
    Error, ExchangeReport, Options, Response, Stats,
    client::{Command, Reply, RequestNumber, Wanted},
    clock::Clock,
    security::Other,
};

/// The longest message that is taken, told to the server: a body within it needs no blocks.
const LONGEST_MESSAGE: u32 = 1 << 20;
/// Requests that may be under way on a connection.
const MOST_ASKS: usize = 65_536;
/// Owns a connection.
pub(super) struct Task<S> {
    peer: SocketAddr,
    clock: Clock,
    link: Link<S>,
    pending: BTreeMap<AskId, Pending>,
    numbers: BTreeMap<RequestNumber, AskId>,
    pings: VecDeque<(tokio::time::Instant, oneshot::Sender<Result<Duration, Error>>)>,
    stats: Stats,
}

/// Ends all requests, those that are still to come in included.
pub(super) async fn refuse_all(early: Vec<Command>, mut orders: mpsc::UnboundedReceiver<Command>, why: &Error) {
    let refuse = |order| match order {
        Command::Ask(wanted) => wanted.reply.end(Err(why.clone())),
        Command::Ping(.., reply) => drop(reply.send(Err(why.clone()))),
        _ => {}
    };
    early.into_iter().for_each(refuse);
    orders.close();
    while let Some(order) = orders.recv().await {
        refuse(order);
    }
}

struct Pending {
    number: RequestNumber,
    reply: Reply,
}

impl<S: Stream> Task<S> {
    pub(super) fn new(peer: SocketAddr, stream: S) -> Self {
        let settings = Settings {
            max_message_size: LONGEST_MESSAGE,
            serves: false,
            requests: u32::try_from(MOST_ASKS).unwrap_or(u32::MAX),
            ..Settings::default()
        };
        // The limits on bodies are those of each request.
        let config = Config { asks: MOST_ASKS, body: usize::MAX, ..Config::DEFAULT };
        Self {
            peer,
            clock: Clock::start(),
            link: Link::new(stream, Host::new(settings, config), Other::Server),
            pending: BTreeMap::new(),
            numbers: BTreeMap::new(),
            pings: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Carries out what was ordered while the connection was made, and then what comes. Ends with the last sender.
    pub(super) async fn run(mut self, early: Vec<Command>, mut orders: mpsc::UnboundedReceiver<Command>) {
        let clock = self.clock;
        for order in early {
            self.command(order);
        }
        self.drain();
        while self.link.closing.is_none() {
            let at = self.link.next.map(|next| clock.at(next));
            let sleep = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Command::Shutdown(reply)) => {
                        self.cancel_all();
                        let _ = self.link.host.release(clock.now(), None, None);
                        self.drain();
                        self.link.close().await;
                        drop(reply);
                        return;
                    }
                    Some(order) => self.command(order),
                    None => {
                        self.cancel_all();
                        let _ = self.link.host.release(clock.now(), None, None);
                        self.drain();
                        return self.link.close().await;
                    }
                },
                () = self.link.turn(|| clock.now()) => {}
                () = sleep => {}
            }
            self.drain();
        }
        let lost = match self.link.broken.take() {
            Some(reason) => Error::Insecure { peer: self.peer, reason },
            None => Error::ConnectionLost { peer: self.peer, reason: link::reason(self.link.closing) },
        };
        for (_, pending) in std::mem::take(&mut self.pending) {
            pending.reply.end(Err(lost.clone()));
        }
        for (_, reply) in self.pings.drain(..) {
            let _ = reply.send(Err(lost.clone()));
        }
        // What was asked while it ended.
        refuse_all(Vec::new(), orders, &lost).await;
        self.link.close().await;
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Ask(wanted) => self.ask(*wanted),
            // Over a connection nothing is forgotten without a word: its end says the same.
            Command::Cancel(number) | Command::Forget(number) => self.cancel(number),
            Command::Ping(.., reply) => match self.link.host.ping(self.clock.now(), false) {
                Ok(()) => self.pings.push_back((tokio::time::Instant::now(), reply)),
                Err(error) => drop(reply.send(Err(Error::Refused { reason: error.to_string() }))),
            },
            Command::SetController(.., reply) => {
                let reason = "TCP has congestion control of its own".into();
                let _ = reply.send(Err(Error::Refused { reason }));
            }
            Command::Stats(reply) => drop(reply.send(self.stats.clone())),
            // Groups are asked over UDP.
            Command::Gather(_) | Command::StopGathering(_) | Command::Shutdown(_) => {}
        }
    }

    fn ask(&mut self, wanted: Wanted) {
        let Wanted { number, method, options, payload, block, is_block_wished, longest, token, reply, .. } = wanted;
        let options = options.borrowed();
        let ask = Ask {
            body: &payload,
            early: is_block_wished.then_some(block),
            observe: reply.observes(),
            longest,
            token,
            ..Ask::new(method, &options)
        };
        match self.link.host.ask(self.clock.now(), &ask) {
            Ok(id) => {
                self.stats.sent += 1;
                self.numbers.insert(number, id);
                self.pending.insert(id, Pending { number, reply });
            }
            Err(error) => reply.end(Err(Error::Refused { reason: error.to_string() })),
        }
    }

    fn cancel(&mut self, number: RequestNumber) {
        let Some(id) = self.numbers.remove(&number) else { return };
        let Some(pending) = self.pending.remove(&id) else { return };
        self.link.host.cancel(self.clock.now(), id);
        self.drain();
        pending.reply.end(Err(Error::Closed));
    }

    fn cancel_all(&mut self) {
        for number in self.numbers.keys().copied().collect::<Vec<_>>() {
            self.cancel(number);
        }
    }

    fn drain(&mut self) {
        let Self { peer, clock, link, pending, numbers, pings, stats, .. } = self;
        let peer = *peer;
        let mut end = |ask: AskId, outcome: Result<Response, Error>| {
            if let Some(asked) = pending.remove(&ask) {
                numbers.remove(&asked.number);
                asked.reply.end(outcome);
            }
        };
        let mut states = Vec::new();
        let broken = link.broken.clone();
        link.drain(clock.now(), |event| match event {
            Event::Answer { ask, code, options, body, goes_on } => {
                stats.received += 1;
                let report = ExchangeReport { peer, copies: 1, round_trip: None, grade: None };
                let mut options: Options = options.into_iter().collect();
                // The host keeps the option to itself; whoever observes tells by it that more is to come. Over streams
                // its value says nothing (RFC 8323 §7.1).
                if goes_on {
                    options.add(number::OBSERVE, Bytes::new());
                }
                let response = Response::received(code, options, body.into(), report);
                if goes_on {
                    states.push((ask, response));
                } else {
                    stats.answered += 1;
                    end(ask, Ok(response));
                }
            }
            Event::Failed { ask, why } => {
                stats.failed += 1;
                let reason = why.to_string();
                end(
                    ask,
                    Err(match why {
                        AskFailure::Download(DownloadError::TooLarge { limit }) => Error::BodyTooLarge { limit },
                        AskFailure::Lost(_) => match broken.clone() {
                            Some(reason) => Error::Insecure { peer, reason },
                            None => Error::ConnectionLost { peer, reason },
                        },
                        _ => Error::Transfer { peer, reason },
                    }),
                );
            }
            Event::Pong { .. } => {
                if let Some((started, reply)) = pings.pop_front() {
                    let _ = reply.send(Ok(started.elapsed()));
                }
            }
            Event::PongMissing => {
                if let Some((started, reply)) = pings.pop_front() {
                    let _ = reply.send(Err(Error::NoResponse { peer, after: started.elapsed() }));
                }
            }
            _ => {}
        });
        for (ask, state) in states {
            if let Some(Pending { reply: Reply::Observed(newest), .. }) = self.pending.get(&ask) {
                newest.put(state);
            }
        }
    }
}
