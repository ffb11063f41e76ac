//! Our server, and the least that any server on this machine does.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use millpond_live::{
    AddressRule, Observable, OscoreContexts, PreSharedKey, PreSharedKeys, Resource, Response, Server, ServerSecurity,
};

use crate::{
    Failure, PAYLOAD, protected,
    secured::{IDENTITY, KEY},
};

/// A body for many blocks.
pub(crate) static MEBIBYTE: [u8; 1 << 20] = [0; 1 << 20];

/// What our server is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In the clear, over UDP and TCP.
    Plain,
    /// Under OSCORE.
    Protected,
    /// The first, and over DTLS at the port behind; all notifications are confirmable, and large bodies go to the whole
    /// loopback at once.
    Measured,
}

/// Serves until killed: `/bench`, `/tally`, which counts how often it was asked, `/state`, which can be observed and whose
/// observers are told with each PUT, `/slow`, which takes a minute, `/large`, which has 16 MiB, and `/mebibyte`. At this
/// address, of all of ours at `0.0.0.0`.
pub(crate) fn ours(host: Ipv4Addr, port: u16, kind: Kind) -> Result<(), Failure> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bench = Resource::new().get(|| async { Response::content(PAYLOAD) });
        let tally = Resource::new()
            .get(|| async { Response::content((ASKED.fetch_add(1, Ordering::Relaxed) + 1).to_string()) });
        let observable = if kind == Kind::Measured { Observable::confirmable() } else { Observable::new() };
        let state =
            Resource::new().observable(&observable).get(|| async { Response::content(PAYLOAD) }).put(move || {
                observable.notify();
                async { Response::changed() }
            });
        let slow = Resource::new().get(|| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Response::content(PAYLOAD)
        });
        let large = Resource::new().get(|| async { Response::content(vec![b'.'; 16 << 20]) });
        let mebibyte = Resource::new().get(|| async { Response::content(&MEBIBYTE[..]) });
        let address = SocketAddr::from((host, port));
        let builder = match kind {
            Kind::Protected => {
                let contexts = OscoreContexts::new();
                contexts.add(protected::context(true)?, |_| Ok(()))?;
                Server::builder().oscore(contexts)
            }
            Kind::Plain => Server::builder().bind_tcp(address),
            Kind::Measured => {
                let keys = PreSharedKeys::new([PreSharedKey::new(IDENTITY, KEY)?])?;
                Server::builder()
                    .bind_tcp(address)
                    .bind_dtls(SocketAddr::from((host, port + 1)))
                    .security(ServerSecurity::new().pre_shared_keys(keys))
                    .trust("127.0.0.0/8".parse()?)
            }
        };
        let _server = builder
            .bind(address)
            .verify_addresses(AddressRule::LargeAnswers)
            .route("/bench", bench)
            .route("/tally", tally)
            .route("/state", state)
            .route("/slow", slow)
            .route("/large", large)
            .route("/mebibyte", mebibyte)
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

/// The same with as many datagrams in each call as there are.
#[cfg(target_os = "linux")]
pub(crate) fn batched_floor(port: u16) -> Result<(), Failure> {
    use std::io::{ErrorKind, IoSlice, IoSliceMut};

    use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
    use rustix::{
        event::{PollFd, PollFlags, poll},
        net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg},
    };

    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    let state = UdpSocketState::new((&socket).into())?;
    let mut room = vec![[0; 2_048]; BATCH_SIZE];
    let mut metas = [RecvMeta::default(); BATCH_SIZE];
    let mut answers = [[0; 7 + PAYLOAD.len()]; BATCH_SIZE];
    for answer in &mut answers {
        answer[6] = 0xff;
        answer[7..].copy_from_slice(PAYLOAD);
    }
    loop {
        let mut places: Vec<IoSliceMut<'_>> = room.iter_mut().map(|place| IoSliceMut::new(place)).collect();
        let count = match state.recv((&socket).into(), &mut places, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&socket, PollFlags::IN)], None)?;
                continue;
            }
            Err(_) => continue,
        };
        let peers: Vec<SocketAddrAny> = metas.iter().take(count).map(|meta| meta.addr.into()).collect();
        for (answer, asked) in answers.iter_mut().zip(&room).take(count) {
            answer[..6].copy_from_slice(&[0x62, 0x45, asked[2], asked[3], asked[4], asked[5]]);
        }
        let contents: Vec<[IoSlice<'_>; 1]> = answers.iter().take(count).map(|answer| [IoSlice::new(answer)]).collect();
        let mut nothing: Vec<_> = peers.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let messages = peers.iter().zip(&contents).zip(&mut nothing);
        let mut messages: Vec<_> =
            messages.map(|((peer, contents), nothing)| MMsgHdr::new_with_addr(peer, contents, nothing)).collect();
        let _ = sendmmsg(&socket, &mut messages, SendFlags::empty());
    }
}
