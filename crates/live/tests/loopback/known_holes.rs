//! Holes of other servers and clients that a whole program could have; crates/coap/tests/known_holes.rs has those of the
//! message layer.

use std::time::Duration;

use millpond_live::{AddressRule, Client, Code, Resource, Response, Server, number};
use tokio::net::UdpSocket;

use crate::ANY;

/// Sends one datagram and returns what comes back for it.
async fn answer(socket: &UdpSocket, server: &Server, datagram: &[u8]) -> Vec<u8> {
    socket.send_to(datagram, server.local_addr()).await.unwrap();
    let mut bytes = [0; 2_000];
    let came = tokio::time::timeout(Duration::from_secs(20), socket.recv_from(&mut bytes)).await;
    bytes[..came.unwrap().unwrap().0].to_vec()
}

/// Californium's CVE-2022-2576 and its like: little is asked from a forged address, and much is sent there.
#[tokio::test]
async fn cve_2022_2576_no_address_gets_much_before_it_is_proved() {
    let large = || Resource::new().get(|| async { Response::content(vec![b'.'; 100_000]) });
    let mut builder = Server::builder().bind(ANY).verify_addresses(AddressRule::LargeAnswersEverywhere);
    for number in 0..100 {
        builder = builder.route(&format!("/{number}-with-a-long-name-that-fills-the-list-of-links"), large());
    }
    let server = builder.route("/l", large()).start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    for (id, path) in [(1_u8, &b"\xb1l"[..]), (2, b"\xbb.well-known\x04core"), (3, b"\xb7nothing")] {
        for kind in [0x40_u8, 0x50] {
            let datagram = [&[kind, 1, kind, id], path].concat();
            let bytes = answer(&socket, &server, &datagram).await;
            assert!(bytes.len() <= (3 * datagram.len()).max(256), "{} bytes for {}", bytes.len(), datagram.len());
        }
    }
}

/// RIOT: the list of links was written beyond its buffer.
#[tokio::test]
async fn cve_2026_27703_a_list_of_links_of_any_length_and_any_filter() {
    let mut builder = Server::builder().bind(ANY);
    for number in 0..500 {
        let resource = Resource::new().resource_type("x").get(|| async { Response::content("") });
        builder = builder.route(&format!("/{number}/{}", "segment".repeat(10)), resource);
    }
    let server = builder.start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = |query: &str| format!("coap://{}/.well-known/core{query}", server.local_addr());
    let links = client.get(uri("")).await.unwrap();
    assert_eq!(links.text().unwrap().matches("</").count(), 500);
    for query in ["?", "?rt", "?=", "?rt=", "?rt=*", "?rt=**", "?href=%2F1*", "?rt=x&rt=x", "?%FE=x", "?nothing=such"] {
        if let Ok(answer) = client.get(uri(query)).await {
            assert!(matches!(answer.code().class(), 2 | 4), "{query}: {answer:?}");
        }
    }
    let long = format!("?rt={}", "a".repeat(200));
    assert!(client.get(uri(&long)).await.is_ok_and(|answer| answer.payload().is_empty() || !answer.is_success()));
}

/// RIOT: the URI that a forward proxy was given went beyond a buffer. There is no proxy here, and that is said.
#[tokio::test]
async fn cve_2024_32017_what_is_for_a_proxy_is_refused_however_long() {
    let server = Server::builder().bind(ANY).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    for length in [0, 1, 255, 256, 1_000] {
        for (option, longest) in [(number::PROXY_URI, 1_034), (number::PROXY_SCHEME, 255)] {
            let answer = client.get(&uri).option(option, vec![b'a'; length]).await.unwrap();
            // A length that RFC 7252 §5.10 does not allow makes an option one that nobody knows (§5.4.3).
            let is_legal = (1..=longest).contains(&length);
            let expected = if is_legal { Code::PROXYING_NOT_SUPPORTED } else { Code::BAD_OPTION };
            assert_eq!(answer.code(), expected, "{length}");
        }
    }
}

/// libcoap: names of hosts of more than 255 bytes, in a URI and in a request.
#[tokio::test]
async fn cve_2025_34468_names_of_hosts_of_more_than_255_bytes() {
    let client = Client::new().await.unwrap();
    let error = client.get(format!("coap://{}/", "a".repeat(256))).await.unwrap_err();
    assert!(error.to_string().contains("the host has 256 bytes; an option can carry 255"), "{error}");
    let server = Server::builder().bind(ANY).start().await.unwrap();
    let answer = client.get(format!("coap://{}/", server.local_addr())).option(number::URI_HOST, vec![b'a'; 300]).await;
    assert_eq!(answer.unwrap().code(), Code::BAD_OPTION);
}
