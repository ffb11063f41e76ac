//! The medium access of one node: frames wait in queues, are sent, acknowledged, sent again and given up.
//!
//! Three rules are known. [`Access::Contiki27`] and [`Access::Contiki26`] are what Contiki 2.7 and 2.6 do with `csma` over `nullrdc`;
//! [`Access::Ieee`] is the unslotted CSMA/CA of IEEE 802.15.4. A node that drives the machine hands over what the radio hears and sends the frames that it gives.

use std::collections::VecDeque;

use millpond_control::{ChanceSeed, Instant, Purpose, Span};
use serde::{Deserialize, Serialize};

use super::{
    neighbours::Node,
    timing::{ACK_DETECTION, ACK_READING, ACK_WAIT, ASSESSMENT, BACKOFF_UNIT, TURNAROUND},
};

/// How a node comes to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// `csma` over `nullrdc` of Contiki 2.7: at once at first, then after a timebase and a random time that grows with each attempt.
    #[default]
    #[serde(rename = "contiki27")]
    Contiki27,
    /// Of Contiki 2.6: the same, and after a frame that got through the next for that neighbour waits a timebase.
    #[serde(rename = "contiki26")]
    Contiki26,
    /// IEEE 802.15.4, unslotted CSMA/CA with its standard parameters.
    #[serde(rename = "ieee")]
    Ieee,
}

/// Neighbours for which frames may wait at once (Contiki 2.7, `CSMA_CONF_MAX_NEIGHBOR_QUEUES`).
const MOST_NEIGHBOURS: usize = 2;
/// macMinBE and macMaxBE.
const MIN_BE: u8 = 3;
const MAX_BE: u8 = 5;
/// macMaxCSMABackoffs.
const MOST_BACKOFFS: u8 = 4;

impl Access {
    /// Whether it is that of either Contiki.
    pub(crate) const fn is_contiki(self) -> bool {
        !matches!(self, Self::Ieee)
    }
}

/// The rules of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) access: Access,
    /// How often a frame is sent at most; zero: once, and nobody acknowledges it.
    pub(crate) attempts: u8,
    /// Frames that the node has room for, the one under way included.
    pub(crate) buffers: u16,
    /// Contiki: the least wait after an attempt that failed.
    pub(crate) timebase: Span,
    /// From the start of an attempt until its frame is in the radio.
    pub(crate) loading: Span,
}

impl Rules {
    /// Frames that are sent up to so often, from so many buffers, as Contiki 2.7 does it.
    #[cfg(test)]
    pub(crate) const fn contiki(attempts: u8, buffers: u16) -> Self {
        Self { access: Access::Contiki27, attempts, buffers, timebase: Span::from_millis(125), loading: Span::ZERO }
    }

    /// Whether frames are acknowledged.
    pub(crate) const fn acknowledged(&self) -> bool {
        self.attempts > 0
    }
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    /// A packet or a part of it.
    Data,
    /// A message of RPL.
    Control,
}

/// A frame that carries a packet or a part of it, or a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) carries: Carries,
    /// The packet, or the message.
    pub(crate) copy: u32,
    /// Which part of it.
    pub(crate) part: u8,
    /// Its sequence number.
    pub(crate) number: u8,
    /// The neighbour that it is for.
    pub(crate) to: Node,
    /// Its length in bytes, without what is in front of every frame.
    pub(crate) bytes: u16,
}

/// Why no frame of a packet was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no room for so many frames.
    Full,
    /// Frames wait for as many other neighbours as may be.
    Neighbours,
}

/// How a frame left its node for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was acknowledged.
    Acknowledged,
    /// It was sent, and nobody was asked to acknowledge it.
    Sent,
    /// No attempt was acknowledged.
    NoAck,
    /// The channel was never found idle.
    NoChannel,
}

/// What the node's radio reports when the machine is woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ear {
    /// It is locked on to a frame.
    pub(crate) receiving: bool,
    /// It senses a carrier.
    pub(crate) carrier: bool,
    /// It acknowledges a frame, or is about to.
    pub(crate) acknowledging: bool,
}

/// What comes of waking the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It waits until [`Mac::next`].
    Wait,
    /// This frame goes on the air now; [`Mac::sent`] is to be called when it ends.
    Send(Frame),
    /// This frame has left for good.
    Ended(Frame, End),
}

/// Frames for one neighbour, or with [`Access::Ieee`] for all.
#[derive(Debug)]
struct Queue {
    to: Node,
    frames: VecDeque<Frame>,
    /// When the first of them is tried.
    due: Instant,
    /// How often it was sent.
    tries: u8,
    /// How often in a row the channel was busy.
    busy: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The frame is copied into the radio until then.
    Loading(Instant),
    /// Clear channel assessment until then; whether a carrier was there when it began.
    Assessing(Instant, bool),
    /// The radio turns to sending.
    Turning(Instant),
    Sending,
    /// Listening for an acknowledgement.
    Listening(Instant),
    /// Something was heard: it is read at the end of this.
    Reading(Instant),
}

/// The medium access of one node.
#[derive(Debug)]
pub(crate) struct Mac {
    queues: Vec<Queue>,
    phase: Phase,
    /// The queue that the frame under way comes from.
    active: usize,
    held: u16,
    /// Random waits drawn.
    drawn: u32,
    /// How often the frame was sent that left last, if it was acknowledged.
    tries: u8,
    /// An acknowledgement of the frame under way was heard, or one for somebody else.
    own_ack: bool,
    other_ack: bool,
}

impl Mac {
    pub(crate) fn new() -> Self {
        Self {
            queues: Vec::new(),
            phase: Phase::Idle,
            active: 0,
            held: 0,
            drawn: 0,
            tries: 0,
            own_ack: false,
            other_ack: false,
        }
    }

    /// How often the frame was sent that left last, where it was acknowledged in the end.
    #[inline]
    pub(crate) fn tries(&self) -> u8 {
        self.tries
    }

    /// Frames that wait or are under way.
    #[cfg(test)]
    pub(crate) fn held(&self) -> u16 {
        self.held
    }

    /// When the machine is to be woken next.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        match self.phase {
            Phase::Idle => self.queues.iter().map(|queue| queue.due).min().unwrap_or(Instant::NEVER),
            Phase::Loading(at)
            | Phase::Assessing(at, _)
            | Phase::Turning(at)
            | Phase::Listening(at)
            | Phase::Reading(at) => at,
            Phase::Sending => Instant::NEVER,
        }
    }

    /// Whether the radio turns to sending, or sends already.
    #[inline]
    pub(crate) fn is_committed(&self) -> bool {
        matches!(self.phase, Phase::Turning(_) | Phase::Sending)
    }

    /// Takes the frames of one packet, all of them or none.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        frames: &[Frame],
        rules: &Rules,
        draws: (ChanceSeed, Node),
    ) -> Result<(), Refused> {
        let Some(first) = frames.first() else { return Ok(()) };
        // While fragments are made one more buffer is in use (Contiki 2.7).
        let making = u16::from(frames.len() > 1 && rules.access.is_contiki());
        if usize::from(self.held + making) + frames.len() > usize::from(rules.buffers) {
            return Err(Refused::Full);
        }
        let of_all = rules.access == Access::Ieee;
        let place = match self.queues.iter().position(|queue| of_all || queue.to == first.to) {
            Some(place) => place,
            None if !of_all && self.queues.len() >= MOST_NEIGHBOURS => return Err(Refused::Neighbours),
            None => {
                let due = if of_all { now.after(self.backoff(0, draws)) } else { now };
                self.queues.push(Queue { to: first.to, frames: VecDeque::new(), due, tries: 0, busy: 0 });
                self.queues.len() - 1
            }
        };
        self.queues[place].frames.extend(frames);
        self.held += frames.len() as u16;
        Ok(())
    }

    /// Goes on as far as it goes now; to be called again until it waits.
    pub(crate) fn wake(&mut self, now: Instant, ear: Ear, rules: &Rules, draws: (ChanceSeed, Node)) -> Step {
        match self.phase {
            Phase::Idle => {
                let due = self.queues.iter().enumerate().min_by_key(|(_, queue)| queue.due);
                let Some((place, _)) = due.filter(|(_, queue)| queue.due <= now) else { return Step::Wait };
                self.active = place;
                self.phase = Phase::Loading(now.after(rules.loading));
                if rules.loading == Span::ZERO { self.wake(now, ear, rules, draws) } else { Step::Wait }
            }
            Phase::Loading(at) if at <= now => {
                // nullrdc refuses while the radio receives.
                if rules.access.is_contiki() && (ear.receiving || ear.acknowledging) {
                    return self.busy(now, rules, draws);
                }
                self.phase = Phase::Assessing(now.after(ASSESSMENT), ear.carrier);
                Step::Wait
            }
            // No frame is so short that it could begin and end within an assessment.
            Phase::Assessing(at, was_busy) if at <= now => {
                if was_busy || ear.carrier || ear.acknowledging {
                    return self.busy(now, rules, draws);
                }
                self.phase = Phase::Turning(now.after(TURNAROUND));
                Step::Wait
            }
            Phase::Turning(at) if at <= now => {
                let Some(&frame) = self.queues.get(self.active).and_then(|queue| queue.frames.front()) else {
                    self.phase = Phase::Idle;
                    return Step::Wait;
                };
                self.phase = Phase::Sending;
                (self.own_ack, self.other_ack) = (false, false);
                Step::Send(frame)
            }
            Phase::Listening(at) if at <= now => {
                let heard = ear.receiving || ear.carrier || self.own_ack || self.other_ack;
                if rules.access.is_contiki() && heard {
                    self.phase = Phase::Reading(now.after(ACK_READING));
                    return Step::Wait;
                }
                self.unacknowledged(now, rules, draws)
            }
            Phase::Reading(at) if at <= now => match (self.own_ack, self.other_ack) {
                (true, _) => self.leave(now, End::Acknowledged, rules, draws),
                // What is not the acknowledgement counts as a collision, as a busy channel does.
                (false, true) => self.busy(now, rules, draws),
                (false, false) => self.unacknowledged(now, rules, draws),
            },
            _ => Step::Wait,
        }
    }

    /// The frame that was given last has left the antenna.
    pub(crate) fn sent(&mut self, now: Instant, rules: &Rules, draws: (ChanceSeed, Node)) -> Step {
        if !rules.acknowledged() {
            return self.leave(now, End::Sent, rules, draws);
        }
        let wait = if rules.access.is_contiki() { ACK_DETECTION } else { ACK_WAIT };
        self.phase = Phase::Listening(now.after(wait));
        Step::Wait
    }

    /// The frame that was given last has left the antenna; it was for everyone, whom nobody asks to acknowledge it.
    pub(crate) fn sent_to_everyone(&mut self, now: Instant, rules: &Rules, draws: (ChanceSeed, Node)) -> Step {
        self.leave(now, End::Sent, rules, draws)
    }

    /// An acknowledgement of the frame with this number was heard; `is_own` says whether this node sent that frame.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        number: u8,
        is_own: bool,
        rules: &Rules,
        draws: (ChanceSeed, Node),
    ) -> Step {
        if !matches!(self.phase, Phase::Listening(_) | Phase::Reading(_)) {
            return Step::Wait;
        }
        let under_way = self.queues.get(self.active).and_then(|queue| queue.frames.front());
        let is_own = is_own && under_way.is_some_and(|frame| frame.number == number);
        (self.own_ack, self.other_ack) = (self.own_ack || is_own, self.other_ack || !is_own);
        if is_own && rules.access == Access::Ieee {
            return self.leave(now, End::Acknowledged, rules, draws);
        }
        Step::Wait
    }

    /// The channel, or the radio, was busy.
    fn busy(&mut self, now: Instant, rules: &Rules, draws: (ChanceSeed, Node)) -> Step {
        self.phase = Phase::Idle;
        let queue = &mut self.queues[self.active];
        queue.busy = queue.busy.saturating_add(1);
        let (tries, busy) = (queue.tries, queue.busy);
        match rules.access {
            // Not counted as an attempt: there may be any number of these.
            Access::Contiki27 | Access::Contiki26 => {
                self.queues[self.active].due = now.after(self.timebases(tries, rules, draws));
            }
            Access::Ieee if busy > MOST_BACKOFFS => return self.leave(now, End::NoChannel, rules, draws),
            Access::Ieee => self.queues[self.active].due = now.after(self.backoff(busy, draws)),
        }
        Step::Wait
    }

    fn unacknowledged(&mut self, now: Instant, rules: &Rules, draws: (ChanceSeed, Node)) -> Step {
        self.phase = Phase::Idle;
        let queue = &mut self.queues[self.active];
        queue.tries += 1;
        queue.busy = 0;
        let tries = queue.tries;
        if tries >= rules.attempts {
            return self.leave(now, End::NoAck, rules, draws);
        }
        let wait = match rules.access {
            Access::Contiki27 | Access::Contiki26 => self.timebases(tries, rules, draws),
            Access::Ieee => self.backoff(0, draws),
        };
        self.queues[self.active].due = now.after(wait);
        Step::Wait
    }

    /// The frame under way leaves for good.
    fn leave(&mut self, now: Instant, end: End, rules: &Rules, draws: (ChanceSeed, Node)) -> Step {
        self.phase = Phase::Idle;
        let queue = &mut self.queues[self.active];
        let Some(frame) = queue.frames.pop_front() else { return Step::Wait };
        self.held -= 1;
        self.tries = queue.tries.saturating_add(1);
        (queue.tries, queue.busy) = (0, 0);
        if queue.frames.is_empty() {
            self.queues.remove(self.active);
        } else {
            let wait = match (rules.access, end) {
                // The rest of the neighbour's list goes out back to back, and nothing comes between.
                (Access::Contiki27, End::Acknowledged | End::Sent) => {
                    self.phase = Phase::Loading(now.after(rules.loading));
                    Span::ZERO
                }
                (Access::Contiki27 | Access::Contiki26, _) => rules.timebase,
                (Access::Ieee, _) => self.backoff(0, draws),
            };
            self.queues[self.active].due = now.after(wait);
        }
        Step::Ended(frame, end)
    }

    /// Contiki: one timebase, and a random time below as many more as there were attempts and one, at most three.
    fn timebases(&mut self, tries: u8, rules: &Rules, draws: (ChanceSeed, Node)) -> Span {
        let width = u32::from(tries.saturating_add(1).min(3)) * rules.timebase.as_micros();
        rules.timebase.plus(Span::from_micros(self.draw(width - 1, draws)))
    }

    /// IEEE 802.15.4: a random number of units below 2 to the power of the exponent after so many busy assessments.
    fn backoff(&mut self, busy: u8, draws: (ChanceSeed, Node)) -> Span {
        let exponent = MIN_BE.saturating_add(busy).min(MAX_BE);
        Span::from_micros(self.draw((1 << exponent) - 1, draws) * BACKOFF_UNIT)
    }

    fn draw(&mut self, most: u32, (seed, node): (ChanceSeed, Node)) -> u32 {
        self.drawn = self.drawn.wrapping_add(1);
        seed.at(Purpose::Dither, [node, self.drawn, 0, 0]).pick(0, most)
    }
}

#[cfg(test)]
#[path = "mac_tests.rs"]
mod tests;
