use std::{sync::Arc, time::Duration};

use millpond_live::{Client, Code, Happened, Resource, Response, number};
use tokio::sync::Semaphore;

use super::{Upstream, all_to, client, gateway};

#[tokio::test]
async fn what_is_fresh_is_not_asked_for_again_and_its_age_is_told() {
    let upstream = Upstream::start(|server| server).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let first = client().await.get(format!("{at}/count")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let second = client().await.get(format!("{at}/count")).await.unwrap();
    assert_eq!((first.text(), second.text(), upstream.asked()), (Ok("1"), Ok("1"), 1));
    let ages = [first, second].map(|answer| answer.options().uint(number::MAX_AGE).unwrap());
    assert!(ages[0] == 30 && (1..30).contains(&ages[1]), "{ages:?}");
    // What changes something ends what is kept of it.
    let deleted = client().await.delete(format!("{at}/count")).await.unwrap();
    assert_eq!(deleted.code(), Code::METHOD_NOT_ALLOWED);
    assert_eq!(client().await.get(format!("{at}/count")).await.unwrap().text(), Ok("2"));
}

#[tokio::test]
async fn equal_requests_that_are_open_together_are_asked_once() {
    let (told, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let opening = Arc::clone(&open);
    let slow = move || {
        let open = Arc::clone(&opening);
        async move {
            drop(open.acquire().await.unwrap());
            Response::content("slow").with_max_age(0)
        }
    };
    let upstream = Upstream::start(|server| server.route("/slow", Resource::new().get(slow))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let all: Vec<_> = (0..50)
        .map(|_| {
            let (uri, telling) = (format!("{at}/slow"), Arc::clone(&told));
            let builder = Client::builder().trace(move |event| {
                if matches!(event.what, Happened::Acknowledged) {
                    telling.add_permits(1);
                }
            });
            tokio::spawn(async move { builder.build().await.unwrap().get(uri).await.unwrap() })
        })
        .collect();
    // The gateway has all of them, and has acknowledged that.
    drop(told.acquire_many(50).await.unwrap());
    open.add_permits(1);
    for one in all {
        assert_eq!(one.await.unwrap().text(), Ok("slow"));
    }
    assert_eq!(upstream.asked(), 1);
    client().await.get(format!("{at}/slow?other")).await.unwrap();
    client().await.get(format!("{at}/slow")).await.unwrap();
    assert_eq!(upstream.asked(), 3, "it is not kept");
}

#[tokio::test]
async fn tags_save_the_body_on_both_sides() {
    let tagged = || async { Response::content("long").with_etag("7").with_max_age(0) };
    let upstream = Upstream::start(|server| server.route("/tagged", Resource::new().get(tagged))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let (client, uri) = (client().await, format!("{at}/tagged"));
    assert_eq!(client.get(&uri).await.unwrap().text(), Ok("long"));
    // The server answers 2.03, the client is given what was kept.
    assert_eq!(client.get(&uri).await.unwrap().text(), Ok("long"));
    let valid = client.get(&uri).option(number::ETAG, "7").await.unwrap();
    assert_eq!((valid.code(), valid.payload().len()), (Code::VALID, 0));
    assert_eq!(client.get(&uri).option(number::ETAG, "8").await.unwrap().text(), Ok("long"));
}

/// Only where that is wished.
#[tokio::test]
async fn what_is_not_fresh_stands_in_for_an_answer_that_does_not_come() {
    for (lines, code) in [("[cache]\nstale-if-error = \"1 h\"\n", Code::CONTENT), ("", Code::GATEWAY_TIMEOUT)] {
        let fresh = || async { Response::content("state").with_max_age(1) };
        let upstream = Upstream::start(|server| server.route("/state", Resource::new().get(fresh))).await;
        let rule =
            format!("[[rule]]\npath = \"/state\"\nto = \"coap://{}/state\"\ntimeout = \"500 ms\"\n", upstream.at());
        let (_gateway, at) = gateway(&format!("{lines}{rule}")).await;
        let (client, uri, port) = (client().await, format!("{at}/state"), upstream.at());
        while client.get(&uri).await.unwrap().code() != Code::CONTENT {}
        upstream.server.shutdown().await;
        // It hears everything, and says nothing.
        let _silent = tokio::net::UdpSocket::bind(port).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let answer = client.get(&uri).await.unwrap();
        assert_eq!(answer.code(), code, "{:?}", answer.text());
        if code == Code::CONTENT {
            assert_eq!(answer.options().uint(number::MAX_AGE), Some(0), "it says that it is not fresh");
        }
    }
}
