//! What must hold of any stream at all. Also the body of the fuzz target `stream`.

use millpond_coap::message::Code;
use millpond_coap::stream::{Connection, Options};
use millpond_coap::transfer::{self, Answer, ClientRequest, CoapStack, Config, Limits};
use millpond_coap::{Event, Outgoing, Output, RequestId};
use millpond_control::{Instant, Span};

/// A connection that may hold so much: a frame, as much again for what came in behind it, and what it sends.
const MOST_BYTES: usize = 64 * 1_024;

/// Feeds a connection with `bytes`, cut into pieces by their own values, while its application asks, answers, pings,
/// releases and cancels.
pub(crate) fn check(bytes: &[u8]) {
    check_connection(bytes);
    check_stack(bytes);
}

fn check_connection(bytes: &[u8]) {
    let options = Options { max_message_size: 2_048, requests: 8, longest_token: 300, ..Options::default() };
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
                if let Some(id) = state.unanswered.pop() {
                    let answered = connection.respond(now, id, &Outgoing::confirmable(Code::CONTENT, &[]));
                    assert!(answered.is_ok() || state.closed.is_some() || connection.settings().max_message_size < 320);
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
    unanswered: Vec<RequestId>,
    closed: Option<()>,
}

impl State {
    fn ended(&mut self) {
        self.open = self.open.checked_sub(1).expect("what ends was begun");
    }

    fn drain(&mut self, connection: &mut Connection, now: Instant) {
        // Each frame gives one output at most, and a release, a ping and an end a few more.
        for _ in 0..8_192 {
            let open = connection.requests();
            let is_answered = match connection.poll(now) {
                Output::Idle => return,
                Output::Sleep(until, _) => return assert!(until > now, "a sleep lies ahead"),
                Output::Close(_) => {
                    assert!(self.closed.replace(()).is_none(), "the end is told once");
                    false
                }
                Output::Transmit(transmit) => {
                    assert!(!transmit.bytes.is_empty());
                    false
                }
                Output::Event(event) => {
                    assert!(self.closed.is_none(), "nothing is told after the end");
                    match event {
                        Event::Request { id, .. } => self.unanswered.push(id),
                        Event::Failed { .. } => self.ended(),
                        Event::Unobserved { request } => self.unanswered.retain(|unanswered| *unanswered != request),
                        _ => {}
                    }
                    matches!(event, Event::Response { .. } | Event::AdditionalResponse { .. })
                }
            };
            if is_answered && connection.requests() < open {
                self.ended();
            }
        }
        panic!("there is no end to the output");
    }
}

/// The same for a stack with whole bodies: what comes in is frames of these bytes behind settings, in pieces.
fn check_stack(bytes: &[u8]) {
    let options = Options { max_message_size: 2_048, requests: 8, ..Options::default() };
    let limits = Limits {
        client_requests: 4,
        bytes: 32_768,
        body: 4_096,
        bodies: 8_192,
        cached: 8_192,
        observers: 2,
        ..Limits::DEFAULT
    };
    let mut stack = CoapStack::over_stream(Connection::new(options), Config { limits, ..Config::STREAM });
    let (mut now, mut state) = (Instant::ORIGIN, StackState::default());
    stack.receive(now, &[0x40, 0xe1, 0x22, 0x04, 0x80, 0x20]);
    state.drain(&mut stack, now);
    let mut rest = bytes;
    while let Some((&step, after)) = rest.split_first() {
        let piece = after.len().min(usize::from(step >> 3) + 1);
        rest = after;
        match step & 7 {
            0 => {
                let body = vec![step; usize::from(step) * 16];
                let ask = ClientRequest {
                    longest: 4_096,
                    observe: step > 127,
                    ..ClientRequest::new(Code::FETCH, &[]).with_body(&body)
                };
                state.open += u32::from(stack.request(now, (), &ask).is_ok());
            }
            1 => {
                let body = vec![step; usize::from(step) * 16];
                for observer in &state.observers {
                    stack.notify(now, *observer, &Answer::new(Code::CONTENT, &[]).with_body(&body)).unwrap();
                }
            }
            2 => now = now.after(Span::from_secs(u32::from(step >> 3))),
            _ => {
                stack.receive(now, &after[..piece]);
                rest = &after[piece..];
            }
        }
        state.drain(&mut stack, now);
        assert!(stack.memory() <= 2 * MOST_BYTES, "{} bytes", stack.memory());
    }
    stack.stream_ended();
    state.drain(&mut stack, now);
    assert!(state.closed && state.observers.is_empty(), "the end is told, to all");
    assert_eq!((state.open, stack.requests(), stack.observers()), (0, 0, 0), "every ask ends once");
}

#[derive(Default)]
struct StackState {
    open: u32,
    observers: Vec<transfer::ObserverId>,
    closed: bool,
}

impl StackState {
    fn drain(&mut self, stack: &mut CoapStack<Connection>, now: Instant) {
        for _ in 0..8_192 {
            match stack.poll(now) {
                Output::Idle => return,
                Output::Sleep(until, _) => return assert!(until > now, "a sleep lies ahead"),
                Output::Close(_) => {
                    assert!(!core::mem::replace(&mut self.closed, true), "the end is told once")
                }
                Output::Transmit(transmit) => assert!(!transmit.bytes.is_empty()),
                Output::Trace(_) => {}
                Output::Event(event) => match event {
                    transfer::Event::Request { id, .. } => {
                        let answer = Answer::new(Code::CONTENT, &[]).with_body(&[7; 3_000]);
                        match stack.accept_observer(now, id, &answer) {
                            Ok(observer) => self.observers.extend(observer),
                            // It takes neither frames so long nor blocks, or not even this.
                            Err(_) => drop(stack.answer(now, id, &Answer::new(Code::INTERNAL_SERVER_ERROR, &[]))),
                        }
                    }
                    transfer::Event::Answer { goes_on: false, .. } | transfer::Event::Failed { .. } => {
                        self.open = self.open.checked_sub(1).expect("what ends was begun");
                    }
                    transfer::Event::ObserverGone { observer, .. } => self.observers.retain(|other| *other != observer),
                    _ => {}
                },
            }
        }
        panic!("there is no end to the output");
    }
}
