//! What a request costs a server, on this machine: `cargo run --release -p millpond-live --example bench_live`.
//!
//! A closed loop of clients in one thread asks a server in another, over loopback. CPU is that of the server's thread
//! alone; beside it stands a bare loop of recvfrom and sendto that answers the same bytes, in the same run. Duplicates
//! are detected throughout, as by default.
//!
//! Arguments: `--seconds N` for each measurement (3), `--steady N` seconds for the one busy peer (60), `--requests N` for
//! the memory over many requests (1,000,000), `--only NAME` for one part: cost, clients, peer or memory.

use std::{
    io::{self, IoSliceMut},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use millpond_live::{AddressRule, Client, Resource, Response, Server};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Requests under way at a time.
const OUTSTANDING: usize = 64;
/// The path that is asked for.
const PATH: &[u8] = b"bench";
/// What is answered.
const PAYLOAD: &[u8] = b"0123456789012345678901234567890123456789";

fn main() -> Result<(), Failure> {
    let arguments = Arguments::read()?;
    if arguments.wants("cost") {
        cost(&arguments)?;
    }
    if arguments.wants("clients") {
        clients(&arguments)?;
    }
    if arguments.wants("peer") {
        busy_peer(&arguments)?;
    }
    if arguments.wants("memory") {
        memory(&arguments)?;
    }
    Ok(())
}

/// CPU for each request, beside the least that the kernel asks for.
fn cost(arguments: &Arguments) -> Result<(), Failure> {
    println!("{OUTSTANDING} clients, {} bytes of payload:", PAYLOAD.len());
    for _ in 0..2 {
        let floor = Floor::start()?;
        let run = Generator::new(OUTSTANDING)?.run(floor.address, Limit::Time(arguments.seconds), || floor.cpu())?;
        println!("  recvfrom and sendto   {run}");
        floor.stop();
        let server = Served::start()?;
        let run = Generator::new(OUTSTANDING)?.run(server.address, Limit::Time(arguments.seconds), || server.cpu())?;
        println!("  millpond-live         {run}");
    }
    Ok(())
}

/// The same with more and more clients that are known.
fn clients(arguments: &Arguments) -> Result<(), Failure> {
    println!("known clients, {OUTSTANDING} of them asking at a time:");
    for count in [250, 1_000, 4_000, 10_000] {
        let server = Served::start()?;
        let mut generator = Generator::new(count)?;
        let before = resident()?;
        generator.run(server.address, Limit::Requests(count as u64), || server.cpu())?;
        let idle = resident()?.saturating_sub(before);
        let run = generator.run(server.address, Limit::Time(arguments.seconds), || server.cpu())?;
        println!("  {count:>6}  {run}, {} kB more resident once each had asked", idle / 1_024);
    }
    Ok(())
}

/// One peer that asks as fast as it can: message IDs must not run out.
fn busy_peer(arguments: &Arguments) -> Result<(), Failure> {
    let server = Served::start()?;
    let uri = format!("coap://{}/bench", server.address);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // A minute at full speed uses up the message IDs of some 150 ports.
        let client = Client::builder().nstart(256).most_sockets(256).build().await?;
        let end = tokio::time::Instant::now() + arguments.steady;
        let tasks: Vec<_> = (0..OUTSTANDING)
            .map(|_| {
                let (client, uri) = (client.clone(), uri.parse::<millpond_live::Uri>());
                tokio::spawn(async move {
                    let (mut answered, mut slowest) = (0_u64, Duration::ZERO);
                    let uri = uri?;
                    while tokio::time::Instant::now() < end {
                        let start = tokio::time::Instant::now();
                        client.get(&uri).send().await?;
                        (answered, slowest) = (answered + 1, slowest.max(start.elapsed()));
                    }
                    Ok::<_, Failure>((answered, slowest))
                })
            })
            .collect();
        let (mut answered, mut slowest) = (0, Duration::ZERO);
        for task in tasks {
            let (more, slow) = task.await??;
            (answered, slowest) = (answered + more, slowest.max(slow));
        }
        let stats = client.stats().await?;
        println!(
            "one peer for {:?}: {:.0} requests/s, {} source ports, {} retransmissions, slowest {slowest:?}",
            arguments.steady,
            answered as f64 / arguments.steady.as_secs_f64(),
            stats.sockets,
            stats.retransmissions,
        );
        Ok(())
    })
}

/// What a server holds after more and more requests.
fn memory(arguments: &Arguments) -> Result<(), Failure> {
    let server = Served::start()?;
    let mut generator = Generator::new(OUTSTANDING)?;
    println!("resident memory over {} requests:", arguments.requests);
    for tenth in 0..=10 {
        if tenth > 0 {
            generator.run(server.address, Limit::Requests(arguments.requests / 10), || server.cpu())?;
        }
        println!("  {:>10} requests  {:>7} kB", arguments.requests / 10 * tenth, resident()? / 1_024);
    }
    Ok(())
}

/// Asks for a clients' worth of addresses from one socket: 127.1.0.1 and on.
struct Generator {
    socket: UdpSocket,
    state: UdpSocketState,
    /// The next message ID of each client.
    ids: Vec<u16>,
    next: usize,
    room: Vec<u8>,
}

/// When to stop.
#[derive(Clone, Copy)]
enum Limit {
    Time(Duration),
    Requests(u64),
}

/// What was measured.
struct Run {
    requests: u64,
    elapsed: Duration,
    cpu: Duration,
    lost: u64,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = self.requests as f64 / self.elapsed.as_secs_f64();
        let micros = self.cpu.as_secs_f64() * 1e6 / self.requests as f64;
        write!(f, "{micros:5.2} µs CPU a request, {rate:8.0} requests/s, {} lost", self.lost)
    }
}

impl Generator {
    fn new(clients: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        let _ = state.set_recv_buffer_size((&socket).into(), 4 << 20);
        Ok(Self { socket, state, ids: vec![0; clients], next: 0, room: vec![0; 65_536 * BATCH_SIZE] })
    }

    fn address(client: usize) -> Ipv4Addr {
        let [_, high, middle, low] = (client as u32 + 1).to_be_bytes();
        Ipv4Addr::new(127, 1 + high, middle, low)
    }

    fn client(address: std::net::IpAddr) -> Option<usize> {
        let std::net::IpAddr::V4(ip) = address else { return None };
        let [_, high, middle, low] = ip.octets();
        (u32::from_be_bytes([0, high.checked_sub(1)?, middle, low]) as usize).checked_sub(1)
    }

    /// The next client in turn asks.
    fn ask(&mut self, server: SocketAddr) -> io::Result<()> {
        let client = self.next;
        self.next = (client + 1) % self.ids.len();
        let Some(id) = self.ids.get_mut(client) else { return Ok(()) };
        *id = id.wrapping_add(1);
        let [high, low] = id.to_be_bytes();
        let mut datagram = [0x42, 1, high, low, high, low, 0xb0 | PATH.len() as u8, 0, 0, 0, 0, 0];
        datagram[7..].copy_from_slice(PATH);
        let source = Some(std::net::IpAddr::V4(Self::address(client)));
        let transmit =
            Transmit { destination: server, ecn: None, contents: &datagram, segment_size: None, src_ip: source };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                done => return done,
            }
        }
    }

    fn run(&mut self, server: SocketAddr, limit: Limit, cpu: impl Fn() -> Duration) -> Result<Run, Failure> {
        let (start, cpu_before) = (now(ClockId::Monotonic), cpu());
        let (mut asked, mut requests, mut lost) = (0_u64, 0_u64, 0_u64);
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut heard = start;
        let most = match limit {
            Limit::Time(_) => u64::MAX,
            Limit::Requests(most) => most,
        };
        while asked < (OUTSTANDING as u64).min(most).min(self.ids.len() as u64) {
            self.ask(server)?;
            asked += 1;
        }
        loop {
            let elapsed = now(ClockId::Monotonic) - start;
            let is_over = match limit {
                Limit::Time(time) => elapsed >= time,
                Limit::Requests(most) => requests + lost >= most,
            };
            if is_over {
                let cpu = cpu().saturating_sub(cpu_before);
                self.settle();
                return Ok(Run { requests, elapsed, cpu, lost });
            }
            let mut places: Vec<_> = self.room.chunks_exact_mut(65_536).map(IoSliceMut::new).collect();
            let count = match self.state.recv((&self.socket).into(), &mut places, &mut metas) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // What loopback drops is asked for anew.
                    if now(ClockId::Monotonic) - heard > Duration::from_millis(200) {
                        heard = now(ClockId::Monotonic);
                        lost += asked - requests - lost;
                        for _ in 0..OUTSTANDING {
                            self.ask(server)?;
                            asked += 1;
                        }
                    }
                    thread::yield_now();
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            drop(places);
            heard = now(ClockId::Monotonic);
            for meta in metas.iter().take(count) {
                let answers = meta.len.div_ceil(meta.stride.max(1)) as u64;
                debug_assert!(meta.dst_ip.and_then(Self::client).is_some());
                requests += answers;
                for _ in 0..answers {
                    if asked < most {
                        self.ask(server)?;
                        asked += 1;
                    }
                }
            }
        }
    }

    /// What is still under way belongs to nobody.
    fn settle(&mut self) {
        thread::sleep(Duration::from_millis(50));
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut places: Vec<_> = self.room.chunks_exact_mut(65_536).map(IoSliceMut::new).collect();
        while self.state.recv((&self.socket).into(), &mut places, &mut metas).is_ok() {}
    }
}

/// The server in a thread of its own.
struct Served {
    address: SocketAddr,
    ask: tokio::sync::mpsc::UnboundedSender<mpsc::Sender<Duration>>,
}

impl Served {
    fn start() -> Result<Self, Failure> {
        let (ask, mut asked) = tokio::sync::mpsc::unbounded_channel::<mpsc::Sender<Duration>>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let resource = Resource::new().get(|_| async { Response::content(PAYLOAD) });
                let server = Server::builder()
                    .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
                    .verify_addresses(AddressRule::LargeAnswers)
                    .route("/bench", resource)
                    .start()
                    .await;
                let address = server.as_ref().map(Server::local_addr).map_err(ToString::to_string);
                let _ = tell.send(address);
                while let Some(reply) = asked.recv().await {
                    let _ = reply.send(now(ClockId::ThreadCPUTime));
                }
            });
        });
        Ok(Self { address: told.recv()??, ask })
    }

    /// What its thread has used.
    fn cpu(&self) -> Duration {
        let (reply, answer) = mpsc::channel();
        let _ = self.ask.send(reply);
        answer.recv().unwrap_or_default()
    }
}

/// Answers every datagram with a fitting acknowledgement, and does nothing else.
struct Floor {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    wake: UdpSocket,
    clock: Arc<std::sync::Mutex<Duration>>,
}

impl Floor {
    fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = socket.local_addr()?;
        let (is_over, clock) = (Arc::new(AtomicBool::new(false)), Arc::<std::sync::Mutex<Duration>>::default());
        let (over, used) = (Arc::clone(&is_over), Arc::clone(&clock));
        thread::spawn(move || {
            let mut buffer = [0; 2_048];
            let mut answer = [0; 7 + PAYLOAD.len()];
            while let Ok((_, from)) = socket.recv_from(&mut buffer) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                if buffer[0] == 0 {
                    if let Ok(mut used) = used.lock() {
                        *used = now(ClockId::ThreadCPUTime);
                    }
                    let _ = socket.send_to(&[0], from);
                    continue;
                }
                answer[..6].copy_from_slice(&[0x62, 0x45, buffer[2], buffer[3], buffer[4], buffer[5]]);
                answer[6] = 0xff;
                answer[7..].copy_from_slice(PAYLOAD);
                let _ = socket.send_to(&answer, from);
            }
        });
        let wake = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self { address, is_over, wake, clock })
    }

    fn cpu(&self) -> Duration {
        let mut answer = [0; 1];
        if self.wake.send_to(&[0], self.address).is_ok() {
            let _ = self.wake.recv_from(&mut answer);
        }
        self.clock.lock().map(|used| *used).unwrap_or_default()
    }

    fn stop(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.wake.send_to(&[1], self.address);
    }
}

fn now(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident bytes of this process.
fn resident() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).ok_or("statm has no second field")?.parse()?;
    Ok(pages * 4_096)
}

struct Arguments {
    seconds: Duration,
    steady: Duration,
    requests: u64,
    only: Option<String>,
}

impl Arguments {
    fn read() -> Result<Self, Failure> {
        let mut arguments =
            Self { seconds: Duration::from_secs(3), steady: Duration::from_secs(60), requests: 1_000_000, only: None };
        let mut given = std::env::args().skip(1);
        while let Some(name) = given.next() {
            let value = given.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--seconds" => arguments.seconds = Duration::from_secs(value.parse()?),
                "--steady" => arguments.steady = Duration::from_secs(value.parse()?),
                "--requests" => arguments.requests = value.parse()?,
                "--only" => arguments.only = Some(value),
                _ => return Err(format!("unknown argument {name}").into()),
            }
        }
        Ok(arguments)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}
