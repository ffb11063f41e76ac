//! One peer that never rests, and memory over many requests.

use std::time::Duration;

use millpond_live::Client;

use crate::{
    Arguments, Failure, OUTSTANDING,
    generator::{Generator, Limit},
    process::{Running, megabytes},
    sides,
};

/// One peer that asks as fast as it can: message IDs must not run out.
pub(crate) fn one_peer(arguments: &Arguments) -> Result<(), Failure> {
    let running = Running::start(&sides::ours()?)?;
    let uri = format!("coap://{}/bench", running.address);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // A minute at full speed uses up the message IDs of some 150 ports.
        let client = Client::builder().nstart(256).most_sockets(256).build().await?;
        let end = tokio::time::Instant::now() + arguments.steady;
        let tasks: Vec<_> = (0..OUTSTANDING)
            .map(|_| {
                let (client, uri) = (client.clone(), uri.parse::<millpond_live::Uri>());
                tokio::spawn(async move {
                    let (mut answered, mut slowest) = (0_u64, Duration::ZERO);
                    let uri = uri?;
                    while tokio::time::Instant::now() < end {
                        let start = tokio::time::Instant::now();
                        client.get(&uri).send().await?;
                        (answered, slowest) = (answered + 1, slowest.max(start.elapsed()));
                    }
                    Ok::<_, Failure>((answered, slowest))
                })
            })
            .collect();
        let (mut answered, mut slowest) = (0, Duration::ZERO);
        for task in tasks {
            let (more, slow) = task.await??;
            (answered, slowest) = (answered + more, slowest.max(slow));
        }
        let stats = client.stats().await?;
        println!(
            "one peer for {:?}: {:.0} requests/s, {} source ports, {} retransmissions, slowest {slowest:?}",
            arguments.steady,
            answered as f64 / arguments.steady.as_secs_f64(),
            stats.sockets,
            stats.retransmissions,
        );
        Ok(())
    })
}

/// What our server holds after more and more requests.
pub(crate) fn memory(arguments: &Arguments) -> Result<(), Failure> {
    let running = Running::start(&sides::ours()?)?;
    let mut generator = Generator::new(OUTSTANDING)?;
    println!("MB resident over {} requests to ours:", arguments.requests);
    for tenth in 0..=10 {
        if tenth > 0 {
            generator.run(&running, Limit::Requests(arguments.requests / 10))?;
        }
        println!("  {:>10} requests  {:7.3}", arguments.requests / 10 * tenth, megabytes(running.resident()));
    }
    Ok(())
}
