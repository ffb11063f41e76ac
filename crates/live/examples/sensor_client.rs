//! Reads a sensor, sets it, and observes it: `cargo run -p millpond-live --example sensor_client -- coap://host/sensor`.

use std::time::Duration;

use millpond_live::{Client, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let uri = std::env::args().nth(1).unwrap_or_else(|| "coap://localhost/time".into());
    let client = Client::new().await?;

    let reading = client.get(&uri).deadline(Duration::from_secs(30)).await?;
    println!("{}: {}", reading.code(), String::from_utf8_lossy(reading.payload()));
    if let Some(exchange) = reading.exchange() {
        println!("{} copies, round trip {:?}", exchange.copies, exchange.round_trip);
    }

    // Dropping the observation deregisters; `shutdown` waits until the server knows.
    let mut observation = client.get(&uri).observe().await?;
    for _ in 0..3 {
        match observation.next().await {
            Some(state) => println!("now {}", String::from_utf8_lossy(state?.payload())),
            None => break,
        }
    }
    drop(observation);
    client.shutdown().await;
    Ok(())
}
