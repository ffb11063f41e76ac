//! Ends slow start when round trips become longer, before a queue overflows: HyStart++ (RFC 9406), and HyStart as Linux has it.

use super::{Ack, Micros};

/// RFC 9406 §4.3, as the next four.
const LEAST_RISE: Micros = 4_000;
const MOST_RISE: Micros = 16_000;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: f64 = 4.0;
const ROUNDS: u32 = 5;

/// What is learnt of round trips while the segments that are under way at once are acknowledged.
#[derive(Debug, Default)]
struct Round {
    /// It ends when so many segments were delivered.
    ends: u64,
    /// The shortest round trip, of so many.
    least: Option<Micros>,
    samples: u32,
}

impl Round {
    /// The one that begins with an acknowledgement, if the one before has ended.
    fn after(&self, ack: &Ack) -> Option<Self> {
        let ends = ack.delivered_total + u64::from(ack.flight.outstanding);
        (ack.delivered_total >= self.ends).then_some(Self { ends, least: None, samples: 0 })
    }

    /// A round trip took so long: the shortest so far.
    fn took(&mut self, rtt: Micros) -> Micros {
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        (self.least, self.samples) = (Some(least), self.samples + 1);
        least
    }
}

/// By how much a round trip is longer than a short one if it is longer at all.
fn rise(short: Micros) -> Micros {
    (short / 8).clamp(LEAST_RISE, MOST_RISE)
}

/// What is known of round trips in slow start.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    round: Round,
    /// The shortest round trip of the round before.
    last: Option<Micros>,
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
        if let Some(next) = self.round.after(ack) {
            (self.last, self.round) = (self.round.least, next);
            if let Some(slow) = &mut self.conservative {
                slow.rounds += 1;
                if slow.rounds >= ROUNDS {
                    return None;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            self.round.took(rtt);
        }
        if let (Some(last), Round { least: Some(least), samples: SAMPLES.., .. }) = (self.last, &self.round) {
            match &self.conservative {
                None if *least >= last + rise(last) => {
                    self.conservative = Some(Conservative { baseline: *least, rounds: 0 });
                }
                // It was no queue.
                Some(slow) if *least < slow.baseline => self.conservative = None,
                _ => {}
            }
        }
        Some(if self.conservative.is_some() { GROWTH_DIVISOR } else { 1.0 })
    }
}

/// HyStart (S. Ha, I. Rhee: Taming the elephants, Computer Networks 55, 2011) with the constants of Linux: what is learnt of the
/// round trips of a round ends slow start at once.
#[derive(Debug, Default)]
pub(super) struct LinuxHyStart {
    round: Round,
    began: Micros,
    /// When the last acknowledgement of a train came.
    train: Micros,
}

impl LinuxHyStart {
    /// Below this window nothing ends.
    const LEAST_WINDOW: f64 = 16.0;
    /// Acknowledgements that follow each other so soon are a train.
    const TRAIN: Micros = 2_000;

    /// An acknowledgement came, and the shortest round trip ever is known: whether slow start goes on.
    pub(super) fn goes_on(&mut self, ack: &Ack, window: f64, shortest: Micros) -> bool {
        let Some(rtt) = ack.rtt.filter(|_| window >= Self::LEAST_WINDOW) else { return true };
        if let Some(round) = self.round.after(ack) {
            *self = Self { round, began: ack.now, train: ack.now };
        }
        if ack.now.saturating_sub(self.train) <= Self::TRAIN {
            self.train = ack.now;
            // A train half as long as the shortest round trip fills the path.
            if ack.now.saturating_sub(self.began) > shortest / 2 {
                return false;
            }
        }
        let least = self.round.took(rtt);
        self.round.samples <= SAMPLES || least <= shortest + rise(shortest)
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

    #[test]
    fn linux_ends_slow_start_at_once_by_a_rise_or_a_train_of_acknowledgements() {
        let ended = |window: f64, apart: Micros, rtts: &[Micros]| {
            let mut slow_start = LinuxHyStart::default();
            let mut acks = rtts.iter().enumerate();
            acks.position(|(n, &rtt)| {
                let ack = Ack { now: n as Micros * apart, ..ack(n as u64, rtt) };
                !slow_start.goes_on(&ack, window, 400_000)
            })
        };
        let (low, high) = ([416_000; 30], [416_001; 30]);
        // The ninth of a round: no fewer than eight are believed.
        assert_eq!((ended(16.0, 40_000, &low), ended(16.0, 40_000, &high)), (None, Some(8)));
        assert_eq!(ended(15.9, 40_000, &high), None, "a small window ends nothing");
        // 110 of a round of 10 would be 11 rounds: each begins anew.
        assert_eq!(ended(16.0, 2_000, &[400_000; 110]), None);
        let mut slow_start = LinuxHyStart::default();
        let flight = Flight { outstanding: 500, pipe: 500 };
        let train = (0..200).map(|n| Ack { now: n * 2_000, ..Ack::of_one(0, n, flight, 400_000) });
        assert_eq!(train.map(|ack| slow_start.goes_on(&ack, 16.0, 400_000)).position(|on| !on), Some(101));
    }
}
