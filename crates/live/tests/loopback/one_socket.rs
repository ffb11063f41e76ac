//! A server that asks its peers from the socket at which they ask it.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use millpond_live::{Client, Code, Error, Observable, Request, Resource, Response, Server, ServerBuilder};

use crate::ANY;

/// Reports who asks, and gives a long body.
fn builder(changed: &Observable) -> ServerBuilder {
    let who = Resource::new().get(|request: Request| async move { request.peer().to_string() });
    let echo = Resource::new().post(|request: Request| async move { Response::content(request.payload().clone()) });
    let state = Resource::new().get(|| async { "state" }).observable(changed);
    Server::builder().route("/who", who).route("/echo", echo).route("/state", state)
}

fn at(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

#[tokio::test]
async fn what_a_server_asks_leaves_from_the_port_at_which_it_is_asked() {
    let changed = Observable::new();
    let (one, other) = (builder(&changed).bind(ANY), builder(&changed).bind((Ipv4Addr::UNSPECIFIED, 0)));
    let (one, other) = (one.start().await.unwrap(), other.start().await.unwrap());
    let ends = [(&one, &other), (&other, &one), (&one, &other)];
    for (asker, asked) in ends {
        let client = asker.client(asker.local_addr()).unwrap();
        let to = at(asked.local_addr().port());
        let answer = client.get(format!("coap://{to}/who")).await.unwrap();
        assert_eq!(answer.text(), Ok(&*at(asker.local_addr().port()).to_string()));
        // Bodies in blocks, both ways, with progress.
        let body: Vec<u8> = (0..20_000_u32).map(|place| place as u8).collect();
        let told = Arc::new(Mutex::new(0));
        let telling = Arc::clone(&told);
        let request = client.post(format!("coap://{to}/echo")).payload(body.clone());
        let answer = request.progress(move |progress| *telling.lock().unwrap() = progress.sent).await.unwrap();
        assert!(answer.payload() == &body && *told.lock().unwrap() > 10_000);
        client.ping(to).await.unwrap();
        // A hundred at once: more than a stack is handed.
        let all: Vec<_> = (0..100).map(|_| tokio::spawn(client.get(format!("coap://{to}/who")).send())).collect();
        for answer in all {
            assert_eq!(answer.await.unwrap().unwrap().code(), Code::CONTENT);
        }
    }
    // An ordinary client is served by the same sockets meanwhile.
    let client = Client::new().await.unwrap();
    assert_eq!(client.get(format!("coap://{}/state", one.local_addr())).await.unwrap().text(), Ok("state"));
}

#[tokio::test]
async fn a_server_observes_another_one_and_ends_that() {
    let changed = Observable::new();
    let (one, other) = (builder(&changed).bind(ANY), builder(&changed).bind(ANY));
    let (one, other) = (one.start().await.unwrap(), other.start().await.unwrap());
    let client = one.client(one.local_addr()).unwrap();
    let mut observation = client.get(format!("coap://{}/state", other.local_addr())).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
    assert_eq!(other.stats().await.observers, 1);
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
    drop(observation);
    while other.stats().await.observers > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_cannot_be_is_told() {
    let changed = Observable::new();
    let server = builder(&changed).bind(ANY).start().await.unwrap();
    let nowhere = server.client(at(1)).unwrap_err();
    assert!(nowhere.to_string().contains("does not listen at"), "{nowhere}");
    let client = server.client(server.local_addr()).unwrap();
    let group = client.discover("coap://224.0.1.187").send().await.unwrap().next().await.unwrap();
    assert!(matches!(group, Err(Error::Refused { .. })), "{group:?}");
    let v6 = client.get("coap://[::1]/").await.unwrap_err();
    assert!(matches!(&v6, Error::Refused { reason, .. } if reason.contains("family")), "{v6}");
    // Nobody listens there.
    let closed = std::net::UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    let closed = client.get(format!("coap://{closed}/")).await.unwrap_err();
    assert!(cfg!(not(target_os = "linux")) || matches!(closed, Error::Unreachable { .. }), "{closed}");
    server.shutdown().await;
    assert!(matches!(client.get("coap://127.0.0.1/").await, Err(Error::Closed)));

    let several = builder(&changed).bind(ANY).workers(2).start().await.unwrap();
    let refused = several.client(several.local_addr()).unwrap_err();
    assert!(matches!(refused, Error::Setting { name: "workers", .. }), "{refused}");
}
