//! How servers end, and what of an application's does not end them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_control::{Controller, Cx, Exchange, PeerController, Preset, Sample, Span, View, Wait};
use millpond_live::{
    Client, ClientSecurity, Code, Error, PreSharedKey, PreSharedKeys, Resource, Response, Server, ServerSecurity,
};

use crate::ANY;

/// Counts handlers that are not over.
#[derive(Clone, Default)]
struct Running(Arc<AtomicUsize>);

struct One(Running);

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Running {
    /// A handler that never answers.
    fn resource(&self) -> Resource {
        let running = self.clone();
        Resource::new().get(move || {
            running.0.fetch_add(1, Ordering::Relaxed);
            let one = One(running.clone());
            async move {
                let _one = one;
                std::future::pending::<Response>().await
            }
        })
    }

    async fn are(&self, count: usize) {
        while self.0.load(Ordering::Relaxed) != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_shut_down_drops_slow_handlers_and_answers_their_requests() {
    let running = Running::default();
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/", running.resource()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let ask = |(transport, address)| tokio::spawn(client.get(format!("{transport}://{address}/")).send());
    let asked: Vec<_> = server.local_addrs().iter().copied().map(ask).collect();
    running.are(2).await;
    let since = tokio::time::Instant::now();
    tokio::time::pause();
    server.shutdown().await;
    assert!(since.elapsed() <= Duration::from_millis(4_100), "{:?}", since.elapsed());
    for request in asked {
        assert_eq!(request.await.unwrap().unwrap().code(), Code::SERVICE_UNAVAILABLE);
    }
    assert_eq!(running.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn handlers_end_with_their_server_and_with_their_connection() {
    let running = Running::default();
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/", running.resource()).start().await.unwrap();
    let (_, tcp) = server.local_addrs()[1];
    let (by_udp, by_tcp) = (Client::new().await.unwrap(), Client::new().await.unwrap());
    let first = tokio::spawn(by_udp.get(format!("coap://{}/", server.local_addr())).send());
    let second = tokio::spawn(by_tcp.get(format!("coap+tcp://{tcp}/")).send());
    running.are(2).await;
    second.abort();
    by_tcp.shutdown().await;
    running.are(1).await;
    drop(server);
    running.are(0).await;
    first.abort();
}

/// Breaks once, when it is to wait for an acknowledgement.
#[derive(Clone, Debug)]
struct Breaks(Arc<AtomicBool>, millpond_control::AnyController);

impl Controller for Breaks {
    fn on_start(&mut self, exchange: &mut Exchange, len: u16, cx: Cx) -> Wait {
        assert!(self.0.swap(true, Ordering::Relaxed), "it breaks");
        self.1.on_start(exchange, len, cx)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, cx: Cx) -> Wait {
        self.1.on_timeout(exchange, cx)
    }

    fn on_reply(&mut self, exchange: &Exchange, sample: Sample, cx: Cx) {
        self.1.on_reply(exchange, sample, cx);
    }

    fn view(&self) -> View {
        self.1.view()
    }

    fn longest_wait(&self, copy: u8, previous: Span) -> Span {
        self.1.longest_wait(copy, previous)
    }
}

#[tokio::test]
async fn a_worker_that_panics_is_followed_by_another_one() {
    let slow = Resource::new().get(|| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Response::content("at last")
    });
    let breaks = Breaks(Arc::default(), Preset::RFC7252.build());
    let mut server = Server::builder()
        .bind(ANY)
        .controller(PeerController::Own(Box::new(breaks)))
        .ack_delay(Duration::from_millis(1))
        .route("/slow", slow)
        .start()
        .await
        .unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/slow", server.local_addr());
    // Its separate response is what breaks the worker, which forgets who asked.
    let lost = client.get(&uri).deadline(Duration::from_secs(1)).await;
    assert!(matches!(lost, Err(Error::Deadline { .. })), "{lost:?}");
    assert_eq!(client.get(&uri).await.unwrap().text(), Ok("at last"));
    assert_eq!(server.stats().await.panics, 1);
    tokio::select! {
        biased;
        ended = server.wait() => panic!("{ended:?}"),
        () = std::future::ready(()) => {}
    }
}

#[tokio::test]
async fn a_trace_that_panics_harms_nobody() {
    let resource = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(ANY).trace(|_| panic!("it breaks")).route("/", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    assert_eq!(client.get(&uri).await.unwrap().text(), Ok("x"));
    assert_eq!(client.get(&uri).await.unwrap().exchange().unwrap().copies, 1);
    assert!(server.stats().await.panics >= 2);
}

#[tokio::test]
async fn a_search_for_keys_that_panics_knows_no_key() {
    let keys = PreSharedKeys::from_fn(|identity| {
        assert_eq!(identity, b"known", "it breaks");
        Some(b"secret".to_vec())
    });
    let resource = Resource::new().get(|| async { Response::content("x") });
    let security = ServerSecurity::new().pre_shared_keys(keys);
    let server = Server::builder().bind_dtls(ANY).security(security).route("/", resource).start().await.unwrap();
    let uri = format!("coaps://{}/", server.local_addr());
    let ask = async |identity: &str| {
        let key = PreSharedKey::new(identity, "secret").unwrap();
        let client = Client::builder().security(ClientSecurity::new().pre_shared_key(key)).build().await.unwrap();
        client.get(&uri).await
    };
    assert_eq!(ask("known").await.unwrap().text(), Ok("x"));
    assert!(matches!(ask("unknown").await, Err(Error::Insecure { .. })));
    assert_eq!(ask("known").await.unwrap().text(), Ok("x"));
}
