//! Sites of a fleet that share links: each a world of its own, run side by side.
//!
//! A packet that comes to a shared link at *t* leaves it at *t* plus its delay at the earliest. So within a window as long as
//! the shortest delay of these links no site can feel what another does in it: all sites go through the window by
//! themselves, on any number of threads, and then the links take what came to them, in the order of time, of sites, and of
//! each site's own doings. Nothing in this depends on who runs what, so neither does a result.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Barrier, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use millpond_control::{ChanceSeed, Instant, Span};
use millpond_link::{Delivered, DropReason, Link, Parcel};

use crate::{
    LinkName, Outcome, RunError, Scenario,
    network::Offer,
    scenario::{BuiltIn, Direction, FlowGroup},
    trace::Options,
    world::World,
};

/// One site: what it is, and its seed.
#[derive(Clone, Copy, Debug)]
pub struct Site<'s> {
    /// Its scenario, which names the links that it shares ([`Network::shared`](crate::scenario::Network::shared)).
    pub scenario: &'s Scenario,
    /// Its seed. Shared links have that of the first site.
    pub seed: u64,
}

/// So few sites of a window are done by one thread: others would not have woken before it is done.
const FEW: usize = 64;

/// Runs sites that share links, on so many threads. `each` is given what came of each, in their order; packets of its row of a shared
/// link are the site's own, its busy time and its queue those of all.
///
/// Packets that a shared link refuses are known to be lost at the end of their window only, no delay of a link later.
///
/// # Errors
/// The number of a site and why there is no result of it, or that it was told to stop.
pub fn run_sites(
    sites: &[Site<'_>],
    threads: usize,
    mut is_cancelled: impl FnMut() -> bool,
    mut each: impl FnMut(usize, Outcome),
) -> Result<(), (usize, RunError)> {
    let groups: Vec<Vec<FlowGroup<'_>>> = sites.iter().map(|site| site.scenario.flow_groups()).collect();
    let mut shared = Shared::of(sites)?;
    let mut worlds = Vec::with_capacity(sites.len());
    let mut wakes = Vec::with_capacity(sites.len());
    for (number, (site, groups)) in sites.iter().zip(&groups).enumerate() {
        let world = World::new(site.scenario, groups, site.seed, &Options::default(), &BuiltIn);
        let mut world = world.map_err(|error| (number, error))?;
        world.network.send_away(&shared.places(number));
        wakes.push(world.wakes());
        worlds.push(Mutex::new(Part { world, offers: Vec::new(), failure: None, panic: None }));
    }
    let crew = Crew::new(&worlds, threads.clamp(1, sites.len().max(1)));
    crew.during(|crew| {
        let (mut active, mut offers) = (Vec::new(), Vec::new());
        let mut over = worlds.iter().filter(|part| lock(part).world.is_over()).count();
        loop {
            let begin = wakes.iter().copied().min().unwrap_or(Instant::NEVER).min(shared.next());
            if begin == Instant::NEVER || over == sites.len() {
                return Ok(());
            }
            if is_cancelled() {
                return Err((0, RunError::Cancelled));
            }
            shared.hand_over(begin, &worlds, &mut wakes);
            let end = begin.after(shared.window);
            active.clear();
            active.extend((0..wakes.len()).filter(|&number| wakes[number] < end));
            crew.run(&active, end);
            offers.clear();
            for &number in &active {
                let mut part = lock(&worlds[number]);
                if let Some(panic) = part.panic.take() {
                    resume_unwind(panic);
                }
                if let Some(error) = part.failure.take() {
                    return Err((number, error));
                }
                offers.extend(part.offers.drain(..).map(|offer| (offer, number)));
                over += usize::from(part.world.is_over());
                wakes[number] = part.world.wakes();
            }
            // Offers of one site stand in their order already, and sites in theirs.
            offers.sort_by_key(|(offer, _)| offer.at);
            while !offers.is_empty() {
                let mut further = Vec::new();
                for (offer, number) in &offers {
                    if let Some(reason) = shared.take(offer, *number) {
                        let mut part = lock(&worlds[*number]);
                        let was_over = part.world.is_over();
                        part.turned_away(offer, reason, end);
                        // A site that hears of it may send something at once.
                        further.extend(part.offers.drain(..).map(|offer| (offer, *number)));
                        over += usize::from(!was_over && part.world.is_over());
                        wakes[*number] = part.world.wakes();
                    }
                }
                offers = further;
            }
        }
    })?;
    let worlds = worlds.into_iter().map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner).world);
    let mut ended = Vec::with_capacity(sites.len());
    for (number, mut world) in worlds.enumerate() {
        // A site that still waited for something has waited until the end.
        let end = world.run(|| false).map_err(|error| (number, error))?;
        ended.push((world, end));
    }
    let end = ended.iter().map(|(_, end)| *end).max().unwrap_or(Instant::ORIGIN);
    for (number, (mut world, last)) in ended.into_iter().enumerate() {
        shared.tell(number, &mut world, end);
        each(number, world.finish(last).map_err(|error| (number, error))?);
    }
    shared.check()
}

/// A site under way.
struct Part<'s> {
    world: World<'s>,
    /// What came to shared links in the window.
    offers: Vec<Offer>,
    failure: Option<RunError>,
    /// It is passed on by the one who waits for all threads.
    panic: Option<Box<dyn Any + Send>>,
}

impl Part<'_> {
    fn run_before(&mut self, end: Instant) {
        let world = &mut self.world;
        match catch_unwind(AssertUnwindSafe(|| world.pass(end))) {
            Ok(ended) => self.failure = ended.err(),
            Err(panic) => self.panic = Some(panic),
        }
        self.world.network.take_offers(&mut self.offers);
    }

    /// A shared link did not take a packet, which is known at `now`.
    #[cold]
    fn turned_away(&mut self, offer: &Offer, reason: DropReason, now: Instant) {
        self.world.network.turned_away(offer, reason, &mut self.world.rec);
        self.world.hear_news(now);
        self.world.network.take_offers(&mut self.offers);
    }
}

/// A packet on a shared link: its site, and its place there.
type Carried = (u32, u32);

/// The links that sites share.
struct Shared {
    links: Vec<(LinkName, Link<Carried>)>,
    /// The place of each of them in the graph of each site.
    places: Vec<Vec<usize>>,
    /// The number of each site's first radio: clients of two sites are two.
    radios: Vec<u32>,
    /// The shortest delay.
    window: Span,
}

impl Shared {
    fn of(sites: &[Site<'_>]) -> Result<Self, (usize, RunError)> {
        let refused = |number: usize, link: &str, why: &str| (number, RunError::Link(link.to_owned(), why.to_owned()));
        let Some(first) = sites.first() else {
            return Ok(Self { links: Vec::new(), places: Vec::new(), radios: Vec::new(), window: Span::ZERO });
        };
        let seed = ChanceSeed::new(first.seed);
        let described: Vec<(&str, &Direction)> =
            first.scenario.links().into_iter().filter(|(name, _)| shares(first.scenario, name)).collect();
        if described.is_empty() {
            return Err(refused(0, "network.shared", "the sites share nothing: name the links that they share"));
        }
        let mut links = Vec::with_capacity(described.len());
        for (name, direction) in &described {
            let name = LinkName::from(*name);
            let link = direction.link(seed, name.number());
            links.push((name.clone(), link.map_err(|error| refused(0, &name, &error.to_string()))?));
        }
        let (mut places, mut radios, mut clients) = (Vec::with_capacity(sites.len()), Vec::new(), 0_u32);
        for (number, site) in sites.iter().enumerate() {
            let known = site.scenario.links();
            let alike = known.iter().filter(|(name, _)| shares(site.scenario, name)).eq(described.iter());
            if site.scenario.run.warm_up.0 > 0 {
                let why = "sites that share links are told of from the start: leave it out";
                return Err(refused(number, "run.warm_up", why));
            }
            if !alike {
                return Err(refused(number, "network.shared", "sites share links that are the same for all of them"));
            }
            let place = |name: &LinkName| known.iter().position(|(known, _)| **known == **name);
            places.push(links.iter().filter_map(|(name, _)| place(name)).collect());
            radios.push(clients);
            // Proxies have numbers behind all flows.
            let flows = || site.scenario.flow_groups().iter().map(|group| group.clients.count).sum::<u32>();
            let proxies = site.scenario.proxies.len() as u32;
            let here: u32 = if proxies == 0 {
                site.scenario.clients.iter().map(|group| group.count).sum()
            } else {
                flows() + proxies
            };
            let others: u32 = site.scenario.cross_traffic.iter().map(|traffic| traffic.count).sum();
            clients = clients.saturating_add(here).saturating_add(others);
        }
        let window = described.iter().map(|(_, direction)| direction.delay.span()).min().unwrap_or(Span::ZERO);
        Ok(Self { links, places, radios, window })
    }

    /// The places of all of them in the graph of a site.
    fn places(&self, site: usize) -> Vec<usize> {
        self.places[site].clone()
    }

    /// When something may come back next.
    fn next(&self) -> Instant {
        self.links.iter().filter_map(|(_, link)| link.next()).min().unwrap_or(Instant::NEVER)
    }

    /// Tells sites what has left a link by `now`: everything that comes back within a window after it.
    fn hand_over(&mut self, now: Instant, worlds: &[Mutex<Part<'_>>], wakes: &mut [Instant]) {
        for (number, (_, link)) in self.links.iter_mut().enumerate() {
            while let Some(packet) = link.deliver_ahead(now) {
                let (Delivered::Arrived(Parcel { payload: (site, _), .. })
                | Delivered::Lost(Parcel { payload: (site, _), .. })
                | Delivered::Dropped(Parcel { payload: (site, _), .. }, _)) = packet;
                let site = site as usize;
                let mut part = lock(&worlds[site]);
                part.world.network.comes_back(self.places[site][number], of_site(packet));
                wakes[site] = part.world.wakes();
            }
        }
    }

    /// A packet comes to its link; gives why the link does not take it, if so.
    fn take(&mut self, offer: &Offer, site: usize) -> Option<DropReason> {
        let number = self.places[site].iter().position(|&place| place == usize::from(offer.place))?;
        let radio = self.radios[site].saturating_add(offer.client);
        let (_, link) = &mut self.links[number];
        link.offer_of(offer.at, radio, offer.length, (site as u32, offer.number)).err().map(|(reason, _)| reason)
    }

    /// Tells a site what the queues were like.
    fn tell(&mut self, site: usize, world: &mut World<'_>, end: Instant) {
        for ((_, link), &place) in self.links.iter_mut().zip(&self.places[site]) {
            world.network.was_like(place, link.statistics(end));
        }
    }

    fn check(&self) -> Result<(), (usize, RunError)> {
        for (name, link) in &self.links {
            link.check_conservation()
                .map_err(|error| (0, RunError::Conservation(name.to_string(), error.to_string())))?;
        }
        Ok(())
    }
}

fn shares(scenario: &Scenario, name: &str) -> bool {
    scenario.shared().iter().any(|shared| shared == name)
}

/// A packet as its site knows it.
fn of_site(packet: Delivered<Carried>) -> Delivered<u32> {
    let plain = |Parcel { payload: (_, place), len, number, left, at, marked }| Parcel {
        payload: place,
        len,
        number,
        left,
        at,
        marked,
    };
    match packet {
        Delivered::Arrived(parcel) => Delivered::Arrived(plain(parcel)),
        Delivered::Lost(parcel) => Delivered::Lost(plain(parcel)),
        Delivered::Dropped(parcel, why) => Delivered::Dropped(plain(parcel), why),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Who held it failed, and said so.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Threads that go through windows together.
struct Crew<'w, 's> {
    worlds: &'w [Mutex<Part<'s>>],
    threads: usize,
    gate: Barrier,
    window: Mutex<(Vec<usize>, Instant)>,
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl<'w, 's> Crew<'w, 's> {
    fn new(worlds: &'w [Mutex<Part<'s>>], threads: usize) -> Self {
        Self {
            worlds,
            threads,
            gate: Barrier::new(threads),
            window: Mutex::default(),
            next: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Does something with all threads at hand.
    fn during<T>(&self, what: impl FnOnce(&Self) -> T) -> T {
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|| self.help());
            }
            let done = catch_unwind(AssertUnwindSafe(|| what(self)));
            if self.threads > 1 {
                self.is_over.store(true, Ordering::Relaxed);
                self.gate.wait();
            }
            done.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn help(&self) {
        loop {
            self.gate.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.work();
            self.gate.wait();
        }
    }

    /// All of these sites go on until `end`.
    fn run(&self, active: &[usize], end: Instant) {
        if self.threads == 1 || active.len() < FEW {
            for &number in active {
                lock(&self.worlds[number]).run_before(end);
            }
            return;
        }
        {
            let mut window = lock(&self.window);
            window.0.clear();
            window.0.extend_from_slice(active);
            window.1 = end;
        }
        self.next.store(0, Ordering::Relaxed);
        self.gate.wait();
        self.work();
        self.gate.wait();
    }

    /// Takes sites of the window until none is left.
    fn work(&self) {
        const AT_ONCE: usize = 8;
        let (active, end) = {
            let window = lock(&self.window);
            (window.0.clone(), window.1)
        };
        loop {
            let from = self.next.fetch_add(AT_ONCE, Ordering::Relaxed);
            let Some(mine) = active.get(from..active.len().min(from + AT_ONCE)).filter(|mine| !mine.is_empty()) else {
                return;
            };
            for &number in mine {
                lock(&self.worlds[number]).run_before(end);
            }
        }
    }
}
