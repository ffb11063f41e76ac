//! Answers of a group on their way to who asked, who may be slow to take them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc;

use crate::{Error, Response};

/// Bytes of answers to one request that wait to be taken: as many as a stack keeps of representations, 16 of the longest
/// answers and more than 4,096 of those that fit a message.
const MOST: usize = millpond_coap::transfer::Limits::DEFAULT.kept;

type Told = Result<Response, Error>;

/// Where answers are put, one of each member at most. The end comes when all of these are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Teller {
    sender: mpsc::UnboundedSender<Told>,
    held: Arc<Held>,
}

/// Where they are taken.
#[derive(Debug)]
pub(super) struct Listener {
    receiver: mpsc::UnboundedReceiver<Told>,
    held: Arc<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: AtomicUsize,
    /// Answers for which there was no room.
    left_out: AtomicUsize,
}

/// Both ends.
pub(super) fn answers() -> (Teller, Listener) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let held = Arc::<Held>::default();
    (Teller { sender, held: Arc::clone(&held) }, Listener { receiver, held })
}

impl Teller {
    /// An answer, or why there is none of a member. Without room for it it is counted and dropped.
    pub(crate) fn tell(&self, told: Told) {
        let weight = weight(&told);
        // Only the one task of the driver adds, so that nothing comes between.
        if self.bytes().saturating_add(weight) > MOST {
            self.held.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.held.bytes.fetch_add(weight, Ordering::Relaxed);
        // Who asked may have gone, and says so.
        let _ = self.sender.send(told);
    }

    /// Bytes that wait to be taken.
    pub(crate) fn bytes(&self) -> usize {
        self.held.bytes.load(Ordering::Relaxed)
    }
}

impl Listener {
    /// The next one; before the end, how many were left out.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        if let Some(told) = ready!(self.receiver.poll_recv(cx)) {
            self.held.bytes.fetch_sub(weight(&told), Ordering::Relaxed);
            return Poll::Ready(Some(told));
        }
        let count = self.held.left_out.swap(0, Ordering::Relaxed);
        Poll::Ready((count > 0).then_some(Err(Error::NotTaken { count, limit: MOST })))
    }
}

fn weight(told: &Told) -> usize {
    size_of::<Told>() + told.as_ref().map_or(0, Response::weight)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(listener: &mut Listener) -> Option<Told> {
        poll_fn(|cx| listener.poll(cx)).await
    }

    #[tokio::test]
    async fn answers_of_a_group_that_nobody_reads_do_not_pile_up_and_those_left_out_are_told() {
        let (teller, mut listener) = answers();
        let answer = || Ok(Response::content(vec![b'.'; 1 << 20]));
        for _ in 0..4_096 {
            teller.tell(answer());
            assert!(teller.bytes() <= MOST, "{} bytes wait", teller.bytes());
        }
        // What was taken leaves room.
        assert_eq!(next(&mut listener).await, Some(answer()));
        teller.tell(Ok(Response::content("later")));
        drop(teller);
        let mut lengths = Vec::new();
        let left_out = loop {
            match next(&mut listener).await.expect("the count of those left out comes before the end") {
                Ok(answer) => lengths.push(answer.payload().len()),
                Err(error) => break error,
            }
        };
        assert_eq!((lengths.len(), lengths.last()), (15, Some(&5)));
        assert_eq!(left_out, Error::NotTaken { count: 4_096 - 15, limit: MOST });
        assert_eq!(next(&mut listener).await, None);
    }

    #[tokio::test]
    async fn short_answers_of_every_member_have_room() {
        let (teller, mut listener) = answers();
        let answer = Response::content(vec![b'.'; 1_152]).with_content_format(crate::ContentFormat::LINK_FORMAT);
        for _ in 0..4_096 {
            teller.tell(Ok(answer.clone()));
        }
        drop(teller);
        for _ in 0..4_096 {
            assert_eq!(next(&mut listener).await, Some(Ok(answer.clone())));
        }
        assert_eq!(next(&mut listener).await, None);
    }
}
