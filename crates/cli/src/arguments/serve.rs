//! Flags of the server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use millpond_live::ControllerChoice;

use super::ServerCredentials;

/// A server of files.
#[derive(Debug, Args)]
pub struct Serve {
    /// The directory whose files are served; nothing above it is reachable; without it, none.
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Let clients change files: PUT, POST and DELETE.
    #[arg(long, requires = "directory")]
    pub write: bool,
    /// Serve the files and nothing beside them.
    #[arg(long, requires = "directory")]
    pub only_files: bool,
    /// The address to listen at; may be repeated [all, IPv6 and IPv4].
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Vec<IpAddr>,
    /// The port; 0 takes a free one.
    #[arg(long, short, default_value_t = millpond_live::DEFAULT_PORT, value_name = "PORT")]
    pub port: u16,
    /// Listen for coap+tcp as well, at the same addresses and port.
    #[arg(long)]
    pub tcp: bool,
    /// Sockets that share each port, each with a task of its own.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = workers)]
    pub workers: usize,
    /// Congestion control of separate responses and notifications, any preset.
    #[arg(long, short, value_name = "NAME", value_parser = super::request::controller)]
    pub controller: Option<ControllerChoice>,
    /// Metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
    /// Tell each transmission as it happens.
    #[arg(long)]
    pub trace: bool,
    /// Do not tell requests as they come.
    #[arg(long, short)]
    pub quiet: bool,
    /// What secure sessions are made with.
    #[command(flatten)]
    pub credentials: ServerCredentials,
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=256) => Ok(count),
        _ => Err("between 1 and 256".to_owned()),
    }
}
