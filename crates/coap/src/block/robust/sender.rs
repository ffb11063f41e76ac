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
    /// Blocks asked for again.
    again: VecDeque<u32>,
    /// The pause between sets, drawn for this body.
    pause: Span,
    /// The next set leaves then, unless it is asked for before.
    resume: Option<Instant>,
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
    },
    /// Nothing before then, unless the receiver asks.
    Wait(Instant),
    /// Nothing, unless the receiver asks: all was sent.
    Nothing,
}

impl BurstSender {
    /// A body of so many blocks, at least one; `pause` is drawn by [`BurstParameters::drawn_pause`].
    #[must_use]
    pub const fn new(parameters: BurstParameters, blocks: u32, pause: Span) -> Self {
        let blocks = if blocks == 0 { 1 } else { blocks };
        Self { parameters, blocks, next: 0, again: VecDeque::new(), pause, resume: None }
    }

    /// The receiver asked. What it misses leaves before anything else, each block once. A block that was never sent is
    /// not missing: the next set may leave. One that is no part of the body is ignored.
    pub fn asked(&mut self, asked: Asked<'_>) {
        match asked {
            Asked::GoOn(number) if number >= self.next => self.resume = None,
            Asked::GoOn(_) => {}
            Asked::Missing(numbers) => {
                for &number in numbers.iter().filter(|number| **number < self.blocks) {
                    if number >= self.next {
                        self.resume = None;
                    } else if !self.again.contains(&number) {
                        self.again.push_back(number);
                    }
                }
            }
        }
    }

    /// Only this block is wanted (a request with M not set).
    pub fn only(&mut self, number: u32) {
        self.next = self.blocks;
        if number < self.blocks {
            self.again.push_back(number);
        }
    }

    /// This block and the rest of its set are wanted.
    pub fn rest_of_set(&mut self, number: u32) {
        let first = self.parameters.set_of(number).saturating_add(1).saturating_mul(self.parameters.set);
        for number in number..first.min(self.blocks) {
            if !self.again.contains(&number) {
                self.again.push_back(number);
            }
        }
    }

    /// What leaves at `now`. Call until it is no block.
    pub fn poll(&mut self, now: Instant) -> Leaving {
        if let Some(number) = self.again.pop_front() {
            return self.block(number);
        }
        if self.next >= self.blocks {
            return Leaving::Nothing;
        }
        match self.resume {
            Some(resume) if now < resume => return Leaving::Wait(resume),
            _ => self.resume = None,
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        if self.next.checked_rem(self.parameters.set) == Some(0) {
            self.resume = Some(now.after(self.pause));
        }
        self.block(number)
    }

    /// Whether every block was sent once.
    #[must_use]
    pub const fn has_sent_all(&self) -> bool {
        self.next >= self.blocks
    }

    const fn block(&self, number: u32) -> Leaving {
        Leaving::Block { number, more: number < self.blocks.saturating_sub(1) }
    }
}
