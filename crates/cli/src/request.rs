//! The verbs that ask once.

use std::io::Write;
use std::path::Path;

use millpond_live::{Client, Code, NoResponse, Outcome, RequestBuilder, Uri};

use crate::arguments::{Request, WithPayload, WithoutPayload, Writing};
use crate::draft::Draft;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{answer, content_format, opening, oscore, progress, render, trace, values};

/// Longest body that is sent, or that a server takes or gives, bytes.
pub const LONGEST_BODY: usize = 16 << 20;

/// get and delete.
///
/// # Errors
/// Whatever kept it from being done.
pub async fn without_payload(
    method: Code,
    Writing { no_response, ask }: Writing<WithoutPayload>,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    once(method, &ask.uri, (Body::Bytes(None), None), ask.output.as_deref(), &ask.request, no_response, interrupt).await
}

/// put, post, fetch, patch and ipatch.
///
/// # Errors
/// Whatever kept it from being done.
pub async fn with_payload(
    method: Code,
    Writing { no_response, ask }: Writing<WithPayload>,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    let body = match &ask.payload {
        Some(text) => match streamed(text, &ask).filter(|_| no_response.is_none()) {
            Some((file, length)) => Body::File(file, length),
            None => Body::Bytes(Some(values::payload(text, LONGEST_BODY)?)),
        },
        None => Body::Bytes(None),
    };
    let format = ask.content_format.or_else(|| ask.payload.as_deref().and_then(format_of_file));
    once(method, &ask.uri, (body, format), None, &ask.request, no_response, interrupt).await
}

/// What is sent.
enum Body {
    Bytes(Option<Vec<u8>>),
    /// A long file as it is read, and how long it is.
    File(std::fs::File, usize),
}

/// The file that a payload is, if it goes over a stream and is so long that it is sent as it is read. Over datagrams a body in
/// blocks is sent again from its beginning where a server lost it.
fn streamed(text: &str, ask: &WithPayload) -> Option<(std::fs::File, usize)> {
    let path = text.strip_prefix('@').filter(|path| !path.starts_with('@') && !ask.uri.transport().is_datagram())?;
    // A pipe is not opened twice. What is not there, or cannot be opened, is told when it is read whole.
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let file = opening::plain(Path::new(path)).ok().flatten()?;
    let length = usize::try_from(file.metadata().ok()?.len()).ok().filter(|length| *length > progress::LONG)?;
    Some((file, length))
}

async fn once(
    method: Code,
    uri: &Uri,
    (body, format): (Body, Option<u16>),
    output: Option<&Path>,
    flags: &Request,
    unwanted: Option<NoResponse>,
    interrupt: &mut Interrupt,
) -> Result<(), Failure> {
    let is_dash = output.is_some_and(|file| file.as_os_str() == "-");
    let (output, form) = match is_dash {
        true => (None, answer::Form::Bytes),
        false => (output, answer::Form::wanted(flags)),
    };
    if let Some(directory) = output.and_then(Path::parent).filter(|directory| !directory.as_os_str().is_empty()) {
        // Before anything is asked for that could not be kept.
        std::fs::metadata(directory).map_err(|error| Failure::of_file(directory.display(), &error))?;
    }
    let client = client(flags, uri).await?;
    let (payload, file, length) = match body {
        Body::Bytes(payload) => {
            let length = payload.as_ref().map_or(0, Vec::len);
            (payload, None, length)
        }
        Body::File(file, length) => (None, Some(file), length),
    };
    let bar = progress::Bar::new(length, flags.trace);
    let request = bar.over(prepared(&client, method, uri, (payload, length), format, flags));
    if let Some(classes) = unwanted.filter(|_| flags.verbose) {
        let line = render::options::line(millpond_live::number::NO_RESPONSE, &[classes.value()]);
        let _ = writeln!(anstream::stderr(), ">   {line}");
    }
    let mut draft = output.map(|file| Draft::of(file, flags.max_size.unwrap_or(LONGEST_BODY)));
    let asking = async {
        if let Some(unwanted) = unwanted {
            return request.send_no_response(unwanted).await;
        }
        let answered = match (&mut draft, file) {
            (_, Some(file)) => request.upload(&mut tokio::fs::File::from_std(file)).await,
            // Over datagrams a body that changes on its way is asked for again.
            (Some(draft), None) if !uri.transport().is_datagram() => request.download(draft).await,
            _ => request.send().await,
        };
        answered.map(Outcome::Answered)
    };
    let outcome = tokio::select! {
        outcome = asking => outcome,
        () = interrupt.heard() => return Err(Failure::Stopped),
    };
    drop(bar);
    let of_file = |error: &std::io::Error| Failure::of_file(output.unwrap_or(Path::new("-")).display(), error);
    let outcome = match (outcome, draft.as_mut().and_then(|draft| draft.failed.take())) {
        (Err(_), Some(error)) => return Err(of_file(&error)),
        (outcome, _) => outcome?,
    };
    let Outcome::Answered(answer) = outcome else {
        client.shutdown().await;
        return answer::print_unanswered(&outcome, form, flags.verbose);
    };
    if flags.verbose {
        let length = answer.payload().len() + draft.as_ref().map_or(0, |draft| draft.length);
        let _ = writeln!(anstream::stderr(), "{}", answer::headers(&answer, length));
    }
    let printed = match draft.filter(|_| answer.is_success()) {
        Some(draft) => draft.put(answer.payload()).map_err(|error| of_file(&error)),
        None => answer::print(&answer, form, false),
    };
    client.shutdown().await;
    printed
}

/// A client as the flags ask for it.
pub(crate) async fn client(flags: &Request, uri: &Uri) -> Result<Client, Failure> {
    let longest = flags.max_size.unwrap_or(LONGEST_BODY);
    let builder = Client::builder().longest_body(longest).security(flags.credentials.read()?);
    let builder = flags.tolerance.apply(builder, uri)?;
    let mut builder = flags.repeating.apply(builder, flags.controller.as_ref(), uri.transport())?;
    // Beside the request that was protected, what of it is seen.
    if flags.trace || flags.verbose && !flags.oscore.is_empty() {
        builder = builder.trace(|event| trace::print(event, false));
    }
    if let Some(path) = &flags.memory {
        builder = builder.path_cache_file(path);
    }
    if !flags.oscore.is_empty() {
        let plain = Client::builder().security(flags.credentials.read()?);
        builder = builder.oscore(oscore::of_client(&flags.oscore, plain, uri).await?);
    }
    Ok(builder.build().await?)
}

/// A request as the flags ask for it; told if they ask for that. Its payload is so long, even if it is yet to be given.
pub(crate) fn prepared(
    client: &Client,
    method: Code,
    uri: &Uri,
    (payload, length): (Option<Vec<u8>>, usize),
    format: Option<u16>,
    flags: &Request,
) -> RequestBuilder {
    if flags.verbose {
        let _ = writeln!(anstream::stderr(), "{}", told(method, uri, length, format, flags));
    }
    let mut request = client.request(method, uri);
    if let Some(payload) = payload {
        request = request.payload(payload);
    }
    if let Some(format) = format {
        request = request.content_format(format);
    }
    if let Some(format) = flags.accept {
        request = request.accept(format);
    }
    for option in &flags.options {
        request = request.option(option.number, option.value.clone());
    }
    if flags.non {
        request = request.non_confirmable();
    }
    if let Some(size) = flags.block_size {
        request = request.block_size(size);
    }
    if flags.q_block {
        request = request.q_block();
    }
    if let Some(time) = flags.timeout {
        request = request.deadline(time);
    }
    if let Some(token) = flags.token {
        request = request.token(token);
    }
    flags.tolerance.prepare(request)
}

/// Method, URI and options, a line each.
fn told(method: Code, uri: &Uri, length: usize, format: Option<u16>, flags: &Request) -> String {
    let mut options: Vec<_> = uri.uri_options();
    options.retain(|(number, _)| !(flags.tolerance.no_uri_host && *number == millpond_live::number::URI_HOST));
    options.extend(flags.options.iter().map(|option| (option.number, option.value.clone())));
    let uint = |number: u16| number.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
    options.extend(format.map(|format| (millpond_live::number::CONTENT_FORMAT, uint(format))));
    options.extend(flags.accept.map(|format| (millpond_live::number::ACCEPT, uint(format))));
    options.sort_by_key(|(number, _)| *number);
    let kind = if flags.non { "non-confirmable" } else { "confirmable" };
    let mut text = format!("> {} {uri}, {kind}", method.name().unwrap_or("?").to_uppercase());
    for (number, value) in options {
        text.push_str(&format!("\n>   {}", render::options::line(number, &value)));
    }
    text.push_str(&format!("\n>   ({length} bytes)"));
    text
}

/// What a file given as payload holds, if its ending says so.
fn format_of_file(payload: &str) -> Option<u16> {
    let path = payload.strip_prefix('@').filter(|path| !path.starts_with('@'))?;
    let name = Path::new(path).file_name()?.to_str()?;
    Some(content_format::of_file(name)).filter(|format| *format != content_format::BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_sent_for_what_its_ending_says() {
        for (payload, format) in [
            ("@a/b.json", Some(50)),
            ("@b.cbor", Some(60)),
            ("@b", None),
            ("b.json", None),
            ("@@b.json", None),
            ("-", None),
        ] {
            assert_eq!(format_of_file(payload), format, "{payload}");
        }
    }
}
