//! The resource directory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hostile;
mod interface;
mod registry;
mod restart;
mod secure;
mod simple;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use millpond_gateway::directory::{Directory, DirectorySettings, routes};
use millpond_live::{Client, Code, ContentFormat, Response, Server, number};

/// Any free port of this machine.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server with a directory, and a client.
struct Bench {
    directory: Directory,
    server: Server,
    client: Client,
}

impl Bench {
    async fn start() -> Self {
        Self::with(DirectorySettings::default()).await
    }

    async fn with(settings: DirectorySettings) -> Self {
        let directory = Directory::start(settings).await;
        let server = routes(Server::builder().bind(ANY), &directory).start().await.unwrap();
        directory.ask_by(&server);
        Self { directory, server, client: Client::new().await.unwrap() }
    }

    fn uri(&self, path: &str) -> String {
        format!("coap://{}{path}", self.server.local_addr())
    }

    async fn register(&self, query: &str, links: &str) -> Response {
        let request = self.client.post(self.uri(&format!("/rd?{query}")));
        request.content_format(ContentFormat::LINK_FORMAT).payload(links.to_owned()).await.unwrap()
    }

    async fn look_up(&self, what: &str) -> String {
        let answer = self.client.get(self.uri(&format!("/rd-lookup/{what}"))).await.unwrap();
        let text = answer.text().unwrap().to_owned();
        assert_eq!(
            (answer.code(), answer.content_format()),
            (Code::CONTENT, Some(ContentFormat::LINK_FORMAT)),
            "{text}"
        );
        text
    }
}

/// What Location-Path says.
fn location(answer: &Response) -> String {
    assert_eq!(answer.code(), Code::CREATED, "{:?}", answer.text());
    answer.options().all(number::LOCATION_PATH).map(|part| format!("/{}", std::str::from_utf8(part).unwrap())).collect()
}
