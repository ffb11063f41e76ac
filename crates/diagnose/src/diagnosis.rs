//! From files to a diagnosis.

use std::io::{self, Read};
use std::net::SocketAddr;

use millpond_coap::message::{MessageId, Token};

use crate::both_sides::both_sides;
use crate::device_side::device_side;
use crate::exchanges::{Chapter, Gathering, is_settled};
use crate::findings::Findings;
use crate::judgement::Judged;
use crate::reading::{
    Census, Contents, Datagram, Ending, Frame, ReadError, Site, datagram, for_each_frame, message, record,
};
use crate::server_side::server_side;
use crate::summary::{Diagnosis, Summary};
use crate::vantage::{Side, side};
use crate::words::counted;

/// The ports of CoAP, and of CoAP over DTLS and TLS (RFC 7252 §6).
const COAP: u16 = 5683;
const COAPS: u16 = 5684;

/// What is to be read, and from where it was captured.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where it was captured; `None`: it is found out.
    pub side: Option<Side>,
    /// Ports of servers besides 5683.
    pub ports: Vec<u16>,
}

/// Why there is no diagnosis.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiagnoseError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no CoAP in it.
    #[error("no CoAP over UDP on port 5683: {0}")]
    NoCoap(String),
    /// Only requests, or only answers.
    #[error("only one direction was captured: {0}")]
    OneDirection(&'static str),
    /// There are messages in both directions, and no request: pings, or notifications whose registration came before.
    #[error("no request in it: of {0} none asks for anything")]
    NoRequest(String),
    /// What is written cannot be.
    #[error("{0}")]
    Write(#[from] io::Error),
    /// The capture has no such end.
    #[error(
        "it was not captured at both ends: only the interfaces `clients` and `server` of one pcapng tell them apart"
    )]
    NoSuchSide,
}

/// A transmission of a request.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The endpoint that asks.
    pub client: SocketAddr,
    /// The endpoint that answers.
    pub server: SocketAddr,
    /// Message ID.
    pub id: MessageId,
    /// Token.
    pub token: Token,
    /// 1 for the first that was seen, and so on.
    pub number: usize,
    /// Microseconds since 1970.
    pub time: i64,
    /// What it was.
    pub judged: Judged,
    /// Microseconds since 1970: the answer of the same number to the exchange, if there was one.
    pub answered: Option<i64>,
    /// Bytes of the IP packets, and of their payloads.
    pub request_bytes: u32,
    /// As `request_bytes`, of the answers.
    pub answer_bytes: u32,
    /// Bytes of the request's payload.
    pub request_payload: u32,
    /// As `request_payload`, of the answers.
    pub answer_payload: u32,
}

/// Reads captures, one after the other as parts of one, and judges them; `rows` is given each transmission.
///
/// # Errors
/// Nothing in them can be read, or nothing is CoAP.
pub fn diagnose<R: Read + Send>(
    sources: impl IntoIterator<Item = R>,
    options: &Options,
    rows: &mut dyn FnMut(&Row),
) -> Result<Diagnosis, DiagnoseError> {
    let mut reading =
        Reading { options, rows, census: Census::default(), ends: Default::default(), summary: Summary::default() };
    let mut endings = Vec::new();
    for source in sources {
        endings.push(for_each_frame(source, |frame| reading.take(&frame))?);
    }
    reading.finish(&endings)
}

/// Whether one of its ports is CoAP's or one of these.
pub(crate) fn is_of_coap(datagram: &Datagram<'_>, ports: &[u16]) -> bool {
    [datagram.from.port(), datagram.to.port()].into_iter().any(|port| is_of_server(port, ports))
}

fn is_of_server(port: u16, ports: &[u16]) -> bool {
    port == COAP || ports.contains(&port)
}

struct Reading<'o> {
    options: &'o Options,
    rows: &'o mut dyn FnMut(&Row),
    census: Census,
    /// What was captured at the clients, at the server, and at a place without a name.
    ends: [Gathering; 3],
    summary: Summary,
}

const fn place(site: Site) -> usize {
    match site {
        Site::Clients => 0,
        Site::Server => 1,
        Site::Unnamed => 2,
    }
}

impl Reading<'_> {
    fn take(&mut self, frame: &Frame<'_>) {
        self.census.packets += 1;
        let found = match datagram(frame.link, frame.bytes) {
            Contents::Udp(found) => found,
            Contents::Tcp(from, to) => {
                self.census.coap_over_tcp += u64::from([from, to].iter().any(|port| [COAP, COAPS].contains(port)));
                return self.census.tcp((from, to));
            }
            Contents::LaterFragment => return self.census.fragments += 1,
            Contents::Other(name) => return self.census.other(name),
            Contents::UnknownLink(number) => return self.census.unknown_link(number),
        };
        let ports = (found.from.port(), found.to.port());
        let is_of_coap = is_of_coap(&found, &self.options.ports);
        let is_secured = is_of_coap || [ports.0, ports.1].contains(&COAPS);
        let end = &mut self.ends[place(frame.site)];
        if let Some(record) = record(found.payload).filter(|_| is_secured) {
            self.census.dtls += 1;
            let is_of_server = |port: u16| port == COAPS || is_of_server(port, &self.options.ports);
            // With two such ports the side that speaks first asks.
            let up = match (is_of_server(ports.0), is_of_server(ports.1)) {
                (false, true) => true,
                (true, false) => false,
                _ => !end.sessions.knows(&(found.to, found.from)),
            };
            self.census.dtls_judged += u64::from(record.is_data && end.take_record(frame.time, &found, up, record));
        } else if !is_of_coap {
            return self.census.udp(ports, message(&found).is_some());
        } else {
            let Some(read) = message(&found) else { return self.census.malformed += 1 };
            self.census.coap += 1;
            end.take(frame.time, found.size, (found.from, found.to), &read);
        }
        if end.is_full() {
            self.turn(place(frame.site));
        }
    }

    /// Where to look: the side, and the gathering that has it.
    fn view(&self, chapter_of: impl Fn(usize) -> usize) -> Result<(Side, usize), DiagnoseError> {
        let has = |site: Site| chapter_of(place(site)) > 0;
        let named = has(Site::Clients) || has(Site::Server);
        let both = has(Site::Clients) && has(Site::Server);
        match self.options.side {
            None | Some(Side::Both) if both => Ok((Side::Both, place(Site::Clients))),
            None if has(Site::Clients) => Ok((Side::Devices, place(Site::Clients))),
            Some(Side::Server) | None if named => Ok((Side::Server, place(Site::Server))),
            Some(Side::Devices) if named => Ok((Side::Devices, place(Site::Clients))),
            Some(Side::Both) => Err(DiagnoseError::NoSuchSide),
            Some(side) => Ok((side, place(Site::Unnamed))),
            None => Ok((side(&self.ends[place(Site::Unnamed)].chapter), place(Site::Unnamed))),
        }
    }

    /// Judges what there is, since an end's chapter is full.
    fn turn(&mut self, full: usize) {
        let viewed = self.view(|end| self.ends[end].chapter.packets.len());
        let cut = match viewed {
            Ok((_, end)) if self.ends[full].is_cut_by(self.ends[end].cut()) => self.ends[end].cut(),
            // It is not what is looked at, and that lags behind it.
            _ => self.ends[full].cut(),
        };
        let chapters = self.chapters(cut);
        if let Ok((side, end)) = viewed
            && !chapters[end].packets.is_empty()
        {
            self.judge(side, end, &chapters, cut);
        }
        for (end, judged) in self.ends.iter_mut().zip(chapters) {
            end.recycle(judged);
        }
    }

    /// What each end has seen until then.
    fn chapters(&mut self, cut: f64) -> [Chapter; 3] {
        self.ends.each_mut().map(|end| end.turn(cut))
    }

    fn judge(&mut self, side: Side, end: usize, chapters: &[Chapter; 3], cut: f64) {
        let chapter = &chapters[end];
        let findings: Findings = match side {
            Side::Server => server_side(chapter),
            Side::Devices => device_side(chapter),
            Side::Both => both_sides(chapter, &chapters[place(Site::Server)]),
        };
        /// Of guessed exchanges, the least share of retransmissions that are some: of devices that pause, on a path that loses
        /// much, captured at the server.
        const GUESSED: f64 = 0.6;
        let most = if self.census.dtls_judged > 0 { GUESSED } else { 1.0 };
        let Gathering { pairs, origin, .. } = &self.ends[end];
        for (exchange, judged) in chapter.exchanges.iter().zip(&findings.judged) {
            let Some(&(client, server)) = pairs.name(exchange.peer).filter(|_| is_settled(exchange, cut)) else {
                continue;
            };
            for (index, (&at, &judged)) in exchange.sent.iter().zip(judged).enumerate() {
                let since_1970 = |at: f64| origin.unwrap_or_default().saturating_add((at * 1e6).round() as i64);
                (self.rows)(&Row {
                    client,
                    server,
                    id: exchange.id,
                    token: exchange.token,
                    number: index + 1,
                    time: since_1970(at),
                    judged: Judged { confidence: judged.confidence.min(most), ..judged },
                    answered: exchange.answered.get(index).copied().map(since_1970),
                    request_bytes: exchange.request_bytes,
                    answer_bytes: exchange.answer_bytes,
                    request_payload: exchange.request_payload,
                    answer_payload: exchange.answer_payload,
                });
            }
        }
        self.summary.add(side, chapter, &findings, cut);
    }

    fn finish(mut self, endings: &[Ending]) -> Result<Diagnosis, DiagnoseError> {
        if self.census.coap + self.census.dtls_judged == 0 {
            return Err(DiagnoseError::NoCoap(self.census.in_words()));
        }
        let (side, end) = self.view(|end| self.ends[end].pairs.len())?;
        let chapters = self.chapters(f64::INFINITY);
        let chapter = &chapters[end];
        let any = |up: bool| chapter.packets.iter().any(|packet| packet.up == up);
        if self.summary.is_empty() && !chapter.packets.is_empty() {
            match (any(true), any(false)) {
                (true, true) => {}
                (true, false) => return Err(DiagnoseError::OneDirection("requests, and no answers to them")),
                _ => return Err(DiagnoseError::OneDirection("answers, and not what they answer")),
            }
        }
        self.judge(side, end, &chapters, f64::INFINITY);
        if self.summary.exchanges() == 0 {
            let messages = self.census.coap + self.census.dtls_judged;
            return Err(DiagnoseError::NoRequest(counted(messages, "message of CoAP", "messages of CoAP")));
        }
        let gathering = &self.ends[end];
        Ok(self.summary.finish(gathering, &self.census, endings))
    }
}

#[cfg(test)]
mod tests {
    use pcap_parser::Linktype;

    use super::*;
    use crate::exchanges::CHAPTER;

    const SITES: [Site; 3] = [Site::Clients, Site::Server, Site::Unnamed];

    /// Bytes of IPv4, UDP and CoAP: the request of this number, or its acknowledgement with a response.
    fn packet(number: u16, up: bool) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
        let (device, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        bytes.extend_from_slice(&if up { [device, server] } else { [server, device] }.concat());
        let (from, to): (u16, u16) = if up { (40_000, 5683) } else { (5683, 40_000) };
        bytes.extend([from, to, 12, 0].into_iter().flat_map(u16::to_be_bytes));
        bytes.extend_from_slice(if up { &[0x40, 1] } else { &[0x60, 69] });
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes
    }

    /// What is kept of a capture after each of so many packets, of which each came at the place that is said; and its end.
    fn kept(
        side: Option<Side>,
        packets: usize,
        at: impl Fn(usize) -> Site,
    ) -> (usize, Result<Diagnosis, DiagnoseError>) {
        let options = Options { side, ..Options::default() };
        let rows = &mut |_: &Row| {};
        let mut reading = Reading {
            options: &options,
            rows,
            census: Census::default(),
            ends: Default::default(),
            summary: Summary::default(),
        };
        let mut most = 0;
        for number in 0..packets {
            let bytes = packet(number as u16 / 2, number % 2 == 0);
            let (time, site) = (20_000 * number as i64, at(number));
            reading.take(&Frame { time, site, link: Linktype::RAW, bytes: &bytes });
            let of = |end: &Gathering| end.chapter.packets.len().max(end.chapter.exchanges.len());
            most = most.max(reading.ends.iter().map(of).max().unwrap());
        }
        (most, reading.finish(&[Ending::Whole]))
    }

    #[test]
    fn no_more_than_a_chapter_is_kept_wherever_packets_come() {
        let sides = [None, Some(Side::Server), Some(Side::Devices), Some(Side::Both)];
        for side in sides {
            for first in SITES {
                for then in SITES {
                    let few = 10;
                    let site = |number: usize| if number < few { first } else { then };
                    let (most, _) = kept(side, 3 * CHAPTER, site);
                    assert!(most <= CHAPTER, "{most} of {side:?}, {first:?}, {then:?}");
                }
            }
        }
    }

    #[test]
    fn figures_of_many_chapters_are_bounded_and_told() {
        let (_, found) = kept(Some(Side::Server), 12 * CHAPTER, |_| Site::Unnamed);
        let found = found.unwrap();
        assert_eq!(found.exchanges, 6 * CHAPTER as u64);
        let told = "its figures are of the first parts";
        assert_eq!(found.doubts.iter().filter(|doubt| doubt.contains(told)).count(), 1, "{:?}", found.doubts);
        let (_, found) = kept(Some(Side::Server), 2 * CHAPTER, |_| Site::Unnamed);
        assert!(!found.unwrap().doubts.iter().any(|doubt| doubt.contains(told)));
    }
}
