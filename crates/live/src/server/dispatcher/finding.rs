//! Who answers a request, and why nobody does.

use std::borrow::Cow;

use millpond_coap::{
    block::Block,
    message::{Code, Opt, is_critical, is_unsafe_to_forward, number},
};

use super::Dispatcher;
use crate::{
    Response,
    server::{Request, links, router::Found},
    transfer,
};

impl Dispatcher {
    /// Whether a request is for a later block of a body that streams, or of a representation of which the peer got a part: its first
    /// one counted for all.
    pub(super) fn goes_on(&self, found: &Result<(Option<Found>, Option<Which>), Refusal>, request: &Request) -> bool {
        let Ok((_, Some(which))) = found else { return false };
        let streams = match which {
            Which::Of(resource) => {
                let comes_in_blocks = request.value(number::BLOCK1).is_some();
                let known = self.router.resources.get(*resource);
                known.is_some_and(|(_, known)| known.streams(request.method(), comes_in_blocks))
            }
            Which::Fallback => false,
        };
        let block = |number| request.value(number).and_then(|value| Block::read(value, true).ok());
        let is_later = |number| block(number).is_some_and(|block| block.number > 0);
        let goes_on_here = streams || self.downloaders.has(request.peer());
        goes_on_here && is_later(number::BLOCK2) || streams && is_later(number::BLOCK1)
    }

    /// Who answers a request: `None` as a handler is the list of links.
    pub(super) fn find(&self, request: &Request) -> Result<(Option<Found>, Option<Which>), Refusal> {
        /// Critical options that are understood here or by the stack below, or left to handlers that say so.
        const UNDERSTOOD: [u16; 9] = [
            number::IF_MATCH,
            number::URI_HOST,
            number::IF_NONE_MATCH,
            number::URI_PORT,
            number::URI_PATH,
            number::URI_QUERY,
            number::ACCEPT,
            number::BLOCK2,
            number::BLOCK1,
        ];
        let (mut condition, mut before, mut is_for_proxy, mut unknown) = (None, None, false, None);
        for Opt { number, value } in request.written() {
            match number {
                number::IF_MATCH | number::IF_NONE_MATCH => condition = Some(Refusal::BadOption(number)),
                number::PROXY_URI | number::PROXY_SCHEME if self.router.proxy.is_none() => return Err(Refusal::Proxy),
                number::PROXY_URI | number::PROXY_SCHEME => is_for_proxy = true,
                // One of another length, and all behind the first, are as if they were not there (RFC 7252 §5.4.3, §5.4.5).
                number::HOP_LIMIT if value == [0] && before != Some(number) => return Err(Refusal::HopLimit),
                _ if is_critical(number) && !UNDERSTOOD.contains(&number) => {
                    // A proxy forwards what it does not understand, if that is safe (RFC 7252 §5.7.1).
                    if self.router.proxy.is_none() || is_unsafe_to_forward(number) {
                        return Err(Refusal::BadOption(number));
                    }
                    unknown = unknown.or(Some(Refusal::BadOption(number)));
                }
                number::URI_PATH | number::URI_QUERY if std::str::from_utf8(value).is_err() => {
                    return Err(Refusal::BadText);
                }
                _ => {}
            }
            before = Some(number);
        }
        let path = || request.values(number::URI_PATH);
        let proxied = |proxy: usize| {
            let found = Found { resource: proxy, parameters: Vec::new() };
            Ok((Some(found), Some(Which::Of(proxy))))
        };
        let own = self.router.find(path());
        match self.router.proxy {
            Some(proxy) if is_for_proxy || own.is_none() && !links::is_path(path()) => return proxied(proxy),
            _ => unknown.map_or(Ok(()), Err)?,
        }
        match own {
            Some(found) => {
                let resource = self.router.resources.get(found.resource).map(|(_, resource)| resource);
                match resource.and_then(|resource| resource.handling(request.method())) {
                    Some(_) => {
                        let is_heeded = resource.is_some_and(|resource| resource.is_conditional);
                        condition.filter(|_| !is_heeded).map_or(Ok(()), Err)?;
                        let which = Which::Of(found.resource);
                        Ok((Some(found), Some(which)))
                    }
                    None => Err(Refusal::Method),
                }
            }
            None if links::is_path(path()) => match request.method() {
                Code::GET => condition.map_or(Ok((None, None)), Err),
                _ => Err(Refusal::Method),
            },
            None if self.router.fallback.is_some() => {
                let refused = condition.filter(|_| !self.router.is_fallback_conditional);
                refused.map_or(Ok((None, Some(Which::Fallback))), Err)
            }
            None => Err(Refusal::NotFound),
        }
    }
}

/// Whose handler.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Of(usize),
    Fallback,
}

/// Why no handler is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    NotFound,
    Method,
    /// A critical option that nobody understands, or a condition that the handler does not keep to.
    BadOption(u16),
    BadText,
    HopLimit,
    Proxy,
}

impl Refusal {
    /// The answer. What is wrong with the request stands in its payload, for a peer that wrote that (RFC 7252 §5.5.2).
    pub(super) fn response(self) -> Response {
        let response = Response::new(match self {
            Self::NotFound => return Response::not_found(),
            Self::Method => Code::METHOD_NOT_ALLOWED,
            Self::BadOption(_) => Code::BAD_OPTION,
            Self::BadText | Self::HopLimit => Code::BAD_REQUEST,
            Self::Proxy => Code::PROXYING_NOT_SUPPORTED,
        });
        match self {
            Self::BadOption(_) | Self::BadText | Self::HopLimit => response.with_payload(self.reason().into_owned()),
            _ => response,
        }
    }

    /// In a few words.
    pub(super) fn reason(self) -> Cow<'static, str> {
        match self {
            Self::NotFound => "no resource has this path".into(),
            Self::Method => "the resource does not take this method".into(),
            Self::BadOption(number) => transfer::Refusal::Option(number).to_string().into(),
            Self::BadText => "path or query is no UTF-8".into(),
            Self::HopLimit => "a Hop-Limit of 0".into(),
            Self::Proxy => "it is for a proxy, and here is none".into(),
        }
    }
}
