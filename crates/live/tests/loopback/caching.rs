//! A client that keeps what it got.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use millpond_live::{Client, Code, Request, Resource, Response, Server, number};

use crate::ANY;

#[tokio::test]
async fn fresh_answers_are_not_asked_for_and_stale_ones_are_asked_about() {
    let asked = Arc::new(AtomicUsize::new(0));
    let asking = Arc::clone(&asked);
    let read = move |request: Request| {
        asking.fetch_add(1, Ordering::Relaxed);
        let max_age = request.query_value("age").and_then(|age| age.parse().ok()).unwrap_or(60);
        async move { Response::content(vec![7; 3_000]).with_etag("v1").with_max_age(max_age) }
    };
    let resource = Resource::new().get(read).put(|| async { Code::CHANGED });
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/r", resource).start().await.unwrap();
    let client = Client::builder().cache(1 << 20).build().await.unwrap();
    for (transport, address) in server.local_addrs() {
        asked.store(0, Ordering::Relaxed);
        let uri = format!("{transport}://{address}/r");
        let first = client.get(&uri).await.unwrap();
        assert!(first.exchange().is_some());
        let again = client.get(&uri).await.unwrap();
        assert_eq!((again.payload(), again.exchange(), asked.load(Ordering::Relaxed)), (first.payload(), None, 1));
        client.put(&uri).await.unwrap();
        assert!(client.get(&uri).await.unwrap().exchange().is_some(), "it may have changed");
        assert_eq!(asked.load(Ordering::Relaxed), 2);

        // Stale at once: the server says 2.03, and the body is the one that was kept.
        let stale = format!("{uri}?age=0");
        for count in 3..5 {
            let answer = client.get(&stale).await.unwrap();
            assert_eq!((answer.code(), answer.payload()), (Code::CONTENT, first.payload()));
            assert!(answer.exchange().is_some());
            assert_eq!(asked.load(Ordering::Relaxed), count);
        }
        let own = client.get(&stale).option(number::ETAG, "v1").await.unwrap();
        assert_eq!(own.code(), Code::VALID, "who asks about an ETag gets the answer to that");
    }
    let forgetful = Client::new().await.unwrap();
    let uri = format!("coap://{}/r", server.local_addr());
    for _ in 0..2 {
        assert!(forgetful.get(&uri).await.unwrap().exchange().is_some(), "nothing is kept unless it is asked for");
    }
}
