//! Handshakes that are under way at a server: few enough, and none for long.

use std::{collections::VecDeque, time::Duration};

use tokio::sync::oneshot;

/// How many may be under way at a time.
const MOST: usize = 1_024;
/// How long one may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// All that are under way, the oldest first. Beyond their number the oldest gives way: a client that means it is done
/// within a few round trips, one that sends nothing is what fills the table.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    under_way: VecDeque<oneshot::Sender<()>>,
}

impl Handshakes {
    /// One more begins. It ends when the receiver hears something, and drops the receiver when it is done.
    pub(super) fn begin(&mut self) -> oneshot::Receiver<()> {
        if self.under_way.len() >= MOST {
            self.under_way.retain(|one| !one.is_closed());
        }
        if self.under_way.len() >= MOST
            && let Some(oldest) = self.under_way.pop_front()
        {
            // It may have ended this moment.
            let _ = oldest.send(());
        }
        let (give_way, given) = oneshot::channel();
        self.under_way.push_back(give_way);
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_handshake_gives_way_and_those_that_are_done_count_no_more() {
        let mut handshakes = Handshakes::default();
        let mut first = handshakes.begin();
        let mut others: VecDeque<_> = (1..MOST).map(|_| handshakes.begin()).collect();
        assert!(first.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        let _newest = handshakes.begin();
        assert!(first.try_recv() == Ok(()));
        // One that is done makes room.
        drop(others.pop_back());
        let _newest = handshakes.begin();
        let is_under_way = |one: &mut oneshot::Receiver<()>| one.try_recv() == Err(oneshot::error::TryRecvError::Empty);
        assert!(others.iter_mut().all(is_under_way));
    }
}
