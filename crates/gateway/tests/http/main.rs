//! A gateway between HTTP and CoAP, on loopback.

mod asking;
#[path = "../bodies/mod.rs"]
mod bodies;
mod events;
mod forwarding;
mod hostile;
mod streaming;
mod uploading;

use std::{net::SocketAddr, path::Path, sync::Arc};

use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use millpond_gateway::{Config, Gateway};
use millpond_live::{Bytes, Client, Observable, Resource, Response, Server, ServerBuilder, number};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A device.
async fn device(routes: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    routes(Server::builder().bind("127.0.0.1:0")).start().await.unwrap()
}

/// A device that says what it was asked.
async fn echo() -> Server {
    let echo = |request: millpond_live::Request| async move {
        let options = request.options().iter().filter(|(number, _)| ![number::BLOCK1, number::SIZE1].contains(number));
        let options = options.map(|(number, value)| match number {
            number::CONTENT_FORMAT | number::ACCEPT | number::HOP_LIMIT => {
                format!("{number}={}", value.iter().fold(0, |sum, byte| sum * 256 + usize::from(*byte)))
            }
            _ => format!("{number}={}", String::from_utf8_lossy(value)),
        });
        let options: Vec<String> = options.collect();
        let text = format!("{} {} {}", request.method(), options.join(","), request.payload().len());
        Response::content(text).with_content_format(0).with_max_age(0)
    };
    device(|server| server.route("/{*rest}", Resource::new().any(echo).conditional())).await
}

/// A gateway with these lines, and where it listens for HTTP and for CoAP.
async fn gateway(lines: &str) -> (Gateway, SocketAddr, String) {
    let gateway = Gateway::builder(config(lines)).start().await.unwrap();
    let (web, coap) = (gateway.http_addrs()[0].1, gateway.local_addr());
    (gateway, web, format!("coap://{coap}"))
}

fn config(lines: &str) -> Config {
    let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\nhttp = [\"127.0.0.1:0\"]\n{lines}");
    Config::from_toml(&text, "gateway.toml", Path::new("")).unwrap()
}

/// The rule that hands everything on to one device.
fn all_to(device: &Server) -> String {
    format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"coap://{}/{{*rest}}\"\n", device.local_addr())
}

/// An answer with its whole body.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// `METHOD TARGET`, lines of headers, and a body.
async fn ask(at: SocketAddr, what: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let answer = send(at, what, headers, body).await;
    let (head, body) = answer.into_parts();
    Answer { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
}

async fn get(at: SocketAddr, target: &str) -> Answer {
    ask(at, &format!("GET {target}"), &[], "").await
}

async fn send(
    at: SocketAddr,
    what: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> hyper::Response<Incoming> {
    let stream = TcpStream::connect(at).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (method, target) = what.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(target);
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request = request.header("Host", at.to_string());
    }
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    sender.send_request(request.body(Full::new(body.into())).unwrap()).await.unwrap()
}

/// What comes back for these bytes, until the connection is closed.
async fn raw(at: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    // It may be closed before all is written.
    let _ = stream.write_all(bytes).await;
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8_lossy(&text).into_owned()
}

/// A resource whose state counts what it is asked.
fn counting() -> (Resource, Observable) {
    let (count, changed) = (Arc::new(std::sync::atomic::AtomicUsize::new(0)), Observable::new());
    let resource =
        Resource::new().observable(&changed).get(move || {
            let count = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            async move {
                Response::content(count.to_string()).with_content_format(0).with_max_age(30).with_etag(vec![0xab, 7])
            }
        });
    (resource, changed)
}

async fn client() -> Client {
    Client::new().await.unwrap()
}
