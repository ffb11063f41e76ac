//! A server that gets another certificate while it runs.

use millpond_live::{Client, ClientSecurity, Error, Resource, Server, ServerSecurity};

use crate::{ANY, authority::Authority};

async fn client(security: ClientSecurity) -> Client {
    Client::builder().security(security).build().await.unwrap()
}

#[tokio::test]
async fn sessions_go_on_and_new_ones_see_the_new_certificate() {
    let (before, after) = (Authority::new(), Authority::new());
    let names = ["127.0.0.1"];
    let server = Server::builder().bind_dtls(ANY).bind_tls(ANY).security(before.server(&names));
    let server = server.route("/", Resource::new().get(|| async { "there" })).start().await.unwrap();
    let uris: Vec<String> =
        server.local_addrs().iter().map(|(transport, address)| format!("{transport}://{address}/")).collect();
    let known = client(before.client()).await;
    for uri in &uris {
        assert_eq!(known.get(uri).await.unwrap().text(), Ok("there"));
    }
    server.set_security(after.server(&names)).await.unwrap();
    for uri in &uris {
        assert_eq!(known.get(uri).await.unwrap().text(), Ok("there"), "{uri}: the session stands");
        let trusting = client(after.client()).await;
        assert_eq!(trusting.get(uri).await.unwrap().text(), Ok("there"), "{uri}: the new certificate is shown");
        let late = client(before.client()).await.get(uri).await.unwrap_err();
        assert!(matches!(late, Error::Insecure { .. }), "{uri}: the old one is not: {late}");
    }
}

#[tokio::test]
async fn what_cannot_be_used_changes_nothing() {
    let authority = Authority::new();
    let server = Server::builder().bind_tls(ANY).security(authority.server(&["127.0.0.1"]));
    let server = server.route("/", Resource::new().get(|| async { "there" })).start().await.unwrap();
    assert!(matches!(server.set_security(ServerSecurity::new()).await, Err(Error::Setting { .. })));
    let uri = format!("coaps+tcp://{}/", server.local_addr());
    assert_eq!(client(authority.client()).await.get(uri).await.unwrap().text(), Ok("there"));
}
