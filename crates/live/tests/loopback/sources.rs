//! From which of a server's addresses its answers leave.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use millpond_live::{Resource, Server};
use tokio::net::UdpSocket;

/// A hundred requests at a time, to each of two addresses of a server that is bound to all of them. What leaves from another address
/// than was asked does not reach a socket that is connected.
#[tokio::test]
async fn answers_in_one_batch_leave_each_from_the_address_that_was_asked() {
    let hello = Resource::new().get(|| async { "hello" });
    let all = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let server = Server::builder().bind(all).route("/hello", hello).start().await.unwrap();
    let mut sockets = Vec::new();
    for place in 0..20 {
        // From two hosts to two hosts.
        let [from, to] = [1 + place % 2, 1 + place / 2 % 2].map(|last| IpAddr::from([127, 0, 0, last]));
        let socket = UdpSocket::bind((from, 0)).await.unwrap();
        socket.connect((to, server.local_addr().port())).await.unwrap();
        sockets.push(socket);
    }
    let mut room = [0; 64];
    for round in 0..50_u8 {
        for socket in &sockets {
            socket.send(&[&[0x40, 1, 0, round], &b"\xb5hello"[..]].concat()).await.unwrap();
        }
        for socket in &sockets {
            let length = socket.recv(&mut room).await.unwrap();
            assert!(room[..length].starts_with(&[0x60, 0x45, 0, round]), "{:?}", &room[..length]);
        }
        if round == 30 {
            // What the kernel chose is asked anew.
            tokio::time::sleep(Duration::from_millis(1_100)).await;
        }
    }
}
