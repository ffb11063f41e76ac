use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use millpond_live::{Code, Resource, Response, number};
use tokio::{sync::Semaphore, task::JoinSet};

use super::{Upstream, client, gateway};

/// Devices behind one link are asked one after the other, and who comes when the queue is full is told when to come again.
#[tokio::test]
async fn devices_behind_one_link_take_turns() {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let is_full = Arc::new(Semaphore::new(0));
    let (opened, highest, full) = (Arc::clone(&open), Arc::clone(&most), Arc::clone(&is_full));
    let slow = Resource::new().get(move || {
        let (open, most, full) = (Arc::clone(&opened), Arc::clone(&highest), Arc::clone(&full));
        async move {
            most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            drop(full.acquire().await.unwrap());
            open.fetch_sub(1, Ordering::SeqCst);
            Response::content("slow").with_max_age(0)
        }
    });
    let upstream = Upstream::start(|server| server.ack_delay(Duration::from_secs(60)).route("/slow", slow)).await;
    let lines = format!(
        "[[path]]\nname = \"cell\"\ndevices = [\"127.0.0.0/8\"]\nnstart = 2\nqueue = 8\n\
         [[rule]]\npath = \"/slow\"\nto = \"coap://{}/slow\"\n",
        upstream.at()
    );
    let (_gateway, at) = gateway(&lines).await;
    let mut all = JoinSet::new();
    for number in 0..20 {
        let uri = format!("{at}/slow?{number}");
        all.spawn(async move { client().await.get(uri).await.unwrap() });
    }
    let mut refused = 0;
    while let Some(one) = all.join_next().await {
        let answer = one.unwrap();
        if answer.code() == Code::SERVICE_UNAVAILABLE {
            refused += 1;
            // The server answers nobody before.
            if refused == 12 {
                is_full.add_permits(1);
            }
            assert!(answer.options().uint(number::MAX_AGE).is_some_and(|seconds| seconds > 0));
            assert!(answer.text().unwrap().contains("too many requests wait"));
        }
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert_eq!(refused, 20 - 2 - 6, "a network has three quarters of the queue");
}

#[tokio::test]
async fn a_parameter_in_a_host_leads_only_to_devices() {
    let upstream = Upstream::start(|server| server).await;
    let port = upstream.at().port();
    let lines = format!(
        "[[path]]\nname = \"cell\"\ndevices = [\"127.0.0.0/30\"]\n\
         [[rule]]\npath = \"/m/{{id}}/{{*rest}}\"\nto = \"coap://127.0.0.{{id}}:{port}/{{*rest}}\"\n"
    );
    let (_gateway, at) = gateway(&lines).await;
    let ask = |id: &str| {
        let uri = format!("{at}/m/{id}/count");
        async move { client().await.get(uri).await.unwrap().code() }
    };
    assert_eq!(ask("1").await, Code::CONTENT);
    assert_eq!(ask("9").await, Code::FORBIDDEN, "it is no device of the path");
    assert_eq!(ask("1.example").await, Code::BAD_REQUEST);
    assert_eq!(ask("1%3A80").await, Code::BAD_REQUEST);
    assert_eq!(upstream.asked(), 1);
}

#[tokio::test]
async fn figures_stand_beside_those_of_the_server() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let upstream = Upstream::start(|server| server).await;
    let lines = format!(
        "metrics = \"127.0.0.1:0\"\n[[path]]\nname = \"cell\"\ndevices = [\"127.0.0.0/8\"]\n{}",
        super::all_to(upstream.at())
    );
    let (gateway, at) = gateway(&lines).await;
    for _ in 0..2 {
        client().await.get(format!("{at}/count")).await.unwrap();
    }
    let mut stream = tokio::net::TcpStream::connect(gateway.metrics_addr().unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    for line in [
        "millpond_gateway_answer_seconds_count{rule=\"/{*rest}\",source=\"cache\"} 1",
        "millpond_gateway_answer_seconds_count{rule=\"/{*rest}\",source=\"upstream\"} 1",
        "millpond_gateway_answered_total{path=\"cell\"} 1",
        "millpond_gateway_spurious_retransmissions_total{path=\"cell\"} 0",
        "millpond_gateway_waiting{path=\"cell\"} 0",
        "millpond_requests_total 2",
    ] {
        assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
    }
    assert_eq!(text.matches("# EOF").count(), 1);
}
