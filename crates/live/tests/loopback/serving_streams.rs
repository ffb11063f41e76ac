//! Bodies of which a server holds a block at a time.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use millpond_coap::message::Message;
use millpond_live::{
    AddressRule, Client, Code, Error, HandlerError, Observable, Request, Resource, Response, Server, ServerBuilder,
    number,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, ReadBuf},
    net::UdpSocket,
    sync::{Semaphore, mpsc},
};

use crate::ANY;

fn image(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place / 7) as u8).collect()
}

/// Counts how much is read of it.
struct Counted {
    left: Vec<u8>,
    at: usize,
    read: Arc<AtomicUsize>,
}

impl Counted {
    fn new(left: Vec<u8>) -> (Self, Arc<AtomicUsize>) {
        let read = Arc::new(AtomicUsize::new(0));
        (Self { left, at: 0, read: Arc::clone(&read) }, read)
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let end = (self.at + room.remaining().min(300)).min(self.left.len());
        room.put_slice(&self.left[self.at..end]);
        self.read.fetch_add(end - self.at, Ordering::Relaxed);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

/// What a handler has read: the body, its longest chunk, the length that was told before.
type Taken = Arc<Mutex<Vec<(Vec<u8>, usize, Option<usize>)>>>;

/// Writes down what it is sent, and gives an image of this length.
fn firmware(taken: &Taken, length: usize) -> Resource {
    let taken = Arc::clone(taken);
    let store = move |request: Request| {
        let taken = Arc::clone(&taken);
        async move {
            let mut body = request.body();
            let (mut all, mut longest, total) = (Vec::new(), 0, body.total());
            while let Some(chunk) = body.chunk().await? {
                longest = longest.max(chunk.len());
                assert!(request.payload().is_empty() || request.payload() == &chunk, "it comes bit by bit");
                all.extend_from_slice(&chunk);
                assert_eq!(all.len(), body.received());
                // Others have their turn: it does not always answer at once.
                tokio::task::yield_now().await;
            }
            assert!(request.body().chunk().await?.is_none(), "the first who asks has all of it");
            taken.lock().unwrap().push((all, longest, total));
            Ok::<_, HandlerError>(Code::CHANGED)
        }
    };
    let fetch = move || async move { Response::stream(std::io::Cursor::new(image(length))) };
    Resource::new().put(store).get(fetch).streaming()
}

fn builder() -> ServerBuilder {
    // No body that is put together may be so long.
    Server::builder().bind(ANY).bind_tcp(ANY).longest_body(2_000)
}

#[tokio::test]
async fn an_upload_of_any_length_comes_to_its_handler_block_by_block() {
    let taken = Taken::default();
    let server = builder().route("/firmware", firmware(&taken, 0)).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let tcp = server.local_addrs()[1].1;
    for length in [0, 1, 1_023, 1_024, 1_025, 4_096, 200_000] {
        let body = image(length);
        for (scheme, at, most) in [("coap", server.local_addr(), 1_024), ("coap+tcp", tcp, 65_536)] {
            let request = client.put(format!("{scheme}://{at}/firmware")).payload(body.clone());
            assert_eq!(request.await.unwrap().code(), Code::CHANGED, "{scheme} {length}");
            let (all, longest, total) = taken.lock().unwrap().pop().unwrap();
            assert!(all == body && longest <= most, "{scheme} {length}: {longest}");
            assert!(total.is_none_or(|total| total == length), "{scheme} {length}: {total:?}");
        }
        let request = client.put(format!("coap://{}/firmware", server.local_addr())).block_size(256);
        let mut reader = &body[..];
        assert_eq!(request.upload(&mut reader).await.unwrap().code(), Code::CHANGED);
        let (all, longest, _) = taken.lock().unwrap().pop().unwrap();
        assert!(all == body && longest <= 256);
    }
    assert!(taken.lock().unwrap().is_empty(), "each body was handled once");
}

#[tokio::test]
async fn who_reads_slowly_slows_down_who_sends() {
    let steps = Arc::new(Semaphore::new(0));
    let stepping = Arc::clone(&steps);
    let slow = Resource::new().streaming().put(move |request: Request| {
        let steps = Arc::clone(&stepping);
        async move {
            let mut body = request.body();
            while body.chunk().await?.is_some() {
                steps.acquire().await?.forget();
            }
            Ok::<_, HandlerError>((Code::CHANGED, body.received().to_string()))
        }
    });
    let server = builder().route("/slow", slow).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let (mut reader, read) = Counted::new(image(40_000));
    let request = client.put(format!("coap://{}/slow", server.local_addr()));
    let upload = tokio::spawn(async move { request.upload(&mut reader).await });
    for taken in 0..3 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        // One that is being written, one that waits, one on its way, and a byte that says that another one follows.
        let read = read.load(Ordering::Relaxed);
        assert!(((taken + 1) * 1_024..=(taken + 3) * 1_024 + 1).contains(&read), "{read} after {taken}");
        steps.add_permits(1);
    }
    steps.add_permits(100);
    assert_eq!(upload.await.unwrap().unwrap().text(), Ok("40000"));
}

#[tokio::test]
async fn a_stream_is_read_as_it_is_asked_for_and_told_how_far_it_has_come() {
    let reads = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (reading, telling) = (Arc::clone(&reads), Arc::clone(&told));
    let fetch = move || {
        let (reader, read) = Counted::new(image(30_001));
        reading.lock().unwrap().push(Arc::clone(&read));
        let telling = Arc::clone(&telling);
        async move {
            Response::stream(reader).with_progress(move |progress| {
                telling.lock().unwrap().push((progress.sent, read.load(Ordering::Relaxed)));
            })
        }
    };
    let server = builder().route("/image", Resource::new().get(fetch).streaming()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let tcp = format!("coap+tcp://{}/image", server.local_addrs()[1].1);
    let udp = format!("coap://{}/image", server.local_addr());
    for (uri, block) in [(&udp, Some(512)), (&udp, None), (&tcp, None), (&tcp, Some(512))] {
        let request = client.get(uri);
        let request = block.map_or(client.get(uri), |block| request.block_size(block));
        assert!(request.await.unwrap().payload() == &image(30_001), "{uri} {block:?}");
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert!(told.len() >= 29 && told.last() == Some(&(30_001, 30_001)), "{told:?}");
        let ahead = told.iter().map(|(sent, read)| read - sent).max().unwrap();
        assert!(ahead <= 1, "{uri}: {ahead} bytes were read before they were asked for");
    }
    assert_eq!(reads.lock().unwrap().len(), 4, "the handler is asked once for each");
    let mut writer = Vec::new();
    client.get(&udp).download(&mut writer).await.unwrap();
    assert!(writer == image(30_001));
}

#[tokio::test]
async fn a_handler_may_answer_before_the_end_and_its_panic_harms_nobody() {
    let limited = |request: Request| async move {
        let mut body = request.body();
        while let Some(chunk) = body.chunk().await? {
            assert!(chunk.first() != Some(&255), "on purpose");
            if body.received() > 5_000 {
                return Ok(Code::REQUEST_ENTITY_TOO_LARGE);
            }
        }
        Ok::<_, HandlerError>(Code::CHANGED)
    };
    let at_once = || async { Code::FORBIDDEN };
    let server = builder()
        .route("/limited", Resource::new().put(limited).streaming())
        .route("/closed", Resource::new().put(at_once).streaming())
        .start()
        .await
        .unwrap();
    let client = Client::new().await.unwrap();
    let uri = |path| format!("coap://{}/{path}", server.local_addr());
    for (path, code) in [("limited", Code::REQUEST_ENTITY_TOO_LARGE), ("closed", Code::FORBIDDEN)] {
        let (mut reader, read) = Counted::new(image(90_000));
        assert_eq!(client.put(uri(path)).upload(&mut reader).await.unwrap().code(), code);
        assert!(read.load(Ordering::Relaxed) < 10_000, "the rest is not sent");
    }
    let panicking = client.put(uri("limited")).payload(vec![255; 3_000]).await.unwrap();
    assert_eq!(panicking.code(), Code::INTERNAL_SERVER_ERROR);
    assert_eq!(client.put(uri("limited")).payload(vec![1; 3_000]).await.unwrap().code(), Code::CHANGED);
}

/// One message there and one back. `options` and payload as they stand in it.
async fn ask(socket: &UdpSocket, method: u8, id: u8, rest: &[u8]) -> (Code, Vec<u8>, Option<Vec<u8>>) {
    socket.send(&[&[0x40, method, 0, id], rest].concat()).await.unwrap();
    let mut bytes = [0; 1_500];
    loop {
        let length = socket.recv(&mut bytes).await.unwrap();
        let message = Message::parse(&bytes[..length]).unwrap();
        if message.code != Code::EMPTY {
            let block = message.option(number::BLOCK2).or(message.option(number::BLOCK1));
            return (message.code, message.payload().to_vec(), block.map(<[u8]>::to_vec));
        }
    }
}

#[tokio::test]
async fn blocks_that_do_not_follow_are_refused_and_who_lost_its_place_finds_it_again() {
    let (lost, mut told) = mpsc::unbounded_channel();
    let store = move |request: Request| {
        let lost = lost.clone();
        async move {
            let mut body = request.body();
            loop {
                match body.chunk().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return Code::CHANGED,
                    Err(error) => {
                        lost.send((body.received(), error.kind())).unwrap();
                        return Code::INTERNAL_SERVER_ERROR;
                    }
                }
            }
        }
    };
    let fetch = || async { Response::stream(std::io::Cursor::new(image(100))).with_etag("v1") };
    let server = builder().route("/f", Resource::new().put(store).get(fetch).streaming()).start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    // Uri-Path "f", Block1 with this value, 16 bytes.
    let put = |block: u8| [&[0xb1, b'f', 0xd1, 3, block, 0xff][..], &[7; 16]].concat();
    assert_eq!(ask(&socket, 3, 1, &put(0x18)).await.0, Code::REQUEST_ENTITY_INCOMPLETE, "nothing began");
    assert_eq!(ask(&socket, 3, 2, &put(0x08)).await, (Code::CONTINUE, Vec::new(), Some(vec![0x08])));
    assert_eq!(ask(&socket, 3, 3, &put(0x28)).await.0, Code::REQUEST_ENTITY_INCOMPLETE, "block 1 is missing");
    assert_eq!(ask(&socket, 3, 4, &put(0x18)).await.0, Code::CONTINUE);
    assert_eq!(ask(&socket, 3, 5, &put(0x18)).await.0, Code::CONTINUE, "the last one, in a message of its own");
    // It begins anew: who read the first one is told.
    assert_eq!(ask(&socket, 3, 6, &put(0x08)).await.0, Code::CONTINUE);
    assert_eq!(told.recv().await, Some((32, std::io::ErrorKind::UnexpectedEof)));
    assert_eq!(ask(&socket, 3, 7, &put(0x10)).await, (Code::CHANGED, Vec::new(), Some(vec![0x10])));
    assert_eq!(ask(&socket, 3, 8, &put(0x10)).await.0, Code::CHANGED, "once more, in a message of its own");
    let short = [0xb1, b'f', 0xd1, 3, 0x08, 0xff, 7];
    assert_eq!(ask(&socket, 3, 9, &short).await.0, Code::BAD_REQUEST, "it is shorter than it says");

    // Uri-Path "f", Block2 with this value.
    let get = |block: u8| [0xb1, b'f', 0xc1, block];
    let whole = image(100);
    for (id, block, told) in [
        (20, 0x01, Some((&whole[..32], 0x09))),
        (21, 0x11, Some((&whole[32..64], 0x19))),
        (22, 0x11, Some((&whole[32..64], 0x19))),
        (23, 0x31, Some((&whole[96..], 0x31))),
        (24, 0x31, Some((&whole[96..], 0x31))),
        (25, 0x21, Some((&whole[64..96], 0x29))),
        (26, 0x41, None),
    ] {
        let (code, payload, came) = ask(&socket, 1, id, &get(block)).await;
        match told {
            Some((bytes, block)) => assert!((code, &payload[..], came) == (Code::CONTENT, bytes, Some(vec![block]))),
            None => assert_eq!(code, Code::BAD_REQUEST, "it lies behind the end"),
        }
    }
}

#[tokio::test]
async fn bodies_go_on_for_proved_addresses_alone() {
    let taken = Taken::default();
    let server = builder().verify_addresses(AddressRule::LargeAnswersEverywhere).route("/f", firmware(&taken, 5_000));
    let server = server.start().await.unwrap();
    let stranger = UdpSocket::bind(ANY).await.unwrap();
    stranger.connect(server.local_addr()).await.unwrap();
    let first = [&[0xb1, b'f', 0xd1, 3, 0x08, 0xff][..], &[7; 16]].concat();
    assert_eq!(ask(&stranger, 3, 1, &first).await.0, Code::UNAUTHORIZED);
    assert_eq!(ask(&stranger, 1, 2, &[0xb1, b'f']).await.0, Code::UNAUTHORIZED);
    // Our client proves by itself where it is.
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/f", server.local_addr());
    assert_eq!(client.put(&uri).payload(image(9_000)).await.unwrap().code(), Code::CHANGED);
    assert_eq!(taken.lock().unwrap().len(), 1);
    assert!(client.get(&uri).await.unwrap().payload() == &image(5_000));
}

/// Their handlers have answered at once, and never waited for a place.
#[tokio::test]
async fn streams_of_one_host_leave_places_and_bytes_for_the_handlers_of_others() {
    let endless = Resource::new().streaming().get(|| async { Response::stream(tokio::io::repeat(7)) });
    let long = Resource::new().streaming().get(|| async { image(1 << 20) });
    let slow = Resource::new().get(|| async {
        tokio::task::yield_now().await;
        "x"
    });
    let server = builder().most_running(64).route("/endless", endless).route("/long", long).route("/slow", slow);
    let server = server.start().await.unwrap();
    for (path, most) in [(&b"\xb7endless"[..], 48), (b"\xb4long", 48)] {
        let socket = UdpSocket::bind(ANY).await.unwrap();
        socket.connect(server.local_addr()).await.unwrap();
        let mut begun = 0;
        for number in 0..100 {
            let (code, ..) = ask(&socket, 1, number, &[path, &[0x41, number, 0x81, 0x00]].concat()).await;
            assert!(matches!(code, Code::CONTENT | Code::TOO_MANY_REQUESTS), "{code}");
            begun += usize::from(code == Code::CONTENT);
        }
        assert!(begun <= most, "{begun} streams");
        let other = UdpSocket::bind("127.9.9.9:0").await.unwrap();
        other.connect(server.local_addr()).await.unwrap();
        for id in 0..4 {
            assert_eq!(ask(&other, 1, id, b"\xb4slow").await.0, Code::CONTENT);
        }
    }
}

/// What was answered to nobody, too, as their handlers were given up or gave up by themselves.
#[tokio::test]
async fn of_bodies_that_were_begun_and_left_nothing_stays_once_their_handlers_have_ended() {
    let ended = Arc::new(AtomicUsize::new(0));
    let ending = Arc::clone(&ended);
    let first = move |request: Request| {
        let ended = Arc::clone(&ending);
        async move {
            let mut body = request.body();
            body.chunk().await?;
            // The client has been told to go on, and does not.
            tokio::time::sleep(Duration::from_millis(5)).await;
            ended.fetch_add(1, Ordering::Relaxed);
            Ok::<_, HandlerError>(image(10_000))
        }
    };
    let server = builder().route("/first", Resource::new().put(first).streaming()).start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    let put = async |number: u16| {
        let [high, low] = number.to_be_bytes();
        for id in (number..).step_by(3_000) {
            let [first, second] = id.to_be_bytes();
            let head = [0x41, 3, first, second, 7];
            let message = [&head[..], b"\xb5first\xd1\x03\x08\xe2\x01\x00", &[high, low, 0xff], &[7; 16]];
            socket.send(&message.concat()).await.unwrap();
            let mut bytes = [0; 1_500];
            let length = socket.recv(&mut bytes).await.unwrap();
            match Message::parse(&bytes[..length]).unwrap().code {
                // Or its handler has ended before the server could say to go on.
                Code::CONTINUE | Code::CONTENT => return,
                // Its handlers have ended, and the server has not heard of that yet.
                Code::TOO_MANY_REQUESTS | Code::SERVICE_UNAVAILABLE => {
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                other => panic!("{other}"),
            }
        }
        panic!("there is never room");
    };
    let mut held = 0;
    for number in 0..3_000 {
        put(number).await;
        while ended.load(Ordering::Relaxed) + 20 < usize::from(number) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if number == 500 {
            held = server.stats().await.memory;
        }
    }
    // 25 MB was answered to nobody. The last of it is dropped when the server comes to it, which it does before it rejects these.
    let mut now = server.stats().await.memory;
    for number in 0..1_000_u16 {
        if now < held + 1_000_000 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let [high, low] = number.to_be_bytes();
        socket.send(&[0x40, 0, high, low]).await.unwrap();
        socket.recv(&mut [0; 1_500]).await.unwrap();
        now = server.stats().await.memory;
    }
    assert!(now < held + 1_000_000, "{held} bytes after 500 bodies, {now} after 3000");
}

/// Always has more, and counts how much was read.
struct Endless(Arc<AtomicUsize>);

impl AsyncRead for Endless {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.0.fetch_add(room.remaining(), Ordering::Relaxed);
        room.initialize_unfilled();
        room.set_filled(room.capacity());
        Poll::Ready(Ok(()))
    }
}

/// Its last block can be asked for by one datagram, and a gibibyte stands before it.
#[tokio::test]
async fn who_asks_for_the_end_of_a_long_stream_holds_nobody_up() {
    let read = Arc::new(AtomicUsize::new(0));
    let reading = Arc::clone(&read);
    let endless = move || {
        let reading = Arc::clone(&reading);
        async move { Response::stream(Endless(reading)) }
    };
    let server = builder()
        .route("/endless", Resource::new().streaming().get(endless))
        .route("/fast", Resource::new().get(|| async { "x" }));
    let server = server.start().await.unwrap();
    let socket = UdpSocket::bind(ANY).await.unwrap();
    socket.connect(server.local_addr()).await.unwrap();
    socket.send(b"\x40\x01\x00\x01\xb7endless\xc3\xff\xff\xf6").await.unwrap();
    while read.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let other = UdpSocket::bind(ANY).await.unwrap();
    other.connect(server.local_addr()).await.unwrap();
    for id in 0..10 {
        assert_eq!(ask(&other, 1, id, b"\xb4fast").await.0, Code::CONTENT);
    }
    let read = read.load(Ordering::Relaxed);
    assert!(read < 4 << 20, "{read} bytes were read before ten answers");
}

/// What takes the place of another request reports the other, so that it is not under way for ever.
#[tokio::test]
async fn a_request_whose_stream_is_begun_anew_before_it_came_is_answered() {
    let silent = || async {
        let (silent, more) = tokio::io::duplex(1);
        std::mem::forget(more);
        Response::stream(silent)
    };
    let deaf = std::future::pending::<Response>;
    let server = builder().route("/s", Resource::new().streaming().get(silent).put(deaf)).start().await.unwrap();
    for (method, rest) in [(1, &b"\xb1s"[..]), (3, b"\xb1s\xd1\x03\x08\xff0123456789abcdef")] {
        let socket = UdpSocket::bind(ANY).await.unwrap();
        socket.connect(server.local_addr()).await.unwrap();
        for id in 1..=3 {
            socket.send(&[&[0x41, method, 0, id, id][..], rest].concat()).await.unwrap();
        }
        let mut answered = Vec::new();
        let mut bytes = [0; 1_500];
        while answered.len() < 2 {
            let length = socket.recv(&mut bytes).await.unwrap();
            let message = Message::parse(&bytes[..length]).unwrap();
            if message.code != Code::EMPTY {
                assert_eq!(message.code, Code::REQUEST_ENTITY_INCOMPLETE);
                answered.push(message.token.as_bytes().to_vec());
            }
        }
        assert_eq!(answered, [[1], [2]]);
    }
}

#[tokio::test]
async fn who_observes_gets_no_stream() {
    let seen = Observable::new();
    let both = Resource::new().get(|| async { "x" }).observable(&seen).streaming();
    let refused = builder().route("/both", both).start().await.unwrap_err();
    assert!(matches!(&refused, Error::Setting { reason, .. } if reason.contains("streams and can be observed")));
    let plain = Resource::new().get(|| async { Response::stream(tokio::io::empty()) }).observable(&seen);
    let server = builder().route("/plain", plain).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let observed = client.get(format!("coap://{}/plain", server.local_addr())).observe().await.unwrap_err();
    assert!(matches!(&observed, Error::NotObserved { answer } if answer.code() == Code::INTERNAL_SERVER_ERROR));
}

/// What distinguishes streams is as long as what is asked for.
#[tokio::test]
async fn what_streams_of_a_connection_hold_is_counted_and_over_with_them_given_back() {
    let endless = Resource::new().get(|request: Request| async move {
        match request.query_value("ends") {
            Some(_) => Response::stream(std::io::Cursor::new(image(40_000))),
            // Somebody who has more to say, and does not say it.
            None => {
                let (silent, more) = tokio::io::duplex(1);
                std::mem::forget(more);
                Response::stream(silent)
            }
        }
    });
    let server = Server::builder().bind_tcp(ANY).route("/", endless.streaming()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let long = format!("&{}", ".".repeat(200)).repeat(200);
    let uri = |query: &str| format!("coap+tcp://{}/?{query}{long}", server.local_addr());
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..20 {
        asked.spawn(client.get(uri(&number.to_string())).send());
    }
    while server.stats().await.requests < 20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let held = server.stats().await.memory;
    assert!(held > 2 * 20 * 40_000, "{held}");
    asked.abort_all();
    for number in 0..20 {
        let answer = client.get(uri(&format!("ends={number}"))).await.unwrap();
        assert_eq!(answer.payload().len(), 40_000);
    }
    assert!(server.stats().await.memory < held + 500_000);
}

/// Of FETCH the body is part of what is asked for, and it comes once where it is long.
#[tokio::test]
async fn the_answer_to_a_long_fetch_is_one_stream() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let echo = move |request: Request| {
        let made = Arc::clone(&counted);
        async move {
            let mut body = request.body();
            let mut all = Vec::new();
            while let Some(chunk) = body.chunk().await? {
                all.extend_from_slice(&chunk);
            }
            made.fetch_add(1, Ordering::Relaxed);
            Ok::<_, HandlerError>(Response::stream(std::io::Cursor::new(all)))
        }
    };
    let server = builder().route("/echo", Resource::new().fetch(echo).streaming()).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let tcp = server.local_addrs()[1].1;
    let mut asked = 0;
    for (scheme, at) in [("coap", server.local_addr()), ("coap+tcp", tcp)] {
        for length in [100, 1_024, 1_025, 40_000, 100_000] {
            let answer = client.fetch(format!("{scheme}://{at}/echo")).payload(image(length)).await.unwrap();
            asked += 1;
            assert_eq!((answer.code(), answer.payload().len()), (Code::CONTENT, length), "{scheme} {length}");
            assert!(answer.payload() == &image(length));
            assert_eq!(made.load(Ordering::Relaxed), asked, "{scheme} {length}");
        }
    }
}

/// A resource that can be observed answers one with a stream, and the client reads it while it comes; each is held up by who reads it.
#[tokio::test]
async fn a_resource_that_does_not_stream_may_answer_with_a_stream_that_is_read_while_it_comes() {
    const LENGTH: usize = 300_000;
    let (bytes, read) = Counted::new(image(LENGTH));
    let bytes = Arc::new(Mutex::new(Some(bytes)));
    let (asked, changed) = (Arc::new(AtomicUsize::new(0)), Observable::new());
    let handler = {
        let asked = Arc::clone(&asked);
        move |request: Request| {
            asked.fetch_add(1, Ordering::Relaxed);
            let bytes = bytes.lock().unwrap().take();
            async move {
                match bytes {
                    Some(bytes) if request.may_stream() => Response::stream(bytes),
                    _ => Response::new(Code::BAD_REQUEST),
                }
            }
        }
    };
    let resource = Resource::new().observable(&changed).get(handler);
    let server = builder().route("/image", resource).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let request = client.get(format!("coap://{}/image", server.local_addr()));
    let answer = request.send_streaming(|first| first.payload().len()).await.unwrap();
    assert!(answer.has_body_to_come() && answer.payload().is_empty());
    let mut body = answer.take_body().unwrap();
    assert!(answer.take_body().is_none(), "it is for one");
    let mut begun = vec![0; 3_000];
    body.read_exact(&mut begun).await.unwrap();
    assert!(read.load(Ordering::Relaxed) < LENGTH / 2, "{read:?} bytes were read");
    body.read_to_end(&mut begun).await.unwrap();
    assert!(begun == image(LENGTH));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_body_that_is_short_is_whole_and_one_that_ends_early_is_an_error() {
    /// It fails behind so many bytes.
    struct Broken(usize);
    impl AsyncRead for Broken {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            room: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            let length = room.remaining().min(self.0);
            if length == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::Other.into()));
            }
            room.put_slice(&vec![7; length]);
            self.0 -= length;
            Poll::Ready(Ok(()))
        }
    }
    let short = Resource::new().get(|| async { Response::content(image(5_000)) });
    let broken = Resource::new().get(|| async { Response::stream(Broken(50_000)) }).streaming();
    let server = builder().route("/short", short).route("/broken", broken).start().await.unwrap();
    let (client, at) = (Client::new().await.unwrap(), format!("coap://{}", server.local_addr()));
    let whole = client.get(format!("{at}/short")).send_streaming(|_| 5_000).await.unwrap();
    assert!(!whole.has_body_to_come() && whole.payload() == &image(5_000));
    let broken = client.get(format!("{at}/broken")).send_streaming(|_| 1_000).await.unwrap();
    let mut body = Vec::new();
    let error = broken.take_body().unwrap().read_to_end(&mut body).await.unwrap_err();
    assert!(error.to_string().contains("5.00") && body.len() <= 50_000, "{error}");
    let error = client.get(format!("{at}/broken")).send_streaming(|_| 60_000).await.unwrap_err();
    assert!(matches!(error, Error::Transfer { .. }), "{error}");
}
