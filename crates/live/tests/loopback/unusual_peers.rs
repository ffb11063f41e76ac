//! Peers that are not as the RFC says, and what is done about them.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use millpond_coap::message::{Kind, Message, Writer};
use millpond_live::{
    Client, ClientSecurity, Code, ControllerChoice, Error, Happened, PreSharedKey, PreSharedKeys, Request, Resource,
    Response, Server, ServerSecurity, number,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
    sync::Notify,
};

use crate::ANY;

/// What a device answers to a request: a code, options and a payload.
type Reply = (Code, Options, Vec<u8>);

/// A device that answers every request so, with this token if not with the request's.
async fn device(
    token: Option<&'static [u8]>,
    answer: impl Fn(&Message<'_>) -> Reply + Send + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<Vec<u8>>>>) {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let address = socket.local_addr().unwrap();
    let heard = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let hearing = Arc::clone(&heard);
    tokio::spawn(async move {
        let mut room = [0; 65_536];
        loop {
            let (length, from) = socket.recv_from(&mut room).await.unwrap();
            let datagram = &room[..length];
            let request = Message::parse(datagram).unwrap();
            if !request.code.is_request() {
                continue;
            }
            hearing.lock().unwrap().push(datagram.to_vec());
            let (code, options, payload) = answer(&request);
            let kind = if request.kind == Kind::Confirmable { Kind::Acknowledgement } else { Kind::NonConfirmable };
            let token = token.map_or(request.token, |token| millpond_live::Token::new(token).unwrap());
            let mut bytes = Vec::new();
            let mut writer = Writer::start(&mut bytes, kind, code, request.id, token).within(65_000);
            for (number, value) in &options {
                writer.option(*number, value).unwrap();
            }
            writer.payload(&payload).unwrap();
            writer.finish().unwrap();
            socket.send_to(&bytes, from).await.unwrap();
        }
    });
    (address, heard)
}

/// Options of a message.
type Options = Vec<(u16, Vec<u8>)>;

/// The block that is asked for, of a body of three blocks of 16 bytes, and whether more follow.
fn block_of_three(request: &Message<'_>) -> (Options, Vec<u8>, bool) {
    let asked = request.option(number::BLOCK2).map_or(0, |value| value.first().map_or(0, |byte| byte >> 4));
    let more = asked < 2;
    let value = asked << 4 | u8::from(more) << 3;
    let value = if value == 0 { vec![] } else { vec![value] };
    (vec![(number::BLOCK2, value)], vec![b'a' + asked; 16], more)
}

#[tokio::test]
async fn an_answer_longer_than_1152_bytes_is_taken_confirmable_or_not() {
    let (address, _) = device(None, |_| (Code::CONTENT, vec![], vec![b'x'; 1_400])).await;
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{address}/");
    assert_eq!(client.get(&uri).await.unwrap().payload().len(), 1_400);
    assert_eq!(client.get(&uri).non_confirmable().await.unwrap().payload().len(), 1_400);
}

#[tokio::test]
async fn an_answer_longer_than_is_taken_is_told_at_once_and_the_limit_can_be_raised() {
    let (address, _) = device(None, |_| (Code::CONTENT, vec![], vec![b'x'; 9_000])).await;
    let uri = format!("coap://{address}/");
    let client = Client::new().await.unwrap();
    for request in [client.get(&uri), client.get(&uri).non_confirmable()] {
        let error = request.await.unwrap_err();
        assert!(matches!(error, Error::LongDatagram { .. }), "{error}");
        assert!(error.to_string().contains("raise longest_datagram"), "{error}");
    }
    let client = Client::builder().longest_datagram(20_000).build().await.unwrap();
    assert_eq!(client.get(&uri).await.unwrap().payload().len(), 9_000);
    assert_eq!(client.get(&uri).non_confirmable().await.unwrap().payload().len(), 9_000);
}

/// A request in one datagram, and what comes back.
async fn posts(server: &Server, length: usize) -> Vec<u8> {
    let socket = UdpSocket::bind(ANY).await.unwrap();
    let mut request = b"\x41\x02\x12\x34t\xb1e\xff".to_vec();
    request.resize(length, b'x');
    socket.send_to(&request, server.local_addr()).await.unwrap();
    let mut answer = [0; 200];
    let length = socket.recv(&mut answer).await.unwrap();
    answer[..length].to_vec()
}

#[tokio::test]
async fn a_request_longer_than_is_taken_is_answered_with_4_13_and_size1() {
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&lines);
    let echo = Resource::new().post(|request: Request| async move { request.payload().len().to_string() });
    let builder = Server::builder().bind(ANY).route("/e", echo);
    let builder =
        builder.access_log(move |access| log.lock().unwrap().push(format!("{:?} {:?}", access.outcome, access.reason)));
    let server = builder.start().await.unwrap();
    let answer = posts(&server, 1_200).await;
    assert_eq!(Message::parse(&answer).unwrap().payload(), b"1192");
    for _ in 0..2 {
        let answer = posts(&server, 1_453).await;
        let message = Message::parse(&answer).unwrap();
        assert_eq!((message.kind, message.code), (Kind::Acknowledgement, Code::REQUEST_ENTITY_TOO_LARGE));
        assert_eq!(message.option(number::SIZE1), Some(&1_452_u16.to_be_bytes()[..]));
    }
    let lines = lines.lock().unwrap().clone();
    assert!(lines.iter().any(|line| line.contains("4.13") && line.contains("longest_datagram")), "{lines:?}");
    let echo = Resource::new().post(|request: Request| async move { request.payload().len().to_string() });
    let server = Server::builder().bind(ANY).longest_datagram(10_000).route("/e", echo).start().await.unwrap();
    assert_eq!(Message::parse(&posts(&server, 10_000).await).unwrap().payload(), b"9992");
}

#[tokio::test]
async fn blocks_of_an_answer_can_be_asked_for_with_one_token() {
    for is_one in [false, true] {
        let (address, heard) = device(None, |request| {
            let (options, payload, _) = block_of_three(request);
            (Code::CONTENT, options, payload)
        })
        .await;
        let client = Client::new().await.unwrap();
        let request = client.get(format!("coap://{address}/"));
        let request = if is_one { request.one_token() } else { request };
        assert_eq!(request.await.unwrap().payload().len(), 48);
        let heard = heard.lock().unwrap().clone();
        let tokens: Vec<_> = heard.iter().map(|datagram| Message::parse(datagram).unwrap().token).collect();
        assert_eq!(tokens.len(), 3);
        assert_eq!(tokens.iter().all(|token| *token == tokens[0]), is_one, "{tokens:?}");
    }
}

#[tokio::test]
async fn blocks_of_an_answer_may_come_with_2_31() {
    let (address, _) = device(None, |request| {
        let (options, payload, more) = block_of_three(request);
        (if more { Code::CONTINUE } else { Code::CONTENT }, options, payload)
    })
    .await;
    let client = Client::new().await.unwrap();
    let answer = client.get(format!("coap://{address}/")).await.unwrap();
    assert_eq!((answer.code(), answer.payload().len()), (Code::CONTENT, 48));
}

#[tokio::test]
async fn answers_without_the_requests_token_are_told_as_that() {
    let (address, _) = device(Some(b""), |_| (Code::CONTENT, vec![], b"hello".to_vec())).await;
    let controller: ControllerChoice = "rfc7252".parse().unwrap();
    let controller = controller.with_ack_timeout(Duration::from_secs(20)).unwrap();
    let came = Arc::new(Notify::new());
    let coming = Arc::clone(&came);
    let builder = Client::builder().controller(controller).max_retransmit(0).trace(move |event| {
        if matches!(event.what, Happened::Ignored { .. }) {
            coming.notify_one();
        }
    });
    let client = builder.build().await.unwrap();
    let asking = tokio::spawn(client.get(format!("coap://{address}/")).send());
    came.notified().await;
    tokio::time::pause();
    let error = asking.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("another token than the request, or none"), "{error}");
}

#[tokio::test]
async fn uri_host_can_be_left_out() {
    let (address, heard) = device(None, |_| (Code::CONTENT, vec![], vec![])).await;
    let client = Client::new().await.unwrap();
    let uri = format!("coap://localhost:{}/a", address.port());
    client.get(&uri).without_uri_host().deadline(Duration::from_secs(9)).await.unwrap();
    client.get(&uri).deadline(Duration::from_secs(9)).await.unwrap();
    let heard = heard.lock().unwrap().clone();
    let hosts = heard.iter().map(|datagram| Message::parse(datagram).unwrap().option(number::URI_HOST).is_some());
    assert_eq!(hosts.collect::<Vec<_>>(), [false, true]);
}

#[tokio::test]
async fn an_ipv4_address_in_the_form_of_ipv6_is_asked_over_ipv4() {
    let (address, _) = device(None, |_| (Code::CONTENT, vec![], b"hello".to_vec())).await;
    let client = Client::new().await.unwrap();
    let answer = client.get(format!("coap://[::ffff:127.0.0.1]:{}/", address.port())).await.unwrap();
    assert_eq!(answer.exchange().unwrap().peer, address);
    let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{}", address.port()).parse().unwrap();
    client.set_controller(mapped, "rfc7252".parse::<ControllerChoice>().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_peer_over_tcp_that_sends_no_settings_can_be_asked_all_the_same() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut room = [0; 4_096];
                loop {
                    let count = stream.read(&mut room).await.unwrap_or(0);
                    if count == 0 {
                        return;
                    }
                    // A GET without options: its token is returned.
                    if let Some(at) = room[..count].windows(2).position(|two| two[1] == 1 && two[0] >> 4 == 0) {
                        let length = usize::from(room[at] & 15);
                        let mut answer = vec![0x60 | room[at] & 15, 0x45];
                        answer.extend_from_slice(&room[at + 2..at + 2 + length]);
                        answer.extend_from_slice(b"\xffhello");
                        stream.write_all(&answer).await.unwrap();
                    }
                }
            });
        }
    });
    let uri = format!("coap+tcp://{address}/");
    let strict = Client::new().await.unwrap();
    let error = strict.get(&uri).await.unwrap_err();
    assert!(error.to_string().contains("settings (CSM)"), "{error}");
    let tolerant = Client::builder().without_settings().build().await.unwrap();
    assert_eq!(tolerant.get(&uri).await.unwrap().text(), Ok("hello"));
}

#[tokio::test]
async fn a_deadline_that_passes_before_the_settings_came_says_so() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
    let error = client.get(uri).deadline(Duration::from_millis(200)).await.unwrap_err();
    assert!(matches!(error, Error::NoSettings { .. }) && error.is_timeout(), "{error}");
}

#[tokio::test]
async fn requests_over_dtls_leave_from_the_port_that_was_asked_for() {
    let keys = PreSharedKeys::new([PreSharedKey::new("a", "secret").unwrap()]).unwrap();
    let whence = Resource::new().get(|request: Request| async move { request.peer().port().to_string() });
    let builder = Server::builder().bind_dtls(ANY).security(ServerSecurity::new().pre_shared_keys(keys));
    let server = builder.route("/", whence).start().await.unwrap();
    let free = UdpSocket::bind(ANY).await.unwrap().local_addr().unwrap();
    let security = ClientSecurity::new().pre_shared_key(PreSharedKey::new("a", "secret").unwrap());
    let client = Client::builder().security(security).bind_dtls(free).build().await.unwrap();
    let answer = client.get(format!("coaps://{}/", server.local_addr())).await.unwrap();
    assert_eq!(answer.text(), Ok(free.port().to_string().as_str()));
}

#[tokio::test]
async fn what_nobody_asked_for_is_rejected_or_taken() {
    // CON 2.05 with a token and a payload.
    let datagram = b"\x42\x45\x12\x34ab\xffon";
    for takes in [false, true] {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let telling = Arc::clone(&told);
        let mut builder = Server::builder().bind(ANY);
        if takes {
            builder = builder.unasked(move |unasked| {
                let text = String::from_utf8_lossy(&unasked.payload).into_owned();
                telling.lock().unwrap().push(format!("{} {text}", unasked.code));
            });
        }
        let server = builder.start().await.unwrap();
        let socket = UdpSocket::bind(ANY).await.unwrap();
        for _ in 0..2 {
            socket.send_to(datagram, server.local_addr()).await.unwrap();
            let mut answer = [0; 20];
            let length = socket.recv(&mut answer).await.unwrap();
            let first = if takes { 0x60 } else { 0x70 };
            assert_eq!(answer[..length], [first, 0, 0x12, 0x34]);
        }
        let told = told.lock().unwrap().clone();
        assert_eq!(told, if takes { vec!["2.05 on"] } else { vec![] }, "a copy is told once");
    }
}

/// Tokens of RFC 8974, over UDP and over TCP: all blocks of a body, and an observation.
#[tokio::test]
async fn tokens_of_more_than_8_bytes_are_sent_and_taken() {
    let body: Vec<u8> = (0..3_000_u32).map(|at| (at % 251) as u8).collect();
    let sent = body.clone();
    for length in [9, 20, 300] {
        let body = body.clone();
        let lengths = Arc::<Mutex<Vec<usize>>>::default();
        let telling = Arc::clone(&lengths);
        let server = Server::builder()
            .trace(move |event| {
                if let Happened::Received { token, .. } = &event.what {
                    telling.lock().unwrap().push(token.len());
                }
            })
            .bind(ANY)
            .bind_tcp(ANY)
            .longest_token(300)
            .route(
                "/",
                Resource::new().get(move || {
                    let body = body.clone();
                    async move { Response::content(body) }
                }),
            )
            .start()
            .await
            .unwrap();
        let client = Client::builder().token_length(length).build().await.unwrap();
        let [(_, udp), (_, tcp)] = server.local_addrs() else { panic!("two addresses") };
        for uri in [format!("coap://{udp}/"), format!("coap+tcp://{tcp}/")] {
            let answer = client.get(&uri).await.unwrap();
            assert_eq!(answer.payload(), &sent[..], "{uri}");
        }
        assert_eq!(*lengths.lock().unwrap(), [usize::from(length); 3], "three blocks over UDP");
    }
}

/// A server that does not know them rejects the request, or says so in its settings.
#[tokio::test]
async fn a_server_without_long_tokens_is_told_as_such() {
    let hello = Resource::new().get(|| async { Response::content("hello") });
    let server = Server::builder().bind(ANY).bind_tcp(ANY).route("/", hello);
    let server = server.start().await.unwrap();
    let client = Client::builder().token_length(9).build().await.unwrap();
    let [(_, udp), (_, tcp)] = server.local_addrs() else { panic!("two addresses") };
    let reset = client.get(format!("coap://{udp}/")).await.unwrap_err();
    assert!(reset.to_string().contains("reset"), "{reset}");
    let refused = client.get(format!("coap+tcp://{tcp}/")).await.unwrap_err();
    assert!(refused.to_string().contains("takes at most 8"), "{refused}");
}

/// What devices report by code 0.30 is a request with a method that nobody registered.
#[tokio::test]
async fn a_request_with_an_unregistered_method_reaches_the_fallback() {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let telling = Arc::clone(&told);
    let builder = Server::builder().bind(ANY).fallback(move |request: Request| {
        let device = request.options().get(3_332).map(|value| String::from_utf8_lossy(value).into_owned());
        telling.lock().unwrap().push(format!("{} {} {device:?}", request.method(), request.path_text()));
        async { Response::new(Code::CHANGED) }
    });
    let server = builder.start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    // NON 0.30 /cit/s with option 3332.
    let datagram = b"\x50\x1e\x12\x34\xb3cit\x01s\xe5\x0b\xecSHSW1\xff{}";
    socket.send_to(datagram, server.local_addr()).await.unwrap();
    let mut answer = [0; 20];
    let length = socket.recv(&mut answer).await.unwrap();
    assert_eq!(answer[1..length].first(), Some(&0x44));
    assert_eq!(*told.lock().unwrap(), ["0.30 /cit/s Some(\"SHSW1\")"]);
}
