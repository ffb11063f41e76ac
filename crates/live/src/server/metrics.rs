//! Figures for Prometheus, by HTTP.

use std::{collections::VecDeque, future::Future, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{counter::ConstCounter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Registry, Unit},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::{AccessOutcome, AccessRecord};
use crate::{Error, Repeats, Stats};

/// How long a client of HTTP may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at a time. Beyond them the oldest gives way.
const MOST: usize = 32;
/// Bytes of the longest request.
const LONGEST: usize = 8_192;

/// The one label of a series.
type Label = Vec<(&'static str, String)>;

/// How long requests took to be answered, by the code of their answers: 256 of these at the most.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Family<Label, Histogram, fn() -> Histogram>);

/// Upper ends of what is distinguished, in seconds: from what is at hand to what a separate response takes.
const TOOK: [f64; 14] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

impl Latencies {
    pub(crate) fn new() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(TOOK)))
    }

    pub(crate) fn count(&self, access: &AccessRecord) {
        if let AccessOutcome::Answered { code, .. } = access.outcome {
            self.0.get_or_create(&vec![("code", code.to_string())]).observe(access.took.as_secs_f64());
        }
    }
}

/// Figures that are told beside a server's own.
pub(crate) type MetricsBeside = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

/// A server's figures, and those beside them, which end as its own do.
pub(crate) async fn with_those(text: String, beside: Option<&MetricsBeside>) -> String {
    let Some(beside) = beside else { return text };
    text.strip_suffix("# EOF\n").unwrap_or(&text).to_owned() + &beside().await
}

/// Answers `GET /metrics` at this address by HTTP with what `figures` gives then, in the text format of OpenMetrics, and `GET /health`
/// with `ok` once it has given that, until the task is aborted: for programs whose figures are not those of a
/// [`Server`](crate::Server). Returns the address, with its port.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve_metrics<F, T>(address: SocketAddr, figures: F) -> Result<(SocketAddr, JoinHandle<()>), Error>
where
    F: Fn() -> T + Send + Sync + 'static,
    T: Future<Output = String> + Send + 'static,
{
    let figures = Arc::new(figures);
    let listener = TcpListener::bind(address).await.map_err(|error| Error::bind(address, &error))?;
    let local = listener.local_addr().map_err(|error| Error::bind(address, &error))?;
    let task = tokio::spawn(async move {
        let (mut tasks, mut open) = (JoinSet::new(), VecDeque::new());
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    while tasks.try_join_next().is_some() {}
                    open.retain(|one: &tokio::task::AbortHandle| !one.is_finished());
                    if open.len() >= MOST
                        && let Some(oldest) = open.pop_front()
                    {
                        oldest.abort();
                    }
                    let figures = Arc::clone(&figures);
                    // Who hangs up or dawdles gets nothing.
                    open.push_back(tasks.spawn(async move {
                        let _ = tokio::time::timeout(PATIENCE, answer(stream, &*figures)).await;
                    }));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    });
    Ok((local, task))
}

async fn answer<F, T>(mut stream: TcpStream, figures: &F) -> std::io::Result<()>
where
    F: Fn() -> T,
    T: Future<Output = String>,
{
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LONGEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let mut words = request.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    const FIGURES: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const WORDS: &str = "text/plain; charset=utf-8";
    let (status, kind, body) = match method {
        _ if path != b"/metrics" && path != b"/health" => {
            ("404 Not Found", WORDS, "figures are at /metrics, and /health is answered by who is well\n".into())
        }
        b"GET" | b"HEAD" => match figures().await {
            figures if path == b"/metrics" => ("200 OK", FIGURES, figures),
            // A server that has told its figures is well.
            _ => ("200 OK", WORDS, "ok\n".into()),
        },
        // RFC 9110 §15.5.6: what is allowed is told.
        _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", WORDS, "figures are read by GET\n".into()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    // RFC 9110 §9.3.2: to HEAD the same goes back as to GET, but for the content.
    if method != b"HEAD" {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// A server's figures in the text format; `most` peers at most have series of their own.
///
/// A series costs Prometheus memory for weeks, and an address costs its forger nothing: so only peers that are validated
/// have series of their own, and of these the ones with the most round trips. What all did together is in the totals.
pub(crate) fn text(mut stats: Stats, (most, latencies): (usize, &Latencies)) -> String {
    let known = stats.peers.len();
    stats.peers.retain(|peer| peer.is_validated);
    if stats.peers.len() > most {
        stats.peers.sort_by_key(|peer| std::cmp::Reverse(peer.round_trips));
        stats.peers.truncate(most);
        stats.peers.sort_by_key(|peer| peer.address);
    }
    let mut registry = Registry::with_prefix("millpond");
    let help = "From a request, or its last block, to its answer";
    registry.register_with_unit("response", help, Unit::Seconds, latencies.0.clone());
    registry.register_collector(Box::new(Figures { stats, known }));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Figures {
    /// With the peers that are shown.
    stats: Stats,
    /// Peers of which something is known.
    known: usize,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let stats = &self.stats;
        for (name, help, value) in [
            ("sent", "Datagrams that left", stats.sent),
            ("received", "Well-formed messages that came in", stats.received),
            ("retransmissions", "Retransmissions of confirmable messages", stats.retransmissions),
            (
                "unnecessary_retransmissions",
                "Spurious retransmissions, of all peers",
                stats.unnecessary_retransmissions,
            ),
            ("duplicates", "Messages that came in once more", stats.duplicates),
            ("withheld", "Copies of requests not answered because their answers were on their way", stats.withheld),
            ("requests", "Requests handed to handlers", stats.requests),
            ("failed", "Exchanges that ended without an answer", stats.failed),
            ("late", "Messages that nothing waited for", stats.late),
            ("ignored", "Datagrams that were not processed", stats.ignored),
            ("overloaded", "Requests refused because too much was under way", stats.overloaded),
            ("forbidden", "Requests refused because their sender may not make them", stats.forbidden),
            ("limited", "Requests refused because their sender, or its network, asks too often", stats.limited),
            ("unverified", "Requests whose sender was told to prove its address first", stats.unverified),
            ("backlogs", "Times that a socket was full", stats.backlogs),
            ("unsent", "Datagrams that the kernel refused", stats.unsent),
            ("insecure", "Secure sessions that did not come about or broke", stats.insecure),
            ("evicted", "Connections that had to give way, or held more than their share", stats.evicted),
            ("panics", "Panics of traces, controllers and keys", stats.panics),
        ] {
            let counter = ConstCounter::new(value);
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        self.encode_repeats(&mut encoder)?;
        let gauges = [
            ("exchanges", "Exchanges under way", stats.exchanges),
            (
                "peers",
                "Peers that were sent confirmable messages, with or without series of their own",
                self.known as u64,
            ),
            ("observers", "Observers", stats.observers as u64),
            ("sockets", "Sockets", stats.sockets as u64),
            ("connections", "TCP connections", stats.connections as u64),
            ("sessions", "Sessions of DTLS", stats.sessions as u64),
            ("handshakes", "Handshakes of DTLS under way", stats.handshakes as u64),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        let memory = ConstGauge::new(i64::try_from(stats.memory).unwrap_or(i64::MAX));
        let metric =
            encoder.encode_descriptor("memory", "Held by the endpoints", Some(&Unit::Bytes), memory.metric_type())?;
        memory.encode(metric)?;
        if let Some(expiry) = stats.certificate_expiry {
            let gauge = ConstGauge::new(i64::try_from(expiry).unwrap_or(i64::MAX));
            let help = "When the certificate, or one of those behind it, expires: seconds since 1970";
            let (unit, kind) = (Some(&Unit::Seconds), gauge.metric_type());
            let metric = encoder.encode_descriptor("certificate_expiry", help, unit, kind)?;
            gauge.encode(metric)?;
        }
        self.encode_peers(&mut encoder)
    }
}

impl Figures {
    /// What a calm server did with copies, and why.
    fn encode_repeats(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Repeats { due, lost, third, unknown, withheld } = self.stats.repeats;
        let help = "Copies of answered requests at a calm server, and what became of them";
        let kind = prometheus_client::metrics::MetricType::Counter;
        let mut metric = encoder.encode_descriptor("repeats", help, None, kind)?;
        for (became, count) in [
            ("answered_due", due),
            ("answered_lost", lost),
            ("answered_third", third),
            ("answered_unknown", unknown),
            ("withheld", withheld),
        ] {
            ConstCounter::new(count).encode(metric.encode_family(&[("became", became)])?)?;
        }
        Ok(())
    }

    fn encode_peers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        type Read = fn(&crate::PeerStats) -> Option<f64>;
        type Count = fn(&crate::PeerStats) -> u64;
        let seconds: [(&str, &str, Read); 3] = [
            ("peer_round_trip", "Last round trip", |peer| peer.last_round_trip.map(|time| time.as_secs_f64())),
            ("peer_smoothed", "Smoothed round trip", |peer| peer.smoothed.map(|time| time.as_secs_f64())),
            ("peer_timeout", "Retransmission timeout", |peer| peer.rto.map(|time| time.as_secs_f64())),
        ];
        for (name, help, read) in seconds {
            let kind = prometheus_client::metrics::MetricType::Gauge;
            let mut metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
            for peer in &self.stats.peers {
                if let Some(value) = read(peer) {
                    let labels = [("peer", peer.address.to_string())];
                    ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
        let counts: [(&str, &str, Count); 2] = [
            ("peer_retransmissions", "Retransmissions", |peer| peer.retransmissions),
            ("peer_unnecessary_retransmissions", "Spurious retransmissions", |peer| peer.unnecessary_retransmissions),
        ];
        for (name, help, read) in counts {
            let kind = prometheus_client::metrics::MetricType::Counter;
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for peer in &self.stats.peers {
                let labels = [("peer", peer.address.to_string())];
                ConstCounter::new(read(peer)).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, PeerStats, Transport};

    fn peer(address: &str, is_validated: bool, round_trips: u64) -> PeerStats {
        PeerStats {
            address: address.parse().unwrap(),
            is_validated,
            transmissions: 9,
            retransmissions: 2,
            unnecessary_retransmissions: 1,
            needed_retransmissions: 1,
            round_trips,
            last_round_trip: Some(Duration::from_millis(1_500)),
            shortest_round_trip: None,
            base_round_trip: None,
            smoothed: None,
            rto: Some(Duration::from_secs(3)),
            carried: None,
            waiting: 0,
            quiet: Duration::ZERO,
        }
    }

    #[test]
    fn figures_are_written_as_open_metrics() {
        let peers = vec![peer("192.0.2.1:5683", true, 7)];
        let repeats = Repeats { due: 5, withheld: 7, ..Repeats::default() };
        let latencies = Latencies::new();
        for (code, took) in [(Code::CONTENT, 3), (Code::CONTENT, 300), (Code::NOT_FOUND, 1)] {
            let outcome = AccessOutcome::Answered { code, bytes: 7 };
            let record = AccessRecord::unread(("192.0.2.1:5683".parse().unwrap(), Transport::Udp), outcome, "");
            latencies.count(&AccessRecord { took: Duration::from_millis(took), ..record });
        }
        let stats = Stats { sent: 12, observers: 3, memory: 4_096, peers, repeats, ..Stats::default() };
        let text = text(Stats { certificate_expiry: Some(1_893_456_000), ..stats }, (10, &latencies));
        for line in [
            "millpond_sent_total 12",
            "millpond_observers 3",
            "millpond_peers 1",
            "millpond_repeats_total{became=\"answered_due\"} 5",
            "millpond_repeats_total{became=\"withheld\"} 7",
            "millpond_memory_bytes 4096",
            "millpond_peer_round_trip_seconds{peer=\"192.0.2.1:5683\"} 1.5",
            "millpond_peer_retransmissions_total{peer=\"192.0.2.1:5683\"} 2",
            "millpond_response_seconds_bucket{le=\"0.005\",code=\"2.05\"} 1",
            "millpond_response_seconds_bucket{le=\"0.5\",code=\"2.05\"} 2",
            "millpond_response_seconds_count{code=\"2.05\"} 2",
            "millpond_response_seconds_count{code=\"4.04\"} 1",
            "millpond_certificate_expiry_seconds 1893456000",
            "# EOF",
        ] {
            assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
        }
    }

    /// A peer that forges addresses cannot fill the memory of Prometheus, and many validated peers do not either.
    #[test]
    fn only_validated_peers_have_series_of_their_own_and_no_more_than_so_many() {
        let unvalidated = (0..4_000).map(|port| peer(&format!("192.0.2.2:{port}"), false, 9));
        let validated = (0..50).map(|port| peer(&format!("192.0.2.1:{port}"), true, port));
        let stats = Stats {
            peers: unvalidated.chain(validated).collect(),
            unnecessary_retransmissions: 4_050,
            ..Stats::default()
        };
        let text = text(stats, (10, &Latencies::new()));
        let series: Vec<_> = text.lines().filter(|line| line.contains("{peer=")).collect();
        assert_eq!(series.len(), 10 * 4, "{text}");
        let of_the_busiest = |line: &&&str| (40..50).any(|port| line.contains(&format!("\"192.0.2.1:{port}\"")));
        assert_eq!(series.iter().filter(of_the_busiest).count(), 10 * 4, "{series:#?}");
        for total in ["millpond_peers 4050", "millpond_unnecessary_retransmissions_total 4050"] {
            assert!(text.lines().any(|line| line == total), "{total} is not in\n{text}");
        }
    }
}
