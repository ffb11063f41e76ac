use millpond_live::{Bytes, Client, Code, Error, Observable, Request, Resource, Response, Server, Token};

use crate::ANY;

#[tokio::test]
async fn the_same_client_and_server_speak_over_tcp() {
    let changed = Observable::new();
    let resource = Resource::new()
        .observable(&changed)
        .get(
            |request: Request| async move { Response::content(request.query_value("x").unwrap_or("none").to_string()) },
        )
        .fetch(|request: Request| async move { Response::content(request.payload().clone()) });
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/a", resource).start().await.unwrap();
    let (_, tcp) = server.local_addrs()[1];
    let client = Client::new().await.unwrap();
    let uri = |path: &str| format!("coap+tcp://{tcp}{path}");
    assert_eq!(client.get(uri("/a?x=1")).await.unwrap().text(), Ok("1"));
    assert_eq!(client.get(uri("/b")).await.unwrap().code(), Code::NOT_FOUND);
    let body: Bytes = (0..300_000).map(|place| (place / 11) as u8).collect();
    assert_eq!(client.fetch(uri("/a")).payload(body.clone()).await.unwrap().payload(), &body);

    let mut observation = client.get(uri("/a?x=2")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("2"));
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("2"));
    drop(observation);
    while changed.observers() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    client.shutdown().await;
    server.shutdown().await;
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_or_breaks_is_told() {
    let free = std::net::TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let client = Client::new().await.unwrap();
    let error = client.get(format!("coap+tcp://{free}/")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { peer, .. } if peer == free), "{error}");
    let listener = tokio::net::TcpListener::bind(ANY).await.unwrap();
    let peer = listener.local_addr().unwrap();
    let request = tokio::spawn(client.get(format!("coap+tcp://{peer}/")).send());
    drop(listener.accept().await.unwrap());
    let error = request.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
}

/// Each server is made by hand, says this once it has the request, and closes.
#[tokio::test]
async fn who_asks_or_observes_is_told_why_the_connection_ended() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind(ANY).await.unwrap();
    let peer = listener.local_addr().unwrap();
    let client = Client::new().await.unwrap();
    for (said, told) in [
        (&b"\0\xe1"[..], "closed"),
        (b"\0\xe1\x80\xe5\xffgo away", "the peer aborted it: go away"),
        (b"\0\xe1\0\xe5", "the peer aborted it"),
        (b"\0\xe1\x0e\x45", "token length 14"),
        (b"HTTP/1.1 400 Bad Request\r\n", "speaks CoAP over TCP"),
        (b"\0\x45", "did not begin with its settings"),
    ] {
        for observes in [false, true] {
            let asking = client.get(format!("coap+tcp://{peer}/"));
            let answer = tokio::spawn(async move {
                if observes { asking.observe().await.map(drop) } else { asking.await.map(drop) }
            });
            let mut stream = listener.accept().await.unwrap().0;
            let mut room = [0; 64];
            stream.read(&mut room).await.map(drop).unwrap();
            stream.write_all(said).await.unwrap();
            drop(stream);
            let error = answer.await.unwrap().unwrap_err();
            assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}

#[tokio::test]
async fn a_ping_is_answered_over_tcp_too() {
    let server = Server::builder().bind_tcp(ANY).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri: millpond_live::Uri = format!("coap+tcp://{}/", server.local_addr()).parse().unwrap();
    client.ping(&uri).await.unwrap();
}

/// A server made by hand: it answers with the token that it reads off the wire.
#[tokio::test]
async fn a_token_of_ones_own_goes_over_tcp_too() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind(ANY).await.unwrap();
    let peer = listener.local_addr().unwrap();
    let token = Token::new(b"\xa1\xb2\xc3\xd4\xe5\xf6\x07\x18").unwrap();
    let client = Client::new().await.unwrap();
    let request = tokio::spawn(client.get(format!("coap+tcp://{peer}/")).token(token).send());
    let (mut stream, _) = listener.accept().await.unwrap();
    stream.write_all(b"\0\xe1").await.unwrap();
    let mut came = Vec::new();
    while !came.windows(8).any(|bytes| bytes == token.as_bytes()) {
        assert!(stream.read_buf(&mut came).await.unwrap() > 0, "{came:x?}");
    }
    stream.write_all(&[b"\x28\x45", token.as_bytes(), b"\xff!"].concat()).await.unwrap();
    assert_eq!(request.await.unwrap().unwrap().text(), Ok("!"));
}

#[tokio::test]
async fn what_only_udp_has_is_refused_over_tcp() {
    let client = Client::new().await.unwrap();
    for request in [
        client.get("coap+tcp://192.0.2.1/").max_retransmit(1),
        client.get("coap+tcp://192.0.2.1/").ack_timeout(std::time::Duration::from_secs(3)),
    ] {
        let error = request.await.unwrap_err().to_string();
        assert_eq!(
            error,
            "the message was not sent: max_retransmit and ack_timeout are for UDP, and TCP repeats by itself; leave them out"
        );
    }
}

#[tokio::test]
async fn an_answer_that_may_not_be_taken_is_told_as_one() {
    let odd = Resource::new().get(|| async { Response::content("x").with_option(65_001, vec![1]) });
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/odd", odd).start().await.unwrap();
    let client = Client::new().await.unwrap();
    for (transport, address) in server.local_addrs() {
        let error = client.get(format!("{transport}://{address}/odd")).await.unwrap_err();
        assert!(matches!(error, Error::NotUnderstood { peer, .. } if peer == *address), "{error}");
        let line = error.to_string();
        assert!(line.contains("critical option") && !line.contains("blocks"), "{line}");
    }
}
