//! coap-rs as a peer: `serve PORT`; `measured PORT` is the same.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use coap::Server;
use coap_lite::{CoapRequest, RequestType as Method, ResponseType};

/// What `/bench` answers.
const BENCH: &[u8] = b"0123456789012345678901234567890123456789";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ["serve" | "measured", port] = arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return Err("serve PORT, or measured PORT".into());
    };
    let server = Server::new_udp(("127.0.0.1", port.parse::<u16>()?))?;
    println!("ready");
    let asked = Arc::new(AtomicU64::new(0));
    let handler = move |mut request: Box<CoapRequest<SocketAddr>>| {
        let asked = Arc::clone(&asked);
        async move {
            let (path, method) = (request.get_path(), *request.get_method());
            if let Some(response) = &mut request.response {
                match path.as_str() {
                    "state" if method == Method::Put => response.set_status(ResponseType::Changed),
                    "mebibyte" => response.message.payload = vec![0; 1 << 20],
                    "bench" => response.message.payload = BENCH.to_vec(),
                    // How often it was asked.
                    "tally" => {
                        let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
                        response.message.payload = count.to_string().into_bytes();
                    }
                    _ => response.set_status(ResponseType::NotFound),
                }
            }
            request
        }
    };
    server.run(handler).await?;
    Ok(())
}
