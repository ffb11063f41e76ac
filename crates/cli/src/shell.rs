//! Completions for shells and pages for man, made from the same description as the help.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::arguments::Program;
use crate::failure::Failure;

/// Prints the completions for a shell.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Program::command(), "millpond", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}

/// Writes `millpond.1` and a page for each verb into a directory, and says where.
///
/// # Errors
/// The directory cannot be made or written.
pub fn manual(directory: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::of_file(directory.display(), &error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Program::command(), directory).map_err(failed)?;
    writeln!(std::io::stdout(), "{}: millpond.1 and a page for each verb", directory.display())?;
    Ok(())
}
