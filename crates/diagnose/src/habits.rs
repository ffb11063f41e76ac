//! What devices do: how many exchanges one has open at once, and whether they report together.

use serde::Serialize;

use crate::exchanges::{Chapter, Exchange};
use crate::figure::Figure;
use crate::findings::Findings;
use crate::judgement::{Judged, Judgements, Verdict};
use crate::ordered::{quantile, sorted};
use crate::vantage::Side;

/// Whether the devices' reports are aligned in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alignment {
    /// Whether they are; `None` if it cannot be told.
    pub aligned: Option<bool>,
    /// Seconds over which 96 % of the reports of a round come, if they are.
    pub within_s: Option<f64>,
    /// Why.
    pub because: String,
}

impl Alignment {
    pub(crate) fn unknown(because: &str) -> Self {
        Self { aligned: None, within_s: None, because: because.to_owned() }
    }
}

/// The mean of the reports' phases points this far in one direction if they are aligned (1: all are alike).
const ALIGNED: f64 = 0.5;

/// Exchanges that a device has open at once, where that is no exception.
pub(crate) fn nstart(side: Side, chapter: &Chapter, judged: &[Judgements], open: Option<usize>) -> Figure {
    /// Requests of which so many leave while another exchange is open are no exception.
    const OFTEN: f64 = 0.1;
    if let Some(open) = open {
        return Figure::estimate(open as f64, "so many requests later one follows an answer, after the same time each");
    }
    let transmissions = chapter.exchanges.iter().map(|exchange| exchange.sent.len()).max().unwrap_or_default();
    let (mut all, mut early, mut most) = (0_usize, 0_usize, 1_usize);
    for of_device in chapter.by_peer.each() {
        let mut until: Vec<f64> = Vec::new();
        for &index in of_device {
            let (Some(exchange), Some(judged)) = (chapter.exchanges.get(index as usize), judged.get(index as usize))
            else {
                continue;
            };
            until.retain(|&until| until > exchange.began());
            all += 1;
            early += usize::from(!until.is_empty());
            // A device takes the first answer that it gets.
            let ended = match side {
                Side::Server => accepted_at(exchange, judged),
                // It may have given up before, after as many transmissions as there ever are.
                Side::Devices | Side::Both
                    if (2..).contains(&transmissions) && exchange.sent.len() == transmissions =>
                {
                    None
                }
                Side::Devices | Side::Both => exchange.answered.first().copied(),
            };
            until.push(ended.unwrap_or_else(|| exchange.last_sent()));
            most = most.max(until.len());
        }
    }
    if early as f64 > OFTEN * all as f64 {
        let because = format!("of {all} requests {early} left while another exchange was open");
        return match side {
            Side::Server => Figure::estimate(most as f64, because),
            Side::Devices | Side::Both => Figure::at_least(most as f64, because),
        };
    }
    Figure::at_least(1.0, "requests seldom left while another exchange was open")
}

/// When the answer passed a server that the device took: a spurious transmission had one before.
fn accepted_at(exchange: &Exchange, judged: &[Judged]) -> Option<f64> {
    let mut accepted = None;
    for (judged, &at) in judged.iter().zip(&exchange.answered) {
        if judged.verdict != Verdict::Spurious || accepted.is_none() {
            accepted = Some(at);
        }
    }
    accepted
}

/// The time from one request of a device to its next, where that is a rhythm.
pub(crate) fn period(findings: &Findings) -> Figure {
    match findings.rhythm {
        Some(rhythm) if rhythm.is_periodic() && rhythm.same > 0.5 && !findings.closed_loop => {
            Figure::estimate(rhythm.period, format!("{:.0} % of the devices have this rhythm", 100.0 * rhythm.same))
        }
        _ => Figure::unknown("devices have no common rhythm"),
    }
}

/// Whether devices that have a common period report together.
pub(crate) fn alignment(chapter: &Chapter, period: &Figure) -> Alignment {
    let Some(period) = period.value else { return Alignment::unknown(&period.because) };
    if chapter.by_peer.len() < 2 {
        return Alignment::unknown("there is one device alone");
    }
    let turned = |exchange: &Exchange| std::f64::consts::TAU * exchange.began() / period;
    let (x, y) = chapter.exchanges.iter().map(turned).fold((0.0, 0.0), |(x, y), at| (x + at.cos(), y + at.sin()));
    let together = x.hypot(y) / chapter.exchanges.len().max(1) as f64;
    if together <= ALIGNED {
        let because = "devices have the same period, and times of their own".to_owned();
        return Alignment { aligned: Some(false), within_s: None, because };
    }
    let middle = y.atan2(x);
    let away = sorted(chapter.exchanges.iter().map(|exchange| {
        let turns = (turned(exchange) - middle) / std::f64::consts::TAU;
        (turns - turns.round()) * period
    }));
    let within_s = quantile(&away, 0.98).zip(quantile(&away, 0.02)).map(|(last, first)| last - first);
    Alignment { aligned: Some(true), within_s, because: "devices report together, round by round".to_owned() }
}
