//! Long answers between CoAP and CoAP, of which each side has its blocks.

use std::sync::Arc;

use millpond_live::{Client, Code, Error, Request, Resource, Transport};

use super::{
    Upstream, all_to,
    bodies::{byte_at, changing},
    client, gateway,
};

/// Longer than what a cache of this size keeps.
const LENGTH: u64 = 2 << 20;

const CACHE: &str = "[cache]\nsize = \"4 MiB\"\n";

/// A server with a long representation, which is another one behind so many blocks.
async fn long(changes_behind: usize) -> Upstream {
    let image = changing(LENGTH, Arc::default(), changes_behind);
    let image = move |request: Request| {
        let answer = image(&request);
        async move { answer }
    };
    Upstream::start(|server| server.bind_tcp("127.0.0.1:0").route("/image", Resource::new().get(image))).await
}

async fn download(client: &Client, at: &str) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let answer = client.get(format!("{at}/image")).download(&mut body).await?;
    assert!(answer.is_success(), "{}: {:?}", answer.code(), answer.text());
    Ok(body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_answer_goes_block_by_block() {
    let upstream = long(usize::MAX).await;
    let over_tcp = upstream.server.local_addr_of(Transport::Tcp).unwrap();
    let to = [all_to(upstream.at()), all_to(over_tcp).replace("coap://", "coap+tcp://")];
    for lines in to {
        let (_gateway, at) = gateway(&format!("{CACHE}{lines}")).await;
        let before = upstream.asked();
        let body = download(&client().await, &at).await.unwrap();
        assert_eq!(body.len() as u64, LENGTH);
        assert!(body.iter().enumerate().all(|(place, byte)| *byte == byte_at(place as u64)));
        // For who has not shown yet that it is at its address it is not all asked for twice.
        let asked = upstream.asked() - before;
        assert!(asked <= LENGTH as usize / 1_024 + 50, "{asked} blocks were asked for");
    }
}

/// One that is long enough to be forwarded while it comes, and one that is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_changes_on_its_way_is_no_mix() {
    let upstream = long(1_700).await;
    let (_gateway, at) = gateway(&format!("{CACHE}{}", all_to(upstream.at()))).await;
    let error = download(&client().await, &at).await.unwrap_err();
    assert!(matches!(error, Error::Transfer { .. }), "{error}");
    let upstream = long(10).await;
    let (_gateway, at) = gateway(&format!("{CACHE}{}", all_to(upstream.at()))).await;
    let answer = client().await.get(format!("{at}/image")).await.unwrap();
    assert_eq!((answer.code(), answer.text().unwrap().contains("changed on the way")), (Code::BAD_GATEWAY, true));
}
