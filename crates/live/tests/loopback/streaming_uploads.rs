//! Bodies that come while their handlers run, and answers that are whole.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use millpond_coap::message::Message;
use millpond_live::{
    AddressRule, Client, Code, HandlerError, Observable, Request, Resource, Response, Server, ServerBuilder, number,
};
use tokio::{
    net::UdpSocket,
    sync::{Semaphore, mpsc},
};

use crate::ANY;

/// Answers with what came, twice; tells how much of it came, each time.
fn twice(came: mpsc::UnboundedSender<usize>) -> Resource {
    let twice = move |request: Request| {
        let came = came.clone();
        async move {
            let (mut body, mut all) = (request.body(), Vec::new());
            while let Some(chunk) = body.chunk().await? {
                all.extend_from_slice(&chunk);
                came.send(all.len())?;
            }
            Ok::<_, HandlerError>(Response::content([&all[..], &all].concat()))
        }
    };
    Resource::new().post(twice)
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

fn builder() -> ServerBuilder {
    Server::builder().bind(ANY).bind_tcp(ANY)
}

#[tokio::test]
async fn a_body_comes_in_pieces_and_its_answer_is_cut_as_any_other() {
    let (came, mut told) = mpsc::unbounded_channel();
    let state = Observable::new();
    let resource = twice(came).get(|| async { "state" }).observable(&state).streaming_uploads(1_024);
    let server = builder().route("/up", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    for (scheme, at) in [("coap", server.local_addr()), ("coap+tcp", server.local_addrs()[1].1)] {
        let uri = format!("{scheme}://{at}/up");
        for (length, pieces) in [(10, 1), (1_024, 1), (200_000, 4)] {
            let answer = client.post(&uri).payload(body(length)).await.unwrap();
            assert!(answer.payload() == &[body(length), body(length)].concat()[..], "{scheme} {length}");
            let told: Vec<_> = std::iter::from_fn(|| told.try_recv().ok()).collect();
            assert!(told.len() >= pieces && told.last() == Some(&length), "{scheme} {length}: {}", told.len());
        }
        let mut observation = client.get(&uri).observe().await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("state"));
    }
}

/// One that knows nothing of Echo, and gets no acknowledgement wrong.
pub(crate) struct Plain(UdpSocket, u8);

impl Plain {
    pub(crate) async fn before(server: &Server) -> Self {
        let socket = UdpSocket::bind(ANY).await.unwrap();
        socket.connect(server.local_addr()).await.unwrap();
        Self(socket, 0)
    }

    /// What a POST of this body with these options behind its path is answered, in a message of its own.
    pub(crate) async fn post(&mut self, options: &[u8], body: &[u8]) -> Vec<u8> {
        self.1 += 1;
        let head = [&[0x41, 2, 0, self.1][..], b"t\xb2up", options].concat();
        let request = if body.is_empty() { head } else { [&head[..], b"\xff", body].concat() };
        self.ask(&request).await
    }

    async fn ask(&self, request: &[u8]) -> Vec<u8> {
        self.0.send(request).await.unwrap();
        let mut answer = vec![0; 1_500];
        loop {
            let length = self.0.recv(&mut answer).await.unwrap();
            if answer[0] & 0x30 == 0 {
                self.0.send(&[0x60, 0, answer[2], answer[3]]).await.unwrap();
            }
            if answer[1] != 0 {
                answer.truncate(length);
                return answer;
            }
        }
    }
}

/// The only byte of Block1, of 16 bytes.
pub(crate) fn block1(number: u8, more: bool) -> [u8; 3] {
    [0xd1, 3, number << 4 | u8::from(more) << 3]
}

pub(crate) fn code(answer: &[u8]) -> Code {
    Message::parse(answer).unwrap().code
}

#[tokio::test]
async fn who_cannot_prove_its_address_sends_a_body_and_gets_a_long_answer_in_small_blocks() {
    let (came, mut told) = mpsc::unbounded_channel();
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let layer = move |request, next: millpond_live::Next| {
        counting.fetch_add(1, Ordering::Relaxed);
        next.run(request)
    };
    let builder = builder().verify_addresses(AddressRule::LargeAnswersEverywhere).layer(layer);
    let server = builder.route("/up", twice(came).streaming_uploads(1_024)).start().await.unwrap();
    let (mut client, sent) = (Plain::before(&server).await, body(232));
    let parts: Vec<_> = sent.chunks(16).collect();
    for (number, part) in parts[..14].iter().enumerate() {
        let options = block1(number as u8, true);
        assert_eq!(code(&client.post(&options, part).await), Code::CONTINUE);
        assert_eq!(told.recv().await, Some((number + 1) * 16), "before the rest has come");
        if number == 0 {
            // In another message it would begin another body.
            continue;
        }
        // Once more, in a message of its own and as it was.
        let again = client.post(&options, part).await;
        assert_eq!(Message::parse(&again).unwrap().option(number::BLOCK1), Some(&options[2..]));
        let datagram = [&[0x41, 2, 0, client.1][..], b"t\xb2up", &options, b"\xff", part].concat();
        assert_eq!(client.ask(&datagram).await, again);
    }
    let last = client.post(&block1(14, false), parts[14]).await;
    let again = client.post(&block1(14, false), parts[14]).await;
    for answer in [&last, &again] {
        let answer = Message::parse(answer).unwrap();
        assert_eq!((answer.code, answer.option(number::BLOCK1)), (Code::CONTENT, Some(&[0xe0][..])));
        assert_eq!(answer.option(number::BLOCK2).unwrap().len(), 1);
        assert!(answer.option(number::ECHO).is_some());
    }
    let mut all = Message::parse(&last).unwrap().payload().to_vec();
    let size = Message::parse(&last).unwrap().option(number::BLOCK2).unwrap()[0] & 7;
    while all.len() < 2 * sent.len() {
        let number = u8::try_from(all.len() >> (size + 4)).unwrap();
        let answer = client.post(&[0xc1, number << 4 | size], &[]).await;
        assert_eq!(code(&answer), Code::CONTENT);
        all.extend_from_slice(Message::parse(&answer).unwrap().payload());
    }
    assert_eq!(all, [&sent[..], &sent].concat());
    assert_eq!((asked.load(Ordering::Relaxed), told.try_recv().ok()), (1, Some(232)), "the handler was asked once");
    // Another body, with the same name.
    assert_eq!(code(&client.post(&block1(0, true), parts[0]).await), Code::CONTINUE);
    assert_eq!(code(&client.post(&block1(14, false), parts[14]).await), Code::REQUEST_ENTITY_INCOMPLETE);
}

/// What handlers hold of bodies is for unvalidated addresses in part, and who gets none of it can prove its own.
#[tokio::test]
async fn bodies_of_unvalidated_addresses_leave_room_for_those_of_others() {
    let (came, _told) = mpsc::unbounded_channel();
    let rule = AddressRule::LargeAnswersEverywhere;
    let resource = twice(came).streaming_uploads(12 << 20);
    let server = builder().verify_addresses(rule).route("/up", resource).start().await.unwrap();
    let mut codes = Vec::new();
    for _ in 0..2 {
        codes.push(code(&Plain::before(&server).await.post(&block1(0, true), &[1; 16]).await));
    }
    assert_eq!(codes, [Code::CONTINUE, Code::UNAUTHORIZED]);
    let client = Client::new().await.unwrap();
    let answer = client.post(format!("coap://{}/up", server.local_addr())).payload(body(3_000)).await.unwrap();
    assert!(answer.payload() == &[body(3_000), body(3_000)].concat()[..]);
}

#[tokio::test]
async fn who_answers_in_the_middle_is_heard_with_the_next_block() {
    let goes_on = Arc::new(Semaphore::new(0));
    let permits = Arc::clone(&goes_on);
    let refuse = move |request: Request| {
        let goes_on = Arc::clone(&permits);
        async move {
            request.body().chunk().await?;
            goes_on.acquire().await?.forget();
            Ok::<_, HandlerError>((Code::CONFLICT, "no"))
        }
    };
    let resource = Resource::new().post(refuse).streaming_uploads(1_024);
    let server = builder().route("/up", resource).start().await.unwrap();
    let mut client = Plain::before(&server).await;
    assert_eq!(code(&client.post(&block1(0, true), &[1; 16]).await), Code::CONTINUE);
    goes_on.add_permits(1);
    let refused = client.post(&block1(1, true), &[1; 16]).await;
    let answer = Message::parse(&refused).unwrap();
    assert_eq!(
        (answer.code, answer.payload(), answer.option(number::BLOCK1)),
        (Code::CONFLICT, &b"no"[..], Some(&[0x18][..]))
    );
}
