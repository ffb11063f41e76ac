//! What a capture holds, so that one without CoAP can say what it has instead.

use std::collections::BTreeMap;

use crate::words::counted;

/// As many ports are counted; the traffic of further ones is summed up.
const MOST_PORTS: usize = 4096;

/// Packets by what they are.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// All.
    pub packets: u64,
    /// Messages of CoAP over UDP.
    pub coap: u64,
    /// Datagrams to or from a port of CoAP that are no message.
    pub malformed: u64,
    /// Datagrams of DTLS, of handshakes too.
    pub dtls: u64,
    /// Those that carry what applications say, and whose exchanges are guessed.
    pub dtls_judged: u64,
    /// Segments of TCP to or from a port of CoAP.
    pub coap_over_tcp: u64,
    /// Fragments behind the first.
    pub fragments: u64,
    /// Datagrams of UDP by the lower of their ports, and how many of those could be CoAP.
    udp: BTreeMap<u16, (u64, u64)>,
    tcp: BTreeMap<u16, u64>,
    others: BTreeMap<&'static str, u64>,
    unknown_links: BTreeMap<i32, u64>,
}

impl Census {
    pub(crate) fn udp(&mut self, ports: (u16, u16), could_be_coap: bool) {
        let port = ports.0.min(ports.1);
        if self.udp.len() < MOST_PORTS || self.udp.contains_key(&port) {
            let (all, coap) = self.udp.entry(port).or_default();
            *all += 1;
            *coap += u64::from(could_be_coap);
        }
    }

    pub(crate) fn tcp(&mut self, ports: (u16, u16)) {
        let port = ports.0.min(ports.1);
        if self.tcp.len() < MOST_PORTS || self.tcp.contains_key(&port) {
            *self.tcp.entry(port).or_default() += 1;
        }
    }

    pub(crate) fn other(&mut self, name: &'static str) {
        *self.others.entry(name).or_default() += 1;
    }

    pub(crate) fn unknown_link(&mut self, number: i32) {
        *self.unknown_links.entry(number).or_default() += 1;
    }

    /// What was seen, in words, the most frequent first: for a capture in which there is no CoAP.
    #[must_use]
    pub fn in_words(&self) -> String {
        if self.packets == 0 {
            return "no packets at all".to_owned();
        }
        let mut seen: Vec<(u64, String)> = Vec::new();
        for (port, (all, coap)) in &self.udp {
            let hint =
                if *coap * 10 >= *all * 9 { format!(" (it could be CoAP: --port {port})") } else { String::new() };
            seen.push((*all, format!("UDP port {port}{hint}")));
        }
        seen.extend(self.tcp.iter().map(|(port, all)| (*all, format!("TCP port {port}"))));
        seen.extend(self.others.iter().map(|(name, all)| (*all, (*name).to_owned())));
        seen.extend(
            self.unknown_links.iter().map(|(number, all)| (*all, format!("link type {number}, which is not read"))),
        );
        if self.dtls > 0 {
            seen.push((self.dtls, "DTLS, without messages".to_owned()));
        }
        if self.fragments > 0 {
            seen.push((self.fragments, "later fragments of packets".to_owned()));
        }
        seen.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        let told: Vec<String> = seen.iter().take(5).map(|(all, what)| format!("{all} of {what}")).collect();
        let more = match seen.len().saturating_sub(5) {
            0 => String::new(),
            more => format!(" and {}", counted(more as u64, "more kind", "more kinds")),
        };
        format!("{}: {}{more}", counted(self.packets, "packet", "packets"), told.join(", "))
    }
}
