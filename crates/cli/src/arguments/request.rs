//! Flags of the verbs that ask once or follow.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use millpond_live::{ControllerChoice, NoResponse, Token, Uri};

use super::{ClientCredentials, Repeating, Tolerance, defaults::controller_help};
use crate::content_format;
use crate::values::{self, RawOption};

/// A request without payload: get, delete.
#[derive(Debug, Args)]
pub struct WithoutPayload {
    /// What is asked for: coap://HOST:PORT/PATH?QUERY, coaps://…, coap+tcp://… or coaps+tcp://…; coap:// and the port may
    /// be left out.
    #[arg(value_parser = values::uri)]
    pub uri: Uri,
    /// Write the body to this file, as its bytes are, and nothing to standard output; - is standard output.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["raw", "pretty", "json"])]
    pub output: Option<PathBuf>,
    /// How.
    #[command(flatten)]
    pub request: Request,
}

/// A request with payload: put, post, fetch, patch, ipatch.
#[derive(Debug, Args)]
pub struct WithPayload {
    /// What is asked for: coap://HOST:PORT/PATH?QUERY, coaps://…, coap+tcp://… or coaps+tcp://…; coap:// and the port may
    /// be left out.
    #[arg(value_parser = values::uri)]
    pub uri: Uri,
    /// What is sent: the text itself, @FILE, or - for standard input; @@… is a text that begins with @.
    pub payload: Option<String>,
    /// Content-Format of what is sent, by name or number [of a file: by its ending].
    #[arg(long, short = 't', value_name = "FORMAT", value_parser = content_format::parse)]
    pub content_format: Option<u16>,
    /// How.
    #[command(flatten)]
    pub request: Request,
}

/// A request that changes something: put, post, delete, patch, ipatch.
#[derive(Debug, Args)]
pub struct Writing<T: Args> {
    /// Want no response, or none of these classes: 2xx, 4xx, 5xx (RFC 7967). It is done once it was sent or acknowledged; with
    /// classes, also when none of the others came within --timeout.
    #[arg(long, value_name = "CLASSES", num_args = 0..=1, require_equals = true, default_missing_value = "2xx,4xx,5xx",
          value_parser = values::no_response)]
    pub no_response: Option<NoResponse>,
    /// The request.
    #[command(flatten)]
    pub ask: T,
}

/// The same of which every response is wanted.
impl<T: Args> From<T> for Writing<T> {
    fn from(ask: T) -> Self {
        Self { no_response: None, ask }
    }
}

/// An observation.
#[derive(Debug, Args)]
pub struct Observe {
    /// What is followed: coap://HOST:PORT/PATH?QUERY, coaps://…, coap+tcp://… or coaps+tcp://…; coap:// and the port may be
    /// left out.
    #[arg(value_parser = values::uri)]
    pub uri: Uri,
    /// End after this many representations.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this long: 30s, 5min.
    #[arg(long = "for", value_name = "TIME", value_parser = values::duration)]
    pub period: Option<Duration>,
    /// Register again for so long after whatever interrupts it, and report each gap; 0 ends with the first.
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = values::duration_or_none)]
    pub give_up_after: Duration,
    /// How.
    #[command(flatten)]
    pub request: Request,
}

/// Is anybody there?
#[derive(Debug, Args)]
pub struct Ping {
    /// Who is asked: HOST, HOST:PORT or a URI.
    pub host: String,
    /// Give up after this long [when the controller does].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Ask this many times, a second apart.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Copies and their timer.
    #[command(flatten)]
    pub repeating: Repeating,
    /// Print each round trip as JSON.
    #[arg(long)]
    pub json: bool,
    /// Tell each transmission as it happens.
    #[arg(long)]
    pub trace: bool,
    /// What secure sessions are made with.
    #[command(flatten)]
    pub credentials: ClientCredentials,
}

/// What every request can be given.
#[derive(Debug, Args)]
pub struct Request {
    /// Content-Format wanted, by name or number: json, cbor, text, 110.
    #[arg(long, short, value_name = "FORMAT", value_parser = content_format::parse)]
    pub accept: Option<u16>,
    /// A further option; VALUE is 0x… (bytes), digits (unsigned integer) or text. May be repeated.
    #[arg(long = "option", short = 'O', value_name = "NUMBER|NAME=VALUE", value_parser = values::option)]
    pub options: Vec<RawOption>,
    /// Non-confirmable: sent once, whether it arrives or not.
    #[arg(long, short)]
    pub non: bool,
    /// Size of blocks, both ways: 16, 32, 64, 128, 256, 512 or 1024 bytes.
    #[arg(long, short, value_name = "BYTES", value_parser = values::block_size)]
    pub block_size: Option<u16>,
    /// Long bodies in bursts, both ways, if the server knows Q-Block1 and Q-Block2 (RFC 9177).
    #[arg(long)]
    pub q_block: bool,
    /// Protect request and answer by the security context in this file (OSCORE, RFC 8613), or by one that its credentials agree upon (EDHOC); `millpond
    /// oscore new` makes either. May be repeated, for a server each.
    #[arg(long, value_name = "FILE", conflicts_with = "q_block")]
    pub oscore: Vec<PathBuf>,
    /// Give up after this long [when the controller does].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub timeout: Option<Duration>,
    /// Congestion control.
    #[arg(long, short, value_name = "NAME", value_parser = controller, help = controller_help(""))]
    pub controller: Option<ControllerChoice>,
    /// Begin with what this file remembers of servers, if it is there, and keep it there: round trips, and pauses before coming back.
    #[arg(long, value_name = "FILE")]
    pub memory: Option<PathBuf>,
    /// Copies and their timer.
    #[command(flatten)]
    pub repeating: Repeating,
    /// The longest body that is taken.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help = "Take bodies of up to this size [16Mi]")]
    pub max_size: Option<usize>,
    /// Token of the request, in hexadecimal digits.
    #[arg(long, value_name = "HEX", value_parser = values::token)]
    pub token: Option<Token>,
    /// Tell each transmission as it happens, with its timer, the reason for it, and what each round trip is worth.
    #[arg(long)]
    pub trace: bool,
    /// Print code and options as well.
    #[arg(long, short)]
    pub verbose: bool,
    /// Print the body's bytes as they are, on a terminal too.
    #[arg(long, conflicts_with_all = ["pretty", "json"])]
    pub raw: bool,
    /// Show the body for what it is when piped, too.
    #[arg(long, conflicts_with = "json")]
    pub pretty: bool,
    /// Print the whole answer as JSON.
    #[arg(long)]
    pub json: bool,
    /// What secure sessions are made with.
    #[command(flatten)]
    pub credentials: ClientCredentials,
    /// How it differs from what the RFC asks for.
    #[command(flatten)]
    pub tolerance: Tolerance,
}

/// A controller by its name.
///
/// # Errors
/// A name that no preset has, with the nearest one.
pub(super) fn controller(name: &str) -> Result<ControllerChoice, String> {
    name.parse().map_err(|error: millpond_live::UnknownController| error.to_string())
}
