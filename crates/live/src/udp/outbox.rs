//! Datagrams on their way to the kernel.

use std::{collections::VecDeque, io, ops::Range};

use quinn_udp::Transmit;

use super::{Address, Port};

/// Datagrams that wait to be handed to the kernel, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    waiting: VecDeque<(Address, Range<usize>)>,
}

/// A datagram that the kernel did not take, and never will.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) to: Address,
    pub(crate) why: io::Error,
}

impl Unsent {
    /// Whether the next datagram to this peer would fare no better: there is no way to it, or none that is allowed. Full
    /// queues pass, and what is too long for a link says nothing of what is shorter.
    pub(crate) fn is_for_good(&self) -> bool {
        use io::ErrorKind::{AddrNotAvailable, HostUnreachable, InvalidInput, NetworkUnreachable, PermissionDenied};
        /// ENXIO and ENODEV: the zone of the address is no interface.
        const NO_INTERFACE: [i32; 2] = [6, 19];
        let by_kind = [AddrNotAvailable, HostUnreachable, InvalidInput, NetworkUnreachable, PermissionDenied];
        by_kind.contains(&self.why.kind())
            || (cfg!(unix) && self.why.raw_os_error().is_some_and(|number| NO_INTERFACE.contains(&number)))
    }
}

impl Outbox {
    pub(crate) fn push(&mut self, to: Address, datagram: &[u8]) {
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
    #[cfg(test)]
    pub(crate) fn take_all(&mut self) -> Vec<(Address, Vec<u8>)> {
        let bytes = std::mem::take(&mut self.bytes);
        self.waiting.drain(..).map(|(to, range)| (to, bytes[range].to_vec())).collect()
    }

    /// Hands over as many as the kernel takes. What it refuses for good is told; what it has no room for stays.
    pub(crate) fn flush(&mut self, port: &Port, mut unsent: impl FnMut(Unsent)) {
        while let Some((to, range)) = self.waiting.front().cloned() {
            let (segments, range) = self.run(range, to, port.most_segments());
            let sent = if segments == 1 && self.waiting.len() > 1 && port.sends_many() {
                self.send_many(port)
            } else {
                let length = range.len();
                let contents = self.bytes.get(range).unwrap_or_default();
                let transmit = Transmit {
                    destination: to.peer(),
                    ecn: None,
                    contents,
                    segment_size: (segments > 1).then(|| length / segments),
                    src_ip: port.source(to),
                };
                port.send(&transmit).map(|()| segments)
            };
            match sent {
                Ok(sent) => drop(self.waiting.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A refused run may have failed because it was one; then the pieces go one by one.
                Err(_) if segments > 1 && port.most_segments() == 1 => {}
                Err(why) => {
                    for (to, _) in self.waiting.drain(..segments) {
                        let why = why.raw_os_error().map_or_else(|| why.kind().into(), io::Error::from_raw_os_error);
                        unsent(Unsent { to, why });
                    }
                }
            }
        }
        self.bytes.clear();
    }

    /// Hands over those at the front in one call, each to a peer of its own. Returns how many were taken, at least one.
    fn send_many(&self, port: &Port) -> io::Result<usize> {
        /// Datagrams in one call.
        const AT_ONCE: usize = 64;
        let datagrams = self.waiting.iter().take(AT_ONCE).map(|(to, range)| {
            let contents = self.bytes.get(range.clone()).unwrap_or_default();
            (to.peer(), contents)
        });
        port.send_many(datagrams)
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
