//! Flags for devices that are not as the RFC says.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::Args;
use millpond_live::{ClientBuilder, Host, RequestBuilder, Transport, Uri};

use crate::{failure::Failure, values};

/// How a request differs from what the RFC asks for.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Devices that are not as the RFC says")]
pub struct Tolerance {
    /// Take datagrams of up to this size [1452 bytes].
    #[arg(long, value_name = "SIZE", value_parser = values::datagram)]
    pub max_datagram: Option<u16>,
    /// Ask for all blocks of an answer with one token.
    #[arg(long)]
    pub one_token: bool,
    /// Ask with tokens of this length (RFC 8974).
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(..=65_000), conflicts_with = "token")]
    pub token_length: Option<u16>,
    /// Leave out Uri-Host where the URI names its host.
    #[arg(long)]
    pub no_uri_host: bool,
    /// Ask a peer over TCP that does not begin with its settings (CSM).
    #[arg(long)]
    pub no_csm: bool,
    /// The port to ask from.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..),
        help = "Ask from this port [any]; of a host that is given by its name, over IPv4")]
    pub source_port: Option<u16>,
}

impl Tolerance {
    /// A client that asks so.
    ///
    /// # Errors
    /// A flag that does nothing over this transport.
    pub fn apply(&self, mut builder: ClientBuilder, uri: &Uri) -> Result<ClientBuilder, Failure> {
        let is_datagram = uri.transport().is_datagram();
        if !is_datagram && (self.source_port.is_some() || self.max_datagram.is_some()) {
            let why = "--source-port and --max-datagram are for UDP and DTLS; leave them out";
            return Err(Failure::Usage(why.to_owned()));
        }
        if is_datagram && self.no_csm {
            return Err(Failure::Usage("--no-csm is for TCP and TLS; leave it out".to_owned()));
        }
        if let Some(bytes) = self.max_datagram {
            builder = builder.longest_datagram(bytes);
        }
        if let Some(bytes) = self.token_length {
            builder = builder.token_length(bytes);
        }
        if self.no_csm {
            builder = builder.without_settings();
        }
        if let Some(port) = self.source_port {
            let local = match uri.host() {
                Host::V6(..) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
                Host::V4(_) | Host::Name(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
            };
            builder = match uri.transport() {
                Transport::Dtls => builder.bind_dtls(local),
                _ => builder.bind(local),
            };
        }
        Ok(builder)
    }

    /// A request that is made so.
    pub fn prepare(&self, mut request: RequestBuilder) -> RequestBuilder {
        if self.one_token {
            request = request.one_token();
        }
        if self.no_uri_host {
            request = request.without_uri_host();
        }
        request
    }
}
