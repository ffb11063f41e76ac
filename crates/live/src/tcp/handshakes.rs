//! Handshakes that are under way at a server: few enough, and none for long.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use millpond_coap::quota::Holders;
use tokio::sync::oneshot;

use crate::udp::network_of;

/// How many may be under way at a time.
const MOST: usize = 1_024;
/// How long one may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// All that are under way, the oldest first. Beyond their number the oldest of the network that has the most gives source: a
/// client that means it is done within a few round trips, one that sends nothing is what fills the table, and who opens
/// connections faster than others can answer takes from itself.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    under_way: BTreeMap<u64, (u64, oneshot::Sender<()>)>,
    holders: Holders<u64>,
    begun: u64,
}

impl Handshakes {
    /// One more begins. It ends when the receiver hears something, and drops the receiver when it is done.
    pub(super) fn begin(&mut self, from: SocketAddr) -> oneshot::Receiver<()> {
        if self.under_way.len() >= MOST {
            let Self { under_way, holders, .. } = self;
            under_way.retain(|number, (network, one)| {
                let is_done = one.is_closed();
                if is_done {
                    holders.remove(*network, *number);
                }
                !is_done
            });
        }
        if self.under_way.len() >= MOST
            && let Some(oldest) = self.holders.of_largest().min()
            && let Some((network, oldest_one)) = self.under_way.remove(&oldest)
        {
            self.holders.remove(network, oldest);
            // It may have ended this moment.
            let _ = oldest_one.send(());
        }
        let (give_way, given) = oneshot::channel();
        self.begun += 1;
        let network = network_of(from);
        self.under_way.insert(self.begun, (network, give_way));
        self.holders.add(network, self.begun);
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 5_683);

    #[test]
    fn the_oldest_handshake_gives_way_and_those_that_are_done_count_no_more() {
        let mut handshakes = Handshakes::default();
        let mut first = handshakes.begin(HERE);
        let mut others: std::collections::VecDeque<_> = (1..MOST).map(|_| handshakes.begin(HERE)).collect();
        assert!(first.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        let _newest = handshakes.begin(HERE);
        assert!(first.try_recv() == Ok(()));
        // One that is done makes room.
        drop(others.pop_back());
        let _newest = handshakes.begin(HERE);
        let is_under_way = |one: &mut oneshot::Receiver<()>| one.try_recv() == Err(oneshot::error::TryRecvError::Empty);
        assert!(others.iter_mut().all(is_under_way));
    }

    #[test]
    fn who_opens_more_than_there_is_room_for_takes_from_itself() {
        let mut handshakes = Handshakes::default();
        let far: Vec<SocketAddr> = (0..100).map(|network| ([198, 51, network, 1], 5_683).into()).collect();
        let mut honest: Vec<_> = far.iter().map(|from| handshakes.begin(*from)).collect();
        let _flood: Vec<_> = (0..10 * MOST).map(|_| handshakes.begin(HERE)).collect();
        for one in &mut honest {
            assert!(one.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        }
        assert_eq!(handshakes.under_way.len(), MOST);
    }

    #[test]
    fn of_networks_that_have_as_many_the_oldest_handshake_gives_way_whatever_their_numbers() {
        let mut handshakes = Handshakes::default();
        let of = |number: usize| ([198, (number >> 8) as u8, number as u8, 1], 5_683).into();
        let mut all: Vec<_> = (0..MOST).map(|number| handshakes.begin(of(number))).collect();
        let _newest = handshakes.begin(of(MOST));
        let is_given_up = |one: &mut oneshot::Receiver<()>| one.try_recv() == Ok(());
        assert_eq!(all.iter_mut().position(is_given_up), Some(0));
    }
}
