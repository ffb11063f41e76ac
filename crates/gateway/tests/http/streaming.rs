//! Long answers of devices, which nobody on the way holds whole.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_body_util::BodyExt;
use millpond_gateway::Gateway;
use millpond_live::{Request, Resource, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    all_to,
    bodies::{at_rest, byte_at, changing},
    device, gateway, send,
};

const LENGTH: usize = 4 << 20;
/// A block.
const BLOCK: u64 = 1_024;

/// A device with a long representation, which is another one behind so many blocks.
async fn long(asked: Arc<AtomicUsize>, changes_behind: usize) -> Server {
    let image = changing(LENGTH as u64, asked, changes_behind);
    let image = move |request: Request| {
        let answer = image(&request).with_content_format(42);
        async move { answer }
    };
    device(|server| server.route("/image", Resource::new().get(image))).await
}

async fn figure(gateway: &Gateway, name: &str) -> f64 {
    let mut stream = tokio::net::TcpStream::connect(gateway.metrics_addr().unwrap()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn lines(device: &Server) -> String {
    format!("metrics = \"127.0.0.1:0\"\n[cache]\nsize = \"4 MiB\"\n{}", all_to(device))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_answer_is_forwarded_and_not_kept() {
    let asked = Arc::new(AtomicUsize::new(0));
    let device = long(Arc::clone(&asked), usize::MAX).await;
    let (gateway, at, _) = gateway(&lines(&device)).await;
    let answer = send(at, "GET /image", &[], "").await;
    let (head, mut body) = answer.into_parts();
    assert_eq!((head.status.as_u16(), head.headers["etag"].to_str().unwrap()), (200, "\"6f6e65\""));
    assert_eq!(head.headers["content-type"], "application/octet-stream");
    let mut place = 0;
    while let Some(frame) = body.frame().await {
        for byte in frame.unwrap().into_data().unwrap() {
            assert_eq!(byte, byte_at(place));
            place += 1;
        }
    }
    assert_eq!(place, LENGTH as u64);
    let kept = (figure(&gateway, "millpond_gateway_cache_bytes ").await, asked.load(Ordering::Relaxed));
    assert_eq!(kept, (0.0, LENGTH / BLOCK as usize), "none of it is kept, and each block was asked for once");
    assert_eq!(figure(&gateway, "millpond_gateway_streams ").await, 0.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_changes_on_its_way_ends_and_is_no_mix() {
    let asked = Arc::new(AtomicUsize::new(0));
    let device = long(Arc::clone(&asked), 2_000).await;
    let (_gateway, at, _) = gateway(&lines(&device)).await;
    let mut body = send(at, "GET /image", &[], "").await.into_body();
    let mut came = 0;
    let error = loop {
        match body.frame().await {
            Some(Ok(frame)) => came += frame.into_data().unwrap().len(),
            Some(Err(error)) => break error,
            None => panic!("it ended as if {came} bytes were all"),
        }
    };
    assert!(came <= 2_000 * BLOCK as usize, "{came}: {error}");
}

/// What comes waits for who does not read it: the gateway holds a MiB and little more, and the rest is in sockets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_slowly_holds_up_the_device_and_who_goes_away_has_no_more_asked_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let device = long(Arc::clone(&asked), usize::MAX).await;
    let (gateway, at, _) = gateway(&lines(&device)).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(at).await.unwrap();
    stream.write_all(b"GET /image HTTP/1.1\r\nHost: gateway\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 16]).await.unwrap();
    let ahead = at_rest(&asked).await;
    assert!(ahead < LENGTH / BLOCK as usize, "{ahead}");
    assert_eq!(figure(&gateway, "millpond_gateway_streams ").await, 1.0);
    drop(stream);
    while figure(&gateway, "millpond_gateway_streams ").await > 0.0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(at_rest(&asked).await < LENGTH / BLOCK as usize);
}
