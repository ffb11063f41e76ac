use millpond_control::Instant;

/// Time, as a [`Node`](crate::Node) has it.
#[expect(async_fn_in_trait, reason = "an executor of firmware runs on one thread")]
pub trait Clock {
    /// Now. Never earlier than before.
    fn now(&self) -> Instant;

    /// Returns at this point in time; at [`Instant::NEVER`] never.
    async fn until(&self, at: Instant);
}

/// The clock of embassy.
#[cfg(feature = "embassy-time")]
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbassyClock;

#[cfg(feature = "embassy-time")]
impl Clock for EmbassyClock {
    fn now(&self) -> Instant {
        Instant::from_micros(embassy_time::Instant::now().as_micros())
    }

    async fn until(&self, at: Instant) {
        /// Microseconds of a tick, so that nothing wakes before its time.
        const TICK: u64 = 1_000_000_u64.div_ceil(embassy_time::TICK_HZ);
        if at == Instant::NEVER {
            return core::future::pending().await;
        }
        let at = at.as_micros().saturating_add(TICK.saturating_sub(1));
        embassy_time::Timer::at(embassy_time::Instant::from_micros(at)).await;
    }
}
