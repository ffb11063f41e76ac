//! What comes out.

use core::{fmt::Debug, hash::Hash};

use millpond_control::Instant;

use super::{Endpoint, EndpointOutput, SleepReason, additional::ExtraState};
use crate::message::Message;
use crate::output::{Entry, Output, Step};
use crate::parts;

impl<A: Copy + Eq + Hash + Debug> Endpoint<A> {
    /// The next output. Also fires timers that are due.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> EndpointOutput<'_, A> {
        self.advance(now);
        if !self.queue.is_empty() && self.protection().is_none() {
            return self.queue.take();
        }
        self.queue.clear();
        // Most calls find nothing due.
        if self.extra.is_none() {
            let unacknowledged = self.first_unacknowledged();
            match (unacknowledged, self.timers.earliest()) {
                (None, None) => return Output::Idle,
                (Some((due, _)), timer) if due > self.now && timer.is_none_or(|(at, _)| due <= at) => {
                    return Output::Sleep(due, SleepReason::Acknowledgement);
                }
                (_, Some((at, slot))) if at > self.now && unacknowledged.is_none_or(|(due, _)| at < due) => {
                    return Output::Sleep(at, self.alarm(slot));
                }
                (None, Some((_, slot))) => return self.say_what_fires(slot),
                _ => {}
            }
        }
        self.say(now)
    }

    /// The same when there may be something to do.
    #[inline(never)]
    fn say(&mut self, now: Instant) -> EndpointOutput<'_, A> {
        loop {
            match self.step(now) {
                Step::Event(entry) if parts::OSCORE && self.protection().is_some() => {
                    if let Some(unprotected) = self.unprotected(now, &entry) {
                        return self.event(unprotected);
                    }
                }
                Step::Event(entry) => return self.queue.shown(&entry),
                Step::Sleep(until, reason) => return Output::Sleep(until, reason),
                Step::Idle => return Output::Idle,
            }
        }
    }

    /// The same when nothing but the timer of this message has run out, which nearly always sends a copy.
    #[inline(never)]
    fn say_what_fires(&mut self, slot: u32) -> EndpointOutput<'_, A> {
        self.fire(slot, self.now);
        if self.queue.is_empty() { self.say(self.now) } else { self.queue.take() }
    }

    /// The request that is to be acknowledged first, and when.
    #[inline]
    fn first_unacknowledged(&mut self) -> Option<(Instant, u32)> {
        self.inbox.as_deref_mut().filter(|_| parts::SERVER).and_then(|inbox| inbox.requests.first_due())
    }

    /// What the timer of a message is for.
    #[inline]
    fn alarm(&self, slot: u32) -> SleepReason {
        self.exchanges.get(slot).map_or(SleepReason::Retransmission, |exchange| exchange.alarm)
    }

    /// Until when a poll would say nothing but that, if that is plain to see: [`Instant::NEVER`] while it would be idle.
    /// Code that drives very many endpoints may ask this after an input and after each output, and spare the poll of which
    /// nothing comes.
    #[inline]
    pub fn quiet_until(&mut self, now: Instant) -> Option<Instant> {
        if !self.queue.is_empty() || self.extra.is_some() {
            return None;
        }
        self.queue.clear();
        let timer = self.timers.earliest().map_or(Instant::NEVER, |(at, _)| at);
        let unacknowledged = self.first_unacknowledged();
        let at = unacknowledged.map_or(timer, |(due, _)| due.min(timer));
        (at > self.now.max(now)).then_some(at)
    }

    /// The next output, to be looked at before anything else is done.
    #[inline]
    pub(crate) fn step(&mut self, now: Instant) -> Step<Entry<A>> {
        let now = self.advance(now);
        loop {
            if let Some(entry) = self.queue.pop() {
                return Step::Event(entry);
            }
            let timer = self.timers.earliest();
            let unacknowledged = self.first_unacknowledged();
            if let Some(due) = self.extra.as_deref().filter(|_| parts::GROUPS).and_then(ExtraState::first_due) {
                if due <= now {
                    self.leave_after_leisure(now);
                    continue;
                }
                let is_first =
                    unacknowledged.is_none_or(|(other, _)| due < other) && timer.is_none_or(|(other, _)| due < other);
                if is_first {
                    return Step::Sleep(due, SleepReason::Leisure);
                }
            }
            match (unacknowledged, timer) {
                (Some((due, slot)), _) if due <= now => self.acknowledge_request(slot, now),
                (_, Some((at, slot))) if at <= now => self.fire(slot, now),
                (Some((due, _)), timer) if timer.is_none_or(|(at, _)| due <= at) => {
                    return Step::Sleep(due, SleepReason::Acknowledgement);
                }
                (_, Some((at, slot))) => return Step::Sleep(at, self.alarm(slot)),
                (_, None) => return Step::Idle,
            }
        }
    }

    /// An output that was just taken, with its bytes.
    pub(crate) fn show(&self, entry: &Entry<A>) -> EndpointOutput<'_, A> {
        self.queue.shown(entry)
    }

    /// The message of an output that was just taken.
    pub(crate) fn message(&self, entry: &Entry<A>) -> Option<Message<'_>> {
        self.queue.message_of(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Event, Failure, IdGenerator, Outgoing};
    use super::*;
    use crate::message::Code;
    use alloc::vec::Vec;
    use millpond_control::{ChanceSeed, Preset};

    fn endpoint() -> Endpoint<u8> {
        let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
        Endpoint::new(Config::default(), controller, chance, 0, IdGenerator::counted()).unwrap()
    }

    #[test]
    fn nothing_is_lost_if_nobody_drains() {
        let now = Instant::ORIGIN;
        let mut endpoint = endpoint();
        let request = Outgoing::confirmable(Code::GET, &[]);
        let mut exchanges = Vec::new();
        for to in 0..3 {
            exchanges.extend(endpoint.request(now, to, &request));
        }
        for id in 0..3_u8 {
            endpoint.receive(now, 9, &[0x40, 1, 0, id, 0xff, b'a' + id]);
        }
        endpoint.receive(now, 0, &[0x64, 0x45, 0, 0, 0, 0, 0, 0, 0xff, b'!']);
        assert_eq!(exchanges.len(), 3);
        assert!(endpoint.cancel(now, exchanges[1]));

        let mut said = Vec::new();
        loop {
            said.push(match endpoint.poll(now) {
                Output::Transmit(transmit) => (transmit.to, transmit.bytes.to_vec()),
                Output::Event(Event::Request { from, message, .. } | Event::Response { from, message, .. }) => {
                    (from, message.payload().to_vec())
                }
                Output::Event(Event::Failed { to, why: Failure::Cancelled, .. }) => (to, b"cancelled".to_vec()),
                Output::Event(event) => panic!("{event:?}"),
                Output::Sleep(..) | Output::Idle => break,
            });
        }
        let copy = b"\x44\x01\0\0\0\0\0\0";
        let expected: [(u8, &[u8]); 8] =
            [(0, copy), (1, copy), (2, copy), (9, b"a"), (9, b"b"), (9, b"c"), (0, b"!"), (1, b"cancelled")];
        assert!(said.iter().map(|(peer, bytes)| (*peer, &bytes[..])).eq(expected), "{said:?}");
    }

    #[test]
    fn what_comes_late_is_counted_where_it_is_not_told() {
        let config = Config { tells_late: false, ..Config::default() };
        let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(1));
        let mut endpoint = Endpoint::new(config, controller, chance, 0, IdGenerator::counted()).unwrap();
        // Responses in an acknowledgement and without one; nothing else goes missing with them.
        endpoint.receive(Instant::ORIGIN, 0_u8, &[0x60, 0x45, 0, 0]);
        assert_eq!(endpoint.quiet_until(Instant::ORIGIN), Some(Instant::NEVER));
        assert!(matches!(endpoint.poll(Instant::ORIGIN), Output::Idle));
        endpoint.receive(Instant::ORIGIN, 0, &[0x40, 0x45, 0, 0]);
        assert_eq!(endpoint.quiet_until(Instant::ORIGIN), None);
        assert!(matches!(endpoint.poll(Instant::ORIGIN), Output::Transmit(_)), "a reset");
        assert!(matches!(endpoint.poll(Instant::ORIGIN), Output::Idle));
        assert_eq!(endpoint.counters().late, 2);
    }

    /// Outputs pile up as far as memory may; then datagrams are dropped, and counted.
    #[test]
    fn memory_is_bounded_even_if_nobody_drains() {
        let mut endpoint = endpoint();
        let limit = endpoint.setup.config.limits.bytes;
        // An acknowledgement with a response that nobody waits for.
        let late = [&b"\x60\x45\0\0\xff"[..], &[b'.'; 1_000]].concat();
        for _ in 0..100_000 {
            endpoint.receive(Instant::ORIGIN, 0, &late);
        }
        assert!((limit / 2..=limit).contains(&endpoint.memory()), "{} bytes", endpoint.memory());
        let counters = endpoint.counters();
        assert_eq!(counters.late + counters.ignored.no_room, 100_000);
        assert!(counters.ignored.no_room > 0);
    }

    #[test]
    fn it_is_quiet_until_the_first_timer_runs_out() {
        let mut endpoint = endpoint();
        let now = Instant::ORIGIN;
        endpoint.request(now, 0, &Outgoing::confirmable(Code::GET, &[])).unwrap();
        assert_eq!(endpoint.quiet_until(now), None, "a copy waits to leave");
        assert!(matches!(endpoint.poll(now), Output::Transmit(_)));
        let quiet = endpoint.quiet_until(now).unwrap();
        assert!(matches!(endpoint.poll(now), Output::Sleep(until, _) if until == quiet));
        assert_eq!(endpoint.quiet_until(quiet), None);
    }

    #[test]
    fn it_is_quiet_until_the_first_acknowledgement_is_due() {
        let mut endpoint = endpoint();
        let now = Instant::ORIGIN;
        endpoint.receive(now, 0, &[0x40, 1, 0, 1]);
        assert_eq!(endpoint.quiet_until(now), None, "a request waits to be told");
        let Output::Event(Event::Request { id, .. }) = endpoint.poll(now) else { panic!("no request") };
        let quiet = endpoint.quiet_until(now).unwrap();
        assert!(matches!(endpoint.poll(now), Output::Sleep(until, SleepReason::Acknowledgement) if until == quiet));
        assert_eq!(endpoint.quiet_until(quiet), None);
        endpoint.respond(now, id, &Outgoing::confirmable(Code::CONTENT, &[])).unwrap();
        assert_eq!(endpoint.quiet_until(now), None, "the answer waits to leave");
        assert!(matches!(endpoint.poll(now), Output::Transmit(_)));
        assert_eq!(endpoint.quiet_until(now), Some(Instant::NEVER));
    }
}
