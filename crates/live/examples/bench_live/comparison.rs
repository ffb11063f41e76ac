//! What a request costs each server, and what it costs with more and more clients that are known.

use std::time::Duration;

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

/// A round of what is asked of a server, for so long if it is not of a certain length by itself.
pub(crate) type Round = Box<dyn FnMut(&Running, Duration) -> Result<Run, Failure>>;
/// What precedes the first round, once the server runs.
pub(crate) type Begin = Box<dyn FnOnce(&Running) -> Result<Round, Failure>>;

/// A round that takes longer than that is not repeated.
const SLOW: Duration = Duration::from_secs(20);

/// A closed loop of clients as rounds.
pub(crate) fn asked_by(mut generator: Generator) -> Begin {
    Box::new(|_| Ok(Box::new(move |running, time| generator.run(running, Limit::Time(time)))))
}

/// CPU for each request and requests a second of these, one after the other in each round, beside the first. Who cannot do what is
/// asked is left out with a line that says why.
pub(crate) fn beside(arguments: &Arguments, what: &str, all: Vec<(Side, Begin)>) -> Result<(), Failure> {
    let mut going = Vec::new();
    for (side, begin) in all {
        match Going::start(side, begin) {
            Ok(side) => going.push(side),
            Err((name, why)) => println!("left out: {name}: {why}"),
        }
    }
    for _ in 0..arguments.rounds {
        going.retain_mut(|side| side.goes_on(arguments.time));
    }
    report(arguments, what, &going);
    Ok(())
}

/// The same with all rounds of one before the next begins: for those whose clients may not be silent meanwhile.
pub(crate) fn one_by_one(arguments: &Arguments, what: &str, all: Vec<(Side, Begin)>) -> Result<(), Failure> {
    let mut done = Vec::new();
    for (side, begin) in all {
        match Going::start(side, begin) {
            Ok(mut side) => {
                if (0..arguments.rounds).all(|_| side.goes_on(arguments.time)) {
                    // It is at an end.
                    side.running = None;
                    done.push(side);
                }
            }
            Err((name, why)) => println!("left out: {name}: {why}"),
        }
    }
    report(arguments, what, &done);
    Ok(())
}

/// One that is measured.
struct Going {
    side: Side,
    running: Option<Running>,
    round: Round,
    runs: Vec<Run>,
}

impl Going {
    fn start(side: Side, begin: Begin) -> Result<Self, (&'static str, Failure)> {
        let begun = Running::start(&side).and_then(|running| {
            let mut round = begin(&running)?;
            let first = round(&running, side.warm_up)?;
            if first.answers == 0 {
                return Err("nothing is answered".into());
            }
            // Who takes so long for one round does not become faster.
            let runs = if first.elapsed > SLOW { vec![first] } else { Vec::new() };
            Ok((running, round, runs))
        });
        let (running, round, runs) = begun.map_err(|why| (side.name, why))?;
        Ok(Self { side, running: Some(running), round, runs })
    }

    /// One round more; false if it cannot.
    fn goes_on(&mut self, time: Duration) -> bool {
        let Some(running) = &self.running else { return false };
        if self.runs.first().is_some_and(|run| run.elapsed > SLOW) {
            return true;
        }
        let run = (self.round)(running, time);
        run.map(|run| self.runs.push(run)).inspect_err(|why| println!("left out: {}: {why}", self.side.name)).is_ok()
    }
}

fn report(arguments: &Arguments, what: &str, all: &[Going]) {
    println!("{what}, median of {} rounds:", arguments.rounds);
    println!("                          µs CPU            a                not        confirm-  bytes");
    println!("                          for each          second           answered   able      for each");
    let Some(Going { runs: first, .. }) = all.first() else { return };
    let (cost, rate) = (median(first, Run::cost), median(first, Run::rate));
    for Going { side, runs, .. } in all {
        let (its_cost, its_rate) = (median(runs, Run::cost), median(runs, Run::rate));
        let confirmable = 100.0 * median(runs, |run| run.confirmable as f64 / run.answers.max(1) as f64);
        let grown = match runs.iter().any(|run| run.grown.is_some()) {
            true => format!("{:.0}", median(runs, |run| run.grown.unwrap_or(0) as f64 / run.answers.max(1) as f64)),
            false => "-".to_owned(),
        };
        println!(
            "  {:<22} {its_cost:9.2} {:6.2}x {its_rate:9.0} {:5.3}x  {:<10} {confirmable:3.0} %     {grown}",
            side.name,
            its_cost / cost,
            its_rate / rate,
            unanswered(runs)
        );
    }
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
