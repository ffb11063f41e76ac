//! The interface on the wire, by sections of RFC 9176.

use std::time::Duration;

use millpond_live::{Client, Code, ContentFormat, number};

use super::{Bench, location};

#[tokio::test]
async fn section_4_3_the_directory_is_discovered() {
    let bench = Bench::start().await;
    for (query, found) in [
        (
            "rt=core.rd*",
            "</rd>;rt=\"core.rd\";ct=40,</rd-lookup/ep>;rt=\"core.rd-lookup-ep\";ct=40;obs,\
             </rd-lookup/res>;rt=\"core.rd-lookup-res\";ct=40;obs",
        ),
        ("rt=core.rd", "</rd>;rt=\"core.rd\";ct=40"),
        ("rt=core.rd-lookup-res", "</rd-lookup/res>;rt=\"core.rd-lookup-res\";ct=40;obs"),
    ] {
        let answer = bench.client.get(bench.uri(&format!("/.well-known/core?{query}"))).await.unwrap();
        assert_eq!(answer.text(), Ok(found), "{query}");
    }
}

#[tokio::test]
async fn section_5_an_endpoint_registers_updates_and_is_removed() {
    let bench = Bench::start().await;
    let payload = "</sensors/temp>;rt=temperature-c;if=sensor,\n<http://www.example.com/sensors/temp>;\n  \
                   anchor=\"/sensors/temp\";rel=describedby";
    let answer = bench.register("ep=node1&base=coap://old.example.com", payload).await;
    assert_eq!(answer.options().all(number::LOCATION_QUERY).count(), 0);
    let place = location(&answer);
    assert!(place.starts_with("/rd/"));
    assert_eq!(
        bench.look_up("res?ep=node1").await,
        "<coap://old.example.com/sensors/temp>;rt=temperature-c;if=sensor,<http://www.example.com/sensors/temp>;\
         anchor=\"coap://old.example.com/sensors/temp\";rel=describedby"
    );
    let code = |answer: millpond_live::Response| answer.code();
    let uri = |query: &str| bench.uri(&format!("{place}{query}"));
    assert_eq!(code(bench.client.post(uri("?base=coaps://new.example.com")).await.unwrap()), Code::CHANGED);
    assert_eq!(
        bench.look_up("ep").await,
        format!("<{place}>;ep=\"node1\";base=\"coaps://new.example.com\";rt=\"core.rd-ep\"")
    );
    assert_eq!(location(&bench.register("ep=node1", "</new>").await), place);
    let endpoint = bench.directory.endpoint("node1").unwrap();
    assert_eq!(bench.look_up("res").await, format!("<{}/new>", endpoint.base));
    assert_eq!(code(bench.client.delete(uri("")).await.unwrap()), Code::DELETED);
    assert_eq!(code(bench.client.delete(uri("")).await.unwrap()), Code::NOT_FOUND);
    assert_eq!(code(bench.client.post(uri("")).await.unwrap()), Code::NOT_FOUND);
    assert_eq!(bench.look_up("ep").await, "");
    assert!(bench.directory.is_empty() && bench.directory.endpoint("node1").is_none());
}

#[tokio::test]
async fn section_5_what_is_wrong_is_said() {
    let bench = Bench::start().await;
    for (query, links, told) in [
        ("", "</a>", "ep is missing"),
        ("ep=a&lt=0", "</a>", "lt is the lifetime"),
        ("ep=a", "<a>", "link 1: \"a\" is neither"),
        ("ep=a", "a,b", "link 1: \"a\" does not begin with <"),
    ] {
        let answer = bench.register(query, links).await;
        assert_eq!(answer.code(), Code::BAD_REQUEST, "{query}");
        assert!(answer.text().unwrap().starts_with(told), "{:?}", answer.text());
    }
    let post = |path: &str| bench.client.post(bench.uri(path));
    let other = post("/rd?ep=a").content_format(ContentFormat::JSON).payload("[]").await.unwrap();
    assert_eq!(other.code(), Code::UNSUPPORTED_CONTENT_FORMAT);
    let other = bench.client.get(bench.uri("/rd-lookup/ep")).accept(ContentFormat::JSON).await.unwrap();
    assert_eq!(other.code(), Code::NOT_ACCEPTABLE);
    let bytes = post("/rd?ep=a").payload(&b"</\xff>"[..]).await.unwrap();
    assert_eq!((bytes.code(), bytes.text()), (Code::BAD_REQUEST, Ok("the links are not UTF-8")));
    let place = location(&bench.register("ep=a", "</a>").await);
    assert_eq!(post(&place).payload("</b>").await.unwrap().code(), Code::BAD_REQUEST);
    let number = place.trim_start_matches("/rd/").to_owned();
    for path in ["/rd/x", "/rd/+1", "/rd/", &format!("/rd/0{number}"), "/rd/99999999999999999999"] {
        assert_eq!(post(path).await.unwrap().code(), Code::NOT_FOUND, "{path}");
    }
    let long = format!("</{}>", "a".repeat(64 << 10));
    assert_eq!(bench.register("ep=b", &long).await.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(bench.look_up("res?count=x".trim_end_matches("?count=x")).await.matches("</a>").count(), 0);
}

/// Of the whole server tokio's time is paused: what waits for a minute waits for nobody.
#[tokio::test(start_paused = true)]
async fn section_5_3_a_registration_expires() {
    let bench = Bench::start().await;
    location(&bench.register("ep=short&lt=30", "</a>").await);
    location(&bench.register("ep=long", "</b>").await);
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert!(bench.directory.endpoint("short").is_some());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(bench.directory.endpoint("short").is_none());
    assert_eq!(bench.directory.len(), 2);
    tokio::time::sleep(Duration::from_secs(602)).await;
    assert_eq!(bench.directory.len(), 1, "it is forgotten without any request");
    tokio::time::sleep(Duration::from_secs(90_000)).await;
    assert!(bench.directory.endpoint("long").is_none(), "25 hours unless it says");
}

#[tokio::test]
async fn section_6_1_look_ups_are_observed() {
    let bench = Bench::start().await;
    let look_up = bench.client.get(bench.uri("/rd-lookup/res?rt=light"));
    let mut observed = look_up.observe().await.unwrap();
    assert_eq!(observed.next().await.unwrap().unwrap().text(), Ok(""));
    let links = "</west>;rt=\"light\",</heat>;rt=\"heater\"";
    let place = location(&bench.register("ep=a&base=coap://h", links).await);
    let answer = observed.next().await.unwrap().unwrap();
    assert_eq!(answer.text(), Ok("<coap://h/west>;rt=\"light\""));
    // What changes nothing is notified to nobody: the next notification is that of the removal.
    bench.client.post(bench.uri(&place)).await.unwrap();
    bench.client.delete(bench.uri(&place)).await.unwrap();
    assert_eq!(observed.next().await.unwrap().unwrap().text(), Ok(""));
    let other = Client::new().await.unwrap();
    let mut observed = other.get(bench.uri("/rd-lookup/ep")).observe().await.unwrap();
    assert_eq!(observed.next().await.unwrap().unwrap().text(), Ok(""));
    location(&bench.register("ep=b&lt=30&base=coap://h", "").await);
    let there = observed.next().await.unwrap().unwrap();
    assert!(there.text().unwrap().contains("ep=\"b\""));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert_eq!(observed.next().await.unwrap().unwrap().text(), Ok(""), "it has expired");
}
