//! The closed loop of clients that asks: one thread, one socket, an address for each client.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use millpond_coap::{
    message::{Message, Uint},
    oscore::Context,
};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

use crate::{
    Failure, OUTSTANDING, PATH, STATE,
    process::Running,
    secured::{Came, Sessions},
    sides,
};

/// Asks for a clients' worth of addresses from one socket: 127.1.0.1 and on. Each has one request under way at most.
pub(crate) struct Generator {
    socket: UdpSocket,
    state: UdpSocketState,
    clients: Vec<Client>,
    next: usize,
    under_way: usize,
    /// When those that were not answered were looked for.
    looked: Instant,
    /// As they stand in each request.
    options: Vec<u8>,
    /// The requests ask to observe.
    observes: bool,
    /// They ask for one block after the other of so many, of [`BLOCK`] bytes.
    blocks: Option<u32>,
    /// By which all requests are protected.
    context: Option<Context>,
    /// Under which all are sent.
    sessions: Option<Sessions>,
    /// To have such a session is all that a client wants.
    wants_sessions: bool,
    /// After this time without an answer a client asks anew.
    patience: Duration,
    room: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// Message ID and token of its request.
    id: u16,
    /// Of those asked for, the next.
    block: u32,
    /// When it asked what was not answered yet.
    asked: Option<Instant>,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Time(Duration),
    Requests(u64),
    /// So many have heard of a change, or have not in time.
    Told(u64),
    /// Nobody asks for so long: what comes is acknowledged.
    Quiet(Duration),
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) answers: u64,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    /// Requests that were not answered in time; their client asks anew.
    pub(crate) lost: u64,
    /// Answers that were no 2.05, or did not accept who wants to observe.
    pub(crate) refused: u64,
    /// Answers that were confirmable themselves.
    pub(crate) confirmable: u64,
    /// Resident bytes that the server took meanwhile, where that was looked at.
    pub(crate) grown: Option<u64>,
    /// Microseconds to an answer, in ascending order.
    micros: Vec<u32>,
}

impl Run {
    /// Microseconds of CPU of the server for each request.
    pub(crate) fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers.max(1) as f64
    }

    /// With another one after it.
    pub(crate) fn with(mut self, mut other: Self) -> Self {
        self.micros.append(&mut other.micros);
        self.micros.sort_unstable();
        Self {
            answers: self.answers + other.answers,
            elapsed: self.elapsed + other.elapsed,
            cpu: self.cpu + other.cpu,
            lost: self.lost + other.lost,
            refused: self.refused + other.refused,
            confirmable: self.confirmable + other.confirmable,
            grown: self.grown.or(other.grown),
            micros: self.micros,
        }
    }

    /// Requests a second.
    pub(crate) fn rate(&self) -> f64 {
        self.answers as f64 / self.elapsed.as_secs_f64()
    }

    /// The time within which this share of the answers came, in milliseconds.
    pub(crate) fn within(&self, share: f64) -> f64 {
        let last = self.micros.len().saturating_sub(1);
        f64::from(self.micros.get((last as f64 * share) as usize).copied().unwrap_or(0)) / 1e3
    }
}

/// Bytes of a block, and its exponent (RFC 7959 §2.2).
pub(crate) const BLOCK: usize = 1_024;
const EXPONENT: u32 = 6;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(400);
/// The same of what one change is told to many.
const PATIENCE_OF_OBSERVERS: Duration = Duration::from_secs(60);
/// The same of what a server keeps something for: a session, an observer. Asked again in between, it would keep two.
const PATIENCE_OF_BEGINNINGS: Duration = Duration::from_secs(5);
/// Answers whose time is kept.
const MOST_TIMES: usize = 4 << 20;

impl Generator {
    /// So many clients that ask for `/bench`.
    pub(crate) fn new(clients: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        // What the kernel gives.
        let _ = state.set_recv_buffer_size((&socket).into(), 4 << 20);
        let room = vec![0; 65_536 * BATCH_SIZE];
        let clients = vec![Client::default(); clients];
        let looked = Instant::now();
        Ok(Self {
            socket,
            state,
            clients,
            next: 0,
            under_way: 0,
            looked,
            options: [&[0xb0 | PATH.len() as u8], PATH].concat(),
            observes: false,
            blocks: None,
            context: None,
            sessions: None,
            wants_sessions: false,
            patience: PATIENCE,
            room,
        })
    }

    /// So many clients that ask to observe this path.
    pub(crate) fn observing(clients: usize, path: &'static [u8]) -> io::Result<Self> {
        // Observe is option 6, Uri-Path 11.
        let options = [&[0x60, 0x50 | path.len() as u8], path].concat();
        Ok(Self { options, observes: true, patience: PATIENCE_OF_BEGINNINGS, ..Self::new(clients)? })
    }

    /// So many clients that ask a proxy for this URI, of 13 to 40 bytes.
    pub(crate) fn naming(clients: usize, uri: &str) -> io::Result<Self> {
        // Proxy-Uri is option 35; what exceeds 13 of number and length stands in a byte each.
        let options = [&[0xdd, 35 - 13, uri.len() as u8 - 13], uri.as_bytes()].concat();
        Ok(Self { options, ..Self::new(clients)? })
    }

    /// So many clients that ask for `/bench` under one context.
    pub(crate) fn protected(clients: usize, context: Context) -> io::Result<Self> {
        Ok(Self { context: Some(context), ..Self::new(clients)? })
    }

    /// So many clients that fetch this path block by block, over and over.
    pub(crate) fn fetching(clients: usize, path: &'static [u8], blocks: u32) -> io::Result<Self> {
        let options = [&[0xb0 | path.len() as u8], path].concat();
        Ok(Self { options, blocks: Some(blocks), ..Self::new(clients)? })
    }

    /// So many clients that ask for `/bench` under DTLS, in one session each.
    pub(crate) fn secured(clients: usize) -> io::Result<Self> {
        Ok(Self { sessions: Some(Sessions::of(clients)?), ..Self::new(clients)? })
    }

    /// So many clients that each begin a session and ask nothing.
    pub(crate) fn shaking_hands(clients: usize) -> io::Result<Self> {
        Ok(Self { wants_sessions: true, patience: PATIENCE_OF_BEGINNINGS, ..Self::secured(clients)? })
    }

    fn address(client: usize) -> Ipv4Addr {
        let [_, high, middle, low] = (client as u32 + 1).to_be_bytes();
        Ipv4Addr::new(127, 1 + high, middle, low)
    }

    fn client(address: IpAddr) -> Option<usize> {
        let IpAddr::V4(ip) = address else { return None };
        let [_, high, middle, low] = ip.octets();
        (u32::from_be_bytes([0, high.checked_sub(1)?, middle, low]) as usize).checked_sub(1)
    }

    /// The next client in turn asks, if it is not waiting.
    fn ask(&mut self, server: SocketAddr, now: Instant) -> io::Result<()> {
        let number = self.next;
        self.next = (number + 1) % self.clients.len();
        let Some(client) = self.clients.get_mut(number).filter(|client| client.asked.is_none()) else { return Ok(()) };
        client.id = client.id.wrapping_add(1);
        client.asked = Some(now);
        self.under_way += 1;
        self.send_request(server, number, now)
    }

    /// Of a client that asks; or the beginning of its session, if it wants one.
    fn send_request(&mut self, server: SocketAddr, number: usize, now: Instant) -> io::Result<()> {
        let Some(Client { id, block, .. }) = self.clients.get(number) else { return Ok(()) };
        let [high, low] = id.to_be_bytes();
        let mut datagram = [0; 64];
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            datagram[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        };
        put(&[0x42, 1, high, low, high, low]);
        put(&self.options);
        if self.blocks.is_some() {
            // Block2 is option 23, behind Uri-Path, which is 11.
            let value = Uint::new(block << 4 | EXPONENT);
            put(&[(23 - 11) << 4 | value.as_bytes().len() as u8]);
            put(value.as_bytes());
        }
        let mut contents = datagram.get(..length).unwrap_or_default();
        let mut protected = Vec::new();
        if let Some(context) = &mut self.context {
            let request = Message::parse(contents).map_err(io::Error::other)?;
            context.protect_request(&request, &mut protected).map_err(io::Error::other)?;
            contents = &protected;
        }
        self.send_from(server, contents, number, now)
    }

    /// From a client, in its session if it has one.
    fn send_from(&mut self, server: SocketAddr, contents: &[u8], number: usize, now: Instant) -> io::Result<()> {
        let source = Some(IpAddr::V4(Self::address(number)));
        let Some(sessions) = &mut self.sessions else { return self.send(server, contents, source) };
        let datagrams = sessions.protect(number, contents, now)?;
        datagrams.iter().try_for_each(|datagram| self.send(server, datagram, source))
    }

    fn send(&self, server: SocketAddr, contents: &[u8], source: Option<IpAddr>) -> io::Result<()> {
        let transmit = Transmit { destination: server, ecn: None, contents, segment_size: None, src_ip: source };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                done => return done,
            }
        }
    }

    /// `/state`, which all observe, changes at this server: from then on until all have been told.
    pub(crate) fn told(&mut self, server: &Running, origin: SocketAddr) -> Result<Run, Failure> {
        // What they were told before and could not acknowledge.
        self.run(server, Limit::Quiet(Duration::from_secs(1)))?;
        let since = (Instant::now(), server.cpu());
        self.clients.iter_mut().for_each(|client| client.asked = Some(since.0));
        (self.under_way, self.patience) = (self.clients.len(), PATIENCE_OF_OBSERVERS);
        // They may be told before who changes it.
        let change = sides::ask_to_change(origin, STATE)?;
        let run = self.run_since(since, server, Limit::Told(self.clients.len() as u64))?;
        sides::is_changed(&change)?;
        Ok(run)
    }

    /// Asks until the limit is reached.
    pub(crate) fn run(&mut self, server: &Running, limit: Limit) -> Result<Run, Failure> {
        self.run_since((Instant::now(), server.cpu()), server, limit)
    }

    /// The same, with what began at this time, and when the server had used so much CPU.
    fn run_since(&mut self, (start, cpu): (Instant, Duration), server: &Running, limit: Limit) -> Result<Run, Failure> {
        let mut run = Run::default();
        let most = match limit {
            Limit::Time(_) => u64::MAX,
            Limit::Requests(most) => most,
            Limit::Told(_) | Limit::Quiet(_) => 0,
        };
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let address = if self.sessions.is_some() { server.secure() } else { server.address };
        loop {
            let now = Instant::now();
            run.elapsed = now - start;
            let is_over = match limit {
                Limit::Time(time) | Limit::Quiet(time) => run.elapsed >= time,
                Limit::Requests(most) => run.answers + run.refused >= most,
                Limit::Told(most) => run.answers + run.refused + run.lost >= most,
            };
            if is_over {
                run.cpu = server.cpu().saturating_sub(cpu);
                self.settle();
                run.micros.sort_unstable();
                return Ok(run);
            }
            if matches!(limit, Limit::Requests(_)) && run.answers == 0 && run.lost >= OUTSTANDING as u64 {
                return Err("nothing is answered".into());
            }
            let asked = run.answers + run.refused + self.under_way as u64;
            for _ in 0..(OUTSTANDING.saturating_sub(self.under_way) as u64).min(most.saturating_sub(asked)) {
                self.ask(address, now)?;
            }
            let mut places: Vec<_> = self.room.chunks_exact_mut(65_536).map(IoSliceMut::new).collect();
            let count = match self.state.recv((&self.socket).into(), &mut places, &mut metas) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.lose(now, &mut run);
                    thread::yield_now();
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            drop(places);
            let room = std::mem::take(&mut self.room);
            for (meta, bytes) in metas.iter().take(count).zip(room.chunks_exact(65_536)) {
                let Some(number) = meta.dst_ip.and_then(Self::client) else { continue };
                for datagram in bytes.get(..meta.len).unwrap_or_default().chunks(meta.stride.max(1)) {
                    self.came(number, datagram, (now, meta.addr), &mut run)?;
                }
            }
            self.room = room;
            self.lose(now, &mut run);
        }
    }

    /// A datagram came for a client.
    fn came(
        &mut self,
        number: usize,
        datagram: &[u8],
        (now, from): (Instant, SocketAddr),
        run: &mut Run,
    ) -> io::Result<()> {
        let Some(sessions) = &mut self.sessions else { return self.answered(number, datagram, (now, from), run) };
        let Came { datagrams, plain, is_new } = sessions.receive(number, datagram);
        let source = Some(IpAddr::V4(Self::address(number)));
        datagrams.iter().try_for_each(|datagram| self.send(from, datagram, source))?;
        if is_new && self.wants_sessions {
            self.done(number, now, run);
        } else if is_new {
            self.send_request(from, number, now)?;
        }
        plain.iter().try_for_each(|answer| self.answered(number, answer, (now, from), run))
    }

    /// An answer came for a client.
    fn answered(
        &mut self,
        number: usize,
        answer: &[u8],
        (now, from): (Instant, SocketAddr),
        run: &mut Run,
    ) -> io::Result<()> {
        let Some(&[first, code, id_high, id_low, high, low]) = answer.first_chunk::<6>() else { return Ok(()) };
        let is_confirmable = first & 0x30 == 0;
        if is_confirmable {
            self.send_from(from, &[0x60, 0, id_high, id_low], number, now)?;
        }
        let Some(client) = self.clients.get_mut(number) else { return Ok(()) };
        if client.id.to_be_bytes() != [high, low] || client.asked.is_none() {
            return Ok(());
        }
        let is_wanted = if self.observes || self.blocks.is_some() {
            let option = |number| Message::parse(answer).ok().and_then(|answer| answer.option(number));
            // Observe is option 6 of an answer that accepts the observer, Block2 option 23.
            (!self.observes || option(6).is_some())
                && self.blocks.is_none_or(|blocks| {
                    let (block, is_last) = (client.block, client.block + 1 == blocks);
                    client.block = if is_last { 0 } else { block + 1 };
                    let is_long = answer.len() > BLOCK;
                    let value = block << 4 | u32::from(!is_last) << 3 | EXPONENT;
                    is_long && option(23).and_then(Uint::read) == Some(value)
                })
        } else {
            true
        };
        // What is protected is 2.04 outside.
        let wanted = if self.context.is_some() { 0x44 } else { 0x45 };
        if code != wanted || !is_wanted {
            client.asked = None;
            self.under_way -= 1;
            run.refused += 1;
            return Ok(());
        }
        run.confirmable += u64::from(is_confirmable);
        self.done(number, now, run);
        Ok(())
    }

    /// A client has what it wanted.
    fn done(&mut self, number: usize, now: Instant, run: &mut Run) {
        let asked = self.clients.get_mut(number).and_then(|client| client.asked.take());
        let Some(asked) = asked else { return };
        self.under_way -= 1;
        run.answers += 1;
        if run.micros.len() < MOST_TIMES {
            run.micros.push((now - asked).as_micros() as u32);
        }
    }

    /// Gives up what was not answered in time, so that its client asks anew.
    fn lose(&mut self, now: Instant, run: &mut Run) {
        if now - self.looked < self.patience / 8 {
            return;
        }
        self.looked = now;
        for client in &mut self.clients {
            if client.asked.is_some_and(|asked| now - asked > self.patience) {
                client.asked = None;
                self.under_way -= 1;
                run.lost += 1;
            }
        }
    }

    /// What is still under way belongs to nobody.
    fn settle(&mut self) {
        thread::sleep(Duration::from_millis(50));
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut places: Vec<_> = self.room.chunks_exact_mut(65_536).map(IoSliceMut::new).collect();
        while self.state.recv((&self.socket).into(), &mut places, &mut metas).is_ok() {}
        self.clients.iter_mut().for_each(|client| client.asked = None);
        self.under_way = 0;
    }
}
