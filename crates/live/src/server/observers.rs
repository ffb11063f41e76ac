//! Who observes what.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
    net::SocketAddr,
    sync::Arc,
};

use millpond_coap::{
    message::number,
    quota::{Shares, Source, Usage},
};
use rustc_hash::FxHasher;

use super::{
    Observable, Request,
    admission::Busy,
    observable::{Changed, Interested, Listener},
    router::Router,
};
use crate::{invariant::Sure, transfer::Limits, udp::network_of};

/// Observers in groups: those of a group asked the same, so that their handler is asked once for all of them.
pub(crate) struct Observers<O> {
    /// Those that can be observed.
    resources: BTreeMap<usize, Watched>,
    wake: Wake,
    groups: BTreeMap<u64, Group<O>>,
    /// Groups by what they asked.
    alike: HashMap<(usize, u64), u64>,
    of: HashMap<O, Member, BuildHasherDefault<FxHasher>>,
    made: u64,
    /// How many there may be, and are.
    shares: Shares,
    usage: Usage,
    /// Bytes of what the groups asked.
    bytes: usize,
    /// Others observe than before, or were told something.
    pub(crate) have_changed: bool,
}

/// One observer.
#[derive(Clone, Copy, Debug)]
struct Member {
    group: u64,
    peer: SocketAddr,
    source: Source,
}

fn source(request: &Request) -> Source {
    Source { is_validated: request.is_address_proved(), network: network_of(request.peer()) }
}

/// Makes for a resource what is called when its state changes.
type Wake = Box<dyn Fn(usize) -> Box<dyn Fn() + Send + Sync> + Send>;

/// A resource that can be observed.
#[derive(Debug)]
struct Watched {
    /// By whom changes are told.
    observable: Observable,
    /// Who listens to them, while anybody observes.
    listener: Option<Arc<Listener>>,
    observers: usize,
}

impl Watched {
    /// Who listens to its changes, from now on at the latest.
    fn listens(&mut self, wake: impl FnOnce() -> Box<dyn Fn() + Send + Sync>) -> &Arc<Listener> {
        self.listener.get_or_insert_with(|| self.observable.listen(wake()))
    }
}

struct Group<O> {
    resource: usize,
    key: (usize, u64),
    request: Request,
    /// Kept as long as it is there, for [`Observable::on_interest`].
    _interested: Option<Interested>,
    /// Those of a peer beside one another, in the order of addresses.
    members: Vec<O>,
    /// Its handler is to be asked.
    is_queued: bool,
    /// Its handler is being asked.
    is_running: bool,
    /// The state changed since.
    is_stale: bool,
}

impl<O> std::fmt::Debug for Observers<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observers").field("observers", &self.of.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl<O: Copy + Eq + Hash> Observers<O> {
    /// None yet. `wake` makes for each resource what is called when its state changes.
    pub(crate) fn new(router: &Router, wake: Wake) -> Self {
        let mut resources = BTreeMap::new();
        for (number, (_, resource)) in router.resources.iter().enumerate() {
            if let Some(observable) = &resource.observable {
                let observable = observable.clone();
                resources.insert(number, Watched { observable, listener: None, observers: 0 });
            }
        }
        Self {
            resources,
            wake,
            groups: BTreeMap::new(),
            alike: HashMap::new(),
            of: HashMap::default(),
            made: 0,
            shares: Shares::of_places(Limits::DEFAULT.observers as usize),
            usage: Usage::new(),
            bytes: 0,
            have_changed: false,
        }
    }

    /// Whether who asks this may observe. Who observes this already may go on.
    pub(crate) fn room_for(&self, resource: usize, request: &Request) -> Result<(), Busy> {
        let peer = request.peer();
        let full = self.usage.full(&self.shares, source(request), 1);
        if !full.is_unvalidated() && !full.network {
            return Ok(());
        }
        let group = self.alike.get(&(resource, self.fingerprint(request))).and_then(|group| self.groups.get(group));
        let is_his = |observer: &O| self.of.get(observer).is_some_and(|member| member.peer == peer);
        let first = |group: &'_ Group<O>| group.members.get(self.place_of(&group.members, peer)).copied();
        match group.and_then(first).is_some_and(|first| is_his(&first)) {
            true => Ok(()),
            false => Err(if full.is_unvalidated() { Busy::Unvalidated } else { Busy::Peer }),
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let each = size_of::<O>() * 2 + size_of::<Member>() + 1;
        self.bytes + self.groups.len() * (size_of::<Group<O>>() + 64) + self.of.len() * each
    }

    /// Equal for requests that ask for the same.
    fn fingerprint(&self, request: &Request) -> u64 {
        let mut hasher = self.alike.hasher().build_hasher();
        hasher.write_u8(request.method().to_byte());
        for number in [number::URI_PATH, number::URI_QUERY] {
            for value in request.values(number) {
                hasher.write(value);
            }
        }
        hasher.finish()
    }

    /// Where in a group the observers of this peer begin, or would.
    fn place_of(&self, members: &[O], peer: SocketAddr) -> usize {
        members.partition_point(|member| self.of.get(member).is_some_and(|member| member.peer < peer))
    }

    /// How often the state of a resource has changed.
    pub(crate) fn version(&self, resource: usize) -> u64 {
        self.resources.get(&resource).map_or(0, |watched| watched.observable.version())
    }

    /// Each of them, and what was asked.
    #[cfg(feature = "state")]
    pub(crate) fn all(&self) -> impl Iterator<Item = (O, &Request)> {
        self.groups.values().flat_map(|group| group.members.iter().map(|member| (*member, &group.request)))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    /// A resource can be observed.
    pub(crate) fn has(&self, resource: usize) -> bool {
        self.resources.contains_key(&resource)
    }

    /// One more, whose handler was asked when the state had this version. Returns its group if that has changed since.
    pub(crate) fn add(&mut self, observer: O, resource: usize, request: Request, version: u64) -> Option<u64> {
        let key = (resource, self.fingerprint(&request));
        let (peer, source) = (request.peer(), source(&request));
        let known = self.alike.get(&key).copied();
        let alike = known.filter(|group| self.groups.get(group).is_some_and(|group| group.request.asks_like(&request)));
        let number = alike.unwrap_or_else(|| {
            self.made += 1;
            self.bytes += request.weight();
            self.alike.insert(key, self.made);
            let watched = self.resources.get_mut(&resource);
            let interested = watched.and_then(|watched| {
                let listener = Arc::clone(watched.listens(|| (self.wake)(resource)));
                watched.observable.begin(&request, &listener, self.made)
            });
            let group = Group {
                resource,
                key,
                request,
                _interested: interested,
                members: Vec::new(),
                is_queued: false,
                is_running: false,
                is_stale: false,
            };
            self.groups.insert(self.made, group);
            self.made
        });
        self.have_changed = true;
        let place = self.groups.get(&number).map_or(0, |group| self.place_of(&group.members, peer));
        if let Some(group) = self.groups.get_mut(&number) {
            group.members.insert(place, observer);
            self.of.insert(observer, Member { group: number, peer, source });
            self.usage.add(source, 1);
            self.count(resource, true);
        }
        // Changes are heard from now on.
        (self.version(resource) != version).then_some(number)
    }

    /// One less. False if it was none.
    pub(crate) fn remove(&mut self, observer: O) -> bool {
        let Some(number) = self.take(observer) else { return false };
        let Some(group) = self.groups.get_mut(&number).sure("group of an observer") else { return false };
        group.members.retain(|member| *member != observer);
        let (resource, is_empty) = (group.resource, group.members.is_empty());
        self.count(resource, false);
        if is_empty {
            self.remove_group(number);
        }
        true
    }

    /// Takes an observer off the books, and says of which group it was.
    fn take(&mut self, observer: O) -> Option<u64> {
        let Member { group, source, .. } = self.of.remove(&observer)?;
        self.have_changed = true;
        self.usage.remove(source, 1);
        Some(group)
    }

    /// A whole group less.
    pub(crate) fn remove_group(&mut self, number: u64) {
        let Some(group) = self.groups.remove(&number) else { return };
        if self.alike.get(&group.key) == Some(&number) {
            self.alike.remove(&group.key);
        }
        self.bytes = self.bytes.saturating_sub(group.request.weight());
        for member in group.members {
            self.take(member);
            self.count(group.resource, false);
        }
    }

    /// Takes out those that may not observe any more: for each group of which there are such its request, whether its
    /// notifications are confirmable, and these observers.
    pub(crate) fn remove_forbidden(
        &mut self,
        may: impl Fn(&Request, SocketAddr) -> bool,
    ) -> Vec<(Request, bool, Vec<O>)> {
        let mut removed = Vec::new();
        for number in self.groups(None) {
            let is_confirmable = self.is_confirmable(number);
            let Some(group) = self.groups.get_mut(&number) else { continue };
            let (request, resource) = (group.request.clone(), group.resource);
            let peer = |observer: &O| self.of.get(observer).map(|member| member.peer);
            let gone: Vec<O> =
                group.members.extract_if(.., |member| peer(member).is_some_and(|peer| !may(&request, peer))).collect();
            let is_empty = group.members.is_empty();
            for observer in &gone {
                self.take(*observer);
                self.count(resource, false);
            }
            if is_empty {
                self.remove_group(number);
            }
            if !gone.is_empty() {
                removed.push((request, is_confirmable, gone));
            }
        }
        removed
    }

    fn count(&mut self, resource: usize, more: bool) {
        let Some(watched) = self.resources.get_mut(&resource).sure("resource that is observed") else { return };
        watched.observable.count(more);
        if more {
            watched.observers += 1;
            watched.listens(|| (self.wake)(resource));
        } else {
            watched.observers = watched.observers.saturating_sub(1);
            if watched.observers == 0
                && let Some(listener) = watched.listener.take()
            {
                watched.observable.unlisten(&listener);
            }
        }
    }

    /// What has changed at a resource.
    pub(crate) fn changed(&self, resource: usize) -> Option<Changed> {
        Some(self.resources.get(&resource)?.listener.as_ref()?.take())
    }

    /// The groups whose state has changed.
    pub(crate) fn concerned(&self, resource: usize, changed: &Changed) -> Vec<u64> {
        let is_there = |number: &u64| self.groups.get(number).is_some_and(|group| group.resource == resource);
        if changed.is_of_groups() {
            return changed.groups.iter().copied().filter(is_there).collect();
        }
        let is_meant = |(number, group): &(&u64, &Group<O>)| {
            group.resource == resource && changed.concerns(**number, &group.request.path_text())
        };
        self.groups.iter().filter(is_meant).map(|(number, _)| *number).collect()
    }

    /// The groups of a resource, or all.
    pub(crate) fn groups(&self, resource: Option<usize>) -> Vec<u64> {
        let is_meant = |group: &Group<O>| resource.is_none_or(|resource| resource == group.resource);
        self.groups.iter().filter(|(_, group)| is_meant(group)).map(|(number, _)| *number).collect()
    }

    /// The handler of a group is to be asked. False if that was known.
    pub(crate) fn queue(&mut self, number: u64) -> bool {
        self.groups.get_mut(&number).is_some_and(|group| !std::mem::replace(&mut group.is_queued, true))
    }

    /// The handler of a group is to be asked now, unless it is being asked: then it will be once more.
    pub(crate) fn begin(&mut self, number: u64) -> Option<(usize, Request)> {
        let group = self.groups.get_mut(&number)?;
        group.is_queued = false;
        if std::mem::replace(&mut group.is_running, true) {
            group.is_stale = true;
            return None;
        }
        Some((group.resource, group.request.clone()))
    }

    /// The handler of a group has answered. True if it is to be asked again.
    pub(crate) fn finish(&mut self, number: u64) -> bool {
        let Some(group) = self.groups.get_mut(&number) else { return false };
        group.is_running = false;
        std::mem::take(&mut group.is_stale)
    }

    /// Who is in a group.
    pub(crate) fn members(&self, number: u64) -> Vec<O> {
        self.groups.get(&number).map(|group| group.members.clone()).unwrap_or_default()
    }

    /// A group's notifications are all confirmable.
    pub(crate) fn is_confirmable(&self, number: u64) -> bool {
        let resource = self.groups.get(&number).map(|group| group.resource);
        resource
            .and_then(|resource| self.resources.get(&resource))
            .is_some_and(|watched| watched.observable.is_confirmable())
    }
}

impl<O> Drop for Observers<O> {
    fn drop(&mut self) {
        for watched in self.resources.values() {
            (0..watched.observers).for_each(|_| watched.observable.count(false));
            if let Some(listener) = &watched.listener {
                watched.observable.unlisten(listener);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Resource, Response, server::request::of_options};

    /// One resource that is observed.
    fn router_of(changed: &Observable) -> Router {
        let mut router = Router::default();
        router.add("/", Resource::new().observable(changed).get(|| async { Response::content("") })).unwrap();
        router
    }

    #[test]
    fn who_observes_nothing_is_not_woken_by_changes() {
        let (changed, woken) = (Observable::new(), Arc::new(AtomicUsize::new(0)));
        let counting = Arc::clone(&woken);
        let mut observers = Observers::new(
            &router_of(&changed),
            Box::new(move |_| {
                let woken = Arc::clone(&counting);
                Box::new(move || {
                    woken.fetch_add(1, Ordering::Relaxed);
                })
            }),
        );
        let request = || {
            let peer = "192.0.2.1:5683".parse().unwrap();
            of_options(&[], &[], peer)
        };
        changed.notify();
        assert_eq!(woken.load(Ordering::Relaxed), 0);
        let version = observers.version(0);
        assert_eq!(observers.add(1, 0, request(), version), None);
        changed.notify();
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        // One whose handler was asked before that change is to be notified of it.
        assert_eq!(observers.add(2, 0, request(), version), Some(1));
        assert!(observers.remove(1) && observers.remove(2));
        assert!(observers.changed(0).is_none());
        changed.notify();
        assert_eq!((woken.load(Ordering::Relaxed), changed.observers()), (1, 0));
    }

    std::thread_local! {
        static LOOKED_UP: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    /// Counts how often one is looked up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Counted(u32);

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, hasher: &mut H) {
            LOOKED_UP.set(LOOKED_UP.get() + 1);
            hasher.write_u32(self.0);
        }
    }

    /// A registration that is refused costs no more with many observers.
    #[test]
    fn whether_somebody_observes_already_is_known_without_looking_at_all_who_do() {
        let changed = Observable::new();
        let mut observers = Observers::new(&router_of(&changed), Box::new(|_| Box::new(|| {})));
        let from = |host: u32| of_options(&[], &[], SocketAddr::new(std::net::Ipv4Addr::from(host << 8).into(), 5_683));
        for host in 0..4_096 {
            observers.add(Counted(host), 0, from(host ^ 0x555), 0);
        }
        LOOKED_UP.set(0);
        assert_eq!(observers.room_for(0, &from(4_096)), Err(Busy::Unvalidated));
        assert_eq!(observers.room_for(0, &from(77)), Ok(()), "it observes this already");
        assert!(LOOKED_UP.get() < 50, "{} look-ups", LOOKED_UP.get());
    }

    /// Registrations in the name of addresses that somebody forged leave room for who is there.
    #[test]
    fn unvalidated_peers_share_a_quarter_of_the_observers_and_no_network_has_all() {
        let changed = Observable::new();
        let mut observers = Observers::new(&router_of(&changed), Box::new(|_| Box::new(|| {})));
        observers.shares = Shares::of_places(64);
        let request = |from: &str, is_proved: bool| {
            let peer = format!("{from}:5683").parse().unwrap();
            let mut request = of_options(&[], &[7; 100], peer);
            if is_proved {
                request.prove();
            }
            request
        };
        let mut made = 0;
        let mut register = |observers: &mut Observers<u32>, from: &str, is_proved: bool| {
            observers.room_for(0, &request(from, is_proved))?;
            made += 1;
            observers.add(made, 0, request(from, is_proved), 0);
            Ok(made)
        };
        let of_one = (0..99).filter(|host| register(&mut observers, &format!("192.0.2.{host}"), false).is_ok()).count();
        assert_eq!(of_one, 4);
        let of_all = (0..99).filter(|net| register(&mut observers, &format!("198.51.{net}.1"), false).is_ok()).count();
        assert_eq!(of_all, 12);
        assert_eq!(register(&mut observers, "203.0.113.1", false), Err(Busy::Unvalidated));
        assert!(register(&mut observers, "192.0.2.1", false).is_ok(), "it observes this already");
        let proved =
            (0..99).filter(|host| register(&mut observers, &format!("203.0.113.{host}"), true).is_ok()).count();
        assert_eq!(proved, 48, "three quarters");
        assert_eq!(register(&mut observers, "203.0.113.99", true), Err(Busy::Peer));
        assert!(observers.memory() > 100);
        for observer in 1..=made {
            observers.remove(observer);
        }
        assert_eq!((observers.usage.all(), observers.usage.memory(), observers.memory()), (0, 0, 0));
    }
}
