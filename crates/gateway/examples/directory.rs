//! A server with a resource directory, in memory or in a file: `cargo run -p millpond-gateway --example directory
//! [ADDRESS:PORT] [FILE]`.

use std::{env, net::SocketAddr};

use millpond_gateway::directory::{Directory, DirectorySettings, routes};
use millpond_live::{Error, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "[::]:5683".into());
    let address: SocketAddr = address.parse().map_err(|_| Error::Setting {
        name: "address",
        reason: format!("{address} is no address and port such as 127.0.0.1:5683"),
    })?;
    let settings = DirectorySettings { file: arguments.next().map(Into::into), ..DirectorySettings::default() };
    let directory = Directory::start(settings).await;
    if let Some(trouble) = directory.trouble() {
        eprintln!("{trouble}");
    }
    let server = routes(Server::builder().bind(address), &directory).start().await?;
    directory.ask_by(&server);
    println!("{} endpoints known, listening on {}", directory.len(), server.local_addr());
    let _ = tokio::signal::ctrl_c().await;
    server.shutdown().await;
    directory.flush().await;
    Ok(())
}
