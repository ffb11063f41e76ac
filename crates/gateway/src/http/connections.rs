//! Connections of HTTP: how many there are, and how long they may take.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use millpond_live::{Error, ServerSecurity, TlsListener, network_of, quota::Holders};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpListener,
    sync::Notify,
    task::JoinSet,
    time::{Instant, Sleep, sleep, timeout},
};

use super::{Front, ended};
use crate::{config::Listen, engine::locked};

/// Bytes and lines of the longest head.
const LONGEST_HEAD: usize = 16_384;
const MOST_HEADERS: usize = 64;
/// In which a head has come, from the end of the answer before it on.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// After which who reads nothing is not written to any more.
const STALLED: Duration = Duration::from_secs(30);
/// In which those who were being answered are, when the gateway ends.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Listeners and their connections.
pub(crate) struct Listening {
    front: Arc<Front>,
    addresses: Vec<(&'static str, SocketAddr)>,
    tasks: JoinSet<()>,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

/// Who is connected. ExtraState so many the oldest of the network gives way that has most.
#[derive(Debug, Default)]
struct Seats {
    holders: Holders<u64>,
    give_way: BTreeMap<u64, Arc<Notify>>,
    made: u64,
}

/// One of them, until this is dropped.
struct Seat {
    of: Arc<Mutex<Seats>>,
    network: u64,
    number: u64,
    gives_way: Arc<Notify>,
}

impl Seat {
    fn take(of: &Arc<Mutex<Seats>>, peer: SocketAddr, most: usize) -> Self {
        let (network, gives_way) = (network_of(peer), Arc::new(Notify::new()));
        let mut seats = locked(of);
        seats.made += 1;
        let number = seats.made;
        seats.holders.add(network, number);
        seats.give_way.insert(number, Arc::clone(&gives_way));
        if seats.holders.len() > most
            && let Some(oldest) = seats.holders.of_largest().min()
            && let Some(oldest) = seats.give_way.get(&oldest)
        {
            oldest.notify_one();
        }
        Self { of: Arc::clone(of), network, number, gives_way }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = locked(&self.of);
        seats.holders.remove(self.network, self.number);
        seats.give_way.remove(&self.number);
    }
}

impl Listening {
    /// Listeners may be bound already.
    pub(crate) async fn start(
        front: Front,
        listen: &Listen,
        mut bound: Vec<std::net::TcpListener>,
        security: Option<&ServerSecurity>,
    ) -> Result<Self, Error> {
        let mut listening = Self { front: Arc::new(front), addresses: Vec::new(), tasks: JoinSet::new() };
        if let Some(security) = security.filter(|_| !listen.https.is_empty()) {
            listening.set_security(security)?;
        }
        let seats = Arc::new(Mutex::new(Seats::default()));
        let all = listen.http.iter().map(|address| ("http", address));
        for (scheme, address) in all.chain(listen.https.iter().map(|address| ("https", address))) {
            let cannot = |error: io::Error| Error::Setting { name: scheme, reason: format!("{address}: {error}") };
            let listener = match bound.iter().position(|bound| bound.local_addr().is_ok_and(|at| at == *address)) {
                Some(place) => {
                    let bound = bound.swap_remove(place);
                    bound.set_nonblocking(true).and_then(|()| TcpListener::from_std(bound))
                }
                None => TcpListener::bind(address).await,
            };
            let listener = listener.map_err(cannot)?;
            listening.addresses.push((scheme, listener.local_addr().map_err(cannot)?));
            listening.tasks.spawn(accept(Arc::clone(&listening.front), scheme, listener, Arc::clone(&seats)));
        }
        Ok(listening)
    }

    pub(crate) fn has_tls(&self) -> bool {
        locked(&self.front.tls).is_some()
    }

    /// Has these credentials from now on.
    pub(crate) fn set_security(&self, security: &ServerSecurity) -> Result<(), Error> {
        *locked(&self.front.tls) = Some(TlsListener::new(security, b"http/1.1")?);
        Ok(())
    }

    pub(crate) fn addresses(&self) -> &[(&'static str, SocketAddr)] {
        &self.addresses
    }

    /// Answers what was asked, and ends.
    pub(crate) async fn shutdown(mut self) {
        self.front.ends.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Those that take longer are dropped with the tasks.
        let _ = timeout(ENDS_WITHIN, ended).await;
    }
}

async fn accept(front: Arc<Front>, scheme: &'static str, listener: TcpListener, seats: Arc<Mutex<Seats>>) {
    let (mut connections, mut ends) = (JoinSet::new(), front.ends.subscribe());
    loop {
        let accepted = tokio::select! {
            () = ended(&mut ends) => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, peer)) => {
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                let (front, seat) = (Arc::clone(&front), Seat::take(&seats, peer, front.settings.connections));
                connections.spawn(async move {
                    // Events are small, and each is to leave at once.
                    let _ = stream.set_nodelay(true);
                    if scheme == "http" {
                        return converse(front, scheme, stream, peer, seat).await;
                    }
                    let tls = locked(&front.tls).clone();
                    // Who cannot have a session has been told why by TLS.
                    if let Some(tls) = tls
                        && let Ok(Ok(stream)) = timeout(HEAD_WITHIN, tls.accept(stream)).await
                    {
                        converse(front, scheme, stream, peer, seat).await;
                    }
                });
            }
            // There are no descriptors, or who came has gone.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn converse<S>(front: Arc<Front>, scheme: &'static str, stream: S, peer: SocketAddr, seat: Seat)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(|request| {
        let front = Arc::clone(&front);
        async move { Ok::<_, Infallible>(front.serve(scheme, peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(Hurried::new(stream)), service);
    let (mut connection, mut ends) = (pin!(connection), front.ends.subscribe());
    tokio::select! {
        // What is wrong with a request it has been told; what is wrong with the connection is nobody's concern any more.
        _ = connection.as_mut() => return,
        () = seat.gives_way.notified() => return,
        () = ended(&mut ends) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A stream whose other end must read.
struct Hurried<S> {
    stream: S,
    /// Until when it must have, while it does not.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Hurried<S> {
    const fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    fn hurry<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALLED)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Hurried<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Hurried<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.hurry(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.hurry(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.hurry(cx, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.hurry(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
