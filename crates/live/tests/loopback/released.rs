//! Servers that want a connection to end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use millpond_coap::stream::FrameReader;
use millpond_live::{Client, Error};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::ANY;

/// Settings that take blocks, and then a Release.
const SETTINGS: &[u8] = b"\x10\xe1\x40";
const RELEASE: &[u8] = b"\0\xe4";

/// The token of the request that comes, behind the client's settings if it is the first.
async fn asked(stream: &mut TcpStream) -> Vec<u8> {
    let mut came = Vec::new();
    loop {
        assert!(stream.read_buf(&mut came).await.unwrap() > 0, "it goes away");
        // A path of one letter is two bytes, and whatever stands behind that is ours to ignore.
        let code = came.windows(2).position(|two| two[1] == 1 && (1..=8).contains(&(two[0] & 15)) && two[0] >> 4 >= 2);
        if let Some(at) = code {
            let end = at + 2 + usize::from(came[at] & 15);
            if came.len() >= end {
                return came[at + 2..end].to_vec();
            }
        }
    }
}

fn content(token: &[u8], payload: u8) -> Vec<u8> {
    [&[0x20 | token.len() as u8, 0x45], token, &[0xff, payload]].concat()
}

#[tokio::test]
async fn what_is_asked_after_a_release_goes_over_another_connection_and_what_was_asked_is_answered() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/r", listener.local_addr().unwrap());
    let client = Client::new().await.unwrap();
    let first = tokio::spawn(client.get(&uri).send());
    let (mut old, _) = listener.accept().await.unwrap();
    let early = asked(&mut old).await;
    // It never ends the connection by itself.
    old.write_all(&[SETTINGS, RELEASE].concat()).await.unwrap();
    // What is asked before the Release came may have left.
    let answer = loop {
        let later = tokio::spawn(client.get(&uri).send());
        tokio::select! {
            accepted = listener.accept() => {
                let mut new = accepted.unwrap().0;
                new.write_all(SETTINGS).await.unwrap();
                let token = asked(&mut new).await;
                new.write_all(&content(&token, b'2')).await.unwrap();
                break later.await.unwrap();
            }
            // It had left before.
            early = asked(&mut old) => old.write_all(&content(&early, b'1')).await.unwrap(),
        }
    };
    assert_eq!(answer.unwrap().text().unwrap(), "2");
    old.write_all(&content(&early, b'0')).await.unwrap();
    assert_eq!(first.await.unwrap().unwrap().text().unwrap(), "0");
    let mut rest = Vec::new();
    assert!(old.read_to_end(&mut rest).await.is_ok(), "the client ends what it was asked to end");
}

#[tokio::test]
async fn an_observation_over_a_connection_that_is_released_ends_and_says_so() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/r", listener.local_addr().unwrap());
    let client = Client::new().await.unwrap();
    let observing = tokio::spawn(client.get(&uri).give_up_after(std::time::Duration::ZERO).observe());
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(SETTINGS).await.unwrap();
    let token = asked(&mut stream).await;
    let state = [&[0x30 | token.len() as u8, 0x45], &token[..], b"\x60\xff0"].concat();
    stream.write_all(&[&state[..], RELEASE].concat()).await.unwrap();
    let mut observation = observing.await.unwrap().unwrap();
    let end = loop {
        match observation.next().await {
            Some(Ok(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(end, Some(Err(Error::ConnectionLost { .. }))), "{end:?}");
}

/// Answers what comes until its end, and counts how often each body came.
async fn answer(mut stream: TcpStream, came: Arc<Mutex<BTreeMap<Vec<u8>, u32>>>) -> usize {
    let (mut reader, mut room, mut count) = (FrameReader::new(1 << 20), vec![0; 65_536], 0);
    loop {
        let length = match stream.read(&mut room).await {
            Ok(0) | Err(_) => return count,
            Ok(length) => length,
        };
        reader.push(&room[..length]);
        let mut answers = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            if frame.code.is_request() {
                *came.lock().unwrap().entry(frame.payload()[..4].to_vec()).or_default() += 1;
                answers.extend(content(frame.token.as_bytes(), b'!'));
                count += 1;
            }
        }
        stream.write_all(&answers).await.unwrap();
    }
}

#[tokio::test]
async fn what_has_not_left_when_a_release_comes_goes_over_another_connection_and_all_of_it_once() {
    const MANY: u32 = 5_000;
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/r", listener.local_addr().unwrap());
    let client = Client::new().await.unwrap();
    let ask = |number: u32| {
        let body = [&number.to_be_bytes()[..], &[0; 996]].concat();
        tokio::spawn(client.post(&uri).payload(body).send())
    };
    let asked: Vec<_> = (0..MANY).map(ask).collect();
    let came = Arc::<Mutex<BTreeMap<_, _>>>::default();
    let serving = Arc::clone(&came);
    let served = tokio::spawn(async move {
        let mut served = Vec::new();
        for release in [RELEASE, b""] {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(&[SETTINGS, release].concat()).await.unwrap();
            served.push(tokio::spawn(answer(stream, Arc::clone(&serving))));
        }
        served
    });
    for asked in asked {
        assert_eq!(asked.await.unwrap().unwrap().text(), Ok("!"));
    }
    drop(client);
    for served in served.await.unwrap() {
        assert!(served.await.unwrap() > 0);
    }
    let came = came.lock().unwrap();
    assert!(came.len() == MANY as usize && came.values().all(|times| *times == 1));
}

#[tokio::test]
async fn a_server_that_releases_whatever_is_begun_is_not_dialled_again_and_again() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/r", listener.local_addr().unwrap());
    let client = Client::new().await.unwrap();
    let made = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&made);
    let releasing = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            *counted.lock().unwrap() += 1;
            // Who has gone already has nothing to read.
            let _ = stream.write_all(&[SETTINGS, RELEASE].concat()).await;
            let _ = stream.shutdown().await;
            // Read to its end: a reset would take the Release with it.
            tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
        }
    });
    for _ in 0..10 {
        // Several at a time, some of which meet the Release of the others.
        let asked: Vec<_> = (0..10).map(|_| tokio::spawn(client.get(&uri).send())).collect();
        for asked in asked {
            let lost = asked.await.unwrap().unwrap_err();
            assert!(matches!(lost, Error::ConnectionLost { .. }), "{lost}");
        }
    }
    releasing.abort();
    let made = *made.lock().unwrap();
    assert!((10..=200).contains(&made), "{made} connections for 100 requests");
}
