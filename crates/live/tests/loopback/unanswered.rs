//! Requests that want no response (RFC 7967), and what else a client says of its wishes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use millpond_live::{Client, Code, Request, Resource, Response, Server, number};
use tokio::net::UdpSocket;

use crate::ANY;

const CON: u8 = 0x41;
const NON: u8 = 0x51;

/// PUT, with No-Response if it is told.
fn put(kind: u8, id: u8, path: u8, no_response: Option<u8>) -> Vec<u8> {
    let mut datagram = vec![kind, 3, 0, id, b't', 0xb1, path];
    // From Uri-Path (11) to No-Response (258): 13 and 234 more.
    datagram.extend(no_response.iter().flat_map(|classes| [0xd1, 234, *classes]));
    datagram
}

#[tokio::test]
async fn a_response_that_nobody_wants_does_not_leave_and_the_request_is_carried_out_once() {
    let taken = Arc::new(AtomicUsize::new(0));
    let taking = Arc::clone(&taken);
    let sink = Resource::new().put(move |_| {
        taking.fetch_add(1, Ordering::Relaxed);
        async { Code::CHANGED }
    });
    let server = Server::builder().bind(ANY).route("/p", sink).start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    let mut bytes = [0; 100];
    // 2.xx is unwanted, then all is, in messages that are not confirmable: the next datagram answers the third.
    socket.send(&put(NON, 1, b'p', Some(2))).await.unwrap();
    socket.send(&put(NON, 2, b'q', Some(26))).await.unwrap();
    for copy in 0..2 {
        socket.send(&put(CON, 3, b'p', Some(26))).await.unwrap();
        let length = socket.recv(&mut bytes).await.unwrap();
        assert_eq!(bytes[..length], [0x60, 0, 0, 3], "an empty acknowledgement, also of copy {copy}");
    }
    // What is wanted comes: a failure where 2.xx alone is unwanted, and everything by the value 0.
    for (id, path, classes, code) in
        [(4, b'q', 2, Code::NOT_FOUND), (5, b'p', 0, Code::CHANGED), (6, b'p', 24, Code::CHANGED)]
    {
        socket.send(&put(CON, id, path, Some(classes))).await.unwrap();
        socket.recv(&mut bytes).await.unwrap();
        assert_eq!((bytes[0], bytes[1], bytes[3]), (0x61, code.to_byte(), id));
    }
    assert_eq!(taken.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_hop_limit_of_0_is_refused_and_others_reach_the_handler() {
    let limits = Resource::new().get(|request: Request| async move {
        request.options().uint(number::HOP_LIMIT).unwrap_or_default().to_string()
    });
    let server = Server::builder().bind(ANY).route("/", limits).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    assert_eq!(client.get(&uri).hop_limit(16).await.unwrap().text().unwrap(), "16");
    assert_eq!(client.get(&uri).hop_limit(0).await.unwrap().code(), Code::BAD_REQUEST);
    // What is no Hop-Limit says nothing.
    for values in [&[""][..], &["\0\0"], &["\x05", "\0"]] {
        let request = values.iter().fold(client.get(&uri), |request, value| request.option(number::HOP_LIMIT, *value));
        assert_eq!(request.await.unwrap().code(), Code::CONTENT, "{values:?}");
    }
}

#[tokio::test]
async fn conditions_are_said_in_a_word() {
    async fn kept_to(request: Request) -> Response {
        let met = match request.options().get(number::IF_MATCH) {
            Some(etag) => etag == "7",
            None => request.options().get(number::IF_NONE_MATCH).is_none(),
        };
        if met { Response::changed() } else { Response::new(Code::PRECONDITION_FAILED) }
    }
    let state = Resource::new().put(kept_to).conditional();
    let server = Server::builder().bind(ANY).route("/", state).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let put = || client.put(format!("coap://{}/", server.local_addr()));
    assert_eq!(put().if_match("7").await.unwrap().code(), Code::CHANGED);
    assert_eq!(put().if_match("8").await.unwrap().code(), Code::PRECONDITION_FAILED);
    assert_eq!(put().if_none_match().await.unwrap().code(), Code::PRECONDITION_FAILED);
}
