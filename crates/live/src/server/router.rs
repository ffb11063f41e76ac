//! From a path to its resource.

use std::{collections::HashMap, hash::BuildHasherDefault, sync::Arc};

use millpond_coap::message::number;
use rustc_hash::FxHasher;

use super::{handler::Handling, links, request::States, resource::Resource};
use crate::{Error, transfer::TakesPieces};

/// All resources of a server.
#[derive(Default)]
pub(crate) struct Router {
    /// Paths without parameters, as their segments with a slash before each.
    literal: HashMap<Vec<u8>, usize, BuildHasherDefault<FxHasher>>,
    /// Paths with parameters, those with more literal segments first.
    patterns: Vec<(Vec<Piece>, usize)>,
    pub(crate) resources: Vec<(String, Resource)>,
    /// Which of them asks others in the place of clients.
    pub(crate) proxy: Option<usize>,
    pub(crate) fallback: Option<Handling>,
    pub(crate) is_fallback_conditional: bool,
    pub(crate) state: States,
}

impl std::fmt::Debug for Router {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.resources.iter().map(|(path, resource)| (path, resource))).finish()
    }
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    One(Arc<str>),
    Rest(Arc<str>),
}

impl Piece {
    /// The name of what stands here in paths.
    const fn parameter(&self) -> Option<&Arc<str>> {
        match self {
            Self::Literal(_) => None,
            Self::One(name) | Self::Rest(name) => Some(name),
        }
    }
}

/// What a path led to.
pub(crate) struct Found {
    pub(crate) resource: usize,
    pub(crate) parameters: Vec<(Arc<str>, String)>,
}

impl Router {
    /// Adds a resource.
    ///
    /// # Errors
    /// A path that makes no route, one that is taken, or handlers that want what this server and this path do not have.
    pub(crate) fn add(&mut self, path: &str, resource: Resource) -> Result<(), Error> {
        let wrong = |reason: &str| Err(Error::Setting { name: "route", reason: format!("{path:?} {reason}") });
        let Some(rest) = path.strip_prefix('/') else { return wrong("does not begin with a slash") };
        let texts: Vec<&str> = if rest.is_empty() { Vec::new() } else { rest.split('/').collect() };
        let mut pieces = Vec::with_capacity(texts.len());
        for (place, text) in texts.iter().enumerate() {
            let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            pieces.push(match inner {
                None if text.contains(['{', '}']) => return wrong("has a brace within a segment"),
                None => Piece::Literal((*text).into()),
                Some("" | "*") => return wrong("has a parameter without a name"),
                Some(name) => match name.strip_prefix('*') {
                    Some(_) if place + 1 < texts.len() => return wrong("goes on behind {*...}"),
                    Some(name) => Piece::Rest(name.into()),
                    None => Piece::One(name.into()),
                },
            });
        }
        if self.resources.iter().any(|(known, _)| known == path) {
            return wrong("is there twice");
        }
        if resource.is_streaming && resource.observable.is_some() {
            return wrong("streams and can be observed; choose one of the two");
        }
        let parameters: Vec<_> = pieces.iter().filter_map(Piece::parameter).cloned().collect();
        if let Err(reason) = resource.check(&self.state, &parameters) {
            return wrong(&format!("does not fit its handlers: {reason}"));
        }
        let number = self.resources.len();
        self.resources.push((path.into(), resource));
        if pieces.iter().all(|piece| matches!(piece, Piece::Literal(_))) {
            self.literal.insert(key(texts.iter().map(|text| text.as_bytes())), number);
        } else {
            self.patterns.push((pieces, number));
            self.patterns.sort_by_key(|(pieces, _)| {
                let literal = pieces.iter().filter(|piece| matches!(piece, Piece::Literal(_))).count();
                let is_open = pieces.iter().any(|piece| matches!(piece, Piece::Rest(_)));
                (std::cmp::Reverse(literal), is_open)
            });
        }
        Ok(())
    }

    /// Whether any resource streams.
    pub(crate) fn streams(&self) -> bool {
        self.resources.iter().any(|(_, resource)| resource.is_streaming || resource.upload.is_some())
    }

    /// Says to stacks which requests come block by block.
    pub(crate) fn takes_pieces(self: &Arc<Self>) -> TakesPieces {
        let router = Arc::clone(self);
        Box::new(move |message| {
            let all = || message.options().legal();
            let path: Vec<&[u8]> =
                all().filter(|option| option.number == number::URI_PATH).map(|option| option.value).collect();
            let is_for_proxy = all().any(|option| matches!(option.number, number::PROXY_URI | number::PROXY_SCHEME));
            let Some(number) = router.number_of(path.iter().copied(), is_for_proxy) else { return false };
            let comes_in_blocks = all().any(|option| option.number == number::BLOCK1);
            let found = router.resources.get(number).map(|(_, resource)| resource);
            found.is_some_and(|resource| {
                resource.streams(message.code, comes_in_blocks) && resource.handling(message.code).is_some()
            })
        })
    }

    /// The resource that a request is for.
    fn number_of<'p>(&self, path: impl Iterator<Item = &'p [u8]> + Clone, is_for_proxy: bool) -> Option<usize> {
        let own = self.find(path.clone()).map(|found| found.resource);
        match self.proxy {
            Some(proxy) if is_for_proxy || own.is_none() && !links::is_path(path) => Some(proxy),
            _ => own,
        }
    }

    /// Adds the resource that is asked for what is not of this server.
    ///
    /// # Errors
    /// One that streams, or that wants what this server does not have.
    pub(crate) fn add_proxy(&mut self, resource: Resource) -> Result<(), Error> {
        if resource.is_streaming {
            let reason =
                "streams, and what it forwards is whole but for uploads; say streaming_uploads instead of streaming"
                    .into();
            return Err(Error::Setting { name: "proxy", reason });
        }
        resource.check(&self.state, &[]).map_err(|reason| Error::Setting { name: "proxy", reason })?;
        self.proxy = Some(self.resources.len());
        self.resources.push((String::new(), resource));
        Ok(())
    }

    /// The resource of a path.
    pub(crate) fn find<'p>(&self, path: impl Iterator<Item = &'p [u8]> + Clone) -> Option<Found> {
        let mut room = [0; SHORT];
        let literal = match short_key(path.clone(), &mut room) {
            Some(key) => self.literal.get(key),
            None => self.literal.get(&key(path.clone())),
        };
        if let Some(&resource) = literal {
            return Some(Found { resource, parameters: Vec::new() });
        }
        let segments: Vec<&str> = path.map(|segment| std::str::from_utf8(segment).unwrap_or_default()).collect();
        self.patterns
            .iter()
            .find_map(|(pieces, resource)| Some(Found { resource: *resource, parameters: fit(pieces, &segments)? }))
    }
}

/// Bytes of a path that is looked up without asking for memory.
const SHORT: usize = 64;

/// The same as [`key`], written into `room`; `None` if it does not fit.
fn short_key<'p, 'r>(segments: impl Iterator<Item = &'p [u8]>, room: &'r mut [u8; SHORT]) -> Option<&'r [u8]> {
    let mut length = 0;
    for segment in segments {
        let place = room.get_mut(length..length + 1 + segment.len())?;
        let (slash, text) = place.split_first_mut()?;
        *slash = b'/';
        for (to, byte) in text.iter_mut().zip(segment.iter()) {
            *to = if *byte == b'/' { 0 } else { *byte };
        }
        length += 1 + segment.len();
    }
    room.get(..length)
}

fn key<'p>(segments: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    for segment in segments {
        // A slash within a segment is none between two.
        key.push(b'/');
        key.extend(segment.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }));
    }
    key
}

fn fit(pieces: &[Piece], segments: &[&str]) -> Option<Vec<(Arc<str>, String)>> {
    let mut parameters = Vec::new();
    let mut segments = segments.iter();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => drop(segments.next().filter(|segment| *segment == text)?),
            Piece::One(name) => parameters.push((Arc::clone(name), (*segments.next()?).into())),
            Piece::Rest(name) => {
                let rest: Vec<&str> = segments.by_ref().copied().collect();
                parameters.push((Arc::clone(name), rest.join("/")));
            }
        }
    }
    segments.next().is_none().then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(router: &Router, path: &[&'static str]) -> Option<(String, Vec<(String, String)>)> {
        let found = router.find(path.iter().map(|segment| segment.as_bytes()))?;
        let parameters = found.parameters.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        Some((router.resources.get(found.resource)?.0.clone(), parameters))
    }

    #[test]
    fn the_most_literal_route_wins() {
        let mut router = Router::default();
        for path in ["/", "/a/{*rest}", "/a/{id}", "/a/b", "/a/{id}/c", "/{x}/b"] {
            router.add(path, Resource::new()).unwrap();
        }
        let one = |path: &str, parameters: &[(&str, &str)]| {
            let parameters = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            Some((path.to_string(), parameters))
        };
        assert_eq!(find(&router, &[]), one("/", &[]));
        assert_eq!(find(&router, &["a", "b"]), one("/a/b", &[]));
        assert_eq!(find(&router, &["a", "7"]), one("/a/{id}", &[("id", "7")]));
        assert_eq!(find(&router, &["a", "7", "c"]), one("/a/{id}/c", &[("id", "7")]));
        assert_eq!(find(&router, &["a", "7", "d"]), one("/a/{*rest}", &[("rest", "7/d")]));
        assert_eq!(find(&router, &["z", "b"]), one("/{x}/b", &[("x", "z")]));
        assert_eq!(find(&router, &["a/b"]), None);
        assert_eq!(find(&router, &["z"]), None);
    }

    #[test]
    fn long_paths_are_found_as_short_ones_are() {
        let mut router = Router::default();
        for length in [1, SHORT - 2, SHORT - 1, SHORT, 200] {
            let segment: &'static str = "x".repeat(length).leak();
            router.add(&format!("/{segment}"), Resource::new()).unwrap();
            assert_eq!(find(&router, &[segment]), Some((format!("/{segment}"), Vec::new())));
        }
        assert_eq!(find(&router, &["x".repeat(100).leak()]), None);
    }

    #[test]
    fn a_path_that_makes_no_route_is_refused_with_its_fix() {
        let mut router = Router::default();
        router.add("/x", Resource::new()).unwrap();
        for path in ["x", "/{}", "/{*}", "/{*a}/b", "/a{b}", "/x"] {
            assert!(router.add(path, Resource::new()).is_err(), "{path}");
        }
    }
}
