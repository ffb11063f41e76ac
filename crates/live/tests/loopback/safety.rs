use std::{sync::Arc, time::Duration};

use millpond_live::{AddressRule, Client, Code, Resource, Response, Server, number};
use tokio::sync::Semaphore;

use crate::ANY;

/// A server that wants addresses proved on this machine too, with this under `/large`.
pub(crate) async fn proving(resource: Resource) -> Server {
    Server::builder()
        .bind(ANY)
        .verify_addresses(AddressRule::LargeAnswersEverywhere)
        .route("/large", resource)
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_large_answer_begins_small_until_the_address_is_validated_which_clients_do_by_themselves() {
    let resource = Resource::new().get(|| async { Response::content(vec![b'.'; 3_000]) });
    let server = proving(resource).await;
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/large", server.local_addr());
    assert_eq!(client.get(&uri).await.unwrap().payload().len(), 3_000);
    assert_eq!(server.stats().await.unverified, 1);
    // Another client, which proves nothing, gets little.
    let socket = tokio::net::UdpSocket::bind(ANY).await.unwrap();
    socket.send_to(b"\x41\x01\x00\x01t\xb5large", server.local_addr()).await.unwrap();
    let mut answer = [0; 2_000];
    let (length, _) = socket.recv_from(&mut answer).await.unwrap();
    assert!(answer[1] == Code::CONTENT.to_byte() && length <= 136, "{length} bytes");
    assert_eq!(server.stats().await.unverified, 2);
}

#[tokio::test]
async fn who_asks_too_much_at_a_time_is_told_when_to_come_again() {
    let gate = Arc::new(Semaphore::new(0));
    let waiting = Arc::clone(&gate);
    let resource = Resource::new().get(move || {
        let waiting = Arc::clone(&waiting);
        async move {
            waiting.acquire().await.unwrap().forget();
            Response::content("at last")
        }
    });
    let server = Server::builder()
        .bind(ANY)
        .ack_delay(Duration::from_millis(5))
        .verify_addresses(AddressRule::Never)
        .most_running(3)
        .most_running_per_peer(2)
        .route("/", resource)
        .start()
        .await
        .unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    let (one, other) = (Client::new().await.unwrap(), Client::new().await.unwrap());
    let mut tasks = Vec::new();
    for client in [&one, &one] {
        tasks.push(tokio::spawn(client.get(&uri).send()));
    }
    while server.stats().await.requests < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let refused = one.get(&uri).await.unwrap();
    assert_eq!((refused.code(), refused.options().uint(number::MAX_AGE)), (Code::TOO_MANY_REQUESTS, Some(5)));
    tasks.push(tokio::spawn(other.get(&uri).send()));
    while server.stats().await.requests < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let refused = other.get(&uri).await.unwrap();
    assert_eq!((refused.code(), refused.options().uint(number::MAX_AGE)), (Code::SERVICE_UNAVAILABLE, Some(5)));
    gate.add_permits(3);
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().text(), Ok("at last"));
    }
    assert_eq!(server.stats().await.overloaded, 2);
}

#[tokio::test]
async fn figures_are_there_for_prometheus() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = Server::builder().bind(ANY).metrics(ANY).start().await.unwrap();
    let client = Client::new().await.unwrap();
    client.get(format!("coap://{}/.well-known/core", server.local_addr())).await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(server.metrics_addr().unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("\nmillpond_requests_total 1\n"), "{text}");
}

#[tokio::test]
async fn what_is_said_of_peers_comes_from_their_controllers() {
    let server = Server::builder().bind(ANY).start().await.unwrap();
    let trace = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&trace);
    let client = Client::builder()
        .controller(millpond_live::Preset::COCOA_03)
        .trace(move |event| seen.lock().unwrap().push(event.to_string()))
        .build()
        .await
        .unwrap();
    for _ in 0..3 {
        client.get(format!("coap://{}/", server.local_addr())).await.unwrap();
    }
    let stats = client.stats().await.unwrap();
    let peer = stats.peers.first().unwrap();
    assert_eq!((peer.address, peer.transmissions, peer.round_trips), (server.local_addr(), 3, 3));
    assert!(peer.smoothed.unwrap() < Duration::from_secs(1) && peer.rto.is_some());
    assert_eq!((peer.retransmissions, peer.unnecessary_retransmissions), (0, 0));
    let trace = trace.lock().unwrap();
    assert!(trace[0].contains("-> CON 0.01") && trace[0].contains("timer"), "{trace:#?}");
    assert!(trace.iter().filter(|line| line.contains("round trip") && line.contains("exact")).count() == 3);
}

#[tokio::test]
async fn a_controller_can_be_chosen_for_each_peer() {
    let servers =
        [Server::builder().bind(ANY).start().await.unwrap(), Server::builder().bind(ANY).start().await.unwrap()];
    let peers = servers.each_ref().map(Server::local_addr);
    let client = Client::builder()
        .controller(millpond_live::Preset::FASOR)
        .controller_for(peers[1], millpond_live::Preset::RFC7252)
        .build()
        .await
        .unwrap();
    for peer in peers {
        client.get(format!("coap://{peer}/")).await.unwrap();
    }
    let stats = client.stats().await.unwrap();
    let smoothed = |address| stats.peers.iter().find(|peer| peer.address == address).unwrap().smoothed;
    assert!(smoothed(peers[0]).is_some() && smoothed(peers[1]).is_none(), "that of the RFC learns nothing");
    client.set_controller(peers[0], millpond_live::Preset::RFC7252).await.unwrap();
    client.get(format!("coap://{}/", peers[0])).await.unwrap();
    let stats = client.stats().await.unwrap();
    assert!(stats.peers.iter().all(|peer| peer.smoothed.is_none()));
}

/// Handlers that never end would keep all places, and nobody would ever be answered again.
#[tokio::test]
async fn a_handler_that_never_ends_gives_its_place_back() {
    let stuck = Resource::new().get(std::future::pending::<Response>);
    let state = Arc::new(Semaphore::new(1));
    let changed = millpond_live::Observable::confirmable();
    let taken = Arc::clone(&state);
    let once = Resource::new().observable(&changed).get(move || {
        let taken = Arc::clone(&taken);
        async move {
            taken.acquire().await.unwrap().forget();
            Response::content("once")
        }
    });
    let server = Server::builder()
        .bind(ANY)
        .bind_tcp(ANY)
        .most_running(2)
        .handling_time(Duration::from_secs(30))
        .route("/stuck", stuck)
        .route("/once", once)
        .start()
        .await
        .unwrap();
    let client = Client::builder().nstart(2).build().await.unwrap();
    let uri = |path: &str| format!("coap://{}/{path}", server.local_addr());
    let mut observation = client.get(uri("once")).give_up_after(std::time::Duration::ZERO).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("once"));
    tokio::time::pause();
    for uri in [uri("stuck"), format!("coap+tcp://{}/stuck", server.local_addrs()[1].1)] {
        for _ in 0..5 {
            assert_eq!(client.get(&uri).await.unwrap().code(), Code::SERVICE_UNAVAILABLE);
        }
    }
    assert_eq!(server.stats().await.overloaded, 0, "there was always a place");
    // An observer whose state never comes is told that there is none.
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().code(), Code::SERVICE_UNAVAILABLE);
    assert!(observation.next().await.is_none());
}
