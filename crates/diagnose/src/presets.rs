//! Which presets explain when devices sent again: each is run once more over what its device sent and was answered.
//!
//! A preset says of each wait between which bounds it lies, given all that went before. It fits if nearly all waits lie so, and
//! none other makes them much likelier: a wait that could have been anything says less than one that had to be just so.

use millpond_control::{
    AnyController, Chance, Controller, Cx, End, Exchange as Record, Instant, Naming, Preset, ReplyKind, Sample,
    Setting, SettingValue, Span, Wait,
};
use serde::Serialize;

use crate::exchanges::{Chapter, Exchange};
use crate::timers::Timers;
use crate::words::counted;

/// Whether the timers of presets are those of the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fitting {
    /// Those that are named fit, and no other.
    Fits,
    /// None does.
    None,
    /// It cannot be told.
    Unknown,
}

/// Which presets fit the devices' timers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Presets {
    /// Whether any does.
    pub verdict: Fitting,
    /// Those that do, the likeliest first; those that cannot be distinguished if it cannot be told.
    pub names: Vec<&'static str>,
    /// Why.
    pub because: String,
}

impl Presets {
    pub(crate) fn unknown(because: impl Into<String>) -> Self {
        Self { verdict: Fitting::Unknown, names: Vec::new(), because: because.into() }
    }
}

/// Exchanges that are looked at.
const MOST: usize = 1500;
/// Fewer waits say nothing.
const FEW: usize = 8;
/// So many waits of a preset that fits are as it has them.
const NEARLY_ALL: f64 = 0.95;
/// More presets that fit alike are not distinguished.
const ALIKE: usize = 4;
/// A preset that makes all waits less likely by this factor (a logarithm) does not explain them as well.
const LESS: f64 = 5.0;
/// Seconds, and a share, by which a wait may be off.
const OFF: (f64, f64) = (0.02, 0.02);
/// What happens otherwise: seldom, and within so many seconds.
const OTHERWISE: (f64, f64) = (0.02, 20.0);
/// Bytes of a message, for presets to which they matter.
const LENGTH: u16 = 60;

/// What is seen of the devices' waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// All, with the answers that ended them.
    All,
    /// Those between transmissions that came to the server, and nothing of what devices learn from answers.
    AtServer,
}

/// A preset that may be the devices'.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    preset: Preset,
    fresh: AnyController,
    /// ACK_TIMEOUT is the measured one and not its own, seconds.
    ack_timeout: Option<f64>,
    waits: usize,
    inside: usize,
    likely: f64,
}

/// `at_once` says of the n-th transmission of an exchange whether it came without having waited in a queue.
pub(crate) fn presets(
    chapter: &Chapter,
    timers: &Timers,
    seen: Seen,
    at_once: impl Fn(&Exchange, usize) -> bool,
) -> Presets {
    if chapter.is_later {
        return Presets::unknown("what devices had learnt before is not seen");
    }
    let names_copies = names_copies(chapter);
    let mut candidates = candidates(timers, seen, names_copies);
    let every = chapter.exchanges.len() / MOST + 1;
    for of_device in chapter.by_peer.each().step_by(every) {
        let exchanges: Vec<&Exchange> = of_device
            .iter()
            .filter_map(|&index| chapter.exchanges.get(index as usize))
            .filter(|exchange| exchange.confirmable)
            .collect();
        let happened = happened(&exchanges, seen);
        for candidate in &mut candidates {
            candidate.replay(&exchanges, &happened, seen, &at_once);
        }
    }
    judge(candidates, seen)
}

fn judge(mut candidates: Vec<Candidate>, seen: Seen) -> Presets {
    let waits = candidates.iter().map(|candidate| candidate.waits).max().unwrap_or_default();
    if waits < FEW {
        let waits = counted(waits as u64, "wait between transmissions is", "waits between transmissions are");
        return Presets::unknown(format!("{waits} too few"));
    }
    let of_all = candidates.len();
    let closest = candidates.iter().map(Candidate::share).fold(0.0, f64::max);
    candidates.retain(|candidate| candidate.waits >= FEW && candidate.share() >= NEARLY_ALL);
    candidates.sort_by(|one, other| other.likely.total_cmp(&one.likely));
    let Some(&best) = candidates.first() else {
        return match seen {
            Seen::All => Presets {
                verdict: Fitting::None,
                names: Vec::new(),
                because: format!(
                    "of {waits} waits the closest of {of_all} presets has {:.0} % so, if devices began with the capture",
                    100.0 * closest
                ),
            },
            Seen::AtServer => Presets::unknown(format!(
                "{waits} waits are not those of a preset that always waits alike, and what others measure is not seen here"
            )),
        };
    };
    candidates.retain(|candidate| candidate.likely > best.likely - LESS);
    let mut names: Vec<&str> = candidates.iter().map(|candidate| candidate.preset.name()).collect();
    let mut told = Vec::new();
    names.retain(|name| {
        let is_first = !told.contains(name);
        told.push(*name);
        is_first
    });
    if names.len() > ALIKE {
        return Presets {
            verdict: Fitting::Unknown,
            because: format!("{} presets have such waits alike", names.len()),
            names,
        };
    }
    let own = best.ack_timeout.map_or_else(String::new, |time| format!(" with an ACK_TIMEOUT of {time:.1} s"));
    let unseen = match seen {
        Seen::All => "",
        Seen::AtServer => "; presets that measure are not compared, for what they measure is not seen here",
    };
    Presets {
        verdict: Fitting::Fits,
        names,
        because: format!("{} of {} waits are as it has them{own}{unseen}", best.inside, best.waits),
    }
}

/// Whether copies have tokens of their own; `None` if there are no copies.
fn names_copies(chapter: &Chapter) -> Option<bool> {
    let resent = || chapter.exchanges.iter().filter(|exchange| exchange.confirmable && exchange.sent.len() > 1);
    let named = resent().filter(|exchange| exchange.is_named).count();
    (resent().next().is_some()).then(|| 2 * named > resent().count())
}

/// The presets that can be compared. Those for requests that nobody acknowledges have no timer of their own, and those that
/// name copies in options are left out, for options are not read.
fn candidates(timers: &Timers, seen: Seen, names_copies: Option<bool>) -> Vec<Candidate> {
    let plain = |preset: Preset, fresh: AnyController, ack_timeout: Option<f64>| Candidate {
        preset,
        fresh,
        ack_timeout,
        waits: 0,
        inside: 0,
        likely: 0.0,
    };
    let mut found = Vec::new();
    for preset in Preset::all() {
        let fresh = preset.build();
        let is_possible = !fresh.wishes().governs_requests
            && match fresh.wishes().naming {
                Naming::None => names_copies != Some(true),
                Naming::Token => names_copies != Some(false),
                _ => false,
            };
        let waits_alike = waits_alike(fresh);
        if !is_possible || seen == Seen::AtServer && !waits_alike {
            continue;
        }
        found.push(plain(preset, fresh, None));
        let measured = timers.likely().0;
        let mut adjusted = fresh;
        let number = (1e3 * measured).round() / 1e3;
        if waits_alike
            && timers.is_seen()
            && adjusted.put(Setting::AckTimeout, SettingValue::Time(span(number))).is_ok()
            && adjusted != fresh
            && adjusted.check().is_ok()
        {
            found.push(plain(preset, adjusted, Some(number)));
        }
    }
    found
}

/// Whether a preset's waits do not depend on what happened before.
fn waits_alike(fresh: AnyController) -> bool {
    const LATE: Span = Span::from_secs(25);
    let cx = Cx::new(Instant::ORIGIN, Chance::MIDDLE);
    let first = |mut controller: AnyController| controller.on_start(&mut Record::new(), LENGTH, cx);
    let after = |retransmissions: u8| {
        let (mut controller, mut record) = (fresh, Record::new());
        controller.on_start(&mut record, LENGTH, cx);
        for _ in 0..retransmissions {
            controller.on_timeout(&mut record, cx);
        }
        controller.on_reply(&record, Sample::new(ReplyKind::Piggybacked, LATE, LATE, retransmissions), cx);
        controller
    };
    first(after(0)) == first(fresh) && first(after(3)) == first(fresh)
}

/// What happens at a device.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An exchange's transmission of this number leaves.
    Sent(usize, usize),
    /// An exchange's answer comes.
    Answered(usize),
}

/// All that happens at a device, in order. Transmissions behind the answer crossed it on the way.
fn happened(exchanges: &[&Exchange], seen: Seen) -> Vec<(f64, Event)> {
    let mut all: Vec<(f64, Event)> = Vec::new();
    for (index, exchange) in exchanges.iter().enumerate() {
        let until = ended(exchange, seen).unwrap_or(f64::INFINITY);
        let sent = exchange.sent.iter().enumerate().filter(|(_, at)| **at <= until);
        all.extend(sent.map(|(number, &at)| (at, Event::Sent(index, number))));
        all.extend((until < f64::INFINITY).then_some((until, Event::Answered(index))));
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all
}

/// When the answer came that ended an exchange.
fn ended(exchange: &Exchange, seen: Seen) -> Option<f64> {
    exchange.answered.first().copied().filter(|_| seen == Seen::All)
}

/// An exchange under a preset.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: usize,
    record: Record,
    sent: usize,
    /// When its wait is over.
    until: f64,
    /// Its waits are no more compared.
    is_left: bool,
}

impl Candidate {
    fn share(&self) -> f64 {
        self.inside as f64 / self.waits.max(1) as f64
    }

    fn replay(
        &mut self,
        exchanges: &[&Exchange],
        happened: &[(f64, Event)],
        seen: Seen,
        at_once: &impl Fn(&Exchange, usize) -> bool,
    ) {
        let mut controller = self.fresh;
        let mut open: Vec<Open> = Vec::new();
        for &(at, event) in happened {
            let cx = |open: &[Open]| Cx {
                open: u16::try_from(open.len()).unwrap_or(u16::MAX).max(1),
                ..Cx::new(instant(at), Chance::MIDDLE)
            };
            while let Some(place) = open.iter().position(|of| {
                of.until < at && ended(exchanges[of.index], seen).is_none() && of.sent == exchanges[of.index].sent.len()
            }) {
                let given_up = open.swap_remove(place);
                controller.on_end(&given_up.record, End::GaveUp, cx(&open));
            }
            match event {
                Event::Sent(index, number) => {
                    let exchange = exchanges[index];
                    let mut this = if number == 0 {
                        Open { index, record: Record::new(), sent: 0, until: at, is_left: false }
                    } else {
                        let Some(place) = open.iter().position(|of| of.index == index) else { continue };
                        open.swap_remove(place)
                    };
                    open.push(this);
                    let cx = cx(&open);
                    open.pop();
                    let wait = |controller: &mut AnyController, record: &mut Record, chance: Chance| -> Wait {
                        let cx = Cx { chance, ..cx };
                        if number == 0 {
                            controller.on_start(record, LENGTH, cx)
                        } else {
                            controller.on_timeout(record, cx)
                        }
                    };
                    let tried = |chance| {
                        let (mut controller, mut record) = (controller, this.record);
                        f64::from(wait(&mut controller, &mut record, chance).span.as_micros()) / 1e6
                    };
                    let (low, high) = (tried(Chance::LOWEST), tried(Chance::HIGHEST));
                    let end = ended(exchange, seen).unwrap_or(f64::INFINITY);
                    let gap = exchange.sent.get(number + 1).filter(|next| **next <= end).map(|next| next - at);
                    let is_seen = at_once(exchange, number) && at_once(exchange, number + 1);
                    if !this.is_left && is_seen {
                        this.is_left = self.compare((low, high), gap, end - at, seen);
                    }
                    let share = gap.filter(|_| high > low).map_or(0.5, |gap| (gap - low) / (high - low));
                    let chance = Chance::from_word((share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32);
                    let taken = wait(&mut controller, &mut this.record, chance).span;
                    (this.sent, this.until) = (number + 1, at + f64::from(taken.as_micros()) / 1e6);
                    open.push(this);
                }
                Event::Answered(index) => {
                    let Some(place) = open.iter().position(|of| of.index == index) else { continue };
                    let cx = cx(&open);
                    let Open { record, sent, .. } = open.swap_remove(place);
                    controller.on_reply(&record, sample(exchanges[index], sent, at), cx);
                }
            }
        }
    }

    /// Puts a wait beside what the preset has. True if the next waits of its exchange say nothing.
    fn compare(&mut self, (low, high): (f64, f64), gap: Option<f64>, answer: f64, seen: Seen) -> bool {
        let (shortest, longest) = (low * (1.0 - OFF.1) - OFF.0, high * (1.0 + OFF.1) + OFF.0);
        let (seldom, within) = OTHERWISE;
        match gap {
            // Where the first, or one between, was lost before the server, a wait is twice as long at least.
            Some(gap) if seen == Seen::AtServer && gap > 1.9 * low => return true,
            Some(gap) => {
                let is_inside = (shortest..=longest).contains(&gap);
                self.waits += 1;
                self.inside += usize::from(is_inside);
                let density = if is_inside { 1.0 / (longest - shortest) } else { 0.0 };
                self.likely += ((1.0 - seldom) * density + seldom / within).ln();
            }
            None if answer.is_finite() => {
                // It would have been sent again by then.
                self.waits += usize::from(answer > longest);
                let still = ((longest - answer) / (longest - shortest)).clamp(0.0, 1.0);
                self.likely += ((1.0 - seldom) * still + seldom).ln();
            }
            None => {}
        }
        false
    }
}

/// What the answer that ended an exchange of so many transmissions said.
fn sample(exchange: &Exchange, sent: usize, at: f64) -> Sample {
    let since = |number: usize| span(exchange.sent.get(number).map_or(0.0, |&sent| at - sent));
    let retransmissions = u8::try_from(sent.saturating_sub(1)).unwrap_or(u8::MAX);
    let kind = if exchange.separate { ReplyKind::EmptyAck } else { ReplyKind::Piggybacked };
    let plain = Sample::new(kind, since(0), since(sent.saturating_sub(1)), retransmissions).of_bytes(LENGTH, LENGTH);
    match exchange.first_answer_names() {
        Some(copy) if exchange.is_named && usize::from(copy) < sent => plain.naming(copy, since(usize::from(copy))),
        _ => plain,
    }
}

fn span(seconds: f64) -> Span {
    Span::from_micros((1e6 * seconds).round() as u32)
}

fn instant(seconds: f64) -> Instant {
    Instant::from_micros((1e6 * seconds).round() as u64)
}
