//! A stream and the stack that speaks over it.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, BytesMut};
use millpond_coap::{
    Event as Trace, Output,
    stream::{Closing, Connection},
    transfer::{CoapStack, Event},
};
use millpond_control::Instant;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::secure;
use crate::{Cause, Why, security::Other};

/// Bytes that may wait to be written before the stack is asked for no more.
const MOST_UNWRITTEN: usize = 256 << 10;
/// Bytes that a client reads beyond those that it could write, while what it wrote does not leave.
const MOST_AHEAD: usize = 4 << 20;
/// Bytes read at once.
const READ: usize = 65_536;
/// Bytes of the longest answer to a ping: length, code, token, one option.
const LONGEST_PONG: usize = 11;

thread_local! {
    /// What is read goes to the stack at once: one room will do for all connections of a thread. If each had its own, who sends
    /// so much to each of thousands would have a server hold all of it.
    static ROOM: RefCell<Vec<u8>> = RefCell::new(vec![0; READ]);
}

/// A stream of bytes, secured or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// What a stack over a stream tells.
pub(crate) enum LinkEvent<'h> {
    /// Of asks, requests and observers.
    Event(Event<'h, ()>),
    /// Of the connection itself.
    Trace(Trace<'h, ()>),
}

/// A stream, the stack over it, and what waits to be written.
pub(crate) struct Link<S> {
    pub(crate) stack: CoapStack<Connection>,
    stream: S,
    other: Other,
    unwritten: BytesMut,
    /// What was written may still be inside the stream, which seals whole records.
    is_unflushed: bool,
    has_ended: bool,
    /// What waited to be written never will be.
    is_unwritable: bool,
    /// What the system said to that, until it is told.
    write_error: Option<io::Error>,
    /// Bytes that came while output waited, less those that left.
    ahead: usize,
    /// When anything came, and when more than an answer to a ping came.
    pub(crate) heard: Option<Instant>,
    pub(crate) moved: Option<Instant>,
    /// When the stack wants to be asked again.
    pub(crate) next: Option<Instant>,
    /// It has ended, and why.
    pub(crate) closing: Option<Closing>,
    /// The secure session failed, and why.
    pub(crate) broken: Option<Why>,
    /// What the system said when the stream broke.
    pub(crate) lost: Option<Cause>,
}

impl<S: Stream> Link<S> {
    pub(crate) fn new(stream: S, stack: CoapStack<Connection>, other: Other) -> Self {
        Self {
            stack,
            stream,
            other,
            unwritten: BytesMut::new(),
            is_unflushed: false,
            has_ended: false,
            is_unwritable: false,
            write_error: None,
            ahead: 0,
            heard: None,
            moved: None,
            next: None,
            closing: None,
            broken: None,
            lost: None,
        }
    }

    /// Waits until bytes came, or were written. The stack is to be drained then.
    pub(crate) async fn turn(&mut self, now: impl Fn() -> Instant) {
        match std::future::poll_fn(|cx| ROOM.with_borrow_mut(|room| self.poll_turn(cx, room, &now))).await {
            Ok(None) => {}
            Ok(Some(count)) if count > 0 => {}
            ended => {
                if let Err(error) = ended {
                    match secure::broken(&error, self.other) {
                        None => self.lost = Cause::of(error),
                        broken => self.broken = broken,
                    }
                }
                self.has_ended = true;
                self.stack.stream_ended();
            }
        }
    }

    /// Writes what waits and hands what came to the stack: how many bytes, none if some were written only.
    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
        now: &impl Fn() -> Instant,
    ) -> Poll<io::Result<Option<usize>>> {
        let written = self.write_error.take().map_or_else(|| self.poll_write(cx), Err);
        if written.is_err() {
            // Nobody takes it any more, and it must not stand in the way of the stack's last words.
            (self.unwritten, self.is_unflushed, self.is_unwritable) = (BytesMut::new(), false, true);
        }
        // A server that is not read from reads no more itself. A client does, for a while: what comes are answers to what it
        // asked, and if neither side read, neither could write. What comes without end are pings, or answers that nobody
        // can have asked for.
        let is_full = !self.unwritten.is_empty() || self.is_unflushed;
        let is_patient = self.other == Other::Server && self.ahead < MOST_AHEAD;
        let may_read = !self.has_ended && (!is_full || is_patient);
        // What the peer said last tells more than that it takes nothing any more.
        if may_read || written.is_err() {
            let mut room = ReadBuf::new(room);
            if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, &mut room) {
                let count = room.filled().len();
                if read.is_ok() && count > 0 {
                    let now = now();
                    self.heard = Some(now);
                    if count > LONGEST_PONG {
                        self.moved = self.heard;
                    }
                    self.stack.receive(now, room.filled());
                }
                self.ahead = if is_full { self.ahead.saturating_add(count) } else { 0 };
                return Poll::Ready(match (read, written) {
                    // The system tells its error once, to whichever of the two came first.
                    (Ok(()), Err(error)) if count == 0 => Err(error),
                    (read, _) => read.map(|()| Some(count)),
                });
            }
        }
        match written {
            Err(error) => Poll::Ready(Err(error)),
            Ok(true) => Poll::Ready(Ok(None)),
            Ok(false) => Poll::Pending,
        }
    }

    /// Writes what the stream takes at once, so that nobody wakes only to have it written: whether it took anything. What the
    /// stack did not say for want of room is waited for by a turn.
    pub(crate) async fn write_at_once(&mut self) -> bool {
        if self.unwritten.is_empty() || !self.takes_more() || self.write_error.is_some() {
            return false;
        }
        std::future::poll_fn(|cx| {
            Poll::Ready(self.poll_write(cx).unwrap_or_else(|error| {
                self.write_error = Some(error);
                false
            }))
        })
        .await
    }

    /// Writes what the stream takes. Returns whether it took anything.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut has_written = false;
        while !self.unwritten.is_empty() {
            let Poll::Ready(count) = Pin::new(&mut self.stream).poll_write(cx, &self.unwritten)? else { break };
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.unwritten.advance(count);
            self.ahead = self.ahead.saturating_sub(count);
            (has_written, self.is_unflushed) = (true, true);
        }
        if self.is_unflushed && Pin::new(&mut self.stream).poll_flush(cx)?.is_ready() {
            (has_written, self.is_unflushed) = (true, false);
        }
        Ok(has_written)
    }

    /// Asks the stack for all its output, unless the stream has not taken what came before: notifications wait inside,
    /// and of each observer the newest only. Stops at what `hear` gives something for, so that what is done about it comes
    /// before what is read next: requests whose answers have no room stay unread.
    pub(crate) fn drain<T>(&mut self, now: Instant, mut hear: impl FnMut(LinkEvent<'_>) -> Option<T>) -> Option<T> {
        while self.takes_more() {
            let heard = match self.stack.poll(now) {
                Output::Transmit(transmit) => {
                    self.unwritten.extend_from_slice(transmit.bytes);
                    None
                }
                Output::Event(event) => hear(LinkEvent::Event(event)),
                Output::Trace(event) => hear(LinkEvent::Trace(event)),
                Output::Close(why) => {
                    self.closing = Some(why);
                    None
                }
                Output::Sleep(until, _) => {
                    self.next = Some(until);
                    return None;
                }
                Output::Idle => {
                    self.next = None;
                    return None;
                }
            };
            if heard.is_some() {
                return heard;
            }
        }
        None
    }

    /// Whether there is room for more to say.
    pub(crate) fn takes_more(&self) -> bool {
        self.unwritten.len() < MOST_UNWRITTEN
    }

    /// Whether the stream has taken all that was said.
    pub(crate) fn is_written(&self) -> bool {
        self.unwritten.is_empty() && !self.is_unflushed && !self.is_unwritable
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<CoapStack<Connection>>() + self.stack.memory() + self.unwritten.capacity()
    }

    /// Writes what waits, and closes.
    pub(crate) async fn close(self) {
        /// How long a peer may take to accept the last bytes.
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
        // Who does not take them has gone.
        let _ = tokio::time::timeout(PATIENCE, self.last()).await;
    }

    /// Writes what can be written now, and closes: its place is another's already, and what it holds is counted no more.
    pub(crate) async fn close_at_once(self) {
        let mut last = std::pin::pin!(self.last());
        std::future::poll_fn(|cx| {
            let _ = last.as_mut().poll(cx);
            Poll::Ready(())
        })
        .await;
    }

    /// Writes all that waits. The stack is gone by then.
    async fn last(self) -> io::Result<()> {
        let Self { mut stream, unwritten, stack, .. } = self;
        drop(stack);
        stream.write_all(&unwritten).await?;
        stream.flush().await?;
        stream.shutdown().await
    }
}

/// Why a connection ended, in words, and what to do; `said` is what the peer gave for its reason, `again` how others can be asked over another one.
pub(crate) fn reason(closing: Option<Closing>, said: &str, again: &str) -> String {
    const MEND: &str = "check that it speaks CoAP over TCP on this port";
    match closing {
        Some(Closing::Released) => format!("it was released; {again}"),
        Some(Closing::AbortedByPeer) if said.is_empty() => "the peer aborted it".into(),
        Some(Closing::AbortedByPeer) => format!("the peer aborted it: {said}"),
        Some(Closing::BadFrame(error)) => format!("the peer sent what is no frame: {error}; {MEND}"),
        Some(Closing::BadSignal(error)) => error.to_string(),
        Some(Closing::NoSettings) => {
            format!("the peer did not begin with its settings (CSM); {MEND}, or ask it without_settings")
        }
        Some(Closing::ReleaseTimedOut) => "the peer did not close it in time".into(),
        _ => format!("the peer closed it; {again}"),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        task::Waker,
    };

    use millpond_coap::{stream::Options, transfer::Config};

    use super::*;

    /// Settings, and then pings without end, from a server that reads nothing.
    #[test]
    fn a_client_whose_output_is_not_read_reads_no_more_itself() {
        let (near, mut far) = tokio::io::duplex(READ);
        let stack =
            CoapStack::over_stream(Connection::new(Options { serves: false, ..Options::default() }), Config::STREAM);
        let mut link = Link::new(near, stack, Other::Server);
        let mut cx = Context::from_waker(Waker::noop());
        let pings: Vec<u8> = [0, 0xe2].repeat(READ / 2);
        assert!(Pin::new(&mut far).poll_write(&mut cx, &[0, 0xe1]).is_ready());
        let (mut sent, mut is_idle) = (0, false);
        while !is_idle {
            is_idle = true;
            if let Poll::Ready(count) = Pin::new(&mut far).poll_write(&mut cx, &pings) {
                sent += count.unwrap();
                is_idle = false;
            }
            assert!(sent < 64 << 20, "it reads whatever comes");
            if std::pin::pin!(link.turn(|| Instant::ORIGIN)).poll(&mut cx).is_ready() {
                is_idle = false;
            }
            link.drain(Instant::ORIGIN, |_| None::<()>);
        }
        let held = link.stack.memory() + link.unwritten.len();
        assert!(held < 2 * MOST_AHEAD + MOST_UNWRITTEN, "{held} bytes are held");
        // Once it is read from, it goes on.
        let mut room = vec![0; READ];
        for _ in 0..1_000 {
            let mut place = ReadBuf::new(&mut room);
            let _ = Pin::new(&mut far).poll_read(&mut cx, &mut place);
            let _ = std::pin::pin!(link.turn(|| Instant::ORIGIN)).poll(&mut cx);
            link.drain(Instant::ORIGIN, |_| None::<()>);
        }
        assert!(Pin::new(&mut far).poll_write(&mut cx, &pings).is_ready());
    }

    fn link<S: Stream>(stream: S) -> Link<S> {
        let stack = CoapStack::over_stream(Connection::new(Options::default()), Config::STREAM);
        Link::new(stream, stack, Other::Client)
    }

    /// Where it was read into.
    struct ReadProbe(Arc<AtomicUsize>);

    impl AsyncRead for ReadProbe {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            self.0.store(room.initialize_unfilled().as_ptr() as usize, Ordering::Relaxed);
            room.put_slice(&[0, 0xe1]);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for ReadProbe {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Thousands of connections to which something long was sent would each keep the room for it.
    #[test]
    fn connections_keep_no_room_of_their_own_for_what_they_read() {
        let mut cx = Context::from_waker(Waker::noop());
        let places: [Arc<AtomicUsize>; 2] = std::array::from_fn(|_| Arc::default());
        let mut links = places.clone().map(|place| link(ReadProbe(place)));
        for link in &mut links {
            assert!(std::pin::pin!(link.turn(|| Instant::ORIGIN)).poll(&mut cx).is_ready());
            assert_eq!(link.heard, Some(Instant::ORIGIN));
        }
        let [first, second] = places.map(|place| place.load(Ordering::Relaxed));
        assert!(first == second && first != 0);
    }

    /// Takes so many bytes in all, then says that the connection is reset; nothing comes.
    struct TakesFew(usize);

    impl AsyncRead for TakesFew {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for TakesFew {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let count = self.0.min(bytes.len());
            self.0 -= count;
            Poll::Ready(if count > 0 { Ok(count) } else { Err(io::ErrorKind::ConnectionReset.into()) })
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn what_was_written_early_wakes_nobody_and_an_error_is_told_by_the_next_turn() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut early = |link: &mut Link<_>, bytes: usize| {
            link.unwritten.extend_from_slice(&vec![0; bytes]);
            assert!(std::pin::pin!(link.write_at_once()).poll(&mut cx).is_ready());
            std::pin::pin!(link.turn(|| Instant::ORIGIN)).poll(&mut cx).is_ready()
        };
        let mut good = link(TakesFew(100));
        assert!(!early(&mut good, 100) && good.is_written());
        assert!(early(&mut good, 1) && good.lost.is_some() && !good.is_written());
        // The stack was not asked for all that it has to say: it is to be drained once there is room.
        assert!(early(&mut link(TakesFew(MOST_UNWRITTEN)), MOST_UNWRITTEN));
    }

    #[test]
    fn a_connection_that_gives_way_goes_at_once_whether_it_is_read_or_not() {
        let (near, far) = tokio::io::duplex(8);
        let mut link = link(near);
        link.unwritten.extend_from_slice(&[0; 1_000]);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(std::pin::pin!(link.close_at_once()).poll(&mut cx).is_ready());
        drop(far);
    }
}
