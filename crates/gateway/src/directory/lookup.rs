//! Look-ups: what they ask for, and what fits (RFC 9176 §6).

use std::{borrow::Cow, cell::OnceCell};

use millpond_live::{Link, LinkWriter, Request, attribute_fits, links, number};

use super::{
    Refusal,
    parameters::origin_of,
    registration::{Registration, link_of, resolved},
};

/// Bytes of one answer. Those in blocks are kept by the server, which has 16 MiB for that.
pub(super) const LONGEST_ANSWER: usize = 4 << 20;

/// Search criteria of one look-up: each is held against all that is registered.
const MOST_CRITERIA: usize = 16;

/// The relation type of registrations in look-ups (RFC 9176 §6.4).
const ENDPOINT: &str = "core.rd-ep";

/// What a look-up asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Names and values, all of which have to fit; an asterisk at the end of a value stands for whatever follows.
    criteria: Vec<(String, String)>,
    page: usize,
    /// Links of a page; all of them without it.
    count: Option<usize>,
    /// The link that who asks is on.
    link: Option<u32>,
}

impl Query {
    /// Reads the parts of a query, as Uri-Query holds them.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] with what is wrong.
    pub fn read<'q>(query: impl Iterator<Item = &'q str>) -> Result<Self, Refusal> {
        let (mut read, mut page) = (Self::default(), None);
        for part in query.filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(Refusal::malformed("a search criterion is name=value"));
            };
            let number = || {
                let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let wrong = || Refusal::malformed(format!("{name} is a number, 0 or more"));
                // More than can be counted is behind the end of whatever there is.
                is_number.then(|| value.parse().unwrap_or(usize::MAX)).ok_or_else(wrong)
            };
            match name {
                "page" => page = Some(number()?),
                "count" => read.count = Some(number()?),
                _ if read.criteria.len() == MOST_CRITERIA => {
                    return Err(Refusal::malformed(format!("a look-up may have {MOST_CRITERIA} search criteria")));
                }
                _ => read.criteria.push((name.to_owned(), value.to_owned())),
            }
        }
        if page.is_some() && read.count.is_none() {
            return Err(Refusal::malformed("page wants count, the links of a page"));
        }
        read.page = page.unwrap_or(0);
        Ok(read)
    }

    /// That of a request. What is on a link is told to who asks from there, and not to observers: one answer is made for all that
    /// ask the same.
    pub(super) fn of(request: &Request) -> Result<Self, Refusal> {
        let is_observed = request.options().get(number::OBSERVE).is_some();
        Ok(Self { link: link_of(request.peer()).filter(|_| !is_observed), ..Self::read(request.query())? })
    }
}

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Registrations whose links, or that themselves, fit every criterion.
    Endpoints,
    /// Links that fit every criterion, or whose registration does.
    Resources,
}

/// A look-up that goes through what is registered step by step.
#[derive(Debug)]
pub(super) struct LookUp {
    kind: Kind,
    query: Query,
    page: Page,
    /// The first registration that was not looked at.
    next: u64,
}

impl LookUp {
    pub(super) fn new(kind: Kind, query: Query) -> Self {
        let left = query.count.unwrap_or(usize::MAX);
        let skip = if query.page == 0 { 0 } else { query.page.saturating_mul(left) };
        Self { kind, query, page: Page { skip, left, written: LinkWriter::default() }, next: 0 }
    }

    /// The number of the first registration of the next step.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Goes on through these, in the order of their numbers, until it has looked at about so many bytes of links. Whether it is
    /// through.
    pub(super) fn step<'r>(
        &mut self,
        all: impl Iterator<Item = (u64, &'r Registration)>,
        bytes: usize,
    ) -> Result<bool, Refusal> {
        let mut left = bytes;
        for (id, registration) in all {
            if self.page.left == 0 {
                break;
            }
            if left == 0 {
                return Ok(false);
            }
            left = left.saturating_sub(registration.weight());
            self.next = id.saturating_add(1);
            if !registration.is_told_on(self.query.link) {
                continue;
            }
            let seen = Seen::new(id, registration);
            match self.kind {
                Kind::Endpoints => self.endpoint(&seen)?,
                Kind::Resources => self.resources(&seen)?,
            }
        }
        Ok(true)
    }

    /// The text, once it is through.
    pub(super) fn into_text(self) -> String {
        self.page.written.into_text()
    }

    fn endpoint(&mut self, seen: &Seen<'_>) -> Result<(), Refusal> {
        let fits = |(name, wanted): &(String, String)| {
            let any_link = || seen.links().any(|link| seen.link_fits(link, name, wanted));
            seen.endpoint_fits(name, wanted) || seen.may_have(name, wanted) && any_link()
        };
        let page = &mut self.page;
        if !self.query.criteria.iter().all(fits) || !page.takes() {
            return Ok(());
        }
        let Seen { registration, .. } = seen;
        let links = page.written.link(seen.location()).attribute("ep", &registration.name);
        if let Some(sector) = &registration.sector {
            links.attribute("d", sector);
        }
        links.attribute("base", seen.base()).attribute("rt", ENDPOINT);
        for (name, value) in &registration.attributes {
            match value {
                Some(value) => links.attribute(name, value),
                None => links.flag(name),
            };
        }
        page.check()
    }

    fn resources(&mut self, seen: &Seen<'_>) -> Result<(), Refusal> {
        let open = self.query.criteria.iter().filter(|(name, wanted)| !seen.endpoint_fits(name, wanted));
        let open: Vec<_> = open.collect();
        if !open.iter().all(|(name, wanted)| seen.may_have(name, wanted)) {
            return Ok(());
        }
        let page = &mut self.page;
        for link in seen.links() {
            if !open.iter().all(|(name, wanted)| seen.link_fits(link, name, wanted)) || !page.takes() {
                continue;
            }
            let links = page.written.link(&seen.resolved(link.target()));
            for attribute in link.attributes() {
                match (attribute.name, &attribute.value) {
                    ("anchor", Some(anchor)) => links.attribute("anchor", &seen.resolved(anchor)),
                    _ => links.copy(&attribute),
                };
            }
            page.check()?;
        }
        Ok(())
    }
}

/// What is written of the links that fit.
#[derive(Debug)]
struct Page {
    /// Links on the pages before.
    skip: usize,
    /// Links that it has room for.
    left: usize,
    written: LinkWriter,
}

impl Page {
    /// One more fits; whether it is on the page.
    const fn takes(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        let has_room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_room
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.written.len() > LONGEST_ANSWER {
            return Err(Refusal::LongAnswer { limit: LONGEST_ANSWER });
        }
        Ok(())
    }
}

/// A registration as criteria are held against it. Its texts are made once they are needed.
struct Seen<'r> {
    id: u64,
    registration: &'r Registration,
    location: OnceCell<String>,
    base: OnceCell<Cow<'r, str>>,
}

impl<'r> Seen<'r> {
    const fn new(id: u64, registration: &'r Registration) -> Self {
        Self { id, registration, location: OnceCell::new(), base: OnceCell::new() }
    }

    fn location(&self) -> &str {
        self.location.get_or_init(|| super::location(self.id))
    }

    fn base(&self) -> &str {
        self.base.get_or_init(|| self.registration.base())
    }

    fn resolved<'t>(&self, reference: &'t str) -> Cow<'t, str> {
        resolved(reference, self.base())
    }

    fn links(&self) -> impl Iterator<Item = Link<'r>> + use<'r> {
        // All were seen to be links when they were registered.
        links(&self.registration.links).filter_map(|piece| Link::parse(piece).ok())
    }

    fn endpoint_fits(&self, name: &str, wanted: &str) -> bool {
        match name {
            "ep" => attribute_fits(name, &self.registration.name, wanted),
            "d" => self.registration.sector.as_ref().is_some_and(|sector| attribute_fits(name, sector, wanted)),
            "base" => attribute_fits(name, self.base(), wanted),
            "href" => attribute_fits(name, self.location(), wanted),
            "rt" => attribute_fits(name, ENDPOINT, wanted),
            _ => {
                let mut named = self.registration.attributes.iter().filter(|(known, _)| **known == *name);
                named.any(|(_, value)| attribute_fits(name, value.as_deref().unwrap_or_default(), wanted))
            }
        }
    }

    /// Whether any link can fit: without reading them, which takes longer.
    fn may_have(&self, name: &str, wanted: &str) -> bool {
        let (links, start) = (&self.registration.links, wanted.strip_suffix('*').unwrap_or(wanted));
        // What is escaped stands there in other words.
        if links.contains(start) || links.contains('\\') {
            return true;
        }
        if !matches!(name, "href" | "anchor") {
            return false;
        }
        let origin = origin_of(self.base()).unwrap_or_default();
        origin.starts_with(start) || start.strip_prefix(origin).is_some_and(|path| links.contains(path))
    }

    fn link_fits(&self, link: Link<'_>, name: &str, wanted: &str) -> bool {
        if name == "href" {
            return attribute_fits(name, &self.resolved(link.target()), wanted);
        }
        link.attributes().filter(|attribute| attribute.name == name).any(|attribute| {
            let value = attribute.value.unwrap_or_default();
            match name {
                "anchor" => attribute_fits(name, &self.resolved(&value), wanted),
                _ => attribute_fits(name, &value, wanted),
            }
        })
    }
}
