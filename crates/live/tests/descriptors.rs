//! A process without a file descriptor left. A test program of its own, because the limit is the whole process's.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, SocketAddr};

use millpond_live::{Client, Error, Resource, Response, Server};
use rustix::process::{Resource as Limited, Rlimit, getrlimit, setrlimit};

#[tokio::test]
async fn without_descriptors_there_is_one_clear_error_and_what_runs_goes_on() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let resource = Resource::new().get(|_| async { Response::content("x") });
    let server = Server::builder().bind(any).bind_tcp(any).route("/", resource).start().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    let old = Client::new().await.unwrap();
    old.get(&uri).await.unwrap();

    let before = getrlimit(Limited::Nofile);
    setrlimit(Limited::Nofile, Rlimit { current: Some(20), ..before }).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    let client = Client::new().await.unwrap();
    let error = client.get(&uri).await.unwrap_err();
    assert!(matches!(error, Error::Bind { .. }) && error.to_string().contains("ulimit -n"), "{error}");
    let error = client.get(format!("coap+tcp://{}/", server.local_addrs()[1].1)).await.unwrap_err();
    assert!(error.to_string().contains("ulimit -n"), "{error}");
    assert!(Server::builder().bind(any).start().await.unwrap_err().to_string().contains("ulimit -n"));
    assert_eq!(old.get(&uri).await.unwrap().text(), Ok("x"));

    drop(taken);
    setrlimit(Limited::Nofile, before).unwrap();
    assert_eq!(client.get(&uri).await.unwrap().text(), Ok("x"));
}
