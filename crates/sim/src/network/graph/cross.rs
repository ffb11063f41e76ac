//! Packets of others: they cross the same links and queues as everybody's, and are counted apart.

use millpond_control::{ChanceSeed, Instant, Purpose};
use millpond_link::{Counters, DropReason, Parcel, Tally};

use super::{Graph, Load, Offer, Packet, Way};
use crate::{
    calendar::Calendar,
    ledger::Tag,
    network::LinkName,
    outcome::CrossRow,
    scenario::{CrossTraffic, Scenario},
    trace::Recorder,
    workload::time,
};

/// All who send.
pub(super) struct Cross {
    senders: Vec<Sender>,
    /// When each sends next.
    calendar: Calendar,
    /// The number of the first as a node: they come behind all others.
    first: u32,
    /// What became of the packets of each kind.
    rows: Vec<CrossRow>,
    seed: ChanceSeed,
}

/// One who sends.
struct Sender {
    described: CrossTraffic,
    /// The place of its row.
    row: usize,
    /// The number of its next packet.
    number: u64,
    /// How much later than the first of its kind it is, in the time in which it sends.
    behind: u64,
    /// The time in which it sends that it had spent when it began to send last, when that was, and how long it lasts.
    spent: u64,
    since: u64,
    lasts: u64,
    /// How often it began.
    times: u32,
}

impl Sender {
    /// When its next packet leaves; never after its end.
    fn next(&mut self, place: u32, seed: ChanceSeed) -> Instant {
        let leaves = self.behind.saturating_add(self.described.leaves(self.number));
        let end = self.described.stop.map_or(u64::MAX, |stop| stop.0);
        while leaves - self.spent >= self.lasts && self.since < end {
            self.spent += self.lasts;
            self.since = self.since.saturating_add(self.lasts);
            self.begin(place, seed);
        }
        let at = self.since.saturating_add(leaves - self.spent);
        if at < end { Instant::from_micros(at) } else { Instant::NEVER }
    }

    /// It is silent, and then sends again.
    fn begin(&mut self, place: u32, seed: ChanceSeed) {
        let (Some(on), Some(off)) = (&self.described.on, &self.described.off) else { return };
        let word = |what| seed.wide(Purpose::Workload, [place, self.times, 0, what]);
        self.since = self.since.saturating_add(time(|| word(0), off));
        self.lasts = time(|| word(1), on);
        self.times += 1;
    }
}

impl Cross {
    /// Those of a scenario, if there are any; `first` is the number of the first as a node.
    pub(super) fn of(scenario: &Scenario, seed: ChanceSeed, first: u32) -> Option<Self> {
        if scenario.cross_traffic.is_empty() {
            return None;
        }
        // Words of their own, beside those of clients and of what the server sends by itself.
        let seed = seed.part(u64::from(u32::MAX) + 3);
        let mut senders = Vec::new();
        for (row, described) in scenario.cross_traffic.iter().enumerate() {
            for one in 0..described.count {
                let behind = u128::from(described.leaves(1)) * u128::from(one) / u128::from(described.count);
                let is_always_on = described.on.is_none();
                senders.push(Sender {
                    described: described.clone(),
                    row,
                    number: 0,
                    behind: behind as u64,
                    spent: 0,
                    since: described.start.0,
                    lasts: if is_always_on { u64::MAX } else { 0 },
                    times: 0,
                });
            }
        }
        let mut calendar = Calendar::new(senders.len());
        for (place, sender) in (0..).zip(&mut senders) {
            calendar.set(place, sender.next(place, seed));
        }
        let row =
            |traffic: &CrossTraffic| CrossRow { name: LinkName::from(traffic.name.as_str()), ..CrossRow::default() };
        let rows = scenario.cross_traffic.iter().map(row).collect();
        Some(Self { senders, calendar, first, rows, seed })
    }

    /// When the next packet leaves.
    pub(super) fn next(&self) -> Instant {
        self.calendar.first().0
    }

    /// The next packet that leaves at or before `now`: its sender's number as a node, and its bytes.
    fn send(&mut self, now: Instant) -> Option<(u32, u32)> {
        let (at, place) = self.calendar.first();
        if at > now {
            return None;
        }
        let sender = self.senders.get_mut(place as usize)?;
        let length = sender.described.packet.0 as u32;
        sender.number += 1;
        let row = &mut self.rows[sender.row];
        (row.sent_packets, row.sent_bytes) = (row.sent_packets + 1, row.sent_bytes + u64::from(length));
        self.calendar.set(place, sender.next(place, self.seed));
        Some((self.first + place, length))
    }

    /// The row of one who sends, told by its number as a node.
    fn row(&mut self, node: u32) -> Option<&mut CrossRow> {
        let row = self.senders.get((node - self.first) as usize)?.row;
        self.rows.get_mut(row)
    }
}

/// The counts without those of `others`.
pub(super) fn without(counters: Counters, others: &Counters) -> Counters {
    let less = |all: Tally, others: Tally| Tally {
        packets: all.packets.saturating_sub(others.packets),
        bytes: all.bytes.saturating_sub(others.bytes),
    };
    Counters {
        offered: less(counters.offered, others.offered),
        dropped_full: less(counters.dropped_full, others.dropped_full),
        dropped_too_large: less(counters.dropped_too_large, others.dropped_too_large),
        dropped_managed: less(counters.dropped_managed, others.dropped_managed),
        // Nobody else's are marked.
        marked: counters.marked,
        lost: less(counters.lost, others.lost),
        delivered: less(counters.delivered, others.delivered),
        carried: less(counters.carried, others.carried),
    }
}

const fn one(length: u32) -> Tally {
    Tally { packets: 1, bytes: length as u64 }
}

impl Graph {
    /// All packets of others that leave by `now` do.
    #[cold]
    pub(super) fn send_cross(&mut self, now: Instant, rec: &mut Recorder) {
        while let Some((client, length)) = self.cross.as_mut().and_then(|cross| cross.send(now)) {
            let route = self.routes.between(client, crate::network::SERVER);
            let mut packet = Packet { load: Load::Cross, ..Packet::blank(Tag::of(client, length, now)) };
            packet.begin(Way { client, to_client: false, route });
            let number = self.packets.put(packet);
            self.sent += 1;
            if let Some(place) = self.routes.hop(route, 0) {
                self.offer_cross(place, now, length, number, client, rec);
            }
        }
        let next = self.cross.as_ref().map_or(Instant::NEVER, |cross| cross.next());
        self.calendar.set(self.hops.len() as u32 + 2, next);
    }

    /// Offers such a packet to a link.
    #[cold]
    fn offer_cross(&mut self, place: usize, now: Instant, length: u32, number: u32, client: u32, rec: &mut Recorder) {
        if let Some(recording) = &mut self.recording {
            recording.unseen(place);
        }
        let hop = &mut self.hops[place];
        let others = hop.others.get_or_insert_default();
        others.offered = others.offered.plus(one(length));
        if let Some(away) = &mut hop.away {
            away.offered(length);
            self.offers.push(Offer { at: now, place: place as u16, client, length, number });
        } else if let Err((reason, _)) = hop.link.offer_of(now, client, length, number) {
            self.refused(place, number, reason, length, rec);
        } else {
            self.wake(place);
        }
    }

    /// Such a packet has crossed a link.
    #[cold]
    pub(super) fn cross_arrived(&mut self, place: usize, now: Instant, parcel: &Parcel<u32>, rec: &mut Recorder) {
        self.count_cross(place, parcel.len, |others| &mut others.delivered);
        let Some(packet) = self.packets.get_mut(parcel.payload) else { return };
        packet.hop += 1;
        let (client, sent) = (packet.client, packet.tag.sent);
        if let Some(further) = self.routes.hop(packet.route, packet.hop) {
            self.offer_cross(further, now, parcel.len, parcel.payload, client, rec);
            return;
        }
        self.arrived += 1;
        self.packets.free(parcel.payload);
        if let Some(row) = self.cross.as_mut().and_then(|cross| cross.row(client)) {
            row.arrived_packets += 1;
            row.arrived_bytes += u64::from(parcel.len);
            row.delay_us += parcel.at.as_micros() - sent.as_micros();
        }
    }

    /// Such a packet is no more, for this reason, if the one in this place is one.
    #[cold]
    pub(super) fn cross_lost(&mut self, place: usize, number: u32, reason: DropReason, length: u32) -> bool {
        let Some(&Packet { load: Load::Cross, client, .. }) = self.packets.get(number) else { return false };
        self.count_cross(place, length, |others| match reason {
            DropReason::Radio => &mut others.lost,
            DropReason::Managed => &mut others.dropped_managed,
            DropReason::TooLarge => &mut others.dropped_too_large,
            DropReason::QueueFull | DropReason::Access => &mut others.dropped_full,
        });
        self.packets.free(number);
        if let Some(row) = self.cross.as_mut().and_then(|cross| cross.row(client)) {
            *(if reason == DropReason::Radio {
                &mut row.dropped_radio_packets
            } else {
                &mut row.dropped_queue_packets
            }) += 1;
        }
        true
    }

    fn count_cross(&mut self, place: usize, length: u32, what: impl FnOnce(&mut Counters) -> &mut Tally) {
        let count = what(self.hops[place].others.get_or_insert_default());
        *count = count.plus(one(length));
    }

    /// What became of the packets of others.
    pub(in crate::network) fn cross_rows(&self) -> Vec<CrossRow> {
        self.cross.as_ref().map_or_else(Vec::new, |cross| cross.rows.clone())
    }
}
