use alloc::{boxed::Box, collections::VecDeque};

use millpond_control::{Instant, Span};

use super::{BurstParameters, paced::Paced};

/// The end that has the body: sends it set by set, and again what is missing.
#[derive(Clone, Debug)]
pub(crate) struct BurstSender {
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
    /// The account of a paced one.
    paced: Option<Box<Paced>>,
}

/// What a receiver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feedback<'a> {
    /// Everything before this block has arrived: go on with it.
    GoOn(u32),
    /// These are missing.
    Missing(&'a [u32]),
}

/// What leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// This block; `more`: it is not the last one of the body.
    Block {
        /// Its number.
        number: u32,
        /// More blocks follow it in the body.
        more: bool,
        /// It was asked for by number.
        requested: bool,
    },
    /// Nothing before then, unless the receiver asks.
    Wait(Instant),
    /// Nothing, unless the receiver asks.
    Nothing,
}

impl BurstSender {
    /// A body of so many blocks, at least one, that flows from its first block on; `pause` is drawn by
    /// [`BurstParameters::drawn_pause`].
    #[must_use]
    pub(crate) fn new(parameters: BurstParameters, blocks: u32, pause: Span) -> Self {
        let blocks = if blocks == 0 { 1 } else { blocks };
        let paced = if parameters.paced { Some(Box::new(Paced::new(pause, parameters.set))) } else { None };
        Self {
            parameters,
            blocks,
            next: 0,
            flows: true,
            again: VecDeque::new(),
            repeated: 0,
            pause,
            resume: None,
            paced,
        }
    }

    /// The same, of which the first block is on its way already and nothing more leaves before it is asked for.
    #[must_use]
    pub(crate) fn resting(parameters: BurstParameters, blocks: u32, pause: Span, now: Instant) -> Self {
        let mut sender = Self { next: 1, flows: false, ..Self::new(parameters, blocks, pause) };
        if let Some(paced) = &mut sender.paced {
            paced.answers(now);
        }
        sender
    }

    /// The round trip of a message with nothing before it was measured, of use to a paced one.
    pub(crate) fn probed(&mut self, round_trip: Span) {
        if let Some(paced) = &mut self.paced {
            paced.pace.probed(round_trip);
        }
    }

    /// The whole body from this block on, whatever was sent before.
    pub(crate) fn flow_from(&mut self, number: u32) {
        (self.next, self.flows, self.resume) = (number.min(self.blocks), true, None);
        self.again.clear();
        if let Some(paced) = &mut self.paced {
            paced.begin_at(number);
        }
    }

    /// Feedback of the receiver came at `now`. What it misses leaves before anything else, each block once. A block that was never
    /// sent is not missing: the next set may leave. One that is no part of the body is ignored.
    pub(crate) fn feedback(&mut self, now: Instant, feedback: Feedback<'_>) {
        if let Some(paced) = &mut self.paced {
            match feedback {
                Feedback::GoOn(number) => paced.go_on(now, number, self.next),
                Feedback::Missing(numbers) => paced.missing(now, numbers, self.next),
            }
        }
        match feedback {
            Feedback::GoOn(number) if number >= self.next => {
                (self.next, self.flows, self.resume) = (number.min(self.blocks), true, None);
            }
            Feedback::GoOn(_) => {}
            Feedback::Missing(numbers) => {
                if numbers.contains(&self.next)
                    && let Some(paced) = &mut self.paced
                {
                    paced.is_waited_for(self.next);
                    self.flows = true;
                }
                let blocks = self.blocks;
                for &number in numbers.iter().filter(|number| **number < blocks) {
                    let is_on_its_way = self.paced.as_ref().is_some_and(|paced| paced.is_on_its_way(now, number));
                    if number >= self.next && self.flows {
                        self.resume = None;
                    } else if !is_on_its_way {
                        self.send_again(number);
                    }
                }
            }
        }
    }

    /// Only this block is wanted (a request with M not set).
    pub(crate) fn only(&mut self, number: u32) {
        self.send_again(number);
    }

    /// This block and the rest of its set are wanted.
    pub(crate) fn rest_of_set(&mut self, now: Instant, number: u32) {
        if self.paced.is_some() && number >= self.next {
            return self.feedback(now, Feedback::GoOn(number));
        }
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
    pub(crate) fn poll(&mut self, now: Instant) -> Leaving {
        if self.again.is_empty() && (self.next >= self.blocks || !self.flows) {
            return Leaving::Nothing;
        }
        if let Some(paced) = &mut self.paced {
            if let Some(due) = paced.due(now, self.next, self.again.is_empty()) {
                return Leaving::Wait(due);
            }
            if let Some(number) = self.again.pop_front() {
                paced.left_again(now, number);
                return self.block(number, true);
            }
            let number = self.next;
            paced.left(now, number);
            self.next = self.next.saturating_add(1);
            return self.block(number, false);
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
            return self.block(number, true);
        }
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.repeated = 0;
        self.resume = if self.next.checked_rem(set) == Some(0) { Some(now.after(self.pause)) } else { None };
        self.block(number, false)
    }

    /// This block could not leave at `now` after all: it waits for a pause, and everything else with it.
    pub(crate) fn held_back(&mut self, now: Instant, number: u32) {
        if !self.again.contains(&number) {
            self.again.push_front(number);
        }
        self.repeated = self.parameters.set.max(1);
        self.resume = Some(now.after(self.pause));
        if let Some(paced) = &mut self.paced {
            paced.held_back(now.after(self.pause));
        }
    }

    /// When the next block leaves, if not now.
    fn due(&mut self, now: Instant) -> Option<Instant> {
        let is_bounded = self.again.is_empty() || self.repeated >= self.parameters.set.max(1);
        let resume = self.resume.filter(|_| is_bounded);
        let due = resume.filter(|due| *due > now);
        if due.is_none() && is_bounded {
            (self.resume, self.repeated) = (None, 0);
        }
        due
    }

    /// Whether every block was sent once.
    #[cfg(test)]
    pub(crate) const fn has_sent_all(&self) -> bool {
        self.next >= self.blocks
    }

    /// The next block that was never sent; as many as there are once all were.
    #[must_use]
    pub(crate) const fn next(&self) -> u32 {
        self.next
    }

    /// Blocks of the body.
    #[must_use]
    pub(crate) const fn blocks(&self) -> u32 {
        self.blocks
    }

    /// How long nothing may come before that says something, of a paced one.
    #[must_use]
    pub(crate) fn timeout(&self) -> Option<Span> {
        self.paced.as_ref().map(|paced| paced.pace.timeout())
    }

    const fn block(&self, number: u32, requested: bool) -> Leaving {
        Leaving::Block { number, more: number < self.blocks.saturating_sub(1), requested }
    }
}
