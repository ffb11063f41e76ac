//! Flags of the load generator.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use millpond_live::{Code, ControllerChoice, Uri};

use super::{ClientCredentials, Repeating};
use crate::values;

/// Requests at a server, many and measured.
#[derive(Debug, Args)]
pub struct Load {
    /// What is asked for: coap://HOST:PORT/PATH?QUERY, coap+tcp://… or coaps+tcp://…; the port may be left out.
    #[arg(value_parser = values::uri)]
    pub uri: Uri,
    /// Clients, each with a port and congestion control of its own.
    #[arg(long, short = 'n', default_value_t = 1, value_name = "N", value_parser = clients)]
    pub clients: usize,
    /// Open loop: this many requests a second together, answered or not [closed loop: each client asks again when it
    /// was answered].
    #[arg(long, value_name = "R/s", value_parser = values::rate, allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Open loop: reach the rate evenly over this time.
    #[arg(long, value_name = "TIME", value_parser = values::duration, requires = "rate")]
    pub ramp: Option<Duration>,
    /// Ask for this long [10s, unless --count or --count-each is given].
    #[arg(long, short, value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// Ask this many times, all clients together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Closed loop: ask this many times with each client.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["count", "rate"])]
    pub count_each: Option<u64>,
    /// The method: get, put, post or fetch.
    #[arg(long, short, value_enum, default_value_t = Method::Get, hide_possible_values = true)]
    pub method: Method,
    /// Bytes of payload in each request.
    #[arg(long, default_value = "0", value_name = "BYTES", value_parser = values::size)]
    pub payload_size: usize,
    /// Non-confirmable requests.
    #[arg(long)]
    pub non: bool,
    /// Give up a request after this long [when the controller does; a non-confirmable one after 5s].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Congestion control.
    #[arg(long, short, value_name = "NAME", value_parser = super::request::controller, conflicts_with = "compare",
        help = super::defaults::controller_help(""))]
    pub controller: Option<ControllerChoice>,
    /// The same load with each of these controllers, one after the other, side by side.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = super::request::controller)]
    pub compare: Vec<ControllerChoice>,
    /// Run the load so many times, and tell each: what differs between equal runs shows what a difference is worth.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub runs: u16,
    /// Requests that one client may have open at a time (NSTART).
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub nstart: u16,
    /// Copies and their timer.
    #[command(flatten)]
    pub repeating: Repeating,
    /// Tell each transmission of every client as it happens.
    #[arg(long)]
    pub trace: bool,
    /// Print the figures as JSON and nothing else; `millpond compare A.json B.json` puts two of them side by side.
    #[arg(long)]
    pub json: bool,
    /// Protect requests and answers by the security context in this file (OSCORE, RFC 8613), or by one that its credentials agree upon (EDHOC):
    /// of one client, whose it is. May be repeated, for a server each.
    #[arg(long, value_name = "FILE")]
    pub oscore: Vec<PathBuf>,
    /// What secure sessions are made with.
    #[command(flatten)]
    pub credentials: ClientCredentials,
}

/// What the load generator asks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// GET.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// FETCH.
    Fetch,
}

impl Method {
    /// Its code in a message.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Get => Code::GET,
            Self::Put => Code::PUT,
            Self::Post => Code::POST,
            Self::Fetch => Code::FETCH,
        }
    }
}

fn clients(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=20_000) => Ok(count),
        _ => Err("between 1 and 20000".to_owned()),
    }
}
