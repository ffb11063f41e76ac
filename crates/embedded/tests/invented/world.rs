//! An invented network in virtual time: hosts with sockets, a path that delays and loses, one task after the other.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::{Future, poll_fn},
    net::{Ipv4Addr, SocketAddr},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use embedded_nal_async::UnconnectedUdp;
use millpond_control::Instant;
use millpond_embedded::Clock;

/// One way through the path, microseconds.
pub(crate) const DELAY: u64 = 300_000;

/// A datagram under way: whose it is, from whom, and its bytes.
type Datagram = (SocketAddr, SocketAddr, Vec<u8>);

#[derive(Default)]
pub(crate) struct World {
    now: Cell<u64>,
    /// Under way, by when they arrive and in the order in which they left.
    under_way: RefCell<BTreeMap<(u64, u64), Datagram>>,
    /// When somebody wants to be woken.
    alarms: RefCell<BTreeSet<u64>>,
    left: Cell<u64>,
    /// Which datagrams are lost, counted from 0.
    pub(crate) lost: RefCell<BTreeSet<u64>>,
    /// Hosts that are off: what is sent to them is lost.
    pub(crate) off: RefCell<BTreeSet<SocketAddr>>,
    /// What left: from whom, and its bytes.
    pub(crate) sent: RefCell<Vec<(SocketAddr, Vec<u8>)>>,
}

pub(crate) fn host(number: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, number), 5683))
}

impl World {
    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.now.get())
    }

    pub(crate) fn socket(&self, at: SocketAddr) -> Socket<'_> {
        Socket { world: self, at }
    }

    fn send(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let number = self.left.replace(self.left.get() + 1);
        self.sent.borrow_mut().push((from, bytes.to_vec()));
        if !self.lost.borrow().contains(&number) && !self.off.borrow().contains(&to) {
            self.under_way.borrow_mut().insert((self.now.get() + DELAY, number), (to, from, bytes.to_vec()));
        }
    }

    /// The next datagram that has arrived at a host.
    fn arrived(&self, at: SocketAddr) -> Option<(SocketAddr, Vec<u8>)> {
        let mut under_way = self.under_way.borrow_mut();
        let mut due = under_way.range(..=(self.now.get(), u64::MAX));
        let place = *due.find(|(_, (to, ..))| *to == at)?.0;
        under_way.remove(&place).map(|(_, from, bytes)| (from, bytes))
    }

    /// Runs the others until this one is done, and time on whenever all wait.
    pub(crate) fn run<T>(
        &self,
        main: impl Future<Output = T>,
        mut others: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>,
    ) -> T {
        let mut main = pin!(main);
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            // What is due was looked at by everybody once time stands still for two rounds.
            for _ in 0..2 {
                if let Poll::Ready(result) = main.as_mut().poll(&mut cx) {
                    return result;
                }
                others.retain_mut(|other| other.as_mut().poll(&mut cx).is_pending());
            }
            let next = self.under_way.borrow().keys().map(|(at, _)| *at).find(|at| *at > self.now.get());
            let alarm = self.alarms.borrow().range(self.now.get() + 1..).next().copied();
            self.now.set(next.into_iter().chain(alarm).min().expect("somebody waits for something"));
        }
    }
}

pub(crate) struct Socket<'w> {
    world: &'w World,
    at: SocketAddr,
}

impl UnconnectedUdp for Socket<'_> {
    type Error = Infallible;

    async fn send(&mut self, _local: SocketAddr, remote: SocketAddr, data: &[u8]) -> Result<(), Infallible> {
        self.world.send(self.at, remote, data);
        Ok(())
    }

    async fn receive_into(&mut self, buffer: &mut [u8]) -> Result<(usize, SocketAddr, SocketAddr), Infallible> {
        let (from, bytes) = poll_fn(|_| self.world.arrived(self.at).map_or(Poll::Pending, Poll::Ready)).await;
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok((bytes.len(), self.at, from))
    }
}

impl Clock for &World {
    fn now(&self) -> Instant {
        World::now(self)
    }

    async fn until(&self, at: Instant) {
        poll_fn(|_| {
            self.alarms.borrow_mut().insert(at.as_micros());
            if World::now(self) >= at { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
