//! In place of TLS where it is not compiled in: the same calls, and no session ever.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::net::TcpStream;

use crate::{
    Error, Host, PeerIdentity, Transport, Why,
    security::{ClientSecurity, Other, ServerSecurity},
};

/// How a client makes sessions: not at all.
#[derive(Debug)]
pub(crate) enum ClientConfig {}

/// How a server makes sessions: not at all.
#[derive(Clone, Debug)]
pub(crate) enum TlsAcceptor {}

pub(crate) fn client_config(_: &ClientSecurity) -> Result<Arc<ClientConfig>, Error> {
    Err(Error::not_built(Transport::Tls))
}

pub(crate) fn acceptor(_: &ServerSecurity) -> Result<TlsAcceptor, Error> {
    Err(Error::not_built(Transport::Tls))
}

pub(super) async fn connect(
    config: Arc<ClientConfig>,
    _: TcpStream,
    _: SocketAddr,
    _: &Host,
) -> Result<(TcpStream, Option<PeerIdentity>), Error> {
    match *config {}
}

pub(super) async fn accept(acceptor: TlsAcceptor, _: TcpStream) -> Result<(TcpStream, Option<PeerIdentity>), String> {
    match acceptor {}
}

pub(super) const fn broken(_: &io::Error, _: Other) -> Option<Why> {
    None
}
