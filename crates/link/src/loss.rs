//! Which packets the medium loses: none, each with one probability, by a process in time, or by a chain over packets.

use crate::config::Loss;
use crate::exponential::exponential;
use crate::probability::Probability;
use crate::trace::Follower;
use millpond_control::{Chance, ChanceSeed, Purpose, Span};

/// What a word of chance is for, as the last part of its address.
#[derive(Clone, Copy)]
enum Draw {
    /// Whether packet n is lost, or how the chain steps after it.
    Packet = 0,
    /// The length of the n-th dwell.
    Dwell = 1,
    /// The state at the caller's origin.
    Origin = 2,
    /// The state at instant n, after a silence too long to be followed dwell by dwell.
    Silence = 3,
    /// The random stream of radio n.
    Radio = 4,
}

/// The random stream of one link, or of one radio on it.
#[derive(Clone, Copy, Debug)]
struct RandomStream {
    seed: ChanceSeed,
    link: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    stream: RandomStream,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Never,
    Bernoulli(Probability),
    Markov(Markov),
    Chain { p: Probability, r: Probability, in_good: Probability, in_bad: Probability, bad: bool },
    Traced(Box<Follower>),
}

/// Two states in time.
#[derive(Clone, Debug)]
struct Markov {
    /// Loss probability, good state first.
    loss: [Probability; 2],
    /// Mean dwell, good state first.
    mean: [Span; 2],
    bad: bool,
    /// The first instant of the next state.
    until: u64,
    /// Dwells begun so far.
    dwells: u64,
}

impl RandomStream {
    fn place(self, number: u64, draw: Draw) -> [u32; 4] {
        [self.link, number as u32, (number >> 32) as u32, draw as u32]
    }

    fn packet(self, purpose: Purpose, number: u64) -> Chance {
        self.seed.at(purpose, self.place(number, Draw::Packet))
    }
}

impl LossProcess {
    /// The process of one radio on a link.
    pub(crate) fn of_radio(loss: Loss, seed: ChanceSeed, link: u32, radio: u32) -> Self {
        let place = RandomStream { seed, link }.place(u64::from(radio), Draw::Radio);
        Self::new(loss, ChanceSeed::new(seed.wide(Purpose::LossState, place)), link)
    }

    pub(crate) fn new(loss: Loss, seed: ChanceSeed, link: u32) -> Self {
        let stream = RandomStream { seed, link };
        let kind = match loss {
            Loss::None => Kind::Never,
            Loss::Bernoulli { rate } => Kind::Bernoulli(rate),
            Loss::Markov { good_loss, bad_loss, good_dwell, bad_dwell } => {
                Kind::Markov(Markov::new([good_loss, bad_loss], [good_dwell, bad_dwell], stream))
            }
            Loss::GilbertElliott { p, r, one_minus_h, one_minus_k } => {
                Kind::Chain { p, r, in_good: one_minus_k, in_bad: one_minus_h, bad: false }
            }
        };
        Self { stream, kind }
    }

    /// Each packet independently, with the probability that a trace has then.
    pub(crate) fn traced(trace: Follower, seed: ChanceSeed, link: u32) -> Self {
        Self { stream: RandomStream { seed, link }, kind: Kind::Traced(Box::new(trace)) }
    }

    /// Whether no packet is ever lost.
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.kind, Kind::Never)
    }

    /// Whether packet `number`, which is at the loss stage at `at` (µs), is lost. Neither ever goes back.
    #[inline]
    pub(crate) fn strikes(&mut self, number: u64, at: u64) -> bool {
        !self.is_idle() && self.draws(number, at)
    }

    #[inline(never)]
    fn draws(&mut self, number: u64, at: u64) -> bool {
        let stream = self.stream;
        let probability = match &mut self.kind {
            Kind::Never => return false,
            Kind::Bernoulli(rate) => *rate,
            Kind::Traced(trace) => trace.loss(at),
            Kind::Markov(process) => process.loss[usize::from(process.is_bad(at, stream))],
            Kind::Chain { p, r, in_good, in_bad, bad } => {
                let (loss, leave) = if *bad { (*in_bad, *r) } else { (*in_good, *p) };
                *bad ^= leave.happens(stream.packet(Purpose::LossState, number));
                loss
            }
        };
        probability.happens(stream.packet(Purpose::Loss, number))
    }
}

impl Markov {
    /// A silence longer than this many mean cycles is jumped over: what the state was before it no longer matters
    /// (less than e^-1000000), and it would take noticeable time to follow.
    const SILENCE: u64 = 1 << 20;

    fn new(loss: [Probability; 2], mean: [Span; 2], stream: RandomStream) -> Self {
        let mut process = Self { loss, mean, bad: false, until: 0, dwells: 0 };
        process.settle(0, Draw::Origin, stream);
        process
    }

    fn is_bad(&mut self, at: u64, stream: RandomStream) -> bool {
        if at.saturating_sub(self.until) > self.cycle() * Self::SILENCE {
            self.settle(at, Draw::Silence, stream);
        }
        while self.until <= at {
            self.bad = !self.bad;
            self.dwell(stream);
        }
        self.bad
    }

    /// Draws the state at `at` from the stationary distribution. What remains of its dwell has the distribution of a
    /// whole one.
    fn settle(&mut self, at: u64, draw: Draw, stream: RandomStream) {
        let word = stream.seed.at(Purpose::LossState, stream.place(at, draw)).word();
        let point = (u128::from(self.cycle()) * u128::from(word)) >> 32;
        self.bad = point < u128::from(self.mean[1].as_micros());
        self.until = at;
        self.dwell(stream);
    }

    fn dwell(&mut self, stream: RandomStream) {
        let word = stream.seed.wide(Purpose::LossState, stream.place(self.dwells, Draw::Dwell));
        self.dwells += 1;
        self.until = self.until.saturating_add(exponential(self.mean[usize::from(self.bad)], word));
    }

    /// Mean time from one entry into a state to the next, µs.
    fn cycle(&self) -> u64 {
        self.mean.iter().map(|mean| u64::from(mean.as_micros())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probability(value: f64) -> Probability {
        Probability::from_f64(value).unwrap()
    }

    fn markov(good_loss: f64, bad_loss: f64, good_dwell: u32, bad_dwell: u32) -> Loss {
        let (good_dwell, bad_dwell) = (Span::from_millis(good_dwell), Span::from_millis(bad_dwell));
        Loss::Markov { good_loss: probability(good_loss), bad_loss: probability(bad_loss), good_dwell, bad_dwell }
    }

    fn chain(p: f64, r: f64, one_minus_h: f64, one_minus_k: f64) -> Loss {
        Loss::GilbertElliott {
            p: probability(p),
            r: probability(r),
            one_minus_h: probability(one_minus_h),
            one_minus_k: probability(one_minus_k),
        }
    }

    /// Fates of `n` packets, one every `step` µs.
    fn fates(loss: Loss, seed: u64, n: u64, step: u64) -> Vec<bool> {
        let mut process = LossProcess::new(loss, ChanceSeed::new(seed), 7);
        (0..n).map(|number| process.strikes(number, number * step)).collect()
    }

    fn share(fates: &[bool]) -> f64 {
        fates.iter().filter(|&&lost| lost).count() as f64 / fates.len() as f64
    }

    /// Mean length of the runs of losses.
    fn mean_run(fates: &[bool]) -> (f64, f64) {
        let runs = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (share(fates) * fates.len() as f64 / runs, runs)
    }

    /// Share of losses among packets that follow a loss.
    fn share_after_loss(fates: &[bool]) -> (f64, f64) {
        let after: Vec<bool> = fates.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        (share(&after), after.len() as f64)
    }

    /// `ours` within four standard errors of a share that is `expected`.
    #[track_caller]
    fn assert_share(ours: f64, expected: f64, effective_n: f64) {
        let error = (expected * (1.0 - expected) / effective_n).sqrt();
        assert!((ours - expected).abs() < 4.0 * error, "{ours} instead of {expected} ± {error}");
    }

    const N: u64 = 1_000_000;

    #[test]
    fn independent_losses_have_their_rate_and_no_memory() {
        for rate in [0.02, 0.176, 0.5] {
            let fates = fates(Loss::Bernoulli { rate: probability(rate) }, 1, N, 1_000);
            assert_share(share(&fates), rate, N as f64);
            let (after, n) = share_after_loss(&fates);
            assert_share(after, rate, n);
        }
    }

    #[test]
    fn a_gilbert_chain_has_the_mean_and_the_bursts_of_theory() {
        // Simple Gilbert: every packet of the bad state is lost. Runs are geometric with mean 1/r, σ = √(1-r)/r.
        let (p, r) = (0.05, 0.25);
        let fates = fates(chain(p, r, 1.0, 0.0), 2, N, 1_000);
        // Variance of a share over a chain with correlation λ grows by (1+λ)/(1-λ).
        let lambda = 1.0 - p - r;
        assert_share(share(&fates), p / (p + r), N as f64 * (1.0 - lambda) / (1.0 + lambda));
        let (mean, runs) = mean_run(&fates);
        let error = (1.0 - r).sqrt() / r / runs.sqrt();
        assert!((mean - 1.0 / r).abs() < 4.0 * error, "{mean} instead of {} ± {error}", 1.0 / r);
    }

    #[test]
    fn a_gilbert_elliott_chain_loses_in_both_states() {
        let (p, r, in_bad, in_good) = (0.1, 0.3, 0.8, 0.02);
        let fates = fates(chain(p, r, in_bad, in_good), 3, N, 1_000);
        let occupancy = p / (p + r);
        let lambda = 1.0 - p - r;
        let mean = occupancy * in_bad + (1.0 - occupancy) * in_good;
        assert_share(share(&fates), mean, N as f64 * (1.0 - lambda) / (1.0 + lambda));
        // P(loss after a loss) = (π_b·b·(r·g + (1-r)·b) + π_g·g·(p·b + (1-p)·g)) / mean
        let after_bad = occupancy * in_bad * (r * in_good + (1.0 - r) * in_bad);
        let after_good = (1.0 - occupancy) * in_good * (p * in_bad + (1.0 - p) * in_good);
        let (after, n) = share_after_loss(&fates);
        assert_share(after, (after_bad + after_good) / mean, n * (1.0 - lambda) / (1.0 + lambda));
    }

    #[test]
    fn a_chain_with_p_plus_r_of_one_has_no_memory() {
        let fates = fates(chain(0.2, 0.8, 0.8, 0.02), 4, N, 1_000);
        assert_share(share(&fates), 0.176, N as f64);
        let (after, n) = share_after_loss(&fates);
        assert_share(after, 0.176, n);
    }

    #[test]
    fn the_loss_is_drawn_before_the_step() {
        // Good → bad for certain, and back: with loss in the bad state only, every second packet is lost, and the
        // first is not.
        assert_eq!(fates(chain(1.0, 1.0, 1.0, 0.0), 5, 6, 1_000), [false, true, false, true, false, true]);
        let short = Loss::gilbert_elliott(Probability::ONE);
        assert_eq!(fates(short, 5, 6, 1_000), [false, true, false, true, false, true]);
    }

    #[test]
    fn the_process_in_time_has_the_occupancy_and_dwells_of_theory() {
        // Certain loss in the bad state makes the state visible; one packet a millisecond resolves it.
        let (good, bad) = (400.0, 100.0);
        let n = 5_000_000;
        let fates = fates(markov(0.0, 1.0, 400, 100), 6, n, 1_000);
        let occupancy = bad / (good + bad);
        let lambda = f64::exp(-(1.0 / good + 1.0 / bad));
        assert_share(share(&fates), occupancy, n as f64 * (1.0 - lambda) / (1.0 + lambda));
        // P(bad after 1 ms | bad) = π + (1 - π)·λ
        let (after, count) = share_after_loss(&fates);
        assert_share(after, occupancy + (1.0 - occupancy) * lambda, count);
        // A run seen each millisecond is geometric with that probability of going on.
        let (mean, runs) = mean_run(&fates);
        let leave = (1.0 - occupancy) * (1.0 - lambda);
        let error = (1.0 - leave).sqrt() / leave / runs.sqrt();
        assert!((mean - 1.0 / leave).abs() < 4.0 * error, "{mean} instead of {} ± {error}", 1.0 / leave);
    }

    #[test]
    fn the_process_in_time_starts_in_its_stationary_distribution() {
        let n = 100_000;
        let first: Vec<bool> = (0..n).map(|seed| fates(markov(0.0, 1.0, 400, 100), seed, 1, 0)[0]).collect();
        assert_share(share(&first), 0.2, n as f64);
    }

    #[test]
    fn mixed_loss_probabilities_give_the_profile_s_mean() {
        // The three error profiles of the study `tcp20`: constant 2 %, 0/50 % and 2/80 % with a fifth of the time bad.
        for (good, bad, mean) in [(0.02, 0.02, 0.02), (0.0, 0.5, 0.1), (0.02, 0.8, 0.176)] {
            // Packets 10 s apart are independent: dwells are fractions of a second.
            let fates = fates(markov(good, bad, 400, 100), 8, 200_000, 10_000_000);
            assert_share(share(&fates), mean, 200_000.0);
        }
    }

    #[test]
    fn the_path_in_time_does_not_depend_on_the_traffic() {
        let loss = markov(0.0, 1.0, 40, 10);
        let dense = fates(loss, 9, 100_000, 1_000);
        let mut sparse = LossProcess::new(loss, ChanceSeed::new(9), 7);
        for (number, at) in (0..100_000).step_by(977).enumerate() {
            assert_eq!(sparse.strikes(number as u64, at * 1_000), dense[at as usize], "at {at} ms");
        }
    }

    #[test]
    fn a_silence_of_ages_is_jumped_over() {
        // A caller whose origin lies decades back; a walk through every dwell would need 10^12 steps.
        let n = 20_000;
        let lost = (0..n).filter(|&seed| {
            let mut process = LossProcess::new(markov(0.0, 1.0, 4, 1), ChanceSeed::new(seed), 7);
            process.strikes(0, 1_800_000_000_000_000)
        });
        assert_share(lost.count() as f64 / n as f64, 0.2, n as f64);
    }

    #[test]
    fn links_and_seeds_draw_from_streams_of_their_own() {
        let loss = Loss::Bernoulli { rate: probability(0.5) };
        let base = fates(loss, 1, 64, 0);
        assert_eq!(base, fates(loss, 1, 64, 1_000_000));
        assert_ne!(base, fates(loss, 2, 64, 0));
        let mut other = LossProcess::new(loss, ChanceSeed::new(1), 8);
        assert_ne!(base, (0..64).map(|number| other.strikes(number, 0)).collect::<Vec<_>>());
    }
}
