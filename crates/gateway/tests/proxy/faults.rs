//! Upstreams that fail in every way that they have: each request ends, and nothing is left of it.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_gateway::Gateway;
use millpond_live::{Client, Code, Observable, Resource, Response, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{client, config};

/// A server that answers at once, late, not at all, with another body each time, or not observably.
async fn upstream(at: SocketAddr, changed: &Observable) -> Server {
    let (count, observed) = (Arc::new(AtomicUsize::new(0)), changed.clone());
    let body = {
        let count = Arc::clone(&count);
        move || {
            let count = count.fetch_add(1, Ordering::Relaxed);
            async move { Response::content(vec![count as u8; 3_000]).with_max_age(0) }
        }
    };
    let late = || async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        Response::content("late").with_max_age(0)
    };
    let never = || async {
        std::future::pending::<()>().await;
        Response::content("never")
    };
    let state = move || {
        let count = count.load(Ordering::Relaxed);
        async move { Response::content(count.to_string()).with_max_age(1) }
    };
    let builder = Server::builder().bind(at).bind_tcp(at);
    let builder = builder.route("/body", Resource::new().get(body.clone()).post(body));
    let builder = builder.route("/late", Resource::new().get(late)).route("/never", Resource::new().get(never));
    builder.route("/state", Resource::new().observable(&observed).get(state)).start().await.unwrap()
}

fn is_free(at: &SocketAddr) -> bool {
    std::net::UdpSocket::bind(at).is_ok() && std::net::TcpListener::bind(at).is_ok()
}

/// A port below those that the system gives to others while the upstream is away.
fn port_of_its_own() -> SocketAddr {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    (first..32_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).find(is_free).unwrap()
}

/// The same port, once the server that was there has released it.
async fn port_again(at: SocketAddr) -> SocketAddr {
    while !is_free(&at) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    at
}

/// Bytes of this process: gateway, clients and upstream.
fn resident() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

async fn figures(gateway: &Gateway) -> String {
    let mut stream = tokio::net::TcpStream::connect(gateway.metrics_addr().unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

fn figure(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// `MILLPOND_SOAK=600 cargo test -p millpond-gateway --test proxy faults` runs for ten minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_ends_whatever_happens_upstream_and_nothing_is_left() {
    let soak = std::env::var("MILLPOND_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let changed = Observable::new();
    let at = port_of_its_own();
    let mut server = Some(upstream(at, &changed).await);
    let lines = format!(
        "metrics = \"127.0.0.1:0\"\n[upstream]\nnstart = 8\nqueue = 20\n\
         [[rule]]\npath = \"/udp/{{*rest}}\"\nto = \"coap://{at}/{{*rest}}\"\ntimeout = \"1 s\"\n\
         [[rule]]\npath = \"/tcp/{{*rest}}\"\nto = \"coap+tcp://{at}/{{*rest}}\"\ntimeout = \"1 s\"\n"
    );
    let gateway = Gateway::builder(config(&lines)).observe_on_for(Duration::from_millis(200)).start().await.unwrap();
    let uri = format!("coap://{}", gateway.local_addr());
    let (goes_on, answered) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..24_usize {
        let (uri, goes_on, answered) = (uri.clone(), Arc::clone(&goes_on), Arc::clone(&answered));
        asking.spawn(async move {
            let client = client().await;
            let way = if number % 2 == 0 { "udp" } else { "tcp" };
            for round in 0.. {
                if !goes_on.load(Ordering::Relaxed) {
                    return;
                }
                match (number + round) % 6 {
                    0 => observe(&client, &format!("{uri}/{way}/state")).await,
                    // Who vanishes before the answer.
                    1 => {
                        let request = client.get(format!("{uri}/{way}/late?{round}")).send();
                        let _ = tokio::time::timeout(Duration::from_millis(50), request).await;
                    }
                    what => {
                        let path = ["body", "late", "never", "body"][what - 2];
                        let method = if what == 5 { Code::POST } else { Code::GET };
                        let request = client.request(method, format!("{uri}/{way}/{path}?{}", round % 3));
                        let answer = request.payload(vec![7; if what == 5 { 2_000 } else { 0 }]).await;
                        let code = answer.unwrap_or_else(|error| panic!("{path}: {error}")).code();
                        let expected =
                            [Code::CONTENT, Code::BAD_GATEWAY, Code::GATEWAY_TIMEOUT, Code::SERVICE_UNAVAILABLE];
                        assert!(expected.contains(&code), "{path}: {code}");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
    }
    let (mut drawn, mut early) = (7_252_u64, None);
    for second in 0..soak {
        tokio::time::sleep(Duration::from_millis(700)).await;
        changed.notify();
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Killed and away for a while; heard and not answered; read again; or nothing, of which the last one is a part in three.
        let fault = if second == 1 { 0 } else { drawn >> 33 };
        let mut silent = None;
        match fault % 6 {
            0 | 1 => drop(server.take()),
            2 => {
                drop(server.take());
                silent = tokio::net::UdpSocket::bind(port_again(at).await).await.ok();
            }
            3 => gateway.reload(&config(&lines)).await.unwrap(),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(300 + 400 * (fault >> 8 & 3))).await;
        drop(silent);
        if server.is_none() {
            server = Some(upstream(port_again(at).await, &changed).await);
        }
        if second == soak / 5 {
            early = resident();
        }
    }
    // After a minute nothing is begun for the first time.
    if let (Some(early), Some(late)) = (early, resident().filter(|_| soak >= 300)) {
        assert!(late < early + (8 << 20), "{early} bytes resident, and {late} in the end");
    }
    goes_on.store(false, Ordering::Relaxed);
    while let Some(ended) = asking.join_next().await {
        ended.unwrap();
    }
    assert!(answered.load(Ordering::Relaxed) > 0);
    loop {
        let text = figures(&gateway).await;
        let left = ["millpond_gateway_observations ", "millpond_gateway_open ", "millpond_observers "];
        if left.iter().all(|name| figure(&text, name) == 0.0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    gateway.shutdown().await;
}

async fn observe(client: &Client, uri: &str) {
    if let Ok(mut observation) = client.get(uri).observe().await {
        for _ in 0..2 {
            let _ = tokio::time::timeout(Duration::from_millis(500), observation.next()).await;
        }
    }
}
