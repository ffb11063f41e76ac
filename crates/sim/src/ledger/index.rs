//! Where the exchanges of clients are that have many on record, as of a backlog of non-confirmable requests.

use std::collections::{BTreeMap, BTreeSet};

use millpond_coap::ExchangeId;

use super::Record;

/// A client's records are searched one by one up to so many.
pub(super) const MANY: usize = 16;

/// The records of some flows, by what they are looked for.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_number: BTreeMap<(u32, u32), u32>,
    by_id: BTreeMap<(u32, ExchangeId), u32>,
    /// Those of which no copy has left.
    unsent: BTreeSet<(u32, u32)>,
}

impl Index {
    pub(super) fn put(&mut self, flow: u32, place: u32, record: &Record) {
        self.by_number.insert((flow, record.number), place);
        if let Some(id) = record.id {
            self.by_id.insert((flow, id), place);
        }
        if record.copies == 0 {
            self.unsent.insert((flow, record.number));
        }
    }

    /// Its first copy has left.
    pub(super) fn sent(&mut self, flow: u32, number: u32) {
        self.unsent.remove(&(flow, number));
    }

    pub(super) fn take(&mut self, flow: u32, record: &Record) {
        self.by_number.remove(&(flow, record.number));
        if let Some(id) = record.id {
            self.by_id.remove(&(flow, id));
        }
        self.unsent.remove(&(flow, record.number));
    }

    pub(super) fn number(&self, flow: u32, number: u32) -> Option<u32> {
        self.by_number.get(&(flow, number)).copied()
    }

    pub(super) fn id(&self, flow: u32, id: ExchangeId) -> Option<u32> {
        self.by_id.get(&(flow, id)).copied()
    }

    /// The numbers of those of which no copy has left, the oldest first.
    pub(super) fn unsent(&self, flow: u32) -> impl Iterator<Item = u32> {
        self.unsent.range((flow, 0)..=(flow, u32::MAX)).map(|&(_, number)| number)
    }
}
