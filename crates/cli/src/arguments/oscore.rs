//! Flags of the verb that makes security contexts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use millpond_coap::oscore::Algorithm;
use millpond_live::Authority;

use crate::oscore;
use crate::values;

/// What to do with security contexts of OSCORE.
#[derive(Debug, Subcommand)]
pub enum Contexts {
    /// Make a pair of files, for a client and its server, with a new random secret, or with keys to agree upon secrets.
    New(NewContexts),
}

/// A pair of new contexts.
#[derive(Debug, Args)]
pub struct NewContexts {
    /// The file of the client; it must not be there.
    #[arg(default_value = "client.oscore")]
    pub client: PathBuf,
    /// The file of the server; it must not be there.
    #[arg(default_value = "server.oscore")]
    pub server: PathBuf,
    /// The client asks this server alone under it, so that it can be given several files [any server].
    #[arg(long = "server", value_name = "HOST[:PORT]")]
    pub asked: Option<Authority>,
    /// Credentials with new keys instead, by which the two agree upon a context whenever the client begins (EDHOC, RFC 9528).
    #[arg(long, conflicts_with_all = ["derive_anew", "algorithm", "client_id", "server_id"])]
    pub edhoc: bool,
    /// Both sides derive keys anew from the secret whenever one of them begins (RFC 8613 Appendix B.2); copies do no harm then.
    #[arg(long)]
    pub derive_anew: bool,
    /// How messages are encrypted, by the name in COSE.
    #[arg(long, value_name = "NAME", default_value = Algorithm::AesCcm16_64_128.name(), value_parser = oscore::algorithm)]
    pub algorithm: Algorithm,
    /// ID of the client, which every request names, in hexadecimal digits [two random bytes].
    #[arg(long, value_name = "HEX", value_parser = values::hex)]
    pub client_id: Option<Bytes>,
    /// ID of the server, in hexadecimal digits.
    #[arg(long, value_name = "HEX", default_value = "", value_parser = values::hex)]
    pub server_id: Bytes,
}

/// One value of several bytes, and not several values.
type Bytes = Vec<u8>;
