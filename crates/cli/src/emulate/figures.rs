//! A relay's figures for Prometheus.

use millpond_emulate::{LinkStanding, Standing, Watch};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};

/// The figures as they are now, in the text format of OpenMetrics.
pub(super) fn text(watch: &Watch) -> String {
    let mut registry = Registry::with_prefix("millpond_relay");
    if let Some(standing) = watch.standing() {
        registry.register_collector(Box::new(Figures(standing)));
    }
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Figures(Standing);

/// A sample's labels, and its value.
type Sample = (Vec<(&'static str, &'static str)>, u64);

const LINKS: [&str; 2] = ["uplink", "downlink"];

impl Figures {
    /// One sample of each link.
    fn of_links(&self, read: fn(&LinkStanding) -> u64) -> Vec<Sample> {
        LINKS.into_iter().zip(&self.0.links).map(|(name, link)| (vec![("link", name)], read(link))).collect()
    }

    fn dropped(&self) -> Vec<Sample> {
        let of_link = |(name, link): (&'static str, &LinkStanding)| {
            let why = [("queue full", link.dropped_queue), ("lost by the radio", link.dropped_radio)];
            why.map(|(why, packets)| (vec![("link", name), ("why", why)], packets))
        };
        LINKS.into_iter().zip(&self.0.links).flat_map(of_link).collect()
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Standing { left_out, clients, gate, lateness, .. } = &self.0;
        let alone = |count: u64| vec![(Vec::new(), count)];
        let left_out = left_out.iter().map(|left_out| (vec![("why", left_out.why)], left_out.packets)).collect();
        let copies = gate.iter().map(|row| (vec![("became", row.name)], row.datagrams)).collect();
        for (name, help, unit, samples) in [
            ("gave_way", "Clients whose places went to others", None, alone(clients.gave_way)),
            ("refused", "Datagrams of clients for which there was no place", None, alone(clients.refused)),
            ("forwarded", "Packets that a link delivered", None, self.of_links(|link| link.delivered_packets)),
            ("forwarded", "The same with their headers", Some(Unit::Bytes), self.of_links(|link| link.delivered_bytes)),
            ("dropped", "Packets that a link dropped", None, self.dropped()),
            ("left_out", "Datagrams that no link or server was given", None, left_out),
            ("copies", "What became of copies of requests, and of what cannot be read", None, copies),
        ] {
            family(&mut encoder, (name, help, unit), samples, ConstCounter::new)?;
        }
        let gauge = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        for (name, help, unit, samples) in [
            ("clients", "Clients that have a place", None, alone(clients.clients as u64)),
            ("room", "Clients for which there is room", None, alone(clients.room as u64)),
            ("queue", "What waits in a link", Some(Unit::Bytes), self.of_links(|link| link.queued_bytes)),
        ] {
            family(&mut encoder, (name, help, unit), samples, gauge)?;
        }
        let help = "How much later than by its links a packet was forwarded, of so large a share at most";
        let shares = [("0.5", lateness.p50_us), ("0.99", lateness.p99_us), ("1", lateness.max_us)];
        let late = shares.map(|(share, micros)| (vec![("share", share)], micros)).to_vec();
        let seconds = |micros: u64| ConstGauge::new(micros as f64 / 1e6);
        family(&mut encoder, ("lateness", help, Some(Unit::Seconds)), late, seconds)
    }
}

/// Writes the samples of one name; without labels there is one.
fn family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit): (&str, &str, Option<Unit>),
    samples: Vec<Sample>,
    metric: impl Fn(u64) -> M,
) -> Result<(), std::fmt::Error> {
    let mut written = encoder.encode_descriptor(name, help, unit.as_ref(), metric(0).metric_type())?;
    for (labels, value) in samples {
        if labels.is_empty() {
            return metric(value).encode(written);
        }
        metric(value).encode(written.encode_family(&labels)?)?;
    }
    Ok(())
}
