//! What the examples do, for people copy them.

use std::path::PathBuf;

use millpond_live::{Client, Code, Server};

use crate::ANY;

#[allow(dead_code, reason = "its program is not started")]
#[path = "../../examples/firmware_server.rs"]
mod firmware_server;

fn fresh_directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    // An earlier run may have left it.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Two uploads at a time wrote one draft, and both were told that all was well.
#[tokio::test]
async fn of_several_images_that_are_uploaded_at_once_one_is_there_whole() {
    let directory = fresh_directory("firmware");
    let resource = firmware_server::firmware(directory.join("image.bin"));
    let server = Server::builder().bind(ANY).route("/firmware", resource).start().await.unwrap();
    let at = format!("coap://{}/firmware", server.local_addr());
    let uploads: Vec<_> = (1..=6_u8)
        .map(|content| {
            let at = at.clone();
            tokio::spawn(async move {
                let client = Client::builder().build().await.unwrap();
                let image = vec![content; 30_000 + 100 * usize::from(content)];
                client.put(&at).upload(&mut &image[..]).await.unwrap().code()
            })
        })
        .collect();
    for upload in uploads {
        assert_eq!(upload.await.unwrap(), Code::CHANGED);
    }
    let image = std::fs::read(directory.join("image.bin")).unwrap();
    let content = image[0];
    assert_eq!(image, vec![content; 30_000 + 100 * usize::from(content)]);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "no draft is left");
    let client = Client::builder().build().await.unwrap();
    assert_eq!(client.get(&at).await.unwrap().payload()[..], image[..]);
}
