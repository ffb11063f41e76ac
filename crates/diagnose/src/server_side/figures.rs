//! What the evidence comes to, each figure with its grade.

use super::buffers::{Filled, Queues, queues};
use super::{Downlink, Evidence, LONGEST_LOOP, far_rate, verdicts};
use crate::doubts::Doubt;
use crate::figure::Figure;
use crate::findings::{Findings, LinkFigures, bytes_of_answers};
use crate::judgement::Judgements;

pub(super) fn of(evidence: &Evidence<'_>, judged: Vec<Judgements>) -> Findings {
    let late = verdicts::late_by_a_timer(evidence);
    let (lost_up, checked) = late.unwrap_or_else(|| verdicts::lost_before(evidence));
    let queues = queues(evidence, &judged, lost_up);
    let hidden = evidence.closed.is_none() && (evidence.saturated >= 0.25 || evidence.late_up > 0.5);
    let exchanges = &evidence.chapter.exchanges;
    let (useful_bytes, carried_bytes) = bytes_of_answers(exchanges);
    let lost_down = queues.losses.all.unwrap_or_default();
    Findings {
        uplink: LinkFigures {
            rate_bps: uplink_rate(evidence),
            buffer_bytes: uplink_buffer(evidence, &queues),
            loss: if hidden {
                Figure::unknown("the uplink is full and nothing tells a loss from a wait")
            } else if checked >= 20 && (!evidence.timers.blurred || evidence.closed.is_some()) {
                Figure::estimate(lost_up, format!("missing steps of the timers in {checked} places"))
            } else {
                Figure::unknown("a request that is lost before the server is not seen, and timers show too few")
            },
        },
        downlink: LinkFigures {
            rate_bps: downlink_rate(evidence),
            buffer_bytes: downlink_buffer(&queues),
            loss: match queues.losses.radio {
                Some(share) if !hidden && queues.losses.seen >= 20 => {
                    Figure::estimate(share, format!("{} answers that did not have to wait long", queues.losses.seen))
                }
                _ => Figure::unknown("which answers were lost cannot be told from here"),
            },
        },
        base_rtt_s: base_rtt(evidence, &queues),
        judged,
        timers: evidence.timers.clone(),
        presets: super::fitting(evidence),
        open: None,
        rhythm: evidence.rhythm,
        closed_loop: evidence.closed.is_some(),
        useful_bytes,
        carried_bytes: carried_bytes * (1.0 - lost_down),
        hidden_strain: evidence.saturated > 0.5 || evidence.holes > 0.05,
        doubts: doubts(evidence),
    }
}

/// What makes the path's figures unsure, seen from the server.
fn doubts(evidence: &Evidence<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let reactions = match evidence.downlink {
        Downlink::Reactions(found) => Some(found),
        Downlink::Stopping(_) | Downlink::Bound(_) => None,
    };
    if evidence.is_coarse {
        doubts.push(Doubt::grave("time stamps are coarse: spacing of packets, and rates by it, are about"));
    } else if reactions.is_some_and(|found| !found.is_sharp)
        || reactions.is_none() && evidence.has_queue_downlink()
        || evidence.uplink.is_some_and(|found| found.kind == far_rate::Kind::Trains)
    {
        doubts.push(Doubt::grave("the spacing of packets is blurred: jitter, or another queue on the way"));
    }
    if reactions.is_some_and(|found| !found.is_alone) {
        doubts.push(Doubt::grave(
            "devices react as if more was sent than was captured, or much was dropped: other traffic shares the downlink",
        ));
    }
    // A capture that begins at any time finds some exchanges under way; a start that fills the uplink loses most first ones.
    match verdicts::missing_first(evidence) {
        Some(share) if share < 0.56 => doubts.push(Doubt::grave(
            "the capture begins within exchanges: first transmissions are missing there, and what waited before is not seen",
        )),
        Some(_) => doubts.push(Doubt::light(
            "first transmissions of most devices are missing at the beginning: they were lost, or the capture begins later",
        )),
        None => {}
    }
    doubts
}

fn uplink_rate(evidence: &Evidence<'_>) -> Figure {
    match evidence.uplink {
        Some(found) => match found.kind {
            far_rate::Kind::Neighbours if evidence.is_paced => {
                Figure::at_least(found.rate, "requests follow answers just so far apart: it, or the downlink before it")
            }
            far_rate::Kind::Neighbours => {
                Figure::exact(found.rate, format!("{} neighbours come just so far apart", found.hits))
            }
            far_rate::Kind::Trains => {
                Figure::estimate(found.rate, "trains of packets: time stamps are coarse or jittered")
            }
            far_rate::Kind::Bound => Figure::at_least(found.rate, "the fastest trains of packets; it was never full"),
        },
        None => Figure::unknown("too few packets"),
    }
}

fn downlink_rate(evidence: &Evidence<'_>) -> Figure {
    match evidence.downlink {
        Downlink::Reactions(found) if !found.is_exact() => {
            Figure::estimate(found.rate, format!("{} answers in a row were taken about so far apart", found.hits))
        }
        Downlink::Reactions(found) => {
            Figure::exact(found.rate, format!("{} answers in a row were taken just so far apart", found.hits))
        }
        Downlink::Stopping(found) => {
            Figure::estimate(found.rate, "it explains best when devices stopped to retransmit")
        }
        Downlink::Bound(0.0) => Figure::unknown("no answer was captured"),
        Downlink::Bound(rate) => {
            Figure::at_least(rate, "one answer each in the busiest 20 seconds; it never had a queue")
        }
    }
}

fn downlink_buffer(queues: &Queues) -> Figure {
    match queues.downlink {
        Some((bytes, Filled::Full)) => Figure::estimate(bytes, "its drops agree with the answers that were lost"),
        Some((bytes, Filled::Waited)) => Figure::at_least(bytes, "so much waited, and nothing was dropped"),
        Some((bytes, Filled::Modelled)) => {
            Figure::estimate(bytes, "so much waited, if the rate is as estimated; it may hold more")
        }
        None => Figure::unknown("no queue of the downlink was seen"),
    }
}

fn uplink_buffer(evidence: &Evidence<'_>, queues: &Queues) -> Figure {
    match queues.uplink {
        Some((bytes, true)) if queues.at_uplink => {
            Figure::estimate(bytes, "so much waited at most, and requests were lost")
        }
        Some((bytes, _)) => Figure::at_least(bytes, "so much waited"),
        None if evidence.saturated >= 0.25 => {
            Figure::unknown("the uplink was full, but no loop shows what waits there and not in the downlink")
        }
        None => Figure::unknown("the uplink had no lasting queue"),
    }
}

fn base_rtt(evidence: &Evidence<'_>, queues: &Queues) -> Figure {
    match (queues.base, evidence.base) {
        (Some(base), _) => Figure::estimate(base, "what is left of the shortest loops without the downlink's queue"),
        (None, Some(base)) if !(evidence.base_is_bound && base > LONGEST_LOOP * evidence.range.1) => {
            Figure::at_most(base, "the shortest loop that was seen")
        }
        _ => Figure::unknown("no request follows from an answer"),
    }
}
