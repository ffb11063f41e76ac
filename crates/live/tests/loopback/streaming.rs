//! Bodies of which a client holds a block at a time.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use millpond_coap::{
    block::{Block, BlockSize},
    message::Message,
};
use millpond_live::{Bytes, Client, Code, Error, Request, Resource, Response, Server, number};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UdpSocket,
};

use crate::ANY;

pub(crate) fn image(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place / 7) as u8).collect()
}

/// Counts how much is written at once at most.
#[derive(Default)]
pub(crate) struct Counting {
    pub(crate) all: Vec<u8>,
    pub(crate) longest: usize,
}

impl AsyncWrite for Counting {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.longest = self.longest.max(bytes.len());
        self.all.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Gives a byte more each time than the time before, and counts.
pub(crate) struct Drips {
    pub(crate) left: Vec<u8>,
    pub(crate) next: usize,
    pub(crate) read: Arc<AtomicUsize>,
}

impl AsyncRead for Drips {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let count = self.next.min(room.remaining()).min(self.left.len());
        let given: Vec<u8> = self.left.drain(..count).collect();
        room.put_slice(&given);
        self.next += 1;
        self.read.fetch_add(count, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_long_body_is_written_block_by_block_and_told_on_its_way() {
    let body = Bytes::from(image(100_001));
    let read = body.clone();
    let firmware = Resource::new().get(move || {
        let read = read.clone();
        async move { Response::content(read).with_etag("v1") }
    });
    let empty = Resource::new().get(|| async { "" });
    let server = Server::builder().bind(ANY).route("/firmware", firmware).route("/empty", empty).start().await.unwrap();
    // It would not take so much at once.
    let client = Client::builder().longest_body(2_000).build().await.unwrap();
    let uri = |path: &str| format!("coap://{}/{path}", server.local_addr());
    for size in [1_024, 256] {
        let (mut writer, told) = (Counting::default(), Arc::new(Mutex::new(Vec::new())));
        let telling = Arc::clone(&told);
        let request = client.get(uri("firmware")).block_size(size);
        let request = request.progress(move |progress| {
            assert_eq!(progress.total, Some(100_001));
            telling.lock().unwrap().push(progress.received);
        });
        let answer = request.download(&mut writer).await.unwrap();
        assert_eq!((answer.code(), answer.payload().len()), (Code::CONTENT, 0));
        assert!(writer.all == body && writer.longest == usize::from(size));
        let steps: Vec<usize> = (1..).map(|n| n * usize::from(size)).take_while(|end| *end < 100_001).collect();
        assert_eq!(*told.lock().unwrap(), [&steps[..], &[100_001]].concat());
    }
    let mut writer = Counting::default();
    assert_eq!(client.get(uri("empty")).download(&mut writer).await.unwrap().code(), Code::CONTENT);
    let missing = client.get(uri("missing")).download(&mut writer).await.unwrap();
    assert_eq!((missing.code(), writer.all.len()), (Code::NOT_FOUND, 0));
}

#[tokio::test]
async fn a_long_body_is_read_as_it_is_sent() {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let taking = Arc::clone(&taken);
    let store = Resource::new().put(move |request: Request| {
        taking.lock().unwrap().push(request.payload().clone());
        async { Code::CHANGED }
    });
    let server = Server::builder().bind(ANY).block_size(512).longest_body(60_000).route("/store", store);
    let server = server.start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/store", server.local_addr());
    for length in [0, 1, 511, 512, 1_024, 1_025, 50_000] {
        let (body, read) = (image(length), Arc::new(AtomicUsize::new(0)));
        let (reading, ahead) = (Arc::clone(&read), Arc::new(AtomicUsize::new(0)));
        let most = Arc::clone(&ahead);
        let request = client.put(&uri).progress(move |progress| {
            most.fetch_max(reading.load(Ordering::Relaxed) - progress.sent, Ordering::Relaxed);
        });
        let mut reader = Drips { left: body.clone(), next: 1, read };
        assert_eq!(request.upload(&mut reader).await.unwrap().code(), Code::CHANGED, "{length}");
        assert!(taken.lock().unwrap().pop().unwrap() == body, "{length}");
        assert!(ahead.load(Ordering::Relaxed) <= 1_025, "no more is read than is sent");
    }
    let mut reader = Drips { left: image(70_000), next: 1, read: Arc::default() };
    let refused = client.put(&uri).upload(&mut reader).await.unwrap();
    assert_eq!(refused.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert!(!reader.left.is_empty(), "what is refused is not read to its end");
    let read = Arc::new(AtomicUsize::new(0));
    let mut reader = Drips { left: image(70_000), next: 1, read: Arc::clone(&read) };
    let refused = client.put(&uri).upload_size(70_000).upload(&mut reader).await.unwrap();
    assert_eq!(refused.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert!(read.load(Ordering::Relaxed) <= 1_025, "a server that is told how long it is refuses its first block");
}

#[tokio::test]
async fn a_body_that_changes_on_its_way_is_an_error() {
    let client = Client::new().await.unwrap();
    for (code, etag, format) in [(Code::CONTENT, 1, 0), (Code::VALID, 0, 0), (Code::CONTENT, 0, 1)] {
        let socket = UdpSocket::bind(ANY).await.unwrap();
        let uri = format!("coap://{}/", socket.local_addr().unwrap());
        // Answers with the block that is asked for, from the second one on of another state.
        let server = tokio::spawn(async move {
            let mut bytes = [0; 100];
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                let request = Message::parse(&bytes[..length]).unwrap();
                let block = Block::read(request.option(number::BLOCK2).unwrap(), false).unwrap();
                let answer = Block { more: true, ..block }.value();
                let (code, etag, format) = if block.number == 0 { (Code::CONTENT, 0, 0) } else { (code, etag, format) };
                let id = request.id.0.to_be_bytes();
                let token = request.token.as_bytes();
                let head = [0x60 | u8::try_from(token.len()).unwrap(), code.to_byte(), id[0], id[1]];
                let options = [0x41, etag, 0x81, format, 0xb1, answer.as_bytes()[0], 0xff];
                let datagram = [&head[..], token, &options, &[7; 16]].concat();
                socket.send_to(&datagram, from).await.unwrap();
            }
        });
        let mut writer = Counting::default();
        let download = client.get(&uri).block_size(16).progress(|progress| assert_eq!(progress.received, 16));
        let changed = download.download(&mut writer).await.unwrap_err();
        assert!(matches!(&changed, Error::Transfer { reason, .. } if reason.contains("changed")), "{changed}");
        assert_eq!(writer.all, [7; 16], "of the other state nothing is written");
        server.abort();
    }
}

/// A proof may run out in the middle of a long body. A server that never has enough of them is left.
#[tokio::test]
async fn a_proof_that_is_wanted_in_the_middle_of_a_body_is_given_and_endless_ones_are_not() {
    for (wanted, expected) in [(1, Code::CONTENT), (u8::MAX, Code::UNAUTHORIZED)] {
        let socket = UdpSocket::bind(ANY).await.unwrap();
        let uri = format!("coap://{}/", socket.local_addr().unwrap());
        let came = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&came);
        // Wants so many proofs before each of three blocks, each with a value of its own.
        let server = tokio::spawn(async move {
            let (mut bytes, mut left, mut last, mut answered) = ([0; 100], wanted, 0, None);
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                let request = Message::parse(&bytes[..length]).unwrap();
                // What is sent again where the machine is slow was answered.
                if answered.replace(request.id) == Some(request.id) {
                    continue;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                let block = Block::read(request.option(number::BLOCK2).unwrap(), false).unwrap();
                let (id, token) = (request.id.0.to_be_bytes(), request.token.as_bytes());
                let head = |code: Code| [0x60 | u8::try_from(token.len()).unwrap(), code.to_byte(), id[0], id[1]];
                let datagram = if left > 0 {
                    (left, last) = (left - 1, last + 1);
                    [&head(Code::UNAUTHORIZED)[..], token, b"\xd1\xef", &[last]].concat()
                } else {
                    assert_eq!(request.option(number::ECHO), Some(&[last][..]));
                    left = wanted;
                    let value = Block { more: block.number < 2, ..block }.value();
                    [&head(Code::CONTENT)[..], token, b"\xd1\x0a", value.as_bytes(), b"\xff", &[7; 16]].concat()
                };
                socket.send_to(&datagram, from).await.unwrap();
            }
        });
        let client = Client::new().await.unwrap();
        let mut writer = Counting::default();
        let answer = client.get(&uri).block_size(16).download(&mut writer).await.unwrap();
        assert_eq!(answer.code(), expected);
        let (blocks, requests) = if wanted == 1 { (3, 6) } else { (0, 3) };
        assert_eq!((writer.all.len(), came.load(Ordering::Relaxed)), (16 * blocks, requests));
        server.abort();
    }
}

/// A server that cuts a long body into tiny blocks, whatever is asked for, would be asked for ever.
#[tokio::test]
async fn small_blocks_of_the_servers_choice_are_enough_at_65536() {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let uri = format!("coap://{}/", socket.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut bytes = [0; 100];
        while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
            let request = Message::parse(&bytes[..length]).unwrap();
            let (id, token) = (request.id.0.to_be_bytes(), request.token.as_bytes());
            let number = request.option(number::BLOCK2).map_or(0, |asked| Block::read(asked, false).unwrap().number);
            let value = Block { number, more: true, size: BlockSize::B16 }.value();
            let head = [0x60 | u8::try_from(token.len()).unwrap(), Code::CONTENT.to_byte(), id[0], id[1]];
            let option = [0xd0 | u8::try_from(value.as_bytes().len()).unwrap(), 10];
            let datagram = [&head[..], token, &option, value.as_bytes(), b"\xff", &[7; 16]].concat();
            socket.send_to(&datagram, from).await.unwrap();
        }
    });
    let client = Client::builder().most_sockets(3).build().await.unwrap();
    let mut writer = Counting::default();
    let error = client.get(&uri).download(&mut writer).await.unwrap_err();
    assert!(matches!(&error, Error::Transfer { reason, .. } if reason.contains("65536 of which")), "{error}");
    assert_eq!(writer.all.len(), 65_537 * 16);
    server.abort();
}
