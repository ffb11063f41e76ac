//! What must hold of any stream at all. Also the body of the fuzz target `stream`.

use millpond_coap::Outgoing;
use millpond_coap::message::Code;
use millpond_coap::stream::{Connection, Event, Options, Output, RequestId};
use millpond_control::{Instant, Span};

/// A connection that may hold so much: a frame, as much again for what came in behind it, and what it sends.
const MOST_BYTES: usize = 64 * 1_024;

/// Feeds a connection with `bytes`, cut into pieces by their own values, while its application asks, answers, pings,
/// releases and cancels.
pub(crate) fn check(bytes: &[u8]) {
    let options = Options { max_message_size: 2_048, requests: 8, ..Options::default() };
    let mut connection = Connection::new(options);
    let mut now = Instant::ORIGIN;
    let mut state = State::default();
    let mut rest = bytes;
    while let Some((&step, after)) = rest.split_first() {
        let piece = after.len().min(usize::from(step >> 3) + 1);
        match step & 7 {
            0 => {
                let asked = connection.request(now, &Outgoing::confirmable(Code::GET, &[]));
                state.open += u32::from(asked.is_ok());
                rest = after;
            }
            1 => {
                let _pinged = connection.ping(now, step > 127);
                rest = after;
            }
            2 => {
                if let Some(id) = state.owed.pop() {
                    let answered = connection.respond(now, id, &Outgoing::confirmable(Code::CONTENT, &[]));
                    assert!(answered.is_ok() || state.closed.is_some() || connection.settings().max_message_size < 16);
                }
                rest = after;
            }
            3 if step > 191 => {
                let _released = connection.release(now, None, Some(1));
                rest = after;
            }
            4 => {
                now = now.after(Span::from_secs(u32::from(step >> 3)));
                rest = after;
            }
            _ => {
                connection.receive(now, &after[..piece]);
                rest = &after[piece..];
            }
        }
        state.drain(&mut connection, now);
        assert!(connection.memory() <= MOST_BYTES, "{} bytes", connection.memory());
    }
    connection.stream_ended();
    state.drain(&mut connection, now);
    assert!(state.closed.is_some(), "the end is told");
    assert_eq!(state.open, 0, "every request ends once");
    assert!(matches!(connection.poll(now), Output::Idle));
}

#[derive(Default)]
struct State {
    /// Requests of ours that have not come to their end.
    open: u32,
    owed: Vec<RequestId>,
    closed: Option<()>,
}

impl State {
    fn drain(&mut self, connection: &mut Connection, now: Instant) {
        // Each frame gives one output at most, and a release, a ping and an end a few more.
        for _ in 0..8_192 {
            match connection.poll(now) {
                Output::Idle => return,
                Output::Sleep(until) => return assert!(until > now, "a sleep lies ahead"),
                Output::Close(_) => assert!(self.closed.replace(()).is_none(), "the end is told once"),
                Output::Transmit(bytes) => assert!(!bytes.is_empty()),
                Output::Event(event) => {
                    assert!(self.closed.is_none(), "nothing is told after the end");
                    match event {
                        Event::Request { id, .. } => self.owed.push(id),
                        Event::Response { last: true, .. } | Event::Failed { .. } => {
                            self.open = self.open.checked_sub(1).expect("what ends was begun");
                        }
                        Event::Unobserved { id } => self.owed.retain(|owed| *owed != id),
                        _ => {}
                    }
                }
            }
        }
        panic!("there is no end to the output");
    }
}
