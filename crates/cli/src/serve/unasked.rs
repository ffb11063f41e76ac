//! What nobody asked for, printed as it comes.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use millpond_live::{Code, Options, Request, Response, ServerBuilder, Unasked};
use serde::Serialize;

use super::files::Files;
use crate::{answer, render};

/// One message, in a line of JSON.
#[derive(Serialize)]
struct Line {
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(flatten)]
    message: answer::Json,
}

/// Prints responses that nothing was asked for, and requests with a code that is no method, by which some devices report to groups.
/// Other requests for which there is no resource are for the files, if there are any.
pub(super) fn taken(builder: ServerBuilder, files: Option<Arc<Files>>) -> ServerBuilder {
    let builder = builder.changes_by_group(true).unasked(|unasked| {
        let Unasked { peer, code, options, payload, .. } = unasked;
        print(*peer, None, *code, options, payload.to_vec());
    });
    builder.conditional_fallback(move |request: Request| {
        let files = files.clone();
        async move {
            match (is_method(request.method()), files) {
                (true, Some(files)) => files.answer(request).await,
                (true, None) => Response::not_found(),
                (false, _) => {
                    let (options, payload) = (request.options(), request.payload().to_vec());
                    print(request.peer(), Some(request.path_text()), request.method(), options, payload);
                    // Nothing leaves for one that came to a group.
                    Response::new(Code::CONTENT)
                }
            }
        }
    })
}

fn is_method(code: Code) -> bool {
    code.name().is_some()
}

fn print(from: SocketAddr, path: Option<String>, code: Code, options: &Options, payload: Vec<u8>) {
    let message = options.iter().fold(Response::new(code).with_payload(payload), |message, (number, value)| {
        message.with_option(number, value.clone())
    });
    let line = Line { from: from.to_string(), path, message: answer::Json::of(&message) };
    let mut out = std::io::stdout().lock();
    // Who does not read it misses it.
    let _ = render::json::put(&mut out, &line).map(|()| out.flush());
}
