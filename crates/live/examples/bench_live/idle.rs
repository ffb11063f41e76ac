//! What clients that do nothing take.

use crate::{
    Arguments, Failure, STATE,
    generator::{Generator, Limit},
    process::{Running, megabytes},
    sides,
};

/// How many they are.
pub(crate) const CLIENTS: usize = 10_000;

/// Memory of our server's process with clients that each asked once, or observe a resource, and are silent.
pub(crate) fn idle(_: &Arguments) -> Result<(), Failure> {
    println!("{CLIENTS} idle clients of ours: MB resident");
    asked_once(&Running::start(&sides::ours()?)?)?;
    observing(&Running::start(&sides::ours()?)?).map(drop)
}

/// Memory of a process with clients that each asked it once.
pub(crate) fn asked_once(running: &Running) -> Result<(), Failure> {
    measure("each asked once", running, &mut Generator::new(CLIENTS)?)
}

/// Memory of a process with clients that observe `/state`, and those.
pub(crate) fn observing(running: &Running) -> Result<Generator, Failure> {
    let mut generator = Generator::observing(CLIENTS, STATE)?;
    measure("each observes", running, &mut generator)?;
    Ok(generator)
}

fn measure(what: &str, running: &Running, generator: &mut Generator) -> Result<(), Failure> {
    let before = running.resident();
    let run = generator.run(running, Limit::Requests(CLIENTS as u64))?;
    let after = running.resident();
    println!(
        "  {what:<16} {:6.1}, {:.1} before the first; {:.0} bytes a client, {} not answered",
        megabytes(after),
        megabytes(before),
        after.saturating_sub(before) as f64 / CLIENTS as f64,
        run.lost + run.refused,
    );
    Ok(())
}
