//! How many instructions an event of the collapse run takes. Unlike time, that is the same on a busy machine. Wants
//! valgrind, whose callgrind counts them; without it, says so.

mod collapsing;

use std::{
    env,
    hint::black_box,
    process::{Command, ExitCode},
};

use collapsing::{STANDARD, scenario};
use millpond_sim::{Options, run};

/// The argument with which this program is the one that is counted, followed by how many runs it makes.
const COUNTED: &str = "--counted-runs";

/// Makes so many collapse runs; gives their events.
fn runs(count: u32) -> u64 {
    let scenario = scenario(400, 50, STANDARD, "0 s");
    let once = |_| run(black_box(&scenario), 1, &Options::default(), || false).expect("it runs").summary.events;
    (0..count).map(once).sum()
}

/// Instructions of a process that makes so many runs.
fn counted(count: u32) -> Result<u64, String> {
    let program = env::current_exe().map_err(|why| why.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([COUNTED, &count.to_string()])
        .output()
        .map_err(|why| format!("valgrind does not start: {why}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let total = said.lines().find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    total.ok_or_else(|| format!("valgrind counted nothing: {}", said.trim()))
}

fn main() -> ExitCode {
    let mut arguments = env::args().skip_while(|argument| argument != COUNTED);
    if arguments.next().is_some() {
        let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
        black_box(runs(count));
        return ExitCode::SUCCESS;
    }
    let events = runs(1);
    // What one run more takes: neither start nor end of the process.
    match counted(1).and_then(|one| Ok((one, counted(2)?))) {
        Ok((one, two)) => {
            let each = (two - one) as f64 / events as f64;
            println!("instructions: {each:.0} an event, of {events} events of the collapse run");
        }
        Err(why) => println!("instructions: left out ({why})"),
    }
    ExitCode::SUCCESS
}
