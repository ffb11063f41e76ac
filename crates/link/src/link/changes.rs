//! What changes a link while it is in use: another rate, other losses, a pause.

use super::Link;
use crate::aloft::Aloft;
use crate::config::{ConfigError, InFlight, Loss, Rate};
use millpond_control::Instant;

impl<P> Link<P> {
    /// Changes the rate from `now` on; the rest of the packet in service goes at the new rate too. Costs time in
    /// proportion to the packets waiting.
    ///
    /// # Errors
    /// What [`Config::check`](crate::Config::check) says of such a rate; the link is then as before.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) -> Result<(), ConfigError> {
        rate.check()?;
        let clock = self.advance(now);
        let (total, charge) = (self.work_waiting(), self.charge);
        self.queue.change_departures(|waiting| {
            self.rate.change(clock, rate, total, waiting.map(|w| (charge.of(w.radio, w.len), &mut w.departs)));
        });
        self.advance(now);
        Ok(())
    }

    /// Changes the losses: what leaves the rate stage from `now` on, or is offered with
    /// [`LossAt::BeforeRate`](crate::LossAt::BeforeRate), meets the new
    /// ones. A process with states begins anew.
    ///
    /// # Errors
    /// What [`Config::check`](crate::Config::check) says of such losses; the link is then as before.
    pub fn set_loss(&mut self, now: Instant, loss: Loss) -> Result<(), ConfigError> {
        loss.check()?;
        self.advance(now);
        self.loss.change(loss);
        Ok(())
    }

    /// Sends nothing from `now` on: what waits goes on waiting, and the queue takes packets as long as it has room. What has left
    /// the queue fares as said; a link that is paused already stays as it is, but may lose that. Costs time in proportion to the
    /// packets inside.
    pub fn pause(&mut self, now: Instant, in_flight: InFlight) {
        let clock = self.advance(now);
        if in_flight == InFlight::Lost {
            self.air.lose();
            self.aloft.iter_mut().for_each(Aloft::lose);
        }
        if self.paused.is_none() {
            self.paused = Some((clock, in_flight));
            self.queue.change_departures(|waiting| self.rate.stop(clock, waiting.map(|w| &mut w.departs)));
        }
    }

    /// Goes on at `now`: the packet in service with the bits that it lacks, and what was delayed arrives at once. Costs time in
    /// proportion to the packets waiting.
    pub fn resume(&mut self, now: Instant) {
        let clock = self.advance(now);
        if let Some((_, in_flight)) = self.paused.take() {
            if in_flight == InFlight::Delayed {
                self.resumed = clock;
            }
            let (total, charge) = (self.work_waiting(), self.charge);
            self.queue.change_departures(|waiting| {
                self.rate.resume(clock, total, waiting.map(|w| (charge.of(w.radio, w.len), &mut w.departs)));
            });
            self.advance(now);
        }
    }
}
