//! Paths that drop, delay, duplicate and reorder, on both sides of a gateway: each request ends.
//!
//! What becomes of a datagram follows from its bytes and how often they came before, so that a device's requests meet the same in
//! each run; of three copies one arrives.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use millpond_live::{Code, Request, Resource, Response};
use tokio::{
    net::UdpSocket,
    time::{Instant, timeout_at},
};

use super::{Upstream, any, gateway};

const SEED: u64 = 7_252;
/// A device draws its message IDs from so few that it draws most of them again and again.
const IDS: u64 = 24;
/// EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
const LIFETIME: Duration = Duration::from_secs(247);
const TOKEN: u8 = 1;
const LONGEST_DELAY: Duration = Duration::from_millis(60);

fn drawn(place: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (SEED, place).hash(&mut hasher);
    hasher.finish()
}

/// A bad path to this address, for one who asks: where it begins.
async fn bad_path_to(address: SocketAddr) -> SocketAddr {
    let (near, far) = (UdpSocket::bind(any()).await.unwrap(), UdpSocket::bind(any()).await.unwrap());
    far.connect(address).await.unwrap();
    let (begins, near, far) = (near.local_addr().unwrap(), Arc::new(near), Arc::new(far));
    tokio::spawn(async move {
        let (mut copies, mut asks) = (BTreeMap::<(bool, Vec<u8>), u64>::new(), None);
        let (mut out, mut back) = ([0; 2_048], [0; 2_048]);
        loop {
            let (is_back, bytes) = tokio::select! {
                Ok((length, from)) = near.recv_from(&mut out) => {
                    asks = Some(from);
                    (false, out[..length].to_vec())
                }
                Ok(length) = far.recv(&mut back) => (true, back[..length].to_vec()),
                // An error of the socket is that of a datagram that did not arrive.
                else => continue,
            };
            let copy = copies.entry((is_back, bytes.clone())).or_default();
            *copy += 1;
            let fate = drawn((is_back, &bytes, *copy));
            let times = match fate % 10 {
                0 if *copy % 3 != 0 => 0,
                1 => 2,
                _ => 1,
            };
            for time in 0..times {
                let (to, near, far, bytes) = (asks, Arc::clone(&near), Arc::clone(&far), bytes.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(LONGEST_DELAY.mul_f64((fate >> (8 + 8 * time) & 0xff) as f64 / 256.0)).await;
                    let _ = match (is_back, to) {
                        (true, Some(to)) => near.send_to(&bytes, to).await,
                        _ => far.send(&bytes).await,
                    };
                });
            }
        }
    });
    begins
}

/// A device whose program is run for each request, as that of libcoap: from its port, with the same token each time, and a message ID
/// drawn anew.
struct Device {
    socket: UdpSocket,
    number: u64,
}

impl Device {
    async fn before(gateway: SocketAddr, number: u64) -> Self {
        let socket = UdpSocket::bind(any()).await.unwrap();
        socket.connect(bad_path_to(gateway).await).await.unwrap();
        Self { socket, number }
    }

    /// Asks confirmably and is answered.
    async fn ask(&self, round: u64, method: u8, path: &str) -> (u8, Vec<u8>) {
        let id = (drawn((self.number, round)) % IDS) as u16;
        let [high, low] = id.to_be_bytes();
        let mut request = vec![0x41, method, high, low, TOKEN];
        for (place, segment) in path.split('/').enumerate() {
            request.push(if place == 0 { 0xb0 } else { 0 } | segment.len() as u8);
            request.extend(segment.bytes());
        }
        let (began, mut wait, mut is_acknowledged) = (Instant::now(), Duration::from_millis(200), false);
        let mut again = began;
        loop {
            if !is_acknowledged && Instant::now() >= again {
                self.socket.send(&request).await.unwrap();
                again += wait;
                wait *= 2;
            }
            let until = if is_acknowledged { began + LIFETIME } else { again };
            let mut datagram = [0; 2_048];
            let Ok(length) = timeout_at(until, self.socket.recv(&mut datagram)).await else {
                assert!(began.elapsed() < LIFETIME, "{path} of device {}, message ID {id}: no end", self.number);
                continue;
            };
            let datagram = &datagram[..length.unwrap()];
            let (kind, code, its) = (datagram[0] >> 4 & 3, datagram[1], [datagram[2], datagram[3]]);
            let is_ours = its == [high, low];
            match (kind, code) {
                // A ping.
                (0, 0) => drop(self.socket.send(&[0x70, 0, its[0], its[1]]).await),
                (2, 0) if is_ours => is_acknowledged = true,
                (0, _) => {
                    self.socket.send(&[0x60, 0, its[0], its[1]]).await.unwrap();
                    return (code, datagram.to_vec());
                }
                (2, 1..) if is_ours => return (code, datagram.to_vec()),
                _ => {}
            }
        }
    }
}

/// `MILLPOND_SOAK=600 cargo test -p millpond-gateway --test proxy lossy` has each device ask 600 times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_ends_whatever_the_paths_do() {
    let soak = std::env::var("MILLPOND_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(6_u64);
    let named = |request: Request| async move { Response::content(request.path_text()).with_max_age(0) };
    let slow = move |request: Request| async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        named(request).await
    };
    let never = || async { std::future::pending::<Response>().await };
    let upstream = Upstream::start(|server| {
        let server = server.route("/quick/{n}", Resource::new().any(named)).route("/never", Resource::new().get(never));
        server.route("/slow/{n}", Resource::new().any(slow))
    })
    .await;
    let to = bad_path_to(upstream.at()).await;
    let rule = |path: &str, timeout: &str| {
        format!("[[rule]]\npath = \"{path}\"\nto = \"coap://{to}{path}\"\ntimeout = \"{timeout}\"\n")
    };
    // What is answered is given the time that retransmissions take, also where the machine is slow.
    let lines = format!("[upstream]\nnstart = 16\nqueue = 40\n{}{}", rule("/never", "2 s"), rule("/{*rest}", "200 s"));
    let (gateway, _) = gateway(&lines).await;
    let at = gateway.local_addr();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..40 {
        asking.spawn(async move {
            let device = Device::before(at, number).await;
            let mut ends = BTreeMap::<_, u64>::new();
            for round in 0..soak {
                let (method, path) = match drawn((number, round, "path")) % 12 {
                    0 => (1, "never".to_owned()),
                    1 => (1, "slow/all".to_owned()),
                    2 | 3 => (1, format!("slow/{number}")),
                    4 | 5 => (2, format!("slow/{number}")),
                    _ => (1, format!("quick/{number}")),
                };
                // Starting the program takes longer than the acknowledgement before is on its way: a request that overtook that with its
                // message ID would look like any duplicate of the one before.
                tokio::time::sleep(LONGEST_DELAY).await;
                let (code, _) = device.ask(round, method, &path).await;
                let code = Code::from_byte(code);
                let expected = [Code::CONTENT, Code::GATEWAY_TIMEOUT, Code::SERVICE_UNAVAILABLE, Code::BAD_GATEWAY];
                assert!(expected.contains(&code), "{path}: {code}");
                *ends.entry(code.to_string()).or_default() += 1;
            }
            ends
        });
    }
    let mut ends = BTreeMap::<_, u64>::new();
    while let Some(one) = asking.join_next().await {
        for (code, count) in one.unwrap() {
            *ends.entry(code).or_default() += count;
        }
    }
    let answered = ends.get(&Code::CONTENT.to_string()).copied().unwrap_or(0);
    assert!(answered > 40 * soak / 2, "answered by who was asked: {answered} of {ends:?}");
    gateway.shutdown().await;
}
