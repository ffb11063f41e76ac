//! A client's connection.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use millpond_coap::{
    block::BlockSize,
    message::number,
    stream::{self, Closing, Connection, Event as Below, Lost, Settings, StreamRefused},
    transfer::{AskFailure, AskId, Config, Event, Host, Limits, Refused},
};
use millpond_control::Instant;
use tokio::sync::{mpsc, oneshot};

use super::link::{self, Heard, Link, Stream};
use crate::{
    Error, ExchangeReport, Response, Stats, Why,
    client::{Asks, Command, Outcome, Room, Wanted, failure, options},
    clock::Clock,
    security::Other,
    udp::Address,
};

/// The longest message that is taken, told to the server: a body within it needs no blocks.
const LONGEST_MESSAGE: u32 = 1 << 20;
/// Requests that may be under way on a connection.
const MOST_ASKS: u32 = 65_536;
/// How long nothing may come while an answer is awaited before a ping asks whether the other side is there, and while
/// there are observations alone.
const SILENCE: Duration = Duration::from_secs(30);
const OBSERVING_SILENCE: Duration = Duration::from_secs(240);
/// How long a request may be under way while nothing comes but answers to pings: EXCHANGE_LIFETIME (RFC 7252 §4.8.2), for
/// which one over UDP would wait.
const PATIENCE: Duration = Duration::from_secs(247);

/// Owns a connection.
pub(super) struct Task<S> {
    peer: SocketAddr,
    clock: Clock,
    link: Link<S>,
    asks: Asks,
    pings: VecDeque<(tokio::time::Instant, oneshot::Sender<Result<Duration, Error>>)>,
    /// Requests that want no response and may not have been written yet.
    unwritten: Vec<AskId>,
    /// Who waits for the server's settings, beside how many bytes of options.
    rooms: Vec<(usize, oneshot::Sender<Result<Room, Error>>)>,
    /// When something was asked last.
    asked: Instant,
    /// When a ping of our own left, to which nothing came yet.
    doubted: Option<Instant>,
    /// Nothing came to it.
    is_gone: bool,
    /// What the server said when it aborted the connection.
    said: String,
    /// The server wants the connection to end: others ask over another one.
    is_released: Arc<AtomicBool>,
    stats: Stats,
}

/// Ends all requests, those that are still to come in included.
pub(super) async fn refuse_all(early: Vec<Command>, mut orders: mpsc::UnboundedReceiver<Command>, why: &Error) {
    let refuse = |order| match order {
        Command::Ask(wanted) => wanted.reply.end(Err(why.clone())),
        Command::Ping(.., reply) => drop(reply.send(Err(why.clone()))),
        Command::Room(_, reply) => drop(reply.send(Err(why.clone()))),
        _ => {}
    };
    early.into_iter().for_each(refuse);
    orders.close();
    while let Some(order) = orders.recv().await {
        refuse(order);
    }
}

/// Why nothing more is asked over a connection.
fn released(peer: SocketAddr) -> Error {
    Error::connection_lost(peer, link::reason(Some(Closing::Released), ""))
}

/// What a request is among those of this connection, whose host is the only one.
const fn place(ask: AskId) -> (usize, AskId) {
    (0, ask)
}

impl<S: Stream> Task<S> {
    pub(super) fn new(peer: SocketAddr, stream: S, is_released: Arc<AtomicBool>) -> Self {
        let settings = stream::Options {
            max_message_size: LONGEST_MESSAGE,
            serves: false,
            requests: MOST_ASKS,
            ..stream::Options::default()
        };
        // The limits on bodies are those of each request.
        let limits = Limits { asks: MOST_ASKS, bytes: usize::MAX, ..Config::STREAM.limits };
        let host = Host::over_stream(Connection::new(settings), Config { limits, ..Config::STREAM });
        Self {
            peer,
            clock: Clock::start(),
            link: Link::new(stream, host, Other::Server),
            asks: Asks::default(),
            pings: VecDeque::new(),
            unwritten: Vec::new(),
            rooms: Vec::new(),
            asked: Instant::ORIGIN,
            doubted: None,
            is_gone: false,
            said: String::new(),
            is_released,
            stats: Stats::default(),
        }
    }

    /// When it is to be looked whether the other side is there, and when requests have waited too long.
    fn patience(&self) -> Option<(tokio::time::Instant, Option<tokio::time::Instant>)> {
        if self.asks.is_empty() && self.rooms.is_empty() {
            return None;
        }
        let is_awaited = self.asks.awaited().next().is_some() || !self.rooms.is_empty();
        let since = |last: Option<Instant>| self.clock.at(last.map_or(self.asked, |last| last.max(self.asked)));
        let silence = if is_awaited { SILENCE } else { OBSERVING_SILENCE };
        let late = is_awaited.then(|| since(self.link.moved) + PATIENCE);
        Some((since(self.link.heard.max(self.doubted)) + silence, late))
    }

    /// Asks a silent peer for a sign of life, and ends what has waited too long.
    fn doubt(&mut self) {
        let (now, Some((silent, late))) = (tokio::time::Instant::now(), self.patience()) else { return };
        if late.is_some_and(|late| late <= now) {
            self.tell_rooms(Some(&Error::NoResponse { peer: self.peer, after: PATIENCE }));
            // Observations wait for as long as they like.
            for (lane, ask) in self.asks.awaited().collect::<Vec<_>>() {
                if self.link.host.let_go(self.clock.now(), ask) {
                    continue;
                }
                self.link.host.cancel(self.clock.now(), ask);
                self.asks.end((lane, ask), Err(Error::NoResponse { peer: self.peer, after: PATIENCE }));
            }
        } else if silent <= now {
            self.doubted = Some(self.clock.now());
            if self.pings.is_empty() {
                // A connection that has ended says so by itself.
                let _ = self.link.host.ping(self.clock.now(), false);
            }
        }
    }

    /// Carries out what was ordered while the connection was made, and then what comes. Ends with the last sender.
    pub(super) async fn run(mut self, early: Vec<Command>, mut orders: mpsc::UnboundedReceiver<Command>) {
        let clock = self.clock;
        for order in early {
            self.command(order);
        }
        self.drain();
        while self.link.closing.is_none() && !self.is_gone {
            let doubts = self.patience().into_iter().flat_map(|(silent, late)| [Some(silent), late]);
            let at = doubts.chain([self.link.next.map(|next| clock.at(next))]).flatten().min();
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
                () = sleep => self.doubt(),
            }
            self.drain();
        }
        let lost = match self.link.broken.take() {
            Some(why) => Error::insecure(self.peer, why),
            None if self.is_gone => Error::connection_lost(self.peer, "nothing came any more, not even to a ping"),
            None => {
                let reason = link::reason(self.link.closing, &self.said);
                Error::connection_lost(self.peer, Why { reason, source: self.link.lost.take() })
            }
        };
        for place in self.asks.all() {
            self.asks.end(place, Err(lost.clone()));
        }
        for (_, reply) in self.pings.drain(..) {
            let _ = reply.send(Err(lost.clone()));
        }
        self.tell_rooms(Some(&lost));
        // What was asked while it ended.
        refuse_all(Vec::new(), orders, &lost).await;
        self.link.close().await;
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Ask(wanted) => self.ask(*wanted),
            Command::LetGo(number) => {
                if let Some(place) = self.asks.find(number)
                    && !self.link.host.let_go(self.clock.now(), place.1)
                {
                    self.cancel(place);
                }
            }
            // Over a connection nothing is forgotten without a word: its end says the same.
            Command::Cancel(number) | Command::Forget(number) => {
                if let Some(place) = self.asks.find(number) {
                    self.cancel(place);
                }
            }
            Command::Ping(.., reply) => match self.link.host.ping(self.clock.now(), false) {
                Ok(()) => self.pings.push_back((tokio::time::Instant::now(), reply)),
                Err(error) => drop(reply.send(Err(Error::Refused { reason: error.to_string() }))),
            },
            Command::Room(options, reply) => {
                self.asked = self.clock.now();
                self.rooms.push((options, reply));
            }
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
        let now = self.clock.now();
        let asked = wanted.options.lend(|options| self.link.host.ask(now, (), &wanted.ask(options)));
        match asked {
            Ok(id) => {
                self.stats.sent += 1;
                self.asked = now;
                self.asks.add(0, id, wanted.number, (self.peer, Address::of(self.peer)), wanted.reply, now);
            }
            // Asked in the moment in which it was released.
            Err(Refused::Connection(StreamRefused::Releasing)) => wanted.reply.end(Err(released(self.peer))),
            Err(error) => wanted.reply.end(Err(Error::Refused { reason: error.to_string() })),
        }
    }

    /// Tells whoever waits for it how much a message may hold, if that is known by now; or why it never will be.
    fn tell_rooms(&mut self, end: Option<&Error>) {
        /// What stands in a message beside its options and its payload.
        const HEAD: usize = 32;
        let Settings { max_message_size, block_wise: knows_blocks } = self.link.host.settings();
        for (options, reply) in std::mem::take(&mut self.rooms) {
            let whole = (max_message_size as usize).saturating_sub(HEAD + options);
            let in_blocks = |size: BlockSize, count: u32| size.bytes() as usize * count as usize;
            let room = self.link.host.blocks(options).map(|(size, count)| {
                let most = if knows_blocks { in_blocks(size, count) } else { whole };
                Room { size, most, knows_blocks }
            });
            match end.map_or_else(|| room.map(Ok), |why| Some(Err(why.clone()))) {
                // Whoever asked may have gone.
                Some(told) => drop(reply.send(told)),
                None => self.rooms.push((options, reply)),
            }
        }
    }

    fn cancel(&mut self, (lane, ask): (usize, AskId)) {
        self.link.host.cancel(self.clock.now(), ask);
        self.asks.drop_silently((lane, ask));
        self.drain();
    }

    fn cancel_all(&mut self) {
        for place in self.asks.all() {
            self.cancel(place);
        }
    }

    fn drain(&mut self) {
        let Self { peer, clock, link, asks, pings, unwritten, stats, doubted, is_gone, said, is_released, .. } = self;
        let (peer, heard_at) = (*peer, link.heard);
        link.drain(clock.now(), |heard| {
            match heard {
                Heard::Event(Event::Answer { ask, message, body, goes_on, .. }) => {
                    stats.received += 1;
                    let report = ExchangeReport { peer, copies: 1, round_trip: None, grade: None };
                    let mut options = options(&message);
                    options.remove(number::OBSERVE);
                    // Whoever observes tells by it that more is to come. Over streams its value says nothing (RFC 8323 §7.1).
                    if goes_on {
                        options.add(number::OBSERVE, Bytes::new());
                    }
                    let response = Response::received(message.code, options, body.into_owned().into(), report);
                    stats.answered += u64::from(!goes_on);
                    asks.answered(place(ask), response, goes_on);
                }
                Heard::Event(Event::Unanswered { ask, .. }) => unwritten.push(ask),
                Heard::Event(Event::Failed { ask, why, copies, .. }) => {
                    stats.failed += 1;
                    let is_released = matches!(why, AskFailure::Connection(StreamRefused::Releasing));
                    // Of a connection that ends it is known only then why: what is left ends with it.
                    if !matches!(why, AskFailure::Lost(Lost::ConnectionClosed)) {
                        let failure = failure(peer, why, copies, Duration::ZERO);
                        asks.end(place(ask), Err(if is_released { released(peer) } else { failure }));
                    }
                }
                Heard::Connection(Below::Released { .. }) => is_released.store(true, Ordering::Relaxed),
                Heard::Connection(Below::Aborted { diagnostic }) => {
                    // Of one line, and of a length to be read.
                    let text = String::from_utf8_lossy(diagnostic);
                    *said = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
                }
                Heard::Connection(Below::Pong { .. }) => {
                    if let Some((started, reply)) = pings.pop_front() {
                        let _ = reply.send(Ok(started.elapsed()));
                    }
                }
                Heard::Connection(Below::PongMissing) => match pings.pop_front() {
                    Some((started, reply)) => {
                        let _ = reply.send(Err(Error::NoResponse { peer, after: started.elapsed() }));
                    }
                    // Whatever came since is a sign of life, too.
                    None => *is_gone = doubted.is_some_and(|doubted| heard_at.is_none_or(|heard| heard < doubted)),
                },
                _ => {}
            }
            None::<()>
        });
        // What wants no response is over once the stream has taken it.
        if link.is_written() {
            unwritten.drain(..).for_each(|ask| asks.end(place(ask), Ok(Outcome::Sent)));
        }
        // Nobody waits for a place among them here.
        self.asks.ended.clear();
        self.tell_rooms(None);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::client::{Reply, asked_for_trial};

    /// A request over a stream whose other end does as `peer` says, in paused time: how it ends, and after how long.
    async fn ends(peer: impl AsyncFnOnce(tokio::io::DuplexStream)) -> (Result<Outcome, Error>, Duration) {
        let (near, far) = tokio::io::duplex(65_536);
        let (commands, orders) = mpsc::unbounded_channel();
        let (reply, answer) = oneshot::channel();
        let to = "192.0.2.1:5683".parse().unwrap();
        commands.send(Command::Ask(Box::new(asked_for_trial(to, Reply::Once(reply))))).unwrap();
        let started = tokio::time::Instant::now();
        let outcome = async {
            let outcome = answer.await.unwrap();
            (outcome, started.elapsed())
        };
        let task = async {
            Task::new(to, near, Arc::default()).run(Vec::new(), orders).await;
            // Its end is told by the outcome.
            std::future::pending().await
        };
        tokio::select! {
            () = task => panic!("it waits for ever"),
            () = peer(far) => panic!("the peer goes on"),
            outcome = outcome => outcome,
        }
    }

    /// Reads, and answers pings if it is alive.
    async fn silent(mut stream: tokio::io::DuplexStream, is_alive: bool) {
        stream.write_all(&[0, 0xe1]).await.unwrap();
        let mut room = [0; 4_096];
        loop {
            let count = stream.read(&mut room).await.unwrap();
            // A ping has a token of four bytes here: its answer has the same.
            if let Some(at) = room[..count].iter().position(|byte| *byte == 0xe2).filter(|_| is_alive) {
                let length = usize::from(room[at - 1] & 15);
                let mut pong = room[at - 1..=at + length].to_vec();
                pong[1] = 0xe3;
                stream.write_all(&pong).await.unwrap();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_half_open_is_noticed() {
        let (outcome, after) = ends(async |stream| silent(stream, false).await).await;
        assert!(
            matches!(&outcome, Err(Error::ConnectionLost { reason, .. }) if reason.contains("ping")),
            "{outcome:?}"
        );
        assert_eq!(after.as_secs(), 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_there_and_never_answers_is_given_up() {
        let (outcome, after) = ends(async |stream| silent(stream, true).await).await;
        assert!(matches!(outcome, Err(Error::NoResponse { .. })), "{outcome:?}");
        assert_eq!(after.as_secs(), PATIENCE.as_secs());
    }
}
