//! Sees everything that an endpoint tells, and makes traces and figures of it.

use std::{
    collections::HashMap,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use millpond_coap::{
    Cause, Event, Failure, Ignored, Transmit,
    message::{Kind, Message},
};
use millpond_control::{Instant, Named, Sample, Span, View};

use crate::{
    Grade, Happened, PeerStats, TraceEvent,
    clock::{duration, since_start},
    trace::Hook,
    udp::Address,
};

/// Peers of which figures are kept. Beyond that, those not heard of for longest go.
const MOST_PEERS: usize = 4_096;

/// Keeps figures of peers and reports what happens.
#[derive(Default)]
pub(crate) struct Watch {
    hook: Option<Hook>,
    peers: HashMap<SocketAddr, Figures>,
    /// Of all peers that ever were.
    pub(crate) unnecessary: u64,
    pub(crate) backlogs: u64,
    pub(crate) unsent: u64,
    /// Of the hook.
    pub(crate) panics: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    transmissions: u64,
    retransmissions: u64,
    unnecessary: u64,
    needed: u64,
    round_trips: u64,
    last: Option<Duration>,
    shortest: Option<Duration>,
    heard: Instant,
}

/// What an endpoint knows of a peer.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) is_validated: bool,
    /// Its controller's.
    pub(crate) view: View,
    pub(crate) base_rtt: Option<Span>,
    /// Requests that wait for their turn.
    pub(crate) waiting: usize,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("peers", &self.peers.len()).finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(hook: Option<Hook>) -> Self {
        Self { hook, ..Self::default() }
    }

    /// Somebody wants to know what happens.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        self.hook.is_some() || tracing::enabled!(target: "millpond_live", tracing::Level::TRACE)
    }

    /// A datagram leaves.
    #[inline]
    pub(crate) fn transmit(&mut self, now: Instant, transmit: &Transmit<'_, Address>) {
        if let Cause::Exchange { copy, .. } = transmit.cause {
            let figures = self.figures(now, transmit.to.peer());
            figures.transmissions += 1;
            figures.retransmissions += u64::from(copy > 0);
        }
        if self.is_traced() {
            self.tell_transmit(now, transmit);
        }
    }

    /// An endpoint told something. Returns what it says about a path, for [`sample`](Self::sample).
    #[inline]
    pub(crate) fn event(&mut self, now: Instant, event: &Event<'_, Address>) -> Option<(Address, Sample)> {
        match event {
            Event::Response { from, message, sample, .. } => {
                self.received(now, *from, message);
                return sample.map(|sample| (*from, sample));
            }
            Event::Acknowledged { from, sample, .. } => {
                self.tell(now, from.peer(), || Happened::Acknowledged);
                return Some((*from, *sample));
            }
            Event::AdditionalResponse { from, message, .. } | Event::Unasked { from, message } => {
                self.received(now, *from, message);
            }
            Event::Delivered { to, sample, .. } => return Some((*to, *sample)),
            Event::Late { from, message } => {
                if message.kind == Kind::Acknowledgement {
                    self.unnecessary += 1;
                    self.figures(now, from.peer()).unnecessary += 1;
                }
                let Message { kind, code, id, .. } = *message;
                self.tell(now, from.peer(), || Happened::Late { kind, code, message_id: id });
            }
            Event::Failed { to, why, .. } | Event::Undelivered { to, why, .. } => {
                let why = failure(*why);
                self.tell(now, to.peer(), || Happened::Failed { why });
            }
            Event::Ignored { from, why } => {
                let reason = match why {
                    Ignored::Malformed(_) => "malformed",
                    Ignored::TooLong { .. } => "too long",
                    Ignored::LongToken { .. } => "long token",
                    Ignored::Unmatched => "unmatched",
                    Ignored::Ping => "ping",
                    _ => "no room",
                };
                self.tell(now, from.peer(), || Happened::Ignored { reason });
            }
            Event::Request { from, message, .. } => self.received(now, *from, message),
            _ => {}
        }
        None
    }

    /// Something that the endpoint does not know of.
    pub(crate) fn tell(&self, now: Instant, peer: SocketAddr, what: impl FnOnce() -> Happened) {
        if !self.is_traced() {
            return;
        }
        let event = TraceEvent { at: since_start(now), peer, what: what() };
        tracing::trace!(target: "millpond_live", "{event}");
        if let Some(hook) = &self.hook
            && catch_unwind(AssertUnwindSafe(|| hook(&event))).is_err()
        {
            // It is the application's, and nobody else is harmed by it.
            self.panics.fetch_add(1, Ordering::Relaxed);
            tracing::error!(target: "millpond_live", "the function that is told of every event panicked");
        }
    }

    #[inline]
    fn received(&self, now: Instant, from: Address, message: &Message<'_>) {
        self.tell(now, from.peer(), || Happened::Received {
            kind: message.kind,
            code: message.code,
            message_id: message.id,
            token: message.token,
            payload: message.payload().len(),
        });
    }

    /// What an answer said about the path.
    pub(crate) fn sample(&mut self, now: Instant, from: Address, sample: &Sample, view: Option<View>) {
        let round_trip = duration(sample.since_first());
        let figures = self.figures(now, from.peer());
        figures.round_trips += 1;
        // The peer answers what came first: nothing before it had arrived.
        figures.needed += match sample.named() {
            Named::Copy(copy) => u64::from(copy),
            Named::Further => 1,
            Named::Nothing => 0,
        };
        figures.last = Some(round_trip);
        figures.shortest = Some(figures.shortest.map_or(round_trip, |shortest| shortest.min(round_trip)));
        self.tell(now, from.peer(), || Happened::RoundTrip {
            since_first: round_trip,
            since_last: duration(sample.since_last()),
            copies: sample.retransmissions().saturating_add(1),
            grade: Grade::of(sample),
            rto: view.and_then(|view| view.rto).map(duration),
        });
    }

    #[cold]
    fn tell_transmit(&self, now: Instant, transmit: &Transmit<'_, Address>) {
        let Ok((message, _)) = Message::parse_extended(transmit.bytes) else { return };
        let (copy, wait, cause) = match transmit.cause {
            Cause::Exchange { copy, wait, .. } => (copy, Some(wait), "exchange"),
            Cause::Reply { repeated: false, .. } => (0, None, "reply"),
            Cause::Reply { repeated: true, .. } => (0, None, "repeated reply"),
            Cause::Ack => (0, None, "acknowledgement"),
            Cause::Reset => (0, None, "reset"),
            Cause::Ping => (0, None, "ping"),
            _ => (0, None, "plain"),
        };
        self.tell(now, transmit.to.peer(), || Happened::Sent {
            kind: message.kind,
            code: message.code,
            message_id: message.id,
            token: message.token,
            bytes: transmit.bytes.len(),
            copy,
            timer: wait.map(|wait| duration(wait.span)),
            reason: wait.map(|wait| wait.reason.name()),
            cause,
        });
    }

    fn figures(&mut self, now: Instant, peer: SocketAddr) -> &mut Figures {
        if self.peers.len() >= MOST_PEERS && !self.peers.contains_key(&peer) {
            let sum: u128 = self.peers.values().map(|figures| u128::from(figures.heard.as_micros())).sum();
            let average = u64::try_from(sum / self.peers.len().max(1) as u128).unwrap_or(u64::MAX);
            self.peers.retain(|_, figures| figures.heard.as_micros() > average);
        }
        let figures = self.peers.entry(peer).or_default();
        figures.heard = now;
        figures
    }

    /// The figures of all peers. `look` reports what is known of one.
    pub(crate) fn peers(&self, now: Instant, look: impl Fn(SocketAddr) -> Known) -> Vec<PeerStats> {
        let mut peers: Vec<PeerStats> = self
            .peers
            .iter()
            .map(|(address, figures)| {
                let Known { is_validated, view, base_rtt, waiting } = look(*address);
                PeerStats {
                    address: *address,
                    is_validated,
                    transmissions: figures.transmissions,
                    retransmissions: figures.retransmissions,
                    unnecessary_retransmissions: figures.unnecessary,
                    needed_retransmissions: figures.needed,
                    round_trips: figures.round_trips,
                    last_round_trip: figures.last,
                    shortest_round_trip: figures.shortest,
                    base_round_trip: base_rtt.map(duration),
                    smoothed: view.srtt.map(duration),
                    rto: view.rto.map(duration),
                    carried: view.carried.map(duration),
                    waiting,
                    quiet: since_start(now).saturating_sub(since_start(figures.heard)),
                }
            })
            .collect();
        peers.sort_by_key(|peer| peer.address);
        peers
    }
}

const fn failure(why: Failure) -> &'static str {
    match why {
        Failure::GaveUp => "gave up",
        Failure::Reset => "reset",
        Failure::Cancelled => "cancelled",
        _ => "no response",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_peers_are_bounded_and_the_busy_ones_stay() {
        let mut watch = Watch::default();
        let peer = |n: u32| SocketAddr::new(std::net::Ipv4Addr::from(n).into(), 1);
        for n in 0..20_000 {
            watch.figures(Instant::from_micros(u64::from(n)), peer(n)).transmissions += 1;
            watch.figures(Instant::from_micros(u64::from(n)), peer(0)).transmissions += 1;
            assert!(watch.peers.len() <= MOST_PEERS);
        }
        assert!(watch.peers.get(&peer(0)).is_some_and(|figures| figures.transmissions > 20_000));
    }
}
