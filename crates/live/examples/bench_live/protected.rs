//! What a request costs our server under OSCORE (RFC 8613) beside one in the clear.

use millpond_coap::oscore::{Context, ContextError, Parameters, Start};

use crate::{
    Arguments, Failure, OUTSTANDING, PAYLOAD,
    comparison::{median, unanswered},
    generator::{Generator, Limit, Run},
    process::Running,
    sides,
};

/// That of the server, or of its clients: AES-CCM-16-64-128.
pub(crate) fn context(is_server: bool) -> Result<Context, ContextError> {
    let of_clients = Parameters { sender_id: &[1], recipient_id: &[2], ..Parameters::of(b"for measurements alone") };
    Context::derive(&if is_server { of_clients.mirrored() } else { of_clients }, Start::Fresh)
}

/// CPU for each request and requests a second, in the clear and protected, one after the other in each round.
pub(crate) fn cost(arguments: &Arguments) -> Result<(), Failure> {
    let mut all = [
        (sides::ours()?, Generator::new(OUTSTANDING)?),
        (sides::ours_protected()?, Generator::protected(OUTSTANDING, context(false)?)?),
    ]
    .into_iter()
    .map(|(side, generator)| Ok((side.name, Running::start(&side)?, generator, Vec::new(), side.warm_up)))
    .collect::<Result<Vec<_>, Failure>>()?;
    for (_, running, generator, _, warm_up) in &mut all {
        generator.run(running, Limit::Time(*warm_up))?;
    }
    for _ in 0..arguments.rounds {
        for (_, running, generator, runs, _) in &mut all {
            runs.push(generator.run(running, Limit::Time(arguments.time))?);
        }
    }
    println!("{OUTSTANDING} clients, {} bytes of payload, median of {} rounds:", PAYLOAD.len(), arguments.rounds);
    println!("                          µs CPU          requests        not");
    println!("                          a request       a second        answered");
    let [(_, _, _, plain, _), ..] = &all[..] else { return Ok(()) };
    let (cost, rate) = (median(plain, Run::cost), median(plain, Run::rate));
    for (name, _, _, runs, _) in &all {
        let (its_cost, its_rate) = (median(runs, Run::cost), median(runs, Run::rate));
        println!(
            "  {name:<22} {its_cost:7.2} {:5.2}x {its_rate:9.0} {:5.2}x  {}",
            its_cost / cost,
            its_rate / rate,
            unanswered(runs)
        );
    }
    Ok(())
}
