//! HyStart++ (RFC 9406): ends slow start when round trips become longer, before a queue overflows.

use super::{Ack, Micros};

/// RFC 9406 §4.3, as the next four.
const LEAST_RISE: Micros = 4_000;
const MOST_RISE: Micros = 16_000;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: f64 = 4.0;
const ROUNDS: u32 = 5;

/// What is known of round trips in slow start.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    /// A round ends when so many segments were delivered.
    ends: u64,
    /// The shortest round trips of the round before, and of this one, of which there were so many.
    last: Option<Micros>,
    least: Option<Micros>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start: growth is slower until it is clear that the queue grows.
#[derive(Debug)]
struct Conservative {
    /// The round trip with which it began.
    baseline: Micros,
    rounds: u32,
}

impl HyStart {
    /// An acknowledgement came: by what growth is divided, or none if slow start is over.
    pub(super) fn heard(&mut self, ack: &Ack) -> Option<f64> {
        if ack.delivered_total >= self.ends {
            self.ends = ack.delivered_total + u64::from(ack.flight.outstanding);
            (self.last, self.least, self.samples) = (self.least, None, 0);
            if let Some(slow) = &mut self.conservative {
                slow.rounds += 1;
                if slow.rounds >= ROUNDS {
                    return None;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.samples += 1;
        }
        if let (Some(last), Some(least), SAMPLES..) = (self.last, self.least, self.samples) {
            match &self.conservative {
                None if least >= last + (last / 8).clamp(LEAST_RISE, MOST_RISE) => {
                    self.conservative = Some(Conservative { baseline: least, rounds: 0 });
                }
                // It was no queue.
                Some(slow) if least < slow.baseline => self.conservative = None,
                _ => {}
            }
        }
        Some(if self.conservative.is_some() { GROWTH_DIVISOR } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Flight;

    /// An acknowledgement with this round trip, of a round of ten.
    fn ack(number: u64, rtt: Micros) -> Ack {
        Ack::of_one(0, number, Flight { outstanding: 10, pipe: 10 }, rtt)
    }

    fn told(rounds: &[Micros]) -> Vec<Option<f64>> {
        let mut slow_start = HyStart::default();
        let acks =
            rounds.iter().enumerate().flat_map(|(round, rtt)| (0..10).map(move |n| (10 * round as u64 + n, *rtt)));
        let told: Vec<_> = acks.map(|(number, rtt)| slow_start.heard(&ack(number, rtt))).collect();
        // The last of each round.
        told.chunks(10).map(|round| round[9]).collect()
    }

    #[test]
    fn a_rise_of_an_eighth_slows_growth_and_ends_it_after_five_rounds() {
        let slow = Some(GROWTH_DIVISOR);
        assert_eq!(told(&[100_000, 100_000, 112_499]), [Some(1.0); 3]);
        assert_eq!(told(&[100_000, 112_500]), [Some(1.0), slow]);
        // No more than 16 ms are needed, and no less than 4.
        assert_eq!(told(&[400_000, 415_999, 432_000]), [Some(1.0), Some(1.0), slow]);
        assert_eq!(told(&[8_000, 11_999]), [Some(1.0); 2]);
        assert_eq!(told(&[8_000, 12_000]), [Some(1.0), slow]);
        // Back below where it began, it was no queue.
        assert_eq!(told(&[100_000, 120_000, 119_999]), [Some(1.0), slow, Some(1.0)]);
        let mut slow_start = HyStart::default();
        let over =
            (0..100).map(|n| slow_start.heard(&ack(n, 100_000 + 20_000 * (n / 10)))).position(|told| told.is_none());
        assert_eq!(over, Some(60), "slower from the second round on, over five rounds after it");
    }
}
