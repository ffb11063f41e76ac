//! The ETSI plugtest cases for a CoAP proxy by their published names, TD_COAP_CORE_24 to 29, and those of discovery, TD_COAP_LINK: our client, a gateway that stands before
//! one server with nothing kept yet, and that server; between the two a relay, since most of what a case demands is said of the messages
//! that the proxy sends. As the interoperability tool ttproto describes them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../live/tests/plugtest/link.rs"]
mod link;
#[path = "../../../live/tests/plugtest/relay.rs"]
#[allow(dead_code, reason = "other cases ask for more of it")]
mod relay;
#[path = "../../../live/tests/plugtest/resources.rs"]
#[allow(dead_code, reason = "other cases ask for more of it")]
mod resources;

use std::path::Path;

use millpond_coap::message::{Kind, Message};
use millpond_gateway::{Config, Gateway};
use millpond_live::{Client, Code, Response, Server, number};

use relay::{Passed, Relay, Way};
use resources::{TEXT, XML};

struct Bed {
    server: Server,
    relay: Relay,
    client: Client,
    at: String,
    /// Runs as long as it is held.
    _gateway: Gateway,
}

impl Bed {
    async fn new() -> Self {
        let server = resources::serve().await;
        let relay = Relay::before(server.local_addr(), |_, _| false).await;
        let to = relay.address();
        let rule = |path: &str| format!("[[rule]]\npath = \"{path}\"\nto = \"coap://{to}/{{*rest}}\"\n");
        let lines = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\n{}{}", rule("/server/{*rest}"), rule("/{*rest}"));
        let config = Config::from_toml(&lines, "gateway.toml", Path::new("")).unwrap();
        let gateway = Gateway::builder(config).start().await.unwrap();
        let at = format!("coap://{}", gateway.local_addr());
        Self { server, relay, client: Client::new().await.unwrap(), at, _gateway: gateway }
    }

    /// What the server can do stands there below its own path: the gateway says at its own what itself can do.
    fn uri(&self, path: &str) -> String {
        let below = if path.starts_with("/.well-known/core") { "/server" } else { "" };
        format!("{}{below}{path}", self.at)
    }

    /// The requests that the proxy forwarded: all of them are confirmable.
    fn forwarded(&self) -> Vec<Passed> {
        let requests: Vec<_> =
            self.relay.of(Way::Up).into_iter().filter(|passed| passed.code() != Code::EMPTY).collect();
        assert!(requests.iter().all(|request| request.kind() == Kind::Confirmable));
        requests
    }
}

fn values(message: &Message<'_>, number: u16) -> Vec<Vec<u8>> {
    message.options().filter(|option| option.number == number).map(|option| option.value.to_vec()).collect()
}

fn etag(response: &Response) -> Vec<u8> {
    response.options().get(number::ETAG).unwrap().to_vec()
}

/// A POST arrives with its payload and Content-Format, and the answer comes back with each option of its location.
async fn post_with_location(path: &str, option: u16, location: &[&str]) {
    let bed = Bed::new().await;
    let response = bed.client.post(bed.uri(path)).content_format(TEXT).payload("anything").send().await.unwrap();
    assert_eq!(response.code(), Code::CREATED);
    assert!(response.options().all(option).eq(location.iter().map(|part| part.as_bytes())));
    let forwarded = bed.forwarded();
    let [request] = &forwarded[..] else { panic!("{forwarded:?}") };
    let request = request.message();
    assert_eq!((request.code, request.payload()), (Code::POST, &b"anything"[..]));
    // Text is 0, which takes no byte.
    assert_eq!(values(&request, number::CONTENT_FORMAT), [b""]);
}

#[tokio::test]
async fn td_coap_core_24_post_answered_with_location_path_through_a_proxy() {
    post_with_location("/test", number::LOCATION_PATH, &["location1", "location2", "location3"]).await;
}

#[tokio::test]
async fn td_coap_core_25_post_answered_with_location_query_through_a_proxy() {
    post_with_location("/location-query", number::LOCATION_QUERY, &["first=1", "second=2"]).await;
}

/// Accept reaches the server, and what is kept in one format is no answer for who wants another.
#[tokio::test]
async fn td_coap_core_26_get_with_accept_through_a_proxy() {
    let bed = Bed::new().await;
    for (format, payload) in [(TEXT, "text"), (XML, "<xml/>")] {
        let response = bed.client.get(bed.uri("/multi-format")).accept(format).send().await.unwrap();
        assert_eq!((response.code(), response.content_format()), (Code::CONTENT, Some(format)));
        assert_eq!(response.text().unwrap(), payload);
    }
    let accepted: Vec<_> = bed.forwarded().iter().flat_map(|it| values(&it.message(), number::ACCEPT)).collect();
    assert_eq!(accepted, [&b""[..], &[41]]);
}

/// A change under the ETag that was read is carried out, and its answer has another ETag; one under an ETag that has passed is not.
#[tokio::test]
async fn td_coap_core_27_put_with_if_match_through_a_proxy() {
    let bed = Bed::new().await;
    let put = |payload: &'static str, etag: &[u8]| {
        bed.client.put(bed.uri("/validate")).payload(payload).option(number::IF_MATCH, etag.to_vec()).send()
    };
    let first = etag(&bed.client.get(bed.uri("/validate")).send().await.unwrap());
    let changed = put("second", &first).await.unwrap();
    let second = etag(&changed);
    assert_eq!(changed.code(), Code::CHANGED);
    assert_ne!(first, second);
    let directly = format!("coap://{}/validate", bed.server.local_addr());
    bed.client.put(directly).payload("third").send().await.unwrap();
    assert_eq!(put("fourth", &second).await.unwrap().code(), Code::PRECONDITION_FAILED);
    let read = bed.client.get(bed.uri("/validate")).send().await.unwrap();
    assert_eq!(read.text().unwrap(), "third", "what was kept went with the change");
    let matched: Vec<_> = bed.forwarded().iter().flat_map(|it| values(&it.message(), number::IF_MATCH)).collect();
    assert_eq!(matched, [first, second]);
}

/// What is to be made where there is nothing is made once.
#[tokio::test]
async fn td_coap_core_28_put_with_if_none_match_through_a_proxy() {
    let bed = Bed::new().await;
    let mut codes = Vec::new();
    for payload in ["one", "other"] {
        let put = bed.client.put(bed.uri("/create1")).payload(payload).option(number::IF_NONE_MATCH, "");
        codes.push(put.send().await.unwrap().code());
    }
    assert_eq!(codes, [Code::CREATED, Code::PRECONDITION_FAILED]);
    let forwarded = bed.forwarded();
    assert!(forwarded.iter().all(|it| it.code() == Code::PUT && values(&it.message(), number::IF_NONE_MATCH) == [b""]));
    let payloads: Vec<_> = forwarded.iter().map(|it| it.message().payload().to_vec()).collect();
    assert_eq!(payloads, [&b"one"[..], b"other"]);
}

/// Within Max-Age the proxy answers by itself, with the Max-Age that is left.
#[tokio::test]
async fn td_coap_core_29_get_with_max_age_through_a_proxy() {
    let bed = Bed::new().await;
    let first = bed.client.get(bed.uri("/validate")).send().await.unwrap();
    assert_eq!((first.code(), first.options().uint(number::MAX_AGE)), (Code::CONTENT, Some(30)));
    assert!(!etag(&first).is_empty() && !first.payload().is_empty());
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let again = bed.client.get(bed.uri("/validate")).send().await.unwrap();
    assert_eq!((again.payload(), etag(&again)), (first.payload(), etag(&first)));
    assert!(again.options().uint(number::MAX_AGE).unwrap() < 30);
    assert_eq!(bed.forwarded().len(), 1);
}
