//! The resources that the cases ask a server for.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use millpond_live::{ContentFormat, Observable, Request, Resource, Response, Server, number};

pub(crate) const TEXT: ContentFormat = ContentFormat::TEXT;
pub(crate) const LINK_FORMAT: ContentFormat = ContentFormat::LINK_FORMAT;
pub(crate) const XML: ContentFormat = ContentFormat::XML;

/// The body of /large: so long that it needs blocks of every size.
pub(crate) fn large() -> Vec<u8> {
    (0..2_500_u32).map(|index| b'a' + (index / 16 % 26) as u8).collect()
}

fn text(payload: impl Into<Vec<u8>>) -> Response {
    Response::content(payload.into()).with_content_format(TEXT)
}

/// A representation that can be validated: its number is its ETag.
#[derive(Default)]
struct Versions {
    number: AtomicU32,
    payload: Mutex<Vec<u8>>,
}

impl Versions {
    fn etag(&self) -> Vec<u8> {
        self.number.load(Ordering::SeqCst).to_be_bytes().to_vec()
    }

    fn set(&self, payload: &[u8]) {
        *self.payload.lock().unwrap() = payload.to_vec();
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self, request: &Request) -> Response {
        let etag = self.etag();
        if request.options().all(number::ETAG).any(|known| known[..] == etag[..]) {
            return Response::new(millpond_live::Code::VALID).with_etag(etag);
        }
        text(self.payload.lock().unwrap().clone()).with_etag(etag).with_max_age(30)
    }

    fn put(&self, request: &Request) -> Response {
        let mut wanted = request.options().all(number::IF_MATCH).peekable();
        let etag = self.etag();
        if wanted.peek().is_some() && !wanted.any(|known| known[..] == etag[..]) {
            return Response::new(millpond_live::Code::PRECONDITION_FAILED);
        }
        self.set(request.payload());
        Response::changed().with_etag(self.etag())
    }
}

/// Serves everything on a port of the loopback.
pub(crate) async fn serve() -> Server {
    let mut server = Server::builder().bind((Ipv4Addr::LOCALHOST, 0));
    let any = |method: &'static str, response: fn() -> Response| {
        move |request: Request| async move {
            drop(request);
            response().with_content_format(TEXT).with_payload(method)
        }
    };
    server = server.route(
        "/test",
        Resource::new()
            .get(any("get", || Response::content("")))
            .put(any("put", Response::changed))
            .delete(any("delete", Response::deleted))
            .post(|| async {
                ["location1", "location2", "location3"]
                    .into_iter()
                    .fold(Response::created(), |response, segment| response.with_option(number::LOCATION_PATH, segment))
            }),
    );
    server = server.route(
        "/separate",
        Resource::new().get(|| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            text("separate")
        }),
    );
    server = server.route("/seg1/seg2/seg3", Resource::new().get(|| async { text("segments") }));
    server = server.route(
        "/query",
        Resource::new().get(|request: Request| async move { text(request.query().collect::<Vec<_>>().join(";")) }),
    );
    server = server.route(
        "/location-query",
        Resource::new().post(|| async {
            Response::created()
                .with_option(number::LOCATION_QUERY, "first=1")
                .with_option(number::LOCATION_QUERY, "second=2")
        }),
    );
    server = server.route(
        "/multi-format",
        Resource::new().get(|request: Request| async move {
            match request.accept() {
                None | Some(TEXT) => text("text"),
                Some(XML) => Response::content("<xml/>").with_content_format(XML),
                Some(_) => Response::new(millpond_live::Code::NOT_ACCEPTABLE),
            }
        }),
    );
    server = validate(server);
    server = blocks(server);
    server = observed(server);
    links(server).start().await.unwrap()
}

fn validate(server: millpond_live::ServerBuilder) -> millpond_live::ServerBuilder {
    let versions = Arc::new(Versions::default());
    versions.set(b"first");
    let (get, put) = (Arc::clone(&versions), versions);
    let validate = Resource::new()
        .get(move |request: Request| {
            let response = get.get(&request);
            async move { response }
        })
        .put(move |request: Request| {
            let response = put.put(&request);
            async move { response }
        })
        .conditional();
    let created = Arc::new(Mutex::new(false));
    let create = Resource::new().conditional().put(move |request: Request| {
        let mut created = created.lock().unwrap();
        let response = match (*created, request.options().get(number::IF_NONE_MATCH)) {
            (true, Some(_)) => Response::new(millpond_live::Code::PRECONDITION_FAILED),
            (true, None) => Response::changed(),
            (false, _) => Response::created(),
        };
        *created = true;
        async move { response }
    });
    server.route("/validate", validate).route("/create1", create)
}

fn blocks(server: millpond_live::ServerBuilder) -> millpond_live::ServerBuilder {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (get, put) = (Arc::clone(&kept), kept);
    let update = Resource::new()
        .get(move || {
            let payload = get.lock().unwrap().clone();
            async move { text(payload) }
        })
        .put(move |request: Request| {
            *put.lock().unwrap() = request.payload().to_vec();
            async { Response::changed() }
        });
    server
        .route("/large", Resource::new().get(|| async { text(large()) }))
        .route("/large-update", update)
        .route(
            "/large-create",
            Resource::new().post(|| async {
                Response::created()
                    .with_option(number::LOCATION_PATH, "large-create")
                    .with_option(number::LOCATION_PATH, "1")
            }),
        )
        .route(
            "/large-post",
            Resource::new().post(|request: Request| async move {
                let upper: Vec<u8> = request.payload().iter().map(u8::to_ascii_uppercase).collect();
                Response::changed().with_content_format(TEXT).with_payload(upper)
            }),
        )
}

/// /obs and its like count up by themselves; a PUT sets the payload, a PUT of another format and a DELETE end every
/// observation.
fn observed(server: millpond_live::ServerBuilder) -> millpond_live::ServerBuilder {
    let mut server = server;
    for (path, confirmable, tail) in [("/obs", true, 0), ("/obs-non", false, 0), ("/obs-large", true, large().len())] {
        let represent = move |count: u32| [count.to_string().as_bytes(), &large()[..tail]].concat();
        let state = Arc::new(Mutex::new(represent(0)));
        let observable = if confirmable { Observable::confirmable() } else { Observable::new() };
        let (counted, notified) = (Arc::clone(&state), observable.clone());
        tokio::spawn(async move {
            for count in 1_u32.. {
                tokio::time::sleep(Duration::from_millis(300)).await;
                *counted.lock().unwrap() = represent(count);
                notified.notify();
            }
        });
        let (get, put) = (Arc::clone(&state), state);
        let (changed, deleted) = (observable.clone(), observable.clone());
        server = server.route(
            path,
            Resource::new()
                .get(move || {
                    let payload = get.lock().unwrap().clone();
                    async move { text(payload) }
                })
                .put(move |request: Request| {
                    if request.content_format().unwrap_or(TEXT) == TEXT {
                        *put.lock().unwrap() = request.payload().to_vec();
                        changed.notify();
                    } else {
                        changed.end(Response::new(millpond_live::Code::NOT_ACCEPTABLE));
                    }
                    async { Response::changed() }
                })
                .delete(move || {
                    deleted.end(Response::not_found());
                    async { Response::deleted() }
                })
                .observable(&observable),
        );
    }
    server
}

fn links(server: millpond_live::ServerBuilder) -> millpond_live::ServerBuilder {
    let plain = |payload: &'static str| Resource::new().get(move || async move { text(payload) });
    server
        .route("/link1", plain("1").resource_type("Type1 Type2").interface("If1"))
        .route("/link2", plain("2").resource_type("Type2 Type3").interface("If2"))
        .route("/link3", plain("3").resource_type("Type1 Type3").interface("foo").size(3))
        .route("/link4", plain("4").resource_type(""))
        .route(
            "/path",
            Resource::new()
                .content_format(LINK_FORMAT)
                .get(|| async { Response::content("</path/sub1>,</path/sub2>").with_content_format(LINK_FORMAT) }),
        )
        .route("/path/sub1", plain("/path/sub1"))
        .route("/path/sub2", plain("/path/sub2"))
}
