//! Which of our addresses the kernel sends from by itself.
//!
//! An answer leaves from the address that was asked. Of a socket that is bound to all addresses each datagram has to say which, and no
//! safe interface hands over many of them at once. Where the kernel would choose that very address, nothing need be said.

use std::{
    collections::HashMap,
    hash::BuildHasherDefault,
    net::{IpAddr, SocketAddr},
};

use millpond_control::Instant;
use rustc_hash::FxHasher;

/// Datagrams to one host within the time below before the kernel is asked: who gets one or two is not worth it.
const WORTH_IT: u32 = 8;
/// Microseconds for which an answer counts. Routes change, and a peer that is answered from another address asks again.
const GOOD_FOR: u64 = 1_000_000;
/// Hosts of which something is known.
const MOST: usize = 1_024;

/// What the kernel chose, for the hosts that are sent much.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    known: HashMap<IpAddr, Choice, BuildHasherDefault<FxHasher>>,
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    since: Instant,
    sent: u32,
    chosen: Option<IpAddr>,
}

impl Choices {
    /// Whether a datagram leaves from `wanted` without a word about it. `ask` asks the kernel, which it does by connecting a
    /// socket.
    pub(crate) fn is(
        &mut self,
        now: Instant,
        to: SocketAddr,
        wanted: IpAddr,
        ask: impl FnOnce(SocketAddr) -> Option<IpAddr>,
    ) -> bool {
        if self.known.len() >= MOST && !self.known.contains_key(&to.ip()) {
            self.known.clear();
        }
        let choice = self.known.entry(to.ip()).or_insert(Choice { since: now, sent: 0, chosen: None });
        if now.as_micros().saturating_sub(choice.since.as_micros()) > GOOD_FOR {
            *choice = Choice { since: now, sent: 0, chosen: None };
        }
        choice.sent = choice.sent.saturating_add(1);
        if choice.sent == WORTH_IT {
            choice.chosen = ask(to);
        }
        choice.chosen == Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_once_a_second_about_who_is_sent_much() {
        let (to, ours) = (SocketAddr::from(([192, 0, 2, 1], 7)), IpAddr::from([192, 0, 2, 9]));
        let other = IpAddr::from([192, 0, 2, 10]);
        let (mut choices, mut asked) = (Choices::default(), 0);
        let mut is = |at, to, wanted| {
            choices.is(Instant::from_micros(at), to, wanted, |_| {
                asked += 1;
                Some(ours)
            })
        };
        assert!((0..7).all(|at| !is(at, to, ours)), "nobody was asked");
        assert!(is(7, to, ours) && is(8, to, ours) && !is(9, to, other) && is(1_000_000, to, ours));
        assert!(!is(1_000_002, to, ours), "that was long ago");
        for host in 0..10_000_u32 {
            let stranger = SocketAddr::from((std::net::Ipv4Addr::from(host), 7));
            assert!(!is(1_000_003, stranger, ours));
        }
        assert_eq!(asked, 1, "nobody asks for unvalidated addresses");
        assert!(choices.known.len() <= MOST);
    }
}
