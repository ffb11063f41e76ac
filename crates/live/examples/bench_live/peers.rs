//! What else a server does beside small answers over UDP, ours and others in one run: to tell many observers, to send a long
//! body in blocks, to answer over TCP and under DTLS, to begin sessions and to keep them.

use std::time::Duration;

use crate::{
    Arguments, Failure, OUTSTANDING, STATE,
    comparison::{Begin, Round, asked_by, beside, one_by_one},
    generator::{BLOCK, Generator, Limit},
    idle::CLIENTS,
    process::Running,
    serving::MEBIBYTE,
    sides::{self, Over, Side},
    streams::Streams,
};

/// Sessions that are begun in each round, and before the first of a server that does not become faster and of one that does.
const SESSIONS: usize = 1_000;
const FIRST_SESSIONS: usize = 64;
const MORE_FIRST_SESSIONS: usize = 3_000;

/// All that speak so, each with what is asked of it.
fn all(
    arguments: &Arguments,
    over: Over,
    begin: fn(&Running) -> Result<Round, Failure>,
) -> Result<Vec<(Side, Begin)>, Failure> {
    let sides = sides::speaking(arguments, over)?.into_iter();
    Ok(sides.map(|side| (side, Box::new(begin) as Begin)).collect())
}

/// One resource changes: until all who observe it were told.
pub(crate) fn observers(arguments: &Arguments) -> Result<(), Failure> {
    let all = all(arguments, Over::Udp, |running| {
        let mut generator = Generator::observing(CLIENTS, STATE)?;
        let run = generator.run(running, Limit::Requests(CLIENTS as u64))?;
        if run.refused > 0 {
            return Err(format!("{} of {CLIENTS} may not observe", run.refused).into());
        }
        Ok(Box::new(move |running, time| {
            let mut run = generator.told(running, running.address)?;
            while run.elapsed < time {
                run = run.with(generator.told(running, running.address)?);
            }
            Ok(run)
        }))
    })?;
    one_by_one(arguments, &format!("a change told to {CLIENTS} observers; for each of them"), all)
}

/// A long body in blocks; figures are those of a block.
pub(crate) fn blocks(arguments: &Arguments) -> Result<(), Failure> {
    let blocks = MEBIBYTE.len() / BLOCK;
    let what = format!("{OUTSTANDING} clients fetch 1 MiB each, again and again; for each of {blocks} blocks of it");
    let all = all(arguments, Over::Udp, |running| {
        asked_by(Generator::fetching(OUTSTANDING, b"mebibyte", (MEBIBYTE.len() / BLOCK) as u32)?)(running)
    })?;
    beside(arguments, &what, all)
}

/// Requests over connections that stand.
pub(crate) fn tcp(arguments: &Arguments) -> Result<(), Failure> {
    let all = all(arguments, Over::Tcp, |running| {
        let mut streams = Streams::to(running.address)?;
        Ok(Box::new(move |running, time| streams.run(running, Limit::Time(time))))
    })?;
    beside(arguments, &format!("{OUTSTANDING} clients over TCP; for each request"), all)
}

/// Requests in sessions that stand.
pub(crate) fn dtls(arguments: &Arguments) -> Result<(), Failure> {
    let all = all(arguments, Over::Dtls, |running| asked_by(Generator::secured(OUTSTANDING)?)(running))?;
    beside(arguments, &format!("{OUTSTANDING} clients under DTLS; for each request"), all)
}

/// Sessions that begin and stay.
pub(crate) fn handshakes(arguments: &Arguments) -> Result<(), Failure> {
    let what = format!("{SESSIONS} handshakes of DTLS more in each round; for each");
    let all = all(arguments, Over::Dtls, |_| {
        let mut is_first = true;
        Ok(Box::new(move |running, time| {
            let count = match std::mem::take(&mut is_first) {
                false => SESSIONS,
                true if time > Duration::from_secs(1) => MORE_FIRST_SESSIONS,
                true => FIRST_SESSIONS,
            };
            let before = running.resident();
            // Other clients than before: from another port.
            let mut run = Generator::shaking_hands(count)?.run(running, Limit::Requests(count as u64))?;
            run.grown = Some(running.resident().saturating_sub(before));
            Ok(run)
        }))
    })?;
    beside(arguments, &what, all)
}
