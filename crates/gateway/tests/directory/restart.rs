//! Registrations on disk.

use std::path::{Path, PathBuf};

use millpond_gateway::directory::{Directory, DirectorySettings};

use super::{Bench, location};

/// A folder of its own, empty.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("millpond-directory-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn settings(&self) -> DirectorySettings {
        DirectorySettings { file: Some(self.file()), ..DirectorySettings::default() }
    }

    fn file(&self) -> PathBuf {
        self.0.join("directory.redb")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Started again on the same file, once the one before has let it go.
async fn again(settings: DirectorySettings) -> Directory {
    loop {
        let directory = Directory::start(settings.clone()).await;
        match directory.trouble() {
            Some(trouble) if trouble.contains("another program") => tokio::task::yield_now().await,
            _ => return directory,
        }
    }
}

#[tokio::test]
async fn a_restart_forgets_nobody() {
    let folder = Folder::new("restart");
    let bench = Bench::with(folder.settings()).await;
    assert_eq!(bench.directory.trouble(), None);
    let place = location(&bench.register("ep=stays&d=s&et=x&flag&base=coap://h", "</a>;rt=\"b c\"").await);
    let gone = location(&bench.register("ep=gone", "</b>").await);
    location(&bench.register("ep=here", "</c>").await);
    bench.directory.flush().await;
    bench.client.delete(bench.uri(&gone)).await.unwrap();
    bench.directory.flush().await;
    let (endpoints, resources) = (bench.look_up("ep").await, bench.look_up("res").await);
    let here = bench.directory.endpoint("here").unwrap();
    drop(bench);

    let directory = again(folder.settings()).await;
    assert_eq!((directory.trouble(), directory.len()), (None, 2));
    let second = directory.endpoint("here").unwrap();
    assert_eq!((&second.base, &second.registrant), (&here.base, &here.registrant));
    assert!(directory.endpoint_in("s", "stays").is_some());
    drop(directory);
    let bench = loop {
        let bench = Bench::with(folder.settings()).await;
        if bench.directory.trouble().is_none() {
            break bench;
        }
    };
    assert_eq!((bench.look_up("ep").await, bench.look_up("res").await), (endpoints, resources));
    assert_eq!(bench.client.post(bench.uri(&place)).await.unwrap().code().to_string(), "2.04");
    let new = location(&bench.register("ep=gone", "</b>").await);
    assert_ne!(new, gone, "no place comes twice");
}

/// Nobody has asked for it to be written: dropped, it writes what is left.
#[tokio::test]
async fn what_is_left_is_written_at_the_end() {
    let folder = Folder::new("end");
    let bench = Bench::with(folder.settings()).await;
    location(&bench.register("ep=a", "</a>").await);
    location(&bench.register("ep=b", "</a>").await);
    let Bench { directory, server, .. } = bench;
    server.shutdown().await;
    drop(directory);
    assert_eq!(again(folder.settings()).await.len(), 2);
}

async fn serves_from_memory(settings: DirectorySettings, why: &str) {
    let bench = Bench::with(settings).await;
    let trouble = bench.directory.trouble().unwrap();
    assert!(trouble.contains(why) && !trouble.contains('\n'), "{trouble}");
    location(&bench.register("ep=a&base=coap://h", "</a>").await);
    bench.directory.flush().await;
    assert_eq!(bench.look_up("res").await, "<coap://h/a>");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_left_as_it_is() {
    let folder = Folder::new("damaged");
    let write = |content: &[u8]| std::fs::write(folder.file(), content).unwrap();
    let shown = folder.file().display().to_string();
    for content in [&b"no database"[..], &[0; 5_000], &[0xff; 100_000]] {
        write(content);
        serves_from_memory(folder.settings(), &shown).await;
        assert_eq!(std::fs::read(folder.file()).unwrap(), content);
    }
    let settings = |file: &Path| DirectorySettings { file: Some(file.to_owned()), ..DirectorySettings::default() };
    serves_from_memory(settings(&folder.0.join("not/there.redb")), "make the folder").await;
    serves_from_memory(settings(&folder.0), &folder.0.display().to_string()).await;
}

#[tokio::test]
async fn a_file_that_is_open_elsewhere_is_not_shared() {
    let folder = Folder::new("shared");
    let first = Directory::start(folder.settings()).await;
    serves_from_memory(folder.settings(), "another program has it open").await;
    assert_eq!(first.trouble(), None);
}

/// Each byte of a database in turn is another, or all behind it is missing: it is read, or said to be damaged.
#[tokio::test]
async fn a_damaged_file_is_read_or_refused() {
    let folder = Folder::new("flipped");
    let bench = Bench::with(folder.settings()).await;
    for number in 0..20 {
        location(&bench.register(&format!("ep=a{number}"), "</a>;rt=\"b\"").await);
    }
    bench.directory.flush().await;
    let whole = std::fs::read(folder.file()).unwrap();
    let damaged = Folder::new("flipped-copy");
    // As it is while the directory runs: what a program leaves that is killed.
    std::fs::write(damaged.file(), &whole).unwrap();
    assert_eq!(again(damaged.settings()).await.len(), 20);
    for place in (0..whole.len()).step_by(whole.len() / 60) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        for bytes in [&bytes[..], &whole[..place]] {
            let _ = std::fs::remove_file(damaged.file());
            std::fs::write(damaged.file(), bytes).unwrap();
            let directory = again(damaged.settings()).await;
            assert!(directory.len() <= 20);
        }
    }
}
