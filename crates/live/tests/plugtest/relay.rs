//! A relay between one client and one server that keeps what passes and loses what it is told to.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use millpond_coap::message::{Code, Kind, Message};
use tokio::{net::UdpSocket, task::JoinHandle};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A datagram that came to the relay.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub(crate) way: Way,
    pub(crate) lost: bool,
    bytes: Vec<u8>,
}

impl Passed {
    pub(crate) fn message(&self) -> Message<'_> {
        Message::parse(&self.bytes).unwrap()
    }

    pub(crate) fn kind(&self) -> Kind {
        self.message().kind
    }

    pub(crate) fn code(&self) -> Code {
        self.message().code
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

pub(crate) struct Relay {
    address: SocketAddr,
    passed: Arc<Mutex<Vec<Passed>>>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn before(server: SocketAddr, loses: impl Fn(Way, usize) -> bool + Send + Sync + 'static) -> Self {
        let outside = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let inside = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        inside.connect((Ipv4Addr::LOCALHOST, server.port())).await.unwrap();
        let address = outside.local_addr().unwrap();
        let passed = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&passed);
        let task = tokio::spawn(async move {
            let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
            let mut counts = [0_usize; 2];
            let mut client = None;
            loop {
                let (way, length) = tokio::select! {
                    got = outside.recv_from(&mut up) => match got {
                        Ok((length, from)) => { client = Some(from); (Way::Up, length) }
                        Err(_) => continue,
                    },
                    got = inside.recv(&mut down) => match got {
                        Ok(length) => (Way::Down, length),
                        Err(_) => continue,
                    },
                };
                let bytes = if way == Way::Up { &up[..length] } else { &down[..length] };
                let number = counts[way as usize];
                counts[way as usize] += 1;
                let lost = loses(way, number);
                kept.lock().unwrap().push(Passed { way, lost, bytes: bytes.to_vec() });
                match (way, client) {
                    _ if lost => {}
                    (Way::Up, _) => drop(inside.send(bytes).await),
                    (Way::Down, Some(client)) => drop(outside.send_to(bytes, client).await),
                    (Way::Down, None) => {}
                }
            }
        });
        Self { address, passed, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What passed so far, what was lost included.
    pub(crate) fn with_copies(&self) -> Vec<Passed> {
        self.passed.lock().unwrap().clone()
    }

    /// Of it, each message once: how many copies there are depends on how slow the machine is.
    pub(crate) fn passed(&self) -> Vec<Passed> {
        let mut once: Vec<Passed> = Vec::new();
        for passed in self.with_copies() {
            if !once.iter().any(|before| before.way == passed.way && before.bytes == passed.bytes) {
                once.push(passed);
            }
        }
        once
    }

    /// Of it, what came from one side.
    pub(crate) fn of(&self, way: Way) -> Vec<Passed> {
        self.passed().into_iter().filter(|passed| passed.way == way).collect()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}
