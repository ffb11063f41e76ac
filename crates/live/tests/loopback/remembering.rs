//! What outlives a client of what it measured.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use millpond_live::{Client, ControllerChoice, Happened, PathCache, Preset, Reconnect};
use tokio::net::UdpSocket;

use crate::ANY;

/// A server that answers every datagram after so long, in invented time.
async fn answering_after(delay: Arc<Mutex<Duration>>) -> SocketAddr {
    let socket = Arc::new(UdpSocket::bind(ANY).await.unwrap());
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut datagram = [0; 1_500];
        while let Ok((length, from)) = socket.recv_from(&mut datagram).await {
            // An acknowledgement that carries 2.05, with the message ID and the token of the request.
            let token = usize::from(datagram[0] & 15);
            let mut reply = datagram[..length.min(4 + token)].to_vec();
            (reply[0], reply[1]) = (0x60 | token as u8, 0x45);
            let (socket, delay) = (Arc::clone(&socket), *delay.lock().unwrap());
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = socket.send_to(&reply, from).await;
            });
        }
    });
    address
}

/// Asks twice, one after the other: how long the second request was held back, and what is to be remembered.
async fn two_requests(of: SocketAddr, memory: PathCache) -> (Duration, PathCache) {
    let happened = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&happened);
    let client = Client::builder()
        // No copy before 20 s: the first answer is a certain round trip.
        .controller(ControllerChoice::from(Preset::CALM).with_ack_timeout(Duration::from_secs(20)).unwrap())
        .path_cache(memory)
        .trace(move |event| match event.what {
            Happened::Sent { .. } | Happened::RoundTrip { .. } => seen.lock().unwrap().push(event.at),
            _ => {}
        })
        .build()
        .await
        .unwrap();
    for _ in 0..2 {
        client.get(format!("coap://{of}/")).await.unwrap();
    }
    let happened = happened.lock().unwrap().clone();
    let [_, first_answer, second_request, _] = happened[..] else { panic!("{happened:?}") };
    (second_request - first_answer, client.path_cache().await.unwrap())
}

/// A path of a quarter of a second, and then one of 10 s: to a peer that knows nothing a long way, to a peer that remembers a queue.
#[tokio::test(start_paused = true)]
async fn a_client_begins_with_what_an_earlier_one_measured() {
    let delay = Arc::new(Mutex::new(Duration::from_millis(250)));
    let server = answering_after(Arc::clone(&delay)).await;
    let (held, memory) = two_requests(server, PathCache::new()).await;
    assert!(held < Duration::from_millis(50), "{held:?}");
    assert_eq!(memory.len(), 1);

    *delay.lock().unwrap() = Duration::from_secs(10);
    // As if from a file.
    let remembered = PathCache::from_bytes(&memory.to_bytes()).unwrap();
    let (held, after) = two_requests(server, remembered).await;
    // A round trip, drawn from half to one and a half of it.
    assert!((4_900..=15_200).contains(&held.as_millis()), "{held:?}");
    assert_eq!((after.len(), after == memory), (1, false), "it went on learning");
    let (held, _) = two_requests(server, PathCache::new()).await;
    assert!(held < Duration::from_millis(50), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_remembered_of_others_stays() {
    let server = answering_after(Arc::new(Mutex::new(Duration::from_millis(250)))).await;
    let other = answering_after(Arc::new(Mutex::new(Duration::from_millis(250)))).await;
    let (_, one) = two_requests(server, PathCache::new()).await;
    let (_, both) = two_requests(other, one.clone()).await;
    assert_eq!((one.len(), both.len()), (1, 2));
    // Only what was measured is learnt: nobody was asked here.
    let idle = Client::builder().path_cache(both.clone()).build().await.unwrap();
    assert_eq!(idle.path_cache().await.unwrap(), both);
    let ignorant = Client::builder().controller(Preset::RFC7252).build().await.unwrap();
    ignorant.get(format!("coap://{server}/")).await.unwrap();
    assert!(ignorant.path_cache().await.unwrap().is_empty(), "it keeps no base round trip");
}

/// A directory of its own, and a file in it that is not there yet.
fn file(name: &str) -> std::path::PathBuf {
    let directory = std::env::temp_dir().join(format!("millpond-memory-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory.join("memory")
}

const HOUR: Duration = Duration::from_secs(3_600);

/// Nobody listens there, which a client is told at once.
fn nobody() -> String {
    format!("coap+tcp://{}/", std::net::TcpListener::bind(ANY).unwrap().local_addr().unwrap())
}

async fn keeping(file: &std::path::Path) -> Client {
    Client::builder().reconnect(Reconnect::new().pauses(HOUR, HOUR)).path_cache_file(file).build().await.unwrap()
}

/// The power goes before the client can write down anything in its end.
#[tokio::test(start_paused = true)]
async fn a_client_that_restarts_in_the_middle_of_a_pause_waits_for_its_end() {
    let (file, server) = (file("pause"), nobody());
    let client = keeping(&file).await;
    assert!(!client.get(&server).await.unwrap_err().is_timeout());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let kept = std::fs::read(&file).unwrap();

    let after = keeping(&file).await;
    let began = tokio::time::Instant::now();
    assert!(after.get(&server).deadline(Duration::from_secs(60)).await.unwrap_err().is_timeout());
    // An hour and up to half of it, of which the time of day has seen little.
    assert!(!after.get(&server).deadline(2 * HOUR).await.unwrap_err().is_timeout());
    assert!((3_500..5_401).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_ne!(std::fs::read(&file).unwrap(), kept, "it has failed twice");
    assert_eq!(file.parent().unwrap().read_dir().unwrap().count(), 1, "and no draft is left");
}

#[tokio::test(start_paused = true)]
async fn round_trips_are_kept_in_the_file_and_begun_with() {
    let server = answering_after(Arc::new(Mutex::new(Duration::from_millis(250)))).await;
    let kept = |file: &std::path::Path| PathCache::from_bytes(&std::fs::read(file).unwrap()).unwrap();
    // By itself, and when the client ends in order.
    for (name, ends) in [("every", false), ("end", true)] {
        let file = file(name);
        let client = Client::builder().controller(Preset::CALM).path_cache_file(&file).build().await.unwrap();
        client.get(format!("coap://{server}/")).await.unwrap();
        assert!(!file.exists(), "there was nothing to write yet");
        match ends {
            true => client.shutdown().await,
            false => tokio::time::sleep(Duration::from_secs(601)).await,
        }
        assert_eq!(kept(&file).len(), 1);
        let next = Client::builder().path_cache_file(&file).build().await.unwrap();
        assert_eq!(next.path_cache().await.unwrap(), kept(&file));
    }
}

#[tokio::test]
async fn a_file_with_something_else_in_it_is_refused_in_one_line_and_stays() {
    let file = file("malformed");
    let refused = async || Client::builder().path_cache_file(&file).build().await.unwrap_err().to_string();
    let told = format!("path_cache_file: {}: byte ", file.display());
    for (bytes, place) in
        [(&b"{}"[..], "0 of"), (b"\x01\0\x01", "3 of"), (b"\x01\xff\xff", "1 of"), (&[1; 1 << 20], "17 of")]
    {
        std::fs::write(&file, bytes).unwrap();
        let refused = refused().await;
        assert!(refused.starts_with(&told) && refused[told.len()..].starts_with(place), "{refused}");
        assert!(!refused.contains('\n') && std::fs::read(&file).unwrap() == bytes);
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(refused().await.starts_with(&format!("path_cache_file: {}: ", file.display())));
}
