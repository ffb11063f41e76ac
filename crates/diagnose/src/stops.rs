//! When devices stopped to retransmit: an accepted answer ends the schedule between the last transmission and the one that
//! did not come. So each exchange bounds the loop, and a known loop says which answer was accepted.

use crate::exchanges::Exchange;

/// What is known of loop and losses around an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    /// The loop and how sure it is, seconds.
    pub time: f64,
    pub spread: f64,
    /// Share of answers that are lost.
    pub lost_down: f64,
    /// Share of requests that are lost.
    pub lost_up: f64,
}

/// What devices do: the range of first timers, and after how many transmissions they give up, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub range: (f64, f64),
    pub most: usize,
    /// When the capture ends.
    pub end: f64,
}

/// Exchanges that are looked at together.
const WINDOW: usize = 48;
/// As many windows of a chapter are looked at, evenly spread over its exchanges.
const MOST_WINDOWS: usize = 128;
/// More transmissions of an exchange in a row are not taken to be lost.
const UNSEEN: usize = 4;
/// Further answers are not looked at.
const ANSWERS: usize = 8;
/// So many loops are tried, from a twentieth of a second on.
const LOOPS: i32 = 52;
/// Losses that are tried, of requests before the server and of answers behind it, each with how likely it is beforehand.
const LOST_UP: [(f64, f64); 4] = [(0.01, 0.4), (0.08, 0.3), (0.25, 0.2), (0.5, 0.1)];
const LOST_DOWN: [(f64, f64); 4] = [(0.01, 0.4), (0.08, 0.3), (0.3, 0.2), (0.6, 0.1)];
/// An exchange that no loop explains: other things happen.
const FLOOR: f64 = 0.004;
/// What is less likely than the likeliest by this factor (a logarithm) is left out.
const LEAST: f64 = -6.0;

/// What loop and losses may be, at some times: each possibility with its weight.
#[derive(Clone, Debug)]
pub(crate) struct Stops(Vec<(f64, Vec<(Around, f64)>)>);

impl Stops {
    /// Loops that are tried are so far apart.
    pub(crate) const STEP: f64 = 1.16;

    /// `None` where too few exchanges have retransmissions. `lost_up` is the share of requests that are lost before the
    /// server, if it is known.
    pub(crate) fn of(exchanges: &[Exchange], schedule: Schedule, lost_up: Option<f64>) -> Option<Self> {
        let mut cases: Vec<&Exchange> = exchanges.iter().filter(|exchange| !exchange.answered.is_empty()).collect();
        cases.sort_by(|one, other| one.answered[0].total_cmp(&other.answered[0]));
        let step = (WINDOW / 2).max(cases.len() / MOST_WINDOWS);
        let starts = (0..cases.len().saturating_sub(WINDOW / 2).max(1)).step_by(step);
        let windows = starts.map(|start| &cases[start..(start + WINDOW).min(cases.len())]);
        let several = |window: &&[&Exchange]| window.iter().filter(|exchange| exchange.sent.len() > 1).count() >= 4;
        let of: Vec<_> = windows
            .filter(|window| window.len() >= 12)
            .filter(several)
            .map(|window| (window[window.len() / 2].answered[0], weighed(window, schedule, lost_up)))
            .collect();
        (!of.is_empty()).then_some(Self(of))
    }

    fn near(&self, time: f64) -> &[(Around, f64)] {
        let behind = self.0.partition_point(|of| of.0 < time).min(self.0.len() - 1);
        let before = behind.saturating_sub(1);
        let nearer = if time - self.0[before].0 < self.0[behind].0 - time { before } else { behind };
        &self.0[nearer].1
    }

    /// The longest of the likeliest loops, seconds.
    pub(crate) fn longest(&self) -> f64 {
        let likeliest = self.0.iter().filter_map(|of| of.1.iter().max_by(|one, other| one.1.total_cmp(&other.1)));
        likeliest.map(|(around, _)| around.time).fold(0.0, f64::max)
    }

    /// The share of requests that are lost around a time, by all possibilities.
    pub(crate) fn lost_up(&self, time: f64) -> f64 {
        self.near(time).iter().map(|(around, weight)| around.lost_up * weight).sum()
    }

    /// How likely each transmission was spurious.
    pub(crate) fn spurious(&self, exchange: &Exchange, schedule: Schedule) -> Vec<f64> {
        let mut sum = vec![0.0; exchange.sent.len()];
        let mut accepted = Vec::new();
        let (mut known, mut unseen) = (None, Vec::new());
        for &(around, weight) in self.near(exchange.began()) {
            let loop_time = (around.time, around.spread);
            // What has the same loop differs in losses.
            if known.replace(loop_time) != Some(loop_time) {
                unseen.clear();
                unseen.extend(stopped(exchange, |_| loop_time, schedule));
            }
            let likely = spurious_if(exchange, unseen.iter().copied(), |_| around, schedule, &mut accepted);
            for (sum, likely) in sum.iter_mut().zip(likely) {
                *sum += weight * likely;
            }
        }
        sum
    }
}

/// How likely all of a window stopped when they did under each loop and loss; the weights sum up to 1.
fn weighed(window: &[&Exchange], schedule: Schedule, lost_up: Option<f64>) -> Vec<(Around, f64)> {
    let known = lost_up.map(|lost_up| [(lost_up, 1.0)]);
    let of_requests: &[(f64, f64)] = known.as_ref().map_or(&LOST_UP, |known| known);
    let seen: Vec<Seen> = window.iter().map(|exchange| Seen::of(exchange, schedule)).collect();
    // That the answers before one were lost and it was not, and that all were.
    let answers_lost = LOST_DOWN.map(|(lost_down, _)| {
        let mut all_lost = [1.0; ANSWERS + 1];
        for number in 0..ANSWERS {
            all_lost[number + 1] = all_lost[number] * lost_down;
        }
        (all_lost.map(|before| before * (1.0 - lost_down)), all_lost)
    });
    let mut tried = Vec::with_capacity(LOOPS as usize * of_requests.len() * LOST_DOWN.len());
    let mut unseen: Vec<Unseen> = Vec::new();
    for step in 0..LOOPS {
        let time = 0.05 * Stops::STEP.powi(step);
        let spread = 0.07 * time + 0.02;
        unseen.clear();
        unseen.extend(window.iter().flat_map(|exchange| stopped(exchange, |_| (time, spread), schedule)));
        for &(lost_up, usual_up) in of_requests {
            let mut likely = [Product::ONE; LOST_DOWN.len()];
            let mut rest = &unseen[..];
            for of in &seen {
                let (these, others) = rest.split_at(of.answers);
                rest = others;
                let came = (1.0 - lost_up).powi(of.resent);
                let abandoned = if of.is_over { 1.0 } else { lost_up };
                let stopped: [f64; ANSWERS] =
                    std::array::from_fn(|at| these.get(at).map_or(0.0, |shares| at_last(shares, lost_up)));
                for (product, (until, all_lost)) in likely.iter_mut().zip(&answers_lost) {
                    let accepted = stopped[..of.answers].iter().zip(until);
                    let sum = accepted.fold(FLOOR, |sum, (stopped, until)| sum + until * came * stopped);
                    product.take(sum + all_lost[of.answers] * abandoned * came);
                }
            }
            for (product, (lost_down, usual_down)) in likely.into_iter().zip(LOST_DOWN) {
                tried.push((
                    Around { time, spread, lost_down, lost_up },
                    product.logarithm() + f64::ln(usual_up * usual_down),
                ));
            }
        }
    }
    let best = tried.iter().map(|of| of.1).fold(f64::NEG_INFINITY, f64::max);
    tried.retain(|of| of.1 - best > LEAST);
    let all: f64 = tried.iter().map(|of| (of.1 - best).exp()).sum();
    tried.into_iter().map(|(around, likely)| (around, (likely - best).exp() / all)).collect()
}

/// What of an exchange does not depend on loop and losses.
struct Seen {
    answers: usize,
    resent: i32,
    /// It had all its transmissions, or goes on at the end.
    is_over: bool,
}

impl Seen {
    fn of(exchange: &Exchange, schedule: Schedule) -> Self {
        let is_open = schedule.end - exchange.last_sent() < 2.0 * next_gap(exchange, schedule);
        Self {
            answers: exchange.answered.len().min(ANSWERS),
            resent: (exchange.sent.len() - 1) as i32,
            is_over: exchange.sent.len() >= schedule.most || is_open,
        }
    }
}

/// That an exchange stopped when it did, if so many further transmissions may have been lost.
fn at_last(shares: &Unseen, lost_up: f64) -> f64 {
    shares.iter().rev().fold(0.0, |later, share| share + lost_up * later)
}

/// A product of many factors of which none is below [`FLOOR`].
#[derive(Clone, Copy)]
struct Product {
    logarithm: f64,
    factor: f64,
}

impl Product {
    const ONE: Self = Self { logarithm: 0.0, factor: 1.0 };

    fn take(&mut self, factor: f64) {
        /// Below it the next factors might make the product too small for its exponent.
        const SMALL: f64 = 1e-250;
        self.factor *= factor;
        if self.factor < SMALL {
            self.logarithm += self.factor.ln();
            self.factor = 1.0;
        }
    }

    fn logarithm(self) -> f64 {
        self.logarithm + self.factor.ln()
    }
}

/// How likely it is, if an answer was the accepted one, that it came after so many further transmissions, which were lost.
type Unseen = [f64; UNSEEN];

/// For each answer of an exchange, under loops with their spread, seconds.
fn stopped(
    exchange: &Exchange,
    loop_at: impl Fn(f64) -> (f64, f64),
    schedule: Schedule,
) -> impl Iterator<Item = Unseen> {
    let sent = &exchange.sent;
    let last = exchange.last_sent();
    let gap = next_gap(exchange, schedule);
    let most = schedule.most.saturating_sub(sent.len());
    let is_resent = sent.len() > 1;
    exchange.answered.iter().take(ANSWERS).map(move |&at| {
        let (time, spread) = loop_at(at);
        let before = |until: f64| normal((until - at - time) / spread);
        let next = exchange.next.map_or(1.0, |next| before(next + 0.05));
        let mut until = if is_resent { before(last) } else { 0.0 };
        let mut step = last;
        let mut unseen = [0.0; UNSEEN];
        for (number, share) in unseen.iter_mut().enumerate() {
            step += gap * f64::from(1 << number as u8);
            let ended = if number >= most { 1.0 } else { before(step).max(until) };
            *share = (ended - until) * next;
            until = ended;
        }
        unseen
    })
}

fn next_gap(exchange: &Exchange, schedule: Schedule) -> f64 {
    match exchange.sent[..] {
        [.., before, last] => 2.0 * (last - before),
        _ => f64::midpoint(schedule.range.0, schedule.range.1),
    }
}

/// How likely each answer was the accepted one, and that none was: `None`.
fn hypotheses(
    exchange: &Exchange,
    stopped: impl Iterator<Item = Unseen>,
    around: impl Fn(f64) -> Around,
    schedule: Schedule,
    mut each: impl FnMut(Option<usize>, f64),
) {
    let last = exchange.last_sent();
    let resent = exchange.sent.len() - 1;
    let mut all_lost = 1.0;
    for (answer, (unseen, &at)) in stopped.zip(&exchange.answered).enumerate() {
        let Around { lost_down, lost_up, .. } = around(at);
        let came = (1.0 - lost_up).powi(resent as i32);
        each(Some(answer), all_lost * (1.0 - lost_down) * came * at_last(&unseen, lost_up));
        all_lost *= lost_down;
    }
    let lost_up = around(last).lost_up;
    let abandoned = if Seen::of(exchange, schedule).is_over { 1.0 } else { lost_up };
    each(None, all_lost * abandoned * (1.0 - lost_up).powi(resent as i32));
}

/// How likely an answer to an earlier transmission was accepted, for each transmission: that it was spurious.
pub(crate) fn spurious(exchange: &Exchange, around: impl Fn(f64) -> Around, schedule: Schedule) -> Vec<f64> {
    let loop_at = |time| {
        let Around { time, spread, .. } = around(time);
        (time, spread)
    };
    spurious_if(exchange, stopped(exchange, loop_at, schedule), &around, schedule, &mut Vec::new()).collect()
}

/// The same if it is known how likely each answer was the last that was waited for.
fn spurious_if(
    exchange: &Exchange,
    stopped: impl Iterator<Item = Unseen>,
    around: impl Fn(f64) -> Around,
    schedule: Schedule,
    accepted: &mut Vec<f64>,
) -> impl Iterator<Item = f64> {
    let mut all = FLOOR;
    accepted.clear();
    accepted.resize(exchange.sent.len(), 0.0);
    hypotheses(exchange, stopped, around, schedule, |answer, likely| {
        all += likely;
        if let Some(place) = answer.map(|answer| exchange.asked_by(answer)) {
            accepted[place] += likely;
        }
    });
    let mut until = 0.0;
    accepted.iter().map(move |likely| {
        let before = until;
        until += likely / all;
        // What nothing explains says nothing.
        before + 0.5 * FLOOR / all
    })
}

/// The standard normal distribution (Abramowitz and Stegun, 26.2.17; error below 1e-7).
fn normal(z: f64) -> f64 {
    /// Farther away nothing is left that a sum with [`FLOOR`] shows.
    const FAR: f64 = 10.0;
    if z.abs() > FAR {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let tail = 0.398_942_280_4
        * (-0.5 * z * z).exp()
        * t
        * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    if z >= 0.0 { 1.0 - tail } else { tail }
}
