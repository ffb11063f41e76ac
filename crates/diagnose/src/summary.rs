//! What all chapters say together.

use std::net::SocketAddr;

use serde::Serialize;

use crate::doubts::Doubts;
use crate::exchanges::{Chapter, Gathering, is_settled};
use crate::figure::{Figure, Grade};
use crate::findings::{Counts, Findings, LinkFigures};
use crate::habits::{Alignment, alignment, nstart, period};
use crate::health::{Health, goodput_ratio, health};
use crate::ordered::{median, median_of, quantile, sorted};
use crate::presets::Presets;
use crate::reading::{Census, Ending};
use crate::sessions::Numbers;
use crate::vantage::Side;
use crate::windows::Windows;
use crate::words::counted;

/// What a capture says.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// How the network was.
    pub verdict: Health,
    /// Where it was captured.
    pub side: Side,
    /// Endpoints that asked.
    pub devices: u64,
    /// Exchanges.
    pub exchanges: u64,
    /// Transmissions of requests that were seen.
    pub transmissions: u64,
    /// Those that were not the first of their exchange.
    pub retransmissions: Retransmissions,
    /// Share of the answers' bytes on the downlink that were of use; `None` if there were none.
    pub goodput_ratio: Option<f64>,
    /// The path.
    pub path: PathOf,
    /// The devices' timers.
    pub timers: TimersOf,
    /// Which presets fit them.
    pub presets: Presets,
    /// Exchanges that a device has open at once (NSTART of RFC 7252 §4.7).
    pub nstart: Figure,
    /// Seconds from one request of a device to its next, where that is a rhythm.
    pub period_s: Figure,
    /// Whether devices that have one report together.
    pub alignment: Alignment,
    /// A device asks again as soon as it is answered.
    pub closed_loop: bool,
    /// Seconds over which the devices' first requests were spread.
    pub start_spread_s: f64,
    /// Middle sizes.
    pub sizes: Sizes,
    /// Bytes of the requests' tokens.
    pub token_length: usize,
    /// Where in time the network was how.
    pub spans: Vec<Span>,
    /// Microseconds since 1970 of the first packet, and seconds until the last.
    pub began_us: i64,
    /// Seconds from the first to the last packet.
    pub lasted_s: f64,
    /// What makes the rest less sure.
    pub doubts: Vec<String>,
    /// By device, those with the most retransmissions first.
    #[serde(skip)]
    pub by_device: Vec<Device>,
}

impl Diagnosis {
    /// When it began to be as bad as the verdict says, and when that ended, seconds since the first packet; `None` of a
    /// network that is healthy, or of which it cannot be told.
    #[must_use]
    pub fn began_and_ended(&self) -> Option<(f64, f64)> {
        let is_so = |span: &&Span| match self.verdict {
            Health::Collapse => span.verdict == Health::Collapse,
            Health::Strained => matches!(span.verdict, Health::Strained | Health::Collapse),
            Health::Healthy | Health::Unknown => false,
        };
        let first = self.spans.iter().find(is_so)?;
        let last = self.spans.iter().rfind(is_so)?;
        Some((first.from_s, last.to_s))
    }
}

/// Retransmissions by what they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retransmissions {
    /// An answer to an earlier transmission reached the device.
    pub spurious: u64,
    /// None did.
    pub needed: u64,
    /// Both are possible.
    pub unknown: u64,
}

/// Both directions.
#[derive(Clone, Debug, Serialize)]
pub struct PathOf {
    /// To the endpoint that answers.
    pub uplink: LinkOf,
    /// To the endpoint that asks.
    pub downlink: LinkOf,
    /// Seconds of a round trip without queues.
    pub base_rtt_s: Figure,
}

/// One direction.
#[derive(Clone, Debug, Serialize)]
pub struct LinkOf {
    /// bit/s of IP packets.
    pub rate_bps: Figure,
    /// Bytes of IP packets.
    pub buffer_bytes: Figure,
    /// Share lost besides those that found the queue full.
    pub loss: Figure,
}

/// Timers of RFC 7252 §4.8.
#[derive(Clone, Debug, Serialize)]
pub struct TimersOf {
    /// Seconds.
    pub ack_timeout_s: Figure,
    /// `ACK_RANDOM_FACTOR`.
    pub random_factor: Figure,
    /// The ratio of a gap to the one before.
    pub backoff: Figure,
    /// `MAX_RETRANSMIT`.
    pub max_retransmit: Figure,
}

/// Middle sizes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// IP packets of requests.
    pub request_bytes: u32,
    /// IP packets of answers.
    pub answer_bytes: u32,
    /// Their payload.
    pub request_payload_bytes: u32,
    /// Their payload.
    pub answer_payload_bytes: u32,
}

/// How the network was for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Seconds since the first packet.
    pub from_s: f64,
    /// Seconds since the first packet.
    pub to_s: f64,
    /// Transmissions.
    pub transmissions: u64,
    /// Retransmissions.
    pub retransmissions: Retransmissions,
    /// Exchanges that began.
    pub exchanges: u64,
    /// Of the answers' bytes those of use.
    pub goodput_ratio: Option<f64>,
    /// How it was then, of the exchanges that began.
    pub verdict: Health,
}

/// What one device did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its address.
    pub address: SocketAddr,
    /// Its exchanges.
    pub exchanges: u64,
    /// Its transmissions.
    pub transmissions: u64,
    /// Its retransmissions.
    pub retransmissions: Retransmissions,
}

impl From<Counts> for Retransmissions {
    fn from(counts: Counts) -> Self {
        Self { spurious: counts.spurious, needed: counts.needed, unknown: counts.unknown }
    }
}

/// Chapters whose figures are kept, in tests so few that there are more.
const MOST_CHAPTERS: usize = if cfg!(test) { 8 } else { 1 << 12 };

/// Why of a capture without exchanges.
const NOTHING: &str = "nothing was captured";

/// Why there are no timers of records of DTLS.
const ASSUMED: &str = "retransmissions of DTLS are recognised by the timers of RFC 7252, which are assumed";

/// The sums of all chapters so far, and the figures of each.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    side: Option<Side>,
    counts: Counts,
    exchanges: u64,
    useful: f64,
    carried: f64,
    hidden_strain: bool,
    windows: Windows,
    /// By the number of the pair.
    devices: Vec<OfDevice>,
    chapters: Vec<ChapterFigures>,
    /// Beyond what is kept.
    chapters_left_out: u64,
    doubts: Doubts,
    end: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfDevice {
    exchanges: u64,
    counts: Counts,
    /// When its first exchange began, and when it was heard last, seconds.
    from: f64,
    to: f64,
}

#[derive(Debug)]
struct ChapterFigures {
    weight: usize,
    uplink: LinkFigures,
    downlink: LinkFigures,
    base_rtt_s: Figure,
    timers: TimersOf,
    presets: Presets,
    nstart: Figure,
    period_s: Figure,
    alignment: Alignment,
    closed_loop: bool,
    sizes: Sizes,
    token_length: usize,
    start_spread_s: f64,
}

impl Summary {
    pub(crate) fn is_empty(&self) -> bool {
        self.chapters.is_empty()
    }

    pub(crate) fn exchanges(&self) -> u64 {
        self.exchanges
    }

    pub(crate) fn add(&mut self, side: Side, chapter: &Chapter, findings: &Findings, cut: f64) {
        self.side = Some(side);
        let scale = if findings.carried_bytes > 0.0 { findings.useful_bytes / findings.carried_bytes } else { 1.0 };
        let mut settled = (0.0, 0.0);
        for (exchange, judged) in chapter.exchanges.iter().zip(&findings.judged) {
            if !is_settled(exchange, cut) {
                continue;
            }
            self.exchanges += 1;
            self.counts.add(judged);
            let began = exchange.began();
            let place = exchange.peer as usize;
            if place >= self.devices.len() {
                self.devices.resize(place + 1, OfDevice::default());
            }
            let of = &mut self.devices[place];
            if of.exchanges == 0 {
                of.from = began;
            }
            of.exchanges += 1;
            of.counts.add(judged);
            of.to = exchange.last_sent();
            let bytes = f64::from(exchange.answer_bytes);
            let answers = exchange.answered.len() as f64;
            settled.0 += bytes.min(bytes * answers);
            settled.1 += bytes * answers;
            let window = self.windows.at(exchange.began());
            window.exchanges += 1;
            window.counts.add(judged);
            window.useful += bytes.min(bytes * answers);
            window.carried += bytes * answers;
        }
        // Answers that were lost were not carried to the end.
        self.useful += settled.0;
        self.carried += if settled.1 > 0.0 { settled.0 / scale } else { 0.0 };
        self.hidden_strain |= findings.hidden_strain;
        let of_chapter = crate::doubts::of_chapter(chapter, self.chapters.is_empty());
        self.doubts.extend(of_chapter.into_iter().chain(findings.doubts.iter().cloned()));
        self.end = chapter.end();
        if self.chapters.len() < MOST_CHAPTERS {
            self.chapters.push(ChapterFigures::of(side, chapter, findings));
        } else {
            self.chapters_left_out += 1;
        }
    }

    pub(crate) fn finish(
        self,
        Gathering { pairs, oddities, sessions, origin, .. }: &Gathering,
        census: &Census,
        endings: &[Ending],
    ) -> Diagnosis {
        let goodput = goodput_ratio(self.useful, self.carried);
        let seen = || (0..).zip(&self.devices).filter(|(_, of)| of.exchanges > 0);
        let mut by_device: Vec<Device> = seen()
            .filter_map(|(peer, &OfDevice { exchanges, counts, .. })| {
                let address = pairs.name(peer)?.0;
                Some(Device { address, exchanges, transmissions: counts.transmissions, retransmissions: counts.into() })
            })
            .collect();
        by_device.sort_by_key(|device| {
            let of = device.retransmissions;
            (std::cmp::Reverse(of.spurious + of.needed + of.unknown), device.address)
        });
        let length = self.windows.length;
        let spans = self.windows.of.iter().enumerate().map(|(place, window)| {
            let goodput = goodput_ratio(window.useful, window.carried);
            Span {
                from_s: place as f64 * length,
                to_s: ((place + 1) as f64 * length).min(self.end),
                transmissions: window.counts.transmissions,
                retransmissions: window.counts.into(),
                exchanges: window.exchanges,
                goodput_ratio: goodput,
                verdict: health(&window.counts, goodput, false),
            }
        });
        let spans = spans.collect();
        let ports = seen().filter_map(|(peer, of)| Some((pairs.name(peer)?.0, of.from, of.to)));
        let mut doubts = crate::doubts::of_reading(oddities, census, endings);
        doubts.extend(crate::doubts::of_ports(ports));
        doubts.extend(self.doubts.all(self.chapters_left_out));
        let of = |figure: fn(&ChapterFigures) -> &Figure| together(&self.chapters, figure);
        let first = self.chapters.first();
        let largest = self.chapters.iter().max_by_key(|chapter| chapter.weight);
        let link = |of_link: fn(&ChapterFigures) -> &LinkFigures| LinkOf {
            rate_bps: together(&self.chapters, |chapter| &of_link(chapter).rate_bps),
            buffer_bytes: together(&self.chapters, |chapter| &of_link(chapter).buffer_bytes),
            loss: together(&self.chapters, |chapter| &of_link(chapter).loss),
        };
        let mut path = PathOf {
            uplink: link(|chapter| &chapter.uplink),
            downlink: link(|chapter| &chapter.downlink),
            base_rtt_s: of(|chapter| &chapter.base_rtt_s),
        };
        if doubts.iter().any(|doubt| doubt.is_grave) {
            for link in [&mut path.uplink, &mut path.downlink] {
                [&mut link.rate_bps, &mut link.buffer_bytes, &mut link.loss]
                    .into_iter()
                    .for_each(crate::doubts::demote);
            }
            crate::doubts::demote(&mut path.base_rtt_s);
        }
        let side = self.side.unwrap_or(Side::Server);
        match side {
            Side::Server => by_numbers(&mut path.uplink.loss, sessions.up),
            Side::Devices => by_numbers(&mut path.downlink.loss, sessions.down),
            Side::Both => {}
        }
        let timers = TimersOf {
            ack_timeout_s: of(|chapter| &chapter.timers.ack_timeout_s),
            random_factor: of(|chapter| &chapter.timers.random_factor),
            backoff: of(|chapter| &chapter.timers.backoff),
            max_retransmit: of(|chapter| &chapter.timers.max_retransmit),
        };
        let presets = first.map_or_else(|| Presets::unknown(NOTHING), |chapter| chapter.presets.clone());
        let (timers, presets) = if census.dtls_judged > 0 {
            (TimersOf::unknown(ASSUMED), Presets::unknown(ASSUMED))
        } else {
            (timers, presets)
        };
        Diagnosis {
            verdict: health(&self.counts, goodput, self.hidden_strain),
            side,
            devices: by_device.len() as u64,
            exchanges: self.exchanges,
            transmissions: self.counts.transmissions,
            retransmissions: self.counts.into(),
            goodput_ratio: goodput,
            path,
            timers,
            presets,
            nstart: of(|chapter| &chapter.nstart),
            period_s: of(|chapter| &chapter.period_s),
            alignment: largest.map_or_else(|| Alignment::unknown(NOTHING), |chapter| chapter.alignment.clone()),
            closed_loop: largest.is_some_and(|chapter| chapter.closed_loop),
            start_spread_s: first.map_or(0.0, |chapter| chapter.start_spread_s),
            sizes: largest.map(|chapter| chapter.sizes).unwrap_or_default(),
            token_length: largest.map_or(0, |chapter| chapter.token_length),
            spans,
            began_us: origin.unwrap_or_default(),
            lasted_s: self.end,
            doubts: doubts.into_iter().map(|doubt| doubt.text).collect(),
            by_device,
        }
    }
}

/// Losses that the numbers of DTLS records show, where they do.
fn by_numbers(loss: &mut Figure, numbers: Numbers) {
    const FEW: u64 = 20;
    if numbers.sent >= FEW {
        let missing = counted(numbers.missing(), "is missing", "are missing");
        let because =
            format!("of the numbers of {} records {missing}, those that found the queue full included", numbers.sent);
        *loss = Figure::estimate(numbers.missing() as f64 / numbers.sent as f64, because);
    }
}

impl TimersOf {
    fn unknown(because: &str) -> Self {
        let unknown = || Figure::unknown(because);
        Self { ack_timeout_s: unknown(), random_factor: unknown(), backoff: unknown(), max_retransmit: unknown() }
    }
}

/// The best of what chapters say: exact values if they agree, else what most exchanges say.
fn together(chapters: &[ChapterFigures], of: impl Fn(&ChapterFigures) -> &Figure) -> Figure {
    let best = |grade: Grade| {
        let of_grade = chapters.iter().filter(|chapter| of(chapter).grade == grade);
        of_grade.max_by_key(|chapter| chapter.weight).map(&of)
    };
    if let Some(exact) = best(Grade::Exact) {
        let values =
            sorted(chapters.iter().map(&of).filter(|figure| figure.grade == Grade::Exact).filter_map(|f| f.value));
        if let (Some(&low), Some(&high)) = (values.first(), values.last())
            && high > 1.03 * low
        {
            let because = format!("it changed, or is not what it seems: from {low:.4} to {high:.4}");
            return Figure::estimate(median(&values).unwrap_or(low), because);
        }
        return exact.clone();
    }
    if let Some(estimate) = best(Grade::Estimate) {
        return estimate.clone();
    }
    let bounds = |grade: Grade| chapters.iter().map(&of).filter(move |figure| figure.grade == grade);
    let value = |figure: &Figure| figure.value.unwrap_or_default();
    let highest = bounds(Grade::AtLeast).max_by(|one, other| value(one).total_cmp(&value(other)));
    let lowest = bounds(Grade::AtMost).min_by(|one, other| value(one).total_cmp(&value(other)));
    let unknown = || best(Grade::Unknown).cloned().unwrap_or_else(|| Figure::unknown(NOTHING));
    highest.or(lowest).cloned().unwrap_or_else(unknown)
}

impl ChapterFigures {
    fn of(side: Side, chapter: &Chapter, findings: &Findings) -> Self {
        let exchanges = &chapter.exchanges;
        let period_s = period(findings);
        let middle = |values: Vec<u32>| median_of(values.into_iter().map(f64::from)).unwrap_or_default() as u32;
        let answered = || exchanges.iter().filter(|exchange| exchange.answer_bytes > 0);
        let mut tokens = [0_usize; 9];
        for exchange in exchanges {
            tokens[exchange.token.len().min(8)] += 1;
        }
        let first = sorted(chapter.peers().filter_map(|mut of| of.next().map(|exchange| exchange.began())));
        let spread = quantile(&first, 0.8).zip(first.first()).map_or(0.0, |(most, first)| (most - first) / 0.8);
        Self {
            weight: exchanges.len(),
            uplink: findings.uplink.clone(),
            downlink: findings.downlink.clone(),
            base_rtt_s: findings.base_rtt_s.clone(),
            timers: timers_of(side, findings),
            presets: findings.presets.clone(),
            nstart: nstart(side, chapter, &findings.judged, findings.open),
            alignment: alignment(chapter, &period_s),
            period_s,
            closed_loop: findings.closed_loop,
            sizes: Sizes {
                request_bytes: middle(exchanges.iter().map(|exchange| exchange.request_bytes).collect()),
                answer_bytes: middle(answered().map(|exchange| exchange.answer_bytes).collect()),
                request_payload_bytes: middle(exchanges.iter().map(|exchange| exchange.request_payload).collect()),
                answer_payload_bytes: middle(answered().map(|exchange| exchange.answer_payload).collect()),
            },
            token_length: tokens.iter().enumerate().max_by_key(|(_, count)| **count).map_or(0, |(length, _)| length),
            start_spread_s: spread,
        }
    }
}

fn timers_of(side: Side, findings: &Findings) -> TimersOf {
    let timers = &findings.timers;
    let gaps = counted(timers.in_range as u64, "first gap between transmissions", "first gaps between transmissions");
    let few = || Figure::unknown(format!("{gaps}: too few"));
    let (ack_timeout_s, random_factor) = match timers.range.filter(|_| timers.is_seen()) {
        Some(_) => {
            let (low, high) = timers.likely();
            let blurred = if timers.blurred { ", blurred by the uplink's queue" } else { "" };
            (
                Figure::estimate(low, format!("{gaps}{blurred}")),
                Figure::estimate(high / low, format!("{gaps}{blurred}")),
            )
        }
        None => (few(), few()),
    };
    let hidden = if side == Side::Server { ", if none was lost before the server" } else { "" };
    TimersOf {
        ack_timeout_s,
        random_factor,
        backoff: match timers.backoff {
            Some(ratio) => Figure::estimate(ratio, "the second gap by the first"),
            None => Figure::unknown("too few exchanges with three transmissions"),
        },
        max_retransmit: match timers.most.checked_sub(1) {
            Some(most) if timers.is_limit && !timers.ended_sooner => {
                Figure::estimate(most as f64, format!("many exchanges end with {} transmissions{hidden}", timers.most))
            }
            Some(most) => {
                let had = counted(timers.most as u64, "transmission", "transmissions");
                Figure::at_least(most as f64, format!("an exchange had {had}"))
            }
            None => Figure::unknown("no confirmable request"),
        },
    }
}
