//! Our server, and the least that any server on this machine does.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use millpond_live::{AddressRule, Observable, Resource, Response, Server};

use crate::{Failure, PAYLOAD};

/// Serves until killed: `/bench`, `/tally`, which counts how often it was asked, `/state`, which can be observed, `/slow`,
/// which takes a minute, and `/large`, which has 16 MiB.
pub(crate) fn ours(port: u16) -> Result<(), Failure> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bench = Resource::new().get(|_| async { Response::content(PAYLOAD) });
        let tally = Resource::new()
            .get(|_| async { Response::content((ASKED.fetch_add(1, Ordering::Relaxed) + 1).to_string()) });
        let state = Resource::new().observable(&Observable::new()).get(|_| async { Response::content(PAYLOAD) });
        let slow = Resource::new().get(|_| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Response::content(PAYLOAD)
        });
        let large = Resource::new().get(|_| async { Response::content(vec![b'.'; 16 << 20]) });
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let _server = Server::builder()
            .bind(address)
            .bind_tcp(address)
            .verify_addresses(AddressRule::LargeAnswers)
            .route("/bench", bench)
            .route("/tally", tally)
            .route("/state", state)
            .route("/slow", slow)
            .route("/large", large)
            .start()
            .await?;
        std::future::pending().await
    })
}

/// Answers every datagram with a fitting acknowledgement, one call for each in and one out, and does nothing else.
pub(crate) fn floor(port: u16) -> Result<(), Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    let mut buffer = [0; 2_048];
    let mut answer = [0; 7 + PAYLOAD.len()];
    answer[6] = 0xff;
    answer[7..].copy_from_slice(PAYLOAD);
    loop {
        let Ok((_, from)) = socket.recv_from(&mut buffer) else { continue };
        answer[..6].copy_from_slice(&[0x62, 0x45, buffer[2], buffer[3], buffer[4], buffer[5]]);
        let _ = socket.send_to(&answer, from);
    }
}
