//! A socket and the stack that speaks through it.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use millpond_coap::{Cause, Endpoint, Event as Trace, Output};
use millpond_control::Instant;

use super::Events;
use crate::{
    Happened,
    dtls::{Link, SessionChange, SessionEvent, Sessions},
    security::{PeerIdentity, ServerName, ServerSecurity},
    transfer::CoapStack,
    udp::{Address, BoundSocket, Inbox, Outbox, SocketError},
    watch::Watch,
};

/// Refusals that are kept until somebody asks for them.
const MOST_REFUSED: usize = 64;

/// A stack over datagrams, under DTLS or not.
pub(crate) type DatagramStack = CoapStack<Endpoint<Address>>;

type Complained = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A socket, the stack behind it, and what waits to leave.
pub(crate) struct SocketStack {
    /// Its place among those of its task.
    at: usize,
    pub(crate) stack: DatagramStack,
    /// The sessions between the two, if datagrams are under DTLS.
    pub(crate) sessions: Option<Box<Sessions>>,
    udp: std::sync::Arc<BoundSocket>,
    outbox: Outbox,
    /// When the stack wants to be asked again.
    pub(crate) next: Option<Instant>,
    complained: Option<Complained>,
    is_ready: bool,
    was_full: bool,
    /// What the kernel refused lately because of whom it was for.
    refused: Vec<SocketError>,
    /// Peers share a path that have proved the same identity.
    pub(crate) shares_by_identity: bool,
    /// When a request last left from here.
    pub(crate) used: Instant,
}

impl std::fmt::Debug for SocketStack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketStack")
            .field("udp", &self.udp)
            .field("outbox", &self.outbox.len())
            .finish_non_exhaustive()
    }
}

impl SocketStack {
    pub(crate) fn new(
        at: usize,
        udp: impl Into<std::sync::Arc<BoundSocket>>,
        stack: DatagramStack,
        sessions: Option<Sessions>,
    ) -> Self {
        Self {
            at,
            stack,
            sessions: sessions.map(Box::new),
            udp: udp.into(),
            outbox: Outbox::default(),
            next: None,
            complained: None,
            is_ready: true,
            was_full: false,
            refused: Vec::new(),
            shares_by_identity: false,
            used: Instant::ORIGIN,
        }
    }

    /// Heeds of what the network complains about from now on only what is about a datagram of its own.
    pub(crate) fn vet_complaints(&mut self) {
        self.outbox.remember();
    }

    /// Its socket.
    pub(crate) fn udp(&self) -> &BoundSocket {
        &self.udp
    }

    /// Where its socket is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        self.udp.local()
    }

    /// Whether there is something to do: datagrams to be received, or room for those that wait to leave. While any wait
    /// nothing is received, so that a full socket slows down the client.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.outbox.is_empty() {
            return self.udp.poll_writable(cx);
        }
        if self.is_ready {
            return Poll::Ready(());
        }
        let udp = &self.udp;
        let complained = self.complained.get_or_insert_with(|| {
            let udp = std::sync::Arc::clone(udp);
            Box::pin(async move { udp.complained().await })
        });
        if complained.as_mut().poll(cx).is_ready() {
            self.complained = None;
        } else {
            ready!(udp.poll_readable(cx));
        }
        self.is_ready = true;
        Poll::Ready(())
    }

    /// What waits to leave could not yet.
    pub(crate) fn is_full(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Takes in what has arrived, one batch after the other, and hands over what leaves. The stack is drained after every
    /// datagram.
    pub(crate) fn receive(
        &mut self,
        now: impl Fn() -> Instant,
        inbox: &mut Inbox,
        watch: &mut Watch,
        events: &mut Events,
        mut complaint: impl FnMut(SocketError),
    ) {
        /// Batches before others get their turn.
        const BATCHES: usize = 8;
        if self.is_full() || !std::mem::take(&mut self.is_ready) {
            return;
        }
        let udp = std::sync::Arc::clone(&self.udp);
        self.complaints(&mut complaint);
        for _ in 0..BATCHES {
            // Else it is what the network said of an earlier datagram; the next call receives again.
            let Ok(is_all) = inbox.fill(&udp) else {
                self.complaints(&mut complaint);
                continue;
            };
            if inbox.is_empty() {
                return;
            }
            let now = now();
            for (from, by_group, datagram) in inbox.each(&udp) {
                match &mut self.sessions {
                    None if by_group => self.stack.receive_by_group(now, from, datagram),
                    None => self.stack.receive(now, from, datagram),
                    // No session stands with a group.
                    Some(_) if by_group => continue,
                    Some(sessions) => sessions.receive(now, from, datagram, &mut self.outbox),
                }
                self.drain(now, watch, events);
            }
            self.flush(now, watch);
            if is_all {
                return;
            }
            if self.is_full() {
                break;
            }
        }
        self.is_ready = true;
    }

    /// Reports what the network says about datagrams of ours.
    fn complaints(&self, mut tell: impl FnMut(SocketError)) {
        self.udp.complaints(|error| {
            if self.outbox.has_sent(error.to, &error.start) {
                tell(error);
            }
        });
    }

    /// Asks the stack for all its output, and hands over what leaves.
    pub(crate) fn poll(&mut self, now: Instant, watch: &mut Watch, events: &mut Events) {
        if let Some(sessions) = &mut self.sessions {
            sessions.wake(now, &mut self.outbox);
        }
        self.drain(now, watch, events);
    }

    /// The stack gets the messages that came in within sessions, and is asked for all its output.
    fn drain(&mut self, now: Instant, watch: &mut Watch, events: &mut Events) {
        if let Some(secure) = &mut self.sessions {
            let messages = secure.take();
            for (from, place) in &messages.1 {
                self.stack.receive(now, *from, messages.0.get(place.clone()).unwrap_or_default());
                self.take_output(now, watch, events);
            }
            if let Some(secure) = &mut self.sessions {
                secure.give_back(messages);
            }
        }
        self.take_output(now, watch, events);
        let sessions = self.sessions.as_ref().and_then(|sessions| sessions.next());
        self.next = self.next.into_iter().chain(sessions).min();
    }

    fn take_output(&mut self, now: Instant, watch: &mut Watch, events: &mut Events) {
        let Self { at, stack, sessions, outbox, next, .. } = self;
        loop {
            let mut acknowledged = None;
            let sample = match stack.poll(now) {
                Output::Transmit(transmit) => {
                    watch.transmit(now, &transmit);
                    match sessions {
                        None => outbox.push(transmit.to, transmit.bytes),
                        // One that is over takes no messages: a peer that waits for an answer was told.
                        Some(sessions) => drop(sessions.send(now, transmit.to, transmit.bytes, outbox)),
                    }
                    if let Cause::Exchange { id, copy: 0, .. } = transmit.cause
                        && events.requests.has_acknowledged()
                    {
                        acknowledged = Some((id, false));
                    }
                    None
                }
                Output::Event(event) => {
                    events.event(*at, now, event);
                    None
                }
                Output::Trace(event) => {
                    events.trace(*at, now, &event);
                    if let Trace::Acknowledged { exchange, .. } = event {
                        acknowledged = Some((exchange, true));
                    }
                    watch.event(now, &event)
                }
                Output::Sleep(until, _) => return *next = Some(until),
                Output::Idle => return *next = None,
            };
            if let Some((from, sample)) = sample {
                watch.sample(now, from, &sample, stack.endpoint().view(from));
            }
            if let Some((exchange, is)) = acknowledged
                && let Some(id) = stack.request_of(exchange)
            {
                events.requests.acknowledged((*at, id), is);
            }
        }
    }

    /// A peer as the stack knows it: in a session that stands, or spoken to by the address of ours that it knows, or else by that
    /// which the kernel would choose.
    pub(crate) fn known_as(&self, peer: SocketAddr) -> Address {
        if !self.udp.names_source() {
            let outside = Address::of(peer);
            return self.sessions.as_ref().and_then(|sessions| sessions.inside(outside)).unwrap_or(outside);
        }
        let mut known = self.all_known_as(peer).filter(|known| known.session().is_some());
        known.next().or_else(|| self.viewed_as(peer)).unwrap_or_else(|| self.udp.way_to(peer))
    }

    /// A peer as the stack has something to say of it.
    pub(crate) fn viewed_as(&self, peer: SocketAddr) -> Option<Address> {
        let endpoint = self.stack.endpoint();
        self.all_known_as(peer).find(|known| endpoint.view(*known).is_some())
    }

    /// All that a peer may be to the stack: one for each of our addresses that it has spoken to.
    pub(crate) fn all_known_as(&self, peer: SocketAddr) -> impl Iterator<Item = Address> {
        let inside = |outside| self.sessions.as_ref().and_then(|sessions| sessions.inside(outside));
        self.by_each(peer).map(move |outside| inside(outside).unwrap_or(outside))
    }

    /// A peer, spoken to by each of our addresses.
    fn by_each(&self, peer: SocketAddr) -> impl Iterator<Item = Address> + use<> {
        let outside = Address::of(peer);
        (0..=self.udp.locals_met()).map(move |local| outside.by(local))
    }

    /// The way to a peer outside of sessions: by the address of ours by which it has one, or that which the kernel would choose.
    fn outside(&self, peer: SocketAddr) -> Address {
        let has_one = |outside: &Address| self.sessions.as_ref().is_some_and(|it| it.inside(*outside).is_some());
        self.by_each(peer).find(has_one).unwrap_or_else(|| self.udp.way_to(peer))
    }

    /// What there is with a peer for requests to a server of this name.
    pub(crate) fn link(&mut self, now: Instant, peer: SocketAddr, name: &ServerName) -> Link {
        let outside = self.outside(peer);
        self.sessions.as_mut().map_or(Link::None, |sessions| sessions.link(now, outside, name))
    }

    /// Who the other side of a session has proved to be.
    pub(crate) fn identity(&self, inside: Address) -> Option<&Arc<PeerIdentity>> {
        self.sessions.as_ref()?.identity(inside)
    }

    /// Begins a handshake for requests to a server of this name.
    pub(crate) fn connect(&mut self, now: Instant, peer: SocketAddr, name: ServerName) {
        let outside = self.outside(peer);
        let Some(sessions) = &mut self.sessions else { return };
        sessions.connect(now, outside, name, &mut self.outbox);
        self.next = self.next.into_iter().chain(sessions.next()).min();
    }

    /// Gives up a handshake to which a peer said nothing yet. False if there is none.
    pub(crate) fn cancel_handshake(&mut self, peer: SocketAddr) -> bool {
        let outside = self.sessions.is_some().then(|| self.outside(peer));
        self.sessions.as_mut().zip(outside).is_some_and(|(sessions, outside)| sessions.cancel_handshake(outside))
    }

    /// What happened to sessions since this was asked last. Before anybody hears of one that stands, its peer has the path of
    /// the identity that it has proved.
    pub(crate) fn session_events(&mut self, now: Instant) -> Vec<SessionEvent> {
        let Some(sessions) = &mut self.sessions else { return Vec::new() };
        let events = sessions.take_events();
        for event in events
            .iter()
            .filter(|event| self.shares_by_identity && matches!(event.what, SessionChange::Established { .. }))
        {
            if let Some(identity) = sessions.identity(event.inside) {
                // There are no more sessions than peers; one too many has the path of its address.
                let _ = self.stack.endpoint_mut().share_path(now, event.inside, identity);
            }
        }
        events
    }

    /// Further sessions are made with this.
    pub(crate) fn secure(&mut self, security: &ServerSecurity) {
        if let Some(sessions) = &mut self.sessions
            && let Err(error) = sessions.renew(security)
        {
            tracing::error!(target: "millpond_live", "sessions are made with what there was before: {error}");
        }
    }

    /// Tells all peers that their sessions end.
    pub(crate) fn close_sessions(&mut self, now: Instant, watch: &mut Watch) {
        if let Some(sessions) = &mut self.sessions {
            sessions.close_all(now, &mut self.outbox);
            self.flush(now, watch);
        }
    }

    /// Peers to whom nothing can be sent, as the kernel has said since this was asked last.
    pub(crate) fn take_refused(&mut self) -> Vec<SocketError> {
        std::mem::take(&mut self.refused)
    }

    /// Hands over what waits to leave.
    pub(crate) fn flush(&mut self, now: Instant, watch: &mut Watch) {
        if self.outbox.is_empty() {
            return;
        }
        let refused = &mut self.refused;
        self.outbox.flush(now, &self.udp, |unsent| {
            let (to, reason) = (unsent.to.peer(), unsent.to_string());
            watch.unsent += 1;
            if unsent.is_for_good() && refused.len() < MOST_REFUSED {
                refused.push(SocketError { to, reason: reason.clone(), is_refused: false, start: Vec::new() });
            }
            watch.tell(now, to, || Happened::Complaint { reason });
        });
        if self.is_full() && !self.was_full {
            watch.backlogs += 1;
            let datagrams = self.outbox.len();
            watch.tell(now, self.udp.local(), || Happened::Backlog { datagrams });
        }
        self.was_full = self.is_full();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use millpond_coap::IdGenerator;
    use millpond_control::{ChanceSeed, Preset};

    use super::*;
    use crate::udp::Role;

    /// RFC 7252 §4.2: anybody can complain in the network's name.
    #[tokio::test]
    async fn complaints_about_what_this_socket_did_not_send_are_told_to_nobody() {
        let chance = ChanceSeed::new(1);
        let endpoint =
            Endpoint::new(Default::default(), Preset::RFC7252.build(), chance, 0, IdGenerator::counted()).unwrap();
        let stack = CoapStack::new(endpoint, Default::default(), chance).unwrap();
        let udp = BoundSocket::bind("127.0.0.1:0".parse().unwrap(), Role::Client).unwrap();
        let mut socket = SocketStack::new(0, udp, stack, None);
        let [first, second] = [0; 2].map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let [first, second] = [first, second].map(|socket| socket.local_addr().unwrap());
        for gone in [first, second] {
            // Nothing is known of what left before.
            socket.outbox = Outbox::default();
            socket.vet_complaints();
            socket.outbox.push(Address::of(gone), b"\x40\x01\x12\x34");
            socket.outbox.flush(Instant::ORIGIN, &socket.udp, |unsent| panic!("{unsent:?}"));
        }
        let mut told = Vec::new();
        while told.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            socket.complaints(|error| told.push(error.to));
        }
        assert_eq!(told, [second]);
    }
}
