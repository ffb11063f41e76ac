//! How long packets are, and whether the queues hold them.

use super::{
    Flights, FlowGroup, QueueLimit, SEGMENT_OVER_DATAGRAM, Scenario, ScenarioError, Traffic, Transfer, Transport,
};

/// What an opening segment has in options.
const OPENING: u64 = 8;
/// Version, code and message ID of a datagram (RFC 7252 §3).
const DATAGRAM: u64 = 4;

impl Scenario {
    /// Refuses a queue, or a link, that a packet of its own scenario never fits.
    pub(super) fn check_queues(&self, origin: &str) -> Result<(), ScenarioError> {
        let links = self.links();
        let kept = if self.path.is_some() { "path" } else { "network.links" };
        for flows in self.flow_groups() {
            let longest = self.longest_packets(&flows);
            let crossed = self.route(flows.group).into_iter().zip(longest);
            // What a proxy forwards has a token of its own.
            let proxy = self.proxy_of(&flows.clients);
            let beyond = proxy.map(|place| {
                let (own, theirs) =
                    (u64::from(self.proxies[place].token_length), u64::from(flows.clients.token_length));
                self.proxy_route(place).into_iter().zip(longest.map(|bytes| bytes - theirs + own))
            });
            let crossed = crossed.chain(beyond.into_iter().flatten());
            for (place, longest) in crossed.flat_map(|(places, longest)| places.into_iter().map(move |p| (p, longest)))
            {
                if let Some((name, link)) = links.get(place)
                    && let Some(mtu) = link.mtu
                    && mtu.0 < longest
                {
                    let problem = format!(
                        "a packet of {} has {longest} B, and this link carries none longer than {mtu}: nothing is \
                         sent in fragments here; write less payload, or let a body come in pieces, by transfer = {{ kind = \
                         \"blocks\", size = \"64 B\" }}",
                        flows.key()
                    );
                    return Err(ScenarioError::at_key(origin, &format!("{kept}.{name}.mtu"), problem));
                }
                if place == 0
                    && let Some(path) = &self.path
                    && let Some(problem) =
                        path.access.as_ref().and_then(|access| access.holds_back(&path.uplink, longest))
                {
                    let problem = format!("{}: {problem}", flows.key());
                    return Err(ScenarioError::at_key(origin, "path.access.duty_cycle", problem));
                }
                if let Some((name, link)) = links.get(place)
                    && let QueueLimit::Bytes(limit) = link.queue
                    && limit < longest
                {
                    let problem = format!(
                        "{limit} B are shorter than a packet of {}, which has {longest} B and would always be dropped: \
                         write at least \"{longest} B\"",
                        flows.key()
                    );
                    return Err(ScenarioError::at_key(origin, &format!("{kept}.{name}.queue"), problem));
                }
            }
        }
        Ok(())
    }

    /// Bytes of IP of the longest packets that a group surely causes, to the server and back. What names a copy, what a
    /// burst adds to its blocks, and what a notification has for its order is left out.
    fn longest_packets(&self, flows: &FlowGroup<'_>) -> [u64; 2] {
        let group = &flows.clients;
        let (header, token) = (self.header().0, u64::from(group.token_length));
        // Who asks for nothing gets no body.
        let body = if group.workload.all().is_empty() { 0 } else { self.body(group).0 };
        // Content-Format, a marker if there is a payload, and the payload.
        let format = 1 + u64::from(2 - self.server.content_format.leading_zeros() / 8);
        let marked = |payload: u64| if payload > 0 { 1 + payload } else { 0 };
        let answer = |payload: u64| format + marked(group.protection.response(payload));
        match flows.traffic {
            Traffic::Requests => {}
            Traffic::Commands => {
                let back = group.protection.response(self.response_payload(flows));
                let back = header + DATAGRAM + token + marked(back);
                return [back, header + group.request_bytes()];
            }
            // An option of its own, and an empty acknowledgement.
            Traffic::Notifications => {
                return [header + DATAGRAM, header + DATAGRAM + token + 1 + answer(group.longest_payload())];
            }
        }
        match (&group.transport, &group.transfer) {
            (Transport::Tcp(tcp), _) => {
                let segment = |content: u64| {
                    let message = frame(content) + token;
                    header + u64::from(SEGMENT_OVER_DATAGRAM) + message.min(tcp.mss.0).max(OPENING)
                };
                [segment(group.request_bytes() - DATAGRAM - token), segment(answer(body))]
            }
            (Transport::Udp, Transfer::Blocks(blocks)) if body > blocks.size.0 => {
                let size = blocks.size.0;
                // Of the blocks that are full, the last has the longest number.
                let (last, full) = (body.div_ceil(size) - 1, body / size - 1);
                [
                    header + group.request_bytes() + block_option(last),
                    header + DATAGRAM + token + answer(size) + block_option(full),
                ]
            }
            (Transport::Udp, Transfer::Bursts(bursts)) => {
                [header + group.request_bytes(), header + DATAGRAM + token + answer(body.min(bursts.size.0))]
            }
            (Transport::Udp, _) => {
                let longest = [group.request_bytes(), DATAGRAM + token + answer(body)];
                let most = |[up, down]: [u64; 2], flights: Flights| [up.max(flights.up.0), down.max(flights.down.0)];
                group.workload.flights().fold(longest, most).map(|bytes| header + bytes)
            }
        }
    }
}

/// Bytes of Block2 with this number (RFC 7959 §2.2).
fn block_option(number: u64) -> u64 {
    1 + match number {
        0..16 => 1,
        16..4_096 => 2,
        _ => 3,
    }
}

/// Bytes of a message over TCP without its token (RFC 8323 §3.2), for so many bytes of options and payload.
fn frame(content: u64) -> u64 {
    let extended = match content {
        0..13 => 0,
        13..269 => 1,
        269..65_805 => 2,
        _ => 4,
    };
    2 + extended + content
}
