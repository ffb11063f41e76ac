//! What a driver does about peers that cannot be reached.

use super::Driver;
use crate::{Error, Happened, udp::PortError};

impl Driver {
    /// The network says that a peer cannot be reached. Requests to which nothing came back yet end with that; what is
    /// half done goes on, because servers come back.
    pub(super) fn complain(&mut self, error: &PortError) {
        self.watch.tell(self.clock.now(), error.to, || Happened::Complaint { reason: error.reason.clone() });
        self.cut_off(error);
    }

    /// A peer cannot be reached.
    pub(super) fn cut_off(&mut self, PortError { to, reason, .. }: &PortError) {
        let now = self.clock.now();
        let unreachable = || Error::Unreachable { peer: *to, reason: reason.clone(), source: None };
        self.asks.end_pings(|ping| ping.peer == *to, &unreachable());
        let mut had_begun = false;
        for lane in &mut self.lanes {
            had_begun |= lane.abandon(*to);
        }
        if had_begun {
            self.end_held(*to, &unreachable());
        }
        for (lane, ask) in self.asks.unheard(*to) {
            let progress = self.lanes.get(lane).and_then(|lane| lane.host.progress(ask));
            if progress.is_some_and(|progress| progress.sent + progress.received > 0) {
                continue;
            }
            self.asks.end((lane, ask), Err(unreachable()));
            self.on_host(lane, now, |host| host.cancel(now, ask));
        }
    }
}
