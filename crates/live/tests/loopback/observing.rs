use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use millpond_live::{
    Bytes, Client, ClientSecurity, Code, Error, Interruption, Observable, Observation, Observed, Policy, PreSharedKey,
    PreSharedKeys, Request, Resource, Response, Rule, Server, ServerSecurity, Who,
};

use crate::ANY;

/// A counter that can be observed.
struct Counter {
    value: Arc<AtomicU32>,
    changed: Observable,
}

impl Counter {
    fn new(changed: Observable) -> Self {
        Self { value: Arc::default(), changed }
    }

    fn resource(&self) -> Resource {
        let value = Arc::clone(&self.value);
        Resource::new().observable(&self.changed).get(move |request: Request| {
            let value = Arc::clone(&value);
            async move {
                let length = request.query_value("length").map_or(0, |length| length.parse().unwrap_or(0));
                let text = value.load(Ordering::Relaxed).to_string();
                Response::content(Bytes::from(format!("{text:.<length$}")))
            }
        })
    }

    fn set(&self, value: u32) {
        self.value.store(value, Ordering::Relaxed);
        self.changed.notify();
    }

    async fn observed_by(&self, count: usize) {
        while self.changed.observers() != count {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn an_observer_sees_the_newest_state_and_is_gone_when_dropped() {
    let counter = Counter::new(Observable::confirmable());
    let server = Server::builder().bind(ANY).route("/n", counter.resource()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let mut observation = client.get(format!("coap://{}/n", server.local_addr())).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("0"));
    counter.observed_by(1).await;
    for value in 1..=1_000 {
        counter.set(value);
    }
    loop {
        let state = observation.next().await.unwrap().unwrap();
        if state.text() == Ok("1000") {
            break;
        }
    }
    assert_eq!(server.stats().await.observers, 1);
    drop(observation);
    counter.observed_by(0).await;
    assert_eq!(server.stats().await.observers, 0);
}

#[tokio::test]
async fn every_observer_gets_a_large_state_whole() {
    let counter = Counter::new(Observable::confirmable());
    let server = Server::builder().bind(ANY).route("/n", counter.resource()).start().await.unwrap();
    let mut observations = Vec::new();
    let clients = [Client::new().await.unwrap(), Client::new().await.unwrap()];
    for client in &clients {
        let uri = format!("coap://{}/n?length=5000", server.local_addr());
        let mut observation = client.get(uri).observe().await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().payload().len(), 5_000);
        observations.push(observation);
    }
    counter.observed_by(2).await;
    counter.set(7);
    for observation in &mut observations {
        let state = observation.next().await.unwrap().unwrap();
        assert!(state.payload().len() == 5_000 && state.text().unwrap().starts_with("7.."));
    }
}

#[tokio::test]
async fn the_end_of_a_resource_is_the_end_of_its_observations() {
    let counter = Counter::new(Observable::confirmable());
    let server = Server::builder().bind(ANY).route("/n", counter.resource()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let asking = client.get(format!("coap://{}/n", server.local_addr())).give_up_after(std::time::Duration::ZERO);
    let mut observation = asking.observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("0"));
    counter.observed_by(1).await;
    counter.changed.end(Response::not_found());
    assert_eq!(observation.next().await.unwrap().unwrap().code(), Code::NOT_FOUND);
    assert!(observation.next().await.is_none());
    counter.observed_by(0).await;
}

#[tokio::test]
async fn a_change_at_one_path_concerns_nobody_else() {
    let changed = Observable::confirmable();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let resource = Resource::new().observable(&changed).get(move |request: Request| {
        let asked = count.fetch_add(1, Ordering::Relaxed);
        async move { Response::content(format!("{} {asked}", request.path_text())) }
    });
    let server = Server::builder().bind(ANY).route("/s/{id}", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let mut observations = Vec::new();
    for id in ["a", "b"] {
        let mut observation = client.get(format!("coap://{}/s/{id}", server.local_addr())).observe().await.unwrap();
        observation.next().await.unwrap().unwrap();
        observations.push(observation);
    }
    changed.notify_path("/s/b");
    assert_eq!(observations[1].next().await.unwrap().unwrap().text(), Ok("/s/b 2"));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_server_that_ends_says_so() {
    let counter = Counter::new(Observable::confirmable());
    let server = Server::builder().bind(ANY).route("/n", counter.resource()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let asking = client.get(format!("coap://{}/n", server.local_addr())).give_up_after(std::time::Duration::ZERO);
    let mut observation = asking.observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    counter.observed_by(1).await;
    server.shutdown().await;
    assert_eq!(observation.next().await.unwrap().unwrap().code(), Code::SERVICE_UNAVAILABLE);
    assert_eq!(counter.changed.observers(), 0);
}

#[tokio::test]
async fn what_is_not_observed_is_an_error_with_the_answer_in_it() {
    let plain = Resource::new().get(|_: Request| async { Response::content("plain") });
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/plain", plain).start().await.unwrap();
    let client = Client::new().await.unwrap();
    for (scheme, address) in [("coap", server.local_addrs()[0].1), ("coap+tcp", server.local_addrs()[1].1)] {
        for (path, code) in [("plain", Code::CONTENT), ("nothing", Code::NOT_FOUND)] {
            let error = client.get(format!("{scheme}://{address}/{path}")).observe().await.unwrap_err();
            let Error::NotObserved { answer } = error else { panic!("{scheme} {path}: {error}") };
            assert_eq!(answer.code(), code);
        }
    }
}

/// The host of an observer says that nobody listens there any more: it is one no more, before all copies have left.
#[tokio::test]
async fn an_observer_whose_port_is_closed_is_forgotten() {
    let counter = Counter::new(Observable::confirmable());
    let server = Server::builder().bind(ANY).route("/n", counter.resource()).start().await.unwrap();
    let socket = tokio::net::UdpSocket::bind(ANY).await.unwrap();
    // GET /n with Observe 0.
    socket.send_to(b"\x41\x01\x12\x34\x77\x60\x51n", server.local_addr()).await.unwrap();
    let mut answer = [0; 64];
    socket.recv_from(&mut answer).await.unwrap();
    counter.observed_by(1).await;
    drop(socket);
    counter.set(1);
    counter.observed_by(0).await;
    let stats = server.stats().await;
    assert_eq!((stats.retransmissions, stats.exchanges), (0, 0), "{stats:?}");
}

/// What comes after 5.03 is the end, over both transports, and nobody waits for a connection that is of no use any more.
#[tokio::test]
async fn a_server_that_ends_tells_its_observers_over_connections_too() {
    let counter = Counter::new(Observable::confirmable());
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/n", counter.resource()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let mut observations = Vec::new();
    for (transport, address) in server.local_addrs() {
        let asking = client.get(format!("{transport}://{address}/n")).give_up_after(std::time::Duration::ZERO);
        let mut observation = asking.observe().await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("0"));
        observations.push(observation);
    }
    counter.observed_by(2).await;
    let since = tokio::time::Instant::now();
    tokio::time::pause();
    server.shutdown().await;
    assert!(since.elapsed() < std::time::Duration::from_secs(3), "{:?}", since.elapsed());
    for mut observation in observations {
        assert_eq!(observation.next().await.unwrap().unwrap().code(), Code::SERVICE_UNAVAILABLE);
        assert!(observation.next().await.is_none());
    }
}

/// Over UDP, TCP and DTLS, each of which keeps its observers apart.
#[tokio::test]
async fn who_may_not_observe_any_more_is_told_so_and_who_may_goes_on() {
    let key = |identity: &str| PreSharedKey::new(identity, "secret").unwrap();
    let keys = ServerSecurity::new().pre_shared_keys(PreSharedKeys::new(["a", "b"].map(key)).unwrap());
    let policy = |who| Policy::new().rule(Rule::of(who).allow("/n", [Code::GET]).unwrap());
    let counter = Counter::new(Observable::confirmable());
    let builder = Server::builder().bind(ANY).bind_tcp(ANY).bind_dtls(ANY).security(keys);
    let builder = builder.policy(policy(Who::network("127.0.0.0/8").unwrap())).route("/n", counter.resource());
    let server = builder.start().await.unwrap();
    let (mut observations, mut clients) = (Vec::<Observation>::new(), Vec::new());
    for (transport, at) in server.local_addrs() {
        for identity in ["a", "b"] {
            let security = ClientSecurity::new().pre_shared_key(key(identity));
            let client = Client::builder().security(security).build().await.unwrap();
            observations.push(client.get(format!("{transport}://{at}/n")).observe().await.unwrap());
            clients.push(client);
        }
    }
    counter.observed_by(6).await;
    server.set_policy(policy(Who::pre_shared_key("a")));
    counter.observed_by(1).await;
    counter.set(7);
    let mut told = Vec::new();
    for (observation, (transport, _)) in observations.iter_mut().zip(server.local_addrs().iter().flat_map(|at| [at; 2]))
    {
        let last = loop {
            match observation.event().await.unwrap().unwrap() {
                Observed::State(state) if state.text() == Ok("0") => {}
                Observed::State(state) => break state.code(),
                Observed::Interrupted(Interruption::Ended { answer, .. }) => break answer.code(),
                other => panic!("{other:?}"),
            }
        };
        told.push(format!("{transport} {last}"));
    }
    told.sort();
    assert_eq!(told, ["coap 4.01", "coap 4.01", "coap+tcp 4.01", "coap+tcp 4.01", "coaps 2.05", "coaps 4.03"]);
}
