//! A gateway that has contexts of OSCORE with some of those who ask it and of those whom it asks.

use millpond_coap::oscore::{Context, Parameters, Start};
use millpond_gateway::Gateway;
use millpond_live::{
    Client, Code, Observable, OscoreContexts, PeerIdentity, Resource, Response, Server, Transport, number,
};

use super::{all_to, any, client, config};

const OF_CLIENT: Parameters<'static> = Parameters { sender_id: b"\x07", ..Parameters::of(b"client & gateway") };
const OF_DEVICE: Parameters<'static> = Parameters { sender_id: b"g", ..Parameters::of(b"gateway & device") };
/// Between a client and a server that the gateway knows nothing of.
const BEYOND: Parameters<'static> = Parameters { sender_id: b"\x09", ..Parameters::of(b"from end to end.") };

fn context(parameters: &Parameters<'_>) -> Context {
    Context::derive(parameters, Start::Stored(0)).unwrap()
}

fn one(parameters: &Parameters<'_>) -> OscoreContexts {
    let contexts = OscoreContexts::new();
    contexts.add(context(parameters), |_| Ok(())).unwrap();
    contexts
}

async fn client_under(parameters: &Parameters<'_>) -> Client {
    Client::builder().oscore(one(parameters)).build().await.unwrap()
}

/// With a context for a client of the gateway, and one for each of these devices.
async fn gateway(lines: &str, devices: &[(String, &Parameters<'_>)]) -> (Gateway, String) {
    let contexts = one(&OF_CLIENT.mirrored());
    for (device, parameters) in devices {
        contexts.add_for(device.parse().unwrap(), context(parameters), |_| Ok(())).unwrap();
    }
    let gateway = Gateway::builder(config(lines)).oscore(contexts).start().await.unwrap();
    let at = format!("coap://{}", gateway.local_addr());
    (gateway, at)
}

/// A device that tells its state, who has asked, and a long body, under this context alone or in the clear.
async fn device(parameters: Option<&Parameters<'_>>, changed: &Observable) -> Server {
    let state = Resource::new().observable(changed).get(|| async { Response::content("21.5").with_max_age(0) });
    let long = Resource::new().get(|| async { Response::content(vec![b'x'; 5_000]).with_max_age(0) });
    let put =
        Resource::new().put(|body: millpond_live::Bytes| async move { Response::content(body.len().to_string()) });
    let builder = Server::builder().bind(any()).bind_tcp(any());
    let builder = match parameters {
        Some(parameters) => builder.oscore(one(&parameters.mirrored())),
        None => builder,
    };
    builder.route("/state", state).route("/long", long).route("/put", put).start().await.unwrap()
}

async fn works(client: &Client, at: &str, changed: &Observable) {
    assert_eq!(client.get(format!("{at}/state")).await.unwrap().text(), Ok("21.5"));
    assert_eq!(client.get(format!("{at}/long")).await.unwrap().payload().len(), 5_000);
    let put = client.put(format!("{at}/put")).payload(vec![b'x'; 3_000]).await.unwrap();
    assert_eq!(put.text(), Ok("3000"));
    let mut observation = client.get(format!("{at}/state")).observe().await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("21.5"));
    changed.notify();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok("21.5"));
}

/// Each side is protected as its own context has it.
#[tokio::test]
async fn each_side_is_protected_by_its_own_context() {
    let changed = [Observable::new(), Observable::new()];
    let (plain, protected) = (device(None, &changed[0]).await, device(Some(&OF_DEVICE), &changed[1]).await);
    let tcp = protected.local_addr_of(Transport::Tcp).unwrap();
    let lines = format!(
        "[[rule]]\npath = \"/plain/{{*rest}}\"\nto = \"coap://{}/{{*rest}}\"\n\
         [[rule]]\npath = \"/device/{{*rest}}\"\nto = \"coap://{}/{{*rest}}\"\n\
         [[rule]]\npath = \"/tcp/{{*rest}}\"\nto = \"coap+tcp://{tcp}/{{*rest}}\"\n",
        plain.local_addr(),
        protected.local_addr(),
    );
    let contexts = [(protected.local_addr().to_string(), &OF_DEVICE)];
    let (_gateway, at) = gateway(&lines, &contexts).await;
    for asks in [client().await, client_under(&OF_CLIENT).await] {
        works(&asks, &format!("{at}/plain"), &changed[0]).await;
        works(&asks, &format!("{at}/device"), &changed[1]).await;
    }
    // The context is for one port, and what is asked at another one leaves in the clear.
    let other = client().await.get(format!("{at}/tcp/state")).await.unwrap();
    assert_eq!((other.code(), other.text()), (Code::UNAUTHORIZED, Ok("OSCORE required")));
    // Unless it is for the usual ports, so that nobody can tell whether this one was meant.
    let (_gateway, at) = gateway(&lines, &[("127.0.0.1".to_owned(), &OF_DEVICE)]).await;
    let refused = client().await.get(format!("{at}/plain/state")).await.unwrap();
    let told = "a context of OSCORE is for 127.0.0.1 at the usual ports, and none for";
    assert!(refused.code() == Code::BAD_GATEWAY && refused.text().unwrap().contains(told), "{refused:?}");
}

/// By which context it came is who has sent it.
#[tokio::test]
async fn a_rule_may_be_for_who_has_a_context() {
    let device = device(None, &Observable::new()).await;
    let (_gateway, at) = gateway(&format!("{}who = [\"oscore:07\"]\n", all_to(device.local_addr())), &[]).await;
    let allowed = client_under(&OF_CLIENT).await.get(format!("{at}/state")).await.unwrap();
    assert_eq!(allowed.text(), Ok("21.5"));
    let refused = client().await.get(format!("{at}/state")).await.unwrap();
    assert_eq!(refused.code(), Code::UNAUTHORIZED);
    let others = client_under(&BEYOND).await.get(format!("{at}/state")).await.unwrap_err().to_string();
    assert!(others.contains("4.01"), "{others}");
    let wrong = millpond_gateway::Config::from_toml(
        &format!("{}who = [\"oscore:0G\"]\n", all_to(device.local_addr())),
        "gateway.toml",
        std::path::Path::new(""),
    );
    let told = wrong.unwrap_err().to_string();
    assert!(told.contains("\"0G\" is no ID in lower-case hexadecimal digits"), "{told}");
}

/// Also where their context has the ID of one that the gateway has.
#[tokio::test]
async fn what_others_protect_passes_from_end_to_end() {
    for parameters in [BEYOND, Parameters { sender_id: OF_CLIENT.sender_id, ..BEYOND }] {
        for (scheme, transport) in [("coap", Transport::Udp), ("coap+tcp", Transport::Tcp)] {
            let changed = Observable::new();
            let cloud = device(Some(&parameters), &changed).await;
            let there = cloud.local_addr_of(transport).unwrap();
            let to = format!("[[rule]]\npath = \"/{{*rest}}\"\nto = \"{scheme}://{there}/{{*rest}}\"\n");
            // The gateway has one for that server, too, and does not protect twice.
            let contexts = [(there.to_string(), &OF_DEVICE)];
            let (gateway, _) = gateway(&format!("coap-tcp = [\"127.0.0.1:0\"]\n{to}"), &contexts).await;
            let near = gateway.local_addr_of(transport).unwrap();
            works(&client_under(&parameters).await, &format!("{scheme}://{near}"), &changed).await;
        }
    }
}

/// What is no OSCORE option is not forwarded, so that nothing takes it for something else.
#[tokio::test]
async fn an_option_that_cannot_be_read_is_refused() {
    let device = device(Some(&OF_DEVICE), &Observable::new()).await;
    let contexts = [(device.local_addr().to_string(), &OF_DEVICE)];
    let (_gateway, at) = gateway(&all_to(device.local_addr()), &contexts).await;
    for value in [vec![0xff, 2], vec![0xff], vec![1], vec![0xe0, 1]] {
        let request = client().await.post(format!("{at}/put")).option(number::OSCORE, value.clone()).payload("x");
        assert_eq!(request.await.unwrap().code(), Code::BAD_OPTION, "{value:?}");
    }
    assert_eq!(device.stats().await.requests, 0);
}

/// It is asked under the context under which it has registered, wherever it is, and nobody else is.
#[tokio::test]
async fn a_device_that_registers_under_a_context_is_asked_under_it() {
    let lines = "[directory]\n[[rule]]\npath = \"/ep/{name}/{*rest}\"\nto = \"endpoint://{name}/{*rest}\"\n";
    let (_gateway, at) = gateway(lines, &[]).await;
    // Somebody else has the name before, and his answer is kept.
    let before = Resource::new().get(|| async { Response::content("99").with_max_age(100_000) });
    let before = Server::builder().bind(any()).route("/state", before).start().await.unwrap();
    let other = before.client(before.local_addr()).unwrap();
    let registered = other.post(format!("{at}/rd?ep=meter7")).payload("</state>").await.unwrap();
    let location: Vec<_> = registered.options().all(number::LOCATION_PATH).collect();
    let location = location.iter().map(|segment| std::str::from_utf8(segment).unwrap()).collect::<Vec<_>>().join("/");
    assert_eq!(client().await.get(format!("{at}/ep/meter7/state")).await.unwrap().text(), Ok("99"));
    assert_eq!(other.delete(format!("{at}/{location}")).await.unwrap().code(), Code::DELETED);
    let changed = Observable::new();
    let state = Resource::new().observable(&changed).get(|| async { Response::content("21.5").with_max_age(0) });
    // Its requests and its answers are under one context, in which it is the client.
    let builder = Server::builder().bind(any()).oscore(one(&OF_CLIENT)).route("/state", state);
    let device = builder.start().await.unwrap();
    let own = device.client(device.local_addr()).unwrap();
    let registered = own.post(format!("{at}/rd?ep=meter7")).payload("</state>").await.unwrap();
    assert_eq!(registered.code(), Code::CREATED);
    let reading = client().await.get(format!("{at}/ep/meter7/state")).await.unwrap();
    assert_eq!((reading.code(), reading.text()), (Code::CONTENT, Ok("21.5")));
    let mut observation = client().await.get(format!("{at}/ep/meter7/state")).observe().await.unwrap();
    observation.next().await.unwrap().unwrap();
    assert_eq!(changed.observers(), 1);
    // Who has no context changes nothing of it.
    let other = client().await.post(format!("{at}/rd?ep=meter7")).payload("</other>").await.unwrap();
    assert_eq!(other.code(), Code::FORBIDDEN, "{:?}", other.text());
    assert_eq!(PeerIdentity::Oscore(OF_CLIENT.sender_id.into()).names(), ["07"]);
}

/// Whom a request is for stands outside of what a context protects, where anybody on the path may write it.
#[tokio::test]
async fn what_a_context_does_not_protect_leads_nowhere_else() {
    let (device, door) = (device(None, &Observable::new()).await, device(None, &Observable::new()).await);
    let lines = format!(
        "[[rule]]\nhost = \"door.example\"\npath = \"/{{*rest}}\"\nto = \"coap://{}/{{*rest}}\"\nwho = [\"oscore:07\"]\n\
         {}[[forward]]\nto = [\"127.0.0.1\"]\nwho = [\"oscore:07\"]\n",
        door.local_addr(),
        all_to(device.local_addr()),
    );
    let (_gateway, at) = gateway(&lines, &[]).await;
    let client = client_under(&OF_CLIENT).await;
    let other_host = client.get(format!("{at}/state")).option(number::URI_HOST, "door.example");
    assert_eq!(other_host.await.unwrap().text(), Ok("21.5"));
    let (host, port) = (b"127.0.0.1".to_vec(), door.local_addr().port().to_be_bytes().to_vec());
    let forwarded = client.put(format!("{at}/put")).payload("x").option(number::PROXY_SCHEME, "coap");
    let forwarded = forwarded.option(number::URI_HOST, host).option(number::URI_PORT, port).await.unwrap();
    assert_eq!(forwarded.code(), Code::BAD_OPTION, "{:?}", forwarded.text());
    assert_eq!((device.stats().await.requests, door.stats().await.requests), (1, 0));
}
