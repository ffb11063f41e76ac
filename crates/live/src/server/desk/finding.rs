//! Who answers a request, and why nobody does.

use millpond_coap::message::{Code, Opt, number};

use super::Desk;
use crate::{
    Response,
    server::{Request, links, router::Found},
};

impl Desk {
    /// Who answers a request: `None` as a handler is the list of links.
    pub(super) fn find(&self, request: &Request) -> Result<(Option<Found>, Option<Which>), Refusal> {
        /// Critical options that are understood here or by the host below, or left to handlers that say so.
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
        let (mut is_conditional, mut before) = (false, None);
        for Opt { number, value } in request.written() {
            is_conditional |= matches!(number, number::IF_MATCH | number::IF_NONE_MATCH);
            match number {
                number::PROXY_URI | number::PROXY_SCHEME => return Err(Refusal::Proxy),
                // One of another length, and all behind the first, are as if they were not there (RFC 7252 §5.4.3, §5.4.5).
                number::HOP_LIMIT if value == [0] && before != Some(number) => return Err(Refusal::HopLimit),
                _ if number & 1 == 1 && !UNDERSTOOD.contains(&number) => return Err(Refusal::BadOption),
                number::URI_PATH | number::URI_QUERY if std::str::from_utf8(value).is_err() => {
                    return Err(Refusal::BadText);
                }
                _ => {}
            }
            before = Some(number);
        }
        let path = || request.values(number::URI_PATH);
        match self.router.find(path()) {
            Some(found) => {
                let resource = self.router.resources.get(found.resource).map(|(_, resource)| resource);
                match resource.and_then(|resource| resource.handling(request.method())) {
                    Some(_) if is_conditional && !resource.is_some_and(|resource| resource.is_conditional) => {
                        Err(Refusal::BadOption)
                    }
                    Some(_) => {
                        let which = Which::Of(found.resource);
                        Ok((Some(found), Some(which)))
                    }
                    None => Err(Refusal::Method),
                }
            }
            None if links::is_path(path()) => match request.method() {
                Code::GET if is_conditional => Err(Refusal::BadOption),
                Code::GET => Ok((None, None)),
                _ => Err(Refusal::Method),
            },
            None if self.router.fallback.is_some() => match is_conditional && !self.router.is_fallback_conditional {
                true => Err(Refusal::BadOption),
                false => Ok((None, Some(Which::Fallback))),
            },
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
    BadOption,
    BadText,
    HopLimit,
    Proxy,
}

impl Refusal {
    pub(super) fn response(self) -> Response {
        match self {
            Self::NotFound => Response::not_found(),
            Self::Method => Response::new(Code::METHOD_NOT_ALLOWED),
            Self::BadOption => Response::new(Code::BAD_OPTION),
            Self::BadText => Response::bad_request("path or query is no UTF-8"),
            Self::HopLimit => Response::bad_request("a Hop-Limit of 0"),
            Self::Proxy => Response::new(Code::PROXYING_NOT_SUPPORTED),
        }
    }
}
