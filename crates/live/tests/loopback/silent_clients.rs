//! Clients that are silent between two blocks of a body: their places are for others who want one, and theirs if nobody does.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use millpond_live::{Client, Code, HandlerError, LONGEST_SILENCE, Request, Resource, Response, Server};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use crate::{
    ANY,
    streaming_uploads::{Plain, block1, code},
};

async fn silence() {
    tokio::time::pause();
    tokio::time::advance(LONGEST_SILENCE).await;
    tokio::time::resume();
}

#[tokio::test]
async fn who_is_silent_in_the_middle_of_its_body_leaves_its_place_to_who_wants_it() {
    let count = |request: Request| async move {
        let (mut body, mut count) = (request.body(), 0);
        while let Some(chunk) = body.chunk().await? {
            count += chunk.len();
        }
        Ok::<_, HandlerError>(count.to_string())
    };
    // One place for clients whose addresses are not validated.
    let resource = Resource::new().post(count).streaming_uploads(1_024);
    let server = Server::builder().bind(ANY).most_running(4).route("/up", resource).start().await.unwrap();
    let (mut first, mut second) = (Plain::before(&server).await, Plain::before(&server).await);
    assert_eq!(code(&first.post(&block1(0, true), &[1; 16]).await), Code::CONTINUE);
    assert_eq!(code(&second.post(&block1(0, true), &[2; 16]).await), Code::UNAUTHORIZED);
    silence().await;
    assert_eq!(code(&first.post(&block1(1, true), &[1; 16]).await), Code::CONTINUE, "nobody wanted it");
    assert_eq!(code(&second.post(&block1(0, true), &[2; 16]).await), Code::UNAUTHORIZED, "it went on");
    silence().await;
    assert_eq!(code(&second.post(&block1(0, true), &[2; 16]).await), Code::CONTINUE);
    assert_eq!(code(&first.post(&block1(2, false), &[1; 16]).await), Code::SERVICE_UNAVAILABLE);
    assert_eq!(code(&second.post(&block1(1, false), &[2; 16]).await), Code::CONTENT);
}

#[tokio::test]
async fn who_asks_for_no_more_of_its_answer_leaves_its_place_to_who_wants_it() {
    let read = Arc::new(AtomicUsize::new(0));
    let reading = Arc::clone(&read);
    let endless = move || {
        let endless = Endless(Arc::clone(&reading));
        async move { Response::stream(endless) }
    };
    let resource = Resource::new().get(endless).streaming();
    let server = Server::builder().bind(ANY).most_running(1).route("/down", resource).start().await.unwrap();
    let uri = format!("coap://{}/down", server.local_addr());
    let (first, second) = (Client::new().await.unwrap(), Client::new().await.unwrap());
    let mut reading = first.get(&uri).send_streaming(|_| 0).await.unwrap().take_body().unwrap();
    assert_eq!(reading.read_u8().await.unwrap(), 7);
    let ask = || second.get(&uri).send_streaming(|_| 0);
    assert_eq!(ask().await.unwrap().code(), Code::SERVICE_UNAVAILABLE);
    // As much as the client has room for goes before: all of it, once there is no more for a second.
    let (mut before, mut looks) = (0, 0);
    while looks < 5 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = read.load(Ordering::Relaxed);
        looks = if now == before { looks + 1 } else { 0 };
        before = now;
    }
    silence().await;
    let mut other = ask().await.unwrap().take_body().unwrap();
    assert_eq!(other.read_u8().await.unwrap(), 7);
    // All that has come of it, and then there is no more.
    let mut rest = Vec::new();
    assert!(reading.read_to_end(&mut rest).await.is_err());
}

/// Counts how often it is read.
struct Endless(Arc<AtomicUsize>);

impl AsyncRead for Endless {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        room.put_slice(&[7]);
        Poll::Ready(Ok(()))
    }
}
