//! Takes a firmware image of any length into a file and gives it out again, a block at a time:
//! `cargo run -p millpond-live --example firmware_server -- image.bin`, then
//! `millpond put coap://127.0.0.1/firmware @some.bin` and `millpond get coap://127.0.0.1/firmware -o copy.bin`.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt,
};

use millpond_live::{Code, Error, HandlerError, Request, Resource, Response, Server};

/// Longest image that is taken, in bytes: a peer that reaches the server could fill the disk.
const LONGEST: usize = 64 << 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "image.bin".into());
    let mut server = Server::builder().bind("127.0.0.1:5683").route("/firmware", firmware(path.into())).start().await?;
    println!("listening on {}", server.local_addr());
    server.wait().await
}

/// The image at this path, to be replaced and fetched.
pub(crate) fn firmware(path: PathBuf) -> Resource {
    let path: Arc<Path> = path.into();
    let to = Arc::clone(&path);
    let store = move |request: Request| store(request, Arc::clone(&to));
    let fetch = move || {
        let from = Arc::clone(&path);
        async move {
            let Ok(image) = File::open(&*from).await else { return Err(Response::not_found()) };
            let told = |progress: &millpond_live::Progress| eprintln!("{} bytes have arrived", progress.sent);
            Ok(Response::stream(image).with_progress(told))
        }
    };
    Resource::new().put(store).get(fetch).streaming()
}

async fn store(request: Request, to: Arc<Path>) -> Result<Response, HandlerError> {
    let mut body = request.body();
    if body.total().is_some_and(|total| total > LONGEST) {
        return Ok(Response::new(Code::REQUEST_ENTITY_TOO_LARGE));
    }
    // Clients that fetch the image before meanwhile read on.
    let (draft, mut file) = Draft::beside(&to).await?;
    while let Some(chunk) = body.chunk().await? {
        if body.received() > LONGEST {
            return Ok(Response::new(Code::REQUEST_ENTITY_TOO_LARGE));
        }
        file.write_all(&chunk).await?;
        eprintln!("{} of {:?} bytes", body.received(), body.total());
    }
    file.sync_all().await?;
    tokio::fs::rename(&draft.0, &*to).await?;
    Ok(Response::changed())
}

/// What one upload has written so far: a file of its own, or two uploads at a time would be mixed. It goes if the upload breaks off.
struct Draft(PathBuf);

impl Draft {
    async fn beside(file: &Path) -> std::io::Result<(Self, File)> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let draft = file.with_extension(format!("{}-{number}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&draft).await {
                Ok(opened) => return Ok((Self(draft), opened)),
                // A program that was killed left it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has the image's name by now, or is wanted no more.
        let _ = std::fs::remove_file(&self.0);
    }
}
