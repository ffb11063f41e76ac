//! A link that is elsewhere: sites of a fleet share it, and code that runs them has it.
//!
//! Packets stay where they are; what travels is their place, their length, and when they come.

use std::collections::VecDeque;

use millpond_control::Instant;
use millpond_link::{Counters, Delivered, DropReason, Level, MeanLevel, Parcel, Statistics, Tally};

use super::graph::Graph;
use crate::trace::Recorder;

/// A packet that comes to a link which is elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) at: Instant,
    /// The link's place in its graph.
    pub(crate) place: u16,
    pub(crate) client: u32,
    pub(crate) length: u32,
    /// The packet's place in its graph.
    pub(crate) number: u32,
}

/// What a graph knows of a link that is elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Away {
    /// What is known to come back, the next one first.
    line: VecDeque<Delivered<u32>>,
    offered: Tally,
    refused: Tally,
    lost: Tally,
    delivered: Tally,
    /// Of the link as a whole, for all who share it.
    statistics: Option<Statistics>,
}

impl Away {
    /// A packet of so many bytes comes to it.
    #[cold]
    pub(super) fn offered(&mut self, length: u32) {
        self.offered = self.offered.plus(one(length));
    }

    #[cold]
    pub(super) fn next(&self) -> Instant {
        self.line.front().map_or(Instant::NEVER, |packet| parcel(packet).at)
    }

    #[cold]
    pub(super) fn deliver(&mut self, now: Instant) -> Option<Delivered<u32>> {
        if self.next() > now {
            return None;
        }
        let packet = self.line.pop_front()?;
        match &packet {
            Delivered::Arrived(parcel) => self.delivered = self.delivered.plus(one(parcel.len)),
            Delivered::Lost(parcel) => self.lost = self.lost.plus(one(parcel.len)),
            Delivered::Dropped(parcel, _) => self.refused = self.refused.plus(one(parcel.len)),
        }
        Some(packet)
    }

    /// Packets are counted here, for this graph alone; queue and busy time are those of all.
    pub(super) fn told(&self) -> (Counters, Statistics) {
        let counters = Counters {
            offered: self.offered,
            carried: self.delivered.plus(self.lost),
            delivered: self.delivered,
            lost: self.lost,
            dropped_full: self.refused,
            ..Counters::default()
        };
        let nothing =
            Statistics { observed_micros: 0, busy_micros: 0, bytes: Level::default(), packets: MeanLevel::default() };
        (counters, self.statistics.unwrap_or(nothing))
    }
}

impl Graph {
    /// This link is elsewhere from now on; nothing has crossed it yet.
    pub(super) fn send_away(&mut self, place: usize) {
        self.away_at(place);
    }

    /// Packets that came to links which are elsewhere, in the order of time.
    pub(super) fn take_offers(&mut self, into: &mut Vec<Offer>) {
        into.append(&mut self.offers);
    }

    /// Such a link says when a packet comes back, or that it does not.
    pub(super) fn comes_back(&mut self, place: usize, packet: Delivered<u32>) {
        let away = self.away_at(place);
        let at = parcel(&packet).at;
        let before = away.line.iter().rposition(|known| parcel(known).at <= at).map_or(0, |place| place + 1);
        away.line.insert(before, packet);
        self.wake(place);
    }

    /// Such a link did not take a packet.
    pub(super) fn turned_away(&mut self, offer: &Offer, reason: DropReason, rec: &mut Recorder) {
        let place = usize::from(offer.place);
        let away = self.away_at(place);
        let count = if reason == DropReason::Radio { &mut away.lost } else { &mut away.refused };
        *count = count.plus(one(offer.length));
        self.refused(place, offer.number, reason, offer.length, rec);
    }

    /// What its queue was like, once all is over.
    pub(super) fn was_like(&mut self, place: usize, statistics: Statistics) {
        self.away_at(place).statistics = Some(statistics);
    }
}

const fn one(length: u32) -> Tally {
    Tally { packets: 1, bytes: length as u64 }
}

fn parcel(packet: &Delivered<u32>) -> &Parcel<u32> {
    match packet {
        Delivered::Arrived(parcel) | Delivered::Lost(parcel) | Delivered::Dropped(parcel, _) => parcel,
    }
}
