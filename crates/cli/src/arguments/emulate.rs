//! Flags of the emulator: what its verbs have in common, and the relay's.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::LogFormat;
use crate::values;

/// A path in real time: which, with what random numbers, and how it is told.
#[derive(Clone, Debug, Args)]
pub struct OverPath {
    /// A profile's name, such as nbiot-anrw18, or a TOML file with the sections uplink and downlink, or path.
    #[arg(value_name = "PATH")]
    pub path: String,
    /// What jitter and losses are drawn from: with the same seed and the same packets it is the simulator's.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// The run is not valid if 1 % of the packets are later than this, or one five times as late [by the path's rate:
    /// 1ms up to 60 kbit/s, 0.1ms from 600 kbit/s on].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub lateness: Option<Duration>,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the outcome into this folder as report.json; the program that comes with Python also as Parquet, in the
    /// simulator's tables links and flows.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show nothing while it runs and nothing after it but what went wrong.
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

/// A relay of UDP.
#[derive(Clone, Debug, Args)]
pub struct Relay {
    /// The path and how it is told.
    #[command(flatten)]
    pub over: OverPath,
    /// Where clients reach the relay; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::values::address_and_port)]
    pub listen: SocketAddr,
    /// Where the server is.
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,
    /// The most clients at a time; one that is silent for 5 minutes is forgotten. Each takes an open file, whose limit is
    /// raised as far as the system lets it (ulimit -Hn), and a port: 64512 of each address of --from.
    #[arg(long, default_value_t = millpond_emulate::MOST_CLIENTS, value_name = "N", value_parser = clients)]
    pub clients: usize,
    /// Reach the server from this address of this machine; may be repeated, for more ports [one that the system chooses; to
    /// a server at 127.0.0.1 on Linux 64 of 127.0.0.0/8].
    #[arg(long, value_name = "ADDRESS")]
    pub from: Vec<IpAddr>,
    /// Before a server that answers every copy of a request: hold back copies whose answers are on their way, as a
    /// calm server does. Nothing is answered here, no key is needed, and within DTLS nothing can be held back. PATH may be
    /// `none`: a gateway without a link.
    #[arg(long)]
    pub calm: bool,
    /// Drop a copy of a message while the one before it waits in the queue that it would come to: what a gateway on the
    /// devices' side of a narrow uplink can do, with PATH a little narrower than the link behind it.
    #[arg(long)]
    pub withhold: bool,
    /// Metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::values::address_and_port)]
    pub metrics: Option<SocketAddr>,
    /// Log on standard error each client that comes and goes, and once a minute what was dropped: as text or json [only
    /// when there is no room].
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, conflicts_with = "quiet")]
    pub log: Option<LogFormat>,
    /// End after this long [when it is stopped].
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
}

fn clients(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1_000_000) => Ok(count),
        _ => Err("between 1 and 1000000".to_owned()),
    }
}

/// Programs behind a path.
#[derive(Clone, Debug, Args)]
#[command(group = clap::ArgGroup::new("inside").required(true).args(["command", "shell"]))]
pub struct Emulate {
    /// The path and how it is told.
    #[command(flatten)]
    pub over: OverPath,
    /// What runs at the server's end, as a line for the shell. The command waits until it has a socket.
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// A shell behind the link.
    #[arg(long, conflicts_with = "devices")]
    pub shell: bool,
    /// So many devices share the path; each runs the command, with its number in MILLPOND_DEVICE.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub devices: u16,
    /// The longest packet; below 1280 B there is no IPv6 [the path's mtu, or 1500].
    #[arg(long, value_name = "BYTES", value_parser = mtu)]
    pub mtu: Option<u32>,
    /// Write every packet to this file, at both ends, for Wireshark (pcapng).
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// What runs behind the link.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn mtu(text: &str) -> Result<u32, String> {
    match values::size(text).ok().and_then(|bytes| u32::try_from(bytes).ok()) {
        Some(bytes @ 68..=65_535) => Ok(bytes),
        _ => Err("between 68 B, the least of IPv4, and 65535 B".to_owned()),
    }
}
