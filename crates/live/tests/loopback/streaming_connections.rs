//! Bodies of which a client holds a message at a time, over TCP and TLS.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use millpond_coap::{
    block::{Block, BlockSize},
    message::{Message, Token},
    stream::{FrameReader, write_frame},
};
use millpond_live::{Bytes, Client, Code, Error, Request, Resource, Response, Server, number};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    ANY,
    authority::Authority,
    streaming::{Counting, Drips, image},
};

const LENGTH: usize = 1_000_001;

/// A server over TCP and TLS, whose first resource puts bodies together and whose second takes and gives them as they come;
/// what it was sent; and a client of it.
async fn firmware() -> (Server, Arc<Mutex<Vec<Bytes>>>, Client) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let put = |taken: &Arc<Mutex<Vec<Bytes>>>| {
        let taken = Arc::clone(taken);
        move |request: Request| {
            let taken = Arc::clone(&taken);
            async move {
                let (mut body, mut all) = (request.body(), Vec::new());
                while let Some(chunk) = body.chunk().await? {
                    all.extend_from_slice(&chunk);
                }
                taken.lock().unwrap().push(all.into());
                Ok::<_, millpond_live::HandlerError>(Code::CHANGED)
            }
        }
    };
    let whole = Resource::new().put(put(&taken)).get(|| async { Response::content(image(LENGTH)).with_etag("v1") });
    let streamed = Resource::new().put(put(&taken));
    let streamed = streamed.get(|| async { Response::stream(std::io::Cursor::new(image(LENGTH))) }).streaming();
    let authority = Authority::new();
    let server = Server::builder().bind_tcp(ANY).bind_tls(ANY).security(authority.server(&["127.0.0.1"]));
    let server = server.route("/whole", whole).route("/streamed", streamed).start().await.unwrap();
    // It would not take so much at once.
    let client = Client::builder().security(authority.client()).longest_body(2_000).build().await.unwrap();
    (server, taken, client)
}

#[tokio::test]
async fn a_long_body_is_written_message_by_message() {
    let (server, _, client) = firmware().await;
    for (transport, address) in server.local_addrs() {
        for path in ["whole", "streamed"] {
            for size in [None, Some(512)] {
                let (mut writer, told) = (Counting::default(), Arc::new(Mutex::new(Vec::new())));
                let telling = Arc::clone(&told);
                let mut request = client.get(format!("{transport}://{address}/{path}"));
                if let Some(size) = size {
                    request = request.block_size(size);
                }
                let request = request.progress(move |progress| telling.lock().unwrap().push(progress.received));
                let answer = request.download(&mut writer).await.unwrap();
                assert_eq!((answer.code(), answer.payload().len()), (Code::CONTENT, 0), "{transport} {path}");
                assert!(writer.all == image(LENGTH), "{transport} {path}");
                let told = told.lock().unwrap();
                assert!(told.is_sorted() && told.last() == Some(&LENGTH), "{told:?}");
                if let Some(size) = size {
                    assert_eq!((writer.longest, told.len()), (usize::from(size), LENGTH.div_ceil(usize::from(size))));
                }
            }
        }
        let mut writer = Counting::default();
        let missing = client.get(format!("{transport}://{address}/missing")).download(&mut writer).await.unwrap();
        assert_eq!((missing.code(), writer.all.len()), (Code::NOT_FOUND, 0));
    }
}

#[tokio::test]
async fn a_long_body_is_read_as_it_is_sent() {
    let (server, taken, client) = firmware().await;
    for (transport, address) in server.local_addrs() {
        for path in ["whole", "streamed"] {
            for length in [0, 1, 1_024, 1_025, 64 << 10, LENGTH] {
                let (body, read) = (image(length), Arc::new(AtomicUsize::new(0)));
                let (reading, ahead) = (Arc::clone(&read), Arc::new(AtomicUsize::new(0)));
                let most = Arc::clone(&ahead);
                let request = client.put(format!("{transport}://{address}/{path}")).progress(move |progress| {
                    most.fetch_max(reading.load(Ordering::Relaxed) - progress.sent, Ordering::Relaxed);
                });
                let mut reader = Drips { left: body.clone(), next: 500, read };
                assert_eq!(request.upload(&mut reader).await.unwrap().code(), Code::CHANGED, "{transport} {path}");
                assert!(taken.lock().unwrap().pop().unwrap() == body, "{transport} {path} {length}");
                assert!(ahead.load(Ordering::Relaxed) <= 65_537, "no more is read than is sent");
            }
        }
    }
    let limited = Server::builder().bind_tcp(ANY).longest_body(100_000);
    let limited = limited.route("/whole", Resource::new().put(|| async { Code::CHANGED })).start().await.unwrap();
    let mut reader = Drips { left: image(LENGTH), next: 500, read: Arc::default() };
    let refused = client.put(format!("coap+tcp://{}/whole", limited.local_addr())).upload(&mut reader).await.unwrap();
    assert_eq!(refused.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert!(!reader.left.is_empty(), "what is refused is not read to its end");
}

/// A server made by hand.
struct Script {
    stream: TcpStream,
    reader: FrameReader,
}

/// A request as it came: its token, Block1, Block2 and how long its payload is.
struct Came {
    token: Vec<u8>,
    block1: Option<Block>,
    block2: Option<Block>,
    length: usize,
}

const BERT: &[u8] = b"\x50\xe1\x23\x02\x00\x00\x20";
/// Blocks, one in a message of at most 1152 bytes.
const SINGLE: &[u8] = b"\x10\xe1\x40";
const NO_BLOCKS: &[u8] = b"\0\xe1";
const RELEASE: &[u8] = b"\0\xe4";

impl Script {
    async fn accept(listener: &TcpListener, settings: &[u8]) -> Self {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(settings).await.unwrap();
        Self { stream, reader: FrameReader::new(1 << 20) }
    }

    /// The next request; none if the client goes away.
    async fn next(&mut self) -> Option<Came> {
        loop {
            while let Some(frame) = self.reader.next_frame().unwrap() {
                if frame.code.is_request() {
                    let message: Message<'_> = frame.message();
                    let block = |number| message.option(number).map(|value| Block::read(value, true).unwrap());
                    let (block1, block2) = (block(number::BLOCK1), block(number::BLOCK2));
                    let token = frame.token.as_bytes().to_vec();
                    return Some(Came { token, block1, block2, length: frame.payload().len() });
                }
            }
            let mut room = [0; 4_096];
            let count = self.stream.read(&mut room).await.unwrap_or(0);
            if count == 0 {
                return None;
            }
            self.reader.push(&room[..count]);
        }
    }

    async fn answer(&mut self, to: &Came, code: Code, options: &[(u16, &[u8])], payload: &[u8]) {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, code, Token::new(&to.token).unwrap(), options, payload, u32::MAX).unwrap();
        // The client may have gone.
        let _ = self.stream.write_all(&bytes).await;
    }
}

/// How a download ends from a server with these settings that answers its requests in their order with these: Block2, ETag and
/// how many bytes; and what was written by then. The last answer is given for ever.
async fn download(settings: &[u8], answers: Vec<(Option<Block>, u8, usize)>) -> (Result<Response, Error>, usize) {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
    let settings = settings.to_vec();
    let server = tokio::spawn(async move {
        let mut script = Script::accept(&listener, &settings).await;
        let mut left = answers.into_iter();
        let mut next = left.next().unwrap();
        while let Some(came) = script.next().await {
            let value = next.0.map(Block::value);
            let mut options = vec![(number::ETAG, std::slice::from_ref(&next.1))];
            options.extend(value.as_ref().map(|value| (number::BLOCK2, value.as_bytes())));
            script.answer(&came, Code::CONTENT, &options, &vec![7; next.2]).await;
            next = left.next().unwrap_or(next);
        }
    });
    let client = Client::new().await.unwrap();
    let mut writer = Counting::default();
    let answer = client.get(uri).download(&mut writer).await;
    server.abort();
    (answer, writer.all.len())
}

#[tokio::test]
async fn what_is_no_body_in_blocks_ends_a_download_and_is_told() {
    let bert = |number, more| Some(Block { number, more, size: BlockSize::BERT });
    let single = |number, more| Some(Block { number, more, size: BlockSize::B1024 });
    let small = |number, more| Some(Block { number, more, size: BlockSize::B16 });
    for (settings, answers, part, written) in [
        (BERT, vec![(bert(0, true), 1, 4_096), (bert(4, true), 2, 4_096)], "changed", 4_096),
        (BERT, vec![(bert(0, true), 1, 4_096)], "at byte 0 instead of the one at byte 4096", 4_096),
        (BERT, vec![(bert(3, true), 1, 4_096)], "at byte 3072 instead of the one at byte 0", 0),
        (BERT, vec![(bert(0, true), 1, 0)], "0 bytes of payload", 0),
        (BERT, vec![(bert(0, true), 1, 1_500)], "1500 bytes of payload", 0),
        (BERT, vec![(bert(0, true), 1, 2_048), (None, 1, 100)], "at byte 0 instead", 2_048),
        (SINGLE, vec![(single(0, true), 1, 1_025)], "1025 bytes of payload", 0),
        (SINGLE, vec![(single(0, false), 1, 1_025)], "1025 bytes of payload", 0),
        (SINGLE, vec![(single(0, true), 1, 1_024), (bert(1, true), 1, 2_048)], "larger blocks", 1_024),
        (BERT, (0..70_000).map(|number| (small(number, true), 1, 16)).collect(), "65536 of which", 65_537 * 16),
    ] {
        let (ended, wrote) = download(settings, answers).await;
        let error = ended.unwrap_err();
        assert!(matches!(&error, Error::Transfer { reason, .. } if reason.contains(part)), "{part}: {error}");
        assert_eq!(wrote, written, "{part}");
    }
}

#[tokio::test]
async fn what_is_asked_for_is_what_both_sides_take() {
    for (settings, asked) in [
        (BERT, Some(Block { number: 0, more: false, size: BlockSize::BERT })),
        (SINGLE, Some(Block { number: 0, more: false, size: BlockSize::B1024 })),
        (NO_BLOCKS, None),
    ] {
        let listener = TcpListener::bind(ANY).await.unwrap();
        let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let mut script = Script::accept(&listener, settings).await;
            let came = script.next().await.unwrap();
            script.answer(&came, Code::CONTENT, &[], &[7; 700]).await;
            script.next().await;
            came.block2
        });
        let client = Client::new().await.unwrap();
        let mut writer = Counting::default();
        assert_eq!(client.get(uri).download(&mut writer).await.unwrap().code(), Code::CONTENT);
        assert_eq!(writer.all, [7; 700]);
        client.shutdown().await;
        assert_eq!(server.await.unwrap(), asked);
    }
}

/// What a server with these settings is sent of so many bytes, and how it ends. It answers as `say` has it.
async fn upload(
    settings: &'static [u8],
    length: usize,
    say: impl Fn(&Came) -> (Code, Option<Block>) + Send + 'static,
) -> (Vec<(Option<Block>, usize)>, Result<Response, Error>) {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut script, mut all) = (Script::accept(&listener, settings).await, Vec::new());
        while let Some(came) = script.next().await {
            all.push((came.block1, came.length));
            let (code, block) = say(&came);
            let value = block.map(Block::value);
            let options: Vec<_> = value.iter().map(|value| (number::BLOCK1, value.as_bytes())).collect();
            script.answer(&came, code, &options, &[]).await;
        }
        all
    });
    let client = Client::new().await.unwrap();
    let mut reader = std::io::Cursor::new(image(length));
    let ended = client.put(uri).upload(&mut reader).await;
    client.shutdown().await;
    (server.await.unwrap(), ended)
}

#[tokio::test]
async fn an_upload_keeps_to_what_the_server_takes() {
    let go_on = |came: &Came| match came.block1 {
        Some(block) if block.more => (Code::CONTINUE, Some(block)),
        _ => (Code::CHANGED, came.block1),
    };
    let at = |number, more, size| Some(Block { number, more, size });
    let (came, ended) = upload(BERT, 140_000, go_on).await;
    let several = |number, more| at(number, more, BlockSize::BERT);
    assert_eq!(came, [(several(0, true), 65_536), (several(64, true), 65_536), (several(128, false), 8_928)]);
    assert_eq!(ended.unwrap().code(), Code::CHANGED);
    let (came, _) = upload(SINGLE, 1_500, go_on).await;
    assert_eq!(came, [(at(0, true, BlockSize::B1024), 1_024), (at(1, false, BlockSize::B1024), 476)]);
    // One that knows no blocks gets it whole, if it fits.
    let (came, ended) = upload(NO_BLOCKS, 900, go_on).await;
    assert_eq!((came, ended.unwrap().code()), (vec![(None, 900)], Code::CHANGED));
    let (came, ended) = upload(NO_BLOCKS, 1_200, go_on).await;
    assert!(came.is_empty() && ended.unwrap_err().to_string().contains("knows no blocks"));
    // Smaller ones are wished for.
    let smaller = |came: &Came| match came.block1.unwrap() {
        block if block.number == 0 => (Code::CONTINUE, Some(Block { size: BlockSize::B512, ..block })),
        block if block.more => (Code::CONTINUE, Some(block)),
        block => (Code::CHANGED, Some(block)),
    };
    let (came, _) = upload(BERT, 66_300, smaller).await;
    let one = |number, more| at(number, more, BlockSize::B512);
    assert_eq!(came, [(several(0, true), 65_536), (one(128, true), 512), (one(129, false), 252)]);
}

#[tokio::test]
async fn an_upload_whose_blocks_are_answered_wrongly_ends() {
    let wrong = |came: &Came| (Code::CONTINUE, came.block1.map(|block| Block { number: block.number + 1, ..block }));
    let (came, ended) = upload(BERT, 140_000, wrong).await;
    let error = ended.unwrap_err();
    assert!(matches!(&error, Error::Transfer { reason, .. } if reason.contains("another block")), "{error}");
    assert_eq!(came.len(), 1);
    let (came, ended) = upload(BERT, 140_000, |_| (Code::REQUEST_ENTITY_INCOMPLETE, None)).await;
    assert_eq!((came.len(), ended.unwrap().code()), (1, Code::REQUEST_ENTITY_INCOMPLETE));
    // Always smaller ones, from the first one on.
    let always = |came: &Came| {
        let size = came.block1.map_or(BlockSize::B16, |block| BlockSize::at_most(block.size.bytes() as usize / 2));
        (Code::REQUEST_ENTITY_TOO_LARGE, Some(Block { number: 0, more: true, size }))
    };
    let (came, ended) = upload(BERT, 140_000, always).await;
    assert_eq!((came.len(), ended.unwrap().code()), (7, Code::REQUEST_ENTITY_TOO_LARGE));
}

/// A server that wants the connection to end answers what was asked, and no other connection knows the rest.
#[tokio::test]
async fn a_release_in_the_middle_of_a_body_is_an_error_that_says_to_ask_again() {
    for (is_upload, closes) in [(false, false), (false, true), (true, false), (true, true)] {
        let listener = TcpListener::bind(ANY).await.unwrap();
        let uri = format!("coap+tcp://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let mut script = Script::accept(&listener, BERT).await;
            let came = script.next().await.unwrap();
            script.stream.write_all(RELEASE).await.unwrap();
            let block = Block { number: 0, more: true, size: BlockSize::BERT }.value();
            let (code, option) = match is_upload {
                true => (Code::CONTINUE, number::BLOCK1),
                false => (Code::CONTENT, number::BLOCK2),
            };
            let payload: &[u8] = if is_upload { &[] } else { &[7; 2_048] };
            script.answer(&came, code, &[(option, block.as_bytes())], payload).await;
            if !closes {
                assert!(script.next().await.is_none(), "nothing more is asked here");
            }
            drop(script);
            tokio::select! {
                _ = listener.accept() => panic!("the rest is not asked for over another connection"),
                () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {}
            }
        });
        let client = Client::new().await.unwrap();
        let mut writer = Counting::default();
        let ended = match is_upload {
            true => client.put(uri).upload(&mut std::io::Cursor::new(image(140_000))).await,
            false => client.get(uri).download(&mut writer).await,
        };
        let error = ended.unwrap_err();
        assert!(matches!(error, Error::ConnectionLost { .. }), "{error}");
        assert!(error.to_string().contains("ask again"), "{error}");
        server.await.unwrap();
    }
}

/// Settings that never come are given up like answers, and who cancels leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_server_without_settings_is_given_up_and_a_body_in_the_middle_can_be_cancelled() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (silent, _) = listener.accept().await.unwrap();
        let mut script = Script::accept(&listener, BERT).await;
        let came = script.next().await.unwrap();
        let block = Block { number: 0, more: true, size: BlockSize::BERT }.value();
        script.answer(&came, Code::CONTENT, &[(number::BLOCK2, block.as_bytes())], &[7; 2_048]).await;
        assert!(script.next().await.is_some(), "the next block");
        assert!(script.next().await.is_none(), "with the client the connection ends");
        drop(silent);
    });
    let client = Client::new().await.unwrap();
    let uri = format!("coap+tcp://{address}/");
    let error = client.put(&uri).upload(&mut std::io::Cursor::new(image(140_000))).await.unwrap_err();
    assert!(matches!(error, Error::NoSettings { .. }), "{error}");
    let mut writer = Counting::default();
    let download = client.get(&uri).deadline(std::time::Duration::from_secs(5)).download(&mut writer).await;
    assert!(matches!(download, Err(Error::Deadline { .. })));
    assert_eq!(writer.all.len(), 2_048);
    drop(client);
    server.await.unwrap();
}

/// What answers a long body may be long itself.
#[tokio::test]
async fn the_answer_to_an_upload_is_whole() {
    let echo = Resource::new().put(async |request: Request| Response::content(request.payload().clone()));
    let server = Server::builder().bind(ANY).bind_tcp(ANY).longest_body(3_000_000).route("/echo", echo);
    let server = server.start().await.unwrap();
    let (client, short) = (Client::new().await.unwrap(), Client::builder().longest_body(50_000).build().await.unwrap());
    for (transport, address) in server.local_addrs() {
        let body = image(if transport.is_datagram() { 60_000 } else { 2_500_000 });
        let uri = format!("{transport}://{address}/echo");
        let told = Arc::new(Mutex::new((0, 0)));
        let telling = Arc::clone(&told);
        let request = client.put(&uri).progress(move |told| *telling.lock().unwrap() = (told.sent, told.received));
        let answer = request.upload(&mut std::io::Cursor::new(body.clone())).await.unwrap();
        assert!(answer.payload() == &body, "{transport}: {} with {} bytes", answer.code(), answer.payload().len());
        assert_eq!(*told.lock().unwrap(), (body.len(), body.len()));
        let error = short.put(&uri).upload(&mut std::io::Cursor::new(body)).await.unwrap_err();
        assert!(matches!(error, Error::BodyTooLarge { limit: 50_000 }), "{error}");
    }
}
