//! From CoAP to HTTP.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use millpond_gateway::Gateway;
use millpond_live::{Bytes, Code, ContentFormat, number};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{all_to, client, config, device, echo, gateway};

/// A server of HTTP, and what it was asked.
struct Origin {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    async fn start(
        answer: impl Fn(&Request<Incoming>) -> hyper::http::response::Builder + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let (telling, answer) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (telling, answer) = (Arc::clone(&telling), Arc::clone(&answer));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (telling, answer) = (Arc::clone(&telling), Arc::clone(&answer));
                    async move {
                        let made = answer(&request);
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let headers: Vec<String> = head
                            .headers
                            .iter()
                            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                            .collect();
                        let text = format!("{} {} {} {}", head.method, head.uri, headers.join("; "), body.len());
                        telling.lock().unwrap().push(text);
                        Ok::<Response<Full<Bytes>>, Infallible>(made.body(Full::new("state".into())).unwrap())
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { at, asked }
    }

    /// One that answers with these bytes.
    async fn raw(answer: impl Into<Vec<u8>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, answer) = (listener.local_addr().unwrap(), answer.into());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut head = [0; 4_096];
                    let _ = stream.read(&mut head).await;
                    let _ = stream.write_all(&answer).await;
                    // Until the gateway has had enough.
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                });
            }
        });
        at
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn all_to_web(at: SocketAddr) -> String {
    format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"http://{at}/base/{{*rest}}\"\n")
}

#[tokio::test]
async fn requests_are_told_as_http_has_them() {
    let origin = Origin::start(|_| Response::builder().header("content-type", "application/json; charset=utf-8")).await;
    let (_gateway, _, at) = gateway(&all_to_web(origin.at)).await;
    let client = client().await;
    let got = client.get(format!("{at}/a/b%2Fc%0D%0AX?k=v%26w&x%20y")).option(number::ACCEPT, vec![50]).await.unwrap();
    assert_eq!((got.code(), got.text(), got.content_format()), (Code::CONTENT, Ok("state"), Some(ContentFormat::JSON)));
    assert_eq!(got.options().uint(number::MAX_AGE), Some(0), "it does not say how long it is good");
    let common = format!("host: {}; via: CoAP/1 millpond; accept-encoding: identity; connection: close", origin.at);
    let target = "/base/a/b%2Fc%0D%0AX?k=v%26w&x%20y";
    assert_eq!(origin.asked(), [format!("GET {target} {common}; accept: application/json 0")]);
    let put = client.put(format!("{at}/a")).payload(vec![7; 3_000]).content_format(ContentFormat::CBOR).if_match("tag");
    assert_eq!(put.await.unwrap().code(), Code::CHANGED);
    let headers = format!("{common}; if-match: \"tag\"; content-type: application/cbor; content-length: 3000");
    assert_eq!(origin.asked(), [format!("PUT /base/a {headers} 3000")]);
    for (method, told, code) in [
        (Code::POST, "POST", Code::CHANGED),
        (Code::DELETE, "DELETE", Code::DELETED),
        (Code::FETCH, "QUERY", Code::CONTENT),
        (Code::IPATCH, "PATCH", Code::CHANGED),
    ] {
        let answer = client.request(method, format!("{at}/a")).await.unwrap();
        assert_eq!((answer.code(), origin.asked()[0].starts_with(told)), (code, true), "{told}");
    }
    // What a tag of HTTP cannot hold, and what means nothing there.
    let tagged = client.put(format!("{at}/a")).if_match(vec![13, 10]).await.unwrap();
    assert_eq!(tagged.code(), Code::PRECONDITION_FAILED);
    assert_eq!(client.get(format!("{at}/a")).option(0xfdfd, "x").await.unwrap().code(), Code::BAD_OPTION);
    assert_eq!(origin.asked().len(), 0);
}

#[tokio::test]
async fn what_is_good_is_kept_and_asked_about_by_its_tag() {
    let origin = Origin::start(|request| match request.headers().get("if-none-match") {
        Some(_) => Response::builder().status(304).header("cache-control", "max-age=30"),
        None if request.uri().path().ends_with("/own") => {
            Response::builder().header("cache-control", "max-age=30").header("vary", "cookie")
        }
        None => Response::builder().header("etag", "\"v1\"").header("cache-control", "no-cache"),
    })
    .await;
    let (_gateway, _, at) = gateway(&all_to_web(origin.at)).await;
    let client = client().await;
    for _ in 0..3 {
        assert_eq!(client.get(format!("{at}/tagged")).await.unwrap().text(), Ok("state"));
    }
    let asked = origin.asked();
    assert_eq!(asked.len(), 2, "the third one is kept");
    assert!(asked[1].contains("if-none-match: \"v1\""), "{asked:?}");
    for _ in 0..2 {
        client.get(format!("{at}/own")).await.unwrap();
    }
    assert_eq!(origin.asked().len(), 2, "it is not for everybody");
}

#[tokio::test]
async fn answers_are_told_as_coap_has_them() {
    let origin = Origin::start(|request| match request.uri().path() {
        "/base/made" => Response::builder().status(201).header("location", "/base/jobs/a%20b"),
        "/base/else" => Response::builder().status(201).header("location", "http://other.example/base/jobs/3"),
        "/base/busy" => Response::builder().status(503).header("retry-after", "7").header("content-type", "text/plain"),
        "/base/page" => Response::builder().status(404).header("content-type", "text/html"),
        "/base/packed" => Response::builder().header("content-encoding", "gzip"),
        _ => Response::builder().status(302).header("location", "http://127.0.0.1:1/"),
    })
    .await;
    let (_gateway, _, at) = gateway(&all_to_web(origin.at)).await;
    let client = client().await;
    let made = client.post(format!("{at}/made")).await.unwrap();
    let location: Vec<_> = made.options().all(number::LOCATION_PATH).cloned().collect();
    assert_eq!((made.code(), location), (Code::CREATED, ["jobs", "a b"].map(Bytes::from).to_vec()));
    let elsewhere = client.post(format!("{at}/else")).await.unwrap();
    assert_eq!((elsewhere.code(), elsewhere.options().get(number::LOCATION_PATH)), (Code::CREATED, None));
    let busy = client.get(format!("{at}/busy")).await.unwrap();
    assert_eq!((busy.code(), busy.text()), (Code::SERVICE_UNAVAILABLE, Ok("state")));
    assert_eq!(busy.options().uint(number::MAX_AGE), Some(7));
    let page = client.get(format!("{at}/page")).await.unwrap();
    assert_eq!((page.code(), page.text()), (Code::NOT_FOUND, Ok("404 Not Found")));
    assert_eq!(client.get(format!("{at}/packed")).await.unwrap().code(), Code::BAD_GATEWAY);
    origin.asked();
    let moved = client.get(format!("{at}/moved")).await.unwrap();
    assert_eq!((moved.code(), origin.asked().len()), (Code::BAD_GATEWAY, 1));
    assert!(moved.text().unwrap().contains("no redirection is followed"), "{:?}", moved.text());
}

/// Only by the schemes of a rule, and to the addresses that it names.
#[tokio::test]
async fn clients_name_whom_they_ask_where_a_rule_allows_it() {
    let origin = Origin::start(|_| Response::builder()).await;
    let port = origin.at.port();
    let through = |at: String, uri: String| async move {
        client().await.get(at).option(number::PROXY_URI, uri.into_bytes()).await.unwrap()
    };
    let (_gateway, _, at) = gateway("[[forward]]\nto = [\"127.0.0.1\"]\n").await;
    let refused = through(at, format!("http://127.0.0.1:{port}/a")).await;
    assert_eq!(refused.code(), Code::PROXYING_NOT_SUPPORTED, "by CoAP alone, unless a rule says otherwise");
    let everywhere = "to = [\"0.0.0.0/0\", \"::/0\", \"*.example\", \"localhost\"]\nschemes = [\"http\", \"https\"]";
    let (_gateway, _, at) = gateway(&format!("[[forward]]\n{everywhere}\n")).await;
    for near in [
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
    ] {
        let refused = through(at.clone(), format!("http://{near}:{port}/a")).await;
        assert!([Code::FORBIDDEN, Code::BAD_REQUEST].contains(&refused.code()), "{near}: {:?}", refused.text());
    }
    assert_eq!(through(at.clone(), "coap://192.0.2.1/".into()).await.code(), Code::PROXYING_NOT_SUPPORTED);
    for wrong in
        ["http://", "http://a@192.0.2.1/", "http://192.0.2.1/a b", "http://192.0.2.1/\r\nX: y", "http://192.0.2.1/#f"]
    {
        assert_eq!(through(at.clone(), wrong.into()).await.code(), Code::BAD_REQUEST, "{wrong:?}");
    }
    assert_eq!(origin.asked().len(), 0);
    let (_gateway, _, at) = gateway("[[forward]]\nto = [\"127.0.0.1\"]\nschemes = [\"http\"]\n").await;
    let named = through(at.clone(), format!("http://127.0.0.1:{port}/a+b%2Bc/../d?x=%2B")).await;
    assert_eq!(named.text(), Ok("state"));
    assert!(origin.asked()[0].starts_with("GET /a+b%2Bc/../d?x=%2B "), "as it is written");
    let request = client().await.get(format!("{at}/a/b?q")).option(number::PROXY_SCHEME, "http");
    let request = request.option(number::URI_HOST, "127.0.0.1").uint_option(number::URI_PORT, port.into());
    assert_eq!(request.await.unwrap().text(), Ok("state"));
    assert!(origin.asked()[0].starts_with("GET /a/b?q "));
}

/// Whatever a server of HTTP says ends as one answer, and soon.
#[tokio::test]
async fn hostile_servers_are_told_of() {
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: {}\r\n\r\n", "x".repeat(1_000_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(500));
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n{}", "x".repeat(66000));
    let endless = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "3e8\r\n".to_owned() + &"x".repeat(1_000) + "\r\n1\r\nx\r\n"
    );
    for answer in [
        &long[..],
        &many,
        &large,
        &endless,
        "SSH-2.0-x\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ] {
        let at = Origin::raw(answer).await;
        let (_gateway, _, coap) = gateway(&format!("[http]\nbody = \"1000 B\"\n{}", all_to_web(at))).await;
        let refused = client().await.get(format!("{coap}/a")).await.unwrap();
        let start = &answer[..answer.len().min(60)];
        assert_eq!(refused.code(), Code::BAD_GATEWAY, "{start:?}: {:?}", refused.text());
        assert!(refused.text().unwrap().contains(&at.to_string()), "{start:?}");
    }
    // A second answer is nobody's.
    let two = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nCache-Control: max-age=60\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb";
    let (_gateway, _, coap) = gateway(&all_to_web(Origin::raw(two).await)).await;
    for path in ["a", "b", "a"] {
        assert_eq!(client().await.get(format!("{coap}/{path}")).await.unwrap().text(), Ok("a"));
    }
    let silent = format!("{}timeout = \"300 ms\"\n", all_to_web(Origin::raw("").await));
    let (_gateway, _, coap) = gateway(&silent).await;
    assert_eq!(client().await.get(format!("{coap}/a")).await.unwrap().code(), Code::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn states_are_asked_for_again_while_somebody_observes() {
    let count = AtomicUsize::new(0);
    let origin = Origin::start(move |_| {
        let count = count.fetch_add(1, Ordering::Relaxed);
        Response::builder().header("cache-control", "max-age=1").header("etag", format!("\"{count}\""))
    })
    .await;
    let (_gateway, _, at) = gateway(&all_to_web(origin.at)).await;
    let mut observation = client().await.get(format!("{at}/a")).observe().await.unwrap();
    let first = observation.next().await.unwrap().unwrap();
    let second = observation.next().await.unwrap().unwrap();
    let tags = [first, second].map(|state| state.options().get(number::ETAG).cloned().unwrap());
    assert_ne!(tags[0], tags[1]);
}

/// Over HTTP as over CoAP.
#[tokio::test]
async fn gateways_that_ask_each_other_end_it() {
    let device = echo().await;
    let (one, web, _) = gateway(&all_to(&device)).await;
    let (_other, _, coap) =
        gateway(&format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"http://{web}/{{*rest}}\"\n")).await;
    assert_eq!(client().await.get(format!("{coap}/a")).await.unwrap().text(), Ok("0.01 11=a,16=14 0"));
    one.reload(&config(&format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"{coap}/{{*rest}}\"\n"))).await.unwrap();
    let round = client().await.get(format!("{coap}/a")).await.unwrap();
    assert_eq!(round.code(), Code::HOP_LIMIT_REACHED, "{:?}", round.text());
}

#[tokio::test]
async fn a_rule_that_leads_to_the_gateway_is_refused_at_the_start() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\nhttp = [\"{free}\"]\n{}", all_to_web(free));
    let config = millpond_gateway::Config::from_toml(&text, "gateway.toml", std::path::Path::new("")).unwrap();
    let refused = Gateway::builder(config).start().await.unwrap_err();
    assert!(refused.to_string().contains("where the gateway itself listens"), "{refused}");
}

/// From CoAP by HTTPS to a gateway, and from there to a device.
#[tokio::test]
async fn https_leads_to_whom_a_certificate_is_of() {
    let folder = std::env::temp_dir().join(format!("millpond-https-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(folder.join("other.pem"), other.cert.pem()).unwrap();
    let read = |text: &str| millpond_gateway::Config::from_toml(text, "gateway.toml", &folder).unwrap();
    let device = device(|server| server.route("/a", millpond_live::Resource::new().get(|| async { "seen" }))).await;
    let listens = "[listen]\ncoap = [\"127.0.0.1:0\"]\nhttps = [\"127.0.0.1:0\"]\n";
    let credentials = "[credentials]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n";
    let secure = read(&format!("{listens}{credentials}{}", all_to(&device)));
    let secure = Gateway::builder(secure).start().await.unwrap();
    let [("https", at)] = secure.http_addrs() else { panic!("{:?}", secure.http_addrs()) };
    for (trusted, host, code) in [
        ("cert.pem", "localhost", Code::CONTENT),
        ("cert.pem", "127.0.0.1", Code::BAD_GATEWAY),
        ("other.pem", "localhost", Code::BAD_GATEWAY),
    ] {
        let rule = format!("[[rule]]\npath = \"/a\"\nto = \"https://{host}:{}/a\"\n", at.port());
        let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\n[upstream]\nca = \"{trusted}\"\n{rule}");
        let gateway = Gateway::builder(read(&text)).start().await.unwrap();
        let uri = format!("coap://{}/a", gateway.local_addr());
        let answer = client().await.get(uri).await.unwrap();
        assert_eq!(answer.code(), code, "{trusted} {host}: {:?}", answer.text());
    }
    // With another certificate from now on, for new connections.
    std::fs::write(folder.join("cert.pem"), other.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), other.signing_key.serialize_pem()).unwrap();
    secure.reload(&read(&format!("{listens}{credentials}{}", all_to(&device)))).await.unwrap();
    let rule = format!("[[rule]]\npath = \"/a\"\nto = \"https://localhost:{}/a\"\n", at.port());
    let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\n[upstream]\nca = \"other.pem\"\n{rule}");
    let gateway = Gateway::builder(read(&text)).start().await.unwrap();
    let answer = client().await.get(format!("coap://{}/a", gateway.local_addr())).await.unwrap();
    assert_eq!(answer.code(), Code::CONTENT, "{:?}", answer.text());
    let plain = super::raw(*at, b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(!plain.contains("200"), "{plain}");
    std::fs::remove_dir_all(&folder).unwrap();
}
