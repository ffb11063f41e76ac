//! How often verdicts are right, and whether figures hold, on scenarios that are drawn anew.

use millpond_diagnose::{Diagnosis, Figure, Grade, Row, Verdict};

use crate::drawing::{Drawn, KINDS, drawn};
use crate::laboratory::{Truth, diagnosed, sights, truth};

/// Retransmissions by what they were and what was said.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    all: f64,
    spurious: f64,
    said_spurious: f64,
    rightly_spurious: f64,
    said_needed: f64,
    rightly_needed: f64,
    unknown: f64,
}

impl Score {
    fn count(&mut self, rows: &[Row], truth: &Truth) {
        for row in rows {
            let Some(&(is_spurious, number)) = truth.get(&(row.client, row.id.0, row.time)) else {
                panic!("a transmission that never was: {row:?}");
            };
            // What nobody at this end can know to be a retransmission is not counted.
            if number == 0 || row.judged.verdict == Verdict::First {
                continue;
            }
            let count = |applies: bool| f64::from(u8::from(applies));
            let verdict = row.judged.verdict;
            self.all += 1.0;
            self.spurious += count(is_spurious);
            self.said_spurious += count(verdict == Verdict::Spurious);
            self.rightly_spurious += count(verdict == Verdict::Spurious && is_spurious);
            self.said_needed += count(verdict == Verdict::Needed);
            self.rightly_needed += count(verdict == Verdict::Needed && !is_spurious);
            self.unknown += count(verdict == Verdict::Unknown);
        }
    }
}

/// What a figure's grade does not keep of its promise.
fn broken(figure: &Figure, truth: f64) -> bool {
    let Some(value) = figure.value else { return figure.grade != Grade::Unknown };
    !match figure.grade {
        Grade::Exact => (value / truth - 1.0).abs() < 0.03,
        Grade::AtLeast => value <= 1.01 * truth,
        Grade::AtMost => value >= 0.99 * truth,
        Grade::Estimate => value.is_finite() && value >= 0.0,
        Grade::Unknown => false,
    }
}

/// The figures of a diagnosis that are not as the scenario has it.
fn all_broken(found: &Diagnosis, of: &Drawn) -> Vec<String> {
    let bytes = [found.sizes.request_bytes, found.sizes.answer_bytes];
    let base = of.propagation + (0..2).map(|place| 8.0 * f64::from(bytes[place]) / of.rates[place]).sum::<f64>();
    let path = &found.path;
    let figures = [
        ("rate up", &path.uplink.rate_bps, of.rates[0]),
        ("rate down", &path.downlink.rate_bps, of.rates[1]),
        ("buffer up", &path.uplink.buffer_bytes, of.buffers[0]),
        ("buffer down", &path.downlink.buffer_bytes, of.buffers[1]),
        ("round trip", &path.base_rtt_s, base),
    ];
    let broken = figures.into_iter().filter(|(_, figure, truth)| broken(figure, *truth));
    broken.map(|(name, figure, truth)| format!("{name}: {figure:?}, in truth {truth}")).collect()
}

/// The scores at the server and at the devices of drawn scenarios, and the figures that are broken.
fn scores(seeds: std::ops::Range<u64>) -> ([Score; 2], Vec<String>) {
    let mut scores = [Score::default(); 2];
    let mut broken = Vec::new();
    for seed in seeds {
        for kind in KINDS {
            let of = drawn(kind, seed);
            let sights = sights(&of.text, seed);
            let (at_server, at_devices) = truth(&sights);
            for (place, (truth, is_server)) in [(at_server, true), (at_devices, false)].into_iter().enumerate() {
                let (found, rows) = diagnosed(&sights, is_server);
                let side = if is_server { "server" } else { "devices" };
                broken.extend(all_broken(&found, &of).iter().map(|told| format!("{kind} {seed}, {side}: {told}")));
                scores[place].count(&rows, &truth);
            }
        }
    }
    (scores, broken)
}

#[test]
fn verdicts_are_right_as_often_as_they_were_in_development() {
    let ([server, devices], broken) = scores(0..20);
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(server.spurious > 500.0 && server.all - server.spurious > 500.0, "there is something to judge: {server:?}");
    assert!(server.rightly_spurious >= 0.95 * server.said_spurious, "precision of spurious: {server:?}");
    assert!(server.rightly_spurious >= 0.85 * server.spurious, "recall of spurious: {server:?}");
    assert!(server.rightly_needed >= 0.80 * server.said_needed, "precision of needed: {server:?}");
    assert!(server.unknown <= 0.12 * server.all, "what cannot be told: {server:?}");
    assert!(devices.rightly_spurious >= 0.99 * devices.said_spurious, "precision of spurious: {devices:?}");
    assert!(devices.rightly_spurious >= 0.98 * devices.spurious, "recall of spurious: {devices:?}");
    assert!(devices.rightly_needed >= 0.99 * devices.said_needed, "precision of needed: {devices:?}");
}
