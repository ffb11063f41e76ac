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
    /// Write no line for each request.
    #[arg(long, short)]
    pub quiet: bool,
    /// How requests are logged on standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, conflicts_with = "quiet")]
    pub log: LogFormat,
}
