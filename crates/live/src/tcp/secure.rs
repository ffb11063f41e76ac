//! TLS below the frames (RFC 8323 §8.2 and §9.1): versions 1.2 and 1.3, by certificates.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
pub(crate) use rustls::ClientConfig;
use rustls::{CommonState, ServerConfig, sign::SingleCertAndKey};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
pub(crate) use tokio_rustls::TlsAcceptor;
use tokio_rustls::{TlsConnector as Connector, client, server};

use crate::{
    ClientSecurity, DEFAULT_SECURE_PORT, Error, Host, PeerIdentity, ServerSecurity, Why,
    security::{Other, algorithms, name_of, words},
};

/// What both sides name in ALPN (RFC 8323 §11.7).
const PROTOCOL: &[u8] = b"coap";

/// How a client makes sessions.
pub(crate) fn client_config(security: &ClientSecurity) -> Result<Arc<ClientConfig>, Error> {
    client_config_for(security, PROTOCOL)
}

fn client_config_for(security: &ClientSecurity, protocol: &[u8]) -> Result<Arc<ClientConfig>, Error> {
    if security.has_pre_shared_key_alone() {
        let reason = "coaps+tcp and https go by certificates, and there is only a pre-shared key, which is for coaps; \
             give certificates to trust, or ask by coaps";
        return Err(Error::Setting { name: "security", reason: reason.into() });
    }
    let config = ClientConfig::builder_with_provider(Arc::clone(algorithms())).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unusable(&error))?.dangerous();
    let config = config.with_custom_certificate_verifier(security.verifier()?);
    let mut config = match security.own_certificate() {
        Some(own) => config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own.certified())))),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

/// How a server makes sessions.
pub(crate) fn acceptor(security: &ServerSecurity) -> Result<TlsAcceptor, Error> {
    acceptor_for(security, PROTOCOL)
}

fn acceptor_for(security: &ServerSecurity, protocol: &[u8]) -> Result<TlsAcceptor, Error> {
    let Some(own) = security.own_certificate() else {
        let reason = "coaps+tcp needs a certificate and its key; give them to ServerSecurity::certificate".into();
        return Err(Error::Setting { name: "bind_tls", reason });
    };
    let config = ServerConfig::builder_with_provider(Arc::clone(algorithms())).with_safe_default_protocol_versions();
    let config = config.map_err(|error| unusable(&error))?;
    let config = match security.client_verifier()? {
        Some(verifier) => config.with_client_cert_verifier(verifier),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own.certified()))));
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(error: &rustls::Error) -> Error {
    Error::Setting { name: "security", reason: error.to_string() }
}

/// Sessions of TLS over which another protocol than CoAP is spoken, with what a client has.
#[derive(Clone)]
pub struct TlsConnector(Arc<ClientConfig>);

impl std::fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsConnector").finish_non_exhaustive()
    }
}

impl TlsConnector {
    /// Sessions in which this protocol is named by ALPN.
    ///
    /// # Errors
    /// What the client has is not enough, or cannot be used.
    pub fn new(security: &ClientSecurity, protocol: &[u8]) -> Result<Self, Error> {
        client_config_for(security, protocol).map(Self)
    }

    /// A session over a connection to this peer, which must prove to be this host.
    ///
    /// # Errors
    /// There is none, and why.
    pub async fn connect(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        host: &Host,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, Error> {
        let connecting = Connector::from(Arc::clone(&self.0)).connect(name_of(host)?, stream);
        connecting.await.map_err(|error| Error::insecure(peer, why(error, Other::Server)))
    }
}

/// Sessions of TLS over which another protocol than CoAP is spoken, with what a server has.
#[derive(Clone)]
pub struct TlsListener(TlsAcceptor);

impl std::fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsListener").finish_non_exhaustive()
    }
}

impl TlsListener {
    /// Sessions in which this protocol is named by ALPN.
    ///
    /// # Errors
    /// What the server has is not enough, or cannot be used.
    pub fn new(security: &ServerSecurity, protocol: &[u8]) -> Result<Self, Error> {
        acceptor_for(security, protocol).map(Self)
    }

    /// A session over a connection that somebody has opened.
    ///
    /// # Errors
    /// There is none.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.accept(stream).await
    }
}

/// A client's session over a connection, and who the server has proved to be, which must be who the URI names. Where the port is not that of the scheme,
/// it must agree to speak CoAP, too (RFC 8323 §8.2).
pub(super) async fn connect(
    config: Arc<ClientConfig>,
    stream: TcpStream,
    peer: SocketAddr,
    host: &Host,
) -> Result<(client::TlsStream<TcpStream>, Option<PeerIdentity>), Error> {
    let stream = Connector::from(config)
        .connect(name_of(host)?, stream)
        .await
        .map_err(|error| Error::insecure(peer, why(error, Other::Server)))?;
    let agreed = stream.get_ref().1.alpn_protocol();
    if agreed != Some(PROTOCOL) && peer.port() != DEFAULT_SECURE_PORT {
        let reason = format!(
            "the server did not agree to speak CoAP (ALPN \"coap\"), as it must on every port but {DEFAULT_SECURE_PORT}"
        );
        return Err(Error::insecure(peer, reason));
    }
    let identity = proved(stream.get_ref().1);
    Ok((stream, identity))
}

/// Who the other side has proved to be.
fn proved(session: &CommonState) -> Option<PeerIdentity> {
    let shown = session.peer_certificates()?;
    Some(PeerIdentity::Certificate(shown.iter().map(|one| Bytes::copy_from_slice(one)).collect()))
}

/// A server's session over a connection, and who the client has proved to be; or why there is none.
pub(super) async fn accept(
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> Result<(server::TlsStream<TcpStream>, Option<PeerIdentity>), String> {
    let stream = match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => stream,
        Err((error, stream)) => {
            say_last(stream).await;
            return Err(why(error, Other::Client).reason);
        }
    };
    let identity = proved(stream.get_ref().1);
    Ok((stream, identity))
}

/// Lets the client read why it was refused: what it sent meanwhile would otherwise reset the connection.
async fn say_last(mut stream: TcpStream) {
    /// How long, and how many reads.
    const PATIENCE: Duration = Duration::from_secs(1);
    const READS: usize = 16;
    let last = async {
        stream.shutdown().await?;
        let mut room = [0; 4_096];
        for _ in 0..READS {
            if stream.read(&mut room).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    // Who does not wait for it has gone.
    let _ = tokio::time::timeout(PATIENCE, last).await;
}

/// Why a session failed, if it was the session and not what is below.
pub(super) fn broken(error: &io::Error, other: Other) -> Option<Why> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(Why::of(words(inner, other), inner.clone()))
}

fn why(error: io::Error, other: Other) -> Why {
    broken(&error, other).unwrap_or_else(|| match (error.kind(), other) {
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset, Other::Server) => {
            Why::of("the server closed the connection during the handshake; does it speak TLS on this port?", error)
        }
        (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset, Other::Client) => {
            Why::of("the client closed the connection during the handshake", error)
        }
        _ => Why::said_by(error),
    })
}
