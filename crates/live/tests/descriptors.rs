//! A process without a file descriptor left. A test program of its own, because the limit is the whole process's.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use millpond_live::{Client, Error, Resource, Response, Server};
use rustix::{
    process::{Resource as Limited, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use socket2::{Domain, Socket, Type};

#[tokio::test]
async fn without_descriptors_there_is_one_clear_error_and_what_runs_goes_on() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let resource = Resource::new().get(|| async { Response::content("x") });
    let server = Server::builder().bind(any).bind_tcp(any).route("/", resource).start().await.unwrap();
    let uri = format!("coap://{}/", server.local_addr());
    let old = Client::new().await.unwrap();
    old.get(&uri).await.unwrap();

    // A socket that can connect when no other can be made.
    let mut waiting = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
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

    // The kernel takes a connection that the server cannot: it waits for a descriptor, and does not spin.
    waiting.connect(&server.local_addrs()[1].1.into()).unwrap();
    let used = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
    };
    let started = used();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let spent = used() - started;
    assert!(spent < Duration::from_millis(150), "{spent:?} of 300 ms");

    drop(taken);
    setrlimit(Limited::Nofile, before).unwrap();
    assert_eq!(client.get(&uri).await.unwrap().text(), Ok("x"));
    // Settings, and a GET with the token `t`.
    waiting.write_all(b"\0\xe1\x01\x01t").unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        let mut came = Vec::new();
        while !came.ends_with(b"t\xffx") {
            let mut bytes = [0; 64];
            let count = waiting.read(&mut bytes).unwrap();
            assert!(count > 0, "closed after {came:x?}");
            came.extend_from_slice(&bytes[..count]);
        }
    });
    answer.await.unwrap();
}
