//! The server of millpond-coap, as a host of the invented network.

use std::{cell::RefCell, net::SocketAddr};

use embedded_nal_async::UnconnectedUdp;
use millpond_coap::{
    Endpoint, IdGenerator, Output,
    message::{Code, number},
    transfer::{Answer, CoapStack, Config, Event, ObserverId},
};
use millpond_control::{ChanceSeed, Instant, Preset};
use millpond_embedded::Clock;

use super::world::{Socket, World};

/// What it has at every path, and who observes that.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) body: Vec<u8>,
    pub(crate) puts: u32,
    pub(crate) observers: Vec<ObserverId>,
    /// The state has changed, and observers are to be told.
    pub(crate) has_changed: bool,
    /// So many requests are refused for 20 s.
    pub(crate) refusals: u32,
    /// Nothing of what it knew is known any more.
    pub(crate) restarts: bool,
}

fn made() -> CoapStack<Endpoint<SocketAddr>> {
    let (controller, chance) = (Preset::RFC7252.build(), ChanceSeed::new(2));
    let endpoint = Endpoint::new(Default::default(), controller, chance, 1, IdGenerator::counted()).unwrap();
    CoapStack::new(endpoint, Config::DEFAULT, chance).unwrap()
}

/// Serves for ever; looks at its state each tenth of a second.
pub(crate) async fn serve(world: &World, mut socket: Socket<'_>, state: &RefCell<State>) {
    let mut stack = made();
    let mut buffer = [0; 1_500];
    let local = super::world::host(0);
    loop {
        let mut until = world.now().as_micros() + 100_000;
        loop {
            enum Asked {
                Once(millpond_coap::RequestId),
                Observed(millpond_coap::RequestId),
            }
            let mut asked = None;
            let mut to_send = None;
            match stack.poll(world.now()) {
                Output::Transmit(datagram) => to_send = Some((datagram.to, datagram.bytes.to_vec())),
                Output::Event(Event::Request { id, message, body, wants_to_observe, .. }) => {
                    let mut state = state.borrow_mut();
                    if matches!(message.code, Code::PUT | Code::POST) {
                        state.body = body.to_vec();
                        state.puts += 1;
                    }
                    asked = Some(if wants_to_observe { Asked::Observed(id) } else { Asked::Once(id) });
                }
                Output::Event(_) | Output::Trace(_) => {}
                Output::Sleep(at, _) => {
                    until = until.min(at.as_micros());
                    break;
                }
                Output::Idle | Output::Close(_) => break,
            }
            if let Some((to, bytes)) = to_send {
                socket.send(local, to, &bytes).await.unwrap();
            }
            let Some(asked) = asked else { continue };
            // What is left of the outputs leaves first.
            while let Output::Transmit(datagram) = stack.poll(world.now()) {
                let (to, bytes) = (datagram.to, datagram.bytes.to_vec());
                socket.send(local, to, &bytes).await.unwrap();
            }
            let mut state = state.borrow_mut();
            let body = state.body.clone();
            let options = [(number::CONTENT_FORMAT, &[][..]), (number::MAX_AGE, &[20][..])];
            let code = if state.refusals > 0 { Code::SERVICE_UNAVAILABLE } else { Code::CONTENT };
            state.refusals = state.refusals.saturating_sub(1);
            let answer = Answer::new(code, &options).with_body(&body);
            match asked {
                Asked::Once(id) => stack.answer(world.now(), id, &answer).unwrap(),
                Asked::Observed(id) => {
                    let observer = stack.accept_observer(world.now(), id, &answer).unwrap();
                    state.observers.extend(observer);
                }
            }
        }
        let at = Instant::from_micros(until);
        let socket_came = embassy_futures::select::select(socket.receive_into(&mut buffer), world.until(at)).await;
        if let embassy_futures::select::Either::First(Ok((length, _, from))) = socket_came {
            stack.receive(world.now(), from, &buffer[..length]);
            continue;
        }
        let mut state = state.borrow_mut();
        if std::mem::take(&mut state.restarts) {
            stack = made();
            state.observers.clear();
        }
        if std::mem::take(&mut state.has_changed) {
            let body = state.body.clone();
            let options = [(number::MAX_AGE, &[20][..])];
            state.observers.retain(|observer| {
                stack.notify(world.now(), *observer, &Answer::new(Code::CONTENT, &options).with_body(&body)).is_ok()
            });
        }
    }
}
