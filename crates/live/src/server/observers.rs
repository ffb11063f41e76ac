//! Who observes what.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasherDefault, Hash, Hasher},
    sync::Arc,
};

use rustc_hash::FxHasher;

use super::{
    Observable, Request,
    observable::{Changed, Listener},
    router::Router,
};

/// Observers in groups: those of a group asked the same, so that their handler is asked once for all of them.
#[derive(Debug)]
pub(crate) struct Observers<O> {
    /// For each resource that can be observed: by whom changes are told, and the listener to them.
    resources: BTreeMap<usize, (Observable, Arc<Listener>)>,
    groups: BTreeMap<u64, Group<O>>,
    /// Groups by what they asked.
    alike: HashMap<(usize, u64), u64>,
    of: HashMap<O, u64, BuildHasherDefault<FxHasher>>,
    made: u64,
}

#[derive(Debug)]
struct Group<O> {
    resource: usize,
    key: (usize, u64),
    request: Request,
    members: Vec<O>,
    /// Its handler is to be asked.
    is_queued: bool,
    /// Its handler is being asked.
    is_running: bool,
    /// The state changed since.
    is_stale: bool,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

impl<O: Copy + Eq + Hash> Observers<O> {
    /// None yet. `wake` makes for each resource what is called when its state changes.
    pub(crate) fn new<W: Fn() + Send + Sync + 'static>(router: &Router, wake: impl Fn(usize) -> W) -> Self {
        let mut resources = BTreeMap::new();
        for (number, (_, resource)) in router.resources.iter().enumerate() {
            if let Some(observable) = &resource.observable {
                resources.insert(number, (observable.clone(), observable.listen(wake(number))));
            }
        }
        Self { resources, groups: BTreeMap::new(), alike: HashMap::new(), of: HashMap::default(), made: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    /// A resource can be observed.
    pub(crate) fn has(&self, resource: usize) -> bool {
        self.resources.contains_key(&resource)
    }

    /// One more.
    pub(crate) fn add(&mut self, observer: O, resource: usize, request: Request) {
        let key = (resource, fingerprint(&request));
        let known = self.alike.get(&key).copied();
        let alike = known.filter(|group| self.groups.get(group).is_some_and(|group| group.request.asks_like(&request)));
        let number = alike.unwrap_or_else(|| {
            self.made += 1;
            self.alike.insert(key, self.made);
            let group = Group {
                resource,
                key,
                request,
                members: Vec::new(),
                is_queued: false,
                is_running: false,
                is_stale: false,
            };
            self.groups.insert(self.made, group);
            self.made
        });
        if let Some(group) = self.groups.get_mut(&number) {
            group.members.push(observer);
            self.of.insert(observer, number);
            self.count(resource, true);
        }
    }

    /// One less. False if it was none.
    pub(crate) fn remove(&mut self, observer: O) -> bool {
        let Some(number) = self.of.remove(&observer) else { return false };
        let Some(group) = self.groups.get_mut(&number) else { return false };
        group.members.retain(|member| *member != observer);
        let (resource, is_empty) = (group.resource, group.members.is_empty());
        self.count(resource, false);
        if is_empty {
            self.remove_group(number);
        }
        true
    }

    /// A whole group less.
    pub(crate) fn remove_group(&mut self, number: u64) {
        let Some(group) = self.groups.remove(&number) else { return };
        if self.alike.get(&group.key) == Some(&number) {
            self.alike.remove(&group.key);
        }
        for member in group.members {
            self.of.remove(&member);
            self.count(group.resource, false);
        }
    }

    fn count(&self, resource: usize, more: bool) {
        if let Some((observable, _)) = self.resources.get(&resource) {
            observable.count(more);
        }
    }

    /// What has changed at a resource.
    pub(crate) fn changed(&self, resource: usize) -> Option<Changed> {
        self.resources.get(&resource).map(|(_, listener)| listener.take())
    }

    /// The groups whose state has changed.
    pub(crate) fn concerned(&self, resource: usize, changed: &Changed) -> Vec<u64> {
        let is_meant = |group: &Group<O>| group.resource == resource && changed.concerns(&group.request.path_text());
        self.groups.iter().filter(|(_, group)| is_meant(group)).map(|(number, _)| *number).collect()
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
            .is_some_and(|(observable, _)| observable.is_confirmable())
    }
}

impl<O> Drop for Observers<O> {
    fn drop(&mut self) {
        for group in self.groups.values() {
            if let Some((observable, _)) = self.resources.get(&group.resource) {
                group.members.iter().for_each(|_| observable.count(false));
            }
        }
        for (observable, listener) in self.resources.values() {
            observable.unlisten(listener);
        }
    }
}

/// Equal for requests that ask for the same.
fn fingerprint(request: &Request) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u8(request.method().to_byte());
    for number in [millpond_coap::message::number::URI_PATH, millpond_coap::message::number::URI_QUERY] {
        for value in request.options().all(number) {
            hasher.write(value);
        }
    }
    hasher.finish()
}
