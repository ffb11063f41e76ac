//! A gateway that is told to read its file again, and to end, while it is asked.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use millpond_live::{Client, Code, Resource, Response, Server};

use crate::program::{command, fresh_directory, millpond, signal};

#[test]
fn a_gateway_reads_its_file_again_and_ends_while_it_is_asked() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(under_load());
}

/// Each request is answered whatever signal comes, and the last ones when it ends.
async fn under_load() {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Response::content("state").with_max_age(0)
    };
    let device = Server::builder().bind("127.0.0.1:0").route("/{*rest}", Resource::new().any(slow));
    let device = device.start().await.expect("a device");
    let folder = fresh_directory("gateway-under-load");
    let (file, to) = (folder.join("gateway.toml"), device.local_addr());
    let rule = |path: &str| format!("[[rule]]\npath = \"{path}\"\nto = \"coap://{to}/x\"\n");
    let listens = "[listen]\ncoap = [\"127.0.0.1:0\"]\n[upstream]\nnstart = 16\n";
    let good = format!("{listens}{}", rule("/a/{n}"));
    std::fs::write(&file, &good).expect("it can be written");
    let path = file.to_str().expect("plain");
    let mut gateway = command(&["gateway", "--quiet", path]).spawn().expect("the program is built");
    let mut out = BufReader::new(gateway.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it says where it listens");
    let at = line.trim_end().strip_prefix("listening on ").expect("a URI").to_owned();
    let (ends, answered, open) = (Arc::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (at, ends, answered, open) =
            (at.clone(), Arc::<AtomicBool>::clone(&ends), Arc::clone(&answered), Arc::clone(&open));
        asking.spawn(async move {
            let client = Client::new().await.expect("a client");
            while !ends.load(Ordering::SeqCst) {
                open.fetch_add(1, Ordering::SeqCst);
                let answer = client.get(format!("{at}/a/{number}")).await;
                open.fetch_sub(1, Ordering::SeqCst);
                let code = answer.map(|answer| answer.code());
                // What reaches it after it was told to end is refused, and what comes later reaches nobody.
                let is_late = ends.load(Ordering::SeqCst) && matches!(code, Ok(Code::SERVICE_UNAVAILABLE) | Err(_));
                assert!(code == Ok(Code::CONTENT) || is_late, "{code:?}");
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    for round in 0..20 {
        let text = match round % 4 {
            0 => format!("{good}{}", rule("/b")),
            1 => "[[rul]]\n".to_owned(),
            2 => good.clone(),
            // A path in which nothing stands.
            _ => String::new(),
        };
        std::fs::write(&file, text).expect("it can be written");
        let before = answered.load(Ordering::SeqCst);
        signal(&gateway, "HUP");
        while answered.load(Ordering::SeqCst) < before + 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // Of the last good one that was read: a bad one changes nothing.
    assert_eq!(millpond(&["get", &format!("{at}/a/x")]).well(), "state");
    ends.store(true, Ordering::SeqCst);
    signal(&gateway, "TERM");
    // What was asked before is answered, also where the device takes its time.
    while let Some(asked) = asking.join_next().await {
        asked.expect("each request is answered");
    }
    assert!(open.load(Ordering::SeqCst) == 0 && gateway.wait().expect("it ends").success());
}
