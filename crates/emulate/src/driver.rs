//! What gives links real time: a thread that waits for packets and deadlines, and where real-time priority is granted a second
//! one on another processor, for when the first is kept from its work, by a kernel that does not release the processor or
//! by a host that stops it.

use std::{
    io::{self, ErrorKind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use millpond_control::Instant;
use mio::{Events, Poll, Token};

use crate::{
    Error, Lateness, LatenessBound, Report, Stop,
    clock::{Alarm, Clock},
    priority::{self, Attention, Processors},
};

const STOP: Token = Token(0);
const ALARM: Token = Token(1);
/// Tokens from here on are for the links.
pub(crate) const FIRST: usize = 2;
/// The first thread is left this part of what 99 % of the packets may be late, before the other hands them on.
const GRACE: u32 = 4;
/// But at least so long: about what a thread needs to wake up and do its work.
const LEAST_GRACE: Duration = Duration::from_micros(100);
/// No deadline.
const NEVER: u64 = u64::MAX;

/// What is driven: links between places from which packets come, each with the token behind [`FIRST`] of its number.
pub(crate) trait Links: Send + 'static {
    /// When something is due.
    fn next(&self) -> Option<Instant>;

    /// When it is to have a [turn](Self::turned) although nothing is due.
    fn wakes(&self) -> Option<Instant> {
        None
    }

    /// Forwards what is due.
    fn hand_on(&mut self);

    /// How many places there are.
    fn places(&self) -> usize;

    /// Takes what waits at a place. True if there may be more.
    fn read(&mut self, place: usize) -> bool;

    /// All that was ready has been read.
    fn turned(&mut self);

    fn lateness(&mut self) -> &mut Lateness;

    fn attention(&mut self) -> &mut Attention;

    /// What it came to.
    fn end(&mut self) -> Result<Report, Error>;
}

/// Links and what is known of their places.
struct Driven<L> {
    links: L,
    /// Places where something may wait that no event will report.
    ready: Vec<usize>,
}

impl<L: Links> Driven<L> {
    /// What came before somebody waited for it is read, too.
    fn new(links: L) -> Self {
        Self { ready: (0..links.places()).collect(), links }
    }

    /// Forwards what is due, and takes what events report.
    fn turn(&mut self, events: &Events) {
        for place in events.iter().filter_map(|event| event.token().0.checked_sub(FIRST)) {
            self.is_ready(place);
        }
        let ready = std::mem::take(&mut self.ready);
        self.read(ready);
        self.links.turned();
    }

    /// Forwards what is due, takes what waits anywhere, and forwards what is due then.
    fn stand_in(&mut self) {
        self.read(0..self.links.places());
    }

    fn read(&mut self, places: impl IntoIterator<Item = usize>) {
        self.links.hand_on();
        for place in places {
            if self.links.read(place) {
                self.is_ready(place);
            }
            self.links.hand_on();
        }
    }

    fn is_ready(&mut self, place: usize) {
        if !self.ready.contains(&place) {
            self.ready.push(place);
        }
    }
}

/// What a thread waits with.
pub(crate) struct Driver {
    pub(crate) poll: Poll,
    pub(crate) stop: Stop,
    pub(crate) clock: Clock,
    alarm: Alarm,
}

impl Driver {
    /// Nothing runs yet.
    pub(crate) fn new() -> Result<Self, Error> {
        let failed = Error::system;
        let clock = Clock::start();
        Self::on(clock).map_err(failed("events cannot be waited for"))
    }

    fn on(clock: Clock) -> io::Result<Self> {
        let poll = Poll::new()?;
        let stop = Stop::new(poll.registry(), STOP)?;
        let alarm = Alarm::new(clock, poll.registry(), ALARM)?;
        Ok(Self { poll, stop, clock, alarm })
    }

    /// Drives links in this thread until it is stopped.
    pub(crate) fn run(mut self, mut links: impl Links) -> Result<Report, Error> {
        let (attention, others) = priority::raise();
        *links.attention() = attention;
        let bound = links.lateness().bound();
        let driven = Arc::new(Mutex::new(Driven::new(links)));
        let hindered = |error: io::Error| {
            let told = format!("no thread stands by on another processor: {error}");
            lock(&driven).links.attention().hindrances.push(told);
        };
        let standby = others.map(|on| Standby::begin(&driven, self.clock, bound, on));
        let standby = standby.and_then(|begun| begun.map_err(hindered).ok());
        let mut events = Events::with_capacity(256);
        while !self.stop.is_asked() {
            let wait = {
                let driven = lock(&driven);
                let next = driven.links.next();
                let wakes = next.into_iter().chain(driven.links.wakes()).min();
                let wait = self.alarm.set(wakes).map_err(Error::system("the timer cannot be set"))?;
                standby.iter().for_each(|standby| standby.expect(next));
                if driven.ready.is_empty() { wait } else { Some(Duration::ZERO) }
            };
            self.wait(&mut events, wait).map_err(Error::system("events cannot be waited for"))?;
            lock(&driven).turn(&events);
        }
        if let Some(Err(error)) = standby.map(Standby::end) {
            hindered(error);
        }
        lock(&driven).links.end()
    }

    fn wait(&mut self, events: &mut Events, wait: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(events, wait) {
            Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

/// Links, for one thread at a time.
fn lock<L>(driven: &Mutex<Driven<L>>) -> MutexGuard<'_, Driven<L>> {
    driven.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that wakes when a packet is late, and hands it on if the first thread has not.
struct Standby {
    stop: Stop,
    grace: u64,
    /// When it wakes, µs; set by who holds the links.
    wakes: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

impl Standby {
    fn begin<L: Links>(
        driven: &Arc<Mutex<Driven<L>>>,
        clock: Clock,
        bound: LatenessBound,
        on: Processors,
    ) -> io::Result<Self> {
        let driver = Driver::on(clock)?;
        let stop = driver.stop.clone();
        let grace = u64::try_from((bound.usual / GRACE).max(LEAST_GRACE).as_micros()).unwrap_or(NEVER);
        let (driven, wakes) = (Arc::clone(driven), Arc::new(AtomicU64::new(NEVER)));
        let told = Arc::clone(&wakes);
        let thread = thread::Builder::new().name("standby".to_owned()).spawn(move || {
            priority::stand_by(&on);
            stand_by(driver, &driven, grace, &told)
        })?;
        Ok(Self { stop, grace, wakes, thread })
    }

    /// The next packet is due at `next`. To be called by who holds the links.
    fn expect(&self, next: Option<Instant>) {
        if next.is_some_and(|next| after(next, self.grace) < self.wakes.load(Ordering::Relaxed)) {
            self.stop.wake();
        }
    }

    fn end(self) -> io::Result<()> {
        self.stop.stop();
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("it broke off")))
    }
}

fn stand_by(mut driver: Driver, driven: &Mutex<Driven<impl Links>>, grace: u64, wakes: &AtomicU64) -> io::Result<()> {
    let mut events = Events::with_capacity(4);
    while !driver.stop.is_asked() {
        let wait = {
            let driven = lock(driven);
            let late = driven.links.next().map(|next| after(next, grace));
            wakes.store(late.unwrap_or(NEVER), Ordering::Relaxed);
            driver.alarm.set(late.map(Instant::from_micros))?
        };
        driver.wait(&mut events, wait)?;
        let mut driven = lock(driven);
        if driven.links.next().is_some_and(|next| after(next, grace) <= driver.clock.now().as_micros()) {
            let before = driven.links.lateness().packets();
            driven.stand_in();
            let lateness = driven.links.lateness();
            lateness.stood_in(lateness.packets() - before);
        }
    }
    Ok(())
}

/// So many microseconds later.
fn after(point: Instant, micros: u64) -> u64 {
    point.as_micros().saturating_add(micros)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    /// One packet, which only the thread that stands by forwards.
    struct One {
        due: Option<Instant>,
        told: SyncSender<Option<Instant>>,
        lateness: Lateness,
        attention: Attention,
        clock: Clock,
    }

    impl Links for One {
        fn next(&self) -> Option<Instant> {
            self.due
        }

        fn hand_on(&mut self) {
            let due = self.due.take();
            if let Some(due) = due {
                self.lateness.record(due, self.clock.now());
            }
            self.told.send(due).expect("somebody waits");
        }

        fn places(&self) -> usize {
            0
        }

        fn read(&mut self, _: usize) -> bool {
            false
        }

        fn turned(&mut self) {}

        fn lateness(&mut self) -> &mut Lateness {
            &mut self.lateness
        }

        fn attention(&mut self) -> &mut Attention {
            &mut self.attention
        }

        fn end(&mut self) -> Result<Report, Error> {
            unreachable!("no driver runs it")
        }
    }

    type Shared = Arc<Mutex<Driven<One>>>;

    fn standby(due: Option<Instant>) -> (Shared, Standby, Receiver<Option<Instant>>) {
        let (clock, bound) = (Clock::start(), LatenessBound::from_usual(Duration::from_millis(1)));
        let (told, hears) = sync_channel(8);
        let (lateness, attention) = (Lateness::new(bound), Attention::default());
        let links = Arc::new(Mutex::new(Driven::new(One { due, told, lateness, attention, clock })));
        let on = rustix::thread::sched_getaffinity(None).expect("processors");
        let standby = Standby::begin(&links, clock, bound, on).expect("a thread");
        (links, standby, hears)
    }

    #[test]
    fn what_the_first_thread_leaves_is_handed_on_and_counted() {
        let due = Instant::from_micros(3);
        let (links, standby, hears) = standby(Some(due));
        assert_eq!(hears.recv(), Ok(Some(due)));
        standby.end().expect("it waited");
        let row = lock(&links).links.lateness.row();
        assert_eq!((row.packets, row.standby_packets), (1, 1));
        assert!(row.max_us >= 250, "a quarter of the bound is the first thread's: {row:?}");
        assert!(hears.try_recv().is_err(), "there was one packet");
    }

    #[test]
    fn an_earlier_packet_wakes_it() {
        let far = Instant::from_micros(1_000_000_000_000);
        for waits_for in [None, Some(far)] {
            let (links, standby, hears) = standby(waits_for);
            let due = Some(Instant::from_micros(5));
            {
                let mut driven = lock(&links);
                driven.links.due = due;
                standby.expect(due);
            }
            assert_eq!(hears.recv(), Ok(due));
            standby.end().expect("it waited");
        }
    }

    #[test]
    fn what_is_not_due_is_left_to_the_first_thread() {
        let far = Instant::from_micros(1_000_000_000_000);
        let (links, standby, hears) = standby(Some(far));
        standby.stop.wake();
        standby.end().expect("it waited");
        assert!(hears.try_recv().is_err());
        assert_eq!(lock(&links).links.lateness.row().standby_packets, 0);
    }
}
