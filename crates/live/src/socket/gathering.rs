//! Groups whose answers a client is gathering.

use std::net::SocketAddr;

use millpond_control::Instant;

use super::SocketTask;
use crate::{
    Error, NotSent, Response,
    client::{GroupRequestSpec, GroupSender, RequestNumber},
    clock::span,
    transfer::{ClientRequest, GroupId},
    udp::Address,
};

/// A group that was asked.
#[derive(Debug)]
struct Gathering {
    number: RequestNumber,
    socket: usize,
    id: GroupId,
    group: SocketAddr,
    answers: GroupSender,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Gatherings {
    all: Vec<Gathering>,
}

impl Gatherings {
    /// A member has answered, or its answer could not be fetched.
    pub(crate) fn tell(&self, socket: usize, id: GroupId, answer: Result<Response, Error>) {
        if let Some(gathering) = self.all.iter().find(|gathering| gathering.socket == socket && gathering.id == id) {
            gathering.answers.send(answer);
        }
    }

    /// Bytes of answers that nobody has taken yet.
    pub(crate) fn memory(&self) -> usize {
        self.all.iter().map(|gathering| gathering.answers.bytes()).sum()
    }

    /// All answers were told: the stream ends.
    pub(crate) fn end(&mut self, socket: usize, id: GroupId) {
        self.all.retain(|gathering| gathering.socket != socket || gathering.id != id);
    }
}

impl SocketTask {
    /// A group is to be asked.
    pub(super) fn gather(&mut self, now: Instant, spec: GroupRequestSpec) {
        let answers = spec.answers.clone();
        if let Err(error) = self.request_group(now, spec) {
            answers.send(Err(error));
        }
    }

    fn request_group(&mut self, now: Instant, spec: GroupRequestSpec) -> Result<(), Error> {
        if self.factory.is_none() {
            let reason = "a client on a server's socket asks no groups; use a client of its own";
            return Err(Error::refused(NotSent::Combination, reason));
        }
        let GroupRequestSpec { number, group, method, options, payload, block, longest, period, answers } = spec;
        let at = self.socket_for(group)?;
        if let Some(socket) = self.sockets.get(at) {
            socket.udp().send_to_groups(self.settings.multicast_interface.as_ref(), self.settings.multicast_hops)?;
        }
        let asked = options.lend(|options| {
            let ask = ClientRequest { body: &payload, early: block, longest, ..ClientRequest::new(method, options) };
            // What it says is told before it is known whose it is; nothing that concerns an answer is among it.
            self.on_stack(at, now, |stack| stack.request_group(now, Address::of(group), &ask, span(period)))
        });
        let id = asked.ok_or(Error::Closed)?.map_err(Error::not_sent)?;
        self.events.requests.gatherings.all.push(Gathering { number, socket: at, id, group, answers });
        Ok(())
    }

    /// Nobody wants the answers any more.
    pub(super) fn stop_gathering(&mut self, now: Instant, number: RequestNumber) {
        let all = &mut self.events.requests.gatherings.all;
        let Some(place) = all.iter().position(|gathering| gathering.number == number) else { return };
        let Gathering { socket, id, .. } = all.swap_remove(place);
        self.on_stack(socket, now, |stack| stack.cancel_group(now, id));
    }

    /// Everything is cancelled.
    pub(super) fn stop_all_gathering(&mut self, now: Instant) {
        while let Some(gathering) = self.events.requests.gatherings.all.pop() {
            self.on_stack(gathering.socket, now, |stack| stack.cancel_group(now, gathering.id));
        }
    }

    /// The system did not take a datagram for a group: who waits for its answers is told.
    pub(super) fn group_is_out_of_reach(&mut self, now: Instant, group: SocketAddr, reason: &str) {
        let reached = |gathering: &Gathering| gathering.group != group;
        while let Some(place) = self.events.requests.gatherings.all.iter().position(|gathering| !reached(gathering)) {
            let Gathering { socket, id, answers, .. } = self.events.requests.gatherings.all.swap_remove(place);
            let reason = format!("{group} was not asked: {reason}; name the interface by which it is reached");
            answers.send(Err(Error::refused(NotSent::Destination, reason)));
            self.on_stack(socket, now, |stack| stack.cancel_group(now, id));
        }
    }
}
