//! Requests that want no response (RFC 7967), and what else a client says of its wishes.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use millpond_live::{
    Client, ClientSecurity, Code, Error, NoResponse, Outcome, PreSharedKey, PreSharedKeys, Request, Resource, Response,
    Server, ServerSecurity, Transport, number,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{Notify, mpsc},
};

use crate::ANY;

const CON: u8 = 0x41;
const NON: u8 = 0x51;

/// PUT, with No-Response if it is told.
fn put(kind: u8, id: u8, path: u8, no_response: Option<u8>) -> Vec<u8> {
    let mut datagram = vec![kind, 3, 0, id, b't', 0xb1, path];
    // From Uri-Path (11) to No-Response (258): 13 and 234 more.
    datagram.extend(no_response.iter().flat_map(|classes| [0xd1, 234, *classes]));
    datagram
}

#[tokio::test]
async fn a_response_that_nobody_wants_does_not_leave_and_the_request_is_carried_out_once() {
    let taken = Arc::new(AtomicUsize::new(0));
    let taking = Arc::clone(&taken);
    let sink = Resource::new().put(move || {
        taking.fetch_add(1, Ordering::Relaxed);
        async { Code::CHANGED }
    });
    let server = Server::builder().bind(ANY).route("/p", sink).start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    let mut bytes = [0; 100];
    // 2.xx is unwanted, then all is, in messages that are not confirmable: the next datagram answers the third.
    socket.send(&put(NON, 1, b'p', Some(2))).await.unwrap();
    socket.send(&put(NON, 2, b'q', Some(26))).await.unwrap();
    for copy in 0..2 {
        socket.send(&put(CON, 3, b'p', Some(26))).await.unwrap();
        let length = socket.recv(&mut bytes).await.unwrap();
        assert_eq!(bytes[..length], [0x60, 0, 0, 3], "an empty acknowledgement, also of copy {copy}");
    }
    // What is wanted comes: a failure where 2.xx alone is unwanted, and everything by the value 0.
    for (id, path, classes, code) in
        [(4, b'q', 2, Code::NOT_FOUND), (5, b'p', 0, Code::CHANGED), (6, b'p', 24, Code::CHANGED)]
    {
        socket.send(&put(CON, id, path, Some(classes))).await.unwrap();
        socket.recv(&mut bytes).await.unwrap();
        assert_eq!((bytes[0], bytes[1], bytes[3]), (0x61, code.to_byte(), id));
    }
    assert_eq!(taken.load(Ordering::Relaxed), 4);
}

/// A server over UDP, DTLS and TCP, and the bodies that its handler was asked with. It answers `no` with 4.04.
async fn sink() -> (Server, mpsc::UnboundedReceiver<String>) {
    let (telling, told) = mpsc::unbounded_channel();
    let sink = Resource::new().put(move |request: Request| {
        let body = String::from_utf8_lossy(request.payload()).into_owned();
        telling.send(body.clone()).unwrap();
        async move { if body == "no" { Code::NOT_FOUND } else { Code::CHANGED } }
    });
    let keys = PreSharedKeys::new([PreSharedKey::new("sensor", "secret").unwrap()]).unwrap();
    let server = Server::builder()
        .bind(ANY)
        .bind_dtls(ANY)
        .bind_tcp(ANY)
        .security(ServerSecurity::new().pre_shared_keys(keys))
        .route("/p", sink)
        .start()
        .await
        .unwrap();
    (server, told)
}

fn uris(server: &Server) -> Vec<(Transport, String)> {
    let uri = |(transport, address)| match transport {
        Transport::Dtls => (transport, format!("coaps://{address}/p")),
        Transport::Tcp => (transport, format!("coap+tcp://{address}/p")),
        other => (other, format!("coap://{address}/p")),
    };
    server.local_addrs().iter().copied().map(uri).collect()
}

async fn client() -> Client {
    let key = PreSharedKey::new("sensor", "secret").unwrap();
    Client::builder().security(ClientSecurity::new().pre_shared_key(key)).build().await.unwrap()
}

#[tokio::test]
async fn a_client_that_wants_no_response_is_told_what_became_of_its_request() {
    let (server, mut told) = sink().await;
    let client = client().await;
    for (transport, uri) in uris(&server) {
        // One that is refused as well: nobody wants to hear it.
        for body in ["1", "no"] {
            let outcome = client.put(&uri).payload(body).send_no_response(NoResponse::ALL).await.unwrap();
            let expected = if transport == Transport::Tcp { Outcome::Sent } else { Outcome::Acknowledged };
            assert_eq!((outcome, told.recv().await.as_deref()), (expected, Some(body)), "{transport}");
        }
        let outcome = client.put(&uri).payload("2").non_confirmable().send_no_response(NoResponse::ALL).await;
        assert_eq!((outcome, told.recv().await.as_deref()), (Ok(Outcome::Sent), Some("2")), "{transport}");
    }
    assert_eq!(client.stats().await.unwrap().exchanges, 0);
}

#[tokio::test]
async fn a_client_that_wants_failures_alone_hears_them_and_takes_silence_for_success() {
    let (server, _told) = sink().await;
    let client = client().await;
    for (transport, uri) in uris(&server) {
        let failed = client.put(&uri).payload("no").send_no_response(NoResponse::SUCCESS).await.unwrap();
        assert!(matches!(&failed, Outcome::Answered(response) if response.code() == Code::NOT_FOUND), "{transport}");
        let deadline = Duration::from_secs(2);
        let done = client.put(&uri).payload("1").deadline(deadline).send_no_response(NoResponse::SUCCESS).await;
        let expected = if transport == Transport::Tcp { Outcome::Sent } else { Outcome::Acknowledged };
        assert_eq!(done, Ok(expected), "{transport}");
        // What is wanted comes.
        let heard = client.put(&uri).payload("1").send_no_response(NoResponse::CLIENT_ERROR).await.unwrap();
        assert!(matches!(&heard, Outcome::Answered(response) if response.code() == Code::CHANGED), "{transport}");
    }
}

#[tokio::test]
async fn a_response_of_a_server_that_does_not_know_the_option_is_told() {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let uri = format!("coap://{}/p", socket.local_addr().unwrap());
    let serving = async {
        let mut bytes = [0; 100];
        let (_, from) = socket.recv_from(&mut bytes).await.unwrap();
        let length = usize::from(bytes[0] & 15);
        let reply = [&[0x60 | bytes[0] & 15, 0x44, bytes[2], bytes[3]], &bytes[4..4 + length]].concat();
        socket.send_to(&reply, from).await.unwrap();
    };
    let client = client().await;
    let (outcome, ()) = tokio::join!(client.put(&uri).send_no_response(NoResponse::ALL), serving);
    assert!(matches!(outcome, Ok(Outcome::Answered(response)) if response.code() == Code::CHANGED));
}

#[tokio::test]
async fn what_nobody_acknowledges_fails_by_its_deadline_and_a_dropped_request_is_over() {
    let silent = UdpSocket::bind(ANY).await.unwrap();
    let uri = format!("coap://{}/p", silent.local_addr().unwrap());
    let client = client().await;
    let after = Duration::from_millis(100);
    for classes in [NoResponse::ALL, NoResponse::SUCCESS] {
        let lost = client.put(&uri).deadline(after).send_no_response(classes).await;
        assert_eq!(lost, Err(Error::Deadline { after }));
    }
    // The first leaves at once; the next, to a peer that never answered, only after a while.
    let plain = |after| client.put(&uri).non_confirmable().deadline(after);
    assert_eq!(plain(Duration::from_secs(2)).send_no_response(NoResponse::ALL).await, Ok(Outcome::Sent));
    assert_eq!(plain(after).send_no_response(NoResponse::ALL).await, Err(Error::Deadline { after }));
    let dropped = tokio::time::timeout(after, client.put(&uri).send_no_response(NoResponse::ALL)).await;
    assert!(dropped.is_err());
    assert_eq!(client.stats().await.unwrap().exchanges, 0);
}

#[tokio::test]
async fn what_cannot_go_without_a_response_is_refused_with_the_fix() {
    let client = client().await;
    let long = client.put("coap://127.0.0.1/p").payload(vec![0; 5_000]).send_no_response(NoResponse::ALL).await;
    assert!(long.unwrap_err().to_string().contains("leave No-Response out"));
    let by_option = client.put("coap://127.0.0.1/p").option(number::NO_RESPONSE, vec![26]).await;
    assert!(by_option.unwrap_err().to_string().contains("send_no_response"));
}

/// A server over TCP says nothing either, and goes on with what is asked next.
#[tokio::test]
async fn over_a_connection_a_response_that_nobody_wants_does_not_leave() {
    let (server, mut told) = sink().await;
    let address = server.local_addr_of(Transport::Tcp).unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Settings; PUT with the token 1 and No-Response 26; the same with the token 2 and without it.
    stream.write_all(&[0, 0xe1]).await.unwrap();
    stream.write_all(&[0x51, 3, 1, 0xb1, b'p', 0xd1, 234, 26]).await.unwrap();
    stream.write_all(&[0x21, 3, 2, 0xb1, b'p']).await.unwrap();
    // Its settings have more bytes than two; the answer ends what came.
    let mut came = Vec::new();
    while !came.ends_with(&[0x01, 0x44, 2]) {
        assert!(stream.read_buf(&mut came).await.unwrap() > 0, "{came:x?}");
    }
    assert!(!came.windows(3).any(|bytes| bytes == [0x01, 0x44, 1]), "{came:x?}");
    assert_eq!((told.recv().await.as_deref(), told.recv().await.as_deref()), (Some(""), Some("")));
}

/// It is over once it is written, not before: a connection whose other end takes nothing says what became of it.
#[tokio::test]
async fn over_a_connection_that_ends_a_request_that_was_not_written_fails() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/p", listener.local_addr().unwrap());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        // It takes messages of 16 MiB, and takes none.
        stream.write_all(&[0x50, 0xe1, 0x24, 1, 0, 0, 0]).await.unwrap();
        let mut settings = [0; 2];
        stream.read_exact(&mut settings).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let client = client().await;
    let asking = client.put(&uri).payload(vec![0; 15 << 20]).send_no_response(NoResponse::ALL);
    let (outcome, ()) = tokio::join!(asking, serving);
    assert!(matches!(outcome, Err(Error::ConnectionLost { .. })), "{outcome:?}");
}

/// Reports that it was read.
struct Read(Arc<AtomicUsize>);

impl AsyncRead for Read {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        room.put_slice(b"more of it");
        Poll::Ready(Ok(()))
    }
}

/// Says how a handler ended.
struct End(mpsc::UnboundedSender<&'static str>, &'static str);

impl Drop for End {
    fn drop(&mut self) {
        self.0.send(self.1).unwrap();
    }
}

#[tokio::test]
async fn what_wants_no_response_is_carried_out_though_its_connection_has_ended() {
    let (telling, mut told) = mpsc::unbounded_channel();
    let (begun, mut begins) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let waiting = Arc::clone(&go_on);
    let slow = Resource::new().put(move || {
        let (end, waiting) = (End(telling.clone(), "cut off"), Arc::clone(&waiting));
        begun.send(()).unwrap();
        async move {
            let mut end = end;
            waiting.notified().await;
            end.1 = "carried out";
            Code::CHANGED
        }
    });
    let server = Server::builder().bind_tcp(ANY).route("/p", slow).start().await.unwrap();
    let [(_, uri)] = &uris(&server)[..] else { panic!("it listens at one address") };

    // Who waits for a response and goes ends what was asked.
    let impatient = client().await;
    tokio::select! {
        answered = impatient.put(uri).send() => panic!("{answered:?}"),
        _ = begins.recv() => {}
    }
    impatient.shutdown().await;
    assert_eq!(told.recv().await.unwrap(), "cut off");

    let hasty = client().await;
    assert_eq!(hasty.put(uri).send_no_response(NoResponse::ALL).await, Ok(Outcome::Sent));
    hasty.shutdown().await;
    begins.recv().await.unwrap();
    while server.stats().await.connections > 0 {
        tokio::task::yield_now().await;
    }
    go_on.notify_one();
    assert_eq!(told.recv().await.unwrap(), "carried out");

    // One that still runs when the server ends has as long as others.
    let hasty = client().await;
    assert_eq!(hasty.put(uri).send_no_response(NoResponse::ALL).await, Ok(Outcome::Sent));
    hasty.shutdown().await;
    begins.recv().await.unwrap();
    go_on.notify_one();
    server.shutdown().await;
    assert_eq!(told.recv().await.unwrap(), "carried out");
}

#[tokio::test]
async fn what_streams_is_not_read_for_who_does_not_want_it_and_a_body_is_taken_in_silence() {
    let (read, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (reading, taking) = (Arc::clone(&read), Arc::clone(&taken));
    let endless = Resource::new()
        .get(move || {
            let reader = Read(Arc::clone(&reading));
            async move { Response::stream(reader) }
        })
        .put(move |request: Request| {
            let taken = Arc::clone(&taking);
            async move {
                while let Some(chunk) = request.body().chunk().await? {
                    taken.fetch_add(chunk.len(), Ordering::Relaxed);
                }
                Ok::<_, millpond_live::HandlerError>(Code::CHANGED)
            }
        })
        .streaming();
    let server = Server::builder().bind(ANY).bind_tcp(ANY).most_running(4).route("/p", endless).start().await.unwrap();
    let client = client().await;
    for (transport, uri) in uris(&server) {
        // More often than there are places for what streams.
        for count in 1..=6 {
            let request = || client.request(Code::PUT, &uri).payload("22.5");
            request().send_no_response(NoResponse::ALL).await.unwrap();
            while taken.load(Ordering::Relaxed) < 4 * count {
                tokio::task::yield_now().await;
            }
            let get = client.get(&uri).deadline(Duration::from_secs(10));
            get.send_no_response(NoResponse::ALL).await.unwrap();
        }
        // A client that asks without the option is answered.
        assert_eq!(client.put(&uri).payload("22.5").await.unwrap().code(), Code::CHANGED, "{transport}");
        taken.store(0, Ordering::Relaxed);
    }
    assert_eq!(read.load(Ordering::Relaxed), 0);
    let stats = server.stats().await;
    assert_eq!(stats.overloaded, 0, "{stats:?}");
}

#[tokio::test]
async fn a_hop_limit_of_0_is_refused_and_others_reach_the_handler() {
    let limits = Resource::new().get(|request: Request| async move {
        request.options().uint(number::HOP_LIMIT).unwrap_or_default().to_string()
    });
    let server = Server::builder().bind(ANY).route("/", limits).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    assert_eq!(client.get(&uri).hop_limit(16).await.unwrap().text().unwrap(), "16");
    assert_eq!(client.get(&uri).hop_limit(0).await.unwrap().code(), Code::BAD_REQUEST);
    // What is no Hop-Limit says nothing.
    for values in [&[""][..], &["\0\0"], &["\x05", "\0"]] {
        let request = values.iter().fold(client.get(&uri), |request, value| request.option(number::HOP_LIMIT, *value));
        assert_eq!(request.await.unwrap().code(), Code::CONTENT, "{values:?}");
    }
}

#[tokio::test]
async fn conditions_are_said_in_a_word() {
    async fn kept_to(request: Request) -> Response {
        let met = match request.options().get(number::IF_MATCH) {
            Some(etag) => etag == "7",
            None => request.options().get(number::IF_NONE_MATCH).is_none(),
        };
        if met { Response::changed() } else { Response::new(Code::PRECONDITION_FAILED) }
    }
    let state = Resource::new().put(kept_to).conditional();
    let server = Server::builder().bind(ANY).route("/", state).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let put = || client.put(format!("coap://{}/", server.local_addr()));
    assert_eq!(put().if_match("7").await.unwrap().code(), Code::CHANGED);
    assert_eq!(put().if_match("8").await.unwrap().code(), Code::PRECONDITION_FAILED);
    assert_eq!(put().if_none_match().await.unwrap().code(), Code::PRECONDITION_FAILED);
}
