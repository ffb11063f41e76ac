//! Peers that share a path by what their sessions have proved.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use millpond_control::{Controller, Cx, Exchange, PeerController, Reason, Sample, Span, View, Wait};
use millpond_live::{
    Client, ClientSecurity, Code, PathKey, PreSharedKey, PreSharedKeys, Resource, Server, ServerBuilder, ServerSecurity,
};

use tokio::net::UdpSocket;

use crate::{ANY, authority::Authority};

/// Counts the answers that it is notified of, and shows their number as its timeout in milliseconds.
#[derive(Clone, Debug, Default)]
struct Counting(u32);

impl Controller for Counting {
    fn on_start(&mut self, exchange: &mut Exchange, _len: u16, cx: Cx) -> Wait {
        exchange.begin(cx.now, Span::from_secs(10));
        Wait::then_retransmit(exchange.current(), Reason::Initial)
    }

    fn on_timeout(&mut self, exchange: &mut Exchange, _cx: Cx) -> Wait {
        exchange.advance(exchange.current());
        Wait::then_retransmit(exchange.current(), Reason::BackedOff)
    }

    fn on_reply(&mut self, _exchange: &Exchange, _sample: Sample, _cx: Cx) {
        self.0 += 1;
    }

    fn view(&self) -> View {
        View { rto: Some(Span::from_millis(self.0)), ..View::default() }
    }

    fn longest_wait(&self, _copy: u8, _previous: Span) -> Span {
        Span::from_secs(10)
    }
}

fn counting() -> PeerController {
    PeerController::own(Counting::default())
}

/// How many answers the controllers of these figures were notified of, in ascending order.
fn told(stats: millpond_live::Stats) -> Vec<u128> {
    let mut told: Vec<_> = stats.peers.iter().filter_map(|peer| peer.rto).map(|rto| rto.as_millis()).collect();
    told.sort_unstable();
    told
}

fn keys() -> ServerSecurity {
    let keys = ["a", "b"].map(|identity| PreSharedKey::new(identity, "secret").unwrap());
    ServerSecurity::new().pre_shared_keys(PreSharedKeys::new(keys).unwrap())
}

fn keyed(identity: &str, key: &str) -> ClientSecurity {
    ClientSecurity::new().pre_shared_key(PreSharedKey::new(identity, key).unwrap())
}

/// Its answers come on their own, so that the client acknowledges them.
fn slow(security: ServerSecurity) -> ServerBuilder {
    let resource = Resource::new().get(async || {
        tokio::time::sleep(Duration::from_millis(30)).await;
        "at last"
    });
    let builder = Server::builder().bind_dtls(ANY).security(security).controller(counting());
    builder.ack_delay(Duration::from_millis(1)).route("/slow", resource)
}

async fn client(security: ClientSecurity) -> Client {
    Client::builder().security(security).build().await.unwrap()
}

/// Asks so often, and waits until the server was told that all its answers arrived.
async fn ask(client: &Client, server: &Server, times: u64) {
    for _ in 0..times {
        let answer = client.get(format!("coaps://{}/slow", server.local_addr())).await.unwrap();
        assert_eq!(answer.code(), Code::CONTENT);
    }
    settled(server).await;
}

async fn settled(server: &Server) {
    while server.stats().await.exchanges > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn ended(server: &Server, left: usize) {
    while server.stats().await.sessions > left {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The second peer comes onto the path with the acknowledgement of its first answer, of which the path is not told.
#[tokio::test]
async fn clients_of_one_identity_share_a_controller_until_their_sessions_end() {
    let server = slow(keys()).share_paths(PathKey::identity()).start().await.unwrap();
    let [first, second, other] =
        [client(keyed("a", "secret")), client(keyed("a", "secret")), client(keyed("b", "secret"))];
    let (first, second, other) = (first.await, second.await, other.await);
    ask(&first, &server, 2).await;
    ask(&second, &server, 2).await;
    ask(&other, &server, 2).await;
    assert_eq!(told(server.stats().await), [2, 3, 3]);
    // Who has not the key shares nothing, whatever it calls itself.
    let forger = client(keyed("a", "wrong")).await;
    assert!(forger.get(format!("coaps://{}/slow", server.local_addr())).await.is_err());
    assert_eq!(told(server.stats().await), [2, 3, 3]);
    // At another address it is who it was.
    first.shutdown().await;
    ended(&server, 2).await;
    assert_eq!(told(server.stats().await), [2, 3]);
    let moved = client(keyed("a", "secret")).await;
    ask(&moved, &server, 2).await;
    assert_eq!(told(server.stats().await), [2, 4, 4]);
    // The last one takes the path along.
    second.shutdown().await;
    moved.shutdown().await;
    ended(&server, 1).await;
    let anew = client(keyed("a", "secret")).await;
    ask(&anew, &server, 2).await;
    assert_eq!(told(server.stats().await), [2, 2]);
}

#[tokio::test]
async fn certificates_are_identities_and_who_shows_none_has_only_an_address() {
    let authority = Authority::new();
    let security = authority.server(&["127.0.0.1"]);
    let server = slow(security.clone().demand_client_certificates(authority.anchors()));
    let server = server.share_paths(PathKey::identity()).start().await.unwrap();
    let issued = || authority.issue(&["sensor.example"], |_| {}).keyed();
    let (one, other) = (issued(), issued());
    // As long as its session stands a peer is on its path.
    let mut held = Vec::new();
    for certificate in [one.clone(), one, other] {
        let client = client(authority.client().certificate(certificate)).await;
        ask(&client, &server, 2).await;
        held.push(client);
    }
    assert_eq!(told(server.stats().await), [2, 3, 3]);

    for (key, expected) in [(PathKey::identity(), [2, 2]), (PathKey::identity().or(PathKey::prefix(24, 64)), [3, 3])] {
        let server = slow(security.clone()).share_paths(key).start().await.unwrap();
        let (one, other) = (client(authority.client()).await, client(authority.client()).await);
        ask(&one, &server, 2).await;
        ask(&other, &server, 2).await;
        assert_eq!(told(server.stats().await), expected);
    }
}

/// A server by pre-shared key shows that it has the key, and not which of those that have it.
#[tokio::test]
async fn servers_of_one_certificate_share_a_controller_and_those_of_one_key_do_not() {
    let authority = Authority::new();
    let issued = || ServerSecurity::new().certificate(authority.issue(&["127.0.0.1"], |_| {}).keyed());
    let (one, other) = (issued(), issued());
    let by_key = keyed("a", "secret");
    for (securities, client, expected) in
        [(vec![one.clone(), one, other], authority.client(), vec![2, 4, 4]), (vec![keys(), keys()], by_key, vec![2, 2])]
    {
        let builder = Client::builder().security(client).controller(counting());
        let client = builder.share_paths(PathKey::identity()).build().await.unwrap();
        let mut servers = Vec::new();
        for security in securities {
            let server = slow(security).start().await.unwrap();
            ask(&client, &server, 2).await;
            servers.push(server);
        }
        assert_eq!(told(client.stats().await.unwrap()), expected);
    }
}

/// An address behind which another server is once the first one has ended without a word.
async fn relay(to: Arc<Mutex<SocketAddr>>) -> SocketAddr {
    let (outside, inside) = (UdpSocket::bind(ANY).await.unwrap(), UdpSocket::bind(ANY).await.unwrap());
    let address = outside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut asked, mut answered) = ([0; 2_000], [0; 2_000]);
        let mut client = address;
        loop {
            tokio::select! {
                Ok((length, from)) = outside.recv_from(&mut asked) => {
                    client = from;
                    let to = *to.lock().unwrap();
                    inside.send_to(&asked[..length], to).await.unwrap();
                }
                Ok((length, _)) = inside.recv_from(&mut answered) => {
                    outside.send_to(&answered[..length], client).await.unwrap();
                }
            }
        }
    });
    address
}

/// What is known of the path goes along, and takes nothing from those that are on it already.
#[tokio::test(start_paused = true)]
async fn a_session_that_takes_the_place_of_another_goes_on_with_its_controller() {
    for key in [None, Some(PathKey::by(|_| 1))] {
        let (first, second, beside) = (
            slow(keys()).start().await.unwrap(),
            slow(keys()).start().await.unwrap(),
            slow(keys()).start().await.unwrap(),
        );
        let to = Arc::new(Mutex::new(first.local_addr()));
        let uri = format!("coaps://{}/slow", relay(Arc::clone(&to)).await);
        let mut builder = Client::builder().security(keyed("a", "secret")).controller(counting());
        let is_shared = key.is_some();
        if let Some(key) = key {
            builder = builder.share_paths(key);
        }
        let client = builder.build().await.unwrap();
        client.get(&uri).await.unwrap();
        settled(&first).await;
        if is_shared {
            ask(&client, &beside, 1).await;
        }
        *to.lock().unwrap() = second.local_addr();
        assert!(client.get(&uri).deadline(Duration::from_secs(11)).await.is_err());
        client.get(&uri).await.unwrap();
        let expected = if is_shared { vec![3, 3] } else { vec![2] };
        assert_eq!(told(client.stats().await.unwrap()), expected);
    }
}
