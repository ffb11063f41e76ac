//! A graph of named links, and the routes over them.

mod admission;
mod books;
mod cross;
mod hop;
mod marks;

use std::{borrow::Cow, collections::VecDeque};

use millpond_control::{ChanceSeed, Instant};
use millpond_link::{Access, Counters, Dcf, Delivered, DropReason, Levels, Link};

use cross::Cross;

use super::{
    Address, Arrival, Carried, LinkName, Load, Packet, SERVER, Way,
    away::{Away, Offer},
    changes::{self, Change, Moment},
    relay::Relay,
    route::Routes,
};
use crate::{
    RunError,
    calendar::Calendar,
    ledger::{NO_EXCHANGE, Slab, Tag},
    recording::Recording,
    scenario::Scenario,
    trace::Recorder,
};

/// One link and what is known of its use.
struct Hop {
    name: LinkName,
    /// It moves the places of packets, not the packets.
    link: Link<u32>,
    /// Bytes that completed an exchange.
    useful: u64,
    /// Outages that are not over.
    outages: u32,
    /// Set while the link is elsewhere, shared with others: what is known of it here.
    away: Option<Box<Away>>,
    /// Who has its queue, if that is a node of its own.
    relay: Option<Box<Relay>>,
    /// What of its counts is of others.
    others: Option<Box<Counters>>,
    /// Its queue marks packets in place of dropping them.
    marks: bool,
}

impl Hop {
    /// When it is to be looked at next.
    #[inline]
    fn next(&self) -> Instant {
        match &self.away {
            None => self.link.next().unwrap_or(Instant::NEVER),
            Some(away) => away.next(),
        }
    }
}

/// Packets for one client that did not arrive.
#[derive(Clone, Copy, Default)]
struct Drops {
    queue: u32,
    radio: u32,
}

/// Links, routes, and the buffers that all packets share.
pub(crate) struct Graph {
    hops: Vec<Hop>,
    routes: Routes,
    /// When each link is to be looked at, after them when one is changed next, and then access, other traffic and the Wi-Fi hop.
    calendar: Calendar,
    /// What stands before a path's links, if devices may not always send or be reached.
    access: Option<Box<Access<u32>>>,
    /// The channel between clients and a path's links.
    wifi: Option<Box<Dcf<u32>>>,
    /// Who else sends.
    cross: Option<Box<Cross>>,
    changes: VecDeque<Moment>,
    /// What is inside. Places keep their buffers, so that the steady state allocates nothing.
    packets: Slab<Packet>,
    /// The place of the packet that was handed out last.
    handed: Option<u32>,
    /// Bytes in front of every datagram.
    header: u32,
    sent: u64,
    arrived: u64,
    drops: Vec<Drops>,
    /// The clients that react to marks, if any do.
    reacting: Vec<bool>,
    /// The tags of datagrams that were lost since somebody asked.
    lost: Vec<Tag>,
    /// Packets that came to links which are elsewhere since somebody took them.
    pub(super) offers: Vec<Offer>,
    recording: Option<Box<Recording>>,
}

impl Graph {
    pub(super) fn new(scenario: &Scenario, seed: ChanceSeed, groups: &[u32], capture: bool) -> Result<Self, RunError> {
        let levels = scenario.path.as_ref().map_or(Levels::ONE, |path| path.levels());
        let build = |(name, direction): (&str, &crate::scenario::Direction)| {
            let relay = scenario.relays.iter().find(|relay| relay.before == name);
            let relay = relay.map(|relay| Box::new(Relay::new(relay)));
            let name = LinkName::from(name);
            match direction.link(seed, name.number()) {
                Ok(link) => {
                    let (link, marks) = (link.repeat(levels), direction.aqm.marks());
                    Ok(Hop { name, link, useful: 0, outages: 0, away: None, relay, others: None, marks })
                }
                Err(error) => Err(RunError::Link(name.to_string(), error.to_string())),
            }
        };
        let hops = scenario.links().into_iter().map(build).collect::<Result<Vec<_>, _>>()?;
        let route = |group| scenario.route(group).map(|links| links.iter().map(|&place| place as u16).collect());
        let proxies = (0..scenario.proxies.len())
            .map(|proxy| scenario.proxy_route(proxy).map(|links| links.iter().map(|&place| place as u16).collect()));
        let changes = changes::of(scenario);
        let access = match &scenario.path {
            Some(path) => path.access(seed).map_err(|error| RunError::Link("access".to_owned(), error.to_string()))?,
            None => None,
        };
        let cross = Cross::of(scenario, seed, groups.len() as u32);
        let crossed = scenario.cross_traffic.iter();
        let crossed = crossed
            .map(|traffic| [scenario.crossed_by(traffic).iter().map(|&place| place as u16).collect(), Vec::new()]);
        let mut nodes = Cow::Borrowed(groups);
        if cross.is_some() {
            let behind = (scenario.clients.len() + scenario.proxies.len()) as u32;
            let each = scenario.cross_traffic.iter().zip(behind..);
            nodes.to_mut().extend(each.flat_map(|(traffic, group)| (0..traffic.count).map(move |_| group)));
        }
        let wifi = scenario.wifi().map(|wifi| Box::new(wifi.channel(seed)));
        let beside = match (&access, &cross, &wifi) {
            (_, _, Some(_)) => 3,
            (_, Some(_), None) => 2,
            (Some(_), None, None) => 1,
            (None, None, None) => 0,
        };
        let mut calendar = Calendar::new(hops.len() + 1 + beside);
        if let Some(cross) = &cross {
            calendar.set(hops.len() as u32 + 2, cross.next());
        }
        calendar.set(hops.len() as u32, changes.front().map_or(Instant::NEVER, |moment| moment.at));
        Ok(Self {
            routes: Routes::new((0..scenario.clients.len()).map(route).chain(proxies).chain(crossed).collect(), &nodes),
            calendar,
            access: access.map(Box::new),
            wifi,
            cross: cross.map(Box::new),
            changes,
            packets: Slab::new(),
            handed: None,
            header: scenario.header().0 as u32,
            sent: 0,
            arrived: 0,
            drops: vec![Drops::default(); groups.len()],
            reacting: marks::reacting(scenario, groups),
            lost: Vec::new(),
            offers: Vec::new(),
            recording: capture.then(|| Box::new(Recording::new(hops.len()))),
            hops,
        })
    }

    /// A datagram enters its route.
    #[inline]
    pub(super) fn send(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        payload: &[u8],
        tag: &Tag,
        rec: &mut Recorder,
    ) {
        let number = self.packets.reuse().unwrap_or_else(|| self.packets.put(Packet::blank(*tag)));
        let (length, way) = (self.length(payload), self.way(from, to));
        let Some(packet) = self.packets.get_mut(number) else { return };
        match &mut packet.load {
            Load::Datagram(bytes) => {
                bytes.clear();
                bytes.extend_from_slice(payload);
            }
            Load::Segment(_) | Load::Cross => packet.load.become_datagram(payload),
        }
        packet.tag = *tag;
        packet.begin(way);
        self.enter(now, way, length, number, rec);
    }

    /// A segment enters its route; `length` is that of the whole packet.
    #[expect(clippy::too_many_arguments, reason = "the packet, and from where to where and when it goes")]
    pub(super) fn send_segment(
        &mut self,
        now: Instant,
        from: Address,
        to: Address,
        length: u32,
        carried: Carried,
        tag: Tag,
        rec: &mut Recorder,
    ) {
        let load = Load::Segment(Box::new(carried));
        let way = self.way(from, to);
        let mut packet = Packet { load, ..Packet::blank(tag) };
        packet.begin(way);
        let number = self.packets.put(packet);
        self.enter(now, way, length, number, rec);
    }

    /// The way from one node to another, one of which is the server.
    #[inline]
    fn way(&self, from: Address, to: Address) -> Way {
        let (client, to_client) = if to == SERVER { (from, false) } else { (to, true) };
        Way { client, to_client, route: self.routes.between(from, to) }
    }

    /// The packet in this place enters its route.
    #[inline(always)]
    fn enter(&mut self, now: Instant, way: Way, length: u32, number: u32, rec: &mut Recorder) {
        self.sent += 1;
        if self.access.is_some() {
            self.admit(now, way, length, number, rec);
            return;
        }
        if self.wifi.is_some() && !way.to_client {
            self.offer_to_wifi(now, way, length, number);
            return;
        }
        let Some(place) = self.routes.hop(way.route, 0) else { return };
        if let Some(recording) = &mut self.recording
            && let Some(packet) = self.packets.get(number)
        {
            recording.sent(place, now, packet);
        }
        self.offer(place, now, length, number, way.client, rec);
    }

    /// Offers a packet to a link.
    #[inline(always)]
    fn offer(&mut self, place: usize, now: Instant, length: u32, number: u32, client: u32, rec: &mut Recorder) {
        if rec.packets
            && let Some(packet) = self.packets.get(number)
        {
            rec.packet(now, "enq", place, packet, length);
        }
        let Some(Hop { link, away, relay, marks, .. }) = self.hops.get_mut(place) else { return };
        if *marks {
            self.offer_marking(place, now, length, number, client, rec);
            return;
        }
        if let Some(away) = away {
            away.offered(length);
            self.goes_away(Offer { at: now, place: place as u16, client, length, number });
            return;
        }
        if relay.is_some() {
            self.relay(place, now, length, number, rec);
            return;
        }
        // Behind another packet it is not the next to arrive.
        let is_first = !link.is_waiting();
        if let Err((reason, _)) = link.offer_of(now, client, length, number) {
            self.refused(place, number, reason, length, rec);
        } else if is_first {
            self.calendar.set(place as u32, link.next().unwrap_or(Instant::NEVER));
        }
    }

    /// Notes a packet that comes to a link which is elsewhere.
    #[cold]
    fn goes_away(&mut self, offer: Offer) {
        self.offers.push(offer);
    }

    /// Offers a packet to a relay's queue.
    #[cold]
    fn relay(&mut self, place: usize, now: Instant, length: u32, number: u32, rec: &mut Recorder) {
        let Some(Hop { link, relay: Some(relay), .. }) = self.hops.get_mut(place) else { return };
        let Some(packet) = self.packets.get(number) else { return };
        if relay.withholds(link, now, packet, length) {
            rec.dropped("withheld");
            if let Some(recording) = &mut self.recording {
                recording.withheld(place, "withheld: a copy of it waits");
            }
            self.lost.push(packet.tag);
            self.packets.free(number);
            return;
        }
        match link.offer_of(now, packet.client, length, number) {
            Ok(()) => {
                relay.passes(link, now, packet, length);
                self.wake(place);
            }
            Err((reason, _)) => self.refused(place, number, reason, length, rec),
        }
    }

    /// A link did not take a packet.
    #[cold]
    pub(super) fn refused(&mut self, place: usize, number: u32, reason: DropReason, length: u32, rec: &mut Recorder) {
        if self.cross_lost(place, number, reason, length) {
            return;
        }
        let radio = reason == DropReason::Radio;
        rec.dropped(if radio { "drop_radio" } else { "drop_queue" });
        if let Some(recording) = &mut self.recording {
            recording.lost_last(
                place,
                match reason {
                    DropReason::Radio => "lost: radio",
                    DropReason::Managed => "lost: dropped by the queue",
                    DropReason::QueueFull | DropReason::TooLarge | DropReason::Access => "lost: queue full",
                },
            );
        }
        self.dropped(number, radio);
    }

    /// What is known of a link that is elsewhere; it is so from now on.
    pub(super) fn away_at(&mut self, place: usize) -> &mut Away {
        self.hops[place].away.get_or_insert_default()
    }

    /// Puts a link's next wake-up on the event calendar.
    #[inline]
    pub(super) fn wake(&mut self, place: usize) {
        if let Some(hop) = self.hops.get(place) {
            self.calendar.set(place as u32, hop.next());
        }
    }

    #[inline]
    pub(super) fn next(&self) -> Instant {
        self.calendar.first().0
    }

    #[inline]
    pub(super) fn deliver(&mut self, now: Instant, rec: &mut Recorder) -> Option<Arrival> {
        if let Some(number) = self.handed.take() {
            self.packets.free(number);
        }
        loop {
            let (at, place) = self.calendar.first();
            if at > now {
                return None;
            }
            let place = place as usize;
            let Some(hop) = self.hops.get_mut(place) else {
                if let Some(arrival) = self.look_elsewhere(place, now, rec) {
                    return Some(arrival);
                }
                continue;
            };
            let delivered = match &mut hop.away {
                None => hop.link.deliver(now),
                Some(away) => away.deliver(now),
            };
            self.calendar.set(place as u32, hop.next());
            match delivered {
                None => {}
                Some(Delivered::Arrived(parcel)) => {
                    let Some(packet) = self.packets.get_mut(parcel.payload) else { continue };
                    if let Load::Cross = packet.load {
                        self.cross_arrived(place, now, &parcel, rec);
                        continue;
                    }
                    if parcel.marked {
                        rec.packet(now, "mark", place, packet, parcel.len);
                        packet.marked = true;
                    }
                    rec.carried(now, place, parcel.number, parcel.len);
                    rec.packet(now, "recv", place, packet, parcel.len);
                    packet.hop += 1;
                    if let Some(further) = self.routes.hop(packet.route, packet.hop) {
                        if let Some(recording) = &mut self.recording {
                            recording.forwarded(place, parcel.number, further);
                        }
                        rec.goes_on(further, self.hops[further].link.counters().offered.packets);
                        let client = packet.client;
                        self.offer(further, now, parcel.len, parcel.payload, client, rec);
                        continue;
                    }
                    if self.wifi.is_some() && packet.to_client {
                        let way = Way { client: packet.client, to_client: true, route: packet.route };
                        self.offer_to_wifi(now, way, parcel.len, parcel.payload);
                        continue;
                    }
                    if let Some(recording) = &mut self.recording {
                        recording.arrived(parcel.at, packet);
                    }
                    if packet.tag.exchange != NO_EXCHANGE && packet.asks() {
                        rec.asked(&packet.tag);
                    }
                    self.handed = Some(parcel.payload);
                    self.arrived += 1;
                    return Some(packet.arrival(parcel.len));
                }
                Some(Delivered::Lost(parcel)) => {
                    if self.cross.is_some() && self.cross_lost(place, parcel.payload, DropReason::Radio, parcel.len) {
                        continue;
                    }
                    if let Some(packet) = self.packets.get(parcel.payload) {
                        rec.packet(now, "drop_radio", place, packet, parcel.len);
                    }
                    if let Some(recording) = &mut self.recording {
                        recording.lost(place, parcel.number, "lost: radio");
                    }
                    self.dropped(parcel.payload, true);
                }
                Some(Delivered::Dropped(parcel, reason)) => {
                    if self.cross.is_some() && self.cross_lost(place, parcel.payload, reason, parcel.len) {
                        continue;
                    }
                    if let Some(packet) = self.packets.get(parcel.payload) {
                        rec.packet(parcel.at, "drop_aqm", place, packet, parcel.len);
                    }
                    if let Some(recording) = &mut self.recording {
                        recording.lost(place, parcel.number, "lost: dropped from the queue");
                    }
                    self.dropped(parcel.payload, false);
                }
            }
        }
    }

    /// Does what the timeline says by `now`.
    #[cold]
    fn change(&mut self, now: Instant) {
        while self.changes.front().is_some_and(|moment| moment.at <= now)
            && let Some(Moment { place, change, .. }) = self.changes.pop_front()
        {
            let Hop { link, outages, .. } = &mut self.hops[place];
            // Rates and losses were checked when the scenario was read; what a link refuses leaves it as it was.
            match change {
                Change::Rate(rate) => _ = link.set_rate(now, rate),
                Change::Loss(loss) => _ = link.set_loss(now, loss),
                Change::Pause(in_flight) => {
                    *outages += 1;
                    link.pause(now, in_flight);
                }
                Change::Resume => {
                    *outages = outages.saturating_sub(1);
                    if *outages == 0 {
                        link.resume(now);
                    }
                }
            }
            self.wake(place);
        }
        let next = self.changes.front().map_or(Instant::NEVER, |moment| moment.at);
        self.calendar.set(self.hops.len() as u32, next);
    }

    fn dropped(&mut self, number: u32, radio: bool) {
        let Some(packet) = self.packets.get(number) else { return };
        if packet.to_client
            && let Some(drops) = self.drops.get_mut(packet.client as usize)
        {
            *(if radio { &mut drops.radio } else { &mut drops.queue }) += 1;
        }
        if let Load::Datagram(_) = packet.load {
            self.lost.push(packet.tag);
        }
        self.packets.free(number);
    }

    #[inline]
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    #[inline]
    pub(super) fn lost(&mut self) -> Option<Tag> {
        self.lost.pop()
    }

    /// The bytes of the datagram that was handed out last.
    #[inline]
    pub(super) fn datagram(&self) -> &[u8] {
        match self.handed.and_then(|number| self.packets.get(number)) {
            Some(Packet { load: Load::Datagram(bytes), .. }) => bytes,
            _ => &[],
        }
    }

    /// The segment that was handed out last.
    pub(super) fn segment(&mut self) -> Option<Box<Carried>> {
        let packet = self.packets.get_mut(self.handed?)?;
        match std::mem::take(&mut packet.load) {
            Load::Segment(carried) => Some(carried),
            Load::Datagram(_) | Load::Cross => None,
        }
    }

    #[inline]
    pub(super) fn length(&self, payload: &[u8]) -> u32 {
        self.header + payload.len() as u32
    }

    #[inline]
    pub(super) fn useful(&mut self, from: Address, to: Address, bytes: u32) {
        for &place in self.routes.links(self.routes.between(from, to)) {
            self.hops[usize::from(place)].useful += u64::from(bytes);
        }
    }

    pub(super) fn take_recording(&mut self) -> Option<Box<Recording>> {
        self.recording.take()
    }
}
