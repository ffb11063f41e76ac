//! Whose random numbers a packet has: the link's, or that of the radio that sends or hears it.

use crate::config::{Loss, LossOf};
use crate::loss::LossProcess;
use crate::trace::Follower;
use millpond_control::ChanceSeed;

/// The loss processes of one link.
#[derive(Clone, Debug)]
pub(crate) struct Radios {
    loss: Loss,
    seed: ChanceSeed,
    link: u32,
    medium: Medium,
}

#[derive(Clone, Debug)]
enum Medium {
    /// One process for all.
    Shared(LossProcess),
    /// One for each radio that was heard of, by its number.
    Apart(Vec<Option<Box<Radio>>>),
}

/// One radio's process, and how many packets it has decided on.
#[derive(Clone, Debug)]
struct Radio {
    process: LossProcess,
    packets: u64,
}

impl Radios {
    pub(crate) fn new(loss: Loss, of: LossOf, seed: ChanceSeed, link: u32) -> Self {
        let medium = match of {
            LossOf::Link => Medium::Shared(LossProcess::new(loss, seed, link)),
            LossOf::Radio => Medium::Apart(Vec::new()),
        };
        Self { loss, seed, link, medium }
    }

    /// Begins anew with another kind of loss.
    pub(crate) fn change(&mut self, loss: Loss) {
        let of = match self.medium {
            Medium::Shared(_) => LossOf::Link,
            Medium::Apart(_) => LossOf::Radio,
        };
        *self = Self::new(loss, of, self.seed, self.link);
    }

    /// Follows a trace: each packet is lost independently, no matter which radio sends or hears it.
    pub(crate) fn follow(&mut self, trace: Follower) {
        self.medium = Medium::Shared(LossProcess::traced(trace, self.seed, self.link));
    }

    /// Whether no packet is ever lost.
    pub(crate) const fn is_idle(&self) -> bool {
        match &self.medium {
            Medium::Shared(process) => process.is_idle(),
            Medium::Apart(_) => matches!(self.loss, Loss::None),
        }
    }

    /// Whether packet `number` of the link, which is at the loss stage at `at` (µs), is lost for this radio. Neither ever
    /// goes back.
    #[inline]
    pub(crate) fn strikes(&mut self, radio: u32, number: u64, at: u64) -> bool {
        match &mut self.medium {
            Medium::Shared(process) => process.strikes(number, at),
            Medium::Apart(_) => !self.is_idle() && self.strikes_one(radio, at),
        }
    }

    #[cold]
    fn strikes_one(&mut self, radio: u32, at: u64) -> bool {
        let Self { loss, seed, link, medium: Medium::Apart(radios) } = self else { return false };
        let place = radio as usize;
        if place >= radios.len() {
            radios.resize(place + 1, None);
        }
        let fresh = || Box::new(Radio { process: LossProcess::of_radio(*loss, *seed, *link, radio), packets: 0 });
        let Radio { process, packets } = &mut **radios[place].get_or_insert_with(fresh);
        *packets += 1;
        process.strikes(*packets - 1, at)
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        match &self.medium {
            Medium::Shared(_) => 0,
            Medium::Apart(radios) => {
                radios.capacity() * size_of::<Option<Box<Radio>>>()
                    + radios.iter().flatten().count() * size_of::<Radio>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probability::Probability;
    use millpond_control::Span;

    fn markov() -> Loss {
        Loss::Markov {
            good_loss: Probability::ZERO,
            bad_loss: Probability::ONE,
            good_dwell: Span::from_millis(400),
            bad_dwell: Span::from_millis(100),
        }
    }

    /// Fates of `n` packets of each of two radios, taken in turn, one a millisecond.
    fn fates(of: LossOf, n: u64) -> [Vec<bool>; 2] {
        let mut radios = Radios::new(markov(), of, ChanceSeed::new(4), 7);
        let mut fates = [Vec::new(), Vec::new()];
        for number in 0..2 * n {
            let radio = (number % 2) as u32;
            fates[radio as usize].push(radios.strikes(radio, number, number / 2 * 1_000));
        }
        fates
    }

    #[test]
    fn radios_on_one_medium_fade_together_and_others_apart() {
        let n = 1_000_000;
        let [a, b] = fates(LossOf::Link, n);
        assert_eq!(a, b);
        let [a, b] = fates(LossOf::Radio, n);
        let share = |lost: &mut dyn Iterator<Item = bool>| lost.filter(|&lost| lost).count() as f64 / n as f64;
        // A fifth of the time is bad; a state lasts 80 ms on the average (1 / (1/400 + 1/100)), so n packets count for n / 160.
        let error = |p: f64| 4.0 * (p * (1.0 - p) / (n as f64 / 160.0)).sqrt();
        for fates in [&a, &b] {
            let lost = share(&mut fates.iter().copied());
            assert!((lost - 0.2).abs() < error(0.2), "{lost}");
        }
        // Independent: both at once as often as the product says.
        let both = share(&mut a.iter().zip(&b).map(|(a, b)| *a && *b));
        assert!((both - 0.04).abs() < error(0.04), "{both}");
    }

    #[test]
    fn what_a_radio_meets_does_not_depend_on_the_others() {
        let loss = Loss::Bernoulli { rate: Probability::from_f64(0.5).unwrap() };
        let mut alone = Radios::new(loss, LossOf::Radio, ChanceSeed::new(1), 0);
        let mut among = Radios::new(loss, LossOf::Radio, ChanceSeed::new(1), 0);
        for number in 0..64 {
            among.strikes(3, 2 * number, number);
            assert_eq!(alone.strikes(5, number, number), among.strikes(5, 2 * number + 1, number));
        }
    }

    #[test]
    fn another_kind_of_loss_counts_at_once() {
        for of in [LossOf::Link, LossOf::Radio] {
            let mut radios = Radios::new(Loss::None, of, ChanceSeed::new(1), 0);
            assert!(!radios.strikes(0, 0, 0));
            radios.change(Loss::Bernoulli { rate: Probability::ONE });
            assert!(!radios.is_idle() && radios.strikes(0, 1, 1));
        }
    }
}
