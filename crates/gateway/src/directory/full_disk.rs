//! A disk on which nothing can be written for a while.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use millpond_live::Transport;
use redb::{Builder, StorageBackend};

use super::{Clock, Directory, LONGEST_LINKS, Parameters, Registrant, Registry, store};

/// A file in memory that is there for longer than its database.
#[derive(Clone, Debug, Default)]
struct File {
    bytes: Arc<Mutex<Vec<u8>>>,
    is_full: Arc<AtomicBool>,
}

impl File {
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

async fn started(file: &File) -> Directory {
    let (clock, mut registry) = (Clock::start(), Registry::new(1 << 20, LONGEST_LINKS));
    let file = file.clone();
    let open: store::Open = Arc::new(move || Builder::new().create_with_backend(file.clone()));
    let disk = store::open_by("a file".into(), open, &mut registry, clock.now()).await;
    Directory::over(clock, registry, disk.map(Some))
}

fn register(directory: &Directory, name: &str) {
    let by = Registrant { transport: Transport::Udp, peer: "192.0.2.1:5683".parse().unwrap(), identity: None };
    let parameters = Parameters { name: Some(name.into()), ..Parameters::default() };
    directory.shared.change(|registry, now| registry.register(now, &by, parameters, "</a>")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_told_and_written_again_once_it_has_room() {
    let file = File::default();
    let directory = started(&file).await;
    register(&directory, "before");
    directory.flush().await;
    assert_eq!(directory.trouble(), None);
    file.is_full.store(true, Ordering::Relaxed);
    register(&directory, "meanwhile");
    directory.flush().await;
    let trouble = directory.trouble().unwrap();
    assert!(trouble.starts_with("a file: ") && trouble.ends_with("make room on the disk"), "{trouble}");
    register(&directory, "later");
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(directory.trouble(), Some(trouble));
    assert!(["before", "meanwhile", "later"].into_iter().all(|name| directory.endpoint(name).is_some()));
    file.is_full.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(directory.trouble(), None);
    assert_eq!(started(&file).await.len(), 3);
}
