//! Handlers that make the block that is asked for.

use std::{
    future::{Ready, ready},
    ops::Range,
    sync::{Arc, Mutex},
};

use millpond_live::{
    Client, Code, Observable, Policy, RateLimit, Request, Resource, Response, Rule, Server, ServerBuilder, Who,
};

use crate::ANY;

const LENGTH: u64 = 40_000;

fn bytes(range: Range<u64>) -> Vec<u8> {
    range.map(|place| (place / 7) as u8).collect()
}

/// Which parts were made.
type Made = Arc<Mutex<Vec<Range<u64>>>>;

/// Makes what is asked for.
fn maker(made: &Made) -> impl Fn(Request) -> Ready<Response> + Send + Sync + 'static {
    let made = Arc::clone(made);
    move |request| {
        let part = request.part_of(LENGTH);
        made.lock().unwrap().push(part.clone());
        ready(Response::content(bytes(part.clone())).with_part(part.start, LENGTH).with_etag(&b"a"[..]))
    }
}

async fn started(builder: ServerBuilder, resource: Resource) -> (Server, Client) {
    let server = builder.bind(ANY).bind_tcp(ANY).route("/parts", resource).start().await.unwrap();
    (server, Client::builder().q_block(true).build().await.unwrap())
}

#[tokio::test]
async fn each_block_is_made_when_it_is_asked_for_and_once() {
    let made = Made::default();
    let (server, client) = started(Server::builder(), Resource::new().get(maker(&made))).await;
    let uri = format!("coap://{}/parts", server.local_addr());
    let get = async |block: u16| client.get(&uri).block_size(block).await.unwrap();
    for block in [1_024, 64] {
        assert!(get(block).await.payload() == &bytes(0..LENGTH));
        let block = u64::from(block);
        let parts = (0..LENGTH.div_ceil(block)).map(|number| number * block..LENGTH.min((number + 1) * block));
        assert_eq!(std::mem::take(&mut *made.lock().unwrap()), parts.collect::<Vec<_>>(), "{block}");
    }
    // Over a connection as much as a message carries.
    let uri = format!("coap+tcp://{}/parts", server.local_addrs()[1].1);
    assert!(client.get(&uri).await.unwrap().payload() == &bytes(0..LENGTH));
    let parts = std::mem::take(&mut *made.lock().unwrap());
    assert!(parts.len() < 4 && parts.last().is_some_and(|last| last.end == LENGTH), "{parts:?}");
    let in_blocks = client.get(&uri).block_size(512).await.unwrap();
    assert!(in_blocks.payload() == &bytes(0..LENGTH));
    assert_eq!(made.lock().unwrap().len() as u64, LENGTH.div_ceil(512));
}

#[tokio::test]
async fn who_observes_or_wants_a_burst_gets_all_of_it() {
    let (made, changing) = (Made::default(), Observable::new());
    let resource = Resource::new().get(maker(&made)).observable(&changing);
    let (server, client) = started(Server::builder().q_block(true), resource).await;
    let uri = format!("coap://{}/parts", server.local_addr());
    assert!(client.get(&uri).q_block().await.unwrap().payload() == &bytes(0..LENGTH));
    let mut observation = client.get(&uri).observe().await.unwrap();
    assert!(observation.next().await.unwrap().unwrap().payload() == &bytes(0..LENGTH));
    assert_eq!(*made.lock().unwrap(), [0..LENGTH, 0..LENGTH]);
}

/// Blocks of a body that is kept for a client do not count.
#[tokio::test]
async fn later_blocks_are_no_requests_of_their_own_where_these_are_limited() {
    let made = Made::default();
    let everybody = Rule::of(Who::network("127.0.0.0/8").unwrap()).allow("/**", []).unwrap();
    let rule = everybody.limit(RateLimit::per_second(0.001).unwrap().burst(2));
    let (server, client) =
        started(Server::builder().policy(Policy::new().rule(rule)), Resource::new().get(maker(&made))).await;
    let uri = format!("coap://{}/parts", server.local_addr());
    for code in [Code::CONTENT, Code::CONTENT, Code::TOO_MANY_REQUESTS] {
        assert_eq!(client.get(&uri).await.unwrap().code(), code);
    }
}

#[tokio::test]
async fn a_part_that_was_not_asked_for_is_no_answer() {
    let handlers: [fn(Request) -> Response; 3] = [
        |_| Response::content(bytes(0..10)).with_part(0, LENGTH),
        |_| Response::content(bytes(1_024..2_048)).with_part(1_024, LENGTH),
        |_| Response::content(bytes(0..10)).with_part(u64::MAX, LENGTH),
    ];
    for handler in handlers {
        let resource = Resource::new().get(move |request: Request| ready(handler(request)));
        let (server, client) = started(Server::builder(), resource).await;
        let uri = format!("coap://{}/parts", server.local_addr());
        assert_eq!(client.get(&uri).await.unwrap().code(), Code::INTERNAL_SERVER_ERROR);
    }
}
