//! Servers that say what cannot be.

use millpond_coap::message::{Kind, Message, Writer};
use millpond_live::{Client, Code, number};
use tokio::net::UdpSocket;

use crate::ANY;

/// Answers every request with this; reports what each request had for the option.
async fn serve(
    socket: UdpSocket,
    code: Code,
    options: Vec<(u16, Vec<u8>)>,
    asks: tokio::sync::mpsc::UnboundedSender<usize>,
) {
    let mut room = [0; 2_048];
    loop {
        let (length, from) = socket.recv_from(&mut room).await.unwrap();
        let request = Message::parse(&room[..length]).unwrap();
        asks.send(request.option(options[0].0).map_or(0, <[u8]>::len)).unwrap();
        let mut answer = Vec::new();
        let mut writer = Writer::start(&mut answer, Kind::Acknowledgement, code, request.id, request.token);
        for (number, value) in &options {
            writer.option(*number, value).unwrap();
        }
        writer.payload(b"x").unwrap();
        writer.finish().unwrap();
        socket.send_to(&answer, from).await.unwrap();
    }
}

/// What a client gets of such a server, asked twice, and how long the option was in each request.
async fn asked_twice(code: Code, options: Vec<(u16, Vec<u8>)>) -> (Vec<Code>, Vec<usize>) {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let uri = format!("coap://{}/r", socket.local_addr().unwrap());
    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let server = tokio::spawn(serve(socket, code, options, asks));
    let client = Client::builder().cache(1 << 20).build().await.unwrap();
    let mut codes = Vec::new();
    for _ in 0..2 {
        codes.push(client.get(&uri).await.unwrap().code());
    }
    server.abort();
    let _ = server.await;
    let mut lengths = Vec::new();
    while let Ok(length) = asked.try_recv() {
        lengths.push(length);
    }
    (codes, lengths)
}

/// It would make the next request longer than a datagram, so that the resource could not be asked for any more.
#[tokio::test]
async fn an_entity_tag_that_is_too_long_is_not_asked_about() {
    for (length, returned) in [(8, 8), (9, 0), (1_100, 0)] {
        let stale = |etag| vec![(number::ETAG, etag), (number::MAX_AGE, Vec::new())];
        let (codes, lengths) = asked_twice(Code::CONTENT, stale(vec![7; length])).await;
        assert_eq!((codes, lengths), (vec![Code::CONTENT; 2], vec![0, returned]), "{length}");
    }
}

#[tokio::test]
async fn an_echo_that_is_too_long_is_not_returned() {
    for length in [41, 1_100] {
        let (codes, lengths) = asked_twice(Code::UNAUTHORIZED, vec![(number::ECHO, vec![7; length])]).await;
        assert_eq!((codes, lengths), (vec![Code::UNAUTHORIZED; 2], vec![0; 2]), "{length}");
    }
}

/// 136 years, and what an option of five bytes says nothing of.
#[tokio::test]
async fn an_answer_may_be_fresh_for_ever() {
    let forever = vec![(number::MAX_AGE, vec![0xff; 4])];
    assert_eq!(asked_twice(Code::CONTENT, forever).await, (vec![Code::CONTENT; 2], vec![0]));
    let busy = vec![(number::MAX_AGE, vec![0xff; 4])];
    assert_eq!(asked_twice(Code::TOO_MANY_REQUESTS, busy).await.1.len(), 2, "errors are told and not heeded");
    let long = vec![(number::MAX_AGE, vec![0xff; 5])];
    assert_eq!(asked_twice(Code::CONTENT, long).await, (vec![Code::CONTENT; 2], vec![0]), "a minute");
}

/// Once for the address, once for the sequence numbers of OSCORE, and then it is the server's answer.
#[tokio::test]
async fn a_server_that_never_has_enough_of_proofs_is_given_two() {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let uri = format!("coap://{}/r", socket.local_addr().unwrap());
    let (asks, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let server = tokio::spawn(async move {
        let mut room = [0; 2_048];
        for number in 1.. {
            let (length, from) = socket.recv_from(&mut room).await.unwrap();
            let request = Message::parse(&room[..length]).unwrap();
            asks.send(request.option(number::ECHO).map(<[u8]>::to_vec)).unwrap();
            let mut answer = Vec::new();
            let (kind, code) = (Kind::Acknowledgement, Code::UNAUTHORIZED);
            let mut writer = Writer::start(&mut answer, kind, code, request.id, request.token);
            // The same twice is no reason to ask again.
            writer.option(number::ECHO, &[number.min(5)]).unwrap();
            writer.finish().unwrap();
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    let client = Client::new().await.unwrap();
    for given in
        [&[None, Some(vec![1]), Some(vec![2])][..], &[None, Some(vec![4]), Some(vec![5])], &[None, Some(vec![5])]]
    {
        assert_eq!(client.get(&uri).await.unwrap().code(), Code::UNAUTHORIZED);
        let asked: Vec<_> = std::iter::from_fn(|| asked.try_recv().ok()).collect();
        assert_eq!(asked, given);
    }
    server.abort();
}
