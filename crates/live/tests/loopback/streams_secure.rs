//! What `streams` does, under TLS; and sessions that must not come about.

use std::net::SocketAddr;

use millpond_live::{
    Bytes, Client, ClientSecurity, Code, Error, KeyedCertificate, Observable, PeerIdentity, PreSharedKey, Request,
    Resource, Response, Server, ServerSecurity, Stats, Transport, TrustAnchors,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{ANY, authority::Authority};

/// A server under TLS that greets, and says who greets.
async fn greeter(security: ServerSecurity) -> (Server, SocketAddr) {
    let greet = Resource::new().get(|request: Request| async move {
        let who = match request.identity() {
            Some(PeerIdentity::Certificate(chain)) => format!("you with {} certificates", chain.len()),
            _ => "whoever you are".to_owned(),
        };
        assert_eq!(request.transport(), Transport::Tls);
        Response::content(format!("hello, {who}"))
    });
    let server = Server::builder().bind_tls(ANY).security(security).route("/", greet).start().await.unwrap();
    let address = server.local_addr();
    (server, address)
}

async fn client(security: ClientSecurity) -> Client {
    Client::builder().security(security).build().await.unwrap()
}

/// The only line that a client with this gets from that server.
async fn refusal(security: ClientSecurity, uri: String) -> String {
    let error = client(security).await.get(uri).await.unwrap_err();
    assert!(matches!(error, Error::Insecure { .. }), "{error}");
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    line
}

/// What a server counted, once it has counted something.
async fn refused(server: &Server) -> Stats {
    loop {
        let stats = server.stats().await;
        if stats.insecure > 0 {
            return stats;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_same_client_and_server_speak_over_tls() {
    let authority = Authority::new();
    let changed = Observable::new();
    let resource = Resource::new()
        .observable(&changed)
        .get(
            |request: Request| async move { Response::content(request.query_value("x").unwrap_or("none").to_string()) },
        )
        .fetch(|request: Request| async move { Response::content(request.payload().clone()) });
    let server = Server::builder().bind(ANY).bind_tls(ANY).security(authority.server(&["127.0.0.1", "localhost"]));
    let server = server.route("/a", resource).start().await.unwrap();
    let (transport, tls) = server.local_addrs()[1];
    assert_eq!(transport, Transport::Tls);
    let client = client(authority.client()).await;
    let uri = |path: &str| format!("coaps+tcp://{tls}{path}");
    assert_eq!(client.get(uri("/a?x=1")).await.unwrap().text(), Ok("1"));
    assert_eq!(client.get(uri("/b")).await.unwrap().code(), Code::NOT_FOUND);
    let body: Bytes = (0..300_000).map(|place| (place / 11) as u8).collect();
    assert_eq!(client.fetch(uri("/a")).payload(body.clone()).await.unwrap().payload(), &body);
    client.ping(uri("/").as_str()).await.unwrap();

    let mut observation = client.get(uri("/a?x=2")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("2"));
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("2"));
    drop(observation);
    while changed.observers() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(server.stats().await.connections, 1);
    // By another name it is another session: nobody has proved to be that yet.
    assert_eq!(client.get(format!("coaps+tcp://localhost:{}/a", tls.port())).await.unwrap().text(), Ok("none"));
    assert_eq!(server.stats().await.connections, 2);
    client.shutdown().await;
    server.shutdown().await;
}

#[tokio::test]
async fn many_large_bodies_both_ways_at_once_all_arrive() {
    let authority = Authority::new();
    let echo = Resource::new().fetch(|request: Request| async move { Response::content(request.payload().clone()) });
    let server = Server::builder().bind_tcp(ANY).bind_tls(ANY).security(authority.server(&["127.0.0.1"]));
    let server = server.route("/", echo).start().await.unwrap();
    let client = client(authority.client()).await;
    let body: Bytes = (0..300_000).map(|place| (place / 13) as u8).collect();
    for (transport, address) in server.local_addrs() {
        let mut asked = tokio::task::JoinSet::new();
        for number in 0..12 {
            asked.spawn(client.fetch(format!("{transport}://{address}/?{number}")).payload(body.clone()).send());
        }
        while let Some(answer) = asked.join_next().await {
            assert_eq!(answer.unwrap().unwrap().payload(), &body);
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_who_the_uri_names_is_refused() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (_server, address) = greeter(authority.server(&["there.example"])).await;
    let uri = format!("coaps+tcp://{address}/");
    let line = refusal(authority.client(), uri.clone()).await;
    assert!(line.contains(&format!("no secure session with {address}: the server's certificate is not for 127.0.0.1")));
    assert!(line.contains("there.example"), "{line}");
    let line = refusal(stranger.client(), uri.clone()).await;
    assert!(line.contains("has an issuer that is not trusted"), "{line}");
    // A peer that accepts anybody gets an answer, from anybody.
    let trusting = client(ClientSecurity::new().dangerously_accept_any_certificate()).await;
    assert_eq!(trusting.get(uri).await.unwrap().text(), Ok("hello, whoever you are"));
}

#[tokio::test]
async fn certificates_that_have_expired_or_are_not_valid_yet_are_refused() {
    let authority = Authority::new();
    for (from, until, part) in [(1990, 2000, "expired"), (2200, 2300, "will be valid in")] {
        let issued = authority.issue(&["127.0.0.1"], |params| {
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(until, 1, 1);
        });
        let (_server, address) = greeter(ServerSecurity::new().certificate(issued.keyed())).await;
        let line = refusal(authority.client(), format!("coaps+tcp://{address}/")).await;
        assert!(line.contains(part) && line.contains("clock"), "{line}");
    }
}

#[tokio::test]
async fn a_client_without_the_certificate_that_is_demanded_is_told_so() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let security = authority.server(&["127.0.0.1"]).demand_client_certificates(authority.anchors());
    let (server, address) = greeter(security).await;
    let uri = format!("coaps+tcp://{address}/");
    let line = refusal(authority.client(), uri.clone()).await;
    assert!(line.contains("the server demands a certificate; give one and its key"), "{line}");
    assert!(refused(&server).await.insecure > 0);
    let theirs = stranger.issue(&["me"], |_| {}).keyed();
    let line = refusal(authority.client().certificate(theirs), uri.clone()).await;
    assert!(line.contains("does not trust the issuer of the certificate that it was shown"), "{line}");
    let ours = authority.issue(&["me"], |_| {}).keyed();
    let known = client(authority.client().certificate(ours)).await;
    assert_eq!(known.get(uri).await.unwrap().text(), Ok("hello, you with 1 certificates"));
}

#[tokio::test]
async fn a_server_that_is_not_told_apart_by_alpn_is_refused_on_a_port_of_its_own() {
    // Any TLS server that does not know the protocol: rustls by itself.
    let authority = Authority::new();
    let issued = authority.issue(&["127.0.0.1"], |_| {});
    let (chain, key) = (issued.certificate.as_bytes(), issued.key.as_bytes());
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![der(chain)], key_der(key)).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind(ANY).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = acceptor.accept(stream).await.unwrap().read(&mut [0; 64]).await;
    });
    let line = refusal(authority.client(), format!("coaps+tcp://{address}/")).await;
    assert!(line.contains("did not agree to speak CoAP (ALPN \"coap\")"), "{line}");
    serving.await.unwrap();
}

fn der(pem: &[u8]) -> rustls::pki_types::CertificateDer<'static> {
    rustls::pki_types::pem::PemObject::from_pem_slice(pem).unwrap()
}

fn key_der(pem: &[u8]) -> rustls::pki_types::PrivateKeyDer<'static> {
    rustls::pki_types::pem::PemObject::from_pem_slice(pem).unwrap()
}

#[tokio::test]
async fn plaintext_and_tls_that_meet_are_one_clear_error() {
    let authority = Authority::new();
    let server = Server::builder().bind_tcp(ANY).bind_tls(ANY).security(authority.server(&["127.0.0.1"]));
    let server = server.start().await.unwrap();
    let [(_, plain), (_, tls)] = *server.local_addrs() else { panic!("two listeners") };
    let line = refusal(authority.client(), format!("coaps+tcp://{plain}/")).await;
    assert!(line.contains("not TLS") || line.contains("does it speak TLS on this port?"), "{line}");
    let error = client(authority.client()).await.get(format!("coap+tcp://{tls}/")).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { peer, .. } if peer == tls), "{error}");
    assert!(refused(&server).await.insecure > 0);
}

#[tokio::test]
async fn garbage_instead_of_a_handshake_is_dropped_and_told() {
    let authority = Authority::new();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::builder().bind_tls(ANY).security(authority.server(&["127.0.0.1"]));
    let server = server.trace(move |event| told.send(event.to_string()).unwrap()).start().await.unwrap();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4_000], &[0x16, 3, 1, 0xff, 0xff], &[22, 3, 3, 0, 1, 1]] {
        let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        // An alert may come; the end does.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let line = heard.recv().await.unwrap();
        assert!(line.contains("no secure session: ") && !line.contains('\n'), "{line}");
    }
    assert_eq!(server.stats().await.insecure, 4);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_connects_and_says_nothing_is_dropped() {
    let authority = Authority::new();
    let (server, address) = greeter(authority.server(&["127.0.0.1"])).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(silent.read(&mut [0; 64]).await.unwrap(), 0);
    assert_eq!(refused(&server).await.insecure, 1);
}

#[tokio::test]
async fn what_cannot_speak_tls_is_said_before_anything_is_sent() {
    let key = PreSharedKey::new("me", "secret").unwrap();
    let psk = client(ClientSecurity::new().pre_shared_key(key)).await;
    let error = psk.get("coaps+tcp://192.0.2.1/").await.unwrap_err().to_string();
    assert!(error.contains("only a pre-shared key, which is for coaps"), "{error}");
    let error = Server::builder().bind_tls(ANY).start().await.unwrap_err().to_string();
    assert!(error.contains("coaps+tcp needs a certificate and its key"), "{error}");
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_told_to_all_who_wait_for_it() {
    let free = std::net::TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let client = client(Authority::new().client()).await;
    let asked: Vec<_> = (0..3).map(|_| tokio::spawn(client.get(format!("coaps+tcp://{free}/")).send())).collect();
    for asked in asked {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unreachable { peer, .. } if peer == free), "{error}");
    }
}

#[test]
fn a_key_of_another_certificate_and_a_malformed_anchor_are_told() {
    let authority = Authority::new();
    let (ours, theirs) = (authority.issue(&["a"], |_| {}), authority.issue(&["b"], |_| {}));
    let error = KeyedCertificate::from_pem(ours.certificate.as_bytes(), theirs.key.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("the private key: does not belong to the certificate"), "{error}");
    let shown = format!("{:?}", ours.keyed());
    assert!(!shown.contains("BEGIN") && shown.contains("ECDSA"), "{shown}");
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let error = TrustAnchors::from_pem(broken.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("certificate 1 in it is malformed"), "{error}");
    let error = KeyedCertificate::from_pem(broken.as_bytes(), ours.key.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("the first certificate in it is malformed"), "{error}");
}
