//! A congestion controller for all peers and another one for one of them, with a trace of every transmission:
//! `cargo run -p millpond-live --example controller_per_peer -- cocoa-03 coap://192.0.2.1/ 192.0.2.2:5683 coap://192.0.2.2/`.

use std::net::SocketAddr;

use millpond_live::{Client, ControllerChoice, Preset};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, uri, peer, other] = arguments.as_slice() else {
        return Err("give a controller, a URI, the address of another peer and its URI".into());
    };
    let client = Client::builder()
        .controller(name.parse::<ControllerChoice>()?)
        .controller_for(peer.parse::<SocketAddr>()?, Preset::RFC7252)
        .trace(|event| eprintln!("{event}"))
        .build()
        .await?;
    for uri in [uri, other] {
        println!("{}", client.get(uri).await?.code());
    }
    for peer in client.stats().await?.peers {
        println!("{}: smoothed {:?}, timeout {:?}", peer.address, peer.smoothed, peer.rto);
    }
    Ok(())
}
