//! Groups on the loopback, which Linux joins and asks like any other interface.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use millpond_live::{AddressRule, Client, Code, Error, Interface, Request, Resource, Response, Server, ServerBuilder};
use socket2::{Domain, Socket, Type};

use crate::ANY;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 17, 3);

/// One that listens on all addresses, as a member of a group must.
fn member() -> ServerBuilder {
    let hello = Resource::new().title("A greeting").get(|| async { Response::content("hello") });
    let large = Resource::new().get(|| async { Response::content(vec![b'.'; 3_000]) });
    let put = Resource::new().put(|| async { Response::changed() });
    Server::builder()
        .bind((Ipv4Addr::UNSPECIFIED, 0))
        .join(GROUP.into(), Some(Interface::Address(Ipv4Addr::LOCALHOST)))
        .leisure(Duration::from_millis(50))
        .route("/hello", hello)
        .route("/large", large)
        .route("/put", put)
}

async fn client() -> Client {
    Client::builder().multicast_interface("lo").build().await.unwrap()
}

/// Devices report so to a group: it is a request with a method that nobody registered, and is answered by no error.
#[tokio::test]
async fn a_report_by_code_0_30_reaches_the_fallback_of_a_member() {
    let (telling, mut told) = tokio::sync::mpsc::unbounded_channel();
    let server = member()
        .changes_by_group(true)
        .fallback(move |request: Request| {
            let device = request.options().get(3_332).map(|value| String::from_utf8_lossy(value).into_owned());
            telling.send(format!("{} {} {device:?}", request.method(), request.path_text())).unwrap();
            async { Response::not_found() }
        })
        .start()
        .await
        .unwrap();
    let device = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    device.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    let group = SocketAddr::from((GROUP, server.local_addr().port()));
    // NON 0.30 /cit/s with option 3332.
    device.send_to(b"\x50\x1e\x12\x34\xb3cit\x01s\xe5\x0b\xecSHSW1\xff{}", &group.into()).unwrap();
    assert_eq!(told.recv().await.unwrap(), "0.30 /cit/s Some(\"SHSW1\")");
}

/// So many answers of the members, and what comes within half a second behind them.
async fn answers(client: &Client, method: Code, server: &Server, path: &str, count: usize) -> Vec<Response> {
    let uri = format!("coap://{GROUP}:{}{path}", server.local_addr().port());
    let request = if path.is_empty() { client.discover(uri) } else { client.request_group(method, uri) };
    let mut told = request.gather_for(Duration::from_secs(20)).send().await.unwrap();
    let mut all = Vec::new();
    loop {
        let patience = Duration::from_millis(if all.len() < count { 20_000 } else { 500 });
        match tokio::time::timeout(patience, told.next()).await {
            Ok(Some(answer)) => all.push(answer.unwrap()),
            _ => return all,
        }
    }
}

/// Which groups of all CoAP nodes can be joined is the machine's: the others are told, and what was asked for by name must be joined.
#[tokio::test]
async fn groups_that_cannot_be_joined_are_told_and_the_server_starts() {
    let server = Server::builder().bind(ANY).join_all_coap_nodes(None).start().await.unwrap();
    assert!(server.groups().is_empty());
    let missed: Vec<_> =
        server.missed_groups().iter().map(|(group, error)| (group.to_string(), error.to_string())).collect();
    assert_eq!(
        missed.iter().map(|(group, _)| group.as_str()).collect::<Vec<_>>(),
        ["224.0.1.187", "ff02::fd", "ff05::fd"]
    );
    assert!(missed.iter().all(|(_, why)| why.contains("listen on")), "{missed:?}");
    assert!(Server::builder().bind(ANY).join(GROUP.into(), None).start().await.is_err());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_group_is_discovered() {
    let server = member().start().await.unwrap();
    let port = server.local_addr().port();
    assert_eq!(server.groups(), [SocketAddr::new(GROUP.into(), port)]);
    let answers = answers(&client().await, Code::GET, &server, "", 1).await;
    assert_eq!(answers.len(), 1);
    assert!(answers[0].text().unwrap().contains("</hello>;title=\"A greeting\""));
    let peer = answers[0].exchange().unwrap().peer;
    assert!(!peer.ip().is_multicast() && peer.port() == port, "{peer}");
}

/// The guard against forged addresses asks nothing of a group: it lets little out, and the rest is asked for by unicast.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_large_answer_begins_with_little_and_the_rest_is_fetched() {
    let server = member().verify_addresses(AddressRule::LargeAnswersEverywhere).start().await.unwrap();
    let answers = answers(&client().await, Code::GET, &server, "/large", 1).await;
    assert_eq!(answers.iter().map(|answer| answer.payload().len()).collect::<Vec<_>>(), [3_000]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_group_changes_something_only_where_that_is_allowed() {
    let server = member().start().await.unwrap();
    assert!(answers(&client().await, Code::PUT, &server, "/put", 0).await.is_empty());
    let server = member().changes_by_group(true).start().await.unwrap();
    let answers = answers(&client().await, Code::PUT, &server, "/put", 1).await;
    assert_eq!(answers.iter().map(Response::code).collect::<Vec<_>>(), [Code::CHANGED]);
}

#[tokio::test]
async fn what_cannot_be_joined_or_asked_is_told() {
    let told = async |builder: ServerBuilder| builder.start().await.unwrap_err().to_string();
    let at_one = Server::builder().bind(ANY).join(GROUP.into(), None);
    assert!(told(at_one).await.contains("239.255.17.3 reaches only who listens on all addresses; listen on 0.0.0.0"));
    let no_group = member().join(Ipv4Addr::LOCALHOST.into(), None);
    assert!(told(no_group).await.contains("127.0.0.1 is no group"));
    let nowhere = member().join(GROUP.into(), Some("no-such-if".into()));
    assert!(told(nowhere).await.contains("there is no interface no-such-if; name one that is up"));
    let client = client().await;
    let refused = async |uri: &str| match client.discover(uri).send().await {
        Err(Error::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused("coap://192.0.2.1").await.contains("192.0.2.1 is one host and no group"));
    assert!(refused("coap+tcp://239.255.17.3").await.contains("only coap:// reaches groups"));
    let error = client.get("coap://239.255.17.3/").await.unwrap_err();
    assert!(error.to_string().contains("239.255.17.3 is a group, which discover asks"));
}
