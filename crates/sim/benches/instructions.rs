//! How many instructions an event of the collapse run takes, and how many of its looks at instructions and data miss a
//! first-level cache. Unlike time, that is the same on a busy machine. Wants valgrind, whose callgrind counts them; without
//! it, says so.

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

/// The caches that are counted for, whatever the machine has: bytes, ways, bytes of a line.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

/// What a process did that makes so many runs.
struct Counted {
    instructions: f64,
    /// Instructions, and data, that were not in the first-level cache.
    missed: [f64; 2],
}

/// Counts for a process that makes so many runs.
fn counted(count: u32) -> Result<Counted, String> {
    let program = env::current_exe().map_err(|why| why.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--cache-sim=yes"])
        .args(CACHES)
        .arg(program)
        .args([COUNTED, &count.to_string()])
        .output()
        .map_err(|why| format!("valgrind does not start: {why}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split("Collected :").nth(1)).unwrap_or_default();
    let counts: Vec<f64> = collected.split_whitespace().filter_map(|count| count.parse().ok()).collect();
    // Ir Dr Dw I1mr D1mr D1mw …
    match counts[..] {
        [instructions, _, _, code, read, written, ..] => Ok(Counted { instructions, missed: [code, read + written] }),
        _ => Err(format!("valgrind counted nothing: {}", said.trim())),
    }
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
            let each = |two: f64, one: f64| (two - one) / events as f64;
            let [code, data] = [0, 1].map(|place| each(two.missed[place], one.missed[place]));
            println!(
                "instructions: {:.0} an event, of {events} events of the collapse run; a first-level cache of 32 KiB \
                 each misses {code:.1} lines of code and {data:.1} of data",
                each(two.instructions, one.instructions)
            );
        }
        Err(why) => println!("instructions: left out ({why})"),
    }
    ExitCode::SUCCESS
}
