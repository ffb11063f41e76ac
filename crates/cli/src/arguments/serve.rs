//! Flags of the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use millpond_live::{ControllerChoice, Interface, IpNet};

use super::ServerCredentials;

/// A server of files.
#[derive(Debug, Args)]
pub struct Serve {
    /// The directory whose files are served, up to 16 MiB each; nothing above it is reachable; without it, none.
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Let clients change files: PUT, POST and DELETE.
    #[arg(long, requires = "directory")]
    pub write: bool,
    /// Serve the files and nothing beside them.
    #[arg(long, requires = "directory")]
    pub only_files: bool,
    /// Where to listen: ADDRESS, ADDRESS:PORT, or PORT of this machine alone; :: is all addresses, 0.0.0.0 all of IPv4;
    /// may be repeated [this machine alone; all addresses with --multicast and --join].
    #[arg(long, value_name = "ADDRESS", value_parser = place)]
    pub bind: Vec<Place>,
    /// The port where --bind names none.
    #[arg(long, short, value_name = "PORT", help = "The port where --bind names none; 0 takes a free one [5683]")]
    pub port: Option<u16>,
    /// Listen for coap+tcp as well, at the same addresses and port.
    #[arg(long)]
    pub tcp: bool,
    /// Join the groups of all CoAP nodes: 224.0.1.187, ff02::fd and ff05::fd, where there are such.
    #[arg(long)]
    pub multicast: bool,
    /// The network interface of groups that name none, by name, number or IPv4 address.
    #[arg(long, value_name = "INTERFACE")]
    pub interface: Option<String>,
    /// Answer what is sent to this group, too; may be repeated.
    #[arg(long, value_name = "GROUP[%INTERFACE]", value_parser = group)]
    pub join: Vec<Group>,
    /// Print unsolicited messages, each as JSON: responses to no request, which are acknowledged, and requests with a code
    /// that is no method, by which some devices report to groups.
    #[arg(long, conflicts_with = "write")]
    pub unasked: bool,
    /// Over how long answers to groups are spread.
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = crate::values::duration)]
    pub leisure: std::time::Duration,
    /// Sockets that share each port, each with a task of its own.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = workers)]
    pub workers: usize,
    /// Congestion control.
    #[arg(long, short, value_name = "NAME", value_parser = super::request::controller,
        help = super::defaults::controller_help(" of separate responses and notifications"))]
    pub controller: Option<ControllerChoice>,
    /// Do not answer copies of requests while the answers are still in the queue of a slow link.
    #[arg(long)]
    pub calm: bool,
    /// Let long bodies travel in bursts to and from clients that ask for it (RFC 9177).
    #[arg(long)]
    pub q_block: bool,
    /// Serve only what the security context in this file protects (OSCORE, RFC 8613), or contexts that its credentials agree upon
    /// (EDHOC); `millpond oscore new` makes either. May be repeated, for a client each.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["q_block", "unasked"])]
    pub oscore: Vec<std::path::PathBuf>,
    /// Go on after a restart: keep who observes over UDP, and the round trips, in this file.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Take datagrams of up to this size; a request in a longer one is answered with 4.13 [1452 bytes].
    #[arg(long, value_name = "SIZE", value_parser = crate::values::datagram)]
    pub max_datagram: Option<u16>,
    /// Take tokens of up to this length (RFC 8974) [8 bytes].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(8..=65_000))]
    pub longest_token: Option<u16>,
    /// A trusted network, which gets long answers at once; may be repeated.
    #[arg(long, value_name = "NETWORK", value_parser = crate::values::network)]
    pub trust: Vec<IpNet>,
    /// Metrics for Prometheus at http://ADDRESS/metrics.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::values::address_and_port)]
    pub metrics: Option<SocketAddr>,
    /// How many peers have metrics of their own, of those that are validated.
    #[arg(long, default_value_t = 100, value_name = "N", requires = "metrics")]
    pub metrics_peers: usize,
    /// Tell each transmission as it happens.
    #[arg(long)]
    pub trace: bool,
    /// How requests are told on standard error, a line for each: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true, conflicts_with = "quiet")]
    pub log: LogFormat,
    /// Do not tell requests as they come.
    #[arg(long, short)]
    pub quiet: bool,
    /// What secure sessions are made with.
    #[command(flatten)]
    pub credentials: ServerCredentials,
}

impl Serve {
    /// The port in the clear where none is named with an address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(millpond_live::DEFAULT_PORT)
    }

    /// It is to answer what is sent to a group.
    #[must_use]
    pub fn is_in_groups(&self) -> bool {
        self.multicast || !self.join.is_empty()
    }
}

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: an object on each line.
    Json,
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address.
    pub address: IpAddr,
    /// The port, if it was named with the address.
    pub port: Option<u16>,
}

impl Place {
    /// At this address.
    #[must_use]
    pub const fn at(address: IpAddr) -> Self {
        Self { address, port: None }
    }
}

fn place(text: &str) -> Result<Place, String> {
    if let Ok(port) = text.parse() {
        return Ok(Place { address: Ipv4Addr::LOCALHOST.into(), port: Some(port) });
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Place { address: address.ip().to_canonical(), port: Some(address.port()) });
    }
    let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address: IpAddr =
        unbracketed.parse().map_err(|_| "neither address nor port, like 0.0.0.0, [::1]:5683 or 5683")?;
    // An address of IPv4 in the form of IPv6 cannot be bound by a socket of IPv6 alone.
    Ok(Place::at(address.to_canonical()))
}

/// A group that is to be joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its address.
    pub address: IpAddr,
    /// By which interface.
    pub interface: Option<Interface>,
}

fn group(text: &str) -> Result<Group, String> {
    let (address, interface) = match text.split_once('%') {
        Some((address, interface)) => (address, Some(Interface::from(interface))),
        None => (text, None),
    };
    let unbracketed = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    match unbracketed.parse::<IpAddr>() {
        Ok(address) if address.is_multicast() => Ok(Group { address, interface }),
        Ok(_) => Err("no group; one begins with 224 to 239, or with ff".to_owned()),
        Err(_) => Err("no address; a group is an address, like 224.0.1.187 or ff02::fd%eth0".to_owned()),
    }
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=256) => Ok(count),
        _ => Err("between 1 and 256".to_owned()),
    }
}
