use alloc::collections::VecDeque;

use millpond_control::{Instant, Span};

use super::BurstParameters;

/// The end that has the body: sends it set by set, and again what is missing.
#[derive(Clone, Debug)]
pub struct BurstSender {
    parameters: BurstParameters,
    /// Blocks of the body.
    blocks: u32,
    /// The next block that was never sent.
    next: u32,
    /// Sets follow each other; else nothing leaves that was not asked for.
    flows: bool,
    /// Blocks asked for again.
    again: VecDeque<u32>,
    /// Blocks that were sent again since the last pause.
    repeated: u32,
    /// The pause between sets, drawn for this body.
    pause: Span,
    /// The next set leaves then, unless it is asked for before.
    resume: Option<Instant>,
    pace: Option<Pace>,
}

/// What a receiver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Everything before this block has arrived: go on with it.
    GoOn(u32),
    /// These are missing.
    Missing(&'a [u32]),
}

/// What leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// This block; `more`: it is not the last one of the body.
    Block {
        /// Its number.
        number: u32,
        /// More blocks follow it in the body.
        more: bool,
        /// It was asked for by number.
        asked: bool,
    },
    /// Nothing before then, unless the receiver asks.
    Wait(Instant),
    /// Nothing, unless the receiver asks.
    Nothing,
}

/// How the payloads of a set are spread over the round trip instead of leaving in a burst. Not in RFC 9177.
///
/// The round trip is that from the last payload of a set to the "go on" for it, smoothed as SRTT is (RFC 6298 §2). It
/// holds what the set itself queued, so that it settles where a set queues half of what a burst would. Where that is
/// still too much for the queue, complaints come: each doubles it, once a set, up to NON_TIMEOUT.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    round_trip: Option<Span>,
    /// When the last payload left.
    left: Option<Instant>,
    /// A "go on" is an answer to the last payload of the set: nothing was sent again in between.
    clear: bool,
    /// The next new block when a complaint was last heeded.
    slowed: u32,
}

impl Pace {
    fn sample(&mut self, now: Instant) {
        let Some(left) = self.left.filter(|_| self.clear) else { return };
        let sample = now.since(left);
        self.round_trip = Some(match self.round_trip {
            None => sample,
            Some(smoothed) => smoothed.scaled(7, 8).plus(sample.scaled(1, 8)),
        });
        self.clear = false;
    }

    /// A complaint came when this was the next new block.
    fn slow_down(&mut self, next: u32, most: Span) {
        if core::mem::replace(&mut self.slowed, next) < next {
            self.round_trip = self.round_trip.map(|round_trip| round_trip.doubled().min(most));
        }
    }
}

impl BurstSender {
    /// A body of so many blocks, at least one, that flows from its first block on; `pause` is drawn by
    /// [`BurstParameters::drawn_pause`].
    #[must_use]
    pub const fn new(parameters: BurstParameters, blocks: u32, pause: Span) -> Self {
        let blocks = if blocks == 0 { 1 } else { blocks };
        let pace =
            if parameters.paced { Some(Pace { round_trip: None, left: None, clear: false, slowed: 0 }) } else { None };
        Self {
            parameters,
            blocks,
            next: 0,
            flows: true,
            again: VecDeque::new(),
            repeated: 0,
            pause,
            resume: None,
            pace,
        }
    }

    /// The same, of which the first block is on its way already and nothing more leaves before it is asked for.
    #[must_use]
    pub fn resting(parameters: BurstParameters, blocks: u32, pause: Span) -> Self {
        Self { next: 1, flows: false, ..Self::new(parameters, blocks, pause) }
    }

    /// The whole body from this block on, whatever was sent before.
    pub fn flow_from(&mut self, number: u32) {
        (self.next, self.flows, self.resume) = (number.min(self.blocks), true, None);
        self.again.clear();
    }

    /// The receiver asked at `now`. What it misses leaves before anything else, each block once. A block that was never
    /// sent is not missing: the next set may leave. One that is no part of the body is ignored.
    pub fn asked(&mut self, now: Instant, asked: Asked<'_>) {
        match asked {
            Asked::GoOn(number) if number >= self.next => {
                if number == self.next
                    && let Some(pace) = &mut self.pace
                {
                    pace.sample(now);
                }
                (self.next, self.flows, self.resume) = (number.min(self.blocks), true, None);
            }
            Asked::GoOn(_) => {}
            Asked::Missing(numbers) => {
                if let Some(pace) = &mut self.pace {
                    pace.slow_down(self.next, self.parameters.pause);
                }
                let blocks = self.blocks;
                for &number in numbers.iter().filter(|number| **number < blocks) {
                    if number >= self.next && self.flows {
                        self.resume = None;
                    } else {
                        self.send_again(number);
                    }
                }
            }
        }
    }

    /// Only this block is wanted (a request with M not set).
    pub fn only(&mut self, number: u32) {
        self.send_again(number);
    }

    /// This block and the rest of its set are wanted.
    pub fn rest_of_set(&mut self, number: u32) {
        let end = self.parameters.set_of(number).saturating_add(1).saturating_mul(self.parameters.set.max(1));
        for number in number..end.min(self.blocks) {
            self.send_again(number);
        }
        self.next = self.next.max(end.min(self.blocks));
    }

    /// A block leaves again, once however often it is asked for (RFC 9177 §4.4). As many wait as a few sets have; of
    /// what is beyond, the receiver will ask again.
    fn send_again(&mut self, number: u32) {
        let most = self.parameters.set.max(1).saturating_mul(4) as usize;
        if number < self.blocks && self.again.len() < most && !self.again.contains(&number) {
            self.again.push_back(number);
        }
    }

    /// What leaves at `now`. Call until it is no block.
    pub fn poll(&mut self, now: Instant) -> Leaving {
        if self.again.is_empty() && (self.next >= self.blocks || !self.flows) {
            return Leaving::Nothing;
        }
        if let Some(due) = self.due(now) {
            return Leaving::Wait(due);
        }
        let set = self.parameters.set.max(1);
        if let Some(number) = self.again.pop_front() {
            self.repeated = self.repeated.saturating_add(1);
            // Another pause before the next set, and between sets of what is sent again (RFC 9177 §7.2).
            if self.resume.is_some() || self.repeated >= set {
                self.resume = Some(now.after(self.pause));
            }
            return self.block(now, number, true);
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.repeated = 0;
        self.resume = if self.next.checked_rem(set) == Some(0) { Some(now.after(self.pause)) } else { None };
        self.block(now, number, false)
    }

    /// This block could not leave at `now` after all: it waits for a pause, and everything else with it.
    pub fn held_back(&mut self, now: Instant, number: u32) {
        if !self.again.contains(&number) {
            self.again.push_front(number);
        }
        self.repeated = self.parameters.set.max(1);
        self.resume = Some(now.after(self.pause));
    }

    /// When the next block leaves, if not now.
    fn due(&mut self, now: Instant) -> Option<Instant> {
        let between = self.pace.and_then(|pace| {
            let round_trip = pace.round_trip.unwrap_or(self.parameters.pause);
            pace.left.map(|left| left.after(round_trip.scaled(1, self.parameters.set)))
        });
        let is_bounded = self.again.is_empty() || self.repeated >= self.parameters.set.max(1);
        let resume = self.resume.filter(|_| is_bounded);
        let due = between.into_iter().chain(resume).max().filter(|due| *due > now);
        if due.is_none() && is_bounded {
            (self.resume, self.repeated) = (None, 0);
        }
        due
    }

    /// Whether every block was sent once.
    #[must_use]
    pub const fn has_sent_all(&self) -> bool {
        self.next >= self.blocks
    }

    /// The next block that was never sent; as many as there are once all were.
    #[must_use]
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// Blocks of the body.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The smoothed round trip over which sets are spread, if they are and one was measured.
    #[must_use]
    pub fn round_trip(&self) -> Option<Span> {
        self.pace.and_then(|pace| pace.round_trip)
    }

    fn block(&mut self, now: Instant, number: u32, asked: bool) -> Leaving {
        if let Some(pace) = &mut self.pace {
            (pace.left, pace.clear) = (Some(now), !asked);
        }
        Leaving::Block { number, more: number < self.blocks.saturating_sub(1), asked }
    }
}
