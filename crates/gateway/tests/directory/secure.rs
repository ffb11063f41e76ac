//! Endpoints in sessions and connections: whose they are, and how they are asked there.

use std::net::SocketAddr;

use millpond_gateway::directory::{Directory, DirectorySettings, Endpoint, Registrant, routes};
use millpond_live::{
    Bytes, Client, ClientSecurity, Code, ContentFormat, PeerIdentity, PreSharedKey, PreSharedKeys, Resource, Response,
    Server, ServerSecurity, Transport,
};

use super::ANY;

fn key(identity: &str) -> PreSharedKey {
    PreSharedKey::new(identity, format!("secret of {identity}")).unwrap()
}

fn keyed(identity: &str) -> ClientSecurity {
    ClientSecurity::new().pre_shared_key(key(identity))
}

fn named(identity: &'static str) -> PeerIdentity {
    PeerIdentity::PreSharedKey(Bytes::from(identity))
}

/// A directory over DTLS and TCP.
async fn directory() -> (Directory, Server) {
    let directory = Directory::start(DirectorySettings::default()).await;
    let security = ServerSecurity::new().pre_shared_keys(PreSharedKeys::new(["a", "b"].map(key)).unwrap());
    let builder = Server::builder().bind_dtls(ANY).bind_tcp(ANY).security(security);
    let server = routes(builder, &directory).start().await.unwrap();
    directory.ask_by(&server);
    (directory, server)
}

fn address(server: &Server, transport: Transport) -> SocketAddr {
    server.local_addr_of(transport).unwrap()
}

/// A device that nobody can begin a session or connection with.
async fn device(transport: Transport, identity: &str) -> (Server, Client) {
    let reading = Resource::new().resource_type("t").get(|| async { "21.5" });
    let builder = Server::builder().route("/reading", reading);
    let device = match transport {
        Transport::Dtls => builder.bind_dtls_client(ANY).client_security(keyed(identity)),
        _ => builder.bind_tcp_client(ANY),
    };
    let device = device.start().await.unwrap();
    let client = device.client(device.local_addr()).unwrap();
    (device, client)
}

/// Asks an endpoint as a gateway does.
async fn ask(server: &Server, endpoint: &Endpoint) -> Result<Response, millpond_live::Error> {
    let registrant = endpoint.registrant.as_ref().unwrap();
    let client = server.client(address(server, registrant.transport)).unwrap();
    let request = client.get(format!("{}/reading", registrant.uri()));
    match &registrant.identity {
        Some(identity) => request.identity(identity.clone()).await,
        None => request.await,
    }
}

#[tokio::test]
async fn an_endpoint_is_asked_in_the_session_or_connection_that_it_registered_in() {
    let (directory, server) = directory().await;
    for (transport, simply) in
        [(Transport::Dtls, false), (Transport::Dtls, true), (Transport::Tcp, false), (Transport::Tcp, true)]
    {
        let (device, client) = device(transport, "a").await;
        let at = address(&server, transport);
        let answer = match simply {
            true => client.post(format!("{transport}://{at}/.well-known/rd?ep=device")).await.unwrap(),
            false => {
                let request = client.post(format!("{transport}://{at}/rd?ep=device"));
                request.content_format(ContentFormat::LINK_FORMAT).payload("</reading>;rt=\"t\"").await.unwrap()
            }
        };
        assert!(answer.is_success(), "{answer:?}");
        let endpoint = directory.endpoint("device").unwrap();
        let Registrant { transport: told, identity, .. } = endpoint.registrant.clone().unwrap();
        assert_eq!((told, identity), (transport, (transport == Transport::Dtls).then(|| named("a"))));
        assert!(endpoint.base.starts_with(&format!("{transport}://127.0.0.1:")), "{}", endpoint.base);
        assert_eq!(ask(&server, &endpoint).await.unwrap().text(), Ok("21.5"));
        let found = client.get(format!("{transport}://{at}/rd-lookup/res?rt=t")).await.unwrap();
        assert!(found.text().unwrap().starts_with(&format!("<{}/reading>;", endpoint.base)), "{:?}", found.text());
        // Nobody else is asked in its place.
        device.shutdown().await;
        assert!(ask(&server, &endpoint).await.is_err());
        if transport == Transport::Dtls && simply {
            let place = found_place(&server, "a").await;
            let (_device, client) = self::device(Transport::Dtls, "a").await;
            assert_eq!(client.delete(place).await.unwrap().code(), Code::DELETED, "from another port");
        }
    }
}

/// The place of the only registration.
async fn found_place(server: &Server, identity: &str) -> String {
    let client = Client::builder().security(keyed(identity)).build().await.unwrap();
    let at = address(server, Transport::Dtls);
    let found = client.get(format!("coaps://{at}/rd-lookup/ep")).await.unwrap();
    let place = found.text().unwrap().split(['<', '>']).nth(1).unwrap().to_owned();
    format!("coaps://{at}{place}")
}

#[tokio::test]
async fn what_an_identity_has_registered_nobody_else_changes() {
    let (directory, server) = directory().await;
    let at = address(&server, Transport::Dtls);
    let [a, b] = ["a", "b"].map(|identity| Client::builder().security(keyed(identity)).build());
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let tcp = Client::new().await.unwrap();
    let register = |client: &Client, to: String| client.post(to).payload("</x>").send();
    let registered = register(&a, format!("coaps://{at}/rd?ep=device&base=coap://h")).await.unwrap();
    assert_eq!(registered.code(), Code::CREATED);
    let (place, in_clear) = (found_place(&server, "b").await, address(&server, Transport::Tcp));
    let clear_place = format!("coap+tcp://{in_clear}/{}", place.splitn(4, '/').nth(3).unwrap());
    let mut codes = Vec::new();
    for (client, rd, place) in
        [(&b, format!("coaps://{at}/rd"), place.clone()), (&tcp, format!("coap+tcp://{in_clear}/rd"), clear_place)]
    {
        codes.push(register(client, format!("{rd}?ep=device")).await.unwrap().code());
        codes.push(client.post(&place).await.unwrap().code());
        codes.push(client.delete(&place).await.unwrap().code());
    }
    assert_eq!(codes, [Code::FORBIDDEN; 6]);
    assert_eq!(directory.endpoint("device").unwrap().base, "coap://h");
    assert!(directory.endpoint("device").unwrap().registrant.is_none(), "a base was named: that is where it is asked");
    assert_eq!(a.delete(&place).await.unwrap().code(), Code::DELETED);
}
