//! Server-Sent Events: the states of a resource, from the observation that all share.
//!
//! | event | data |
//! |---|---|
//! | without a name | a state that is text, with its ETag as `id` |
//! | `base64` | one that is not |
//! | `refused` | why there are no more states: a code and a reason; a browser begins anew |

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::BodyExt;
use hyper::{
    Response, StatusCode,
    body::{Body as HttpBody, Frame},
    header::{self, HeaderValue},
};
use millpond_live::{Bytes, Code, number};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, interval_at},
};

use super::{
    ended,
    request::Read,
    response::{Body, hex, plain},
};
use crate::{asked::Asked, engine::Engine, refusal::Refusal, watched::Watching};

/// What is said to who has heard nothing for so long: that the connection is still there, which nobody on the way closes then.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Milliseconds after which a browser begins anew.
const RETRY: &str = "retry: 5000\n";

/// Whose states are told, and to whom.
pub(super) struct Told {
    pub(super) engine: Arc<Engine>,
    pub(super) read: Read,
    pub(super) format: Option<u16>,
    pub(super) peer: SocketAddr,
    pub(super) asked: Asked,
    pub(super) watching: Watching,
    /// The gateway ends.
    pub(super) ends: watch::Receiver<bool>,
}

struct Events(mpsc::Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

impl Told {
    /// The answer: this state, and then all that come.
    pub(super) fn response(self, first: &millpond_live::Response) -> Response<Body> {
        // One, and the newest state waits: a slow reader gets the newest state alone.
        let (events, receiver) = mpsc::channel(1);
        let mut made = plain(StatusCode::OK, Bytes::new());
        made.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        let first = format!("{RETRY}{}", event(first));
        tokio::spawn(self.tell(first, events));
        made.map(|_| Events(receiver).boxed_unsync())
    }

    async fn tell(self, first: String, events: mpsc::Sender<Bytes>) {
        let Self { engine, read, format, peer, asked, mut watching, mut ends } = self;
        // Why it may not go on as the rules are now.
        let refusal = || {
            let options = read.options(format);
            match engine.rules().asked(&read.wanted(peer, &options)) {
                Ok(now) if now.key == asked.key => None,
                Ok(_) => Some(Refusal::new(Code::SERVICE_UNAVAILABLE, "this path leads elsewhere now")),
                Err(refusal) => Some(refusal),
            }
        };
        let mut rules = engine.rules_changed();
        let mut silence = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
        let (mut next, mut is_last) = (first, false);
        while events.send(next.into()).await.is_ok() && !is_last {
            next = tokio::select! {
                () = events.closed() => return,
                // Nothing is left to be sent, and the connection is not kept.
                () = ended(&mut ends) => return,
                state = watching.next() => {
                    silence.reset();
                    is_last = !state.is_success();
                    event(&state)
                }
                _ = rules.changed() => match refusal() {
                    Some(refusal) => {
                        is_last = true;
                        event(&refusal.response())
                    }
                    None => continue_silently(),
                },
                _ = silence.tick() => continue_silently(),
            };
        }
    }
}

/// A comment.
fn continue_silently() -> String {
    ":\n\n".into()
}

/// A state as an event.
fn event(state: &millpond_live::Response) -> String {
    let mut text = String::new();
    match state.text() {
        _ if !state.is_success() => {
            text.push_str(&format!("event: refused\ndata: {}", state.code()));
            for (place, line) in lines(&String::from_utf8_lossy(state.payload())).enumerate() {
                text.push_str(if place == 0 { " " } else { "\ndata: " });
                text.push_str(line);
            }
        }
        Ok(payload) => {
            if let Some(tag) = state.options().get(number::ETAG) {
                text.push_str(&format!("id: {}\n", hex(tag)));
            }
            let lines: Vec<String> = lines(payload).map(|line| format!("data: {line}")).collect();
            text.push_str(&lines.join("\n"));
        }
        Err(_) => text.push_str(&format!("event: base64\ndata: {}", BASE64_STANDARD.encode(state.payload()))),
    }
    text.push_str("\n\n");
    text
}

/// A line of an event ends with each of CR LF, CR and LF.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_live::Response;

    #[test]
    fn no_state_is_more_than_one_event() {
        for (payload, expected) in [
            ("21", "data: 21\n\n"),
            ("", "data: \n\n"),
            ("a\n\nevent: b", "data: a\ndata: \ndata: event: b\n\n"),
            ("a\r\rdata: x\r\n", "data: a\ndata: \ndata: data: x\ndata: \n\n"),
        ] {
            assert_eq!(event(&Response::content(payload)), expected, "{payload:?}");
        }
        assert_eq!(event(&Response::content("a").with_etag(vec![7, 255])), "id: 07ff\ndata: a\n\n");
        assert_eq!(event(&Response::content(vec![0xff, 0])), "event: base64\ndata: /wA=\n\n");
        let refused = Refusal::new(Code::GATEWAY_TIMEOUT, "gone\nfor ever").response();
        assert_eq!(event(&refused), "event: refused\ndata: 5.04 gone\ndata: for ever\n\n");
    }
}
