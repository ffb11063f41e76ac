//! Long answers that are forwarded while they come: so many at a time, which networks share, and not for ever for who reads no more.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use millpond_live::{
    LONGEST_SILENCE, network_of,
    quota::{Shares, Source, Usage},
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::Instant,
};

use crate::engine::locked;

/// At a time.
const MOST: usize = 64;

/// Those that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    bodies: BTreeMap<u64, (Source, Arc<Mutex<Body>>)>,
    usage: Usage,
    begun: u64,
}

type Reader = Pin<Box<dyn AsyncRead + Send>>;

struct Body {
    /// None once it has ended for the sake of others.
    reader: Option<Reader>,
    /// When it was read last; none while more of it is waited for.
    read: Option<Instant>,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("read", &self.read).finish_non_exhaustive()
    }
}

impl Streams {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        locked(&self.0).bodies.len()
    }

    /// One more for this peer, whose address is validated. None if there is no room, not even when those end that have not been read for
    /// as long as a client may be silent.
    pub(crate) fn begin(&self, peer: SocketAddr, reader: Reader) -> Option<Forwarding> {
        let (source, now) = (Source::validated(network_of(peer)), Instant::now());
        let mut open = locked(&self.0);
        if open.is_full(source) {
            open.end_silent(source, now);
            if open.is_full(source) {
                return None;
            }
        }
        let body = Arc::new(Mutex::new(Body { reader: Some(reader), read: Some(now) }));
        let number = open.begun;
        open.begun += 1;
        open.usage.add(source, 1);
        open.bodies.insert(number, (source, Arc::clone(&body)));
        Some(Forwarding { of: self.clone(), number, body })
    }
}

impl Open {
    fn is_full(&self, source: Source) -> bool {
        let full = self.usage.full(&Shares::of_places(MOST), source, 1);
        full.all || full.network
    }

    /// Those that are not read end: of this network if it has its share, else of all.
    fn end_silent(&mut self, source: Source, now: Instant) {
        let of_all = self.usage.full(&Shares::of_places(MOST), source, 1).all;
        let usage = &mut self.usage;
        self.bodies.retain(|_, (whose, body)| {
            let mut body = locked(body);
            let is_silent = body.read.is_some_and(|read| now.duration_since(read) >= LONGEST_SILENCE);
            let ends = is_silent && (of_all || whose.network == source.network);
            if ends {
                body.reader = None;
                usage.remove(*whose, 1);
            }
            !ends
        });
    }
}

/// Reads one.
#[derive(Debug)]
pub(crate) struct Forwarding {
    of: Streams,
    number: u64,
    body: Arc<Mutex<Body>>,
}

impl AsyncRead for Forwarding {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut body = locked(&self.body);
        let Some(reader) = &mut body.reader else {
            return Poll::Ready(Err(io::Error::other("nobody read it for long, and others wanted its place")));
        };
        let read = reader.as_mut().poll_read(cx, room);
        body.read = read.is_ready().then(Instant::now);
        read
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let mut open = locked(&self.of.0);
        if let Some((source, _)) = open.bodies.remove(&self.number) {
            open.usage.remove(source, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn at(network: u8) -> SocketAddr {
        ([198, 51, network, 1], 5_683).into()
    }

    fn body() -> Reader {
        Box::pin(tokio::io::repeat(7))
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_no_more_leaves_its_place_to_who_wants_it_and_no_network_has_all() {
        let streams = Streams::default();
        let mut of_one: Vec<_> = std::iter::from_fn(|| streams.begin(at(1), body())).collect();
        assert_eq!(of_one.len(), 48);
        let mut waiting = streams.begin(at(2), Box::pin(tokio::io::empty().chain(Never))).unwrap();
        assert!(tokio::time::timeout(Duration::from_secs(1), waiting.read_u8()).await.is_err());
        tokio::time::advance(LONGEST_SILENCE).await;
        assert_eq!(of_one[0].read_u8().await.unwrap(), 7);
        let others: Vec<_> = std::iter::from_fn(|| streams.begin(at(3), body())).take(15).collect();
        assert_eq!((others.len(), streams.len()), (15, 64), "as long as there is room nobody loses any");
        // What was read since, or is waited for, stays.
        let more = streams.begin(at(2), body()).unwrap();
        assert_eq!(streams.len(), 1 + 1 + 15 + 1);
        assert!(of_one[1].read_u8().await.is_err());
        assert_eq!(of_one[0].read_u8().await.unwrap(), 7);
        drop((of_one, waiting, others, more));
        assert_eq!(streams.len(), 0);
    }

    /// Of which more is waited for.
    struct Never;

    impl AsyncRead for Never {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }
}
