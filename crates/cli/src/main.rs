//! CoAP for the command line.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(millpond_cli::main_from(std::env::args_os()))
}
