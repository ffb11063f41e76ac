//! Time: SysTick counts steps of five milliseconds.

use core::{cell::RefCell, task::Waker};

use cortex_m::peripheral::{SYST, syst::SystClkSource};
use critical_section::Mutex;
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

/// Cycles of the processor in a millisecond, after a reset.
const CYCLES: u32 = 12_500;
/// Milliseconds of a step.
const STEP: u32 = 5;

struct Ticks {
    state: Mutex<RefCell<State>>,
}

struct State {
    now: u64,
    alarm: u64,
    queue: Queue,
}

embassy_time_driver::time_driver_impl!(static TICKS: Ticks = Ticks {
    state: Mutex::new(RefCell::new(State { now: 0, alarm: u64::MAX, queue: Queue::new() })),
});

impl Driver for Ticks {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.state.borrow_ref(cs).now)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let state = &mut *self.state.borrow_ref_mut(cs);
            if state.queue.schedule_wake(at, waker) {
                state.alarm = state.queue.next_expiration(state.now);
            }
        });
    }
}

pub fn start(mut timer: SYST) {
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(CYCLES * STEP - 1);
    timer.clear_current();
    timer.enable_counter();
    timer.enable_interrupt();
}

/// A step has gone by.
pub fn tick() {
    critical_section::with(|cs| {
        let state = &mut *TICKS.state.borrow_ref_mut(cs);
        state.now += u64::from(STEP);
        if state.now >= state.alarm {
            state.alarm = state.queue.next_expiration(state.now);
        }
    });
}
