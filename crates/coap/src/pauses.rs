use core::time::Duration;

/// How long who lost a server waits before the next attempt to reach it, so that those who were interrupted together come
/// apart.
///
/// Chance is the caller's: 32 random bits. Who remembers the number of failures over a restart goes on where it was.
///
/// ```
/// use core::time::Duration;
///
/// use millpond_coap::Pauses;
///
/// // After a power cut, one of 400 devices on a link of 60 kbit/s that each send and receive 134 bytes.
/// let pauses = Pauses::new().spread_by_load(400, 134, 60_000);
/// assert_eq!(pauses.after_loss(u32::MAX), Duration::from_millis(14_293));
/// // Nobody answered, three times in a row: 4 s, and up to half as much again.
/// assert_eq!(pauses.after_failures(3, None, 0), Duration::from_secs(4));
/// // The server said 5.03 with a Max-Age of 30.
/// assert_eq!(pauses.after_failures(1, Some(Duration::from_secs(30)), 0), Duration::from_secs(30));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    first: Duration,
    longest: Duration,
    spread: Duration,
}

impl Pauses {
    /// No server is believed that wants to be asked again later than this.
    pub const LATEST: Duration = Duration::from_secs(3_600);

    /// Of 1 s to 60 s, without a spread. The longest is what a representation is fresh for where nothing is said (RFC 7252 §5.10.5).
    #[must_use]
    pub const fn new() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(60), spread: Duration::ZERO }
    }

    /// The pause after a first failure, and the longest one.
    #[must_use]
    pub const fn between(self, first: Duration, longest: Duration) -> Self {
        Self { first, longest, ..self }
    }

    /// After the loss of what stood, and after a restart, a time that is uniform up to this, 49 days at most.
    #[must_use]
    pub const fn spread(self, spread: Duration) -> Self {
        Self { spread, ..self }
    }

    /// The spread of so many devices that share a link of this rate, on which each has so many bytes to send and receive until it has
    /// reported: as long as that takes at half of the rate. The rest is for what is lost and repeated, and for other traffic. The
    /// rate is that of the slower direction; nothing here measures it.
    #[must_use]
    pub const fn spread_by_load(self, devices: u32, bytes: u32, bits_per_second: u32) -> Self {
        let bits = (devices as u64).saturating_mul(bytes as u64).saturating_mul(8);
        match bits.saturating_mul(2_000).checked_div(bits_per_second as u64) {
            Some(millis) => self.spread(Duration::from_millis(millis)),
            None => self.spread(Duration::MAX),
        }
    }

    /// The pause after a first failure.
    #[must_use]
    pub const fn first(&self) -> Duration {
        self.first
    }

    /// The longest pause after failures, but for what a server says.
    #[must_use]
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// How long to wait after a restart, before which so many attempts had failed in a row.
    #[must_use]
    pub fn after_restart(&self, failures: u32, chance: u32) -> Duration {
        let doubled = if failures == 0 { Duration::ZERO } else { self.after_failures(failures, None, chance) };
        doubled.max(self.after_loss(chance))
    }

    /// How long to wait after what stood was lost.
    #[must_use]
    pub fn after_loss(&self, chance: u32) -> Duration {
        part(self.spread, chance)
    }

    /// How long to wait after so many failures in a row: twice as long each time, and up to half as much again by chance. `told` is
    /// what a server said that refused, Max-Age of 5.03 or 4.29 (RFC 7252 §5.9.3.4, RFC 8516): at least that.
    #[must_use]
    pub fn after_failures(&self, failures: u32, told: Option<Duration>, chance: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(31)).min(self.longest);
        let pause = told.map_or(Duration::ZERO, |told| told.min(Self::LATEST)).max(doubled);
        pause.saturating_add(part(pause, chance >> 1))
    }

    /// How long to wait after a server has refused that otherwise could be reached: what it said, and up to half as much again or
    /// the spread, by chance.
    #[must_use]
    pub fn after_refusal(&self, told: Duration, chance: u32) -> Duration {
        let told = told.min(Self::LATEST);
        told.saturating_add(part(told, chance >> 1).max(part(self.spread, chance)))
    }
}

impl Default for Pauses {
    fn default() -> Self {
        Self::new()
    }
}

/// As much of it as chance has it, in whole milliseconds, of which 32 bits count: 49 days.
fn part(whole: Duration, chance: u32) -> Duration {
    let millis = u32::try_from(whole.as_millis()).unwrap_or(u32::MAX);
    // The highest chance has all of it.
    let product = u64::from(millis).saturating_add(1).saturating_mul(chance.into());
    Duration::from_millis(product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_the_longest_and_chance_adds_up_to_half() {
        let pauses = Pauses::new();
        let waits = |chance| {
            (1..9)
                .map(|failures| pauses.after_failures(failures, None, chance).as_millis())
                .collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(waits(0), [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(waits(u32::MAX), [1_500, 3_000, 6_000, 12_000, 24_000, 48_000, 90_000, 90_000]);
        assert_eq!(pauses.after_failures(u32::MAX, None, 0), 60 * SECOND);
    }

    #[test]
    fn a_loss_waits_for_no_longer_than_the_spread() {
        assert_eq!(Pauses::new().after_loss(u32::MAX), Duration::ZERO);
        let spread = Pauses::new().spread(20 * SECOND);
        assert_eq!((spread.after_loss(0), spread.after_loss(u32::MAX)), (Duration::ZERO, 20 * SECOND));
        assert_eq!(Pauses::new().spread(Duration::MAX).after_loss(u32::MAX).as_secs() / 86_400, 49);
    }

    #[test]
    fn a_restart_waits_for_the_longer_of_spread_and_backoff() {
        let pauses = Pauses::new().spread(20 * SECOND);
        let waits = |failures| pauses.after_restart(failures, u32::MAX).as_secs();
        assert_eq!([0, 1, 4, 5, 7].map(waits), [20, 20, 20, 24, 90]);
    }

    #[test]
    fn what_a_server_says_is_waited_for_and_an_hour_at_most() {
        let pauses = Pauses::new().spread(20 * SECOND);
        let told = |failures, seconds, chance| pauses.after_failures(failures, Some(seconds * SECOND), chance);
        assert_eq!(told(1, 30, 0), 30 * SECOND);
        assert_eq!(told(1, 30, u32::MAX), 45 * SECOND);
        assert_eq!(told(7, 30, 0), 60 * SECOND);
        assert_eq!(told(1, u32::MAX, 0), Pauses::LATEST);
        let refused = |seconds, chance| pauses.after_refusal(seconds * SECOND, chance);
        assert_eq!(
            (refused(30, 0), refused(30, u32::MAX), refused(60, u32::MAX)),
            (30 * SECOND, 50 * SECOND, 90 * SECOND)
        );
        assert_eq!(refused(u32::MAX, 0), Pauses::LATEST);
    }

    #[test]
    fn a_spread_by_load_takes_twice_as_long_as_the_link_needs() {
        let spread = |devices, bytes, rate| Pauses::new().spread_by_load(devices, bytes, rate).after_loss(u32::MAX);
        assert_eq!(spread(100, 125, 1_000), 200 * SECOND);
        assert_eq!(spread(0, 125, 1_000), Duration::ZERO);
        assert!(spread(u32::MAX, u32::MAX, 0) > 1_000_000 * SECOND);
    }
}
