//! The gateway's figures, beside those of its server.

use std::{sync::Arc, time::Duration};

use millpond_live::Stats;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{MetricType, counter::ConstCounter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::engine::{Engine, Source, locked};

/// The rule, and where an answer was from.
type Labels = ([(&'static str, Arc<str>); 1], [(&'static str, &'static str); 1]);

/// How long answers took, by the rule and by where each was from. Rules are as many as the file has.
#[derive(Clone, Debug)]
pub(crate) struct Answers(Family<Labels, Histogram, fn() -> Histogram>);

/// Upper ends of what is distinguished, in seconds: from what is kept to what a slow path takes.
const TOOK: [f64; 15] = [0.0005, 0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0];

impl Answers {
    pub(crate) fn new() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(TOOK)))
    }

    pub(crate) fn count(&self, rule: Option<&Arc<str>>, source: Source, took: Duration) {
        let labels = ([("rule", rule.cloned().unwrap_or_default())], [("source", source.name())]);
        self.0.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// The figures now, in the text format of OpenMetrics.
pub(crate) async fn text(engine: Arc<Engine>) -> String {
    let mut registry = Registry::with_prefix("millpond_gateway");
    if let Some(answers) = &engine.answers {
        registry.register_with_unit("answer", "From a request to its answer", Unit::Seconds, answers.0.clone());
    }
    let mut paths = Vec::new();
    for (name, client) in engine.paths.clients() {
        // A client that has ended did nothing more.
        paths.push((name.to_owned(), client.stats().await.unwrap_or_default()));
    }
    let waiting = engine.paths.waiting().map(|(name, waiting)| (name.to_owned(), waiting)).collect();
    let (kept, watched) = (engine.kept(), locked(&engine.watched).len());
    let (open, streams) = (engine.open(), engine.streams.len());
    registry.register_collector(Box::new(Figures { paths, waiting, kept, watched, open, streams }));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Figures {
    /// What was done on each path, by its name; what is behind none has none.
    paths: Vec<(String, Stats)>,
    waiting: Vec<(String, usize)>,
    kept: usize,
    watched: usize,
    open: usize,
    streams: usize,
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        type Count = fn(&Stats) -> u64;
        let counts: [(&str, &str, Count); 5] = [
            ("sent", "Datagrams that left towards devices", |stats| stats.sent),
            ("retransmissions", "Retransmissions towards devices", |stats| stats.retransmissions),
            ("spurious_retransmissions", "Those that were not needed", |stats| stats.unnecessary_retransmissions),
            ("answered", "Requests that devices answered", |stats| stats.answered),
            ("failed", "Requests that ended otherwise", |stats| stats.failed),
        ];
        for (name, help, count) in counts {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (path, stats) in &self.paths {
                ConstCounter::new(count(stats)).encode(metric.encode_family(&[("path", path.as_str())])?)?;
            }
        }
        let mut metric =
            encoder.encode_descriptor("waiting", "Requests that wait for their turn", None, MetricType::Gauge)?;
        for (path, waiting) in &self.waiting {
            ConstGauge::new(*waiting as u64).encode(metric.encode_family(&[("path", path.as_str())])?)?;
        }
        let alone: [(&str, &str, Option<&Unit>, usize); 4] = [
            ("observations", "Observations of devices", None, self.watched),
            ("open", "Requests to devices that are not answered", None, self.open),
            ("streams", "Long answers that are forwarded while they come", None, self.streams),
            ("cache", "Answers that are kept", Some(&Unit::Bytes), self.kept),
        ];
        for (name, help, unit, value) in alone {
            let metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            ConstGauge::new(value as u64).encode(metric)?;
        }
        Ok(())
    }
}
