//! Flags of discovery.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::{content_format, values};

/// Who is there?
#[derive(Debug, Args)]
pub struct Discover {
    /// Whom to ask: a group or host, or a URI; all CoAP nodes of IPv6 are ff02::fd%INTERFACE.
    #[arg(value_name = "GROUP|HOST|URI", default_value = "224.0.1.187")]
    pub group: String,
    /// Take answers for this long [5 s in which servers spread them, and 2 s].
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    pub period: Option<Duration>,
    /// Ask by this network interface, given by name, number or IPv4 address.
    #[arg(long, short, value_name = "INTERFACE")]
    pub interface: Option<String>,
    /// How far the request goes; 1 stays on the link.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub hops: u8,
    /// Content-Format wanted, by name or number.
    #[arg(long, short, value_name = "FORMAT", value_parser = content_format::parse)]
    pub accept: Option<u16>,
    /// Size of blocks of answers: 16, 32, 64, 128, 256, 512 or 1024 bytes.
    #[arg(long, short, value_name = "BYTES", value_parser = values::block_size)]
    pub block_size: Option<u16>,
    /// Protect what one host is asked by the security context in this file (OSCORE, RFC 8613), or by one that its credentials agree upon
    /// (EDHOC). May be repeated, for a server each.
    #[arg(long, value_name = "FILE")]
    pub oscore: Vec<PathBuf>,
    /// Print each answer as JSON, with its links taken apart.
    #[arg(long)]
    pub json: bool,
    /// Tell each transmission as it happens.
    #[arg(long)]
    pub trace: bool,
    /// What secure sessions with a host are made with.
    #[command(flatten)]
    pub credentials: super::ClientCredentials,
}
