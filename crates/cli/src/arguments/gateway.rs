//! Flags of the gateway.

use std::path::PathBuf;

use clap::Args;

use super::LogFormat;

/// A gateway by a file.
#[derive(Debug, Args)]
pub struct Gateway {
    /// What it does.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Read the file, say what is wrong with it, and end.
    #[arg(long)]
    pub check: bool,
    /// A security context of OSCORE (RFC 8613), made by `millpond oscore new`: with `server` in it for what the gateway asks there, else for a
    /// client of the gateway, or credentials that agree upon contexts with clients (EDHOC). May be repeated.
    #[arg(long, value_name = "FILE")]
    pub oscore: Vec<PathBuf>,
    /// Write no line for each request.
    #[arg(long, short)]
    pub quiet: bool,
    /// How requests are logged on standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, conflicts_with = "quiet")]
    pub log: LogFormat,
}
