//! Completions for shells and pages for man, made from the same description as the help.

use std::io::Write;
use std::path::Path;

use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use serde::Deserialize;

use crate::arguments::{Program, after_all_verbs};
use crate::failure::Failure;

/// A verb of a program around this one, which completions and pages for man report beside the verbs here.
#[derive(Clone, Debug, Deserialize)]
pub struct FurtherVerb {
    name: String,
    about: String,
    flags: Vec<FurtherFlag>,
    verbs: Vec<FurtherVerb>,
}

/// A flag of such a verb, or an argument, if it has no name that begins with a dash.
#[derive(Clone, Debug, Deserialize)]
struct FurtherFlag {
    name: String,
    /// With their dashes; of several the first long and the first short one count.
    written: Vec<String>,
    help: String,
    /// What stands for its value; none if it takes none.
    value: Option<String>,
    /// The words that it takes, if there are no others.
    words: Vec<String>,
    is_required: bool,
}

/// Prints the completions for a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(shell: clap_complete::Shell, further: Vec<FurtherVerb>) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut whole(further), "millpond", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}

/// Writes `millpond.1` and a page for each verb into a directory, and says where.
///
/// # Errors
/// The directory cannot be made or written.
pub fn manual(directory: &Path, further: Vec<FurtherVerb>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::of_file(directory.display(), &error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(whole(further), directory).map_err(failed)?;
    writeln!(std::io::stdout(), "{}: millpond.1 and a page for each verb", directory.display())?;
    Ok(())
}

/// The program with the verbs of the one around it, if there is one.
fn whole(further: Vec<FurtherVerb>) -> Command {
    let program = Program::command();
    match further.is_empty() {
        true => program,
        // Where further verbs come from need not be said where they are.
        false => further.into_iter().map(described).fold(program.after_help(after_all_verbs()), among),
    }
}

/// A verb that both have is the one of the program around.
fn among(program: Command, verb: Command) -> Command {
    let name = verb.get_name().to_owned();
    match program.find_subcommand(&name) {
        Some(_) => program.mut_subcommand(name, |_| verb),
        None => program.subcommand(verb),
    }
}

fn described(verb: FurtherVerb) -> Command {
    let summary = verb.about.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    Command::new(verb.name)
        .about(summary)
        .long_about(verb.about)
        .disable_help_subcommand(true)
        .args(verb.flags.into_iter().map(argument))
        .subcommands(verb.verbs.into_iter().map(described))
}

fn argument(flag: FurtherFlag) -> Arg {
    let mut argument = Arg::new(flag.name).help(flag.help).required(flag.is_required);
    if let Some(long) = flag.written.iter().find_map(|written| written.strip_prefix("--")) {
        argument = argument.long(long.to_owned());
    }
    let is_short = |written: &&String| !written.starts_with("--");
    if let Some(short) = flag.written.iter().find(is_short).and_then(|written| written.chars().nth(1)) {
        argument = argument.short(short);
    }
    match flag.value {
        None => argument.action(ArgAction::SetTrue),
        Some(value) => {
            let argument = argument.action(ArgAction::Append).value_name(value);
            match flag.words.is_empty() {
                true => argument.value_hint(ValueHint::AnyPath),
                false => argument.value_parser(clap::builder::PossibleValuesParser::new(flag.words)),
            }
        }
    }
}
