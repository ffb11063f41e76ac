//! Connections that break in the middle of a body, in the clear and under TLS.

use std::{net::SocketAddr, time::Duration};

use millpond_live::{Bytes, Client, Error, Request, Resource, Response, Server, Transport};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{ANY, authority::Authority};

/// Passes one connection on, until so many bytes have gone down to the client, or up to the server: then it is closed on both
/// sides, by a reset or without one.
async fn cutting(server: SocketAddr, up: usize, down: usize, is_reset: bool) -> SocketAddr {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = tokio::net::TcpStream::connect(server).await.unwrap();
        let (mut left_up, mut left_down) = (up, down);
        let (mut from_near, mut from_far) = ([0; 4_096], [0; 4_096]);
        while left_up > 0 && left_down > 0 {
            tokio::select! {
                Ok(count) = near.read(&mut from_near) => {
                    let count = count.min(left_up);
                    left_up = if count == 0 { 0 } else { left_up - count };
                    far.write_all(&from_near[..count]).await.unwrap();
                }
                Ok(count) = far.read(&mut from_far) => {
                    let count = count.min(left_down);
                    left_down = if count == 0 { 0 } else { left_down - count };
                    near.write_all(&from_far[..count]).await.unwrap();
                }
            }
        }
        if is_reset {
            near.set_zero_linger().unwrap();
            far.set_zero_linger().unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_connection_cut_off_in_the_middle_of_a_body_is_told_and_leaves_nothing_behind() {
    let authority = Authority::new();
    let body = Bytes::from(vec![b'.'; 900_000]);
    let whole = body.clone();
    let large = Resource::new()
        .get(move || std::future::ready(Response::content(whole.clone())))
        .fetch(|request: Request| async move { Response::content(request.payload().len().to_string()) });
    let server = Server::builder().bind_tcp(ANY).bind_tls(ANY).security(authority.server(&["127.0.0.1"]));
    let server = server.longest_body(1 << 20).route("/large", large).start().await.unwrap();
    for (transport, address) in server.local_addrs() {
        for (up, down, is_reset) in [
            (usize::MAX, 300_000, false),
            (usize::MAX, 300_000, true),
            (300_000, usize::MAX, false),
            (300_000, usize::MAX, true),
        ] {
            let at = cutting(*address, up, down, is_reset).await;
            let client = Client::builder().security(authority.client()).build().await.unwrap();
            let uri = format!("{transport}://{at}/large");
            let asking = if up == usize::MAX { client.get(uri) } else { client.fetch(uri).payload(body.clone()) };
            let told = tokio::time::timeout(Duration::from_secs(60), asking.send()).await.unwrap();
            let error = told.unwrap_err();
            assert!(matches!(error, Error::ConnectionLost { .. }), "{transport} {up} {down} {is_reset}: {error}");
            assert!(!error.to_string().contains('\n'), "{error}");
            client.shutdown().await;
            while server.stats().await.connections > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let stats = server.stats().await;
            assert!(stats.memory < 100_000 && stats.panics == 0, "{transport} {up} {down}: {stats:?}");
        }
    }
}

/// As many certificates behind the server's own as a message of TLS holds, that have nothing to do with it or each vouch for the
/// next one.
#[tokio::test]
async fn long_and_deep_chains_of_certificates_are_counted_or_refused() {
    let (authority, others) = (Authority::new(), Authority::new());
    let security = authority.server(&["127.0.0.1"]).demand_client_certificates(authority.anchors());
    let server = Server::builder().bind_tls(ANY).bind_dtls(ANY).security(security);
    let server = server.route("/", Resource::new().get(|| async { Response::content("x") })).start().await.unwrap();
    let ours = authority.issue(&["me"], |_| {});
    let mut long = ours.certificate.clone();
    for _ in 0..100 {
        long.push_str(&others.issue(&["somebody"], |_| {}).certificate);
    }
    let long = crate::authority::Issued { certificate: long, key: ours.key.clone() }.keyed();
    let deep = authority.deep(100).keyed();
    for (transport, address) in server.local_addrs() {
        let uri = format!("{transport}://{address}/");
        let client = Client::builder().security(authority.client().certificate(deep.clone())).build().await.unwrap();
        let refused = tokio::time::timeout(Duration::from_secs(40), client.get(&uri).send()).await.unwrap();
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Insecure { .. }), "{transport}: {error}");
        // Over DTLS one certificate is shown, and none behind it.
        let client = Client::builder().security(authority.client().certificate(long.clone())).build().await.unwrap();
        assert_eq!(client.get(&uri).await.unwrap().text(), Ok("x"), "{transport}");
        let stats = server.stats().await;
        if *transport == Transport::Tls {
            assert!(stats.memory > 32_768 + 2 * 100 * 300, "{stats:?}");
        }
        let plain = Client::builder().security(authority.client().certificate(ours.keyed())).build().await.unwrap();
        assert_eq!(plain.get(&uri).await.unwrap().text(), Ok("x"), "{transport}");
        assert_eq!(server.stats().await.panics, 0);
    }
}

/// What waits to be written is in nobody's way.
#[tokio::test]
async fn a_request_of_which_much_is_unwritten_when_its_connection_breaks_is_over() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Its settings take messages of 16 MiB; it takes none.
        stream.write_all(&[0x50, 0xe1, 0x24, 1, 0, 0, 0]).await.unwrap();
        let mut begun = [0; 1_024];
        stream.read_exact(&mut begun).await.unwrap();
        stream.set_zero_linger().unwrap();
    };
    let client = Client::new().await.unwrap();
    let (outcome, ()) = tokio::join!(client.put(&uri).payload(vec![0; 15 << 20]).send(), serving);
    assert!(matches!(outcome, Err(Error::ConnectionLost { .. })), "{outcome:?}");
}
