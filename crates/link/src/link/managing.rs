//! A link whose queue manages itself: what waits is in the discipline, and only the packet in service in the queue.

use super::Link;
use crate::aqm::{Ecn, Managed, Parked};
use crate::queue::{DropReason, Occupancy, Waiting};
use millpond_control::Instant;

impl<P> Link<P> {
    /// Takes a packet that is offered; `beyond` counts towards its limit too.
    #[inline(never)]
    pub(super) fn park(&mut self, now: u64, packet: Parked<P>, beyond: Occupancy) -> Result<(), (DropReason, P)> {
        self.meter.spend(now, self.held());
        let Self { managed: Some(managed), queue, .. } = self else {
            return Err((DropReason::QueueFull, packet.payload));
        };
        let (len, before) = (packet.len, managed.dropped());
        let admitted = match queue.admit(packet.room, beyond.plus(managed.held())) {
            Err(DropReason::QueueFull) if managed.makes_room() => Ok(()),
            admitted => admitted,
        };
        let taken = match admitted {
            Ok(()) => managed.enqueue(now, packet, queue.limit(), beyond.plus(queue.held())),
            Err(reason) => Err((reason, packet.payload)),
        };
        self.count_dropped(before);
        match taken {
            Ok(()) if self.queue.front().is_none() => self.take_next(now, false),
            Ok(()) => {}
            Err((reason, _)) => self.count_refused(reason, len),
        }
        taken
    }

    /// Takes the next packet out of a queue that manages itself, at `at`; `is_on_time`: as the one before it was out.
    pub(super) fn take_next(&mut self, at: u64, is_on_time: bool) {
        let Some(managed) = &mut self.managed else { return };
        let before = managed.dropped();
        let next = managed.dequeue(at);
        self.count_dropped(before);
        let Some(Parked { number, len, room, radio, ecn, payload, .. }) = next else { return };
        let marked = ecn == Ecn::Marked;
        if marked {
            self.counters.marked.add(len);
        }
        let charged = self.charge.of(radio, len);
        let departs = if is_on_time { self.rate.serve_next(at, charged) } else { self.rate.serve(at, charged) };
        self.queue.push(Waiting { number, departs, len, radio, marked, payload }, room);
        // What takes no time to send is out at once.
        if !is_on_time {
            self.let_out();
        }
    }

    /// Counts what the queue has dropped since there were so many.
    #[inline]
    fn count_dropped(&mut self, before: usize) {
        if self.managed.as_ref().is_some_and(|managed| managed.dropped() > before) {
            self.count_dropped_after(before);
        }
    }

    #[cold]
    fn count_dropped_after(&mut self, before: usize) {
        let Some(managed) = &self.managed else { return };
        for (packet, _, reason) in managed.dropped_after(before) {
            match reason {
                DropReason::Managed => self.counters.dropped_managed.add(packet.len),
                _ => self.counters.dropped_full.add(packet.len),
            }
        }
    }

    /// When to look at the link next: the queue may drop packets when one is out.
    #[inline(never)]
    pub(super) fn next_managed(&self, managed: &Managed<P>) -> Option<Instant> {
        if managed.has_dropped() {
            return Some(Instant::from_micros(self.clock));
        }
        if self.paused.is_some() {
            return self.next_paused();
        }
        let arrives = self.next_arrival();
        let drops = self.queue.front().and_then(|first| managed.first_drop(first.departs));
        match (arrives, drops) {
            (Some(arrives), Some(drops)) => Some(Instant::from_micros(arrives.min(drops))),
            (arrives, drops) => arrives.or(drops).map(Instant::from_micros),
        }
    }
}
