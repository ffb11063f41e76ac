//! The verb that asks a group who is there.

use std::io::Write;
use std::net::Ipv6Addr;

use millpond_live::{Client, Code, Interface, Response, Uri, number};
use serde::Serialize;

use crate::arguments::Discover;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::render::{self, links};
use crate::{answer, content_format, oscore, trace};

/// Asks all servers of a group, or one, for what they have (RFC 6690, RFC 7252 §8), and prints each answer as it comes.
///
/// # Errors
/// Nobody answers.
pub async fn discover(flags: Discover, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let uri = place(&flags.group)?;
    let mut builder = Client::builder().multicast_hops(flags.hops).security(flags.credentials.read()?);
    if let Some(interface) = &flags.interface {
        builder = builder.multicast_interface(Interface::from(interface.as_str()));
    }
    if flags.trace {
        builder = builder.trace(|event| trace::print(event, true));
    }
    if !flags.oscore.is_empty() {
        if uri.is_group() {
            let line = "--oscore is for one host: groups have no context (Group OSCORE is not supported)";
            return Err(Failure::Usage(line.to_owned()));
        }
        let plain = Client::builder().security(flags.credentials.read()?);
        builder = builder.oscore(oscore::of_client(&flags.oscore, plain, &uri).await?);
    }
    let client = builder.build().await?;
    if !uri.is_group() {
        return one(&client, &uri, &flags, interrupt).await;
    }
    let mut request = client.discover(&uri);
    if let Some(period) = flags.period {
        request = request.gather_for(period);
    }
    if let Some(format) = flags.accept {
        request = request.accept(format);
    }
    if let Some(size) = flags.block_size {
        request = request.block_size(size);
    }
    let mut answers = request.send().await?;
    let mut count = 0_u64;
    // Why the first message did not leave, or the first answer was of no use: if no other comes, that is why nobody answered.
    let mut first = None;
    loop {
        let next = tokio::select! {
            next = answers.next() => next,
            () = interrupt.heard() => break,
        };
        match next {
            Some(Ok(answer)) => {
                print(&answer, flags.json)?;
                count += 1;
            }
            // The request itself did not leave.
            Some(Err(error @ millpond_live::Error::Refused { .. })) => return Err(error.into()),
            Some(Err(error)) if count == 0 && first.is_none() => first = Some(error),
            // One answer came in part. Others may be whole.
            Some(Err(error)) => {
                let _ = writeln!(anstream::stderr(), "millpond: {error}");
            }
            None => break,
        }
    }
    match first {
        Some(error) if count == 0 => return Err(error.into()),
        Some(error) => _ = writeln!(anstream::stderr(), "millpond: {error}"),
        None => {}
    }
    if count > 0 {
        return Ok(());
    }
    let fix = match flags.interface {
        Some(_) => "no server there has joined that group, or none is reached within --hops",
        None => "name the interface where servers are: --interface",
    };
    Err(Failure::Failed(format!("nobody answered at {uri}; {fix}")))
}

/// One host is asked as any host is: confirmably.
async fn one(client: &Client, uri: &Uri, flags: &Discover, interrupt: &mut Interrupt) -> Result<(), Failure> {
    let mut request = client.get(uri);
    if uri.path().is_empty() {
        request = request.option(number::URI_PATH, ".well-known").option(number::URI_PATH, "core");
    }
    if let Some(period) = flags.period {
        request = request.deadline(period);
    }
    if let Some(format) = flags.accept {
        request = request.accept(format);
    }
    if let Some(size) = flags.block_size {
        request = request.block_size(size);
    }
    let answer = tokio::select! {
        answer = request.send() => answer?,
        () = interrupt.heard() => return Err(Failure::Stopped),
    };
    if !answer.is_success() {
        return answer::print(&answer, answer::Form::Shown, false);
    }
    print(&answer, flags.json)
}

fn print(answer: &Response, json: bool) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if json {
        render::json::put(&mut out, &Json::of(answer))?;
    } else {
        out.write_all(shown(answer).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Who answered, and below that what, a link a line.
fn shown(answer: &Response) -> String {
    let mut text = peer(answer);
    if answer.code() != Code::CONTENT {
        text.push_str(&format!("  {}", answer::titled(answer.code())));
    }
    text.push('\n');
    for line in render::body(answer.payload(), answer::format_of(answer)).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

fn peer(answer: &Response) -> String {
    answer.exchange().map_or_else(String::new, |report| report.peer.to_string())
}

/// An answer as JSON.
#[derive(Debug, Serialize)]
struct Json<'a> {
    peer: String,
    code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<links::Shown<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
}

impl<'a> Json<'a> {
    fn of(answer: &'a Response) -> Self {
        let format = answer::format_of(answer);
        let is_links = format.and_then(content_format::shown) == Some(content_format::Shown::Links);
        let links = answer.text().ok().filter(|_| is_links).map(links::parse);
        let payload = links.is_none().then(|| match answer.text() {
            Ok(text) => text.to_owned(),
            Err(_) => answer.payload().iter().map(|byte| format!("{byte:02x}")).collect(),
        });
        Self {
            peer: peer(answer),
            code: answer.code().to_string(),
            content_format: format.map(content_format::name),
            links,
            payload,
        }
    }
}

/// An address, `ADDRESS:PORT`, or a URI; IPv6 with or without brackets.
fn place(group: &str) -> Result<Uri, Failure> {
    let is_bare_v6 = group.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    let text = match group {
        uri if uri.contains("://") => uri.to_owned(),
        address if is_bare_v6 => format!("coap://[{address}]"),
        host => format!("coap://{host}"),
    };
    text.parse().map_err(|error: millpond_live::UriError| Failure::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_an_address_or_a_uri() {
        for (group, uri, is_group) in [
            ("224.0.1.187", "coap://224.0.1.187/", true),
            ("224.0.1.187:61616", "coap://224.0.1.187:61616/", true),
            ("ff02::fd%eth0", "coap://[ff02::fd%eth0]/", true),
            ("[ff05::fd]:7", "coap://[ff05::fd]:7/", true),
            ("coap://[ff02::fd%2]/x?rt=a", "coap://[ff02::fd%2]/x?rt=a", true),
            ("coap://224.0.1.187?rt=a", "coap://224.0.1.187/?rt=a", true),
            ("192.0.2.1", "coap://192.0.2.1/", false),
            ("example.com", "coap://example.com/", false),
        ] {
            let place = place(group).unwrap();
            assert_eq!((place.to_string().as_str(), place.is_group()), (uri, is_group));
        }
        assert!(matches!(place("http://[ff02::fd]/"), Err(Failure::Usage(_))));
    }

    #[test]
    fn links_are_shown_a_line_each_and_taken_apart_as_json() {
        let answer = Response::content("</a>;rt=\"x y\";ct=0;obs,</b,c>").with_content_format(content_format::LINKS);
        assert_eq!(shown(&answer), "\n  </a>;rt=\"x y\";ct=0;obs\n  </b,c>\n");
        assert_eq!(
            serde_json::to_string(&Json::of(&answer)).unwrap(),
            r#"{"peer":"","code":"2.05","content_format":"application/link-format","links":["#.to_owned()
                + r#"{"href":"/a","rt":"x y","ct":"0","obs":true},{"href":"/b,c"}]}"#
        );
        let changed = Response::changed();
        assert_eq!(shown(&changed), "  2.04 Changed\n");
    }
}
