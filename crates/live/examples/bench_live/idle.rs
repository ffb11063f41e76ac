//! What clients that do nothing take.

use crate::{
    Arguments, Failure,
    generator::{Generator, Limit},
    process::{Running, megabytes},
    sides,
};

/// How many they are.
const CLIENTS: usize = 10_000;

/// Memory of our server's process with clients that each asked once, or observe a resource, and are silent.
pub(crate) fn idle(_: &Arguments) -> Result<(), Failure> {
    println!("{CLIENTS} idle clients of ours: MB resident");
    for (what, mut generator) in
        [("each asked once", Generator::new(CLIENTS)?), ("each observes", Generator::observing(CLIENTS, b"state")?)]
    {
        let running = Running::start(&sides::ours()?)?;
        let before = running.resident();
        let run = generator.run(&running, Limit::Requests(CLIENTS as u64))?;
        let after = running.resident();
        println!(
            "  {what:<16} {:6.1}, {:.1} before the first; {:.0} bytes a client, {} not answered",
            megabytes(after),
            megabytes(before),
            after.saturating_sub(before) as f64 / CLIENTS as f64,
            run.lost + run.refused,
        );
    }
    Ok(())
}
