use std::time::Duration;

use millpond_live::{Client, Code, ContentFormat, Error, Request, Resource, Response, Server, number};

use crate::ANY;

async fn described(request: Request) -> Response {
    let text = format!(
        "{} {} {} {}",
        request.method(),
        request.path_text(),
        request.query().collect::<Vec<_>>().join("&"),
        String::from_utf8_lossy(request.payload())
    );
    Response::content(text).with_content_format(ContentFormat::TEXT)
}

#[tokio::test]
async fn every_method_reaches_its_handler_and_is_answered() {
    let mut resource = Resource::new();
    for method in [Code::GET, Code::PUT, Code::POST, Code::DELETE, Code::FETCH, Code::PATCH, Code::IPATCH] {
        resource = resource.method(method, described);
    }
    let server = Server::builder().bind(ANY).route("/a/{id}", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/a/7?x=1&y", server.local_addr());
    for method in [Code::GET, Code::PUT, Code::POST, Code::DELETE, Code::FETCH, Code::PATCH, Code::IPATCH] {
        let response = client.request(method, &uri).payload("body").send().await.unwrap();
        assert_eq!(response.code(), Code::CONTENT);
        assert_eq!(response.text().unwrap(), format!("{method} /a/7 x=1&y body"));
        assert_eq!(response.content_format(), Some(ContentFormat::TEXT));
        let exchange = response.exchange().unwrap();
        assert_eq!((exchange.peer, exchange.copies), (server.local_addr(), 1));
    }
    let response = client.get(&uri).non_confirmable().await.unwrap();
    assert_eq!(response.text().unwrap(), "0.01 /a/7 x=1&y ");
}

#[tokio::test]
async fn what_is_not_there_is_answered_by_itself() {
    let resource = Resource::new().get(described);
    let server = Server::builder().bind(ANY).route("/here", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = |path: &str| format!("coap://{}{path}", server.local_addr());
    for (request, code) in [
        (client.get(uri("/there")), "4.04"),
        (client.put(uri("/here")), "4.05"),
        (client.put(uri("/.well-known/core")), "4.05"),
        (client.get(uri("/here")).option(2_049, "critical"), "4.02"),
        (client.get(uri("/here")).option(2_050, "elective"), "2.05"),
        (client.get(uri("/here")).option(number::PROXY_URI, "coap://[::1]/"), "5.05"),
        (client.get(uri("/here")).option(number::URI_PATH, vec![0xff]), "4.00"),
    ] {
        assert_eq!(request.await.unwrap().code().to_string(), code);
    }
    let links = client.get(uri("/.well-known/core")).await.unwrap();
    assert_eq!((links.text().unwrap(), links.content_format()), ("</here>", Some(ContentFormat::LINK_FORMAT)));
}

#[tokio::test]
async fn a_slow_answer_comes_as_a_separate_response() {
    let slow = Resource::new().get(|| async {
        tokio::time::sleep(Duration::from_millis(80)).await;
        Response::content("at last")
    });
    let builder = Server::builder().bind(ANY).ack_delay(Duration::from_millis(20));
    let server = builder.route("/slow", slow).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let response = client.get(format!("coap://{}/slow", server.local_addr())).await.unwrap();
    assert_eq!(response.text(), Ok("at last"));
    assert_eq!(response.exchange().unwrap().copies, 1);
}

#[tokio::test]
async fn a_handler_that_panics_harms_nobody_else() {
    async fn bad(_: Request) -> Response {
        panic!("as it should")
    }
    async fn late(_: Request) -> Response {
        tokio::task::yield_now().await;
        panic!("as it should, later")
    }
    let (bad, late) = (Resource::new().get(bad), Resource::new().get(late));
    let server = Server::builder().bind(ANY).route("/bad", bad).route("/late", late).start().await.unwrap();
    let client = Client::new().await.unwrap();
    for path in ["bad", "late", "bad"] {
        let response = client.get(format!("coap://{}/{path}", server.local_addr())).await.unwrap();
        assert_eq!(response.code(), Code::INTERNAL_SERVER_ERROR);
    }
}

#[tokio::test]
async fn both_families_are_spoken() {
    let server = Server::builder()
        .bind(ANY)
        .bind("[::1]:0")
        .route(
            "/",
            Resource::new().get(|request: Request| async move { Response::content(request.peer().ip().to_string()) }),
        )
        .start()
        .await
        .unwrap();
    let client = Client::new().await.unwrap();
    for (_, address) in server.local_addrs() {
        let response = client.get(format!("coap://{address}/")).await.unwrap();
        assert_eq!(response.text().unwrap(), address.ip().to_string());
    }
    assert_eq!(client.stats().await.unwrap().sockets, 2);
}

#[tokio::test]
async fn a_server_on_all_addresses_answers_from_the_one_that_was_asked() {
    let server = Server::builder().bind("0.0.0.0:0").route("/", Resource::new().get(described)).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://127.0.0.77:{}/", server.local_addr().port());
    let response = client.get(uri).deadline(Duration::from_secs(30)).await.unwrap();
    assert_eq!(response.exchange().unwrap().peer.ip().to_string(), "127.0.0.77");
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told_at_once() {
    let free = std::net::UdpSocket::bind(ANY).unwrap().local_addr().unwrap();
    let client = Client::new().await.unwrap();
    let error = client.get(format!("coap://{free}/")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { peer, .. } if peer == free), "{error}");
}

#[tokio::test]
async fn a_taken_port_is_one_clear_error() {
    let server = Server::builder().bind(ANY).start().await.unwrap();
    let error = Server::builder().bind(server.local_addr()).start().await.unwrap_err();
    assert!(error.to_string().contains("the port is in use"), "{error}");
}
