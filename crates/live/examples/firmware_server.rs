//! Takes a firmware image of any length into a file and gives it out again, a block at a time:
//! `cargo run -p millpond-live --example firmware_server -- image.bin`, then
//! `millpond put coap://localhost/firmware --file some.bin` and `millpond get coap://localhost/firmware -o copy.bin`.

use std::{path::PathBuf, sync::Arc};

use tokio::io::AsyncWriteExt;

use millpond_live::{Code, Error, HandlerError, Request, Resource, Response, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let path: Arc<PathBuf> = Arc::new(std::env::args().nth(1).unwrap_or_else(|| "image.bin".into()).into());
    let to = Arc::clone(&path);
    let store = move |request: Request| {
        let to = Arc::clone(&to);
        async move {
            let mut body = request.body();
            // Whoever reads the old one meanwhile reads on.
            let part = to.with_extension("part");
            let mut file = tokio::fs::File::create(&part).await?;
            while let Some(chunk) = body.chunk().await? {
                file.write_all(&chunk).await?;
                eprintln!("{} of {:?} bytes", body.received(), body.total());
            }
            file.flush().await?;
            tokio::fs::rename(&part, &*to).await?;
            Ok::<_, HandlerError>(Code::CHANGED)
        }
    };
    let fetch = move |_| {
        let from = Arc::clone(&path);
        async move {
            let Ok(image) = tokio::fs::File::open(&*from).await else { return Err(Response::not_found()) };
            let told = |progress: &millpond_live::Progress| eprintln!("{} bytes have arrived", progress.sent);
            Ok(Response::stream(image).with_progress(told))
        }
    };
    let firmware = Resource::new().put(store).get(fetch).streaming();
    let mut server = Server::builder().route("/firmware", firmware).start().await?;
    println!("listening on {}", server.local_addr());
    server.wait().await
}
