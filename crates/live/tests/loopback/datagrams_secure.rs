//! Clients and servers over DTLS.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_live::{
    AddressRule, Bytes, Client, ClientSecurity, Code, Error, Grade, Happened, Observable, PeerIdentity, PreSharedKey,
    PreSharedKeys, Request, Resource, Response, Server, ServerBuilder, ServerSecurity, Transport,
};

use crate::{ANY, authority::Authority};

fn shared(identity: &str, key: &str) -> ClientSecurity {
    ClientSecurity::new().pre_shared_key(PreSharedKey::new(identity, key).unwrap())
}

fn serving(identity: &str, key: &str) -> ServerSecurity {
    let keys = PreSharedKeys::new([PreSharedKey::new(identity, key).unwrap()]);
    ServerSecurity::new().pre_shared_keys(keys.unwrap())
}

async fn described(request: Request) -> Response {
    let who = match request.identity() {
        Some(PeerIdentity::PreSharedKey(identity)) => String::from_utf8_lossy(identity).into_owned(),
        Some(PeerIdentity::Certificate(chain)) => format!("{} certificate", chain.len()),
        _ => "anybody".into(),
    };
    let query = request.query().collect::<Vec<_>>().join("&");
    Response::content(format!("{} {query} {who} {}", request.method(), request.transport()))
}

fn server(security: ServerSecurity) -> ServerBuilder {
    let mut resource = Resource::new();
    for method in [Code::GET, Code::PUT, Code::POST, Code::DELETE, Code::FETCH, Code::PATCH, Code::IPATCH] {
        resource = resource.method(method, described);
    }
    Server::builder().bind_dtls(ANY).security(security).route("/a", resource)
}

async fn client(security: ClientSecurity) -> Client {
    Client::builder().security(security).build().await.unwrap()
}

fn uri(server: &Server, path: &str) -> String {
    format!("coaps://{}{path}", server.local_addr())
}

#[tokio::test]
async fn every_method_goes_through_one_session() {
    let server = server(serving("sensor", "secret")).start().await.unwrap();
    assert_eq!(server.local_addrs(), [(Transport::Dtls, server.local_addr())]);
    let client = client(shared("sensor", "secret")).await;
    for method in [Code::GET, Code::PUT, Code::POST, Code::DELETE, Code::FETCH, Code::PATCH, Code::IPATCH] {
        let response = client.request(method, uri(&server, "/a?x")).await.unwrap();
        assert_eq!(response.text().unwrap(), format!("{method} x sensor coaps"));
        let exchange = response.exchange().unwrap();
        assert_eq!((exchange.peer, exchange.copies, exchange.grade), (server.local_addr(), 1, Some(Grade::Exact)));
    }
    assert_eq!(client.get(uri(&server, "/b")).await.unwrap().code(), Code::NOT_FOUND);
    client.get(uri(&server, "/a")).non_confirmable().await.unwrap();
    client.ping(uri(&server, "/").as_str()).await.unwrap();
    let stats = client.stats().await.unwrap();
    assert_eq!((stats.sessions, stats.handshakes, stats.retransmissions), (1, 0, 0));
    assert_eq!((stats.peers.len(), stats.peers[0].round_trips, stats.peers[0].address), (1, 8, server.local_addr()));
    assert!(stats.peers[0].rto.is_some());
    let stats = server.stats().await;
    // A ping is a message that is not processed.
    assert_eq!((stats.sessions, stats.requests, stats.ignored), (1, 9, 1));
}

#[tokio::test]
async fn bodies_go_in_blocks_both_ways_and_nobody_has_to_prove_an_address_again() {
    let echo = Resource::new().post(|request: Request| async move { Response::content(request.payload().clone()) });
    let builder = server(serving("a", "b")).verify_addresses(AddressRule::LargeAnswersEverywhere).route("/echo", echo);
    let server = builder.start().await.unwrap();
    let client = client(shared("a", "b")).await;
    let body: Bytes = (0..50_000).map(|place| (place / 11) as u8).collect();
    assert_eq!(client.post(uri(&server, "/echo")).payload(body.clone()).await.unwrap().payload(), &body);
    assert_eq!(server.stats().await.unverified, 0);
}

#[tokio::test]
async fn observers_are_told_and_gone_with_their_session() {
    let changed = Observable::new();
    let (asked, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = Arc::clone(&count);
    let resource = Resource::new().observable(&changed).get(move || {
        let state = counting.load(Ordering::Relaxed);
        async move { Response::content(state.to_string()) }
    });
    drop(asked);
    let server = server(serving("a", "b")).route("/state", resource).start().await.unwrap();
    let client = client(shared("a", "b")).await;
    let mut observation = client.get(uri(&server, "/state")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("0"));
    for state in 1..5 {
        count.store(state, Ordering::Relaxed);
        changed.notify();
        assert_eq!(observation.next().await.unwrap().unwrap().text().unwrap(), state.to_string());
    }
    assert_eq!(changed.observers(), 1);
    // The client ends without deregistering; its session ends, and with it the observer.
    observation.forget();
    client.shutdown().await;
    while changed.observers() > 0 || server.stats().await.sessions > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The places of peers are for those that may still say something.
#[tokio::test]
async fn sessions_that_are_over_leave_no_peer_behind() {
    let resource = Resource::new().observable(&Observable::new()).get(async || "state");
    let server = server(serving("a", "b")).route("/state", resource).start().await.unwrap();
    let mut held = Vec::new();
    for round in 0..2 {
        for _ in 0..60 {
            let client = client(shared("a", "b")).await;
            let mut observation = client.get(uri(&server, "/state")).non_confirmable().observe().await.unwrap();
            observation.next().await.unwrap().unwrap();
            observation.forget();
            client.shutdown().await;
        }
        while server.stats().await.sessions > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        held.push(server.stats().await.memory);
        // Message IDs are remembered for a while, a peer takes some four hundred bytes.
        assert!(held[round] < held[0] + 10_000, "{held:?}");
    }
}

#[tokio::test]
async fn a_slow_answer_comes_as_a_separate_response() {
    let slow = Resource::new().get(|| async {
        tokio::time::sleep(Duration::from_millis(80)).await;
        Response::content("at last")
    });
    let server = server(serving("a", "b")).ack_delay(Duration::from_millis(20)).route("/slow", slow);
    let server = server.start().await.unwrap();
    let client = client(shared("a", "b")).await;
    let response = client.get(uri(&server, "/slow")).await.unwrap();
    assert_eq!((response.text(), response.exchange().unwrap().copies), (Ok("at last"), 1));
}

#[tokio::test]
async fn certificates_prove_server_and_client() {
    let authority = Authority::new();
    let security = authority.server(&["127.0.0.1", "localhost"]);
    let open = server(security.clone()).start().await.unwrap();
    let closed = server(security.demand_client_certificates(authority.anchors())).start().await.unwrap();
    let anybody = client(authority.client()).await;
    assert_eq!(anybody.get(uri(&open, "/a")).await.unwrap().text(), Ok("0.01  anybody coaps"));
    let by_name = format!("coaps://localhost:{}/a", open.local_addr().port());
    assert!(anybody.get(by_name).await.unwrap().is_success());
    let error = anybody.get(uri(&closed, "/a")).await.unwrap_err();
    assert!(matches!(error, Error::Insecure { .. }), "{error}");
    assert!(error.to_string().contains("if it demands a certificate"), "{error}");
    let known = client(authority.client().certificate(authority.issue(&["sensor.example"], |_| {}).keyed())).await;
    assert_eq!(known.get(uri(&closed, "/a")).await.unwrap().text(), Ok("0.01  1 certificate coaps"));
}

#[tokio::test]
async fn what_is_wrong_with_a_server_is_one_line() {
    let (ours, others) = (Authority::new(), Authority::new());
    let expired = ours.issue(&["127.0.0.1"], |params| params.not_after = rcgen::date_time_ymd(2001, 1, 1));
    for (security, part) in [
        (others.server(&["127.0.0.1"]), "issuer that is not trusted"),
        (ours.server(&["there.example"]), "is not for 127.0.0.1: it has"),
        (ServerSecurity::new().certificate(expired.keyed()), "expired"),
        (serving("a", "b"), "shares no cipher suite"),
    ] {
        let server = server(security).start().await.unwrap();
        let client = client(ours.client()).await;
        let error = client.get(uri(&server, "/a")).await.unwrap_err().to_string();
        assert!(error.starts_with("no secure session with 127.0.0.1:") && error.contains(part), "{error}");
        assert!(!error.contains('\n'));
        assert!(client.get(uri(&server, "/a")).await.is_err(), "and once more");
    }
    let any = client(ClientSecurity::new().dangerously_accept_any_certificate()).await;
    let server = server(others.server(&["there.example"])).start().await.unwrap();
    assert!(any.get(uri(&server, "/a")).await.unwrap().is_success());
}

#[tokio::test]
async fn a_wrong_key_is_told_to_both_sides() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let builder = server(serving("sensor", "secret"));
    let builder = builder.trace(move |event| telling.lock().unwrap().push(event.what.clone()));
    let server = builder.start().await.unwrap();
    let client = client(shared("sensor", "wrong")).await;
    let error = client.get(uri(&server, "/a")).await.unwrap_err();
    assert!(
        error.to_string().ends_with("does not know this identity, or has another key for it; check both"),
        "{error}"
    );
    let failed =
        |event: &Happened| matches!(event, Happened::Insecure { reason } if reason.contains("has not the key"));
    assert!(told.lock().unwrap().iter().any(failed));
    assert_eq!(server.stats().await.insecure, 1);
}

#[tokio::test]
async fn where_nobody_listens_or_nobody_speaks_dtls_is_told() {
    let free = std::net::UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    let client = client(shared("a", "b")).await;
    let error = client.get(format!("coaps://{free}/")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { peer, .. } if peer == free), "{error}");
    let error = client.ping(format!("coaps://{free}/").as_str()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let plain = Server::builder().bind(ANY).start().await.unwrap();
    let request = client.get(uri(&plain, "/")).deadline(Duration::from_millis(300)).await;
    assert!(matches!(request, Err(Error::Deadline { .. })));
    // And the reverse: nothing in the clear is answered.
    let secure = server(serving("a", "b")).start().await.unwrap();
    let request = client.get(format!("coap://{}/a", secure.local_addr())).deadline(Duration::from_millis(300)).await;
    assert!(matches!(request, Err(Error::Deadline { .. })));
    assert!(secure.stats().await.ignored > 0);
}

#[tokio::test]
async fn a_server_that_ends_says_so_and_another_one_is_asked_anew() {
    let first = server(serving("a", "b")).start().await.unwrap();
    let address = first.local_addr();
    let client = client(shared("a", "b")).await;
    let forever = Resource::new().get(std::future::pending::<Response>);
    assert!(client.get(uri(&first, "/a")).await.unwrap().is_success());
    first.shutdown().await;
    while client.stats().await.unwrap().sessions > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let again = Server::builder().bind_dtls(address).security(serving("a", "b"));
    let again = again.route("/a", Resource::new().get(described)).route("/never", forever).start().await.unwrap();
    assert!(client.get(uri(&again, "/a")).await.unwrap().is_success());
    // What is under way when the server ends is answered before the session is closed.
    let asked = tokio::spawn(client.get(uri(&again, "/never")).send());
    while again.stats().await.requests < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (ended, ()) = tokio::join!(asked, again.shutdown());
    assert_eq!(ended.unwrap().unwrap().code(), Code::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn workers_share_a_secure_port() {
    let server = server(serving("a", "b")).workers(2).start().await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..6 {
        let client = client(shared("a", "b")).await;
        for _ in 0..3 {
            assert!(client.get(uri(&server, "/a")).await.unwrap().is_success());
        }
        clients.push(client);
    }
    assert_eq!(server.stats().await.sessions, 6);
}

#[tokio::test]
async fn many_requests_at_once_share_the_handshake_and_keep_to_nstart() {
    let server = server(serving("a", "b")).start().await.unwrap();
    let client = client(shared("a", "b")).await;
    let requests: Vec<_> = (0..50).map(|_| tokio::spawn(client.get(uri(&server, "/a")).send())).collect();
    for request in requests {
        assert!(request.await.unwrap().unwrap().is_success());
    }
    assert_eq!(client.stats().await.unwrap().retransmissions, 0);
    assert_eq!(server.stats().await.sessions, 1);
}

#[tokio::test]
async fn noise_harms_nobody() {
    let server = server(serving("a", "b")).start().await.unwrap();
    let client = client(shared("a", "b")).await;
    assert!(client.get(uri(&server, "/a")).await.unwrap().is_success());
    let socket = tokio::net::UdpSocket::bind(ANY).await.unwrap();
    let mut state = 1_u64;
    for round in 0..2_000_usize {
        let mut noise = vec![0; round % 90];
        for byte in &mut noise {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
        if let [first, second, ..] = &mut noise[..] {
            (*first, *second) = (20 + (round % 5) as u8, 0xfe);
        }
        socket.send_to(&noise, server.local_addr()).await.unwrap();
    }
    assert!(client.get(uri(&server, "/a")).await.unwrap().is_success());
    assert_eq!(server.stats().await.sessions, 1);
}

#[tokio::test]
async fn a_server_without_keys_does_not_start() {
    let error = Server::builder().bind_dtls(ANY).start().await.unwrap_err();
    assert!(error.to_string().contains("coaps needs a certificate or pre-shared keys"), "{error}");
    let address: SocketAddr = ANY;
    assert!(Client::builder().bind(address).build().await.is_ok());
}
