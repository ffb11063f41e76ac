//! Sessions of the generator's clients under DTLS, by one key and RFC 7252's cipher suite.

use std::{io, sync::Arc, time::Instant};

use dimpl::{Config, Dtls, Output, PskResolver, crypto::Dtls12CipherSuite};

/// What clients call themselves.
pub(crate) const IDENTITY: &str = "sensor";
/// What they and the servers know.
pub(crate) const KEY: &str = "secretPSK";

struct OneKey;

impl PskResolver for OneKey {
    fn resolve(&self, _: &[u8]) -> Option<Vec<u8>> {
        Some(KEY.into())
    }
}

/// One session for each client.
pub(crate) struct Sessions {
    config: Arc<Config>,
    all: Vec<Option<Session>>,
    room: Vec<u8>,
}

struct Session {
    engine: Dtls,
    is_established: bool,
}

/// What a datagram brought.
#[derive(Default)]
pub(crate) struct Came {
    /// To be sent.
    pub(crate) datagrams: Vec<Vec<u8>>,
    /// What was protected.
    pub(crate) plain: Vec<Vec<u8>>,
    /// The handshake is over.
    pub(crate) is_new: bool,
}

impl Sessions {
    pub(crate) fn of(clients: usize) -> io::Result<Self> {
        let config = Config::builder()
            .dtls12_cipher_suites(&[Dtls12CipherSuite::PSK_AES128_CCM_8])
            .dtls13_cipher_suites(&[])
            .with_psk_client(IDENTITY.into(), Arc::new(OneKey))
            .build()
            .map_err(io::Error::other)?;
        let all = (0..clients).map(|_| None).collect();
        Ok(Self { config: Arc::new(config), all, room: vec![0; 2_048] })
    }

    /// What a client has to send: this under its session, or the first datagram of a handshake if it has none.
    pub(crate) fn protect(&mut self, client: usize, contents: &[u8], now: Instant) -> io::Result<Vec<Vec<u8>>> {
        let Some(place) = self.all.get_mut(client) else { return Ok(Vec::new()) };
        let told = match place {
            Some(Session { engine, is_established: true }) => engine.send_application_data(contents).map(drop),
            _ => {
                let mut engine = Dtls::new_12_psk(Arc::clone(&self.config), now);
                engine.set_active(true);
                let session = place.insert(Session { engine, is_established: false });
                session.engine.handle_timeout(now)
            }
        };
        told.map_err(io::Error::other)?;
        Ok(self.outputs(client).datagrams)
    }

    /// A datagram came for a client.
    pub(crate) fn receive(&mut self, client: usize, datagram: &[u8]) -> Came {
        if let Some(place) = self.all.get_mut(client) {
            // Who fails begins anew.
            if place.as_mut().is_some_and(|session| session.engine.handle_packet(datagram).is_err()) {
                *place = None;
            }
        }
        self.outputs(client)
    }

    fn outputs(&mut self, client: usize) -> Came {
        let mut came = Came::default();
        let Some(Some(session)) = self.all.get_mut(client) else { return came };
        loop {
            match session.engine.poll_output(&mut self.room) {
                Output::BufferTooSmall { needed } => self.room.resize(needed, 0),
                Output::Packet(datagram) => came.datagrams.push(datagram.to_vec()),
                Output::ApplicationData(plain) => came.plain.push(plain.to_vec()),
                Output::Connected => (session.is_established, came.is_new) = (true, true),
                Output::Timeout(_) => return came,
                _ => {}
            }
        }
    }
}
