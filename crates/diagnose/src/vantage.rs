//! Where a capture was made: beside the endpoint that asks, or beside the one that answers.

use serde::Serialize;

use crate::exchanges::Chapter;
use crate::ordered::{median, quantile, sorted};

/// The end of the path at which packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Behind the uplink, before the downlink: answers follow requests at once.
    Server,
    /// Before the uplink, behind the downlink: requests follow answers, or nothing does.
    Devices,
    /// A capture that has both ends.
    Both,
}

/// The side at which answers follow at once, compared with how long requests take to follow answers.
pub(crate) fn side(chapter: &Chapter) -> Side {
    let waits = sorted(chapter.exchanges.iter().filter_map(|exchange| {
        let first = exchange.answered.first()?;
        exchange.sent.iter().filter(|&sent| sent <= first).map(|sent| first - sent).min_by(f64::total_cmp)
    }));
    let loops = sorted(
        chapter
            .exchanges
            .iter()
            .filter_map(|exchange| Some(exchange.next? - exchange.answered.last()?).filter(|&pause| pause > 0.0)),
    );
    let wait = median(&waits).unwrap_or_default();
    let pause = quantile(&loops, 0.05).unwrap_or_default();
    if wait < 0.005 || wait < 0.05 * pause { Side::Server } else { Side::Devices }
}
