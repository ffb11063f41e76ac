//! What of a server's task outlives it: those who observe.

use millpond_coap::message::Message;

use super::{Serving, SocketTask};
use crate::{
    Transport,
    server::{Observing, Request},
};

impl SocketTask {
    /// Those who observe, as far as they can be kept.
    pub(super) fn kept_observers(&mut self) -> Vec<Observing> {
        let (Some(Serving { dispatcher, keeper: Some(_), .. }), [socket, ..]) = (&self.server, &mut self.sockets[..])
        else {
            return Vec::new();
        };
        let kept = dispatcher.observers.all().filter_map(|(observer, request)| {
            let (address, kept) = socket.stack.kept_observer(observer)?;
            Observing::of((socket.local(), address.peer(), socket.udp().source(address)), kept, request)
        });
        kept.collect()
    }

    /// Who observed by way of this socket before a restart is notified further, as far as there is room and that may still be.
    pub(crate) fn observe_again(&mut self, all: &[Observing]) {
        let now = self.clock.now();
        for observing in all {
            let Some(socket) = self.sockets.first() else { return };
            if socket.local() != observing.socket {
                continue;
            }
            let address = socket.udp().way_from(observing.own, observing.peer);
            self.choose_controller(now, 0, address);
            let (Some(Serving { dispatcher, .. }), [socket, ..]) = (&mut self.server, &mut self.sockets[..]) else {
                return;
            };
            let Ok(message) = Message::parse(&observing.request) else { continue };
            let mut request = Request::of(&message, message.payload().into(), observing.peer, Transport::Udp);
            let by_context = observing.kept.context().and_then(|id| self.settings.protecting.identity(id));
            request.identify(Transport::Udp, by_context);
            if observing.kept.is_validated() {
                request.prove();
            }
            if let Some(observed) = dispatcher.observes_again(request)
                && let Some(observer) = socket.stack.observes_again(now, address, &observing.kept, &message)
            {
                dispatcher.observe(observer, observed);
            }
        }
    }
}
