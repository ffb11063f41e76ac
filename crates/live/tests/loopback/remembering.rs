//! What outlives a client of what it measured.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use millpond_live::{Client, ControllerChoice, Happened, Memory, Preset};
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
async fn two_requests(of: SocketAddr, memory: Memory) -> (Duration, Memory) {
    let happened = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&happened);
    let client = Client::builder()
        // No copy before 20 s: the first answer is a certain round trip.
        .controller(ControllerChoice::from(Preset::CALM).with_ack_timeout(Duration::from_secs(20)).unwrap())
        .memory(memory)
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
    (second_request - first_answer, client.memory().await.unwrap())
}

/// A path of a quarter of a second, and then one of 10 s: to a peer that knows nothing a long way, to a peer that remembers a queue.
#[tokio::test(start_paused = true)]
async fn a_client_begins_with_what_an_earlier_one_measured() {
    let delay = Arc::new(Mutex::new(Duration::from_millis(250)));
    let server = answering_after(Arc::clone(&delay)).await;
    let (held, memory) = two_requests(server, Memory::new()).await;
    assert!(held < Duration::from_millis(50), "{held:?}");
    assert_eq!(memory.len(), 1);

    *delay.lock().unwrap() = Duration::from_secs(10);
    // As if from a file.
    let remembered = Memory::from_bytes(&memory.to_bytes()).unwrap();
    let (held, after) = two_requests(server, remembered).await;
    // A round trip, drawn from half to one and a half of it.
    assert!((4_900..=15_200).contains(&held.as_millis()), "{held:?}");
    assert_eq!((after.len(), after == memory), (1, false), "it went on learning");
    let (held, _) = two_requests(server, Memory::new()).await;
    assert!(held < Duration::from_millis(50), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_remembered_of_others_stays() {
    let server = answering_after(Arc::new(Mutex::new(Duration::from_millis(250)))).await;
    let other = answering_after(Arc::new(Mutex::new(Duration::from_millis(250)))).await;
    let (_, one) = two_requests(server, Memory::new()).await;
    let (_, both) = two_requests(other, one.clone()).await;
    assert_eq!((one.len(), both.len()), (1, 2));
    // Only what was measured is learnt: nobody was asked here.
    let idle = Client::builder().memory(both.clone()).build().await.unwrap();
    assert_eq!(idle.memory().await.unwrap(), both);
    let ignorant = Client::builder().controller(Preset::RFC7252).build().await.unwrap();
    ignorant.get(format!("coap://{server}/")).await.unwrap();
    assert!(ignorant.memory().await.unwrap().is_empty(), "it keeps no base round trip");
}
