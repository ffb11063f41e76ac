//! What the program understands: verbs, flags, and their help.

mod credentials;
mod defaults;
mod diagnose;
mod discover;
mod emulate;
mod gateway;
mod load;
mod oscore;
mod repeating;
mod request;
mod serve;
mod tolerance;

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

pub use credentials::{ClientCredentials, Hidden, ServerCredentials};
pub use defaults::defaults;
pub use diagnose::{Diagnose, Place as CapturedAt};
pub use discover::Discover;
pub use emulate::{Emulate, OverPath, Relay};
pub use gateway::Gateway;
pub use load::{Load, Method};
pub use oscore::{Contexts, NewContexts};
pub use repeating::Repeating;
pub use request::{Observe, Ping, Request, WithPayload, WithoutPayload, Writing};
pub use serve::{Group, LogFormat, Place, Serve};
pub use tolerance::Tolerance;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// CoAP with pluggable congestion control, from the command line.
#[derive(Debug, Parser)]
#[command(
    name = "millpond",
    version = crate::version(),
    styles = STYLES,
    max_term_width = 100,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    infer_long_args = false,
    help_template = help_template(),
    after_help = after_help()
)]
pub struct Program {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Ask for a resource.
    #[command(after_help = "Examples:\n  \
        millpond get coap://127.0.0.1/hello\n  \
        millpond get -v --accept json coap://[::1]/sensors/1\n  \
        millpond get --output image.bin 192.0.2.7/firmware\n  \
        millpond get --trace --controller cocoa-03 coap://example.com/time\n  \
        millpond get --ca ca.pem coaps+tcp://localhost/hello\n  \
        millpond get coap://127.0.0.1/.well-known/core")]
    Get(WithoutPayload),
    /// Put a representation at a resource.
    #[command(after_help = "Examples:\n  \
        millpond put coap://127.0.0.1/lamp on\n  \
        millpond put --content-format json coap://127.0.0.1/conf @conf.json\n  \
        sensor | millpond put --block-size 64 coap://127.0.0.1/log -\n  \
        millpond put --non --no-response coap://127.0.0.1/level 0.71")]
    Put(Writing<WithPayload>),
    /// Hand data to a resource.
    #[command(after_help = "Examples:\n  \
        millpond post coap://127.0.0.1/echo 'hello there'\n  \
        millpond post --json --content-format cbor coap://127.0.0.1/queue @item.cbor")]
    Post(Writing<WithPayload>),
    /// Delete a resource.
    #[command(after_help = "Examples:\n  \
        millpond delete coap://127.0.0.1/log\n  \
        millpond delete --option If-Match=0x1a2b coap://127.0.0.1/log")]
    Delete(Writing<WithoutPayload>),
    /// Ask for a part of a resource that the payload describes (RFC 8132).
    #[command(after_help = "Examples:\n  \
        millpond fetch --content-format json coap://127.0.0.1/echo '[\"temperature\"]'")]
    Fetch(WithPayload),
    /// Change a part of a resource (RFC 8132).
    #[command(after_help = "Examples:\n  \
        millpond patch --content-format application/merge-patch+json coap://127.0.0.1/echo '{\"on\":true}'")]
    Patch(Writing<WithPayload>),
    /// Change a part of a resource, idempotently (RFC 8132).
    #[command(
        name = "ipatch",
        after_help = "Examples:\n  \
        millpond ipatch --content-format application/merge-patch+json coap://127.0.0.1/echo '{\"on\":true}'"
    )]
    IPatch(Writing<WithPayload>),
    /// Follow a resource as it changes (RFC 7641).
    #[command(after_help = "Examples:\n  \
        millpond observe coap://127.0.0.1/time\n  \
        millpond observe --count 5 --json coap://127.0.0.1/time\n  \
        millpond observe --for 1min coap://127.0.0.1/time")]
    Observe(Observe),
    /// Ask whether a peer answers, and how long that takes.
    #[command(after_help = "Examples:\n  \
        millpond ping 127.0.0.1\n  \
        millpond ping --timeout 2s [::1]:5683")]
    Ping(Ping),
    /// Ask who is there: all servers of a group, and what they have (RFC 6690).
    #[command(after_help = "Examples:\n  \
        millpond discover\n  \
        millpond discover --interface eth0 --json\n  \
        millpond discover 'ff02::fd%eth0'\n  \
        millpond discover 'coap://224.0.1.187/.well-known/core?rt=temperature*'")]
    Discover(Discover),
    /// Serve files, and resources to try clients with.
    #[command(after_help = "Examples:\n  \
        millpond serve\n  \
        millpond serve --write --bind 127.0.0.1 --port 5683 public/\n  \
        millpond serve --multicast --join 239.1.2.3%eth0\n  \
        millpond serve --workers 2 --metrics 127.0.0.1:9100 --quiet\n  \
        millpond serve --cert server.pem --key server.key --client-ca ca.pem\n  \
        millpond serve --psk-file keys.psk --rights rights.toml --bind 0.0.0.0 --write public/\n\n\
        Resources beside the files (left out with --only-files):\n  \
        /hello           a greeting\n  \
        /time            the time, observable, new every second\n  \
        /count           a number, observable, new five times a second\n  \
        /slow?seconds=2  the same in a separate response\n  \
        /echo            what was sent, any method\n  \
        /large?size=20k  that many bytes, block by block")]
    Serve(Serve),
    /// Stand between clients and devices: a proxy with a cache and a calm pace.
    #[command(after_help = "Examples:\n  \
        millpond gateway gateway.toml\n  \
        millpond gateway --check gateway.toml\n  \
        millpond gateway --log json gateway.toml 2>> access.jsonl\n\n\
        A file for devices at 10.77.1.1 to .254 behind one link, asked as coap://GATEWAY/meters/7/...\n\
        and as http://GATEWAY:8080/meters/7/...:\n  \
        [listen]\n  \
        coap = [\"[::]\", \"0.0.0.0\"]\n  \
        http = [\"[::]:8080\", \"0.0.0.0:8080\"]\n  \
        [[path]]\n  \
        name = \"cell\"\n  \
        devices = [\"10.77.1.0/24\"]\n  \
        nstart = 4\n  \
        [[rule]]\n  \
        path = \"/meters/{id}/{*rest}\"\n  \
        to = \"coap://10.77.1.{id}/{*rest}\"\n\n\
        SIGHUP reads the file again; what cannot be used changes nothing.")]
    Gateway(Gateway),
    /// Load a server: how long answers take, and which retransmissions were spurious.
    #[command(after_help = "Examples:\n  \
        millpond load coap://127.0.0.1/hello\n  \
        millpond load --clients 64 --duration 30s coap://127.0.0.1/hello\n  \
        millpond load --rate 500/s --ramp 5s --method post --payload-size 100 coap://127.0.0.1/echo\n  \
        millpond load --compare rfc7252,cocoa-03,fasor --count 1000 coap://192.0.2.7/sensor")]
    Load(Load),
    /// Run programs behind a slow or lossy path, emulated in real time (Linux).
    #[command(after_help = "Examples:\n  \
        millpond emulate nbiot-anrw18 --server 'millpond serve --bind 10.77.0.2' \\\n    \
        -- millpond get coap://server/hello\n  \
        millpond emulate nbiot-anrw18 --server 'coap-server' -- coap-client coap://server/time\n  \
        millpond emulate my-path.toml --devices 20 --capture run.pcapng -- ./my-device\n  \
        millpond emulate nbiot-anrw18 --mtu 296 --shell\n\n\
        Inside, `server` is 10.77.0.2, `server.ip6` fd77::2, `device1` 10.77.1.1, `device1.ip6`\n\
        fd77::1:1 and so on; UDP, TCP and ICMP pass. Everything that was made and all that runs\n\
        inside ends with the command.\n\n\
        Exit code: the command's; 3 if that was 0 and the links were too late too often for the\n\
        run to be believed.")]
    Emulate(Emulate),
    /// Forward UDP over a slow or lossy path, emulated in real time.
    #[command(after_help = "Examples:\n  \
        millpond relay nbiot-anrw18 --listen 127.0.0.1:5684 --to 127.0.0.1:5683\n  \
        millpond relay none --calm --listen [::]:5683 --to 192.0.2.7:5683\n  \
        millpond relay my-path.toml --seed 3 --for 60s --json --listen [::1]:5684 --to server.example:5683\n\n\
        A file with a path:\n  \
        [uplink]               # to the server\n  \
        rate = \"60 kbit/s\"\n  \
        delay = \"215 ms\"\n  \
        queue = \"14100 B\"\n  \
        [downlink]\n  \
        rate = \"30 kbit/s\"\n  \
        delay = \"415 ms\"\n  \
        queue = \"14100 B\"\n  \
        loss = { kind = \"bernoulli\", rate = \"1 %\" }\n\n\
        Exit code 3: it was too late too often for its figures to be believed.")]
    Relay(Relay),
    /// Say from a capture which retransmissions were spurious, and what the path is like.
    #[command(after_help = "Examples:\n  \
        millpond diagnose server.pcap\n  \
        millpond diagnose --side devices --times --devices gateway.pcapng\n  \
        millpond diagnose --json --exchanges verdicts.csv server.pcap\n  \
        millpond diagnose --anonymise to-send.pcap server.pcap\n  \
        tcpdump -i eth0 -w - udp port 5683 | millpond diagnose -\n\n\
        A figure is exact, a bound (at least, at most), an estimate (about), or not visible from that side.")]
    Diagnose(Diagnose),
    /// Make security contexts of OSCORE, which protect messages from end to end (RFC 8613).
    #[command(after_help = "Examples:\n  \
        millpond oscore new\n  \
        millpond oscore new --client-id 07 device7.oscore gateway7.oscore\n  \
        millpond oscore new --server meter-7.example from-me.oscore meter-7.oscore\n  \
        millpond oscore new --edhoc device.edhoc server.edhoc")]
    Oscore {
        /// What to do with them.
        #[command(subcommand)]
        contexts: Contexts,
    },
    /// Print what makes a shell complete verbs and flags.
    #[command(after_help = "Examples:\n  \
        millpond completions bash > ~/.local/share/bash-completion/completions/millpond\n  \
        millpond completions zsh > ~/.zfunc/_millpond\n  \
        millpond completions fish > ~/.config/fish/completions/millpond.fish")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual's pages for man into a directory.
    #[command(after_help = "Examples:\n  \
        millpond manual man1 && man man1/millpond-get.1")]
    Manual {
        /// The directory; made if it is not there.
        #[arg(value_name = "DIR")]
        directory: std::path::PathBuf,
    },
}

/// The verbs by what they are for, in the order of the help.
pub const GROUPS: [(&str, &[&str]); 5] = [
    ("Ask a server", &["get", "put", "post", "delete", "fetch", "patch", "ipatch", "observe", "ping", "discover"]),
    ("Serve", &["serve", "gateway"]),
    ("Measure, and put a path between programs", &["load", "emulate", "relay", "diagnose"]),
    ("Make keys", &["oscore"]),
    ("This program", &["completions", "manual"]),
];

/// The verbs in the order of the help, each with its line there.
#[must_use]
pub fn verbs() -> Vec<(String, String)> {
    Verb::augment_subcommands(clap::Command::new("millpond"))
        .get_subcommands()
        .map(|verb| (verb.get_name().to_owned(), verb.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect()
}

/// The help of the program with its verbs in groups, which the parser has for flags alone.
fn help_template() -> String {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let verbs = verbs();
    let width = verbs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = writeln!(template, "\n{header}{title}:{header:#}");
        for (name, about) in verbs.iter().filter(|(name, _)| names.contains(&name.as_str())) {
            let _ = writeln!(template, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _ = write!(template, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    template
}

fn after_help() -> String {
    format!(
        "{}\n\n\
         Not here: the laboratory's verbs (run, sweep, fleet, reproduce, compare, report, explore,\n\
         capture, results, controllers, paths, arena) come with the Python package: `make build` in the\n\
         source makes .venv/bin/millpond, which has every verb.",
        after_all_verbs()
    )
}

/// What there is to say behind the verbs, also where the laboratory's are among them.
pub(crate) fn after_all_verbs() -> String {
    format!(
        "{}\n\n\
         Examples:\n  \
         millpond serve &\n  \
         millpond get coap://127.0.0.1/hello\n  \
         millpond get --trace coap://127.0.0.1/slow\n  \
         millpond load --clients 64 coap://127.0.0.1/hello\n\n\
         Exit codes: 0 done (2.xx), 1 failed, 2 usage, 4 and 5 the answer was 4.xx or 5.xx,\n\
         6 no answer in time, 7 no such name or nobody reachable there, 8 no secure session,\n\
         130 stopped by Ctrl-C before the end; 3 an emulated path was too late to be believed.",
        defaults::told()
    )
}
