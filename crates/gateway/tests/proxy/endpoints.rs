use std::fs;

use millpond_gateway::{Config, Gateway};
use millpond_live::{ClientSecurity, Code, Observable, PreSharedKey, Resource, Server, ServerBuilder, Transport};

use super::{any, client, gateway};

const LINES: &str = "[directory]\n[[rule]]\npath = \"/ep/{name}/{*rest}\"\nto = \"endpoint://{name}/{*rest}\"\n";

fn device(changed: &Observable) -> ServerBuilder {
    Server::builder().route("/reading", Resource::new().observable(changed).get(|| async { "21.5" }))
}

#[tokio::test]
async fn a_registered_device_is_asked_by_its_name() {
    let (gateway, at) = gateway(LINES).await;
    let changed = Observable::new();
    let device = device(&changed).bind(any()).start().await.unwrap();
    let unknown = client().await.get(format!("{at}/ep/meter7/reading")).await.unwrap();
    assert_eq!((unknown.code(), unknown.text()), (Code::NOT_FOUND, Ok("no endpoint \"meter7\" is registered")));
    // From the port at which it is asked.
    let own = device.client(device.local_addr()).unwrap();
    let registered = own.post(format!("{at}/rd?ep=meter7")).payload("</reading>").await.unwrap();
    assert_eq!(registered.code(), Code::CREATED);
    let reading = client().await.get(format!("{at}/ep/meter7/reading")).await.unwrap();
    assert_eq!(reading.text(), Ok("21.5"));
    let links = client().await.get(format!("{at}/.well-known/core?rt=core.rd")).await.unwrap();
    assert_eq!(links.text().unwrap().split(';').next(), Some("</rd>"));
    let mut observation = client().await.get(format!("{at}/ep/meter7/reading")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    assert_eq!(changed.observers(), 1);
    drop(gateway);
}

/// A base that a registration names is what its sender wrote.
#[tokio::test]
async fn a_base_leads_only_to_devices_of_a_path() {
    let (_gateway, at) = gateway(LINES).await;
    let elsewhere = device(&Observable::new()).bind(any()).start().await.unwrap();
    let named = format!("{at}/rd?ep=a&base=coap://{}", elsewhere.local_addr());
    assert_eq!(client().await.post(named).payload("</reading>").await.unwrap().code(), Code::CREATED);
    let refused = client().await.get(format!("{at}/ep/a/reading")).await.unwrap();
    assert_eq!(refused.code(), Code::FORBIDDEN, "{:?}", refused.text());
}

/// Behind a NAT nobody can begin anything: it is asked in the session that it began, and found again in its next one.
#[tokio::test]
async fn a_device_is_asked_in_its_own_session() {
    let folder = std::env::temp_dir().join(format!("millpond-gateway-endpoints-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("keys"), "meter7:0x0102030405060708\n").unwrap();
    let text = format!(
        "[listen]\ncoap = [\"127.0.0.1:0\"]\ncoaps = [\"127.0.0.1:0\"]\n[credentials]\npsk-file = \"keys\"\n{LINES}"
    );
    let gateway = Gateway::builder(Config::from_toml(&text, "gateway.toml", &folder).unwrap()).start().await.unwrap();
    let secure = gateway.local_addr_of(Transport::Dtls).unwrap();
    let (at, secure) = (format!("coap://{}", gateway.local_addr()), format!("coaps://{secure}"));
    let register = async || {
        let key = PreSharedKey::from_text("meter7:0x0102030405060708").unwrap();
        let builder = device(&Observable::new()).bind_dtls_client(any());
        let device = builder.client_security(ClientSecurity::new().pre_shared_key(key)).start().await.unwrap();
        let own = device.client(device.local_addr()).unwrap();
        let registered = own.post(format!("{secure}/rd?ep=meter7")).payload("</reading>").await.unwrap();
        assert_eq!(registered.code(), Code::CREATED);
        device
    };
    let ask = async || client().await.get(format!("{at}/ep/meter7/reading?fresh={}", another())).await.unwrap();
    let first = register().await;
    assert_eq!(ask().await.text(), Ok("21.5"));
    first.shutdown().await;
    let _second = register().await;
    let answer = ask().await;
    assert_eq!(answer.text(), Ok("21.5"), "{}", answer.code());
    let _ = fs::remove_dir_all(folder);
}

/// Another each time: nothing that is kept answers.
fn another() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Who asks a device that sleeps is answered when it wakes.
#[tokio::test]
async fn a_request_waits_for_a_device_that_sleeps() {
    let lines = format!("{LINES}wait = true\ntimeout = \"20 s\"\n");
    let (_gateway, at) = gateway(&lines).await;
    let uri = format!("{at}/ep/meter7/reading");
    let asking = tokio::spawn(async move { client().await.get(uri).await.unwrap() });
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert!(!asking.is_finished());
    let device = device(&Observable::new()).bind(any()).start().await.unwrap();
    let own = device.client(device.local_addr()).unwrap();
    assert_eq!(own.post(format!("{at}/rd?ep=meter7")).payload("</reading>").await.unwrap().code(), Code::CREATED);
    assert_eq!(asking.await.unwrap().text(), Ok("21.5"));
}
