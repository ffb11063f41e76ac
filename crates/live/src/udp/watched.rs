//! A socket that the runtime watches: always for what comes in, for room to send only while there is none.
//!
//! Who watches for room all the time is woken after every datagram that has left, for nothing.

use std::{
    io,
    task::{Context, Poll},
};

use tokio::io::Interest;

#[cfg(unix)]
pub(super) use unix::Watched;

#[cfg(unix)]
mod unix {
    use std::{
        net::UdpSocket,
        sync::{Mutex, PoisonError},
        task::ready,
    };

    use tokio::io::unix::AsyncFd;

    use super::{Context, Interest, Poll, io};

    /// A socket that the runtime watches.
    #[derive(Debug)]
    pub(in crate::udp) struct Watched {
        socket: AsyncFd<UdpSocket>,
        /// The same socket once more, while it is waited for room to send.
        full: Mutex<Option<AsyncFd<UdpSocket>>>,
    }

    /// What watches a socket for this.
    #[allow(
        deprecated,
        reason = "the other way is not safe code; a socket of the standard library keeps its descriptor"
    )]
    fn watch(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        AsyncFd::with_interest(socket, interest)
    }

    impl Watched {
        pub(in crate::udp) fn new(socket: UdpSocket) -> io::Result<Self> {
            let socket = watch(socket, Interest::READABLE.add(Interest::ERROR))?;
            Ok(Self { socket, full: Mutex::default() })
        }

        pub(in crate::udp) fn socket(&self) -> &UdpSocket {
            self.socket.get_ref()
        }

        /// Reads, if there may be something. Once that says that it would block the runtime waits for more.
        pub(in crate::udp) fn reads<T>(
            &self,
            interest: Interest,
            read: impl FnOnce() -> io::Result<T>,
        ) -> io::Result<T> {
            self.socket.try_io(interest, |_| read())
        }

        /// Sends. What says that it would block is to wait for [room](Self::poll_writable).
        pub(in crate::udp) fn sends<T>(&self, mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
            send()
        }

        pub(in crate::udp) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
            self.socket.poll_read_ready(cx).map(drop)
        }

        /// Waits until the network has complained.
        pub(in crate::udp) async fn complained(&self) {
            let _ = self.socket.ready(Interest::ERROR).await;
        }

        pub(in crate::udp) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
            let watched = match &mut *full {
                Some(watched) => watched,
                none => {
                    match self.socket().try_clone().and_then(|again| watch(again, Interest::WRITABLE)) {
                        // Told at once if there is room by now.
                        Ok(watched) => none.insert(watched),
                        // No descriptor is left: it is tried again once others had their turn.
                        Err(_) => {
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                    }
                }
            };
            drop(ready!(watched.poll_write_ready(cx)));
            *full = None;
            Poll::Ready(())
        }
    }
}

/// A socket that the runtime watches.
#[cfg(not(unix))]
#[derive(Debug)]
pub(super) struct Watched(tokio::net::UdpSocket);

#[cfg(not(unix))]
impl Watched {
    pub(super) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        tokio::net::UdpSocket::from_std(socket).map(Self)
    }

    pub(super) fn socket(&self) -> &tokio::net::UdpSocket {
        &self.0
    }

    pub(super) fn reads<T>(&self, interest: Interest, read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.0.try_io(interest, read)
    }

    pub(super) fn sends<T>(&self, mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        match send() {
            // Once more, so that the runtime knows that the socket is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.0.try_io(Interest::WRITABLE, send),
            done => done,
        }
    }

    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_recv_ready(cx).map(drop)
    }

    pub(super) async fn complained(&self) {
        let _ = self.0.ready(Interest::ERROR).await;
    }

    pub(super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_send_ready(cx).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, net::UdpSocket, sync::Arc, time::Duration};

    use crate::udp::{BoundSocket, Inbox, Outbox, Role};

    /// Those who ask wait for their answers, so that a datagram which wakes nobody stops one of them.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_datagram_behind_a_short_batch_wakes() {
        let socket = Arc::new(BoundSocket::bind("127.0.0.1:0".parse().unwrap(), Role::Server).unwrap());
        let asked = socket.local();
        let answering = tokio::spawn(async move {
            let (mut inbox, mut outbox) = (Inbox::new(), Outbox::default());
            loop {
                poll_fn(|cx| socket.poll_readable(cx)).await;
                while {
                    let is_all = inbox.fill(&socket).unwrap();
                    inbox.each(&socket).for_each(|(from, _, datagram)| outbox.push(from, datagram));
                    outbox.flush(millpond_control::Instant::ORIGIN, &socket, |unsent| panic!("{unsent:?}"));
                    !is_all
                } {}
            }
        });
        let ask = move |number: usize| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            socket.connect(asked).unwrap();
            for round in 0..3_000 {
                // Of several lengths, so that none are joined to one; sometimes more than one batch of all of them.
                let burst = if round % 97 == 0 { 24 } else { 1 + (round + number) % 3 };
                for place in 0..burst {
                    socket.send(&[0; 64][..1 + place]).unwrap();
                }
                for _ in 0..burst {
                    socket.recv(&mut [0; 64]).expect("an answer");
                }
            }
        };
        let asking: Vec<_> = (0..4).map(|number| tokio::task::spawn_blocking(move || ask(number))).collect();
        for asked in asking {
            asked.await.unwrap();
        }
        answering.abort();
    }

    #[tokio::test]
    async fn room_to_send_is_waited_for_as_often_as_there_was_none() {
        let socket = BoundSocket::bind("127.0.0.1:0".parse().unwrap(), Role::Client).unwrap();
        for _ in 0..3 {
            poll_fn(|cx| socket.poll_writable(cx)).await;
        }
    }
}
