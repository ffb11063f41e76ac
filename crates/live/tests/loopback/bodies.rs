use std::{
    future::IntoFuture,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_live::{Bytes, Client, Code, ContentFormat, Error, Progress, Request, Resource, Response, Server};

use crate::ANY;

fn body(length: usize) -> Bytes {
    (0..length).map(|place| (place / 7) as u8).collect()
}

async fn echo(request: Request) -> Response {
    Response::content(request.payload().clone()).with_content_format(ContentFormat::OCTET_STREAM)
}

#[tokio::test]
async fn large_bodies_travel_both_ways() {
    let server = Server::builder().bind(ANY).route("/echo", Resource::new().fetch(echo)).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/echo", server.local_addr());
    for length in [0, 1, 1_024, 1_025, 20_000, 100_000] {
        let response = client.fetch(&uri).payload(body(length)).await.unwrap();
        assert_eq!((response.code(), response.payload()), (Code::CONTENT, &body(length)), "{length} bytes");
        assert_eq!(response.content_format(), Some(ContentFormat::OCTET_STREAM));
    }
    for size in [16, 64, 512] {
        let response = client.fetch(&uri).payload(body(3_000)).block_size(size).await.unwrap();
        assert_eq!(response.payload(), &body(3_000), "blocks of {size} bytes");
    }
}

#[tokio::test]
async fn many_bodies_travel_at_the_same_time() {
    let server = Server::builder().bind(ANY).route("/echo/{n}", Resource::new().fetch(echo)).start().await.unwrap();
    let client = Client::builder().nstart(8).build().await.unwrap();
    let tasks: Vec<_> = (0..40_usize)
        .map(|n| {
            let request = client.fetch(format!("coap://{}/echo/{n}", server.local_addr())).payload(body(2_000 + n));
            tokio::spawn(async move { (n, request.await) })
        })
        .collect();
    for task in tasks {
        let (n, response) = task.await.unwrap();
        assert_eq!(response.unwrap().payload(), &body(2_000 + n));
    }
}

#[tokio::test]
async fn bodies_over_the_limits_are_refused_on_either_side() {
    let resource =
        Resource::new().get(|| async { Response::content(body(5_000)) }).put(|| async { Response::changed() });
    let server = Server::builder().bind(ANY).longest_body(4_000).route("/", resource).start().await.unwrap();
    let client = Client::builder().longest_body(4_999).build().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    assert_eq!(client.get(&uri).await.unwrap_err(), Error::BodyTooLarge { limit: 4_999 });
    let refused = client.put(&uri).payload(body(4_001)).await.unwrap();
    assert_eq!(refused.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(client.put(&uri).payload(body(4_000)).await.unwrap().code(), Code::CHANGED);
}

/// However long it is: a server that cannot keep a body asks for it anew with each block.
#[tokio::test]
async fn the_longest_body_is_made_once() {
    const LENGTH: usize = (16 << 20) + 1;
    let made = Arc::new(AtomicUsize::new(0));
    let resource = Resource::new().get({
        let made = made.clone();
        move || {
            made.fetch_add(1, Ordering::Relaxed);
            async { Response::content(vec![b'.'; LENGTH]) }
        }
    });
    let server = Server::builder().bind(ANY).longest_body(LENGTH).route("/", resource).start().await.unwrap();
    let client = Client::builder().longest_body(LENGTH).build().await.unwrap();
    let asked = client.get(format!("coap://{}/", server.local_addr())).into_future();
    let made_often = async {
        // Once more if the address has to be proved first.
        while made.load(Ordering::Relaxed) <= 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        response = asked => assert_eq!(response.unwrap().payload().len(), LENGTH),
        () = made_often => panic!("it was made again and again"),
    }
}

#[tokio::test]
async fn a_representation_that_the_client_has_is_not_sent_again() {
    let resource = Resource::new().get(|| async { Response::content("state").with_etag("tag").with_max_age(9) });
    let server = Server::builder().bind(ANY).route("/", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    let valid = client.get(&uri).option(millpond_live::number::ETAG, "tag").await.unwrap();
    assert_eq!((valid.code(), valid.payload().len()), (Code::VALID, 0));
    assert_eq!(valid.options().uint(millpond_live::number::MAX_AGE), Some(9));
    let content = client.get(&uri).option(millpond_live::number::ETAG, "old").await.unwrap();
    assert_eq!(content.text(), Ok("state"));
}

#[tokio::test]
async fn how_far_a_long_body_has_come_is_told() {
    let server = Server::builder().bind(ANY).route("/echo", Resource::new().fetch(echo)).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    let request = client.fetch(format!("coap://{}/echo", server.local_addr())).payload(body(20_000));
    let answer = request.progress(move |progress| hook.lock().unwrap().push(*progress)).await.unwrap();
    assert_eq!(answer.payload(), &body(20_000));
    let told = told.lock().unwrap();
    assert!(told.is_sorted_by_key(|progress| (progress.sent, progress.received)), "{told:?}");
    assert!(told.iter().any(|it| (1_024..20_000).contains(&it.sent)), "{told:?}");
    let is_on_its_way = |it: &&Progress| (1_024..20_000).contains(&it.received);
    assert!(told.iter().filter(is_on_its_way).any(|it| it.total == Some(20_000)), "{told:?}");
}

/// It would come again with each copy of the request, until a minute and a half had gone by.
#[tokio::test]
async fn an_answer_that_is_longer_than_datagrams_may_be_is_told_at_once() {
    let server = tokio::net::UdpSocket::bind(ANY).await.unwrap();
    let client = Client::new().await.unwrap();
    let asked = tokio::spawn(client.get(format!("coap://{}/", server.local_addr().unwrap())).into_future());
    let mut room = [0; 100];
    let (_, from) = server.recv_from(&mut room).await.unwrap();
    let token = usize::from(room[0] & 0x0f);
    let head = [&[0x60 | token as u8, 0x45, room[2], room[3]], &room[4..4 + token], b"\xff"].concat();
    server.send_to(&[head, vec![b'.'; 1_500]].concat(), from).await.unwrap();
    let error = asked.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::LongDatagram { .. }), "{error}");
    assert!(error.to_string().contains("ask for it in blocks"), "{error}");
    let counted = client.stats().await.unwrap();
    assert_eq!(counted.retransmissions, 0);
}
