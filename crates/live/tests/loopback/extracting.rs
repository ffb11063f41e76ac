//! What handlers take as their arguments, and what a server must have for that.

use std::sync::Arc;

use millpond_live::{
    Bytes, Cbor, Client, Code, Error, Json, Path, Query, Request, Resource, Response, Server, State, Transport,
};
use serde::{Deserialize, Serialize};

use crate::ANY;

#[derive(Debug, Serialize, Deserialize)]
struct Level {
    celsius: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    North,
    South,
}

#[derive(Debug, Deserialize)]
struct Window {
    from: u32,
    most: Option<u8>,
}

#[derive(Debug, Deserialize)]
struct Place {
    room: u8,
    side: Side,
}

async fn history(
    Path(sensor): Path<u32>,
    Query(window): Query<Window>,
    State(unit): State<Arc<str>>,
    request: Request,
) -> String {
    format!("{sensor} from {} most {:?} in {unit} at {}", window.from, window.most, request.path_text())
}

async fn set(Json(level): Json<Level>) -> Cbor<Level> {
    Cbor(Level { celsius: level.celsius + 1.0 })
}

#[tokio::test]
async fn arguments_are_made_of_path_query_body_and_state() {
    let server = Server::builder()
        .bind(ANY)
        .state(Arc::<str>::from("kelvin"))
        .route("/sensors/{id}", Resource::new().get(history).put(set))
        .route(
            "/rooms/{room}/{side}",
            Resource::new()
                .get(|Path(Place { room, side })| async move { format!("{room} {side:?}") })
                .put(|Path((room, side)): Path<(u16, String)>, body: Bytes| async move {
                    format!("{room} {side} {}", body.len())
                })
                .post(|text: String| async move { text.to_uppercase() })
                .delete(|| async { Code::DELETED }),
        )
        .route("/files/{*rest}", Resource::new().get(|Path(rest): Path<String>| async move { rest }))
        .start()
        .await
        .unwrap();
    let client = Client::new().await.unwrap();
    let at = format!("coap://{}", server.local_addr());
    let text = async |answer: Result<Response, Error>| {
        let answer = answer.unwrap();
        format!("{} {}", answer.code(), answer.text().unwrap())
    };
    let get = async |path: &str| text(client.get(format!("{at}{path}")).await).await;
    assert_eq!(get("/sensors/7?from=5&most=9").await, "2.05 7 from 5 most Some(9) in kelvin at /sensors/7");
    assert_eq!(get("/sensors/7?from=5&else=9").await, "2.05 7 from 5 most None in kelvin at /sensors/7");
    let most = "\"300\" is not a whole number from 0 to 255";
    assert_eq!(get("/sensors/7?from=5&most=300").await, format!("4.00 the query: {most}"));
    assert_eq!(get("/sensors/7").await, "4.00 the query: missing field `from`");
    let sensor = "\"seven\" is not a whole number of 32 bits without sign";
    assert_eq!(get("/sensors/seven?from=5").await, format!("4.04 the path: {sensor}"));
    assert_eq!(get("/rooms/4/north").await, "2.05 4 North");
    assert_eq!(get("/rooms/4/up").await, "4.04 the path: unknown variant `up`, expected `north` or `south`");
    assert_eq!(get("/files/a/b%2Fc").await, "2.05 a/b/c");
    let room = format!("{at}/rooms/4/south");
    assert_eq!(text(client.put(&room).payload("12345").await).await, "2.05 4 south 5");
    assert_eq!(text(client.post(&room).payload("quiet").await).await, "2.05 QUIET");
    assert_eq!(text(client.post(&room).payload(&b"\xff"[..]).await).await, "4.00 the body is not UTF-8");
    assert_eq!(text(client.delete(&room).await).await, "2.02 ");
    let sensor = format!("{at}/sensors/7");
    let level: Level = client.put(&sensor).json(&Level { celsius: 20.5 }).await.unwrap().cbor().unwrap();
    assert!((level.celsius - 21.5).abs() < 1e-9, "{level:?}");
    assert_eq!(client.put(&sensor).payload("{").await.unwrap().code(), Code::BAD_REQUEST);
}

#[tokio::test]
async fn a_server_without_what_its_handlers_want_does_not_start() {
    let why = async |path: &str, resource: Resource| {
        Server::builder().bind(ANY).state(7_u8).route(path, resource).start().await.unwrap_err().to_string()
    };
    let get = Resource::new;
    let says = why("/a/{id}", get().get(|State(_): State<Arc<u64>>| async { Code::CONTENT })).await;
    assert!(
        says.contains("\"/a/{id}\"") && says.contains("GET") && says.contains("u64") && says.contains(".state("),
        "{says}"
    );
    let says = why("/a/{id}", get().put(|Path(_): Path<(u8, u8)>| async { Code::CHANGED })).await;
    assert!(says.contains("wants 2 parameters of its path, which has {id}"), "{says}");
    let says = why("/a", get().any(|Path(_): Path<u8>| async { Code::CHANGED })).await;
    assert!(says.contains("any method") && says.contains("wants 1 parameter of its path, which has none"), "{says}");
    let says = why("/{room}/{floor}", get().get(|Path(_): Path<Place>| async { Code::CONTENT })).await;
    assert!(says.contains("wants {side} of its path, which has {room}, {floor}"), "{says}");
    let fallback = Server::builder().bind(ANY).fallback(|State(_): State<u16>| async { Code::CONTENT });
    assert!(fallback.start().await.unwrap_err().to_string().starts_with("fallback: wants a state of u16"));
    let fits = Resource::new().get(|State(seven): State<u8>, Path(_): Path<u8>| async move { seven.to_string() });
    Server::builder().bind(ANY).state(7_u8).route("/a/{id}", fits).start().await.unwrap();
}

#[tokio::test]
async fn a_client_with_a_base_asks_beside_it_and_addresses_may_be_text() {
    let server = Server::builder()
        .bind("127.0.0.1:0")
        .bind_tcp("127.0.0.1:0")
        .route("/v1/{*rest}", Resource::new().get(|request: Request| async move { request.path_text() }))
        .route("/", Resource::new().get(|Query(asked): Query<Vec<(String, u8)>>| async move { format!("{asked:?}") }))
        .start()
        .await
        .unwrap();
    let tcp = format!("coap+tcp://{}/v1/", server.local_addr_of(Transport::Tcp).unwrap());
    let client = Client::builder().base(tcp).bind("127.0.0.1:0").build().await.unwrap();
    for (asked, answered) in [("level", "/v1/level"), ("a/./b/../c", "/v1/a/c"), ("/?n=3", "[(\"n\", 3)]")] {
        assert_eq!(client.get(asked).await.unwrap().text().unwrap(), answered, "{asked}");
    }
    let whole = format!("coap://{}/v1/udp", server.local_addr());
    assert_eq!(client.get(whole).await.unwrap().text().unwrap(), "/v1/udp");
    assert_eq!(server.local_addr_of(Transport::Dtls), None);
    let refused = Server::builder().bind("localhost:5683").bind("also none").start().await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "bind: \"localhost:5683\" is no address with a port; write one as in 127.0.0.1:5683 or [::1]:5683"
    );
    let refused = Client::builder().base("/v1").build().await.unwrap_err();
    assert!(refused.to_string().contains("coap:///v1"), "{refused}");
}
