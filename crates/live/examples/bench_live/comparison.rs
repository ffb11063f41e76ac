//! What a request costs each server, and what it costs with more and more clients that are known.

use crate::{
    Arguments, Failure, OUTSTANDING, PAYLOAD, duplicates,
    generator::{Generator, Limit, Run},
    process::{Running, megabytes},
    sides::{self, CALIFORNIUM_BY_PEER, Side},
};

/// One side with what was measured of it.
struct Measured {
    side: Side,
    running: Running,
    generator: Generator,
    /// Resident bytes before the first request.
    before: u64,
    runs: Vec<Run>,
}

impl Measured {
    fn start(side: Side) -> Result<Self, Failure> {
        let running = Running::start(&side)?;
        let before = running.resident();
        Ok(Self { side, running, generator: Generator::new(OUTSTANDING)?, before, runs: Vec::new() })
    }
}

/// CPU for each request, requests a second and memory of all sides, one after the other in each round.
pub(crate) fn cost(arguments: &Arguments) -> Result<(), Failure> {
    let bare = [Some(sides::floor()?), sides::batched_floor()?].into_iter().flatten();
    let sides = bare.chain([sides::ours()?, sides::ours_at_all()?]).chain(sides::others(arguments));
    let mut all = sides.map(Measured::start).collect::<Result<Vec<_>, _>>()?;
    for measured in &mut all {
        measured.generator.run(&measured.running, Limit::Time(measured.side.warm_up))?;
    }
    for _ in 0..arguments.rounds {
        for measured in &mut all {
            let run = measured.generator.run(&measured.running, Limit::Time(arguments.time))?;
            measured.runs.push(run);
        }
    }
    println!("{OUTSTANDING} clients, {} bytes of payload, median of {} rounds:", PAYLOAD.len(), arguments.rounds);
    println!("                          µs CPU          requests        MB resident     duplicates   not");
    println!("                          a request       a second        before  after   recognised   answered");
    let ours = all.iter().find(|measured| measured.side.name == "millpond");
    let (cost, rate) = ours.map_or((1.0, 1.0), |ours| (median(&ours.runs, Run::cost), median(&ours.runs, Run::rate)));
    for Measured { side, running, before, runs, .. } in &all {
        let after = running.resident();
        let recognised = match duplicates::are_recognised(running.address) {
            _ if !side.is_server => "-".to_owned(),
            Ok(true) => "yes".to_owned(),
            Ok(false) => "no".to_owned(),
            Err(error) => format!("? ({error})"),
        };
        let (its_cost, its_rate) = (median(runs, Run::cost), median(runs, Run::rate));
        println!(
            "  {:<22} {its_cost:7.2} {:5.2}x {its_rate:9.0} {:5.2}x {:7.1} {:7.1}   {recognised:<12} {}",
            side.name,
            its_cost / cost,
            its_rate / rate,
            megabytes(*before),
            megabytes(after),
            unanswered(runs),
        );
    }
    Ok(())
}

/// CPU for each request and requests a second of these, one after the other in each round, beside the first.
pub(crate) fn beside(arguments: &Arguments, all: Vec<(Side, Generator)>) -> Result<(), Failure> {
    let start = |(side, generator): (Side, Generator)| Ok((Running::start(&side)?, side, generator, Vec::new()));
    let mut all = all.into_iter().map(start).collect::<Result<Vec<_>, Failure>>()?;
    for (running, side, generator, _) in &mut all {
        generator.run(running, Limit::Time(side.warm_up))?;
    }
    for _ in 0..arguments.rounds {
        for (running, _, generator, runs) in &mut all {
            runs.push(generator.run(running, Limit::Time(arguments.time))?);
        }
    }
    println!("{OUTSTANDING} clients, {} bytes of payload, median of {} rounds:", PAYLOAD.len(), arguments.rounds);
    println!("                          µs CPU          requests        not");
    println!("                          a request       a second        answered");
    let Some((_, _, _, first)) = all.first() else { return Ok(()) };
    let (cost, rate) = (median(first, Run::cost), median(first, Run::rate));
    for (_, side, _, runs) in &all {
        let (its_cost, its_rate) = (median(runs, Run::cost), median(runs, Run::rate));
        println!(
            "  {:<22} {its_cost:7.2} {:5.2}x {its_rate:9.0} {:5.2}x  {}",
            side.name,
            its_cost / cost,
            its_rate / rate,
            unanswered(runs)
        );
    }
    Ok(())
}

/// The same with more and more clients that are known.
pub(crate) fn clients(arguments: &Arguments) -> Result<(), Failure> {
    const COUNTS: [usize; 4] = [250, 1_000, 4_000, 10_000];
    let wanted = |side: &Side| matches!(side.name, "libcoap" | "go-coap" | "Californium" | CALIFORNIUM_BY_PEER);
    let others: Vec<_> = sides::others(arguments).into_iter().filter(wanted).collect();
    println!(
        "known clients, {OUTSTANDING} of them asking at a time: µs CPU a request, MB resident, share of the first"
    );
    println!("                          {}", COUNTS.map(|count| format!("{count:<21}")).concat());
    for side in [vec![sides::floor()?, sides::ours()?], others].into_iter().flatten() {
        let running = Running::start(&side)?;
        let mut warm_up = Generator::new(COUNTS[0])?;
        warm_up.run(&running, Limit::Time(side.warm_up))?;
        let (mut line, mut first, mut missed) = (String::new(), None, String::new());
        for count in COUNTS {
            let mut generator = Generator::new(count)?;
            // So that all of them are known.
            let known = generator.run(&running, Limit::Requests(count as u64))?;
            let run = generator.run(&running, Limit::Time(arguments.time))?;
            let share = run.cost() / *first.get_or_insert(run.cost());
            line += &format!("{:6.2} {:5.0} {share:4.2}x   ", run.cost(), megabytes(running.resident()));
            let lost = known.lost + known.refused + run.lost + run.refused;
            if lost > 0 {
                missed += &format!(" {lost} of {count} clients' requests not answered;");
            }
        }
        println!("  {:<22} {line}{missed}", side.name);
    }
    Ok(())
}

pub(crate) fn median(runs: &[Run], figure: impl Fn(&Run) -> f64) -> f64 {
    let mut figures: Vec<f64> = runs.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn unanswered(runs: &[Run]) -> String {
    let (lost, refused) = runs.iter().fold((0, 0), |(lost, refused), run| (lost + run.lost, refused + run.refused));
    match (lost, refused) {
        (lost, 0) => lost.to_string(),
        (lost, refused) => format!("{lost}, and {refused} with another code than 2.05"),
    }
}
