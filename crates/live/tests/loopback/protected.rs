//! One client that has a context of OSCORE for each of its servers.

use std::net::SocketAddr;

use bytes::Bytes;
use millpond_coap::oscore::{Context, Parameters, Start};
use millpond_live::{
    Client, Code, Error, NotSent, Observable, OscoreContexts, Resource, Response, Server, Transport, number,
};

use crate::ANY;

/// All have the same IDs, as a device may have with each of its servers.
const fn parameters(secret: &[u8]) -> Parameters<'_> {
    Parameters { sender_id: b"c", recipient_id: b"", ..Parameters::of(secret) }
}

fn context(parameters: &Parameters<'_>) -> Context {
    Context::derive(parameters, Start::Stored(0)).unwrap()
}

/// Answers with its secret, and with what it is sent.
async fn serving(secret: &'static str) -> Server {
    let contexts = OscoreContexts::new();
    contexts.add(context(&parameters(secret.as_bytes()).mirrored()), |_| Ok(())).unwrap();
    let told = Resource::new().observable(&Observable::new()).get(move || async move { Response::content(secret) });
    let echo = Resource::new().post(|body: Bytes| async move { Response::content(body) });
    let builder = Server::builder().bind(ANY).bind_tcp(ANY).oscore(contexts);
    builder.route("/told", told).route("/echo", echo).start().await.unwrap()
}

#[tokio::test]
async fn one_client_asks_each_server_by_its_own_context() {
    const SECRETS: [&str; 4] = ["the secret of no 1", "the secret of no 2", "of no 3, over TCP", "of all the others"];
    let mut servers = Vec::new();
    for secret in SECRETS {
        servers.push(serving(secret).await);
    }
    let at = |number: usize| -> SocketAddr {
        let transport = if number == 2 { Transport::Tcp } else { Transport::Udp };
        servers[number].local_addr_of(transport).unwrap()
    };
    let uri = |number, path| format!("coap{}://{}{path}", if number == 2 { "+tcp" } else { "" }, at(number));
    let contexts = OscoreContexts::new();
    for number in [2, 1, 0] {
        let context = context(&parameters(SECRETS[number].as_bytes()));
        contexts.add_for(at(number).to_string().parse().unwrap(), context, |_| Ok(())).unwrap();
    }
    let client = Client::builder().oscore(contexts.clone()).build().await.unwrap();
    let told = async |number: usize| {
        let answer = client.get(uri(number, "/told")).await.unwrap();
        assert_eq!((answer.code(), answer.text()), (Code::CONTENT, Ok(SECRETS[number])));
    };
    // At once, so that none is the one that was asked last.
    tokio::join!(
        async {
            for number in [0, 1, 2, 0, 2, 1] {
                told(number).await;
            }
        },
        async {
            let body: String = (0..2_000).map(|number| format!("{number}\n")).collect();
            for number in [2, 1, 0, 1, 2] {
                let answer = client.post(uri(number, "/echo")).payload(body.clone()).await.unwrap();
                assert_eq!(answer.text(), Ok(&*body), "{number}");
            }
        }
    );
    for (number, secret) in SECRETS.iter().enumerate().take(3) {
        let mut observation = client.get(uri(number, "/told")).observe().await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), Ok(*secret));
    }

    // None is for the last one.
    let refused = |error| match error {
        Error::Refused { why: NotSent::Message, reason } => reason,
        other => panic!("{other}"),
    };
    let none = refused(client.get(uri(3, "/told")).await.unwrap_err());
    assert_eq!(none, format!("no context of OSCORE is for {}; add one for it, or one for any server", at(3)));
    assert_eq!(servers[3].stats().await.requests, 0);
    let chosen = client.get(uri(0, "/told")).option(number::OSCORE, vec![1]).await.unwrap_err();
    assert_eq!(refused(chosen), "the message is protected already");
    let again = contexts.add_for(at(0).to_string().parse().unwrap(), context(&parameters(&[0; 16])), |_| Ok(()));
    let line = format!("oscore: has two contexts for {}; leave one of them out", at(0));
    assert_eq!(again.unwrap_err().to_string(), line);
    // One for any server is, and takes nothing from those that have theirs.
    contexts.add(context(&parameters(SECRETS[3].as_bytes())), |_| Ok(())).unwrap();
    for number in [3, 0, 1, 2, 3] {
        told(number).await;
    }
}
