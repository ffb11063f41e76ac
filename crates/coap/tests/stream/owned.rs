//! What a stack over a stream says, so that it can be kept.

use millpond_coap::RequestId;
use millpond_coap::message::Code;
use millpond_coap::stream::{Closing, Connection, Options, Settings, Signal};
use millpond_coap::transfer::{self, ClientRequestId, Config, Gone, Limits, ObserverId, RequestFailure};
use millpond_control::Instant;

pub(crate) type CoapStack = transfer::CoapStack<Connection>;

pub(crate) fn stack(options: Options, config: Config) -> CoapStack {
    CoapStack::over_stream(Connection::new(options), config)
}

/// The configuration of a stream with these limits.
pub(crate) fn limited(change: impl FnOnce(&mut Limits)) -> Config {
    let mut config = Config::STREAM;
    change(&mut config.limits);
    config
}

#[derive(Debug)]
pub(crate) enum Output {
    Transmit(Vec<u8>),
    Event(Event),
    Close(Closing),
    Sleep(Instant),
    Idle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Request { id: RequestId, code: Code, body: Vec<u8>, wants_to_observe: bool },
    Answer { request: ClientRequestId, code: Code, body: Vec<u8>, goes_on: bool },
    Failed { request: ClientRequestId, why: RequestFailure },
    Unanswered { request: ClientRequestId, is_acknowledged: bool },
    ObserverGone { observer: ObserverId, why: Gone },
    Settings(Settings),
    Pong { custody: bool },
}

/// The next output but for what is merely traced.
pub(crate) fn poll(stack: &mut CoapStack, now: Instant) -> Output {
    loop {
        let event = match stack.poll(now) {
            millpond_coap::Output::Transmit(transmit) => return Output::Transmit(transmit.bytes.to_vec()),
            millpond_coap::Output::Close(why) => return Output::Close(why),
            millpond_coap::Output::Sleep(until, _) => return Output::Sleep(until),
            millpond_coap::Output::Idle => return Output::Idle,
            millpond_coap::Output::Trace(millpond_coap::Event::Signal(Signal::Csm { .. })) => {
                Event::Settings(stack.settings())
            }
            millpond_coap::Output::Trace(millpond_coap::Event::Signal(Signal::Pong { custody })) => {
                Event::Pong { custody }
            }
            millpond_coap::Output::Trace(_) => continue,
            millpond_coap::Output::Event(event) => match event {
                transfer::Event::Request { id, message, body, wants_to_observe, .. } => {
                    Event::Request { id, code: message.code, body: body.into_owned(), wants_to_observe }
                }
                transfer::Event::Answer { request: ask, message, body, goes_on, .. } => {
                    Event::Answer { request: ask, code: message.code, body: body.into_owned(), goes_on }
                }
                transfer::Event::Failed { request: ask, why, .. } => Event::Failed { request: ask, why },
                transfer::Event::Unanswered { request: ask, is_acknowledged, .. } => {
                    Event::Unanswered { request: ask, is_acknowledged }
                }
                transfer::Event::ObserverGone { observer, why, .. } => Event::ObserverGone { observer, why },
                transfer::Event::Refused { .. } => continue,
                other => panic!("{other:?} over a stream"),
            },
        };
        return Output::Event(event);
    }
}
