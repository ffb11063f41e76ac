//! A client that sends its request again, before a gateway whose upstream is slow, or whose answers are on their way.

use std::{sync::Arc, time::Duration};

use millpond_live::{Client, Resource, Response};
use tokio::{net::UdpSocket, sync::Notify};

use super::{Upstream, all_to, gateway};

/// Types of messages (RFC 7252 §3).
const CONFIRMABLE: u8 = 0;
const ACKNOWLEDGEMENT: u8 = 2;
const RESET: u8 = 3;
/// 2.05 Content.
const CONTENT: u8 = 69;

/// A device that decides itself what it sends when.
struct Device(UdpSocket);

/// Type, code and message ID of a datagram.
type Head = (u8, u8, u16);

impl Device {
    async fn before(gateway: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(gateway.strip_prefix("coap://").unwrap()).await.unwrap();
        Self(socket)
    }

    /// A confirmable GET of a path of one segment.
    async fn get(&self, id: u16, path: &str) {
        let [high, low] = id.to_be_bytes();
        let mut request = vec![0x41, 1, high, low, low, 0xb0 | path.len() as u8];
        request.extend(path.bytes());
        self.0.send(&request).await.unwrap();
    }

    async fn reply(&self, kind: u8, id: u16) {
        let [high, low] = id.to_be_bytes();
        self.0.send(&[0x40 | kind << 4, 0, high, low]).await.unwrap();
    }

    async fn heard(&self) -> Head {
        let mut datagram = [0; 1500];
        let length = self.0.recv(&mut datagram).await.unwrap();
        assert!(length >= 4);
        (datagram[0] >> 4 & 3, datagram[1], u16::from_be_bytes([datagram[2], datagram[3]]))
    }

    /// Takes the answer to this request: in its acknowledgement, or behind it if the upstream was slow.
    async fn answered(&self, request: u16) {
        let mut head = self.told().await;
        if head == (ACKNOWLEDGEMENT, 0, request) {
            head = self.told().await;
            self.reply(ACKNOWLEDGEMENT, head.2).await;
            assert_eq!((head.0, head.1), (CONFIRMABLE, CONTENT));
        } else {
            assert_eq!(head, (ACKNOWLEDGEMENT, CONTENT, request));
        }
    }

    /// The next that is no ping.
    async fn told(&self) -> Head {
        loop {
            match self.heard().await {
                (CONFIRMABLE, 0, _) => {}
                head => return head,
            }
        }
    }
}

#[tokio::test]
async fn a_slow_upstream_is_asked_once_for_all_duplicates_of_a_request() {
    let release = Arc::new(Notify::new());
    let held = Arc::clone(&release);
    let get = move || {
        let held = Arc::clone(&held);
        async move {
            held.notified().await;
            Response::content("late").with_max_age(0)
        }
    };
    let upstream = Upstream::start(|server| server.route("/held", Resource::new().get(get))).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    let device = Device::before(&at).await;
    // Twice before anything came back, and twice more once it was acknowledged: each acknowledgement is for one of them.
    device.get(7, "held").await;
    device.get(7, "held").await;
    assert_eq!(device.told().await, (ACKNOWLEDGEMENT, 0, 7));
    for _ in 0..2 {
        device.get(7, "held").await;
        assert_eq!(device.told().await, (ACKNOWLEDGEMENT, 0, 7));
    }
    release.notify_one();
    let (kind, code, id) = device.told().await;
    assert_eq!((kind, code), (CONFIRMABLE, CONTENT), "a response of its own, as the request was acknowledged");
    device.reply(ACKNOWLEDGEMENT, id).await;
    // One that comes now is of a device without it: a program that is run for each request, and drew an ID for the second time.
    device.get(7, "held").await;
    assert_eq!(device.told().await, (ACKNOWLEDGEMENT, CONTENT, 7));
    device.get(8, "count").await;
    device.answered(8).await;
    assert_eq!(upstream.asked(), 2);
}

/// The ping that goes before an answer shows the round trip, a second; a duplicate that comes sooner proves no loss.
#[tokio::test]
async fn a_duplicate_whose_answer_is_on_its_way_gets_no_other_and_asks_nobody() {
    let upstream = Upstream::start(|server| server).await;
    let (_gateway, at) = gateway(&all_to(upstream.at())).await;
    // The gateway has it before the device asks, by a client whose path is another one: what it answers takes no time.
    let other = Client::builder().bind("127.9.9.1:0").build().await.unwrap();
    other.get(format!("{at}/count")).await.unwrap();
    let device = Device::before(&at).await;
    device.get(1, "count").await;
    let (kind, code, ping) = device.heard().await;
    assert_eq!((kind, code), (CONFIRMABLE, 0));
    assert_eq!(device.told().await, (ACKNOWLEDGEMENT, CONTENT, 1));
    // Nothing is known of the path yet.
    device.get(1, "count").await;
    assert_eq!(device.told().await, (ACKNOWLEDGEMENT, CONTENT, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    device.reply(RESET, ping).await;
    device.get(2, "count").await;
    assert_eq!(device.told().await, (ACKNOWLEDGEMENT, CONTENT, 2));
    device.get(2, "count").await;
    device.get(3, "count").await;
    assert_eq!(device.told().await, (ACKNOWLEDGEMENT, CONTENT, 3), "the duplicate came too soon");
    // Its first state is fresh.
    assert_eq!(upstream.asked(), 1);
}
