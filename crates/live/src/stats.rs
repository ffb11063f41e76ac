//! Counts and round trips, for people and for Prometheus.

use std::{net::SocketAddr, time::Duration};

use millpond_coap::{Counters, Repeats};

/// What a client or server has done, and what it knows of its peers.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Peers with which it had exchanges, in the order of their addresses. Those that merely asked are none.
    pub peers: Vec<PeerStats>,
    /// Datagrams that left.
    pub sent: u64,
    /// Well-formed messages that came in.
    pub received: u64,
    /// Copies of confirmable messages after the first.
    pub retransmissions: u64,
    /// Of these, copies that were not needed, as [`PeerStats::unnecessary_retransmissions`].
    pub unnecessary_retransmissions: u64,
    /// Messages that came in once more and were recognised.
    pub duplicates: u64,
    /// Copies of requests that were not answered, because their answers were on their way ([`Duplicates::Calm`](crate::Duplicates::Calm)).
    pub withheld: u64,
    /// What became of copies of requests that had been answered, and why, at such a server; `withheld` is of these, too.
    pub repeats: Repeats,
    /// Requests handed to handlers.
    pub requests: u64,
    /// Requests of ours that were answered.
    pub answered: u64,
    /// Exchanges of ours that ended otherwise.
    pub failed: u64,
    /// Messages that nothing waited for.
    pub late: u64,
    /// Datagrams that were not processed.
    pub ignored: u64,
    /// Exchanges under way.
    pub exchanges: u64,
    /// Bytes held by endpoints, connections and what stands above them.
    pub memory: usize,
    /// UDP sockets.
    pub sockets: usize,
    /// Sessions of DTLS that stand.
    pub sessions: usize,
    /// Handshakes of DTLS under way.
    pub handshakes: usize,
    /// TCP connections.
    pub connections: usize,
    /// Observers.
    pub observers: usize,
    /// Requests answered with 5.03 or 4.29 because too much was under way.
    pub overloaded: u64,
    /// When a server's certificate, or one of those behind it, expires, in seconds since 1970.
    pub certificate_expiry: Option<u64>,
    /// Requests refused with 4.01 or 4.03 because their sender may not make them.
    pub forbidden: u64,
    /// Requests answered with 4.29 because their sender, or its network, asks too often.
    pub limited: u64,
    /// Requests whose sender was asked to show first that it is at its address: it got less than all, or nothing else.
    pub unverified: u64,
    /// Times that a socket's buffer was full.
    pub backlogs: u64,
    /// Datagrams that the kernel refused for good.
    pub unsent: u64,
    /// Secure sessions of a server that did not come about, or broke.
    pub insecure: u64,
    /// Connections of a server that had to give way to others, or held more than their share.
    pub evicted: u64,
    /// Panics of what an application handed to a server, beneath its handlers: traces, controllers, keys. A worker begins
    /// anew then.
    pub panics: u64,
}

/// What is known of one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStats {
    /// Its address.
    pub address: SocketAddr,
    /// Whether the address is its own: we asked it for something, or it acknowledged or answered something of ours, proved
    /// the address (RFC 9175) or has a secure session.
    pub is_validated: bool,
    /// Confirmable messages sent to it, every copy counted.
    pub transmissions: u64,
    /// Copies after the first.
    pub retransmissions: u64,
    /// Copies that were not needed: an acknowledgement came for them after one had come already.
    pub unnecessary_retransmissions: u64,
    /// Retransmissions that were needed for certain: the answer says that no transmission before had arrived, which it can
    /// if the controller has transmissions distinguished. Of all others that are not unnecessary nothing is known.
    pub needed_retransmissions: u64,
    /// Round trips measured.
    pub round_trips: u64,
    /// The last of them.
    pub last_round_trip: Option<Duration>,
    /// The shortest of them.
    pub shortest_round_trip: Option<Duration>,
    /// The controller's base round trip, the one of the path without a queue, if it keeps one.
    pub base_round_trip: Option<Duration>,
    /// The controller's smoothed round-trip time.
    pub smoothed: Option<Duration>,
    /// The controller's timeout.
    pub rto: Option<Duration>,
    /// A backed-off wait that the controller keeps for the next exchange.
    pub carried: Option<Duration>,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// For how long nothing was sent to it that it acknowledges, and nothing measured.
    pub quiet: Duration,
}

impl Stats {
    /// Adds what an endpoint counted.
    pub(crate) fn add(&mut self, counters: &Counters) {
        self.sent += counters.sent.total();
        self.received += counters.received.total();
        self.retransmissions += counters.retransmissions;
        self.duplicates += counters.duplicates;
        self.withheld += counters.repeats.withheld;
        self.repeats += counters.repeats;
        self.requests += counters.requests;
        self.answered += counters.answered;
        self.failed += counters.failed.total();
        self.late += counters.late;
        self.ignored += counters.ignored.total();
    }

    /// Adds those of another worker.
    pub(crate) fn join(&mut self, other: Self) {
        self.peers.extend(other.peers);
        self.peers.sort_by_key(|peer| peer.address);
        self.sent += other.sent;
        self.received += other.received;
        self.retransmissions += other.retransmissions;
        self.unnecessary_retransmissions += other.unnecessary_retransmissions;
        self.duplicates += other.duplicates;
        self.withheld += other.withheld;
        self.repeats += other.repeats;
        self.requests += other.requests;
        self.answered += other.answered;
        self.failed += other.failed;
        self.late += other.late;
        self.ignored += other.ignored;
        self.exchanges += other.exchanges;
        self.memory += other.memory;
        self.sockets += other.sockets;
        self.sessions += other.sessions;
        self.handshakes += other.handshakes;
        self.connections += other.connections;
        self.observers += other.observers;
        self.overloaded += other.overloaded;
        self.certificate_expiry = self.certificate_expiry.or(other.certificate_expiry);
        self.forbidden += other.forbidden;
        self.limited += other.limited;
        self.unverified += other.unverified;
        self.backlogs += other.backlogs;
        self.unsent += other.unsent;
        self.insecure += other.insecure;
        self.evicted += other.evicted;
        self.panics += other.panics;
    }
}
