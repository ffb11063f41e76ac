//! Both directions of a path as one state machine in somebody else's time.

use std::collections::VecDeque;

use millpond_control::{ChanceSeed, Instant};
use millpond_link::{Access, Counters, Delivered, DropReason, Link, Occupancy, Passing};
use millpond_path::Path;

use crate::{AccessRow, Error, LinkRow};

/// Where a packet is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// Over the uplink.
    Server,
    /// Over the downlink.
    Clients,
}

impl Toward {
    /// The name of its link, as the simulator calls it.
    #[must_use]
    pub const fn link(self) -> &'static str {
        match self {
            Self::Server => "uplink",
            Self::Clients => "downlink",
        }
    }
}

/// What came of a packet that a link had taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing<P> {
    /// Which way it went.
    pub toward: Toward,
    /// As offered.
    pub payload: P,
    /// Its length, as offered.
    pub len: u32,
    /// When it is due: the lateness of a driver counts from here.
    pub at: Instant,
    /// Why it did not arrive, if it did not: the medium lost it, or the queue dropped it. It is handed out only so that the payload
    /// can be used again.
    pub lost: Option<DropReason>,
}

/// The two links of a path. The uplink's random stream has number 0 and the downlink's number 1, as in the simulator, so that packet
/// *n* of either meets the same random numbers here and there.
///
/// A link reckons when packets leave from when they were offered and from when those before them left, never from when its
/// owner looked: an owner that is late with one packet is not later with the next.
#[derive(Clone, Debug)]
pub struct Shaper<P> {
    up: Link<P>,
    down: Link<P>,
    /// What stands before both, if devices may not always send or be reached.
    access: Option<Box<Access<P>>>,
    /// What had access, and was not taken by its link.
    refused: VecDeque<Outgoing<P>>,
}

impl<P> Shaper<P> {
    /// Empty links.
    ///
    /// # Errors
    /// A path that was made by hand and describes no link.
    pub fn new(path: &Path, seed: u64) -> Result<Self, Error> {
        if path.wifi.is_some() {
            let problem = "wifi: contention for a channel is simulated, not emulated: leave this key out";
            return Err(Error::Path(problem.to_owned()));
        }
        for (name, direction) in [("uplink", &path.uplink), ("downlink", &path.downlink)] {
            if direction.aqm.marks() {
                let problem = format!("{name}.aqm.ecn: packets are marked in simulations alone: leave this key out");
                return Err(Error::Path(problem));
            }
        }
        let seed = ChanceSeed::new(seed);
        let link = |direction: &millpond_path::Direction, number, toward: Toward| {
            let link = direction.link(seed, number).map(|link| link.repeat(path.levels()));
            link.map_err(|error| Error::Path(format!("{}: {error}", toward.link())))
        };
        Ok(Self {
            up: link(&path.uplink, 0, Toward::Server)?,
            down: link(&path.downlink, 1, Toward::Clients)?,
            access: path.access(seed).map_err(|error| Error::Path(format!("access: {error}")))?.map(Box::new),
            refused: VecDeque::new(),
        })
    }

    /// Hands a packet of `len` bytes to the link towards `toward`. `client` is whose radio it is.
    ///
    /// # Errors
    /// Gives the payload back if the packet is dropped, and says why.
    pub fn offer(
        &mut self,
        now: Instant,
        toward: Toward,
        client: u32,
        len: u32,
        payload: P,
    ) -> Result<(), (DropReason, P)> {
        match &mut self.access {
            None => self.link(toward).offer_of(now, client, len, payload),
            Some(access) => {
                access.offer(now, client, toward == Toward::Clients, len, payload);
                self.let_through(now);
                Ok(())
            }
        }
    }

    /// When to call [`Shaper::deliver`] next; `None` if nothing is inside.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let links = match (self.up.next(), self.down.next()) {
            (Some(up), Some(down)) => Some(up.min(down)),
            (up, down) => up.or(down),
        };
        let Some(access) = &self.access else { return links };
        let refused = self.refused.front().map(|refused| refused.at);
        links.into_iter().chain(access.next()).chain(refused).min()
    }

    /// What has access by `now` enters its link.
    fn let_through(&mut self, now: Instant) {
        while let Some(passing) = self.access.as_mut().and_then(|access| access.release(now)) {
            let Passing { payload, len, device, to_device, at, is_dropped } = passing;
            let toward = if to_device { Toward::Clients } else { Toward::Server };
            let taken = if is_dropped {
                Err((DropReason::Access, payload))
            } else {
                self.link(toward).offer_of(at, device, len, payload)
            };
            if let Err((why, payload)) = taken {
                self.refused.push_back(Outgoing { toward, payload, len, at, lost: Some(why) });
            }
        }
    }

    /// What became of preambles, and of packets before they entered a link; none where nothing stands before the links.
    #[must_use]
    pub fn access(&self) -> Option<AccessRow> {
        self.access.as_ref().map(|access| AccessRow::of(access.counters(), access.held()))
    }

    /// The next packet due at or before `now`, the earlier first. Call until none comes.
    pub fn deliver(&mut self, now: Instant) -> Option<Outgoing<P>> {
        loop {
            let first = match (self.up.next(), self.down.next()) {
                (Some(up), Some(down)) => up.min(down),
                (up, down) => up.or(down).unwrap_or(now),
            };
            // What enters a link by then may be due before what is in it.
            if self.access.is_some() {
                self.let_through(first.min(now));
                if let Some(refused) = self.refused.pop_front() {
                    return Some(refused);
                }
            }
            let toward = match (self.up.next(), self.down.next()) {
                (Some(up), Some(down)) if down < up => Toward::Clients,
                (Some(_), _) => Toward::Server,
                (None, _) => Toward::Clients,
            };
            // A link may be looked at without effect, once for each packet inside; its next is then later.
            let link = self.link(toward);
            if link.next().is_none_or(|next| next > now) {
                return None;
            }
            let (parcel, lost) = match link.deliver(now) {
                Some(Delivered::Arrived(parcel)) => (parcel, None),
                Some(Delivered::Lost(parcel)) => (parcel, Some(DropReason::Radio)),
                Some(Delivered::Dropped(parcel, why)) => (parcel, Some(why)),
                None => continue,
            };
            return Some(Outgoing { toward, payload: parcel.payload, len: parcel.len, at: parcel.at, lost });
        }
    }

    /// What is in the queue of the link towards `toward`, the packet in service included.
    pub fn queued(&mut self, now: Instant, toward: Toward) -> Occupancy {
        self.link(toward).queued(now)
    }

    /// Counts of packets and bytes of the link towards `toward`, by what became of them.
    #[must_use]
    pub const fn counters(&self, toward: Toward) -> &Counters {
        match toward {
            Toward::Server => self.up.counters(),
            Toward::Clients => self.down.counters(),
        }
    }

    /// Both links as rows, the uplink first.
    ///
    /// # Errors
    /// A law of conservation that does not hold: a fault of the links themselves.
    pub fn rows(&mut self, now: Instant) -> Result<Vec<LinkRow>, Error> {
        [Toward::Server, Toward::Clients]
            .into_iter()
            .map(|toward| {
                let link = self.link(toward);
                link.check_conservation().map_err(|error| Error::Conservation(toward.link(), error.to_string()))?;
                let statistics = link.statistics(now);
                Ok(LinkRow::of(toward.link(), link.counters(), &statistics))
            })
            .collect()
    }

    pub(crate) const fn link(&mut self, toward: Toward) -> &mut Link<P> {
        match toward {
            Toward::Server => &mut self.up,
            Toward::Clients => &mut self.down,
        }
    }
}
