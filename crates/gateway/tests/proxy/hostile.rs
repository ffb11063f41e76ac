//! Clients and devices that send anything, and take what is others'.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_gateway::Gateway;
use millpond_live::{Client, Code, ContentFormat, Request, Resource, Response, number};
use tokio::net::UdpSocket;

use super::{Upstream, all_to, any, client, config, gateway};

async fn socket(at: &str) -> UdpSocket {
    let socket = UdpSocket::bind(any()).await.unwrap();
    socket.connect(at.strip_prefix("coap://").unwrap()).await.unwrap();
    socket
}

/// What an answer may depend on tells requests apart; what it may not depend on does not (RFC 7252 §5.4.2, §5.6).
#[tokio::test]
async fn nobody_gets_an_answer_that_was_made_for_another_request() {
    let told = |request: Request| async move {
        let all = request.options().iter().filter(|(number, _)| *number != number::HOP_LIMIT);
        let all: Vec<_> = all.map(|(number, value)| format!("{number}={value:?}")).collect();
        Response::content(format!("{} {} {:?}", request.method(), all.join(","), request.payload())).with_max_age(60)
    };
    let upstream = Upstream::start(|server| server.route("/{*rest}", Resource::new().any(told))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let client = client().await;
    let requests = || {
        [
            client.get(format!("{at}/a")),
            client.get(format!("{at}/a/")),
            client.get(format!("{at}//a")),
            client.get(format!("{at}/a%2Fb")),
            client.get(format!("{at}/a/b")),
            client.get(format!("{at}/a?b")),
            client.get(format!("{at}/a?b&c")),
            client.get(format!("{at}/a?c&b")),
            client.get(format!("{at}/a?b%26c")),
            client.get(format!("{at}/a")).accept(ContentFormat::JSON),
            client.get(format!("{at}/a")).accept(ContentFormat::CBOR),
            // Elective and safe to forward, with a value, another one, and twice.
            client.get(format!("{at}/a")).option(0xfde0, "1"),
            client.get(format!("{at}/a")).option(0xfde0, "2"),
            client.get(format!("{at}/a")).option(0xfde0, "1").option(0xfde0, "2"),
            client.fetch(format!("{at}/a")).payload("1"),
            client.fetch(format!("{at}/a")).payload("2"),
            client.fetch(format!("{at}/a")).payload("1").content_format(ContentFormat::JSON),
        ]
    };
    let mut answers = Vec::new();
    for _ in 0..2 {
        for request in requests() {
            answers.push(request.await.unwrap().text().unwrap().to_owned());
        }
    }
    let (first, second) = answers.split_at(requests().len());
    assert_eq!(first, second);
    let different: std::collections::BTreeSet<&String> = first.iter().collect();
    assert_eq!((different.len(), upstream.asked()), (first.len(), first.len()), "{first:#?}");
    // NoCacheKey says that it makes no difference.
    let same = client.get(format!("{at}/a")).option(0xfdfc, "1").await.unwrap();
    assert_eq!((same.text(), upstream.asked()), (Ok(&*first[0]), first.len()));
}

/// An error, an answer to a request that changes something and one of a method that is not known are for who asked alone.
#[tokio::test]
async fn what_is_no_representation_is_not_kept() {
    let count = Arc::new(AtomicUsize::new(0));
    let says = move |request: Request| {
        let count = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let code = match request.path().last() {
                Some("missing") => Code::NOT_FOUND,
                Some("valid") => Code::VALID,
                _ => Code::CONTENT,
            };
            Response::content(count.to_string()).with_code(code).with_max_age(60)
        }
    };
    let upstream = Upstream::start(|server| server.route("/{*rest}", Resource::new().any(says))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let client = client().await;
    for (method, path) in [
        (Code::GET, "missing"),
        (Code::GET, "valid"),
        (Code::POST, "a"),
        (Code::PUT, "a"),
        (Code::IPATCH, "a"),
        (Code::from_byte(31), "a"),
    ] {
        let before = upstream.asked();
        for _ in 0..2 {
            client.request(method, format!("{at}/{path}")).await.unwrap();
        }
        assert_eq!(upstream.asked() - before, 2, "{method} {path}");
    }
}

/// Whatever bytes come, the gateway answers others.
#[tokio::test]
async fn who_sends_anything_harms_nobody() {
    let upstream = Upstream::start(|server| server).await;
    let (_gateway, at) = gateway(&format!("{}[[forward]]\nto = [\"127.0.0.1\"]\n", all_to(upstream.at()))).await;
    let (rubbish, client) = (socket(&at).await, client().await);
    let mut state = 7_252_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    // Proxy-Uri, Proxy-Scheme, Uri-Host, Uri-Path, Observe, Block1, Block2 and Hop-Limit, with values of any length.
    let heads = [&b"\xdd\x16"[..], b"\xdd\x1a", b"\x3d", b"\xbd", b"\x6d", b"\xdd\x0e", b"\xdd\x0a", b"\x0d"];
    for number in 0..3_000_u16 {
        let [high, low] = number.to_be_bytes();
        let mut bytes = vec![0x40 | ((draw() as u8 % 4) << 4), 1 + (draw() % 7) as u8, high, low];
        for _ in 0..draw() % 4 {
            bytes.extend_from_slice(heads[draw() % heads.len()]);
            bytes.push((draw() % 40) as u8);
            bytes.extend((0..13 + draw() % 40).map(|_| draw() as u8));
        }
        if draw() % 3 == 0 {
            bytes.truncate(draw() % (bytes.len() + 1));
        }
        rubbish.send(&bytes).await.unwrap();
        if number % 100 == 0 {
            assert_eq!(client.get(format!("{at}/count")).await.unwrap().code(), Code::CONTENT);
        }
    }
    assert_eq!(client.get(format!("{at}/count")).await.unwrap().code(), Code::CONTENT);
}

/// A device that answers with anything, for the right token and the wrong one: each request ends, with an answer or with why not.
#[tokio::test]
async fn a_device_may_answer_anything() {
    let device = UdpSocket::bind(any()).await.unwrap();
    let rule = format!("{}timeout = \"300 ms\"\n", all_to(device.local_addr().unwrap()));
    let goes_on = Arc::new(AtomicBool::new(true));
    let going = Arc::clone(&goes_on);
    let answering = tokio::spawn(async move {
        let (mut request, mut number) = ([0; 1_500], 0_usize);
        while going.load(Ordering::Relaxed) {
            let got = tokio::time::timeout(Duration::from_millis(50), device.recv_from(&mut request)).await;
            let Ok(Ok((_, from))) = got else { continue };
            let tail: [&[u8]; 12] = [
                b"",
                b"\xff",
                b"\xffx",
                b"\xf0\xff\xff",
                // An ETag and a Block2 that are none, blocks out of order, options that are not safe, or longer than there are bytes.
                b"\x49123456789\xffx",
                b"\xd4\x0a\xff\xff\xff\xff\xffx",
                b"\xd1\x0a\x18\xffx",
                b"\xd1\x0a\x0f\xffx",
                b"\xe0\xfc\xf1\xffx",
                b"\xe1\xfc\xf2y\xffx",
                b"\x4e\xff\xff",
                b"\x81\0\xb1a\xb1b\xffx",
            ];
            let length = usize::from(request[0] & 15);
            let mut answer = request[..4 + length].to_vec();
            answer[0] = [0x60, 0x50, 0x40, 0x70][number % 4] | length as u8;
            answer[1] = [0x45, 0x5f, 0x44, 0xe1, 0x01, 0x00, 0x43, 0x85][number / 4 % 8];
            if length > 0 && number % 5 == 4 {
                answer[4] ^= 1;
            }
            answer.extend_from_slice(tail[number % tail.len()]);
            device.send_to(&answer, from).await.unwrap();
            number += 1;
        }
    });
    let (_gateway, at) = gateway(&rule).await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..96 {
        let uri = format!("{at}/{number}");
        asking.spawn(async move { client().await.get(uri).await.unwrap().code() });
    }
    while let Some(code) = asking.join_next().await {
        assert_ne!(code.unwrap(), Code::INTERNAL_SERVER_ERROR);
    }
    goes_on.store(false, Ordering::Relaxed);
    answering.await.unwrap();
}

/// Who asks without end, and waits for no answer, takes its turns from its own network.
#[tokio::test]
async fn who_asks_without_end_leaves_turns_to_other_networks() {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Response::content("slow").with_max_age(0)
    };
    let upstream = Upstream::start(|server| server.route("/slow", Resource::new().get(slow))).await;
    let lines = format!("[upstream]\nqueue = 16\n{}", all_to(upstream.at()));
    let (_gateway, at) = gateway(&lines).await;
    let other = Client::builder().bind("127.9.9.1:0".parse::<SocketAddr>().unwrap()).build().await.unwrap();
    let flooder = socket(&at).await;
    for number in 0..2_000_u16 {
        let [high, low] = number.to_be_bytes();
        // Non-confirmable, another resource each time.
        flooder
            .send(&[&[0x50, 1, high, low][..], b"\xb4slow\x42", &[b'a' + (high & 7), b'a' + (low & 15)]].concat())
            .await
            .unwrap();
        if number % 100 == 0 {
            let answer = other.get(format!("{at}/slow?{number}")).await.unwrap();
            assert_eq!(answer.code(), Code::CONTENT, "{:?}", answer.text());
        }
    }
}

/// Observers that never say that they heard anything end, and so does the observation of the device.
#[tokio::test]
async fn observers_that_never_acknowledge_are_forgotten() {
    let upstream = Upstream::start(|server| server).await;
    let gateway = Gateway::builder(config(&all_to(upstream.at()))).observe_on_for(Duration::from_millis(100));
    let gateway = gateway.start().await.unwrap();
    let at = format!("coap://{}", gateway.local_addr());
    let mut silent = Vec::new();
    for number in 0..20 {
        let socket = socket(&at).await;
        socket.send(&[&[0x41, 1, 0, number, number][..], b"\x60\x55count"].concat()).await.unwrap();
        let mut answer = [0; 100];
        socket.recv(&mut answer).await.unwrap();
        silent.push(socket);
    }
    assert_eq!(upstream.changed.observers(), 1);
    while upstream.changed.observers() > 0 {
        upstream.changed.notify();
        tokio::time::sleep(Duration::from_millis(20)).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(20)).await;
        tokio::time::resume();
    }
}

/// Where it leads is the gateway's matter: a client's Uri-Host, Uri-Port and queries name nobody else.
#[tokio::test]
async fn what_a_client_says_of_hosts_leads_nowhere_else() {
    let told = |request: Request| async move {
        let host = request.options().get(number::URI_HOST).cloned();
        Response::content(format!("{host:?} {}", request.path_text())).with_max_age(60)
    };
    let upstream = Upstream::start(|server| server.route("/{*rest}", Resource::new().any(told))).await;
    let elsewhere = Upstream::start(|server| server).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let port = u32::from(elsewhere.at().port());
    for host in ["127.0.0.1", "other.example", "other.example\r\nX: y", "../../.."] {
        let request = client().await.get(format!("{at}/..%2F..%2Fsecret"));
        let request = request.option(number::URI_HOST, host.as_bytes().to_vec()).uint_option(number::URI_PORT, port);
        let answer = request.await.unwrap();
        assert!(answer.text().unwrap().starts_with("None "), "{host:?}: {:?}", answer.text());
    }
    let dots = client().await.get(format!("{at}/a")).option(number::URI_PATH, "..").await.unwrap();
    assert_eq!(dots.code(), Code::BAD_REQUEST, "no URI has such a segment");
    assert_eq!((upstream.asked(), elsewhere.asked()), (1, 0), "nor does it make another answer of it");
}
