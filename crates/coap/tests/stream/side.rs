//! Two connections that talk, and what they told.

use millpond_coap::message::Code;
use millpond_coap::stream::{Closing, Connection, Options, Settings, Signal};
use millpond_coap::{Event, ExchangeId, Failure, Output, RequestId};
use millpond_control::{Instant, Span};

/// What a connection told, without what it borrows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Request(RequestId, Code, Vec<u8>),
    /// The last is whether no further one will come.
    Response(ExchangeId, Code, Vec<u8>, bool),
    Failed(ExchangeId, Failure),
    Unobserved(RequestId),
    Settings(Settings),
    Pong(bool),
    PongMissing,
    Released(Option<Vec<u8>>, Option<u32>),
    Aborted(Vec<u8>),
    Unasked(Code),
    Left(ExchangeId),
    TokenFree,
    Close(Closing),
}

/// Drains a connection: what it sends, and what it tells.
pub(crate) fn drain(connection: &mut Connection, now: Instant) -> (Vec<u8>, Vec<Told>) {
    let (mut sent, mut told) = (Vec::new(), Vec::new());
    loop {
        let (open, settings) = (connection.requests(), connection.settings());
        let mut event = match connection.poll(now) {
            Output::Transmit(transmit) => {
                sent.extend_from_slice(transmit.bytes);
                continue;
            }
            Output::Sleep(..) | Output::Idle => return (sent, told),
            Output::Close(why) => Told::Close(why),
            Output::Event(event) => match event {
                Event::Request { id, message, .. } => Told::Request(id, message.code, message.payload().to_vec()),
                Event::Response { exchange, message, .. } | Event::AdditionalResponse { exchange, message, .. } => {
                    Told::Response(exchange, message.code, message.payload().to_vec(), false)
                }
                Event::Failed { exchange, why, .. } => Told::Failed(exchange, why),
                Event::Unobserved { request } => Told::Unobserved(request),
                Event::Signal(Signal::Csm { .. }) => Told::Settings(settings),
                Event::Signal(Signal::Pong { custody }) => Told::Pong(custody),
                Event::Signal(Signal::Release { alternative, hold_off }) => {
                    Told::Released(alternative.map(<[u8]>::to_vec), hold_off)
                }
                Event::Signal(Signal::Abort { diagnostic, .. }) => Told::Aborted(diagnostic.to_vec()),
                Event::PongMissing => Told::PongMissing,
                Event::Unasked { message, .. } => Told::Unasked(message.code),
                Event::Left { exchange } => Told::Left(exchange),
                Event::TokenFree => Told::TokenFree,
                other => panic!("{other:?}"),
            },
        };
        match &mut event {
            Told::Response(.., is_last) => *is_last = connection.requests() < open,
            Told::Settings(told) => *told = connection.settings(),
            _ => {}
        }
        told.push(event);
    }
}

/// A client and a server that have told each other their settings.
pub(crate) struct Both {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) now: Instant,
}

impl Both {
    pub(crate) fn new() -> Self {
        Self::with(Options::default(), Options::default())
    }

    pub(crate) fn with(client: Options, server: Options) -> Self {
        let mut both = Self { client: Connection::new(client), server: Connection::new(server), now: Instant::ORIGIN };
        let (client_told, server_told) = both.exchange();
        assert!(matches!(client_told[..], [Told::Settings(_)]), "{client_told:?}");
        assert!(matches!(server_told[..], [Told::Settings(_)]), "{server_told:?}");
        both
    }

    /// Carries bytes to and fro until there are none. Gives what client and server told.
    pub(crate) fn exchange(&mut self) -> (Vec<Told>, Vec<Told>) {
        let (mut client_told, mut server_told) = (Vec::new(), Vec::new());
        loop {
            let (up, told) = drain(&mut self.client, self.now);
            client_told.extend(told);
            self.server.receive(self.now, &up);
            let (down, told) = drain(&mut self.server, self.now);
            server_told.extend(told);
            self.client.receive(self.now, &down);
            if up.is_empty() && down.is_empty() {
                return (client_told, server_told);
            }
        }
    }

    pub(crate) fn later(&mut self, seconds: u32) {
        self.now = self.now.after(Span::from_secs(seconds));
    }
}

/// The only request among what was told.
pub(crate) fn asked(told: &[Told]) -> RequestId {
    match told {
        [Told::Request(id, ..)] => *id,
        other => panic!("{other:?}"),
    }
}
