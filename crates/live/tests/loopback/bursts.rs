//! Bodies in bursts (RFC 9177), over loopback and over a path that loses.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use millpond_live::{
    AddressRule, Bytes, Client, Code, ContentFormat, Error, Happened, Request, Resource, Response, Server,
};
use tokio::net::UdpSocket;

use crate::ANY;

fn body(length: usize) -> Bytes {
    (0..length).map(|place| (place / 7) as u8).collect()
}

async fn echo(request: Request) -> Response {
    Response::content(request.payload().clone()).with_content_format(ContentFormat::OCTET_STREAM)
}

fn store() -> Resource {
    let put = |request: Request| async move {
        let is_whole = request.payload() == &body(100_000);
        if is_whole { Response::changed() } else { Response::bad_request("another body") }
    };
    Resource::new().fetch(echo).get(|| async { Response::content(body(100_000)) }).put(put)
}

/// A client, and how many requests it has sent.
async fn counting() -> (Client, Arc<AtomicU32>) {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let hook = move |event: &millpond_live::TraceEvent| {
        if matches!(event.what, Happened::Sent { code, .. } if code.is_request()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    (Client::builder().trace(hook).build().await.unwrap(), sent)
}

#[tokio::test]
async fn long_bodies_travel_in_bursts_both_ways() {
    let server = Server::builder().bind(ANY).q_block(true).route("/", store()).start().await.unwrap();
    let (client, sent) = counting().await;
    let uri = format!("coap://{}/", server.local_addr());
    let got = client.get(&uri).q_block().await.unwrap();
    assert_eq!(got.code(), Code::CONTENT);
    assert!(got.payload() == &body(100_000));
    // 98 blocks: the first, and a word for each set.
    let asked = sent.swap(0, Ordering::Relaxed);
    assert!(asked < 20, "{asked} requests");
    let put = client.put(&uri).q_block().payload(body(100_000)).await.unwrap();
    assert_eq!(put.code(), Code::CHANGED);
    // Those of a client that wants it for all.
    let client = Client::builder().q_block(true).build().await.unwrap();
    for length in [0, 1, 1_024, 1_025, 20_000] {
        let echoed = client.fetch(&uri).payload(body(length)).await.unwrap();
        assert_eq!(echoed.content_format(), Some(ContentFormat::OCTET_STREAM));
        assert!(echoed.payload() == &body(length), "{length} bytes");
    }
}

#[tokio::test]
async fn a_server_that_does_not_take_bursts_is_asked_block_by_block() {
    let server = Server::builder().bind(ANY).route("/", store()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    for _ in 0..2 {
        assert!(client.get(&uri).q_block().await.unwrap().payload() == &body(100_000));
        let put = client.put(&uri).q_block().payload(body(100_000)).await.unwrap();
        assert_eq!(put.code(), Code::CHANGED);
    }
}

/// Who has not proved its address gets no burst: one datagram with a forged source would send a whole body somewhere.
#[tokio::test]
async fn a_burst_leaves_only_for_an_address_that_is_proved() {
    let rule = AddressRule::LargeAnswersEverywhere;
    let builder = Server::builder().bind(ANY).q_block(true).verify_addresses(rule).route("/", store());
    let server = builder.start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    // A non-confirmable GET with Q-Block2 0/1/1024.
    socket.send_to(&[0x51, 1, 0, 1, 0x7f, 0xd1, 0x12, 0x0e], server.local_addr()).await.unwrap();
    let mut answer = [0; 2_000];
    let length = socket.recv(&mut answer).await.unwrap();
    assert!(length < 64 && answer[1] == Code::UNAUTHORIZED.to_byte(), "{:?}", &answer[..length]);
    // Our client proves it by itself.
    let client = Client::new().await.unwrap();
    let got = client.get(format!("coap://{}/", server.local_addr())).q_block().await.unwrap();
    assert!(got.payload() == &body(100_000));
}

/// Passes datagrams on and loses one in so many, both ways counted together.
async fn losing(to: SocketAddr, every: u32) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let front = UdpSocket::bind(ANY).await.unwrap();
    let back = UdpSocket::bind(ANY).await.unwrap();
    let address = front.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut there, mut here) = ([0; 2_000], [0; 2_000]);
        let (mut client, mut passed) = (None, 0_u32);
        loop {
            tokio::select! {
                Ok((length, from)) = front.recv_from(&mut there) => {
                    client = Some(from);
                    passed += 1;
                    if passed % every != 0 {
                        back.send_to(&there[..length], to).await.unwrap();
                    }
                }
                Ok((length, _)) = back.recv_from(&mut here) => {
                    passed += 1;
                    if let Some(client) = client.filter(|_| passed % every != 0) {
                        front.send_to(&here[..length], client).await.unwrap();
                    }
                }
            }
        }
    });
    (address, task)
}

#[tokio::test]
async fn what_is_lost_of_a_burst_is_sent_again() {
    let server = Server::builder().bind(ANY).q_block(true).route("/", store()).start().await.unwrap();
    let (front, relay) = losing(server.local_addr(), 23).await;
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{front}/");
    let (got, put) =
        tokio::join!(client.get(&uri).q_block().send(), client.put(&uri).q_block().payload(body(100_000)).send());
    let got = got.unwrap();
    assert_eq!((got.code(), got.payload().len()), (Code::CONTENT, 100_000));
    assert!(got.payload() == &body(100_000));
    assert_eq!(put.unwrap().code(), Code::CHANGED);
    relay.abort();
}

#[tokio::test]
async fn a_deadline_ends_a_burst() {
    let slow = Resource::new().get(std::future::pending::<Response>);
    let server = Server::builder().bind(ANY).q_block(true).route("/", slow).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let after = Duration::from_millis(50);
    let late = client.get(format!("coap://{}/", server.local_addr())).q_block().deadline(after).await;
    assert_eq!(late.unwrap_err(), Error::Deadline { after });
    while client.stats().await.unwrap().exchanges > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
