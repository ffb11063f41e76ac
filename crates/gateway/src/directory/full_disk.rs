//! A disk on which nothing can be written for a while, and one that is read again later.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use millpond_live::{
    Transport,
    database::{
        Store,
        redb::{Builder, StorageBackend},
    },
};

use super::{Clock, Directory, LONGEST_LINKS, Parameters, Registrant, Registry, store};

/// A file in memory that is there for longer than its database.
#[derive(Clone, Debug, Default)]
struct File {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
}

impl File {
    /// The same once more, as two databases cannot share a file.
    fn copy(&self) -> Self {
        let bytes = self.bytes.lock().unwrap().clone();
        Self { bytes: Arc::new(Mutex::new(bytes)), is_full: Arc::default() }
    }

    fn check(&self) -> io::Result<()> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(&self.bytes.lock().unwrap()[offset as usize..][..out.len()]);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.check()?;
        self.bytes.lock().unwrap().resize(length as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.bytes.lock().unwrap()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// So many seconds after the first one.
async fn started(file: &File, later: u64) -> Directory {
    let since_1970 = Duration::from_secs(1_700_000_000 + later);
    let clock = Clock { origin: tokio::time::Instant::now(), since_1970 };
    let mut registry = Registry::new(1 << 20, LONGEST_LINKS);
    let file = file.clone();
    let file = Store::by("a file".into(), Arc::new(move || Builder::new().create_with_backend(file.clone())));
    let disk = store::open(file, &mut registry, clock.now()).await;
    Directory::over(clock, registry, disk.map(Some))
}

fn register(directory: &Directory, name: &str, lifetime: u32) {
    let by = Registrant { transport: Transport::Udp, peer: "192.0.2.1:5683".parse().unwrap(), identity: None };
    let parameters = Parameters { name: Some(name.into()), lifetime: Some(lifetime), ..Parameters::default() };
    directory.shared.change(|registry, now| registry.register(now, &by, parameters, "</a>")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_told_and_written_again_once_it_has_room() {
    let file = File::default();
    let directory = started(&file, 0).await;
    register(&directory, "before", 90_000);
    directory.flush().await;
    assert_eq!(directory.trouble(), None);
    file.is_full.store(true, Ordering::Relaxed);
    register(&directory, "meanwhile", 90_000);
    directory.flush().await;
    let trouble = directory.trouble().unwrap();
    assert!(trouble.starts_with("a file: ") && trouble.ends_with("make room on the disk"), "{trouble}");
    register(&directory, "later", 90_000);
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(directory.trouble(), Some(trouble));
    assert!(["before", "meanwhile", "later"].into_iter().all(|name| directory.endpoint(name).is_some()));
    file.is_full.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(directory.trouble(), None);
    assert_eq!(started(&file.copy(), 300).await.len(), 3);
}

/// What ended while there was no directory can be refreshed for a while, since it could not be before.
#[tokio::test(start_paused = true)]
async fn what_ends_while_there_is_no_directory_is_kept_a_little_longer() {
    let file = File::default();
    let directory = started(&file, 0).await;
    register(&directory, "ended", 60);
    register(&directory, "ends", 300);
    register(&directory, "stays", 90_000);
    tokio::time::sleep(Duration::from_secs(70)).await;
    directory.flush().await;
    assert!(directory.endpoint("ended").is_none());
    let left = |directory: &Directory| -> Vec<Option<u64>> {
        let names = ["ended", "ends", "stays"].into_iter();
        names.map(|name| directory.endpoint(name).map(|endpoint| endpoint.expires_in.as_secs())).collect()
    };
    assert_eq!(left(&started(&file.copy(), 1_000).await), [None, Some(247), Some(89_000)]);
    assert_eq!(left(&started(&file.copy(), 100).await), [None, Some(247), Some(89_900)], "200 s would be left");
    // A clock that was set back, or was not set yet.
    assert_eq!(left(&started(&file.copy(), 0).await), [None, Some(300), Some(90_000)]);
    let (clock, mut registry) = (Clock { since_1970: Duration::ZERO, ..Clock::start() }, Registry::new(1 << 20, 100));
    let open = file.copy();
    let file = Store::by("a file".into(), Arc::new(move || Builder::new().create_with_backend(open.clone())));
    let disk = store::open(file, &mut registry, Duration::ZERO).await;
    let endings = left(&Directory::over(clock, registry, disk.map(Some)));
    assert_eq!(endings, [None, Some(300), Some(90_000)]);
}
