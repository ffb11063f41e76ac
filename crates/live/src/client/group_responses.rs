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
const MOST: usize = millpond_coap::transfer::Limits::DEFAULT.cached;

type GroupResponse = Result<Response, Error>;

/// Where answers are put, one of each member at most. The end comes when all of these are dropped.
#[derive(Clone, Debug)]
pub(crate) struct GroupSender {
    sender: mpsc::UnboundedSender<GroupResponse>,
    backlog: Arc<Backlog>,
}

/// Where they are taken.
#[derive(Debug)]
pub(super) struct GroupReceiver {
    receiver: mpsc::UnboundedReceiver<GroupResponse>,
    backlog: Arc<Backlog>,
}

#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// Answers for which there was no room.
    left_out: AtomicUsize,
}

/// Both ends.
pub(super) fn channel() -> (GroupSender, GroupReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let backlog = Arc::<Backlog>::default();
    (GroupSender { sender, backlog: Arc::clone(&backlog) }, GroupReceiver { receiver, backlog })
}

impl GroupSender {
    /// An answer, or why there is none of a member. Without room for it it is counted and dropped.
    pub(crate) fn send(&self, response: GroupResponse) {
        let weight = weight(&response);
        // Only the one task of the driver adds, so that nothing comes between.
        if self.bytes().saturating_add(weight) > MOST {
            self.backlog.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.backlog.bytes.fetch_add(weight, Ordering::Relaxed);
        // Who asked may have gone, and says so.
        let _ = self.sender.send(response);
    }

    /// Bytes that wait to be taken.
    pub(crate) fn bytes(&self) -> usize {
        self.backlog.bytes.load(Ordering::Relaxed)
    }
}

impl GroupReceiver {
    /// The next one; before the end, how many were left out.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<GroupResponse>> {
        if let Some(response) = ready!(self.receiver.poll_recv(cx)) {
            self.backlog.bytes.fetch_sub(weight(&response), Ordering::Relaxed);
            return Poll::Ready(Some(response));
        }
        let count = self.backlog.left_out.swap(0, Ordering::Relaxed);
        Poll::Ready((count > 0).then_some(Err(Error::NotTaken { count, limit: MOST })))
    }
}

fn weight(response: &GroupResponse) -> usize {
    size_of::<GroupResponse>() + response.as_ref().map_or(0, Response::weight)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(receiver: &mut GroupReceiver) -> Option<GroupResponse> {
        poll_fn(|cx| receiver.poll(cx)).await
    }

    #[tokio::test]
    async fn answers_of_a_group_that_nobody_reads_do_not_pile_up_and_those_left_out_are_told() {
        let (sender, mut receiver) = channel();
        let answer = || Ok(Response::content(vec![b'.'; 1 << 20]));
        for _ in 0..4_096 {
            sender.send(answer());
            assert!(sender.bytes() <= MOST, "{} bytes wait", sender.bytes());
        }
        // What was taken leaves room.
        assert_eq!(next(&mut receiver).await, Some(answer()));
        sender.send(Ok(Response::content("later")));
        drop(sender);
        let mut lengths = Vec::new();
        let left_out = loop {
            match next(&mut receiver).await.expect("the count of those left out comes before the end") {
                Ok(answer) => lengths.push(answer.payload().len()),
                Err(error) => break error,
            }
        };
        assert_eq!((lengths.len(), lengths.last()), (15, Some(&5)));
        assert_eq!(left_out, Error::NotTaken { count: 4_096 - 15, limit: MOST });
        assert_eq!(next(&mut receiver).await, None);
    }

    #[tokio::test]
    async fn short_answers_of_every_member_have_room() {
        let (sender, mut receiver) = channel();
        let answer = Response::content(vec![b'.'; 1_152]).with_content_format(crate::ContentFormat::LINK_FORMAT);
        for _ in 0..4_096 {
            sender.send(Ok(answer.clone()));
        }
        drop(sender);
        for _ in 0..4_096 {
            assert_eq!(next(&mut receiver).await, Some(Ok(answer.clone())));
        }
        assert_eq!(next(&mut receiver).await, None);
    }
}
