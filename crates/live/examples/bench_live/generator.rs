//! The closed loop of clients that asks: one thread, one socket, an address for each client.

use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use millpond_coap::{message::Message, oscore::Context};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

use crate::{Failure, OUTSTANDING, PATH, process::Running};

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
    /// By which all requests are protected.
    context: Option<Context>,
    /// After this time without an answer a client asks anew.
    patience: Duration,
    room: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    /// Message ID and token of its request.
    id: u16,
    /// When it asked what was not answered yet.
    asked: Option<Instant>,
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Time(Duration),
    Requests(u64),
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
    /// Microseconds to an answer, in ascending order.
    micros: Vec<u32>,
}

impl Run {
    /// Microseconds of CPU of the server for each request.
    pub(crate) fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.answers.max(1) as f64
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

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(400);
/// The same of what one change is told to many.
const PATIENCE_OF_OBSERVERS: Duration = Duration::from_secs(60);
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
            context: None,
            patience: PATIENCE,
            room,
        })
    }

    /// So many clients that ask to observe this path.
    pub(crate) fn observing(clients: usize, path: &'static [u8]) -> io::Result<Self> {
        // Observe is option 6, Uri-Path 11.
        let options = [&[0x60, 0x50 | path.len() as u8], path].concat();
        Ok(Self { options, observes: true, ..Self::new(clients)? })
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
        let [high, low] = client.id.to_be_bytes();
        let mut datagram = [0; 64];
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            datagram[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        };
        put(&[0x42, 1, high, low, high, low]);
        put(&self.options);
        let mut contents = datagram.get(..length).unwrap_or_default();
        let mut protected = Vec::new();
        if let Some(context) = &mut self.context {
            let request = Message::parse(contents).map_err(io::Error::other)?;
            context.protect_request(&request, &mut protected).map_err(io::Error::other)?;
            contents = &protected;
        }
        let source = Some(IpAddr::V4(Self::address(number)));
        self.send(server, contents, source)
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

    /// What was observed changes: from then on until all have been told.
    pub(crate) fn told(
        &mut self,
        server: &Running,
        change: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Run, Failure> {
        let now = Instant::now();
        self.clients.iter_mut().for_each(|client| client.asked = Some(now));
        (self.under_way, self.patience) = (self.clients.len(), PATIENCE_OF_OBSERVERS);
        change()?;
        self.run(server, Limit::Requests(self.clients.len() as u64))
    }

    /// Asks until the limit is reached.
    pub(crate) fn run(&mut self, server: &Running, limit: Limit) -> Result<Run, Failure> {
        let (start, cpu) = (Instant::now(), server.cpu());
        let mut run = Run::default();
        let most = match limit {
            Limit::Time(_) => u64::MAX,
            Limit::Requests(most) => most,
        };
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        loop {
            let now = Instant::now();
            run.elapsed = now - start;
            let is_over = match limit {
                Limit::Time(time) => run.elapsed >= time,
                Limit::Requests(most) => run.answers + run.refused >= most,
            };
            if is_over {
                run.cpu = server.cpu().saturating_sub(cpu);
                self.settle();
                run.micros.sort_unstable();
                return Ok(run);
            }
            let asked = run.answers + run.refused + self.under_way as u64;
            for _ in 0..(OUTSTANDING.saturating_sub(self.under_way) as u64).min(most.saturating_sub(asked)) {
                self.ask(server.address, now)?;
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
                let number = meta.dst_ip.and_then(Self::client);
                for answer in bytes.get(..meta.len).unwrap_or_default().chunks(meta.stride.max(1)) {
                    self.answered(number, answer, (now, meta.addr), &mut run)?;
                }
            }
            self.room = room;
            self.lose(now, &mut run);
        }
    }

    /// An answer came for a client.
    fn answered(
        &mut self,
        number: Option<usize>,
        answer: &[u8],
        (now, from): (Instant, SocketAddr),
        run: &mut Run,
    ) -> io::Result<()> {
        let Some(&[first, code, id_high, id_low, high, low]) = answer.first_chunk::<6>() else { return Ok(()) };
        let address = number.map(|number| IpAddr::V4(Self::address(number)));
        if first & 0x30 == 0 {
            self.send(from, &[0x60, 0, id_high, id_low], address)?;
        }
        let client = number.and_then(|number| self.clients.get_mut(number));
        let Some(client) = client.filter(|client| client.id.to_be_bytes() == [high, low]) else { return Ok(()) };
        let Some(asked) = client.asked.take() else { return Ok(()) };
        self.under_way -= 1;
        // Observe is the first option of an answer that accepts the observer.
        let is_accepted = answer.get(6).is_some_and(|option| option >> 4 == 6);
        // What is protected is 2.04 outside.
        let wanted = if self.context.is_some() { 0x44 } else { 0x45 };
        if code != wanted || (self.observes && !is_accepted) {
            run.refused += 1;
            return Ok(());
        }
        run.answers += 1;
        if run.micros.len() < MOST_TIMES {
            run.micros.push((now - asked).as_micros() as u32);
        }
        Ok(())
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
