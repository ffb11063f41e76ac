//! A slow path on one machine: a relay that hands every datagram on after a while, and loses some if asked to.
//!
//! ```text
//! millpond serve --bind 127.0.0.1 --quiet &
//! cargo run -p millpond-cli --example delaying_relay -- 127.0.0.1:5700 127.0.0.1:5683 1600 &
//! millpond load --count 6 --trace coap://127.0.0.1:5700/hello
//! ```
//!
//! Arguments: where to listen, where to forward to, the delay one way in milliseconds, and optionally every n-th
//! datagram to the server is lost.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().ok_or_else(|| format!("missing: {what}"));
    let listen: SocketAddr = next("where to listen, such as 127.0.0.1:5700")?.parse()?;
    let server: SocketAddr = next("where to forward to, such as 127.0.0.1:5683")?.parse()?;
    let delay = Duration::from_millis(next("the delay one way in milliseconds")?.parse()?);
    let lost_one_in: Option<u64> = next("").ok().map(|text| text.parse()).transpose()?;

    let front = Arc::new(UdpSocket::bind(listen).await?);
    let mut back: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut datagram = vec![0; 65_535];
    for count in 1_u64.. {
        let (length, client) = front.recv_from(&mut datagram).await?;
        let towards_server = match back.get(&client) {
            Some(socket) => Arc::clone(socket),
            None => {
                let socket = Arc::new(UdpSocket::bind(SocketAddr::new(listen.ip(), 0)).await?);
                socket.connect(server).await?;
                tokio::spawn(answers(Arc::clone(&socket), Arc::clone(&front), client, delay));
                back.insert(client, Arc::clone(&socket));
                socket
            }
        };
        if lost_one_in.is_some_and(|interval| count.is_multiple_of(interval)) {
            continue;
        }
        let bytes = datagram.get(..length).unwrap_or_default().to_vec();
        tokio::spawn(async move {
            sleep(delay).await;
            let _ = towards_server.send(&bytes).await;
        });
    }
    Ok(())
}

/// Forwards what the server answers to one client.
async fn answers(back: Arc<UdpSocket>, front: Arc<UdpSocket>, client: SocketAddr, delay: Duration) {
    let mut datagram = vec![0; 65_535];
    // A port that nobody listens on is reported here; the client finds out by itself.
    while let Ok(length) = back.recv(&mut datagram).await {
        let (front, bytes) = (Arc::clone(&front), datagram.get(..length).unwrap_or_default().to_vec());
        tokio::spawn(async move {
            sleep(delay).await;
            let _ = front.send_to(&bytes, client).await;
        });
    }
}
