use alloc::{collections::BTreeMap, vec::Vec};

use millpond_control::{BulkPace, Instant, Span};

use super::{
    super::{Block, BlockSize},
    BurstParameters,
};

/// The end that collects a body.
#[derive(Clone, Debug)]
pub(crate) struct BurstReceiver {
    parameters: BurstParameters,
    size: BlockSize,
    /// Bytes of the whole body, and its blocks. Who merely claims a length has sent nothing yet: what is held follows what
    /// came.
    total: usize,
    blocks: u32,
    /// What is there from the beginning without a gap.
    body: Vec<u8>,
    /// The blocks behind the first gap, and the bytes that they hold.
    ahead: BTreeMap<u32, Vec<u8>>,
    ahead_bytes: usize,
    /// Blocks that came.
    came: u32,
    /// The highest block that came.
    highest: u32,
    /// All blocks before this one are there.
    complete: u32,
    /// Sets up to this one were reported complete.
    reported: u32,
    begun: Instant,
    /// When something came last, and how often was asked since.
    heard: Instant,
    requests: u8,
    /// Gaps are to be reported at once: the next set has begun.
    at_once: bool,
    /// The round trips of a paced one, from a complaint to what it called forth; none measured, none known.
    pace: Option<BulkPace>,
    /// How long before the last block the one before it came.
    apart: Span,
    /// When it complained last, and the last block that it asked for then; it never asked for one from `requested_to` on.
    complained: Instant,
    awaited: Option<u32>,
    requested_to: u32,
    /// The complaint that the next round trip is measured from.
    measured: Option<Measured>,
    /// How long after something came last it asked first.
    hurried: Option<Span>,
    /// The sender may be somewhere else: no more is said to it in silence than RFC 9177 has it.
    is_sparing: bool,
}

/// A complaint about blocks that were never asked for before.
#[derive(Clone, Copy, Debug)]
struct Measured {
    from: u32,
    to: u32,
    at: Instant,
    /// Some of them were asked for again.
    again: bool,
}

/// A block that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt<'a> {
    /// Its option Q-Block1 or Q-Block2.
    pub(crate) block: Block,
    /// Bytes of the whole body (Size1 or Size2), which every block carries.
    pub(crate) total: u32,
    /// Its payload.
    pub(crate) payload: &'a [u8],
}

/// What a block led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is kept; ask [`BurstReceiver::poll`] what to say.
    Kept,
    /// It was there before: answer as if it were new.
    Repeated,
    /// The body is whole.
    Whole,
    /// It does not fit the body: another size or total than before, or a payload that is not what the option says.
    Misfit,
}

/// What the receiver wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReceiverAction {
    /// All blocks before this one are there: the sender may go on with it.
    GoOn(u32),
    /// These are missing.
    Missing(Vec<u32>),
    /// Nothing before then.
    Wait(Instant),
    /// Nothing came for too long: the part of the body is to be dropped.
    GiveUp,
}

impl BurstReceiver {
    /// A body of `total` bytes in blocks of `size`, of which nothing is there. `None` if it is longer than `limit`.
    #[must_use]
    pub(crate) fn new(
        parameters: BurstParameters,
        size: BlockSize,
        total: u32,
        limit: usize,
        now: Instant,
    ) -> Option<Self> {
        let blocks = (total.max(1)).div_ceil(size.bytes()) as usize;
        ((total as usize) <= limit && blocks <= Block::MOST as usize).then(|| Self {
            parameters,
            size,
            total: total as usize,
            blocks: blocks as u32,
            body: Vec::new(),
            ahead: BTreeMap::new(),
            ahead_bytes: 0,
            came: 0,
            highest: 0,
            complete: 0,
            reported: 0,
            begun: now,
            heard: now,
            requests: 0,
            at_once: false,
            pace: None,
            apart: Span::ZERO,
            complained: now,
            awaited: None,
            requested_to: 0,
            measured: None,
            hurried: None,
            is_sparing: false,
        })
    }

    /// A block came.
    pub(crate) fn take(&mut self, now: Instant, receipt: &Receipt<'_>) -> Accepted {
        let Receipt { block, total, payload } = *receipt;
        let start = usize::try_from(block.offset()).unwrap_or(usize::MAX);
        let end = start.saturating_add(payload.len());
        let last = block.number.saturating_add(1) == self.blocks;
        let fits = block.size == self.size
            && total as usize == self.total
            && end <= self.total
            && (payload.len() == self.size.bytes() as usize || (last && end == self.total))
            && block.more != last;
        if !fits {
            return Accepted::Misfit;
        }
        if !self.has(block.number) {
            self.apart = now.since(self.heard);
        }
        self.heard = now;
        self.requests = 0;
        self.hurried = None;
        self.measure(now, block.number);
        // What is behind the last block of a set, or of all, is missing: a paced sender does not wait for that to be told. Nor does it
        // once all that was asked for has come.
        let ends = last || block.number.saturating_add(1).checked_rem(self.parameters.set.max(1)) == Some(0);
        let is_awaited = self.awaited == Some(block.number);
        self.at_once |= self.parameters.paced && (is_awaited || ends) && self.complete < block.number;
        if self.has(block.number) {
            return Accepted::Repeated;
        }
        self.came = self.came.saturating_add(1);
        self.ahead.insert(block.number, payload.to_vec());
        self.ahead_bytes = self.ahead_bytes.saturating_add(payload.len());
        // The first block of a later set shows that the earlier ones will not come by themselves.
        let set = |number: u32| self.parameters.set_of(number);
        let is_later = set(block.number) > set(self.highest);
        let was_reported = self.parameters.paced && set(self.highest.saturating_add(1)) > set(self.highest);
        self.at_once |= is_later && !was_reported && self.complete < block.number;
        self.highest = self.highest.max(block.number);
        while let Some(next) = self.ahead.remove(&self.complete) {
            self.ahead_bytes = self.ahead_bytes.saturating_sub(next.len());
            self.body.extend_from_slice(&next);
            self.complete = self.complete.saturating_add(1);
        }
        if self.is_whole() { Accepted::Whole } else { Accepted::Kept }
    }

    /// A block came again: the sender may not know that its set is complete, so that is reported again (§4.3).
    pub(crate) fn answer_again(&mut self, number: u32) {
        let after = number.saturating_add(1);
        if self.reported > 0 && after == self.reported.saturating_mul(self.parameters.set.max(1)) {
            self.reported = self.reported.saturating_sub(1);
        }
    }

    /// Whether every block is there.
    #[must_use]
    pub(crate) fn is_whole(&self) -> bool {
        self.complete == self.blocks
    }

    /// What to say at `now`. Call until it says to wait or to give up.
    pub(crate) fn poll(&mut self, now: Instant) -> ReceiverAction {
        let set = self.parameters.set.max(1);
        let complete_sets = self.parameters.set_of(self.complete);
        if complete_sets > self.reported && !self.is_whole() && self.complete > self.highest {
            self.reported = complete_sets;
            return ReceiverAction::GoOn(complete_sets.saturating_mul(set));
        }
        let expiry = self.begun.max(self.heard).after(self.parameters.lifetime);
        let is_silent = self.requests >= self.parameters.repeats && now >= self.due().max(self.patience_ends());
        if now >= expiry || is_silent {
            return ReceiverAction::GiveUp;
        }
        if core::mem::take(&mut self.at_once) {
            let before = if self.parameters.paced {
                self.highest
            } else {
                self.parameters.set_of(self.highest).saturating_mul(set)
            };
            let missing = self.missing(before);
            if !missing.is_empty() {
                return self.complains(now, missing);
            }
        }
        if now < self.due() {
            return ReceiverAction::Wait(self.due().min(expiry));
        }
        self.requests = self.requests.saturating_add(1);
        if self.requests == 1 {
            self.hurried = Some(now.since(self.heard));
        }
        // After silence the rest of the set that was under way is missing too, or else the next set.
        let sets = self.parameters.set_of(self.highest).saturating_add(1);
        let missing = self.missing(sets.saturating_mul(set));
        let next = || self.missing(sets.saturating_add(1).saturating_mul(set));
        let missing = if missing.is_empty() { next() } else { missing };
        self.complains(now, missing)
    }

    /// MAX_PAYLOADS.
    pub(super) const fn set(&self) -> u32 {
        self.parameters.set
    }

    /// The size of its blocks.
    #[must_use]
    pub(crate) const fn size(&self) -> BlockSize {
        self.size
    }

    /// Bytes of the whole body.
    #[must_use]
    pub(crate) const fn total(&self) -> usize {
        self.total
    }

    /// All blocks before this one are there.
    #[must_use]
    pub(crate) const fn complete(&self) -> u32 {
        self.complete
    }

    /// Blocks that came.
    #[must_use]
    pub(super) const fn came(&self) -> u32 {
        self.came
    }

    /// Whether the sender is known to be at its address.
    pub(super) const fn is_from(&mut self, is_known: bool) {
        self.is_sparing = !is_known;
    }

    /// Whether no block came yet.
    #[must_use]
    pub(crate) fn is_untouched(&self) -> bool {
        self.complete == 0 && self.ahead.is_empty()
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn memory(&self) -> usize {
        // An entry of the map with its share of a node that is half full.
        const ENTRY: usize = 2 * size_of::<(u32, Vec<u8>)>();
        let entries = self.ahead.len().saturating_mul(ENTRY);
        self.body.capacity().saturating_add(self.ahead_bytes).saturating_add(entries)
    }

    /// The body; whole once [`Accepted::Whole`] was returned.
    #[must_use]
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// The round trip of a message with nothing before it was measured: how long a paced one waits follows it.
    pub(crate) fn probed(&mut self, round_trip: Span) {
        if self.parameters.paced {
            self.pace.get_or_insert(BulkPace::new(self.parameters.patience)).probed(round_trip);
        }
    }

    /// A block that was asked for tells the round trip. One that was asked for twice may have been called forth by either: its time
    /// counts if it is one that can be.
    fn measure(&mut self, now: Instant, number: u32) {
        let Some(measured) = self.measured.filter(|it| (it.from..it.to).contains(&number) && !self.has(number)) else {
            return;
        };
        self.measured = None;
        if !self.parameters.paced {
            return;
        }
        let (pace, round_trip) =
            (self.pace.get_or_insert(BulkPace::new(self.parameters.patience)), now.since(measured.at));
        if measured.again && round_trip > pace.round_trip().scaled(9, 8) {
            pace.at_most(round_trip);
        } else {
            pace.probed(round_trip);
        }
    }

    /// Asks for these.
    fn complains(&mut self, now: Instant, missing: Vec<u32>) -> ReceiverAction {
        let (from, to) = (self.requested_to, missing.last().map_or(0, |last| last.saturating_add(1)));
        match &mut self.measured {
            Some(measured) => {
                measured.again |= missing.iter().any(|number| (measured.from..measured.to).contains(number))
            }
            // What is behind all that came may be on its way.
            None if missing.iter().any(|number| (from..self.highest).contains(number)) => {
                self.measured = Some(Measured { from, to: to.min(self.highest), at: now, again: false });
            }
            None => {}
        }
        (self.complained, self.awaited, self.requested_to) = (now, missing.last().copied(), from.max(to));
        ReceiverAction::Missing(missing)
    }

    /// When silence has lasted long enough to ask (again).
    fn due(&self) -> Instant {
        let patient = self.heard.after(waits(self.parameters.patience, self.requests));
        let Some(pace) = self.pace.as_ref().filter(|_| !self.is_sparing || self.requests < 2) else { return patient };
        let timeout = pace.timeout().plus(self.apart.min(pace.round_trip()));
        let due = match (self.requests.checked_sub(1), self.hurried) {
            (None, _) => self.hurry(pace).map_or(timeout, |hurry| hurry.min(timeout)),
            (Some(before), Some(hurried)) => hurried.plus(waits(timeout, before)),
            (Some(_), None) => waits(timeout, self.requests),
        };
        self.heard.after(due).min(self.patience_ends())
    }

    /// How long after the last block it is plain that another one of its set was lost, or one that was asked for.
    fn hurry(&self, pace: &BulkPace) -> Option<Span> {
        // What follows the first block is asked for first.
        let least = pace.least().filter(|_| self.highest > 0)?;
        let set = self.parameters.set.max(1);
        let end = self.parameters.set_of(self.highest).saturating_add(1).saturating_mul(set);
        let last = *self.missing(end).last()?;
        let late = self.apart.doubled().plus(least.scaled(1, 4)).plus(BulkPace::DELAY);
        let requested = self.complained.after(pace.round_trip().scaled(9, 8).plus(BulkPace::DELAY)).since(self.heard);
        Some(if last < self.requested_to { late.max(requested) } else { late })
    }

    /// When silence has lasted for as long as all repeats of RFC 9177 take.
    fn patience_ends(&self) -> Instant {
        self.heard.after(waits(self.parameters.patience, self.parameters.repeats))
    }

    /// Blocks before this one that are not there, the first ones, a set of them at most (RFC 9177 §7.2). A body may have a
    /// million blocks, of which somebody sends the last: they are not all gone through.
    fn missing(&self, end: u32) -> Vec<u32> {
        let (end, most) = (end.min(self.blocks), self.parameters.set.max(1) as usize);
        let (mut missing, mut next) = (Vec::new(), self.complete);
        for &there in self.ahead.range(..end).map(|(number, _)| number).chain([&end]) {
            missing.extend((next..there).take(most.saturating_sub(missing.len())));
            if missing.len() >= most {
                break;
            }
            next = there.saturating_add(1);
        }
        missing
    }

    fn has(&self, number: u32) -> bool {
        number < self.complete || self.ahead.contains_key(&number)
    }
}

/// Once, twice, four times … the patience, one after the other.
pub(super) fn waits(patience: Span, repeats: u8) -> Span {
    let waits = 2_u32.checked_pow(repeats.into()).unwrap_or(u32::MAX).saturating_mul(2).saturating_sub(1);
    patience.times(waits)
}
