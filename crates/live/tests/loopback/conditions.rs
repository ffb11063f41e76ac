//! Critical options that nobody would look at.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use millpond_live::{Client, Code, Request, Resource, Response, Server, number};
use tokio::net::UdpSocket;

use crate::ANY;

async fn conditional(request: Request) -> Response {
    let is_there = request.options().get(number::IF_NONE_MATCH).is_none();
    if is_there { Response::changed() } else { Response::new(Code::PRECONDITION_FAILED) }
}

#[tokio::test]
async fn conditions_reach_handlers_that_keep_to_them_and_are_refused_elsewhere() {
    let changed = Arc::new(AtomicUsize::new(0));
    let changing = Arc::clone(&changed);
    let plain = Resource::new().put(move || {
        changing.fetch_add(1, Ordering::Relaxed);
        async { Response::changed() }
    });
    let careful = Resource::new().put(conditional).conditional();
    let builder = || Server::builder().bind(ANY).bind_tcp(ANY);
    let server = builder().route("/plain", plain).route("/careful", careful).start().await.unwrap();
    let client = Client::new().await.unwrap();
    for (transport, address) in server.local_addrs() {
        let uri = |path: &str| format!("{transport}://{address}{path}");
        for option in [number::IF_MATCH, number::IF_NONE_MATCH] {
            for (path, method) in [("/plain", Code::PUT), ("/.well-known/core", Code::GET)] {
                let answer = client.request(method, uri(path)).option(option, "").await.unwrap();
                assert_eq!(answer.code(), Code::BAD_OPTION, "{path} {option}");
            }
        }
        assert_eq!(client.put(uri("/careful")).option(number::IF_MATCH, "a").await.unwrap().code(), Code::CHANGED);
        let refused = client.put(uri("/careful")).option(number::IF_NONE_MATCH, "").await.unwrap();
        assert_eq!(refused.code(), Code::PRECONDITION_FAILED);
    }
    assert_eq!(changed.load(Ordering::Relaxed), 0);
    for (builder, code) in [
        (builder().fallback(conditional), Code::BAD_OPTION),
        (builder().conditional_fallback(conditional), Code::PRECONDITION_FAILED),
    ] {
        let server = builder.start().await.unwrap();
        let uri = format!("coap://{}/any", server.local_addr());
        assert_eq!(client.put(uri).option(number::IF_NONE_MATCH, "").await.unwrap().code(), code);
    }
}

/// Two parts of a body are no two bodies: who does not put bursts together (RFC 9177) refuses them.
#[tokio::test]
async fn parts_of_a_body_in_a_burst_are_not_taken_for_whole_bodies() {
    let taken = Arc::new(AtomicUsize::new(0));
    let taking = Arc::clone(&taken);
    let put = Resource::new().put(move || {
        taking.fetch_add(1, Ordering::Relaxed);
        async { Response::changed() }
    });
    let server = Server::builder().bind(ANY).route("/p", put).start().await.unwrap();
    let (socket, mut bytes) = (UdpSocket::bind(ANY).await.unwrap(), [0; 100]);
    // Uri-Path `p`, Q-Block1 0/1/16 and 1/1/16 in non-confirmable messages, then 0/1/16 in a confirmable one.
    for (kind, id, block) in [(0x51, 1, 0x08), (0x51, 2, 0x18), (0x41, 3, 0x08)] {
        let datagram = [&[kind, 3, 0, id][..], b"t\xb1p\x81", &[block], b"\xff0123456789abcdef"].concat();
        socket.send_to(&datagram, server.local_addr()).await.unwrap();
        socket.recv(&mut bytes).await.unwrap();
        assert_eq!((bytes[1], bytes[4]), (Code::BAD_OPTION.to_byte(), b't'));
    }
    assert_eq!((taken.load(Ordering::Relaxed), server.stats().await.received), (0, 3));
}
