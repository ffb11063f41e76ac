use std::sync::{Arc, Mutex};

use millpond_gateway::{Access, Gateway, Source};
use millpond_live::{Client, Code, Response, number};

use super::{Upstream, all_to, client, config, gateway};

async fn through(at: &str, uri: &str) -> Response {
    client().await.get(at).option(number::PROXY_URI, uri.as_bytes().to_vec()).await.unwrap()
}

/// A gateway asks nobody whom its file does not name.
#[tokio::test]
async fn no_gateway_is_open() {
    let upstream = Upstream::start(|server| server).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let refused = through(&at, &format!("coap://{}/count", upstream.at())).await;
    assert_eq!(refused.code(), Code::PROXYING_NOT_SUPPORTED);
    let (_gateway, at) = gateway("[[forward]]\nto = [\"0.0.0.0/0\", \"::/0\", \"*.example\", \"localhost\"]\n").await;
    let port = upstream.at().port();
    for near in [
        "127.0.0.1",
        "127.1.2.3",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fe80::1]",
        "[::]",
        "0.0.0.0",
        "224.0.1.187",
        "[fe80::1%25lo]",
        "[64:ff9b::7f00:1]",
        "device.test",
        "localhost",
    ] {
        let refused = through(&at, &format!("coap://{near}:{port}/count")).await;
        assert_eq!(refused.code(), Code::FORBIDDEN, "{near}: {:?}", refused.text());
    }
    for (uri, code) in [
        ("http://192.0.2.1/", Code::PROXYING_NOT_SUPPORTED),
        ("file:///etc/passwd", Code::PROXYING_NOT_SUPPORTED),
        ("coap://", Code::BAD_REQUEST),
        ("coap://a b/", Code::BAD_REQUEST),
        ("coap://user@localhost/", Code::BAD_REQUEST),
    ] {
        assert_eq!(through(&at, uri).await.code(), code, "{uri}");
    }
    assert_eq!(upstream.asked(), 0);
}

#[tokio::test]
async fn hosts_by_scheme_hold_no_more_than_a_host() {
    let (_gateway, at) = gateway("[[forward]]\nto = [\"192.0.2.0/24\"]\n").await;
    for host in
        ["192.0.2.1:99", "192.0.2.1/x", "a@192.0.2.1", "192.0.2.1#", "192.0.2.1?", "192.0.2.1\r\n", " 192.0.2.1", "%31"]
    {
        let request = client().await.get(format!("{at}/x")).option(number::PROXY_SCHEME, "coap");
        let refused = request.option(number::URI_HOST, host.as_bytes().to_vec()).await.unwrap();
        assert!([Code::BAD_REQUEST, Code::FORBIDDEN].contains(&refused.code()), "{host:?}: {}", refused.code());
    }
    let bare = client().await.get(format!("{at}/x")).option(number::PROXY_SCHEME, "coap").await.unwrap();
    assert_eq!(bare.code(), Code::BAD_REQUEST);
}

#[tokio::test]
async fn who_does_not_answer_is_named() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent_at = silent.local_addr().unwrap();
    let lines = format!(
        "[[rule]]\npath = \"/silent\"\nto = \"coap://{silent_at}/x\"\ntimeout = \"200 ms\"\n\
         [[rule]]\npath = \"/closed\"\nto = \"coap://{closed}/x\"\n\
         [[rule]]\npath = \"/tcp\"\nto = \"coap+tcp://{closed}/x\"\n\
         [[rule]]\npath = \"/name\"\nto = \"coap://no.such.host.invalid/x\"\n"
    );
    let (_gateway, at) = gateway(&lines).await;
    for (path, code, named) in [
        ("silent", Code::GATEWAY_TIMEOUT, silent_at.to_string()),
        ("closed", Code::BAD_GATEWAY, closed.to_string()),
        ("tcp", Code::BAD_GATEWAY, closed.to_string()),
        ("name", Code::BAD_GATEWAY, "no.such.host.invalid".into()),
    ] {
        let answer = client().await.get(format!("{at}/{path}")).await.unwrap();
        assert_eq!(answer.code(), code, "{path}");
        assert!(answer.text().unwrap().contains(&named), "{path}: {:?}", answer.text());
    }
    let nowhere = client().await.get(format!("{at}/nowhere")).await.unwrap();
    assert_eq!(nowhere.code(), Code::NOT_FOUND);
}

#[tokio::test]
async fn rights_are_of_rules_and_can_be_withdrawn() {
    let upstream = Upstream::start(|server| server).await;
    let rule = |who: &str, methods: &str| {
        format!(
            "[[rule]]\npath = \"/count\"\nto = \"coap://{}/count\"\nwho = {who}\nmethods = {methods}\n",
            upstream.at()
        )
    };
    let (gateway, at) = gateway(&rule("[\"127.0.0.0/8\"]", "[\"GET\"]")).await;
    let (client, uri) = (client().await, format!("{at}/count"));
    assert_eq!(client.get(&uri).await.unwrap().code(), Code::CONTENT);
    assert_eq!(client.delete(&uri).await.unwrap().code(), Code::METHOD_NOT_ALLOWED);
    let mut observation = client.get(&uri).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    gateway.reload(&config(&rule("[\"identified\", \"192.0.2.0/24\"]", "[]"))).await.unwrap();
    assert_eq!(client.get(&uri).await.unwrap().code(), Code::UNAUTHORIZED, "what is kept is not for everybody");
    let millpond_live::Observed::Interrupted(why) = observation.event().await.unwrap().unwrap() else {
        panic!("it is still told");
    };
    assert!(why.to_string().contains("4.01"), "{why}");
    gateway.reload(&config(&rule("[]", "[]"))).await.unwrap();
    assert_eq!(client.get(&uri).await.unwrap().code(), Code::CONTENT);
}

#[tokio::test]
async fn each_request_is_told_once() {
    let upstream = Upstream::start(|server| server).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = Arc::clone(&told);
    let gateway = Gateway::builder(config(&all_to(upstream.at())));
    let gateway = gateway.on_access(move |access: &Access| {
        let source = (access.source, access.code, access.upstream.is_some(), access.reason.is_some());
        telling.lock().unwrap().push(source);
    });
    let gateway = gateway.start().await.unwrap();
    let at = format!("coap://{}", gateway.local_addr());
    let client = Client::new().await.unwrap();
    for path in ["count", "count", ".well-known/core"] {
        client.get(format!("{at}/{path}")).await.unwrap();
    }
    through(&at, "coap://192.0.2.1/").await;
    let told = told.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            (Source::Upstream, Some(Code::CONTENT), true, false),
            (Source::Cache, Some(Code::CONTENT), true, false),
            (Source::Gateway, Some(Code::PROXYING_NOT_SUPPORTED), false, true),
        ]
    );
}
