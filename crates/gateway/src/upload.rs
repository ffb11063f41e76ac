//! Bodies of requests: short ones are whole before anybody is asked, and long ones are forwarded while they come.

use std::{
    fmt, io,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
    time::Duration,
};

use millpond_live::{Bytes, Code};
use tokio::{
    io::{AsyncRead, AsyncReadExt, ReadBuf},
    time::{Instant, Sleep, error::Elapsed, sleep, timeout_at},
};

use crate::{engine::locked, paths::Turn, refusal::Refusal};

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    Whole(Bytes),
    Coming(Upload),
}

impl Payload {
    /// What this reads, of which `size` is known and `longest` may be had: whole if it is no longer than `whole`. It comes within
    /// this time, and of a longer one what is wanted next.
    ///
    /// # Errors
    /// It is too long, or does not come.
    pub(crate) async fn read(
        reader: impl AsyncRead + Send + 'static,
        size: Option<u64>,
        (whole, longest): (usize, usize),
        within: Option<Duration>,
    ) -> Result<Self, Refusal> {
        if size.is_some_and(|size| size > longest as u64) {
            return Err(too_long(longest));
        }
        let coming = Coming {
            rest: Box::pin(reader),
            left: longest,
            longest,
            kept: Vec::new(),
            has_begun: false,
            within,
            waits: false,
            until: None,
            moved: Instant::now(),
            turn: None,
            refusal: None,
        };
        let upload = Upload { coming: Arc::new(Mutex::new(coming)), size };
        let mut first = upload.reader().take(whole as u64 + 1);
        let read = tokio::io::copy(&mut first, &mut tokio::io::sink()).await;
        let mut coming = locked(&upload.coming);
        if read.is_err() {
            return Err(coming.refusal.take().unwrap_or_else(|| incomplete("the body cannot be read")));
        }
        if coming.kept.len() <= whole {
            return Ok(Self::Whole(std::mem::take(&mut coming.kept).into()));
        }
        coming.until = None;
        drop(coming);
        Ok(Self::Coming(upload))
    }

    /// All of it, if it is whole.
    pub(crate) fn whole(&self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.clone(),
            Self::Coming(_) => Bytes::new(),
        }
    }

    /// It that comes.
    pub(crate) const fn coming(&self) -> Option<&Upload> {
        match self {
            Self::Whole(_) => None,
            Self::Coming(upload) => Some(upload),
        }
    }
}

/// A body that comes. It is read by one after the other, each from its beginning, until one has [begun](Self::begin).
#[derive(Clone)]
pub(crate) struct Upload {
    coming: Arc<Mutex<Coming>>,
    /// Bytes of all of it, if that is known.
    pub(crate) size: Option<u64>,
}

struct Coming {
    rest: Pin<Box<dyn AsyncRead + Send>>,
    /// Bytes that may still come of it, of so many.
    left: usize,
    longest: usize,
    /// What came until it was begun with.
    kept: Vec<u8>,
    has_begun: bool,
    within: Option<Duration>,
    /// More of it is waited for.
    waits: bool,
    /// Until when that must come.
    until: Option<Pin<Box<Sleep>>>,
    /// When some of it came last.
    moved: Instant,
    /// Of who is asked, until what comes is waited for.
    turn: Option<Turn>,
    /// Why the rest does not come.
    refusal: Option<Refusal>,
}

impl Upload {
    pub(crate) fn reader(&self) -> Reader {
        Reader { of: self.clone(), at: 0 }
    }

    /// Some of it has been taken: nobody else gets it.
    pub(crate) fn begin(&self) {
        locked(&self.coming).has_begun = true;
    }

    pub(crate) fn has_begun(&self) -> bool {
        locked(&self.coming).has_begun
    }

    /// Why it did not come, if it did not.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        locked(&self.coming).refusal.clone()
    }

    /// It is forwarded in this turn, which ends when what comes has to be waited for: who sends slowly holds up nobody else.
    pub(crate) fn hold(&self, turn: Option<Turn>) {
        let before = std::mem::replace(&mut locked(&self.coming).turn, turn);
        drop(before);
    }

    /// What is done while it is forwarded, unless none of it is taken for so long.
    pub(crate) async fn forwarding<T>(&self, within: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
        let (mut work, mut until) = (pin!(work), Instant::now() + within);
        loop {
            let elapsed = match timeout_at(until, &mut work).await {
                Ok(done) => return Ok(done),
                Err(elapsed) => elapsed,
            };
            let coming = locked(&self.coming);
            let moved = if coming.waits { Instant::now() } else { coming.moved };
            if moved + within <= until {
                return Err(elapsed);
            }
            until = moved + within;
        }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("size", &self.size).finish_non_exhaustive()
    }
}

/// Reads a body that comes.
pub(crate) struct Reader {
    of: Upload,
    /// Bytes of what is kept that it has read.
    at: usize,
}

impl AsyncRead for Reader {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let reader = self.get_mut();
        locked(&reader.of.coming).poll_read(&mut reader.at, cx, room)
    }
}

impl Coming {
    fn poll_read(&mut self, at: &mut usize, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(kept) = self.kept.get(*at..).filter(|kept| !kept.is_empty()) {
            let length = kept.len().min(room.remaining());
            room.put_slice(kept.get(..length).unwrap_or_default());
            *at += length;
            self.moved = Instant::now();
            return Poll::Ready(Ok(()));
        }
        if self.has_begun {
            (self.kept, *at) = (Vec::new(), 0);
        }
        let before = room.filled().len();
        let Poll::Ready(read) = self.rest.as_mut().poll_read(cx, room) else {
            (self.turn, self.waits) = (None, true);
            let Some(within) = self.within else { return Poll::Pending };
            let until = self.until.get_or_insert_with(|| Box::pin(sleep(within)));
            ready!(until.as_mut().poll(cx));
            return self.fail(incomplete(format!("the body did not come within {} s", within.as_secs())));
        };
        if read.is_err() {
            return self.fail(incomplete("the body did not come as it should"));
        }
        let came = room.filled().get(before..).unwrap_or_default();
        let Some(left) = self.left.checked_sub(came.len()) else { return self.fail(too_long(self.longest)) };
        (self.left, self.moved, self.waits) = (left, Instant::now(), false);
        if self.has_begun {
            self.until = None;
        } else {
            self.kept.extend_from_slice(came);
            *at = self.kept.len();
        }
        Poll::Ready(Ok(()))
    }

    fn fail(&mut self, refusal: Refusal) -> Poll<io::Result<()>> {
        let error = io::Error::other(refusal.why.clone());
        self.refusal = Some(refusal);
        Poll::Ready(Err(error))
    }
}

fn too_long(longest: usize) -> Refusal {
    let why = format!("the body is longer than {longest} bytes, the most that this gateway takes");
    Refusal { longest: Some(longest), ..Refusal::new(Code::REQUEST_ENTITY_TOO_LARGE, why) }
}

fn incomplete(why: impl Into<String>) -> Refusal {
    Refusal::new(Code::REQUEST_ENTITY_INCOMPLETE, why)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn read(upload: &Upload, bytes: u64) -> Vec<u8> {
        let mut read = Vec::new();
        upload.reader().take(bytes).read_to_end(&mut read).await.unwrap();
        read
    }

    #[tokio::test]
    async fn each_reads_it_from_its_beginning_until_one_has_taken_some() {
        let payload = Payload::read(&b"0123456789"[..], None, (3, 10), None).await.unwrap();
        let upload = payload.coming().unwrap();
        assert_eq!(read(upload, 2).await, b"01");
        assert_eq!(read(upload, 6).await, b"012345");
        let mut reader = upload.reader();
        let mut begun = [0; 5];
        reader.read_exact(&mut begun).await.unwrap();
        upload.begin();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.unwrap();
        assert_eq!((&begun[..], &rest[..]), (&b"01234"[..], &b"56789"[..]));
    }

    #[tokio::test]
    async fn a_short_one_is_whole_and_one_that_is_too_long_is_refused() {
        for (size, limits, expected) in [
            (Some(10), (10, 10), None),
            (None, (64, 64), None),
            (Some(10), (9, 9), Some(Code::REQUEST_ENTITY_TOO_LARGE)),
            (None, (9, 9), Some(Code::REQUEST_ENTITY_TOO_LARGE)),
        ] {
            let read = Payload::read(&b"0123456789"[..], size, limits, None).await;
            match expected {
                None => assert_eq!(read.unwrap().whole(), "0123456789"),
                Some(code) => assert_eq!(read.unwrap_err().code, code),
            }
        }
    }

    /// Who is asked has its time for each part, and does not answer for who sends.
    #[tokio::test(start_paused = true)]
    async fn time_runs_while_who_is_asked_takes_nothing() {
        let (mut sender, body) = tokio::io::duplex(64);
        let within = Duration::from_secs(10);
        sender.write_all(b"01").await.unwrap();
        let payload = Payload::read(body, None, (1, 10), Some(Duration::from_secs(30))).await.unwrap();
        let upload = payload.coming().unwrap();
        upload.begin();
        let slow = async {
            for byte in b"234" {
                sleep(Duration::from_secs(25)).await;
                sender.write_all(&[*byte]).await.unwrap();
            }
        };
        let (all, ()) = tokio::join!(upload.forwarding(within, read(upload, 5)), slow);
        assert_eq!(all.unwrap(), b"01234");
        assert!(upload.forwarding(within, std::future::pending::<()>()).await.is_err());
        let lost = upload.forwarding(within, upload.reader().read_u8()).await.unwrap();
        assert!(lost.is_err(), "nothing came for half a minute");
        assert_eq!(upload.refusal().unwrap().code, Code::REQUEST_ENTITY_INCOMPLETE);
    }
}
