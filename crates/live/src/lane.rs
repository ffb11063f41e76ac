//! A socket and the host that speaks through it.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use millpond_coap::{Cause, Event as Below};
use millpond_control::Instant;
use tokio::io::Ready;

use crate::{
    Happened,
    transfer::{AskId, Event, Host, Output},
    udp::{Address, Inbox, Outbox, Port, PortError, Unsent},
    watch::Watch,
};

type Input = Pin<Box<dyn Future<Output = io::Result<Ready>> + Send>>;

/// A socket, the host behind it, and what waits to leave.
pub(crate) struct Lane {
    pub(crate) host: Host<Address>,
    port: std::sync::Arc<Port>,
    outbox: Outbox,
    /// When the host wants to be asked again.
    pub(crate) next: Option<Instant>,
    input: Option<Input>,
    is_ready: bool,
    was_full: bool,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("port", &self.port).field("outbox", &self.outbox.len()).finish_non_exhaustive()
    }
}

/// What takes the events of a lane's host.
pub(crate) trait Sink {
    fn event(&mut self, now: Instant, event: Event<'_, Address>);

    /// The host told something of a single exchange.
    fn told(&mut self, _now: Instant, _event: &Below<'_, Address>) {}

    /// What the message of an ask is: acknowledged and awaiting its response, or on its way once more.
    fn acknowledged(&mut self, _ask: AskId, _is: bool) {}

    /// Whether it matters that a message of an ask leaves.
    fn has_acknowledged(&self) -> bool {
        false
    }
}

impl Lane {
    pub(crate) fn new(port: Port, host: Host<Address>) -> Self {
        Self {
            host,
            port: std::sync::Arc::new(port),
            outbox: Outbox::default(),
            next: None,
            input: None,
            is_ready: true,
            was_full: false,
        }
    }

    /// Where its socket is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        self.port.local()
    }

    /// Whether there is something to do: datagrams to be received, or room for those that wait to leave. While any wait
    /// nothing is received, so that a full socket slows down whoever asks.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.outbox.is_empty() {
            return self.port.poll_writable(cx).map(|_| ());
        }
        if self.is_ready {
            return Poll::Ready(());
        }
        let port = &self.port;
        let input = self.input.get_or_insert_with(|| {
            let port = std::sync::Arc::clone(port);
            Box::pin(async move { port.input().await })
        });
        let _ = ready!(input.as_mut().poll(cx));
        self.input = None;
        self.is_ready = true;
        Poll::Ready(())
    }

    /// What waits to leave could not yet.
    pub(crate) fn is_full(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Takes in what has arrived, one batch after the other, and hands over what leaves. The host is drained after every
    /// datagram. Returns whether anything came in.
    pub(crate) fn receive(
        &mut self,
        now: impl Fn() -> Instant,
        inbox: &mut Inbox,
        watch: &mut Watch,
        sink: &mut impl Sink,
        mut complaint: impl FnMut(PortError),
    ) -> bool {
        /// Batches before others get their turn.
        const BATCHES: usize = 8;
        if self.is_full() || !std::mem::take(&mut self.is_ready) {
            return false;
        }
        let mut came = false;
        self.port.complaints(&mut complaint);
        for _ in 0..BATCHES {
            match inbox.fill(&self.port) {
                Ok(true) => {}
                Ok(false) => return came,
                // What the network said of an earlier datagram; the next call receives again.
                Err(_) => {
                    self.port.complaints(&mut complaint);
                    continue;
                }
            }
            came = true;
            let now = now();
            for (from, datagram) in inbox.each(&self.port) {
                self.host.receive(now, from, datagram);
                Self::drain(&mut self.host, &mut self.outbox, &mut self.next, now, watch, sink);
            }
            self.flush(now, watch);
            if self.is_full() {
                break;
            }
        }
        self.is_ready = true;
        came
    }

    /// Asks the host for all its output, and hands over what leaves.
    pub(crate) fn poll(&mut self, now: Instant, watch: &mut Watch, sink: &mut impl Sink) {
        Self::drain(&mut self.host, &mut self.outbox, &mut self.next, now, watch, sink);
    }

    fn drain(
        host: &mut Host<Address>,
        outbox: &mut Outbox,
        next: &mut Option<Instant>,
        now: Instant,
        watch: &mut Watch,
        sink: &mut impl Sink,
    ) {
        loop {
            let mut acknowledged = None;
            let sample = match host.poll(now) {
                Output::Transmit(transmit) => {
                    watch.transmit(now, &transmit);
                    outbox.push(transmit.to, transmit.bytes);
                    if let Cause::Exchange { id, copy: 0, .. } = transmit.cause
                        && sink.has_acknowledged()
                    {
                        acknowledged = Some((id, false));
                    }
                    None
                }
                Output::Event(event) => {
                    sink.event(now, event);
                    None
                }
                Output::Trace(event) => {
                    sink.told(now, &event);
                    if let Below::Acknowledged { exchange, .. } = event {
                        acknowledged = Some((exchange, true));
                    }
                    watch.event(now, &event)
                }
                Output::Sleep(until, _) => return *next = Some(until),
                Output::Idle => return *next = None,
            };
            if let Some((from, sample)) = sample {
                watch.sample(now, from, &sample, host.endpoint().view(from));
            }
            if let Some((exchange, is)) = acknowledged
                && let Some(ask) = host.ask_of(exchange)
            {
                sink.acknowledged(ask, is);
            }
        }
    }

    /// Hands over what waits to leave.
    pub(crate) fn flush(&mut self, now: Instant, watch: &mut Watch) {
        if self.outbox.is_empty() {
            return;
        }
        self.outbox.flush(&self.port, |Unsent { to, why }| {
            watch.unsent += 1;
            watch.tell(now, to.peer(), || Happened::Complaint { reason: why.to_string() });
        });
        if self.is_full() && !self.was_full {
            watch.backlogs += 1;
            let datagrams = self.outbox.len();
            watch.tell(now, self.port.local(), || Happened::Backlog { datagrams });
        }
        self.was_full = self.is_full();
    }
}
