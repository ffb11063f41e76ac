//! Flags of the diagnosis.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use millpond_diagnose::Side;

/// A diagnosis of captures.
#[derive(Clone, Debug, Args)]
pub struct Diagnose {
    /// Captures (pcap or pcapng), read one after the other as parts of one; `-` reads standard input.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Where it was captured: at the server, at the devices, or both [found out].
    #[arg(long, value_name = "SIDE", hide_possible_values = true)]
    pub side: Option<Place>,
    /// A port of servers besides 5683; may be repeated.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Report the devices with the most retransmissions, too.
    #[arg(long, conflicts_with = "json")]
    pub devices: bool,
    /// Report how it was over time, too.
    #[arg(long, conflicts_with = "json")]
    pub times: bool,
    /// Print what was found as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write each transmission of a request with its verdict: CSV, or JSON lines if the name ends in .jsonl.
    #[arg(long, value_name = "FILE")]
    pub exchanges: Option<PathBuf>,
    /// Judge nothing, but write a capture that can be given away (pcap): addresses, payloads, paths and queries are
    /// replaced, sizes and times kept.
    #[arg(long, value_name = "OUT", conflicts_with_all = ["json", "exchanges", "devices", "times"])]
    pub anonymise: Option<PathBuf>,
}

/// Where packets were captured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Place {
    /// Beside the server.
    Server,
    /// At the devices or their gateway.
    Devices,
    /// At both ends, as Millpond's own captures.
    Both,
}

impl From<Place> for Side {
    fn from(place: Place) -> Self {
        match place {
            Place::Server => Self::Server,
            Place::Devices => Self::Devices,
            Place::Both => Self::Both,
        }
    }
}
