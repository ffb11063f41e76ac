//! Observations that outlive what they stand on: a server's end, a resource's, a session's, a relay's.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use millpond_live::{
    Client, ClientSecurity, Code, Error, Interruption, Observable, Observation, Observed, PreSharedKey, PreSharedKeys,
    Resource, Response, Server, ServerBuilder, ServerSecurity,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::Instant,
};

use crate::ANY;

/// A server with an observable number at this address.
async fn serving(at: SocketAddr, number: u64) -> (Server, Observable) {
    let (resource, changed) = numbered(number);
    (Server::builder().bind(at).route("/n", resource).start().await.unwrap(), changed)
}

fn numbered(number: u64) -> (Resource, Observable) {
    let (changed, number) = (Observable::confirmable(), Arc::new(AtomicU64::new(number)));
    let resource = Resource::new().observable(&changed).get(move || {
        let text = number.load(Ordering::Relaxed).to_string();
        async move { Response::content(text).with_max_age(10) }
    });
    (resource, changed)
}

/// What is told until a state with this text comes, without that.
async fn until(observation: &mut Observation, text: &str) -> Vec<Interruption> {
    let mut gaps = Vec::new();
    loop {
        match observation.event().await.unwrap().unwrap() {
            Observed::State(state) if state.text() == Ok(text) => return gaps,
            Observed::Interrupted(why) => gaps.push(why),
            _ => {}
        }
    }
}

async fn observing(uri: String) -> (Client, Observation) {
    let client = Client::new().await.unwrap();
    let mut observation = client.get(uri).observe().await.unwrap();
    assert!(until(&mut observation, "1").await.is_empty());
    (client, observation)
}

#[tokio::test]
async fn after_5_03_an_observation_registers_again_once_max_age_is_over() {
    let (first, _changed) = serving(ANY, 1).await;
    let at = first.local_addr();
    let (_client, mut observation) = observing(format!("coap://{at}/n")).await;
    tokio::time::pause();
    first.shutdown().await;
    let (second, _changed) = serving(at, 2).await;
    let since = Instant::now();
    let gaps = until(&mut observation, "2").await;
    let [Interruption::Ended { answer, again_in }] = &gaps[..] else { panic!("{gaps:?}") };
    assert_eq!(
        (answer.code(), answer.options().uint(millpond_live::number::MAX_AGE)),
        (Code::SERVICE_UNAVAILABLE, Some(5))
    );
    assert!((5..8).contains(&again_in.as_secs()) && since.elapsed() < Duration::from_secs(9), "{again_in:?}");
    assert_eq!(second.stats().await.observers, 1);
}

#[tokio::test]
async fn a_resource_that_is_gone_and_comes_back_is_observed_again() {
    let (is_there, changed) = (Arc::new(AtomicU64::new(1)), Observable::confirmable());
    let there = Arc::clone(&is_there);
    let resource = Resource::new().observable(&changed).get(move || {
        let number = there.load(Ordering::Relaxed);
        async move { if number > 0 { Response::content(number.to_string()) } else { Response::not_found() } }
    });
    let server = Server::builder().bind(ANY).route("/n", resource).start().await.unwrap();
    let (_client, mut observation) = observing(format!("coap://{}/n", server.local_addr())).await;
    while changed.observers() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    is_there.store(0, Ordering::Relaxed);
    changed.notify();
    tokio::time::pause();
    for _ in 0..3 {
        let told = observation.event().await.unwrap().unwrap();
        let Observed::Interrupted(Interruption::Ended { answer, .. }) = told else { panic!("{told:?}") };
        assert_eq!(answer.code(), Code::NOT_FOUND);
    }
    is_there.store(7, Ordering::Relaxed);
    until(&mut observation, "7").await;
    assert_eq!(changed.observers(), 1);
}

#[tokio::test]
async fn an_observation_is_given_up_after_the_time_that_was_set_with_what_interrupted_it() {
    let changed = Observable::confirmable();
    let states = Arc::new(AtomicU64::new(1));
    let left = Arc::clone(&states);
    let resource = Resource::new().observable(&changed).get(move || {
        let is_there = left.load(Ordering::Relaxed) > 0;
        async move { if is_there { Response::content("1") } else { Response::not_found() } }
    });
    let server = Server::builder().bind(ANY).route("/n", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let asking = client.get(format!("coap://{}/n", server.local_addr())).give_up_after(Duration::from_secs(100));
    let mut observation = asking.observe().await.unwrap();
    until(&mut observation, "1").await;
    while changed.observers() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::pause();
    let since = Instant::now();
    states.store(0, Ordering::Relaxed);
    changed.notify();
    let mut last = None;
    while let Some(next) = observation.next().await {
        last = Some(next.unwrap());
    }
    assert_eq!(last.unwrap().code(), Code::NOT_FOUND);
    assert!(since.elapsed() <= Duration::from_secs(100), "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_connection_that_is_lost_is_followed_by_another_one() {
    let serve = |at, number| async move {
        let (resource, changed) = numbered(number);
        (Server::builder().bind_tcp(at).route("/n", resource).start().await.unwrap(), changed)
    };
    let (first, _changed) = serve(ANY, 1).await;
    let at = first.local_addr();
    let (_client, mut observation) = observing(format!("coap+tcp://{at}/n")).await;
    // It crashes: nobody is told.
    drop(first);
    let told = observation.event().await.unwrap().unwrap();
    assert!(
        matches!(told, Observed::Interrupted(Interruption::Lost { why: Error::ConnectionLost { .. }, .. })),
        "{told:?}"
    );
    let (second, _changed) = serve(at, 2).await;
    until(&mut observation, "2").await;
    assert_eq!(second.stats().await.observers, 1);
}

/// Carries connections to a server; once told, those that stand carry nothing more, and nobody hears of that.
async fn carrier(to: SocketAddr) -> (SocketAddr, watch::Sender<()>) {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let (at, (going_dead, dead)) = (listener.local_addr().unwrap(), watch::channel(()));
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut dead = dead.clone();
            dead.mark_unchanged();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await.unwrap();
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    _ = dead.changed() => std::future::pending().await,
                }
            });
        }
    });
    (at, going_dead)
}

#[tokio::test]
async fn a_connection_that_is_dead_is_noticed_once_the_state_is_out_of_date() {
    let (resource, _changed) = numbered(1);
    let server = Server::builder().bind_tcp(ANY).route("/n", resource).start().await.unwrap();
    let (at, going_dead) = carrier(server.local_addr()).await;
    let (_client, mut observation) = observing(format!("coap+tcp://{at}/n")).await;
    tokio::time::pause();
    let since = Instant::now();
    going_dead.send(()).unwrap();
    let gaps = until(&mut observation, "1").await;
    let [Interruption::Lost { why: Error::ConnectionLost { reason, .. }, .. }] = &gaps[..] else { panic!("{gaps:?}") };
    assert!(reason.contains("not even to a ping"), "{reason}");
    // Max-Age is 10 s: a ping after 30 s, of which nothing comes in 10 s, and a pause of 1 s or a little more.
    assert!(since.elapsed() < Duration::from_secs(42), "{:?}", since.elapsed());
}

fn secure() -> (ClientSecurity, ServerBuilder) {
    let key = || PreSharedKey::new("a", "b").unwrap();
    let server = ServerSecurity::new().pre_shared_keys(PreSharedKeys::new([key()]).unwrap());
    (ClientSecurity::new().pre_shared_key(key()), Server::builder().security(server))
}

#[tokio::test]
async fn a_server_that_lost_its_sessions_is_observed_in_another_one_as_soon_as_the_state_is_out_of_date() {
    let (security, builder) = secure();
    let (resource, _changed) = numbered(1);
    let first = builder.bind_dtls(ANY).route("/n", resource).start().await.unwrap();
    let at = first.local_addr();
    let client = Client::builder().security(security).build().await.unwrap();
    let mut observation = client.get(format!("coaps://{at}/n")).observe().await.unwrap();
    until(&mut observation, "1").await;
    // It crashes, and is there again at once: no session is closed.
    drop(first);
    while tokio::net::UdpSocket::bind(at).await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (resource, _changed) = numbered(2);
    let second = secure().1.bind_dtls(at).route("/n", resource).start().await.unwrap();
    let since = Instant::now();
    tokio::time::pause();
    let gaps = until(&mut observation, "2").await;
    // Max-Age is 10 s, 5 to 15 s follow, and then it is known what has happened.
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    let [Interruption::Lost { why: Error::ConnectionLost { reason, .. }, .. }] = &gaps[..] else { panic!("{gaps:?}") };
    assert!(reason.contains("the server knew its session no more"), "{reason}");
    assert_eq!(second.stats().await.observers, 1);
}

#[tokio::test]
async fn an_observer_whose_server_is_gone_hears_that_nothing_comes() {
    let (server, _changed) = serving(ANY, 1).await;
    let at = server.local_addr();
    // Something is bound there, so that nobody says that nothing is.
    let (_client, mut observation) = observing(format!("coap://{at}/n")).await;
    drop(server);
    let silent = loop {
        match tokio::net::UdpSocket::bind(at).await {
            Ok(socket) => break socket,
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    tokio::time::pause();
    let since = Instant::now();
    let told = observation.event().await.unwrap().unwrap();
    assert!(matches!(told, Observed::Interrupted(Interruption::Silent { .. })), "{told:?}");
    assert!(since.elapsed() < Duration::from_secs(32), "{:?}", since.elapsed());
    let told = observation.event().await.unwrap().unwrap();
    assert!(matches!(told, Observed::Interrupted(Interruption::Lost { why: Error::GaveUp { .. }, .. })), "{told:?}");
    drop(silent);
    let (_server, _changed) = loop {
        if tokio::net::UdpSocket::bind(at).await.is_ok() {
            break serving(at, 2).await;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    until(&mut observation, "2").await;
}
