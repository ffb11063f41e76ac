//! In place of DTLS where it is not compiled in: the same calls, and no session ever.

use std::{convert::Infallible, ops::Range, sync::Arc};

use millpond_control::Instant;

#[path = "session_event.rs"]
mod session_event;

pub(crate) use session_event::{Link, SessionChange, SessionEvent};

use crate::{
    Error, PeerIdentity, Stats, Transport,
    security::{ClientSecurity, ServerName, ServerSecurity},
    udp::{Address, Outbox},
};

/// A client's, or a server's: there are none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    Client(ClientKeys),
    Server(ServerKeys),
}

/// A client's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientKeys {}

/// A server's.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServerKeys {}

impl ClientKeys {
    pub(crate) fn new(_: &ClientSecurity) -> Result<Self, Error> {
        Err(Error::not_built(Transport::Dtls))
    }
}

impl ServerKeys {
    pub(crate) fn new(_: &ServerSecurity) -> Result<Self, Error> {
        Err(Error::not_built(Transport::Dtls))
    }
}

/// All sessions over one socket: there are none.
#[derive(Debug)]
pub(crate) struct Sessions(Infallible);

impl Sessions {
    pub(crate) const fn standard(keys: Keys, _: std::time::Instant) -> Self {
        match keys {
            Keys::Client(keys) => match keys {},
            Keys::Server(keys) => match keys {},
        }
    }

    pub(crate) fn renew(&mut self, _: &ServerSecurity) -> Result<(), Error> {
        match self.0 {}
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        match self.0 {}
    }

    pub(crate) const fn handshakes(&self) -> usize {
        match self.0 {}
    }

    pub(crate) const fn count(&self, _: &mut Stats) {
        match self.0 {}
    }

    pub(crate) const fn identity(&self, _: Address) -> Option<&Arc<PeerIdentity>> {
        match self.0 {}
    }

    pub(crate) const fn inside(&self, _: Address) -> Option<Address> {
        match self.0 {}
    }

    pub(crate) const fn begins(&self) -> bool {
        match self.0 {}
    }

    pub(crate) const fn link(&mut self, _: Instant, _: Address, _: &ServerName) -> Link {
        match self.0 {}
    }

    pub(crate) const fn connect(&mut self, _: Instant, _: Address, _: ServerName, _: &mut Outbox) {
        match self.0 {}
    }

    pub(crate) const fn receive(&mut self, _: Instant, _: Address, _: &[u8], _: &mut Outbox) {
        match self.0 {}
    }

    pub(crate) const fn send(&mut self, _: Instant, _: Address, _: &[u8], _: &mut Outbox) -> bool {
        match self.0 {}
    }

    pub(crate) const fn take(&mut self) -> (Vec<u8>, Vec<(Address, Range<usize>)>) {
        match self.0 {}
    }

    pub(crate) fn give_back(&mut self, _: (Vec<u8>, Vec<(Address, Range<usize>)>)) {
        match self.0 {}
    }

    pub(crate) const fn take_events(&mut self) -> Vec<SessionEvent> {
        match self.0 {}
    }

    pub(crate) const fn wake(&mut self, _: Instant, _: &mut Outbox) {
        match self.0 {}
    }

    pub(crate) const fn cancel_handshake(&mut self, _: Address) -> bool {
        match self.0 {}
    }

    pub(crate) const fn close_all(&mut self, _: Instant, _: &mut Outbox) {
        match self.0 {}
    }
}
