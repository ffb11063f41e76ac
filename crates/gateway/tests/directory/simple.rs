//! Simple registration (RFC 9176 §5.1).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_gateway::directory::{Directory, DirectorySettings, routes};
use millpond_live::{Client, Code, ContentFormat, Request, Resource, Response, Server, Transport, number};
use tokio::sync::Semaphore;

use super::{ANY, Bench};

/// A device that tells its links so, and how often it was asked for them.
async fn device(links: fn() -> Response) -> (Server, Client, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let core = Resource::new().get(move |request: Request| {
        assert_eq!(request.accept(), Some(ContentFormat::LINK_FORMAT));
        counted.fetch_add(1, Ordering::Relaxed);
        async move { links() }
    });
    let device = Server::builder().bind(ANY).route("/.well-known/core", core).start().await.unwrap();
    let client = device.client(device.local_addr()).unwrap();
    (device, client, asked)
}

fn links() -> Response {
    Response::content("</sen/temp>;rt=\"t\"").with_content_format(ContentFormat::LINK_FORMAT).with_max_age(100)
}

#[tokio::test(start_paused = true)]
async fn section_5_1_links_are_fetched_while_they_are_not_fresh() {
    let bench = Bench::start().await;
    let (device, client, asked) = device(links).await;
    let register = async |query: &str| {
        let answer = client.post(bench.uri(&format!("/.well-known/rd?{query}"))).await.unwrap();
        assert_eq!((answer.code(), answer.options().all(number::LOCATION_PATH).count()), (Code::CHANGED, 0));
        asked.load(Ordering::Relaxed)
    };
    assert_eq!(register("lt=6000&ep=node1").await, 1);
    let base = format!("coap://{}", device.local_addr());
    assert_eq!(bench.look_up("res").await, format!("<{base}/sen/temp>;rt=\"t\""));
    assert_eq!(bench.directory.endpoint("node1").unwrap().base, base);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(register("lt=500&ep=node1&et=x").await, 1, "they are fresh");
    let endpoint = bench.directory.endpoint("node1").unwrap();
    assert!(endpoint.expires_in > Duration::from_secs(490) && endpoint.expires_in <= Duration::from_secs(500));
    assert!(bench.look_up("ep?et=x").await.contains("node1"));
    assert_eq!(register("ep=node2").await, 2, "another endpoint's are not");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(register("lt=500&ep=node1").await, 3);
}

#[tokio::test]
async fn section_5_1_what_is_no_answer_is_told() {
    let bench = Bench::start().await;
    type Answering = fn() -> Response;
    let cases: [(Answering, &str, &str); 5] = [
        (Response::not_found, "5.02", "/.well-known/core was answered with 4.04"),
        (|| Response::content("x").with_content_format(ContentFormat::TEXT), "5.02", "another format"),
        (|| Response::content(&b"\xff"[..]), "5.02", "no UTF-8"),
        (|| Response::content("x".repeat(70_000)), "5.02", "more than 65536 bytes"),
        (|| Response::content("a,b"), "4.00", "link 1: \"a\" does not begin with <"),
    ];
    for (links, code, told) in cases {
        let (_device, client, _) = device(links).await;
        let answer = client.post(bench.uri("/.well-known/rd?ep=a")).await.unwrap();
        assert_eq!(answer.code().to_string(), code);
        assert!(answer.text().unwrap().contains(told), "{:?}", answer.text());
    }
    let (_device, client, asked) = device(links).await;
    for (query, payload, told) in [
        ("", "", "ep is missing"),
        ("ep=a&base=coap://h", "", "base is not for simple registration"),
        ("ep=a", "</a>", "simple registration has no payload"),
        ("ep=a&lt=0", "", "lt is the lifetime"),
    ] {
        let answer = client.post(bench.uri(&format!("/.well-known/rd?{query}"))).payload(payload).await.unwrap();
        assert_eq!(answer.code(), Code::BAD_REQUEST);
        assert!(answer.text().unwrap().contains(told), "{:?}", answer.text());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0, "what is wrong fetches nothing");
    assert!(bench.directory.is_empty());
}

#[tokio::test]
async fn links_are_fetched_from_one_peer_once_at_a_time() {
    let bench = Bench::start().await;
    let (gate, begun) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let waiting = (Arc::clone(&gate), Arc::clone(&begun));
    let core = Resource::new().get(move || {
        let (gate, begun) = waiting.clone();
        async move {
            begun.add_permits(1);
            gate.acquire().await.unwrap().forget();
            links()
        }
    });
    let device = Server::builder().bind(ANY).route("/.well-known/core", core).start().await.unwrap();
    // Two requests to the directory at once, from one port.
    let client = device.client(device.local_addr()).unwrap();
    let first = tokio::spawn(client.post(bench.uri("/.well-known/rd?ep=a")).send());
    begun.acquire().await.unwrap().forget();
    let second = client.post(bench.uri("/.well-known/rd?ep=b")).non_confirmable().await.unwrap();
    assert_eq!((second.code(), second.options().uint(number::MAX_AGE)), (Code::SERVICE_UNAVAILABLE, Some(10)));
    gate.add_permits(1);
    assert_eq!(first.await.unwrap().unwrap().code(), Code::CHANGED);
    gate.add_permits(1);
    let answer = client.post(bench.uri("/.well-known/rd?ep=b")).await.unwrap();
    assert_eq!(answer.code(), Code::CHANGED, "its place is free again");
}

/// The device hears nothing: nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_not_registered() {
    let bench = Bench::start().await;
    // A client's port answers no requests, with a reset or with nothing.
    let answer = bench.client.post(bench.uri("/.well-known/rd?ep=a")).await.unwrap();
    assert_eq!(answer.code(), Code::GATEWAY_TIMEOUT);
    assert!(answer.text().unwrap().starts_with("/.well-known/core was not answered: "), "{:?}", answer.text());
    assert!(bench.directory.is_empty());
}

#[tokio::test]
async fn without_its_server_a_directory_asks_from_another_port() {
    let directory = Directory::start(DirectorySettings::default()).await;
    let server = routes(Server::builder().bind(ANY).bind_tcp(ANY), &directory).start().await.unwrap();
    let (_device, client, asked) = device(links).await;
    let uri = format!("coap://{}/.well-known/rd?ep=a", server.local_addr());
    assert_eq!(client.post(uri).await.unwrap().code(), Code::CHANGED);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let tcp = server.local_addr_of(Transport::Tcp).unwrap();
    let answer = Client::new().await.unwrap().post(format!("coap+tcp://{tcp}/.well-known/rd?ep=b")).await.unwrap();
    assert_eq!(answer.code(), Code::GATEWAY_TIMEOUT);
    assert!(answer.text().unwrap().contains("asks in no session or connection"), "{:?}", answer.text());
}
