//! What a run records beside its results, only when asked for.

mod sent;
mod share;

use std::str::FromStr;

use millpond_control::{Instant, Span, Wait};

use sent::Sent;
use share::Shares;

use crate::{
    evidence::Judged,
    ledger::Tag,
    network::{LinkName, Packet},
    outcome::{FrameEvent, Outcome, PacketEvent, QueueSample, TcpSample, TimerSample},
    sight::contents,
    tcp::Progress,
};

/// What can be recorded beside the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// Queue of both directions, sampled.
    Queue,
    /// Carried and useful bytes of both directions, in windows.
    Share,
    /// Copies of requests that each group sent, for the first time and again, in windows.
    Sent,
    /// Every timer that is armed.
    Rto,
    /// What happens to each packet.
    Packets,
    /// One row an exchange.
    Exchanges,
    /// How the server's senders of TCP stand, whenever that changes.
    Tcp,
    /// Every frame on the air of a mesh.
    Frames,
}

impl TraceKind {
    /// Every kind.
    pub const ALL: &'static [Self] =
        &[Self::Queue, Self::Share, Self::Sent, Self::Rto, Self::Packets, Self::Exchanges, Self::Tcp, Self::Frames];

    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Share => "share",
            Self::Sent => "sent",
            Self::Rto => "rto",
            Self::Packets => "packets",
            Self::Exchanges => "exchanges",
            Self::Tcp => "tcp",
            Self::Frames => "frames",
        }
    }
}

impl FromStr for TraceKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.iter().copied();
        known().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<_> = known().map(Self::name).collect();
            format!("unknown trace `{name}` (known: {})", names.join(", "))
        })
    }
}

/// What to record and how finely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What to record.
    pub traces: Vec<TraceKind>,
    /// Step of the sampled traces in microseconds; zero counts as one second.
    pub trace_step_us: u64,
    /// Whether the run gives a capture of every packet as well.
    pub capture: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { traces: Vec::new(), trace_step_us: 1_000_000, capture: false }
    }
}

/// The recorder of one run. When nothing is asked for, its only cost is one comparison a step.
pub(crate) struct Recorder {
    queue: bool,
    shares: Option<Box<Shares>>,
    sent: Option<Box<Sent>>,
    rto: bool,
    pub(crate) packets: bool,
    pub(crate) exchanges: bool,
    pub(crate) tcp: bool,
    pub(crate) frames: bool,
    step: u64,
    /// How far the network's clock is ahead of the run's, in microseconds.
    ahead: u64,
    next: Instant,
    links: Vec<LinkName>,
    queue_rows: Vec<QueueSample>,
    rto_rows: Vec<TimerSample>,
    packet_rows: Vec<PacketEvent>,
    tcp_rows: Vec<TcpSample>,
    frame_rows: Vec<FrameEvent>,
    judgements: Vec<Judgement>,
}

/// What the response of one exchange said, and the timeout that the controller made of it.
struct Judgement {
    flow: u32,
    exchange: u32,
    sample: Judged,
    rto: Option<Span>,
}

impl Recorder {
    /// A recorder of what `options` asks for on a network with these links, of flows of these groups.
    pub(crate) fn new(options: &Options, links: Vec<LinkName>, groups: impl Iterator<Item = u32>) -> Self {
        let asked = |kind| options.traces.contains(&kind);
        let sampled = [TraceKind::Queue, TraceKind::Share, TraceKind::Sent].into_iter().any(asked);
        let step = if options.trace_step_us == 0 { 1_000_000 } else { options.trace_step_us };
        Self {
            queue: asked(TraceKind::Queue),
            shares: asked(TraceKind::Share).then(|| Box::new(Shares::new(step, links.len()))),
            sent: asked(TraceKind::Sent).then(|| Box::new(Sent::new(step, groups.collect()))),
            rto: asked(TraceKind::Rto),
            packets: asked(TraceKind::Packets),
            exchanges: asked(TraceKind::Exchanges),
            tcp: asked(TraceKind::Tcp),
            frames: asked(TraceKind::Frames),
            step,
            ahead: 0,
            next: if sampled { Instant::ORIGIN } else { Instant::NEVER },
            links,
            queue_rows: Vec::new(),
            rto_rows: Vec::new(),
            packet_rows: Vec::new(),
            tcp_rows: Vec::new(),
            frame_rows: Vec::new(),
            judgements: Vec::new(),
        }
    }

    /// The same for a network whose clock is so many microseconds ahead of the run's.
    pub(crate) fn ahead_by(self, micros: u64) -> Self {
        Self { ahead: micros, ..self }
    }

    /// Whether a sample is due at or before `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// Takes the samples that are due at or before `now`; `occupancy` tells bytes and packets of a link's queue at a point
    /// in time.
    pub(crate) fn sample(&mut self, now: Instant, mut occupancy: impl FnMut(usize, Instant) -> (u64, u64)) {
        while self.next <= now {
            let t_us = self.next.as_micros();
            if self.queue {
                for (place, link) in self.links.iter().enumerate() {
                    let (bytes, packets) = occupancy(place, self.next);
                    self.queue_rows.push(QueueSample { link: link.clone(), t_us, bytes, packets });
                }
            }
            self.next = Instant::from_micros(t_us.saturating_add(self.step));
        }
    }

    /// A link carried the packet that has this number there.
    #[inline]
    pub(crate) fn carried(&mut self, now: Instant, link: usize, number: u64, bytes: u32) {
        if let Some(shares) = &mut self.shares {
            shares.carried(Instant::from_micros(now.as_micros() - self.ahead), link, number, bytes);
        }
    }

    /// The packet carried last goes on over another link, where it has this number.
    #[inline]
    pub(crate) fn goes_on(&mut self, link: usize, number: u64) {
        if let Some(shares) = &mut self.shares {
            shares.goes_on(link, number);
        }
    }

    /// The packet carried last is the copy of a request and has arrived.
    #[inline]
    pub(crate) fn asked(&mut self, tag: &Tag) {
        if let Some(shares) = &mut self.shares {
            shares.asked(tag);
        }
    }

    /// So many bytes of the packet carried last were of use.
    #[inline]
    pub(crate) fn useful(&mut self, bytes: u32) {
        if let Some(shares) = &mut self.shares {
            shares.useful(bytes);
        }
    }

    /// The copy of a request was of use, and with it its exchange is over.
    #[inline]
    pub(crate) fn useful_request(&mut self, tag: &Tag) {
        if let Some(shares) = &mut self.shares {
            shares.useful_request(tag);
        }
    }

    /// A copy left; if somebody acknowledges it, its sender waits so long.
    #[inline]
    pub(crate) fn left(&mut self, tag: &Tag, wait: Option<Wait>) {
        if self.rto || self.sent.is_some() {
            self.note(tag, wait);
        }
    }

    #[cold]
    fn note(&mut self, tag: &Tag, wait: Option<Wait>) {
        if let Some(sent) = &mut self.sent {
            sent.left(tag.sent, tag);
        }
        if let Some(wait) = wait.filter(|_| self.rto) {
            self.rto_rows.push(TimerSample {
                flow: tag.flow,
                exchange: tag.exchange,
                copy: u32::from(tag.copy),
                t_us: tag.sent.as_micros(),
                wait_us: wait.span.as_micros(),
                reason: wait.reason.name(),
            });
        }
    }

    #[inline]
    pub(crate) fn packet(&mut self, now: Instant, event: &'static str, link: usize, packet: &Packet, bytes: u32) {
        if self.packets {
            self.tell(now, event, link, packet, bytes);
        }
    }

    #[cold]
    fn tell(&mut self, now: Instant, event: &'static str, link: usize, packet: &Packet, bytes: u32) {
        let (tag, inside) = (&packet.tag, contents(packet));
        self.packet_rows.push(PacketEvent {
            t_us: now.as_micros() - self.ahead,
            event,
            link: self.links[link].clone(),
            flow: tag.flow,
            exchange: tag.exchange,
            copy: u32::from(tag.copy),
            bytes,
            offset: inside.offset,
            length: inside.length,
            ack: inside.ack,
            again: inside.again,
        });
    }

    /// The packet that was reported last did not get into the queue after all.
    #[inline]
    pub(crate) fn dropped(&mut self, event: &'static str) {
        if let Some(row) = self.packet_rows.last_mut() {
            row.event = event;
        }
    }

    /// How a sender of TCP stands. Asked for with `tcp`.
    pub(crate) fn sender(&mut self, now: Instant, flow: u32, progress: &Progress, full_segment: u32) {
        let bits = f64::from(full_segment) * 8.0;
        self.tcp_rows.push(TcpSample {
            t_us: now.as_micros(),
            flow,
            cwnd: progress.window,
            ssthresh: progress.threshold,
            in_flight: progress.flight.pipe,
            state: progress.state.name(),
            phase: progress.phase,
            pacing_bps: progress.pacing.map(|segments| segments * bits),
            rto_us: progress.timeout,
            srtt_us: progress.srtt,
        });
    }

    /// A frame was on the air until now, from one node to another. Asked for with `frames`.
    #[cold]
    pub(crate) fn frame(
        &mut self,
        now: Instant,
        [from, to]: [u32; 2],
        kind: &'static str,
        lasted: Span,
        fate: &'static str,
    ) {
        let name = |node: u32| self.links.get(node as usize).cloned().unwrap_or_default();
        self.frame_rows.push(FrameEvent {
            // What began before the run did is told from its beginning.
            t_us: now.as_micros().saturating_sub(self.ahead + u64::from(lasted.as_micros())),
            us: lasted.as_micros(),
            node: name(from),
            to: name(to),
            kind,
            fate,
        });
    }

    /// A response was accepted. Asked for with the exchanges.
    pub(crate) fn judged(&mut self, tag: &Tag, sample: Judged, rto: Option<Span>) {
        self.judgements.push(Judgement { flow: tag.flow, exchange: tag.exchange, sample, rto });
    }

    /// Hands over what was recorded. The rows of the exchanges stand in the order of clients and exchanges.
    pub(crate) fn give(mut self, outcome: &mut Outcome) {
        self.judgements.sort_unstable_by_key(|judgement| (judgement.flow, judgement.exchange));
        let mut rows = outcome.exchanges.iter_mut().peekable();
        for Judgement { flow, exchange, sample, rto } in self.judgements {
            // Both are sorted; one without a row takes none from those behind it.
            while rows.next_if(|row| (row.flow, row.exchange) < (flow, exchange)).is_some() {}
            if let Some(row) = rows.next_if(|row| (row.flow, row.exchange) == (flow, exchange)) {
                row.grade = Some(sample.grade.name());
                row.named_copy = sample.named.map(u32::from);
                row.sample_us = Some(sample.sample_us);
                row.true_us = Some(sample.true_us);
                row.rto_us = rto.map(Span::as_micros);
            }
        }
        outcome.queue_trace = self.queue_rows;
        // The last window may be shorter; it is there even if nothing ever happened.
        let windows = (self.next.as_micros() / self.step).max(1) as usize;
        outcome.share_trace = self.shares.map_or_else(Vec::new, |shares| shares.rows(windows, &self.links));
        outcome.sent_trace = self.sent.map_or_else(Vec::new, |sent| sent.rows(windows));
        outcome.rto_trace = self.rto_rows;
        outcome.packets = self.packet_rows;
        outcome.tcp_trace = self.tcp_rows;
        outcome.frames = self.frame_rows;
    }
}
