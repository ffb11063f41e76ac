//! What handlers return, what stands around them, and what they share.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use millpond_live::{
    Client, Code, ContentFormat, HandlerError, IntoResponse, Next, Request, Resource, Response, Server,
};

use crate::ANY;

/// An error of an application's own.
enum Refused {
    TooHot,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self::TooHot = self;
        (Code::CONFLICT, "too hot").into_response()
    }
}

async fn set(request: Request) -> Result<Code, Refused> {
    if request.payload().starts_with(b"9") { Err(Refused::TooHot) } else { Ok(Code::CHANGED) }
}

async fn failing(_: Request) -> Result<String, HandlerError> {
    Ok(std::fs::read_to_string("/there/is/no/such/file")?)
}

#[tokio::test]
async fn handlers_return_whatever_is_a_response() {
    let level = Resource::new().get(|| async { "21.5" }).put(set).delete(failing);
    let server = Server::builder().bind(ANY).route("/level", level).start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = format!("coap://{}/level", server.local_addr());
    let read = client.get(&uri).await.unwrap();
    assert_eq!((read.text().unwrap(), read.content_format()), ("21.5", Some(ContentFormat::TEXT)));
    assert_eq!(client.put(&uri).payload("20").await.unwrap().code(), Code::CHANGED);
    let hot = client.put(&uri).payload("90").await.unwrap();
    assert_eq!((hot.code(), hot.text().unwrap()), (Code::CONFLICT, "too hot"));
    let failed = client.delete(&uri).await.unwrap();
    assert_eq!(
        (failed.code(), failed.payload().len()),
        (Code::INTERNAL_SERVER_ERROR, 0),
        "nothing of the inside is told"
    );
}

/// The layers that a request has passed, in their order.
#[derive(Debug, Default)]
struct Passed(Mutex<Vec<&'static str>>);

async fn outer(request: Request, next: Next) -> Result<Response, HandlerError> {
    request.state::<Arc<Passed>>()?.0.lock().unwrap().push("outer");
    let answer = next.run(request).await;
    Ok(answer.with_max_age(7))
}

async fn inner(request: Request, next: Next) -> Result<Response, HandlerError> {
    request.state::<Arc<Passed>>()?.0.lock().unwrap().push("inner");
    if request.query_value("key") != Some("sesame") {
        return Ok(Response::new(Code::FORBIDDEN));
    }
    Ok(next.run(request).await)
}

#[tokio::test]
async fn layers_stand_around_handlers_in_their_order_and_may_answer_themselves() {
    let (passed, asked) = (Arc::new(Passed::default()), Arc::new(AtomicU32::new(0)));
    let asking = Arc::clone(&asked);
    let handler = move || {
        asking.fetch_add(1, Ordering::Relaxed);
        async { Code::CHANGED }
    };
    let guarded = Resource::new().layer(inner).put(handler);
    let server = Server::builder()
        .bind(ANY)
        .state(Arc::clone(&passed))
        .layer(outer)
        .route("/guarded", guarded)
        .fallback(|| async { "anything" });
    let server = server.start().await.unwrap();
    let client = Client::new().await.unwrap();
    let uri = |path: &str| format!("coap://{}{path}", server.local_addr());
    let max_age = |answer: &Response| answer.options().uint(millpond_live::number::MAX_AGE);
    let refused = client.put(uri("/guarded")).await.unwrap();
    assert_eq!((refused.code(), max_age(&refused)), (Code::FORBIDDEN, Some(7)));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(client.put(uri("/guarded?key=sesame")).await.unwrap().code(), Code::CHANGED);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(max_age(&client.get(uri("/elsewhere")).await.unwrap()), Some(7), "the fallback has them, too");
    assert_eq!(*passed.0.lock().unwrap(), ["outer", "inner", "outer", "inner", "outer"]);
}

#[tokio::test]
async fn state_is_found_by_its_type_and_what_is_missing_is_5_00() {
    async fn count(request: Request) -> Result<String, HandlerError> {
        Ok(request.state::<AtomicU32>()?.fetch_add(1, Ordering::Relaxed).to_string())
    }
    let count = || Resource::new().post(count);
    let client = Client::new().await.unwrap();
    let counting = Server::builder().bind(ANY).state(AtomicU32::new(7)).state("text").route("/count", count());
    let counting = counting.start().await.unwrap();
    let uri = format!("coap://{}/count", counting.local_addr());
    for expected in ["7", "8"] {
        assert_eq!(client.post(&uri).await.unwrap().text().unwrap(), expected);
    }
    let without = Server::builder().bind(ANY).route("/count", count()).start().await.unwrap();
    let answer = client.post(format!("coap://{}/count", without.local_addr())).await.unwrap();
    assert_eq!(answer.code(), Code::INTERNAL_SERVER_ERROR);
}

#[cfg(all(feature = "cbor", feature = "json"))]
mod values {
    use millpond_live::{Cbor, Error, Json};
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Reading {
        sensor: String,
        celsius: f64,
    }

    async fn as_json(request: Request) -> Result<Json<Reading>, HandlerError> {
        let reading: Reading = request.json()?;
        Ok(Json(Reading { celsius: reading.celsius + 1.0, ..reading }))
    }

    async fn as_cbor(request: Request) -> Result<(Code, Cbor<Reading>), HandlerError> {
        Ok((Code::CREATED, Cbor(request.cbor()?)))
    }

    #[tokio::test]
    async fn values_travel_as_json_and_cbor_and_say_so() {
        let server = Server::builder()
            .bind(ANY)
            .route("/json", Resource::new().post(as_json))
            .route("/cbor", Resource::new().post(as_cbor));
        let server = server.start().await.unwrap();
        let client = Client::new().await.unwrap();
        let uri = |path: &str| format!("coap://{}{path}", server.local_addr());
        let reading = Reading { sensor: "attic".into(), celsius: 20.5 };

        let answer = client.post(uri("/json")).json(&reading).await.unwrap();
        assert_eq!(answer.content_format(), Some(ContentFormat::JSON));
        assert_eq!(answer.json::<Reading>().unwrap(), Reading { celsius: 21.5, ..reading.clone() });
        assert!(matches!(answer.cbor::<Reading>(), Err(Error::NotDecoded { .. })), "it is in JSON");

        let answer = client.post(uri("/cbor")).cbor(&reading).await.unwrap();
        assert_eq!((answer.code(), answer.content_format()), (Code::CREATED, Some(ContentFormat::CBOR)));
        assert_eq!(answer.cbor::<Reading>().unwrap(), reading);

        let other = client.post(uri("/json")).cbor(&reading).await.unwrap();
        assert_eq!(other.code(), Code::UNSUPPORTED_CONTENT_FORMAT);
        for (path, body) in [("/json", &b"{\"sensor\": 1}"[..]), ("/cbor", b"\xa0"), ("/cbor", b"\xff"), ("/json", b"")]
        {
            let broken = client.post(uri(path)).payload(body).await.unwrap();
            assert_eq!(broken.code(), Code::BAD_REQUEST, "{path} {body:?}");
            let said = broken.json::<Reading>().unwrap_err().to_string();
            assert!(said.contains("4.00"), "an error is told as one: {said}");
        }
        let followed = [&answer.payload()[..], b"\0"].concat();
        assert_eq!(client.post(uri("/cbor")).payload(followed).await.unwrap().code(), Code::BAD_REQUEST);

        let formless = std::collections::BTreeMap::from([(vec![1, 2], 3)]);
        let refused = client.post(uri("/json")).json(&formless).await.unwrap_err();
        assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    }
}
