//! Two nodes on sockets of this machine, by the clock of embassy.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use std::{
    future::poll_fn,
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::mpsc::{self, TryRecvError},
    task::Poll,
    thread,
};

use embassy_futures::block_on;
use embedded_io_async::ErrorKind;
use embedded_nal_async::UnconnectedUdp;
use millpond_coap::message::Code;
use millpond_control::{Instant, Span};
use millpond_embedded::{Asked, Clock, EmbassyClock, Node, Reply, Request, Setup};

struct Socket(UdpSocket);

impl Socket {
    fn bind() -> (Self, SocketAddr) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let at = socket.local_addr().unwrap();
        (Self(socket), at)
    }
}

impl UnconnectedUdp for Socket {
    type Error = ErrorKind;

    async fn send(&mut self, _local: SocketAddr, remote: SocketAddr, data: &[u8]) -> Result<(), ErrorKind> {
        self.0.send_to(data, remote).map(|_| ()).map_err(|_| ErrorKind::Other)
    }

    async fn receive_into(&mut self, buffer: &mut [u8]) -> Result<(usize, SocketAddr, SocketAddr), ErrorKind> {
        let local = self.0.local_addr().unwrap();
        poll_fn(|cx| match self.0.recv_from(buffer) {
            Ok((length, from)) => Poll::Ready(Ok((length, local, from))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::yield_now();
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(ErrorKind::Other)),
        })
        .await
    }
}

#[test]
fn a_device_reports_and_is_asked() {
    let ((ours, here), (theirs, there)) = (Socket::bind(), Socket::bind());
    let (is_asked, asking) = mpsc::channel::<()>();
    let server = thread::spawn(move || {
        let mut buffer = [0; 600];
        let mut reports = 0_u32;
        let mut resource = |request: &Asked<'_>, reply: &mut Reply<'_>| match request.message.code {
            Code::POST if request.is_for("reports") => {
                reports = reports.checked_add(1).unwrap();
                reply.code(Code::CHANGED);
            }
            Code::GET => reply.body(Code::CONTENT, 0, &[b'.'; 3_000]),
            _ => reply.code(Code::METHOD_NOT_ALLOWED),
        };
        let setup = Setup::calm(1, [1; 16]);
        let mut node = Node::new(theirs, there, EmbassyClock, setup, &mut buffer).unwrap().serving(&mut resource);
        while asking.try_recv() == Err(TryRecvError::Empty) {
            let until = EmbassyClock.now().after(Span::from_millis(50));
            block_on(node.serve_until(until)).unwrap();
        }
        reports
    });
    let (mut buffer, mut body) = ([0; 600], [0; 3_000]);
    let mut node = Node::new(ours, here, EmbassyClock, Setup::calm(2, [2; 16]), &mut buffer).unwrap();
    block_on(async {
        for _ in 0..3 {
            let report = node.request(there, &Request::post("reports", b"21.5"), &mut body).await.unwrap();
            assert_eq!(report.code, Code::CHANGED);
        }
        let got = node.request(there, &Request::get("all"), &mut body).await.unwrap();
        assert_eq!(got.body, [b'.'; 3_000]);
        assert!(node.base_rtt(there).is_some());
        EmbassyClock.until(Instant::ORIGIN).await;
    });
    drop(is_asked);
    assert_eq!(server.join().unwrap(), 3);
}
