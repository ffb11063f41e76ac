//! Datagrams on their way to the kernel.

use std::{collections::VecDeque, fmt, io, net::SocketAddr, ops::Range};

use quinn_udp::Transmit;

use millpond_control::Instant;

use super::{Address, BoundSocket, choices::Choices};

/// Datagrams that wait to be handed to the kernel, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    waiting: VecDeque<(Address, Range<usize>)>,
    lately: Option<Lately>,
    choices: Choices,
}

/// How datagrams began that left lately, and to whom they went.
#[derive(Debug, Default)]
struct Lately(VecDeque<(SocketAddr, [u8; START], usize)>);

/// Bytes of a datagram that are remembered: a token, or the random value of a ClientHello, is among them.
pub(super) const START: usize = 64;
/// Datagrams that are remembered.
const MOST_LATELY: usize = 1_024;

impl Lately {
    fn add(&mut self, to: SocketAddr, datagram: &[u8]) {
        let (mut start, length) = ([0; START], datagram.len().min(START));
        start.iter_mut().zip(datagram).for_each(|(place, byte)| *place = *byte);
        if self.0.len() >= MOST_LATELY {
            self.0.pop_front();
        }
        self.0.push_back((to, start, length));
    }
}

/// A datagram that the kernel did not take, and never will.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) to: Address,
    pub(crate) length: usize,
    pub(crate) why: io::Error,
}

impl Unsent {
    /// Whether the next copy of this datagram would fare no better: there is no way to its peer, or none that is allowed, or it is
    /// too long for the way. Full queues pass.
    pub(crate) fn is_for_good(&self) -> bool {
        use io::ErrorKind::{AddrNotAvailable, HostUnreachable, InvalidInput, NetworkUnreachable, PermissionDenied};
        /// ENXIO and ENODEV: the zone of the address is no interface.
        const NO_INTERFACE: [i32; 2] = [6, 19];
        let by_kind = [AddrNotAvailable, HostUnreachable, InvalidInput, NetworkUnreachable, PermissionDenied];
        self.is_too_long()
            || by_kind.contains(&self.why.kind())
            || (cfg!(unix) && self.why.raw_os_error().is_some_and(|number| NO_INTERFACE.contains(&number)))
    }
}

impl Unsent {
    /// The system sends no datagram of this length there.
    fn is_too_long(&self) -> bool {
        /// EMSGSIZE and WSAEMSGSIZE.
        const TOO_LONG: i32 = if cfg!(target_os = "linux") {
            90
        } else if cfg!(windows) {
            10_040
        } else {
            40
        };
        self.why.raw_os_error() == Some(TOO_LONG)
    }
}

/// In words, and with what to do.
impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)?;
        if self.is_too_long() {
            write!(f, ": a datagram of {} bytes; use smaller blocks", self.length)?;
        }
        Ok(())
    }
}

impl Outbox {
    /// Remembers from now on what left.
    pub(crate) fn remember(&mut self) {
        self.lately.get_or_insert_default();
    }

    /// Whether a datagram that began so went there lately; true where nothing is remembered. What came back with a complaint
    /// of the network must be ours, since anybody can complain in the network's name (RFC 7252 §4.2). Where less came back
    /// than a message ID it cannot be reported.
    pub(crate) fn has_sent(&self, to: SocketAddr, start: &[u8]) -> bool {
        let Some(Lately(lately)) = &self.lately else { return true };
        let start = start.get(..start.len().min(START)).unwrap_or_default();
        let is_it = |(peer, sent, length): &(SocketAddr, [u8; START], usize)| {
            *peer == to && start.len() <= *length && sent.starts_with(start)
        };
        start.len() >= 4 && lately.iter().rev().any(is_it)
    }

    pub(crate) fn push(&mut self, to: Address, datagram: &[u8]) {
        if let Some(lately) = &mut self.lately {
            lately.add(to.peer(), datagram);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.waiting.push_back((to, start..self.bytes.len()));
    }

    /// Datagrams that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes everything out, as if the kernel had taken it.
    #[cfg(any(fuzzing, test))]
    pub(crate) fn take_all(&mut self) -> Vec<(Address, Vec<u8>)> {
        let bytes = std::mem::take(&mut self.bytes);
        self.waiting.drain(..).map(|(to, range)| (to, bytes[range].to_vec())).collect()
    }

    /// Hands over as many as the kernel takes. What it refuses for good is told; what it has no room for stays.
    pub(crate) fn flush(&mut self, now: Instant, socket: &BoundSocket, mut unsent: impl FnMut(Unsent)) {
        // Of a run that was refused: what is too long for a link is cut by the network only where it comes alone.
        let mut alone = 0_usize;
        while let Some((to, range)) = self.waiting.front().cloned() {
            let most = if alone > 0 { 1 } else { socket.most_segments() };
            alone = alone.saturating_sub(1);
            let (segments, range) = self.run(range, to, most);
            let together = if segments == 1 && BoundSocket::sends_many() { self.together(now, socket) } else { 0 };
            let sent = if together > 1 {
                self.send_many(socket, together)
            } else {
                let length = range.len();
                let contents = self.bytes.get(range).unwrap_or_default();
                let transmit = Transmit {
                    destination: to.peer(),
                    ecn: None,
                    contents,
                    segment_size: (segments > 1).then(|| length / segments),
                    src_ip: socket.source(to),
                };
                socket.send(&transmit).map(|()| segments)
            };
            match sent {
                Ok(sent) => drop(self.waiting.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) if segments > 1 => alone = segments,
                Err(why) => {
                    if let Some((to, range)) = self.waiting.pop_front() {
                        unsent(Unsent { to, length: range.len(), why });
                    }
                }
            }
        }
        self.bytes.clear();
    }

    /// How many of those at the front leave from the right address without a word about it.
    fn together(&mut self, now: Instant, socket: &BoundSocket) -> usize {
        /// Datagrams in one call.
        const AT_ONCE: usize = 64;
        let most = self.waiting.len().min(AT_ONCE);
        if !socket.names_source() || most < 2 {
            return most;
        }
        let choices = &mut self.choices;
        let is_free = |(to, _): &&(Address, Range<usize>)| {
            socket.source(*to).is_none_or(|source| choices.is(now, to.peer(), source, |peer| socket.choice_for(peer)))
        };
        self.waiting.iter().take(most).take_while(is_free).count()
    }

    /// Hands over so many of those at the front in one call, each to a peer of its own. Returns how many were taken, at least one.
    fn send_many(&self, socket: &BoundSocket, count: usize) -> io::Result<usize> {
        let datagrams = self.waiting.iter().take(count).map(|(to, range)| {
            let contents = self.bytes.get(range.clone()).unwrap_or_default();
            (to.peer(), contents)
        });
        socket.send_many(datagrams)
    }

    /// The first datagrams as far as they go to one peer and are equally long: the kernel takes them as one. Returns
    /// how many they are and where they stand.
    fn run(&self, first: Range<usize>, to: Address, most: usize) -> (usize, Range<usize>) {
        /// What one run may hold: less than the longest datagram of UDP.
        const MOST_BYTES: usize = 60_000;
        let (mut segments, mut end) = (1, first.end);
        for (other, range) in self.waiting.iter().skip(1) {
            let is_alike = *other == to && range.start == end && range.len() == first.len();
            if !is_alike || segments >= most || range.end - first.start > MOST_BYTES || first.is_empty() {
                break;
            }
            (segments, end) = (segments + 1, range.end);
        }
        (segments, first.start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_counts_if_it_is_about_what_left_lately() {
        let (here, there) = ("192.0.2.1:5683".parse().unwrap(), "192.0.2.2:5683".parse().unwrap());
        let mut outbox = Outbox::default();
        assert!(outbox.has_sent(here, b"whatever"), "nothing is remembered");
        outbox.remember();
        let request = [&b"\x44\x01\x12\x34tokn"[..], &[0xb1; 100]].concat();
        outbox.push(Address::of(here), &request);
        for (to, start, is_ours) in [
            (here, &request[..], true),
            (here, &request[..28], true),
            (here, &request[..4], true),
            // What a router returns at least: nothing beyond the header of UDP.
            (here, b"", false),
            (here, &request[..3], false),
            (there, &request[..28], false),
            (here, b"\x44\x01\x12\x35tokn", false),
            (here, b"\x44\x01\x12\x34tokm", false),
        ] {
            assert_eq!(outbox.has_sent(to, start), is_ours, "{start:?}");
        }
        outbox.push(Address::of(here), b"\x40\x00\x12\x36");
        assert!(!outbox.has_sent(here, b"\x40\x00\x12\x36\x00"), "it was shorter");
        (0..MOST_LATELY).for_each(|_| outbox.push(Address::of(there), b"others"));
        assert!(!outbox.has_sent(here, &request));
    }
}
