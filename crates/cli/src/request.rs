//! The verbs that ask once.

use std::io::Write;
use std::path::Path;

use millpond_live::{Client, Code, NoResponse, Outcome, RequestBuilder, Uri};

use crate::arguments::{Request, WithPayload, WithoutPayload, Writing};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{answer, content_format, draft, progress, render, trace, values};

/// Longest body that is sent or taken, bytes.
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
    once(method, &ask.uri, (None, None), ask.output.as_deref(), &ask.request, no_response, interrupt).await
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
    let payload = match &ask.payload {
        Some(text) => Some(values::payload(text, LONGEST_BODY)?),
        None => None,
    };
    let format = ask.content_format.or_else(|| ask.payload.as_deref().and_then(format_of_file));
    once(method, &ask.uri, (payload, format), None, &ask.request, no_response, interrupt).await
}

async fn once(
    method: Code,
    uri: &Uri,
    (payload, format): (Option<Vec<u8>>, Option<u16>),
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
    let length = payload.as_ref().map_or(0, Vec::len);
    let bar = progress::Bar::new(length, flags.trace);
    let request = bar.over(prepared(&client, method, uri, payload, format, flags));
    if let Some(classes) = unwanted.filter(|_| flags.verbose) {
        let line = render::options::line(millpond_live::number::NO_RESPONSE, &[classes.value()]);
        let _ = writeln!(anstream::stderr(), ">   {line}");
    }
    let asked = async {
        match unwanted {
            Some(unwanted) => request.send_no_response(unwanted).await,
            None => request.send().await.map(Outcome::Answered),
        }
    };
    let outcome = tokio::select! {
        outcome = asked => outcome?,
        () = interrupt.heard() => return Err(Failure::Stopped),
    };
    drop(bar);
    let Outcome::Answered(answer) = outcome else {
        client.shutdown().await;
        return answer::print_unanswered(&outcome, form, flags.verbose);
    };
    if flags.verbose {
        let _ = writeln!(anstream::stderr(), "{}", answer::headers(&answer));
    }
    let printed = match output.filter(|_| answer.is_success()) {
        Some(file) => draft::write(file, answer.payload()).map_err(|error| Failure::of_file(file.display(), &error)),
        None => answer::print(&answer, form, false),
    };
    client.shutdown().await;
    printed
}

/// A client as the flags ask for it.
pub(crate) async fn client(flags: &Request, uri: &Uri) -> Result<Client, Failure> {
    let builder = Client::builder().longest_body(LONGEST_BODY).security(flags.credentials.read()?);
    let mut builder = flags.repeating.apply(builder, flags.controller.as_ref(), uri.transport())?;
    if flags.trace {
        builder = builder.trace(|event| trace::print(event, false));
    }
    Ok(builder.build().await?)
}

/// A request as the flags ask for it; told if they ask for that.
pub(crate) fn prepared(
    client: &Client,
    method: Code,
    uri: &Uri,
    payload: Option<Vec<u8>>,
    format: Option<u16>,
    flags: &Request,
) -> RequestBuilder {
    if flags.verbose {
        let _ = writeln!(anstream::stderr(), "{}", told(method, uri, payload.as_deref(), format, flags));
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
    request
}

/// Method, URI and options, a line each.
fn told(method: Code, uri: &Uri, payload: Option<&[u8]>, format: Option<u16>, flags: &Request) -> String {
    let mut options: Vec<_> = uri.uri_options();
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
    text.push_str(&format!("\n>   ({} bytes)", payload.map_or(0, <[u8]>::len)));
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
