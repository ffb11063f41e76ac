//! From arguments to an exit code.

use std::ffi::OsString;
use std::io::Write;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, error::ErrorKind};

use crate::arguments::{Contexts, Program, Verb};
use crate::failure::Failure;
use crate::interrupt::{Interrupt, no_signals};
use crate::{nearest, oscore, shell, shell::FurtherVerb};

/// Verbs of the program that the Python package installs, which need the simulator.
const LABORATORY_VERBS: [&str; 13] = [
    "run",
    "sweep",
    "fleet",
    "reproduce",
    "compare",
    "report",
    "explore",
    "capture",
    "results",
    "controllers",
    "paths",
    "arena",
    "calibrate",
];

/// The commit that this was built from, and whether the sources were as committed; `None` where that was not known, as in debug builds.
#[must_use]
pub fn commit() -> Option<(&'static str, bool)> {
    let built = option_env!("MILLPOND_BUILT_FROM")?;
    Some(built.strip_suffix('+').map_or((built, true), |commit| (commit, false)))
}

/// The version, with the commit where that is known.
#[must_use]
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        commit().map_or_else(
            || version.to_owned(),
            |(commit, is_clean)| {
                let changed = if is_clean { "" } else { ", with uncommitted changes" };
                format!("{version} (commit {}{changed})", commit.get(..12).unwrap_or(commit))
            },
        )
    });
    &VERSION
}

/// Runs the program with these arguments, the first of which is its name, and gives its exit code: 0 done, 1 failed,
/// 2 usage, 3 too late, 4 and 5 the class of an answer that is an error, 6 no answer in time, 7 unreachable, 8 insecure,
/// 130 stopped by Ctrl-C.
///
/// What goes wrong is one line on standard error. Output is plain where it is no terminal or `NO_COLOR` is set.
pub fn main_from<I, T>(arguments: I) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    main_among(arguments, Vec::new())
}

/// The same as a part of a program that has these verbs, too.
pub fn main_among<I, T>(arguments: I, further: Vec<FurtherVerb>) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let failure = match Program::try_parse_from(&arguments) {
        Ok(program) => match run(program.verb, &arguments, further) {
            Ok(()) => return 0,
            Err(failure) => failure,
        },
        Err(error) => match explained(&error) {
            Ok(code) => return code,
            Err(failure) => failure,
        },
    };
    if let Some(line) = failure.line() {
        // Standard error may be closed; then nobody reads the reason.
        let _ = writeln!(anstream::stderr(), "millpond: {line}");
    }
    failure.exit_code()
}

fn run(verb: Verb, arguments: &[OsString], further: Vec<FurtherVerb>) -> Result<(), Failure> {
    match verb {
        Verb::Completions { shell } => shell::completions(shell, further),
        Verb::Manual { directory } => shell::manual(&directory, further),
        Verb::Oscore { contexts: Contexts::New(flags) } => oscore::new(&flags),
        verb => live(verb, arguments),
    }
}

#[tokio::main]
async fn live(verb: Verb, arguments: &[OsString]) -> Result<(), Failure> {
    use crate::{diagnose, discover, emulate, gateway, load, observe, ping, request, serve};
    let interrupt = &mut Interrupt::listen().map_err(no_signals)?;
    use millpond_live::Code;
    match verb {
        Verb::Get(ask) => request::without_payload(Code::GET, ask.into(), interrupt).await,
        Verb::Delete(ask) => request::without_payload(Code::DELETE, ask, interrupt).await,
        Verb::Put(ask) => request::with_payload(Code::PUT, ask, interrupt).await,
        Verb::Post(ask) => request::with_payload(Code::POST, ask, interrupt).await,
        Verb::Fetch(ask) => request::with_payload(Code::FETCH, ask.into(), interrupt).await,
        Verb::Patch(ask) => request::with_payload(Code::PATCH, ask, interrupt).await,
        Verb::IPatch(ask) => request::with_payload(Code::IPATCH, ask, interrupt).await,
        Verb::Observe(ask) => observe::follow(ask, interrupt).await,
        Verb::Ping(flags) => ping::ping(flags, interrupt).await,
        Verb::Discover(flags) => discover::discover(flags, interrupt).await,
        Verb::Serve(flags) => serve::serve(flags, interrupt).await,
        Verb::Gateway(flags) => gateway::gateway(flags, interrupt).await,
        Verb::Load(flags) => load::load(flags, arguments, interrupt).await,
        Verb::Emulate(flags) => emulate::emulate(flags, interrupt).await,
        Verb::Relay(flags) => emulate::relay(flags, interrupt).await,
        Verb::Diagnose(flags) => diagnose::diagnose(flags, interrupt).await,
        // They need no network and were done before.
        Verb::Oscore { .. } | Verb::Completions { .. } | Verb::Manual { .. } => Ok(()),
    }
}

/// What the parser has to say: help and version are printed; everything else is one line.
fn explained(error: &clap::Error) -> Result<u8, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return match error.print() {
                Ok(()) => Ok(0),
                Err(error) => Err(error.into()),
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return Ok(2);
        }
        ErrorKind::InvalidSubcommand => {
            if let Some(word) = text_of(error, clap::error::ContextKind::InvalidSubcommand) {
                return Err(Failure::Usage(unknown_verb(&word)));
            }
        }
        _ => {}
    }
    Err(Failure::Usage(line(error)))
}

fn unknown_verb(word: &str) -> String {
    if LABORATORY_VERBS.contains(&word) {
        return format!(
            "{word}: the laboratory's verbs ({}) come with the Python package: `make build` in the source makes \
             .venv/bin/millpond, which has every verb",
            LABORATORY_VERBS.join(", ")
        );
    }
    let verbs = Program::command();
    let names: Vec<_> = verbs.get_subcommands().map(clap::Command::get_name).collect();
    let hint = nearest::nearest(word, names.iter().copied().chain(LABORATORY_VERBS))
        .map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    format!("unknown verb {word:?}: {hint}known: {}", names.join(", "))
}

/// The parser's explanation without its usage, tips after a semicolon.
fn line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let told = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let told = told.filter(|line| !line.is_empty() && !line.starts_with("For more information"));
    told.enumerate().fold(String::new(), |all, (position, line)| {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        match line.strip_prefix("tip: ") {
            _ if position == 0 => line.to_owned(),
            Some(tip) => format!("{all}; {tip}"),
            None => format!("{all} {line}"),
        }
    })
}

fn text_of(error: &clap::Error, kind: clap::error::ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(clap::error::ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}
