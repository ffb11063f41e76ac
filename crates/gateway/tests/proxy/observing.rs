use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_gateway::{Config, Gateway};
use millpond_live::{Code, Observed, Resource, Response, Server};

use super::{Upstream, all_to, any, client, config, gateway};

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn one_observation_serves_all_and_ends_after_the_last() {
    let upstream = Upstream::start(|server| server).await;
    let gateway = Gateway::builder(config(&all_to(upstream.at()))).observe_on_for(Duration::from_millis(100));
    let gateway = gateway.start().await.unwrap();
    let uri = format!("coap://{}/count", gateway.local_addr());
    let mut all = Vec::new();
    for _ in 0..20 {
        let mut observation = client().await.get(&uri).observe().await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("1"));
        all.push(observation);
    }
    assert_eq!((upstream.changed.observers(), upstream.asked()), (1, 1));
    let again = tokio::time::timeout(Duration::from_millis(200), all[0].next()).await;
    assert!(again.is_err(), "who has the newest state is told nothing: {again:?}");
    upstream.changed.notify();
    for observation in &mut all {
        while observation.next().await.unwrap().unwrap().text() != Ok("2") {}
    }
    assert_eq!(upstream.changed.observers(), 1);
    // A plain request is answered by what was told.
    assert_eq!(client().await.get(&uri).await.unwrap().text(), Ok("2"));
    assert_eq!(upstream.asked(), 2);
    all.truncate(1);
    upstream.changed.notify();
    while all[0].next().await.unwrap().unwrap().text() != Ok("3") {}
    assert_eq!(upstream.changed.observers(), 1);
    drop(all);
    until(|| upstream.changed.observers() == 0).await;
}

#[tokio::test]
async fn an_observation_survives_a_restart_of_who_is_observed() {
    let state = Arc::new(AtomicUsize::new(1));
    let serve = |at| {
        let state = Arc::clone(&state);
        let changed = millpond_live::Observable::new();
        let resource = Resource::new().observable(&changed).get(move || {
            let state = state.load(Ordering::Relaxed);
            async move { Response::content(state.to_string()).with_max_age(2) }
        });
        async move { Server::builder().bind(at).route("/state", resource).start().await.unwrap() }
    };
    let server = serve(any()).await;
    let at = server.local_addr();
    let (_gateway, uri) = gateway(&all_to(at)).await;
    let mut observation = client().await.get(format!("{uri}/state")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("1"));
    server.shutdown().await;
    state.store(2, Ordering::Relaxed);
    let _server = serve(at).await;
    loop {
        match observation.event().await.unwrap().unwrap() {
            Observed::State(state) if state.text() == Ok("2") => break,
            _ => {}
        }
    }
}

#[tokio::test]
async fn who_observes_through_a_gateway_goes_on_with_the_next_one() {
    let upstream = Upstream::start(|server| server).await;
    let folder = std::env::temp_dir().join(format!("millpond-gateway-state-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let start = async |at: std::net::SocketAddr| {
        let listen = format!("[listen]\ncoap = [\"{at}\"]\nstate = \"state\"\n{}", all_to(upstream.at()));
        let config = Config::from_toml(&listen, "gateway.toml", &folder).unwrap();
        Gateway::builder(config).start().await.unwrap()
    };
    let mut gateway = start(any()).await;
    let at = gateway.local_addr();
    let mut observation = client().await.get(format!("coap://{at}/count")).observe().await.unwrap();
    let mut until = async |text: &str| loop {
        match observation.event().await.unwrap().unwrap() {
            Observed::State(state) if state.text() == Ok(text) => break,
            Observed::State(_) => {}
            other => panic!("{other:?}"),
        }
    };
    until("1").await;
    for asked in ["2", "3"] {
        gateway.shutdown().await;
        gateway = start(at).await;
        // It observes anew for whom it knows.
        until(asked).await;
    }
    upstream.changed.notify();
    until("4").await;
}

#[tokio::test]
async fn who_cannot_be_observed_is_asked_again_and_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let resource = Resource::new().get(move || {
        let count = counting.fetch_add(1, Ordering::Relaxed);
        async move { Response::content(count.to_string()).with_max_age(1) }
    });
    let upstream = Upstream::start(|server| server.route("/plain", resource)).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let mut observation = client().await.get(format!("{at}/plain")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("0"));
    while observation.next().await.unwrap().unwrap().text() != Ok("1") {}
}

#[tokio::test]
async fn what_is_not_there_cannot_be_observed() {
    let upstream = Upstream::start(|server| server).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let Err(millpond_live::Error::NotObserved { answer }) = client().await.get(format!("{at}/nowhere")).observe().await
    else {
        panic!("it was observed");
    };
    assert_eq!(answer.code(), Code::NOT_FOUND);
    let rule = "[[rule]]\npath = \"/silent\"\nto = \"coap://127.0.0.1:1/x\"\n";
    let (_gateway, at) = gateway(rule).await;
    let refused = client().await.get(format!("{at}/silent")).observe().await.unwrap_err();
    assert!(refused.to_string().contains("5.02"), "{refused}");
}
