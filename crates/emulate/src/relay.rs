//! A relay of UDP datagrams over a path: no privileges, any operating system.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
};

use millpond_control::Instant;
use millpond_path::Path;
use mio::{Interest, Registry, Token, net::UdpSocket};

use crate::{
    ClientChange, Error, GateRow, Lateness, LatenessBound, Likeness, Reader, Report, Stop, Toward, Watch,
    driver::{Driver, FIRST, Links},
    once::Once,
    passage::Passage,
    priority::Attention,
    reader::Reading,
    sockets::{Sockets, room_for},
    ways::Ways,
};

/// As many clients have a way to the server at a time, unless the options say otherwise: each takes a socket, made when it
/// comes.
pub const MOST_CLIENTS: usize = 100_000;
/// A client that neither sent nor got anything for so long loses it: longer than EXCHANGE_LIFETIME of CoAP (RFC 7252, section
/// 4.8.2), 247 s.
const IDLE: u64 = 300_000_000;
/// How often that is looked at, µs.
const LOOKED_AT_EVERY: u64 = 10_000_000;
/// Datagrams read from one socket before others have their turn.
const BATCH: usize = 64;
/// The longest datagram.
const LONGEST: usize = 65_535;
/// Bytes of datagrams that a socket is asked to keep while the relay is busy; the operating system may grant less.
const KEPT: usize = 4 << 20;
/// Buffers that are kept to be used again.
const MOST_SPARE: usize = 1_024;

/// The socket towards clients has the first token; those towards the server have the tokens from here on.
const BACK: usize = FIRST + 1;

/// What a relay is asked for.
#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// Where clients reach it.
    pub listen: SocketAddr,
    /// Where it forwards to.
    pub to: SocketAddr,
    /// The addresses of this machine from which it does; none: whichever the system chooses, or to this machine several of its own.
    pub from: Vec<IpAddr>,
    /// Where random numbers come from.
    pub seed: u64,
    /// As many clients have a way to the server at a time.
    pub most_clients: usize,
    /// How late it may be; none: what the path demands.
    pub bound: Option<LatenessBound>,
}

/// Something before the server that sees every datagram, and may keep those to the server from it.
pub trait Gate: Send {
    /// A datagram for the server came out of the path: is it forwarded?
    fn request(&mut self, now: Instant, client: SocketAddr, datagram: &[u8]) -> bool;

    /// A datagram of its own for a client, after each [`request`](Self::request): it goes into the path as those of the server.
    fn ping(&mut self) -> Option<(SocketAddr, [u8; 4])> {
        None
    }

    /// A datagram of the server goes into the path.
    fn answer(&mut self, now: Instant, client: SocketAddr, datagram: &[u8]);

    /// What it counted, for the report.
    fn rows(&self) -> Vec<GateRow> {
        Vec::new()
    }
}

/// A datagram inside a link.
struct Datagram {
    client: SocketAddr,
    place: usize,
    name: u64,
    bytes: Vec<u8>,
}

/// A relay that listens already.
pub struct Relay {
    driver: Driver,
    between: Between,
}

/// What is between the sockets.
struct Between {
    registry: Registry,
    front: UdpSocket,
    sockets: Sockets,
    header: u32,
    /// The longest packet each way.
    mtus: [Option<u64>; 2],
    passage: Passage<SocketAddr, Datagram>,
    ways: Ways<UdpSocket>,
    looked_at: Instant,
    spare: Vec<Vec<u8>>,
    scratch: Vec<u8>,
    gate: Option<Box<dyn Gate>>,
    once: Option<Once>,
    changes: Option<Box<ClientHook>>,
}

/// Who is notified of clients that come and go.
type ClientHook = dyn FnMut(&ClientChange) + Send;

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay")
            .field("front", &self.between.front)
            .field("sockets", &self.between.sockets)
            .finish_non_exhaustive()
    }
}

impl Relay {
    /// Begins to listen.
    ///
    /// # Errors
    /// An address that is in use or not this machine's; a path that describes no links.
    pub fn bind(path: &Path, options: RelayOptions) -> Result<Self, Error> {
        let RelayOptions { listen, to, from, seed, most_clients, bound } = options;
        if listen == to {
            return Err(Error::Itself(listen));
        }
        let sockets = Sockets::new(to, from)?;
        let system = Error::system;
        let mut front = UdpSocket::bind(listen).map_err(|error| Error::Listen(listen, error))?;
        // As much as there is.
        let _ = socket2::SockRef::from(&front).set_recv_buffer_size(KEPT);
        let driver = Driver::new()?;
        let registry = driver.poll.registry();
        registry
            .register(&mut front, Token(FIRST), Interest::READABLE)
            .map_err(system("the socket cannot be waited for"))?;
        let between = Between {
            registry: registry.try_clone().map_err(system("sockets cannot be waited for"))?,
            front,
            header: u32::try_from(path.header.0).unwrap_or(u32::MAX),
            mtus: [&path.uplink, &path.downlink].map(|direction| direction.mtu.map(|mtu| mtu.0)),
            passage: Passage::new(driver.clock, path, seed, bound)?,
            ways: Ways::new(room_for(most_clients).min(sockets.ports())),
            sockets,
            looked_at: Instant::ORIGIN,
            spare: Vec::new(),
            scratch: vec![0; LONGEST],
            gate: None,
            once: None,
            changes: None,
        };
        Ok(Self { driver, between })
    }

    /// The same with something before the server.
    #[must_use]
    pub fn with_gate(mut self, gate: Box<dyn Gate>) -> Self {
        self.between.gate = Some(gate);
        self
    }

    /// The same, but a datagram is dropped while one that can stand for it waits in the queue that it would come to.
    #[must_use]
    pub fn queueing_once(mut self, likeness: Box<dyn Likeness>) -> Self {
        self.between.once = Some(Once::by(likeness));
        self
    }

    /// The same with a hook that is notified of each client that comes or goes, from the relay's thread: it is not to wait for anything.
    #[must_use]
    pub fn telling_clients(mut self, hook: impl FnMut(&ClientChange) + Send + 'static) -> Self {
        self.between.changes = Some(Box::new(hook));
        self
    }

    /// The same with somebody who reads what arrives.
    #[must_use]
    pub fn with_reader(mut self, reader: Box<dyn Reader>) -> Self {
        self.between.passage.reading = Reading::by(reader);
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The operating system does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.between.front.local_addr().map_err(Error::system("the address of the socket is not told"))
    }

    /// For so many clients there is room at a time: as many as were asked for, or as files may be open, or as there are ports.
    #[must_use]
    pub const fn room(&self) -> usize {
        self.between.ways.room()
    }

    /// What ends it.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.driver.stop.clone()
    }

    /// What reports how it stands.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.between.passage.watch.clone()
    }

    /// Relays until it is stopped. Asks for real-time priority for the thread that it runs in; where that is granted it is bound
    /// to one processor, and another thread stands by on the others.
    ///
    /// # Errors
    /// Events that cannot be waited for; a fault of the links.
    pub fn run(self) -> Result<Report, Error> {
        self.driver.run(self.between)
    }
}

impl Links for Between {
    fn next(&self) -> Option<Instant> {
        self.passage.shaper.next()
    }

    fn hand_on(&mut self) {
        while let Some(out) = self.passage.due() {
            let read = (out.payload.flow, out.payload.mark);
            let Datagram { client, place, name, bytes } = out.payload.payload;
            let now = self.passage.clock.now();
            let goes_on = out.lost.is_some()
                || out.toward == Toward::Clients
                || self.gate.as_mut().is_none_or(|gate| gate.request(now, client, &bytes));
            if out.toward == Toward::Server {
                self.ping(now, (place, name));
            }
            if !goes_on {
                self.passage.leave_out("held back by the gate before the server");
            } else if out.lost.is_none() {
                self.passage.reading.arrived(now, out.toward, read, out.len, &bytes);
                let sent = match out.toward {
                    Toward::Clients => self.front.send_to(&bytes, client),
                    Toward::Server => match self.ways.get(place) {
                        Some(way) if way.name == name => way.socket.send(&bytes),
                        _ => Err(ErrorKind::NotConnected.into()),
                    },
                };
                if let Err(error) = sent {
                    self.passage.leave_out(not_sent(&error));
                }
            }
            self.keep(bytes);
        }
    }

    fn places(&self) -> usize {
        1 + self.ways.len()
    }

    fn read(&mut self, place: usize) -> bool {
        match place.checked_sub(1) {
            None => self.read_front(),
            Some(back) => self.read_back(back),
        }
    }

    fn wakes(&self) -> Option<Instant> {
        let standing = self.ways.standing();
        let looks = (standing.clients > 0).then_some(self.looked_at);
        looks.into_iter().chain(self.passage.tells()).min()
    }

    fn turned(&mut self) {
        self.forget_idle();
        let Self { passage, ways, gate, .. } = self;
        passage.tell(ways.standing(), || gate.as_ref().map_or_else(Vec::new, |gate| gate.rows()));
    }

    fn lateness(&mut self) -> &mut Lateness {
        &mut self.passage.lateness
    }

    fn attention(&mut self) -> &mut Attention {
        &mut self.passage.attention
    }

    fn end(&mut self) -> Result<Report, Error> {
        let gate = self.gate.as_ref().map_or_else(Vec::new, |gate| gate.rows());
        Ok(Report { gate, ..self.passage.report()? })
    }
}

impl Between {
    /// Reads what clients sent. True if there may be more.
    fn read_front(&mut self) -> bool {
        for _ in 0..BATCH {
            match self.front.recv_from(&mut self.scratch) {
                Ok((length, client)) => {
                    let now = self.passage.clock.now();
                    match self.place_of(client, now) {
                        Ok((place, name)) => self.take(now, Toward::Server, (client, place, name), length),
                        Err(why) => self.passage.leave_out(why),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // What came back for an earlier datagram of ours.
                Err(error) => self.passage.leave_out(not_sent(&error)),
            }
        }
        true
    }

    /// Reads what the server answered to one client. True if there may be more.
    fn read_back(&mut self, place: usize) -> bool {
        for _ in 0..BATCH {
            let now = self.passage.clock.now();
            let Some(way) = self.ways.get(place) else { return false };
            match way.socket.recv(&mut self.scratch) {
                Ok(length) => {
                    let way = (way.client, place, way.name);
                    self.ways.answered(place, now);
                    if let Some(gate) = &mut self.gate {
                        gate.answer(now, way.0, self.scratch.get(..length).unwrap_or_default());
                    }
                    self.take(self.passage.clock.now(), Toward::Clients, way, length);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => self.passage.leave_out(not_sent(&error)),
            }
        }
        true
    }

    /// Offers what the gate has for the client of a way.
    fn ping(&mut self, now: Instant, (place, name): (usize, u64)) {
        if let Some((to, ping)) = self.gate.as_mut().and_then(|gate| gate.ping())
            && let Some(start) = self.scratch.first_chunk_mut()
        {
            *start = ping;
            self.take(now, Toward::Clients, (to, place, name), ping.len());
        }
    }

    /// Offers what was read to a link.
    fn take(&mut self, now: Instant, toward: Toward, way: (SocketAddr, usize, u64), length: usize) {
        let (client, place, name) = way;
        self.ways.carries(place, toward, length);
        let len = self.header.saturating_add(length as u32);
        let mtu = self.mtus[usize::from(toward == Toward::Clients)];
        if mtu.is_some_and(|mtu| u64::from(len) > mtu) {
            return self.passage.leave_out("longer than the path carries in one piece (mtu)");
        }
        let flow = match toward {
            Toward::Server => self.passage.flows.sent(client, "udp", now, len),
            Toward::Clients => self.passage.flows.find(client),
        };
        let read = self.scratch.get(..length).unwrap_or_default();
        let mark = self.passage.reading.sent(now, toward, flow, read);
        let known = self.once.as_ref().and_then(|once| once.name(name, read));
        if let (Some(once), Some(known)) = (&self.once, known)
            && once.waits(&mut self.passage.shaper, now, toward, known)
        {
            return self.passage.leave_out("withheld: the copy before it waits in the queue");
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(read);
        let datagram = Datagram { client, place, name, bytes };
        match self.passage.offer(now, toward, (place as u32, flow, mark), len, datagram) {
            Ok(()) => {
                if let (Some(once), Some(known)) = (&mut self.once, known) {
                    once.took(&mut self.passage.shaper, now, toward, known);
                }
            }
            Err((_, datagram)) => self.keep(datagram.bytes),
        }
    }

    fn keep(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// The way of a client to the server; made if it is new.
    fn place_of(&mut self, client: SocketAddr, now: Instant) -> Result<(usize, u64), &'static str> {
        if let Some(known) = self.ways.of(client, now) {
            return Ok(known);
        }
        let found = self.ways.room_for(client).ok_or("too many clients at a time");
        let found = found.and_then(|(place, closed)| {
            if let Some(way) = closed {
                self.changed(|| way.left(true));
            }
            Ok((place, self.connected(place, client).map_err(|_| "no socket left for a further client")?))
        });
        let (place, socket) = found.inspect_err(|_| self.ways.refused += 1)?;
        self.changed(|| ClientChange::Came { client, seen_as: socket.local_addr().ok() });
        Ok((place, self.ways.take(place, client, socket, now)))
    }

    fn changed(&mut self, change: impl FnOnce() -> ClientChange) {
        if let Some(hook) = &mut self.changes {
            hook(&change());
        }
    }

    fn connected(&mut self, place: usize, client: SocketAddr) -> io::Result<UdpSocket> {
        let mut socket = self.sockets.connected(client)?;
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(KEPT);
        self.registry.register(&mut socket, Token(BACK + place), Interest::READABLE)?;
        Ok(socket)
    }

    /// Closes the ways of clients that have been silent for long.
    fn forget_idle(&mut self) {
        let now = self.passage.clock.now();
        if now.as_micros() < self.looked_at.as_micros() {
            return;
        }
        self.looked_at = Instant::from_micros(now.as_micros() + LOOKED_AT_EVERY);
        for way in self.ways.forget_before(Instant::from_micros(now.as_micros().saturating_sub(IDLE))) {
            self.changed(|| way.left(false));
        }
    }
}

fn not_sent(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => "nobody listens where they were sent",
        ErrorKind::WouldBlock => "the socket's own buffer was full",
        ErrorKind::NotConnected => "their client has no place any more",
        _ => "the operating system did not take them",
    }
}
