//! `/.well-known/core`: what a server has, as links (RFC 6690).

use millpond_coap::message::Code;

use super::{Request, router::Router};
use crate::{ContentFormat, LinkWriter, Response, attribute_fits, percent_encoded};

/// Where it is.
pub(crate) const PATH: [&[u8]; 2] = [b".well-known", b"core"];

/// What may stand unencoded in a path as a URI reference writes it, beside letters and digits.
const IN_REFERENCE: &[u8] = b"/-._~!$&'()*+,;=:@";

/// Answers a GET, filtered by the query (RFC 6690 §4.1).
pub(crate) fn answer(router: &Router, request: &Request) -> Response {
    if request.accept().is_some_and(|format| format != ContentFormat::LINK_FORMAT) {
        return Response::new(Code::NOT_ACCEPTABLE);
    }
    let mut filters = Vec::new();
    for part in request.query() {
        match part.split_once('=') {
            Some(filter) => filters.push(filter),
            None => return Response::bad_request("a filter is name=value"),
        }
    }
    let mut links = LinkWriter::default();
    for (path, resource) in &router.resources {
        if resource.is_hidden || path.contains('{') {
            continue;
        }
        let is_meant = |(name, wanted): &(&str, &str)| match *name {
            "href" => attribute_fits("href", path, wanted),
            "obs" => resource.observable.is_some() && attribute_fits("obs", "", wanted),
            _ => {
                let mut known = resource.attributes.iter().filter(|(known, _)| known == name);
                known.any(|(_, value)| attribute_fits(name, value, wanted))
            }
        };
        if !filters.iter().all(is_meant) {
            continue;
        }
        links.link(&percent_encoded(path, IN_REFERENCE));
        for (name, value) in &resource.attributes {
            links.attribute(name, value);
        }
        if resource.observable.is_some() {
            links.flag("obs");
        }
    }
    Response::content(links.into_text()).with_content_format(ContentFormat::LINK_FORMAT)
}

/// The path of a request leads there.
pub(crate) fn is_path<'p>(path: impl Iterator<Item = &'p [u8]>) -> bool {
    path.eq(PATH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        number,
        server::{Observable, Resource, request::of_options},
    };

    fn ask(router: &Router, query: &[&'static str]) -> Response {
        let options: Vec<_> = query.iter().map(|part| (number::URI_QUERY, part.as_bytes())).collect();
        answer(router, &of_options(&options, &[], "[::1]:1".parse().unwrap()))
    }

    #[test]
    fn links_are_written_and_filtered_as_the_rfc_says() {
        let mut router = Router::default();
        let temperature = Resource::new()
            .resource_type("temperature-c sensor")
            .interface("core.s")
            .content_format(ContentFormat::TEXT);
        router.add("/sensors/temp", temperature.observable(&Observable::new())).unwrap();
        router
            .add(
                "/light switch",
                Resource::new()
                    .title("a \"switch\"")
                    .content_format(ContentFormat::TEXT)
                    .content_format(ContentFormat::XML),
            )
            .unwrap();
        router.add("/secret", Resource::new().hidden()).unwrap();
        router.add("/x/{id}", Resource::new()).unwrap();
        let temp = "</sensors/temp>;rt=\"temperature-c sensor\";if=\"core.s\";ct=0;obs";
        let light = "</light%20switch>;title=\"a \\\"switch\\\"\";ct=\"0 41\"";
        let both = format!("{temp},{light}");
        for (query, expected) in [
            (&[][..], both.as_str()),
            (&["rt=sensor"], temp),
            (&["rt=temp*"], temp),
            (&["rt=temperature-c sensor"], ""),
            (&["href=/sensors/*"], temp),
            (&["href=/light switch"], light),
            (&["ct=41"], light),
            (&["ct=0"], both.as_str()),
            (&["obs=*"], temp),
            (&["rt=sensor", "if=other"], ""),
            (&["foo=bar"], ""),
        ] {
            assert_eq!(ask(&router, query).text(), Ok(expected), "{query:?}");
        }
        assert_eq!(ask(&router, &["rt"]).code().to_string(), "4.00");
    }
}
