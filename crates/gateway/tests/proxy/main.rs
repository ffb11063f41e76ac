//! A gateway between clients and servers on loopback.

#[path = "../bodies/mod.rs"]
mod bodies;
mod caching;
mod contexts;
mod duplicates;
mod endpoints;
mod faults;
mod forwarding;
mod hostile;
mod lossy;
mod observing;
mod paths;
mod refusing;
mod streaming;
mod uploading;

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use millpond_gateway::{Config, Gateway};
use millpond_live::{Client, Observable, Request, Resource, Response, Server, ServerBuilder, number};

/// A server that counts what it is asked.
struct Upstream {
    server: Server,
    asked: Arc<AtomicUsize>,
    changed: Observable,
}

impl Upstream {
    async fn start(routes: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let (asked, changed) = (Arc::new(AtomicUsize::new(0)), Observable::new());
        let counting = Arc::clone(&asked);
        let builder = Server::builder().bind(any()).layer(move |request, next| {
            counting.fetch_add(1, Ordering::Relaxed);
            next.run(request)
        });
        let counter = Arc::clone(&asked);
        let count = Resource::new().observable(&changed).get(move || {
            let counter = Arc::clone(&counter);
            async move { Response::content(counter.load(Ordering::Relaxed).to_string()).with_max_age(30) }
        });
        let server = routes(builder.route("/count", count)).start().await.unwrap();
        Self { server, asked, changed }
    }

    fn at(&self) -> SocketAddr {
        self.server.local_addr()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A gateway with these lines behind where it listens.
async fn gateway(lines: &str) -> (Gateway, String) {
    let config = config(lines);
    let gateway = Gateway::builder(config).start().await.unwrap();
    let at = format!("coap://{}", gateway.local_addr());
    (gateway, at)
}

fn config(lines: &str) -> Config {
    let text = format!("[listen]\ncoap = [\"127.0.0.1:0\"]\n{lines}");
    Config::from_toml(&text, "gateway.toml", Path::new("")).unwrap()
}

/// The rule that forwards everything to one server.
fn all_to(upstream: SocketAddr) -> String {
    format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"coap://{upstream}/{{*rest}}\"\n")
}

async fn client() -> Client {
    Client::new().await.unwrap()
}

async fn echo(request: Request) -> Response {
    let options: Vec<String> = request
        .options()
        .iter()
        // Each side has blocks of its own.
        .filter(|(number, _)| ![number::BLOCK1, number::BLOCK2, number::SIZE1].contains(number))
        .map(|(number, value)| format!("{number}={}", String::from_utf8_lossy(value)))
        .collect();
    Response::content(format!("{} {} {}", request.method(), options.join(","), request.payload().len())).with_max_age(0)
}
