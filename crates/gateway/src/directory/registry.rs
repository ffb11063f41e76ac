//! What is registered: a store without clock, files and sockets.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    time::Duration,
};

use millpond_live::quota::{Full, Shares, Usage};

use super::{
    Endpoint, Parameters, Query, Refusal, Registrant,
    lookup::{Kind, LookUp},
    parameters::check_count,
    registration::{Registration, checked, key},
};

/// Seconds for which an endpoint is registered that does not say (RFC 9176 §5).
pub const DEFAULT_LIFETIME: u32 = 90_000;

/// For how long a registration that has expired can still be refreshed (RFC 9176 §5.3), though nobody is told of it: a judgement.
const KEPT_EXPIRED: Duration = Duration::from_secs(600);

/// How long to wait before asking again for room, at least and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

/// Who may have how much of the memory: a network three quarters; those without identity three quarters together, and those of one
/// network half. So who has proved an identity finds room that nobody takes by addresses alone.
const fn shares(all: usize) -> Shares {
    let three_quarters = all.saturating_sub(all >> 2);
    Shares { all, network: three_quarters, unvalidated: three_quarters, unvalidated_of_network: all >> 1 }
}

/// The registrations of a directory.
///
/// Times are given: spans since 1970, which ought not to go back.
#[derive(Debug)]
pub struct Registry {
    registrations: BTreeMap<u64, Registration>,
    names: BTreeMap<String, u64>,
    by_end: BTreeSet<(Duration, u64)>,
    /// All that ends until then is known to have expired.
    swept: Duration,
    /// The number of the next registration. None comes twice.
    next: u64,
    shares: Shares,
    usage: Usage,
    longest_links: usize,
    /// How often what look-ups tell has changed.
    revision: u64,
    /// What has changed since [`take_changed`](Self::take_changed).
    changed: BTreeSet<u64>,
}

impl Registry {
    /// An empty one that holds so many bytes, of which those without identity may have three quarters and those of one network half,
    /// and so many bytes of links of one endpoint.
    #[must_use]
    pub const fn new(memory: usize, longest_links: usize) -> Self {
        Self {
            registrations: BTreeMap::new(),
            names: BTreeMap::new(),
            by_end: BTreeSet::new(),
            swept: Duration::ZERO,
            next: 1,
            shares: shares(memory),
            usage: Usage::new(),
            longest_links,
            revision: 0,
            changed: BTreeSet::new(),
        }
    }

    /// Registers an endpoint, or registers it again, and returns the number of its registration, which stays the same (RFC 9176 §5).
    ///
    /// # Errors
    /// It has no name; its links are wrong or too long; its name is that of another's registration; there is no room.
    pub fn register(
        &mut self,
        now: Duration,
        by: &Registrant,
        parameters: Parameters,
        links: &str,
    ) -> Result<u64, Refusal> {
        self.expire(now);
        let Parameters { name, sector, lifetime, base, attributes } = parameters;
        let Some(name) = name else { return Err(Refusal::malformed("ep is missing, the name of the endpoint")) };
        if links.len() > self.longest_links {
            return Err(Refusal::TooLong { limit: self.longest_links });
        }
        let links = checked(links)?;
        let known = match self.names.get(&key(sector.as_deref(), &name)).copied() {
            Some(id) => self.kept_for(now, id, by)?,
            None => None,
        };
        let lifetime = lifetime.unwrap_or(DEFAULT_LIFETIME);
        let registration = Registration {
            name: name.into(),
            sector: sector.map(Into::into),
            lifetime,
            base: base.map(Into::into),
            attributes: boxed(attributes).collect(),
            links,
            registrant: by.clone(),
            expires: now.saturating_add(Duration::from_secs(lifetime.into())),
            fresh_until: None,
        };
        self.put(now, known, registration)
    }

    /// Refreshes a registration, with what has changed of it (RFC 9176 §5.3.1).
    ///
    /// # Errors
    /// There is none; it is another's; a name is given; there is no room.
    pub fn update(&mut self, now: Duration, id: u64, by: &Registrant, parameters: Parameters) -> Result<(), Refusal> {
        self.expire(now);
        let known = self.registrations.get(&id).ok_or(Refusal::NotFound)?;
        known.check_right(by)?;
        let Parameters { name, sector, lifetime, base, attributes } = parameters;
        if name.is_some_and(|name| *name != *known.name)
            || sector.is_some() && sector.as_deref() != known.sector.as_deref()
        {
            return Err(Refusal::malformed("an update cannot change ep or d; register the other name"));
        }
        let mut registration = Registration { registrant: by.clone(), ..known.clone() };
        registration.lifetime = lifetime.unwrap_or(registration.lifetime);
        registration.expires = now.saturating_add(Duration::from_secs(registration.lifetime.into()));
        registration.base = base.map(Into::into).or(registration.base);
        registration.attributes.retain(|(known, _)| !attributes.iter().any(|(name, _)| **name == **known));
        registration.attributes.extend(boxed(attributes));
        check_count(registration.attributes.len())?;
        self.put(now, Some(id), registration).map(drop)
    }

    /// Removes a registration (RFC 9176 §5.3.2).
    ///
    /// # Errors
    /// There is none; it is another's.
    pub fn remove(&mut self, now: Duration, id: u64, by: &Registrant) -> Result<(), Refusal> {
        self.expire(now);
        self.registrations.get(&id).ok_or(Refusal::NotFound)?.check_right(by)?;
        self.forget(id);
        Ok(())
    }

    /// Looks endpoints up (RFC 9176 §6.4): links to their registrations, as text.
    ///
    /// # Errors
    /// [`Refusal::LongAnswer`].
    pub fn endpoints(&self, now: Duration, query: &Query) -> Result<String, Refusal> {
        self.look_up(now, Kind::Endpoints, query)
    }

    /// Looks resources up (RFC 9176 §6.1): links to them, as text.
    ///
    /// # Errors
    /// [`Refusal::LongAnswer`].
    pub fn resources(&self, now: Duration, query: &Query) -> Result<String, Refusal> {
        self.look_up(now, Kind::Resources, query)
    }

    /// What is known of the endpoint of this name.
    #[must_use]
    pub fn endpoint(&self, now: Duration, sector: Option<&str>, name: &str) -> Option<Endpoint> {
        let registration = self.registrations.get(self.names.get(&key(sector, name))?)?;
        (registration.expires > now).then(|| Endpoint {
            base: registration.base().into_owned(),
            registrant: registration.base.is_none().then(|| registration.registrant.clone()),
            expires_in: registration.expires.saturating_sub(now),
        })
    }

    /// Endpoints that are registered, and those whose registration ended a few minutes ago and can still be refreshed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.registrations.len()
    }

    /// None is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// Bytes held, about.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.usage.all()
    }

    /// How often what look-ups tell has changed.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Counts what has expired meanwhile, and forgets what has for long.
    pub fn expire(&mut self, now: Duration) {
        let now = self.swept.max(now);
        let ended = self.by_end.range((Bound::Excluded((self.swept, u64::MAX)), Bound::Included((now, u64::MAX))));
        for (_, id) in ended {
            self.revision = self.revision.wrapping_add(1);
            self.changed.insert(*id);
        }
        self.swept = now;
        while let Some((end, id)) = self.by_end.first().copied() {
            if end.saturating_add(KEPT_EXPIRED) > now {
                break;
            }
            self.forget(id);
        }
    }

    /// When [`expire`](Self::expire) has something to do next.
    #[must_use]
    pub fn next_end(&self) -> Option<Duration> {
        let next = self.by_end.range((Bound::Excluded((self.swept, u64::MAX)), Bound::Unbounded)).next();
        let forgotten = self.by_end.first().map(|(end, _)| end.saturating_add(KEPT_EXPIRED));
        next.map(|(end, _)| *end).into_iter().chain(forgotten).min()
    }

    /// The links of an endpoint that were fetched from this very peer, if they are still fresh.
    pub(super) fn fresh_links(&self, now: Duration, by: &Registrant, parameters: &Parameters) -> Option<String> {
        let key = key(parameters.sector.as_deref(), parameters.name.as_deref()?);
        let registration = self.registrations.get(self.names.get(&key)?)?;
        let is_fresh = registration.fresh_until.is_some_and(|until| until > now) && registration.registrant == *by;
        is_fresh.then(|| registration.links.to_string())
    }

    /// Registers an endpoint whose links were fetched; they are fresh until then, or as long as those that it has.
    pub(super) fn register_simply(
        &mut self,
        now: Duration,
        by: &Registrant,
        parameters: Parameters,
        links: &str,
        fresh_until: Option<Duration>,
    ) -> Result<(), Refusal> {
        let key = key(parameters.sector.as_deref(), parameters.name.as_deref().unwrap_or_default());
        let known = self.names.get(&key).and_then(|id| self.registrations.get(id)).and_then(|known| known.fresh_until);
        let id = self.register(now, by, parameters, links)?;
        if let Some(registration) = self.registrations.get_mut(&id) {
            registration.fresh_until = fresh_until.or(known);
        }
        Ok(())
    }

    /// Takes up what was registered before this registry was made.
    pub(super) fn restore(&mut self, id: u64, registration: Registration) -> Result<(), Refusal> {
        let full = self.usage.full(&self.shares, registration.registrant.source(), registration.weight());
        if full.all || self.registrations.contains_key(&id) || self.names.contains_key(&registration.key()) {
            return Err(Refusal::Full { retry_after: RETRY.1 });
        }
        self.insert(id, registration);
        Ok(())
    }

    /// Numbers before this one were given already.
    pub(super) fn begin_at(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// The number of the next registration.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// What has changed since this was asked last, about so many bytes of it at most: how each registration is now, none where it
    /// is gone.
    pub(super) fn take_changed(&mut self, bytes: usize) -> Vec<(u64, Option<Registration>)> {
        let (mut taken, mut left) = (Vec::new(), bytes);
        while left > 0
            && let Some(id) = self.changed.pop_first()
        {
            let registration = self.registrations.get(&id).cloned();
            left = left.saturating_sub(registration.as_ref().map_or(size_of::<u64>(), Registration::weight));
            taken.push((id, registration));
        }
        taken
    }

    /// Nobody takes it.
    pub(super) fn forget_changed(&mut self) {
        self.changed.clear();
    }

    /// What was taken is to be taken again.
    pub(super) fn put_back(&mut self, changed: impl Iterator<Item = u64>) {
        self.changed.extend(changed);
    }

    fn look_up(&self, now: Duration, kind: Kind, query: &Query) -> Result<String, Refusal> {
        let mut look_up = LookUp::new(kind, query.clone());
        self.step(now, &mut look_up, usize::MAX)?;
        Ok(look_up.into_text())
    }

    /// Goes on with a look-up; whether it is through.
    pub(super) fn step(&self, now: Duration, look_up: &mut LookUp, bytes: usize) -> Result<bool, Refusal> {
        let rest = self.registrations.range(look_up.next()..).map(|(id, registration)| (*id, registration));
        look_up.step(rest.filter(|(_, registration)| registration.expires > now), bytes)
    }

    /// The registration of a name, if this one may change it. Of another's that has expired the name is free, and its number is not
    /// used again: its owner may still know it.
    fn kept_for(&mut self, now: Duration, id: u64, by: &Registrant) -> Result<Option<u64>, Refusal> {
        let Some(known) = self.registrations.get(&id) else { return Ok(None) };
        match known.check_right(by) {
            Ok(()) => Ok(Some(id)),
            Err(refusal) if known.expires > now => Err(refusal),
            Err(_) => {
                self.forget(id);
                Ok(None)
            }
        }
    }

    /// In place of one that there is, or as a further one.
    fn put(&mut self, now: Duration, id: Option<u64>, registration: Registration) -> Result<u64, Refusal> {
        self.make_room(now, id, &registration)?;
        let replaced = id.and_then(|id| self.take_out(id));
        let was_told = replaced.filter(|replaced| replaced.expires > now);
        if was_told.is_none_or(|replaced| !replaced.looks_like(&registration)) {
            self.revision = self.revision.wrapping_add(1);
        }
        let id = id.unwrap_or(self.next);
        self.insert(id, registration);
        self.changed.insert(id);
        Ok(id)
    }

    /// Sees that there is room for a registration, in place of one that there may be. What has expired gives way.
    fn make_room(&mut self, now: Duration, id: Option<u64>, registration: &Registration) -> Result<(), Refusal> {
        loop {
            let (source, weight) = (registration.registrant.source(), registration.weight());
            let replaced = id.and_then(|id| self.registrations.get(&id));
            if let Some(replaced) = replaced {
                self.usage.remove(replaced.registrant.source(), replaced.weight());
            }
            let full = self.usage.full(&self.shares, source, weight);
            if let Some(replaced) = replaced {
                self.usage.add(replaced.registrant.source(), replaced.weight());
            }
            if full == Full::default() {
                return Ok(());
            }
            let helps = |other: &u64| {
                let held_by = self.registrations.get(other).map(|other| other.registrant.source());
                let is_alike = held_by.is_some_and(|held_by| held_by.is_validated == source.is_validated);
                Some(*other) != id && (full.all || held_by == Some(source) || full.unvalidated && is_alike)
            };
            let expired = self.by_end.range(..=(now, u64::MAX)).find(|(_, other)| helps(other));
            if let Some((_, expired)) = expired.copied() {
                self.forget(expired);
                continue;
            }
            let first = self.by_end.first().map_or(RETRY.1, |(end, _)| end.saturating_sub(now));
            let retry_after = first.clamp(RETRY.0, RETRY.1);
            return Err(match full.network || full.unvalidated_of_network {
                true => Refusal::NetworkFull { retry_after },
                false => Refusal::Full { retry_after },
            });
        }
    }

    fn insert(&mut self, id: u64, registration: Registration) {
        self.next = self.next.max(id.saturating_add(1));
        self.usage.add(registration.registrant.source(), registration.weight());
        self.names.insert(registration.key(), id);
        self.by_end.insert((registration.expires, id));
        self.registrations.insert(id, registration);
    }

    fn take_out(&mut self, id: u64) -> Option<Registration> {
        let registration = self.registrations.remove(&id)?;
        self.usage.remove(registration.registrant.source(), registration.weight());
        self.names.remove(&registration.key());
        self.by_end.remove(&(registration.expires, id));
        Some(registration)
    }

    fn forget(&mut self, id: u64) {
        if let Some(registration) = self.take_out(id) {
            self.changed.insert(id);
            // What had expired was told to nobody.
            if registration.expires > self.swept {
                self.revision = self.revision.wrapping_add(1);
            }
        }
    }
}

fn boxed(attributes: Vec<(String, Option<String>)>) -> impl Iterator<Item = (Box<str>, Option<Box<str>>)> {
    attributes.into_iter().map(|(name, value)| (name.into(), value.map(Into::into)))
}
