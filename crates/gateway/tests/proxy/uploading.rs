//! Long bodies between CoAP and CoAP, of which each side has its blocks.

use std::{
    io,
    path::Path,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
};

use millpond_gateway::{Config, Gateway};
use millpond_live::{Client, Code, LONGEST_SILENCE, Request, Resource, Response, Transport, number};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf},
    net::UdpSocket,
};

use super::{
    Upstream, all_to,
    bodies::{Got, bytes},
    client, gateway,
};

const LENGTH: usize = 300_000;

async fn upstream(got: &Got) -> (Upstream, [String; 2]) {
    let got = got.clone();
    let image = Resource::new().put(move |request: Request| got.clone().put(request)).streaming();
    let upstream = Upstream::start(|server| server.bind_tcp("127.0.0.1:0").route("/image", image)).await;
    let over_tcp = upstream.server.local_addr_of(Transport::Tcp).unwrap();
    let rules = [all_to(upstream.at()), all_to(over_tcp).replace("coap://", "coap+tcp://")];
    (upstream, rules)
}

async fn put(client: &Client, at: &str, body: &[u8]) -> Code {
    client.put(format!("{at}/image")).upload(&mut &body[..]).await.unwrap().code()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_body_is_forwarded_while_it_comes() {
    let body = bytes(LENGTH);
    let got = Got::default();
    let (_upstream, rules) = upstream(&got).await;
    for rule in rules {
        let (_gateway, at) = gateway(&rule).await;
        got.bytes.store(0, Ordering::Relaxed);
        let (mut sender, mut reader) = tokio::io::duplex(1_024);
        let request = client().await.put(format!("{at}/image")).upload_size(LENGTH as u64);
        let uploading = tokio::spawn(async move { request.upload(&mut reader).await });
        sender.write_all(&body[..150_000]).await.unwrap();
        got.begins().await;
        sender.write_all(&body[150_000..]).await.unwrap();
        drop(sender);
        assert_eq!(uploading.await.unwrap().unwrap().code(), Code::CHANGED);
        assert!(std::mem::take(&mut *got.whole.lock().unwrap()) == [body.clone()]);
        assert_eq!(got.size.load(Ordering::Relaxed), LENGTH);
        // One that the client has whole, and a short one.
        let client = client().await;
        let whole = client.put(format!("{at}/image")).payload(body.clone()).await.unwrap();
        assert_eq!((whole.code(), put(&client, &at, &bytes(5_000)).await), (Code::CHANGED, Code::CHANGED));
        assert!(std::mem::take(&mut *got.whole.lock().unwrap()) == [body.clone(), bytes(5_000)]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_refuses_in_the_middle_is_heard_at_once() {
    for code in [Code::REQUEST_ENTITY_INCOMPLETE, Code::REQUEST_ENTITY_TOO_LARGE, Code::SERVICE_UNAVAILABLE] {
        let got = Got { says: Some((50_000, code)), ..Got::default() };
        let (_upstream, rules) = upstream(&got).await;
        for rule in rules {
            let (_gateway, at) = gateway(&rule).await;
            let mut endless = tokio::io::repeat(7).take(u64::MAX);
            let answer = client().await.put(format!("{at}/image")).upload(&mut endless).await.unwrap();
            assert_eq!(answer.code(), code);
            assert!(u64::MAX - endless.limit() < 1 << 20, "it is not heard out");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_beyond_the_limit_ends_where_that_is_known() {
    let got = Got::default();
    let (_upstream, [rule, _]) = upstream(&got).await;
    let (_gateway, at) = gateway(&rule).await;
    let client = client().await;
    let told = client.put(format!("{at}/image")).upload_size(1_048_577).upload(&mut &bytes(1_048_577)[..]).await;
    let told = told.unwrap();
    assert_eq!((told.code(), got.at_rest().await), (Code::REQUEST_ENTITY_TOO_LARGE, 0));
    assert_eq!(told.options().uint(number::SIZE1), Some(1 << 20), "what is taken");
    let late = client.put(format!("{at}/image")).upload(&mut &bytes(1_048_577)[..]).await.unwrap();
    assert_eq!((late.code(), late.options().uint(number::SIZE1)), (Code::REQUEST_ENTITY_TOO_LARGE, Some(1 << 20)));
    assert!((1..=1_048_576).contains(&got.at_rest().await));
    assert!(got.whole.lock().unwrap().is_empty());
}

/// Places are for who goes on: a client that begins as many as it may and leaves them takes them from nobody for long.
#[tokio::test]
async fn who_is_silent_in_the_middle_of_its_bodies_leaves_their_places_to_others() {
    let got = Got::default();
    let (_upstream, [rule, _]) = upstream(&got).await;
    let (_gateway, at) = gateway(&rule).await;
    let at = at.strip_prefix("coap://").unwrap();
    let begin = async |socket: &UdpSocket, number: u16| {
        let [high, low] = number.to_be_bytes();
        // PUT of /image?NN, another one each time, whose first block has 16 bytes, and more follow.
        let query = [b'a' + (number >> 4) as u8, b'a' + (low & 15)];
        let head = [&[0x41, 3, high, low, low, 0xb5][..], b"image\x42", &query, &[0xc1, 0x08, 0xff]].concat();
        socket.send(&[&head[..], &[7; 16]].concat()).await.unwrap();
        let mut answer = [0; 1_500];
        loop {
            socket.recv(&mut answer).await.unwrap();
            match (answer[0] >> 4 & 3, Code::from_byte(answer[1])) {
                (_, Code::EMPTY) => {}
                (kind, code) => {
                    if kind == 0 {
                        socket.send(&[0x60, 0, answer[2], answer[3]]).await.unwrap();
                    }
                    return code;
                }
            }
        }
    };
    let one = async || {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(at).await.unwrap();
        socket
    };
    let (silent, other) = (one().await, one().await);
    let mut begun = 0;
    while begin(&silent, begun).await == Code::CONTINUE {
        begun += 1;
    }
    assert_eq!(begun, 256);
    assert_ne!(begin(&other, 0).await, Code::CONTINUE);
    tokio::time::pause();
    tokio::time::advance(LONGEST_SILENCE).await;
    tokio::time::resume();
    assert_eq!(begin(&other, 1).await, Code::CONTINUE);
}

/// By one whose connection ends, and by one that cannot go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_abandoned_is_never_whole() {
    let got = Got::default();
    let (_upstream, [rule, _]) = upstream(&got).await;
    let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\ncoap-tcp = [\"127.0.0.1:0\"]\n{rule}");
    let config = Config::from_toml(&text, "gateway.toml", Path::new("")).unwrap();
    let gateway = Gateway::builder(config).start().await.unwrap();
    for (transport, at) in gateway.local_addrs() {
        let scheme = if *transport == Transport::Tcp { "coap+tcp" } else { "coap" };
        got.bytes.store(0, Ordering::Relaxed);
        let client = client().await;
        let broken = bytes(200_000);
        let mut broken = (&broken[..]).chain(Broken);
        client.put(format!("{scheme}://{at}/image")).upload(&mut broken).await.unwrap_err();
        drop(client);
        got.begins().await;
        assert!(got.at_rest().await <= 200_000, "{scheme}");
        assert!(got.whole.lock().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_body_may_have_a_long_answer() {
    let twice = |request: Request| async move { Response::changed().with_payload(request.payload().repeat(2)) };
    let upstream = Upstream::start(|server| server.route("/twice", Resource::new().post(twice))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let body = bytes(100_000);
    for client in [client().await, client().await] {
        let answer = client.post(format!("{at}/twice")).upload(&mut &body[..]).await.unwrap();
        assert!(answer.payload() == &body.repeat(2)[..], "{}", answer.code());
    }
    assert_eq!(upstream.asked(), 2);
}

/// What cannot be read.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
}
